"""The AUC of the paper's table and of every other system."""

import re
from dataclasses import dataclass
from math import isnan

from reproduction import paper
from reproduction.report.estimates import Estimate, apart
from reproduction.report.html import Column, Entry, Markup, element, joined, missing, note, section, table
from reproduction.report.measured import (
    CENTROID,
    GROUPS,
    KERNEL,
    LINEAR,
    PRINTED,
    QUEUE,
    RELEASED,
    Measured,
    group_of,
    is_imbalanced,
)
from reproduction.report.wording import count, listed, of, percent
from reproduction.results import Results

FLAGGED = 2.0
"""Differences of more than this many combined standard errors are marked."""

CUT = 0.5
"""A cell is marked if more than this share of the steps was cut, because it would have diverged."""

CONTROLS = (QUEUE, CENTROID, PRINTED, RELEASED)
OTHERS = ("AUCClassifier", "LightGBM")

HOW = (
    "AUC × 100 of the mean of the iterates on the test rows: mean ± standard error over five folds of two seeds. "
    "Every system is tuned inside each fold, with steps and penalties of the same ranges (systems that cannot share a "
    "pass: every second step); ε and the number of strata are the defaults of FPOGD. Columns are scaled to "
    "[−1, 1] on the training part; text, and from 100 columns on the rows of linear systems, have norm 1; "
    "AUCClassifier and LightGBM get rows as they are. FPOGD, the queue, Kar and OAM keep 32 examples. Bold: the "
    "highest mean without LightGBM. ▲ ▼: more than two combined standard errors above or below the paper's value, in "
    "italics, which names no form of FPOGD."
)


@dataclass(frozen=True)
class Gap:
    """A difference to the paper; ``errors``: in combined standard errors."""

    dataset: str
    system: str
    ours: Estimate
    printed: paper.Printed
    errors: float


def gaps(measured: Measured) -> list[Gap]:
    """Return all values that are also in the paper, without stand-ins; its FPOGD is compared with our kernel form."""
    found = []
    for dataset in measured.datasets:
        for system in GROUPS["in the paper"]:
            ours, printed = measured.auc(dataset, system), paper.printed(dataset, system)
            if ours and printed and system != LINEAR and not measured.stand_in(dataset):
                errors = apart(Estimate(100 * ours.mean, 100 * ours.error, ours.n), printed.auc, printed.error)
                found.append(Gap(dataset, system, ours, printed, errors))
    return found


def main_table(measured: Measured) -> Markup:
    """Return data sets by the paper's systems and the controls; the printed values are below ours."""
    own = tuple(name for name in measured.systems if group_of(name) == "other")
    groups = {"systems of the paper": GROUPS["in the paper"], "controls": CONTROLS, "others": OTHERS, "yours": own}
    known = {group: [name for name in names if name in measured.systems] for group, names in groups.items()}
    heads = (Column(_breakable(name), group) for group, names in known.items() for name in names)
    columns = [Column("data set"), *heads]
    systems = [name for names in known.values() for name in names]
    errors = {(gap.dataset, gap.system): gap.errors for gap in gaps(measured)}
    rows = []
    for dataset in measured.datasets:
        best = measured.best(dataset, [name for name in systems if name != "LightGBM"])
        rows.append([
            Entry(_name(measured, dataset)),
            *(_main_entry(measured, dataset, system, system == best, errors.get((dataset, system)))
              for system in systems),
        ])  # fmt: skip
    after = joined([note(HOW), _left_out(measured, systems)])
    return table(columns, rows, "AUC × 100, all systems treated alike", "auc", after)


def released_section(results: Results) -> Markup:
    """Return what the authors' released code runs, and how its repaired form compares."""
    title = "The authors' released code"
    measured = Measured(results)
    sets = measured.compared_sets([KERNEL, RELEASED])
    if not sets:
        return section("released", title, missing("table"))
    gaps_here = [(name, gap) for name in sets if (gap := measured.difference(name, KERNEL, RELEASED))]
    ahead, behind = ([name for name, gap in gaps_here if gap.clear == sign] for sign in (1, -1))
    text = (
        "The code that the authors released runs another method than the paper describes: no Fourier features, an L1 "
        "penalty, rows of norm 4, four strata whose centroids move away from their members, the weights of the wrong "
        "class, two folds, and an end after 1,000 rows. It stops with a ValueError on its first positive row, because "
        "counts are passed in place of ε. The column “released code” is what it computes with ε as it defines it, "
        f"written from this description, on columns scaled like those of the others: FPOGD with a kernel is "
        f"significantly better on {of(ahead, len(sets))}, worse on {of(behind, len(sets))}."
    )
    return section("released", title, element("p", text))


def every_section(measured: Measured) -> Markup:
    """Return AUC with both outputs of every system."""
    text = (
        "Mean of the iterates, and below it the last iterate, each with its own settings; one number for a system "
        "without iterates. ⚠: more than half of the steps were cut, because they would have diverged. ◂: in most folds "
        "a setting lies on an edge of its grid."
    )
    return section("every", "AUC of every system, both outputs", note(text), every_table(measured))


def every_table(measured: Measured) -> Markup:
    """Return systems by data sets; a click on a data set sorts by it."""
    columns = [Column("system"), Column("group"), *(Column(_name(measured, dataset)) for dataset in measured.datasets)]
    online = [system for system in measured.systems if group_of(system) != "batch"]
    best = {dataset: measured.best(dataset, online) for dataset in measured.datasets}
    rows = [
        [
            Entry(system),
            Entry(group_of(system), kind="group"),
            *(_entry(measured, dataset, system, system == best[dataset]) for dataset in measured.datasets),
        ]
        for system in measured.systems
    ]
    after = _left_out(measured, measured.systems)
    return table(columns, rows, "AUC × 100, mean of the iterates above the last iterate", "auc every", after)


def _breakable(system: str) -> Markup:
    """A name that may break between its words, such as ExactAUC: headings are wider than numbers."""
    return joined(re.findall(r"[A-Z]?[^A-Z]+|[A-Z]+(?![a-z])[^A-Za-z]*", system), Markup("<wbr>"))


def _name(measured: Measured, dataset: str) -> Markup:
    stand_in = measured.stand_in(dataset)
    beyond = "not in the paper" if is_imbalanced(dataset) else ""
    below = f"stand-in: {stand_in}" if stand_in else beyond
    return joined([dataset, element("small", below) if below else None])


def _main_entry(measured: Measured, dataset: str, system: str, best: bool, errors: float | None) -> Entry:
    printed = paper.printed(dataset, system)
    faint = "paper faint" if measured.stand_in(dataset) else "paper"
    below = element("span", f"{printed.auc:.2f} ± {printed.error:.2f}", class_=faint) if printed else None
    ours = measured.auc(dataset, system)
    if ours is None:
        return Entry(joined([_absent(measured, dataset, system), below]), kind="absent")
    error = None if isnan(ours.error) else element("span", f"± {100 * ours.error:.2f}", class_="error")
    rows = _rows(measured, dataset, system)
    return Entry(joined([_mean(ours, best), _flag(errors), error, rows, below]), ours.mean)


def _entry(measured: Measured, dataset: str, system: str, best: bool) -> Entry:
    mean, last = (measured.auc(dataset, system, output) for output in ("mean", "last"))
    if mean is None:
        return Entry(_absent(measured, dataset, system), kind="absent")
    marks = "⚠" * (measured.cut(dataset, system) > CUT) + "◂" * _on_edge(measured, dataset, system)
    below = element("span", percent(last.mean), class_="error") if last else None
    parts = [_mean(mean, best), f" {marks}" if marks else None, below]
    return Entry(joined([*parts, _rows(measured, dataset, system)]), mean.mean)


def _on_edge(measured: Measured, dataset: str, system: str) -> bool:
    """Return whether the same setting lies on an edge in most folds."""
    edges, folds = measured.edges(dataset, system), len({fold for fold, _ in measured.runs(dataset, system)})
    return any(2 * edges.count(edge) > folds for edge in edges)


def _mean(ours: Estimate, best: bool) -> Markup:
    return element("b" if best else "span", percent(ours.mean))


def _rows(measured: Measured, dataset: str, system: str) -> Markup | None:
    cap = measured.cap(dataset, system)
    return element("small", f"{count(cap)} rows") if cap else None


def _absent(measured: Measured, dataset: str, system: str) -> Markup | str:
    why = measured.note(dataset, system)
    return element("abbr", "left out", title=why) if why else "–"


def _flag(errors: float | None) -> Markup | None:
    if errors is None or abs(errors) <= FLAGGED:
        return None
    sign, word = ("▲", "above") if errors > 0 else ("▼", "below")
    return element("abbr", sign, class_="flag", title=f"{abs(errors):.1f} combined standard errors {word} the paper")


def _left_out(measured: Measured, systems: list[str]) -> Markup | None:
    reasons: dict[str, list[str]] = {}
    for dataset in measured.datasets:
        for system in systems:
            if why := measured.note(dataset, system):
                reasons.setdefault(f"{dataset}: {why}", []).append(system)
    if not reasons:
        return None
    lines = [element("li", f"{why} ({listed(names)})") for why, names in reasons.items()]
    return element("ul", *lines, class_="footnotes")
