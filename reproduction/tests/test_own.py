"""A comparison of one's own: files, classes and a configuration, as docs/reproduction.md describes."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

from reproduction import sources
from reproduction.__main__ import main
from reproduction.released import ReleasedCode
from reproduction.results import Results

X, Y = load_breast_cancer(return_X_y=True)

PAGE = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
FILES = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    shlex.split(line, comments=True)[3:]
    for line in PAGE.splitlines()
    if "my_method:Mine --" in line or "my.toml --" in line
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the page, beside a data set, in the folder from which the command is run."""
    lines = [",".join([*(f"{value:.6g}" for value in row), "bad" if label == 0 else "good"])
             for row, label in zip(X, Y, strict=True)]  # fmt: skip
    names = ",".join([*(f"c{k}" for k in range(X.shape[1])), "label"])
    (tmp_path / "my.csv").write_text("\n".join([names, *lines]) + "\n")
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("command", "n_settings"), [*zip(COMMANDS, (3, 0), strict=True)])
def test_the_commands_of_the_page_compare_your_class_on_your_data(folder, capsys, command, n_settings):
    assert main([*command, "--quick", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "mean / last iterate" in out
    found, selected = (Results(folder / "mine").read(name) for name in ("table", "selection"))
    assert {one["system"] for one in found} == {"FPOGD, kernel", "OGD", "my_method:Mine"}
    assert {one["dataset"] for one in found} == {"my"}
    for system in {one["system"] for one in found}:
        assert np.mean([one["auc"] for one in found if one["system"] == system]) > 0.9
    own = [one for one in selected if one["system"] == "my_method:Mine"]
    assert {one["n_settings"] for one in own} == ({n_settings} if n_settings else set())
    assert "my_method:Mine" in (folder / "mine" / "index.html").read_text().replace("<wbr>", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table", "--data", "absent.csv"], "no file 'absent.csv'"),
        (["table", "--system", "my_method:Absent"], "is not MODULE:CLASS of a class that can be imported"),
        (["table", "--system", "nothing"], "no system 'nothing'; there are"),
        (["table", "--systems", "FPOGD"], "no system 'FPOGD'; there are FPOGD, kernel; "),
        (["cost", "--data", "my.csv"], "need the experiment table"),
        (["table", "--config", "my.csv"], "my.csv: "),
    ],
)
def test_what_cannot_be_run_is_named(folder, capsys, words, message):
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--out", "out"])
    assert message in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_files_of_every_kind_have_the_same_rows(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    np.savetxt(tmp_path / "b.csv", np.column_stack([X, Y]), delimiter=",", fmt="%.17g")
    with (tmp_path / "c.svm").open("wb") as file:
        dump_svmlight_file(X, Y, file)
    read = [sources.load(str(tmp_path / name)) for name in ("a.npz", "b.csv", "c.svm")]
    for rows in read:
        np.testing.assert_allclose(rows.X, X)
        np.testing.assert_array_equal(rows.y, np.where(Y == 0, 1, -1))  # the rarer label is positive


def test_wide_libsvm_files_stay_sparse(tmp_path):
    wide = csr_matrix(([1.0, 2.0], ([0, 1], [0, 1999])), shape=(2, 2000))
    with (tmp_path / "wide.svm").open("wb") as file:
        dump_svmlight_file(wide, [1, 2], file)
    assert not isinstance(sources.load(str(tmp_path / "wide.svm")).X, np.ndarray)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,a\n1,3,b\n2,3,c\n", "needs two labels, but has 3: a, b, c"),
        ("1,2,a\n1,nan,b\n", "missing or infinite"),
        ("1,2,a\n1,x,b\n", "a column is not numeric"),
    ],
)
def test_files_that_cannot_be_compared_are_refused(tmp_path, text, message):
    (tmp_path / "odd.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        sources.load(str(tmp_path / "odd.csv"))


def test_an_npz_without_labels_is_refused(tmp_path):
    np.savez(tmp_path / "odd.npz", X=X)
    with pytest.raises(ValueError, match="needs the arrays X and y, but has X"):
        sources.load(str(tmp_path / "odd.npz"))


def test_released_code_pairs_positives_with_the_weights_of_their_own_strata():
    """Three rows by hand: the buffers hold the first row of each class before the first step."""
    rows, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1, -1, 1])
    model = ReleasedCode(eta=0.01, l1=0.0).fit(rows, y)
    x = 4 * rows / np.linalg.norm(rows, axis=1)[:, None]
    w = np.zeros(2)
    for row, label in zip(x, y, strict=True):
        apart = label * (row - x[1 if label > 0 else 0])
        w = w + 0.01 * (1 - w @ apart) * apart
    np.testing.assert_allclose(model.w_, w)
