"""The report of the reproduction: a page that is whole, opens without errors, and says what is missing."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from reproduction import buffers
from reproduction.report import write
from reproduction.report.answer import sentences
from reproduction.report.measured import CENTROID, EARLY, GROUPS, PRINTED, QUEUE, RELEASED, Measured
from reproduction.results import Results
from reproduction.tests import invented
from reproduction.tests.invented import record
from tests.browser import opened

FIGURES = (
    "figure-ranks", "figure-relative-regret", "figure-relative-error",
    "figure-auc-time", "figure-features", "figure-strata-cap", "figure-strata-along", "figure-strata-count",
    "figure-cost", "figure-regret", "figure-regret-after", "figure-regret-root", "figure-variance-own",
    "figure-variance-common",
)  # fmt: skip
SECTIONS = (
    "answer", "verdicts", "released", "auc-time", "features", "clusters", "cost", "regret", "variance", "datasets",
    "claims", "checklist", "origin",
)  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """The page of full, invented results."""
    return write(invented.write(tmp_path_factory.mktemp("results")))


OPEN = """
  for (const part of document.querySelectorAll("details")) part.open = true;
"""

WIDE = (
    OPEN
    + """
  const sizes = {};
  for (const figure of document.querySelectorAll("figure")) {
    const boxes = [...figure.querySelectorAll(".panels svg")].map((one) => one.getBoundingClientRect());
    sizes[figure.id] = boxes.length ? Math.min(...boxes.map((box) => Math.min(box.width, box.height))) : 0;
  }
  const table = document.querySelector("#answer table");
  const names = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
  const head = [...table.tHead.rows[1].cells].find((one) => one.textContent === "OGD");
  const orders = [names()], sorts = [];
  for (let k = 0; k < 3; k++) {
    head.querySelector("button").click();
    orders.push(names());
    sorts.push(head.getAttribute("aria-sort"));
  }
  const loaded = performance.getEntriesByType("resource").map((one) => one.name);
  const main = document.querySelector("#answer .scroll");
  return {sizes, orders, sorts, loaded, overflow: document.documentElement.scrollWidth - innerWidth,
          clipped: main.scrollWidth - main.clientWidth};
"""
)

NARROW = (
    OPEN
    + """
  const wide = [...document.querySelectorAll("main > section > *, main > section > details > *, header > *")];
  return {overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          width: document.documentElement.clientWidth,
          panel: document.querySelector(".panels svg").getBoundingClientRect().width,
          beyond: wide.filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.className)};
"""
)


def test_the_page_opens_with_every_figure_and_sorts(page, tmp_path):
    seen = opened(page, WIDE, 1280, tmp_path)
    assert set(seen["sizes"]) == set(FIGURES)
    assert min(seen["sizes"].values()) > 100
    assert seen["sorts"] == ["descending", "ascending", "none"]
    first, falling, rising, again = seen["orders"]
    aucs = dict(zip(first, _column(page, "OGD"), strict=True))
    assert [aucs[name] for name in falling] == sorted(aucs.values(), reverse=True)
    assert [aucs[name] for name in rising] == sorted(aucs.values())
    assert again == first
    assert seen["loaded"] == []
    assert seen["overflow"] <= 0
    assert seen["clipped"] <= 0


def _column(page: Path, system: str) -> list[float]:
    """Values of one system in the main table, in the order of the file."""
    table = re.search(r'<table class="sortable auc".*?</table>', page.read_text(encoding="utf-8"), re.S)[0]
    heads = [re.sub(r"<[^>]*>", "", head) for head in re.findall(r"<button[^>]*>(.*?)</button>", table)]
    rows = re.findall(r"<tr>(.*?)</tr>", re.search(r"<tbody>(.*)</tbody>", table, re.S)[1], re.S)
    cells = [re.findall(r"<t[hd]([^>]*)>", row) for row in rows]
    return [float(re.search(r'data-value="([^"]*)"', row[heads.index(system)])[1]) for row in cells]


def test_a_telephone_shows_it_without_scrolling_sideways(page, tmp_path):
    seen = opened(page, NARROW, 390, tmp_path)
    assert seen["width"] <= 500
    assert seen["overflow"] == 0
    assert seen["beyond"] == []
    assert seen["panel"] > 0.8 * seen["width"]


def test_the_page_is_whole_by_itself(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 3_000_000
    assert not re.search(r"\s(src|href|xlink:href)=[\"'](?!#|data:|runs.html)", text)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", text)
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(ids)
    assert all(f'id="{name}"' in text for name in (*SECTIONS, *FIGURES))
    assert "Not measured yet" not in text


def test_the_same_results_give_the_same_bytes(tmp_path):
    one, other = (write(invented.write(tmp_path / name, only=("features", "cost"))) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_an_empty_folder_says_which_commands_fill_it(tmp_path):
    text = write(tmp_path / "nothing").read_text(encoding="utf-8")
    assert "<figure" not in text
    for name in ("table", "auc-time", "features", "clusters", "cost", "regret", "variance"):
        assert f"<code>python -m reproduction {name}</code>" in text
    assert "No run is recorded" in text


@pytest.mark.parametrize("command", ["pairloom reproduce", "python -m reproduction"])
def test_the_foot_of_the_page_names_the_command_that_made_the_results(tmp_path, command):
    invented.save(tmp_path / "runs.csv", [{"run": "r", "command": f"{command} all"}])
    assert f"<footer><p>Made by <code>{command}</code>." in write(tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize("only", ["table", "clusters", "cost", "regret", "variance"])
def test_one_experiment_is_enough_for_its_part(tmp_path, only):
    text = write(invented.write(tmp_path, only=(only,))).read_text(encoding="utf-8")
    assert f"<code>python -m reproduction {only}</code>" not in text
    assert "<code>python -m reproduction auc-time</code>" in text


def test_numbers_stand_as_in_the_paper(page):
    text = page.read_text(encoding="utf-8")
    table = re.search(r'<table class="sortable auc".*?</table>', text, re.S)[0]
    *found, foot = re.findall(r"<tr>(<th.*?)</tr>", table, re.S)[1:]
    rows = {re.match(r"<th[^>]*>([a-z0-9.]+)", row)[1]: row for row in found}
    assert re.sub(r"<[^>]*>", " ", foot).split()[:3] == ["ahead", ":", "behind"]
    assert rows["german"].count("85.82 ± 0.24") == 2
    assert "rcv1" not in rows
    assert "text, in place of rcv1" in rows["reuters.moneyfx"]
    assert 'class="paper"' not in rows["reuters.moneyfx"]
    assert "10,000 rows" in rows["mnist"]
    assert rows["mnist"].count("<b>") == 1
    assert table.count('title="60 % of the steps were cut"') == len(rows)  # of OGD
    runs = (page.parent / "runs.html").read_text(encoding="utf-8")
    every = re.search(r'<table class="sortable auc every".*?</table>', runs, re.S)[0]
    assert 'title="left out: 8,315 columns, D^2 numbers do not fit"' in every
    shown = {name: row for row in re.findall(r"<tr>(<th.*?)</tr>", every, re.S)
             for name in re.findall(r'^<th[^>]*scope="row"[^>]*>([^<]*)', row)}  # fmt: skip
    assert shown["OGD"].count("⚠") == shown["OAM"].count("◂") == 8
    assert "⚠" not in shown["OAM"]
    assert len(re.findall(r"\d\d\.\d\d", re.sub(r"<[^>]*>", " ", shown["OGD"]))) == 16


def test_all_runs_are_on_the_second_page(page):
    text = (page.parent / "runs.html").read_text(encoding="utf-8")
    found = re.search(r"All ([\d,]+) runs of the table", text)[1]
    assert int(found.replace(",", "")) == len([one for one in invented.table(np.random.default_rng(0)) if "auc" in one])
    assert "eta high" in text
    assert re.search(r"\d+ of 36 values of the last iterate", text)
    assert "reuters.moneyfx" in text
    assert ">rcv1<" not in text


def test_the_answer_is_computed_from_the_records(tmp_path):
    """The same five sentences, with another conclusion if the queue is worse."""

    def words(queue):
        names = (*GROUPS["in the paper"], QUEUE, CENTROID, PRINTED, "AUCClassifier", "FPOGD, tuned width")
        records = [record(dataset, name, "seed", 0.0, fold, auc=0.9 + fold / 1000 + (queue if name == QUEUE else 0.0))
                   for dataset in ("usps", "german", "a9a") for name in names for fold in range(5)]  # fmt: skip
        invented.save(tmp_path / "table.csv", [{**one, "auc": one["auc"] + 1e-5 * k} for k, one in enumerate(records)])
        return " ".join(sentences(Results(tmp_path)))

    assert "Stratification is not the reason" in words(0.0)
    assert "significantly better than the strata on 3 (german, usps and a9a), worse on none" in words(0.02)
    assert "Stratification helps" in words(-0.02)


def test_the_answer_says_what_tuned_widths_and_the_last_iterate_change(tmp_path):
    """The numbers of the words follow the records: a rival with a tuned width, and a last iterate that falls."""
    sets = ("usps", "german", "a9a")

    def words(rival, last):
        aucs = {**dict.fromkeys(GROUPS["in the paper"], 0.8), "FPOGD, kernel": 0.9, "FPOGD, tuned width": 0.9,
                "ProjectronPP, tuned width": rival}  # fmt: skip
        records = [record(dataset, name, "seed", 0.0, fold, auc=auc + fold / 1000 + 1e-5 * k, auc_last=auc - last,
                          cut=0.25, settings='{"eta": 2.0}', settings_last='{"eta": 0.5}')
                   for k, (name, auc) in enumerate(aucs.items()) for dataset in sets for fold in range(5)]  # fmt: skip
        invented.save(tmp_path / "table.csv", records)
        return sentences(Results(tmp_path))

    best, ranks, kernel = words(0.95, 0.1)
    assert best.startswith("FPOGD is not clearly the best of the paper's systems")
    assert "significantly ahead of it are none" in best
    assert "Projectron++ is significantly ahead of it on 3 sets and behind on 0" in best
    assert "mean rank is 1.0 among the 6 systems, FPOGD in two forms" in ranks
    assert "with tuned widths the mean rank of Projectron++ is 1.0, and that of FPOGD 2.0" in ranks
    assert "on 3 sets the selected step is beyond the paper's grid, 2⁻⁸ to 2⁻¹, and up to 25 %" in kernel
    assert re.search(r"falls most on \w+, from 90.20 to 80.00", kernel)
    assert words(0.85, 0.1)[0].startswith("FPOGD is the best of the paper's systems")


def test_marks_follow_means_and_most_folds(tmp_path):
    """A cut of one run of ten is no mark, nor is an edge in two of five folds."""
    cuts, edges = (1.0, *[0.4] * 9), ("eta high", "eta high", "", "", "")
    invented.save(tmp_path / "table.csv", [
        record("usps", "OGD", "seed", float(seed), fold, auc=0.9, cut=cuts[2 * fold + seed], edges=edges[fold])
        for fold in range(5) for seed in range(2)
    ])  # fmt: skip
    measured = Measured(Results(tmp_path))
    assert measured.cut("usps", "OGD") == pytest.approx(0.46)
    assert not measured.on_edge("usps", "OGD")


def test_sentences_have_no_brackets_in_brackets(page):
    for text in sentences(Results(page.parent)):
        assert not re.search(r"\([^)]*\(", text)


def test_regret_and_error_of_the_same_runs_are_compared(tmp_path):
    cells = {buffers.FIFO: (1.0, 0.5), buffers.CENTROID: (1.1, 0.1), buffers.QUEUE: (0.9, 0.25)}
    invented.save(tmp_path / "table.csv", [
        record(dataset, "FPOGD, kernel", "seed", 0.0, fold, auc=0.9) for dataset in ("usps", "a9a", "german")
        for fold in (0, 1)
    ])  # fmt: skip
    invented.save(tmp_path / "regret.csv", [
        one for dataset in ("usps", "a9a", "german") for name, (factor, error) in cells.items()
        for one in invented.regret_cell(dataset, name, "i.i.d.", 0.125, 0.6, factor, error)
    ])  # fmt: skip
    (text,) = sentences(Results(tmp_path))
    assert "need not mean less regret" in text
    assert "20 % of the squared error of the paper's strata and 10 % more regret" in text
    assert "the queue has 50 % of the error and 10 % less regret" in text


def test_one_set_is_too_few_for_an_answer(tmp_path):
    invented.save(
        tmp_path / "table.csv", [record("usps", "FPOGD, kernel", "seed", 0.0, fold, auc=0.9) for fold in (0, 1)]
    )
    text = write(tmp_path).read_text(encoding="utf-8")
    assert "too few for an answer" in text
    assert "all 1 sets" not in text


def test_odd_text_is_escaped_and_unknown_systems_are_shown(tmp_path):
    odd = '<script>alert("1")</script> & co'
    invented.save(tmp_path / "table.csv", [
        record("german", odd, fold=fold, auc=0.8 + fold / 100, rows=800, n_train=800, seconds=0.1)
        for fold in range(2)
    ] + [record("<i>", "OGD", note=odd)])  # fmt: skip
    invented.save(tmp_path / "selection.csv", [record("german", odd, settings=odd, auc=0.8)])
    invented.save(tmp_path / "runs.csv", [{"run": "r", "command": odd, "machine": odd}])
    text = write(tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<i>" not in text
    assert "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; co" in text
    assert "yours" in text
    runs = (tmp_path / "runs.html").read_text(encoding="utf-8")
    assert '<td class="group">other</td>' in runs
    assert "<script>alert" not in runs


def test_a_single_record_of_each_experiment_is_no_harm(tmp_path):
    kernel = {"dataset": "usps", "system": "FPOGD, kernel"}
    single = {
        "table": [record(**kernel, auc=0.9), record("usps", "OGD", auc=math.nan)],
        "selection": [record(**kernel)],
        "auc-time": [record(**kernel, row=10, seconds=0.0, auc=0.8)],
        "features": [record(**kernel, axis="D", value=64.0, auc=0.8)],
        "clusters": [
            record(**kernel, axis="max_strata", value=1.0, row=5, seconds=0.1, auc=0.7),
            record(**kernel, axis="eps", value=0.1, row=2, n_strata=1, bound_paper=0.0, bound_packing=900.0),
        ],
        "cost": [record("", "FPOGD, kernel", "s", 1.0, micros=3.0)],
        "regret": [
            record("usps", "FPOGD, FIFO", axis, eta, row=100, before=1.0, after=-1.0, best=9.0)
            for axis in ("eta, i.i.d. order", "eta, sorted") for eta in (0.1, 0.5)
        ],
        "variance": [record("usps", "FPOGD, FIFO", f"slots, {path} path", 4.0, mean=0.5) for path in ("own", "common")],
    }  # fmt: skip
    for name, records in single.items():
        invented.save(tmp_path / f"{name}.csv", records)
    text = write(tmp_path).read_text(encoding="utf-8")
    compared = ("figure-ranks", "figure-relative-regret", "figure-relative-error")
    assert all(f'id="{name}"' in text for name in FIGURES if name not in compared)
    assert "nan" not in re.sub(r"<[^>]*>|<script>.*</script>", "", text, flags=re.S)


def test_the_released_code_is_compared_on_its_own_rows(tmp_path):
    """Linear FPOGD is as good as the released code on the same rows; only on all rows is it better."""
    aucs = {RELEASED: 0.8, EARLY[0]: 0.7, EARLY[1]: 0.8, "FPOGD, linear": 0.9, "FPOGD, kernel": 0.9}
    invented.save(tmp_path / "table.csv", [
        record(dataset, name, "seed", 0.0, fold, auc=auc + fold / 1000 * (name != RELEASED))
        for name, auc in aucs.items() for dataset in ("usps", "german", "a9a") for fold in range(5)
    ])  # fmt: skip
    text = write(tmp_path).read_text(encoding="utf-8")
    assert "FPOGD without a kernel on the same 1,000 rows is significantly better on 0 of 3 sets, worse on 0" in text
    assert "FPOGD with one on the same 1,000 rows is significantly better on 0 of 3 sets, worse on 3" in text
    assert "FPOGD with one on all rows is significantly better on 3 of 3 sets, worse on 0" in text
