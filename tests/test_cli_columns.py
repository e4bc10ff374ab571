"""Messy columns on the command line: malformed values stop, are skipped or are missing; columns of little use."""

import json

import numpy as np
import pytest

import pairloom

SMALL = ("--system", "FPOGD", "--set", "n_components=4", "--label", "y")
WORDS = ["the", "order", "came", "late", "and", "nobody", "knew", "why", "so", "please", "call", "me", "again"]
BAD = {5: ("amount", "12.5O"), 9: ("when", "2024-02-30"), 250: ("amount", "oops")}


def rows(n=300):
    rng = np.random.default_rng(0)
    for k in range(n):
        amount, device = round(float(rng.lognormal()), 2), str(rng.choice(["ios", "web"]))
        yield {"amount": amount, "when": f"2024-01-{1 + k // 10:02d}", "device": device, "y": int(rng.random() < 0.4)}


def write(path, made):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in made))
    else:
        lines = [",".join(made[0]), *(",".join(map(str, row.values())) for row in made)]
        path.write_text("\n".join(lines) + "\n")
    return path.name


@pytest.fixture(params=["csv", "jsonl"])
def files(request, tmp_path):
    """Files with malformed values, with missing values in their place, and without these rows."""
    made, end = list(rows()), request.param
    bad, clean = ([{**row, **({BAD[k][0]: value(k)} if k in BAD else {})} for k, row in enumerate(made)]
                  for value in (lambda k: BAD[k][1], lambda k: ""))  # fmt: skip
    write(tmp_path / f"start.{end}", bad[:120])
    rest = [row for k, row in enumerate(made) if k not in BAD]
    return [write(tmp_path / f"{name}.{end}", own) for name, own in [("bad", bad), ("clean", clean), ("rest", rest)]]


def test_malformed_values_stop_are_skipped_or_are_missing(files, command, tmp_path):
    def fit(file, model, *args):
        done = command("fit", file, *SMALL, "--model", model, *args, cwd=tmp_path)
        return done, (tmp_path / model).read_bytes() if done.returncode == 0 else b""

    bad, clean, rest = files
    line = 7 if bad.endswith("csv") else 6
    done, _ = fit(bad, "m")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"{bad}:{line}: column 'amount' must contain numbers, but contains '12.5O': correct it"
    )
    assert fit(bad, "skipped", "--on-bad-row", "skip")[1] == fit(rest, "rest")[1]

    counts = "malformed values treated as missing, by column: 'amount' 2, 'when' 1\n"
    done, whole = fit(bad, "missing", "--on-bad-row", "missing", "--json", "--chunk", "100")
    assert done.stderr == f"pairloom: warning: {counts}"
    assert json.loads(done.stdout)["malformed"] == {"amount": 2, "when": 1}
    made = pairloom.load(tmp_path / "missing")
    assert (made.columns_.malformed, made.columns) == ({"amount": 2, "when": 1}, None)
    done, _ = fit(clean, "clean", "--json")
    assert (done.stderr, json.loads(done.stdout)["malformed"]) == ("", {})
    np.testing.assert_array_equal(made.coef_, pairloom.load(tmp_path / "clean").coef_)

    resumed = ("--on-bad-row", "missing", "--chunk", "100", "--checkpoint", "run", "--every", "100", "--resume")
    fit(bad.replace("bad", "start"), "resumed", *resumed)
    assert fit(bad, "resumed", *resumed)[1] == whole

    done = command("inspect", "missing", cwd=tmp_path)
    assert "number: 'amount' (0.67 % missing, 2 malformed)\n" in done.stdout
    scores = [command("predict", "missing", file, "--on-bad-row", "missing", cwd=tmp_path) for file in (bad, clean)]
    assert scores[0].stdout == scores[1].stdout
    assert [one.stderr.endswith(counts) for one in scores] == [True, False]
    assert command("predict", "missing", bad, cwd=tmp_path).returncode == 2
    done = command("evaluate", "missing", bad, "--label", "y", "--on-bad-row", "missing", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["malformed"] == {"amount": 2, "when": 1}


def test_rows_that_cannot_be_read_stop_also_if_malformed_values_are_missing(command, tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,0\n2,1\n" * 20 + "3\n")
    done = command("fit", "rows.csv", *SMALL, "--on-bad-row", "missing", cwd=tmp_path)
    assert (done.returncode, done.stderr.startswith("rows.csv:42: expected 2 values")) == (2, True)


@pytest.mark.parametrize("end", ["csv", "jsonl"])
def test_columns_of_little_use_are_reported(end, command, tmp_path):
    rng = np.random.default_rng(0)
    made = [{**row, "id": f"t{k}", "same": "x", "note": " ".join(rng.choice(WORDS, 6))} for k, row in enumerate(rows())]
    file = write(tmp_path / f"rows.{end}", made)
    done = command("fit", file, *SMALL, "--model", "m", "--json", cwd=tmp_path)
    constant, ids, text = done.stderr.splitlines()
    assert constant == "pairloom: warning: constant so far: 'same'; leave out with --drop"
    assert ids == "pairloom: warning: look like ids: 'id'; leave out with --drop"
    assert text.startswith("pairloom: warning: free text: 'note'; leave out with --drop, or replace them by columns of")
    found = json.loads(done.stdout)
    assert (found["constant"], found["id_like"], found["free_text"]) == (["same"], ["id"], ["note"])
    dropped = ("--drop", "same", "--drop", "note", "--set", "columns.id=category")
    assert command("fit", file, *SMALL, "--model", "n", *dropped, cwd=tmp_path).stderr == ""
