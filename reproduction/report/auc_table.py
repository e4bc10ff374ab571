"""The AUC of the paper's table and of every other system."""

import re
from dataclasses import dataclass
from math import isnan
from statistics import median

from pairloom.data import DATASETS
from reproduction import paper
from reproduction.columns import SLOTS
from reproduction.report.estimates import Estimate, apart
from reproduction.report.html import Column, Entry, Markup, element, joined, note, section, table
from reproduction.report.measured import (
    CENTROID,
    GROUPS,
    KERNEL,
    KERNEL_TUNED,
    PRINTED,
    PROJECTRON_TUNED,
    QUEUE,
    Measured,
    Output,
    group_of,
    is_imbalanced,
    spoken,
)
from reproduction.report.wording import count, listed, percent

FLAGGED = 2.0
"""Values that differ by more than this many combined standard errors are counted as different."""

CUT = 0.5
"""A cell is marked if more than this share of the steps was cut, because it would have diverged."""

CONTROLS = (QUEUE, CENTROID, PRINTED)
TUNED = (KERNEL_TUNED, PROJECTRON_TUNED)
OTHERS = ("AUCClassifier", "LightGBM")
"""Systems of another size and kind, not tuned: no entry of theirs is bold."""

MARKS = (
    f"⚠: more than {100 * CUT:.0f} % of the steps, on average, were cut because they would have diverged. "
    "◂: in most folds a setting lies on an edge of its grid."
)


@dataclass(frozen=True)
class Gap:
    """A difference to the paper; ``errors``: in combined standard errors."""

    dataset: str
    system: str
    ours: Estimate
    printed: paper.Printed
    errors: float


def gaps(measured: Measured, output: Output = "last") -> list[Gap]:
    """Return all values that are also in the paper, for both forms of FPOGD; stand-ins have none.

    The paper's algorithm returns the last iterate. A system without iterates has one output.
    """
    found = []
    for dataset in measured.datasets:
        for system in GROUPS["in the paper"]:
            ours = measured.auc(dataset, system, output) or measured.auc(dataset, system)
            printed = paper.printed(dataset, system)
            if ours and printed:
                errors = apart(Estimate(100 * ours.mean, 100 * ours.error, ours.n), printed.auc, printed.error)
                found.append(Gap(dataset, system, ours, printed, errors))
    return found


def main_table(measured: Measured) -> Markup:
    """Return data sets by the paper's systems and the controls; the printed values are below ours."""
    own = tuple(name for name in measured.systems if group_of(name) == "other")
    groups = {"systems of the paper": GROUPS["in the paper"], "controls": CONTROLS, "tuned width": TUNED,
              "other kinds, not tuned": OTHERS, "yours": own}  # fmt: skip
    known = {group: [name for name in names if name in measured.systems] for group, names in groups.items()}
    columns = [Column("data set"), *(Column(_head(name), group) for group, names in known.items() for name in names)]
    systems = [name for names in known.values() for name in names]
    rows = []
    for dataset in measured.datasets:
        best = measured.best(dataset, [name for name in systems if name not in OTHERS])
        entries = (_main_entry(measured, dataset, system, system == best) for system in systems)
        rows.append([Entry(_name(measured, dataset)), *entries])
    foot = [Entry("ahead : behind"), *(Entry(_ahead_and_behind(measured, system)) for system in systems)]
    after = joined([note(_how(measured)), _left_out(measured, systems)])
    return table(columns, rows, "AUC × 100, means of the iterates", "auc", after, foot if KERNEL in systems else ())


def _how(measured: Measured) -> str:
    """Return what the numbers are, and which columns are not comparable."""
    times = [ours / theirs for name in measured.datasets if (ours := measured.micros(name, "AUCClassifier"))
             and (theirs := measured.micros(name, KERNEL))]  # fmt: skip
    slower = f", and takes {median(times):.0f} times the time of FPOGD in the median" if times else ""
    return (
        "AUC × 100 of the mean of the iterates on the test rows: mean ± standard error over folds. The systems of the "
        "paper and the controls are tuned inside each fold, with steps of one range, wider than the paper's; the "
        "kernel has the paper's width, except in the columns with a tuned one. FPOGD, the queue (newest rows) and Kar "
        f"keep {2 * SLOTS} examples; Projectron++ and Sparse Kernel AUC keep more. Not tuned, and never bold: "
        "LightGBM, a batch learner, and AUCClassifier, this library's ensemble of kernels, linear models, boosted "
        f"trees and a forest, which uses up to 1 GiB{slower}. {MARKS} Italics: the paper's value, which names no form "
        "of FPOGD, and is of its last iterate; the page of all runs compares it with ours. Last row: on how many sets "
        "FPOGD with a kernel is significantly ahead, and on how many behind."
    )


def _ahead_and_behind(measured: Measured, system: str) -> str:
    gaps = (measured.difference(dataset, KERNEL, system) for dataset in measured.datasets)
    signs = [gap.clear for gap in gaps if gap]
    return "–" if system == KERNEL else f"{signs.count(1)} : {signs.count(-1)}"


def every_section(measured: Measured) -> Markup:
    """Return AUC with both outputs of every system."""
    text = (
        "Mean of the iterates, and below it the last iterate, each with its own settings; one number for a system "
        f"without iterates. {MARKS}"
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


def _head(system: str) -> Markup:
    """A name that may break between its words, such as Sparse Kernel AUC: headings are wider than numbers."""
    name = spoken(system).removesuffix(", tuned width").removesuffix(", kernel") if system != KERNEL else system
    return joined(re.findall(r"[A-Z]?[^A-Z+]+|[A-Z]+(?![a-z])[^A-Za-z]*|\++", name), Markup("<wbr>"))


def _name(measured: Measured, dataset: str) -> Markup:
    """The name of a set, and below it what was read, if that is less than, or other than, the name says."""
    replaced, drawn = measured.replaced(dataset), measured.n_rows(dataset)
    whole = DATASETS[dataset].n_rows if dataset in DATASETS else drawn
    below = [
        f"text, in place of {replaced}" if replaced else None,
        "not in the paper" if is_imbalanced(dataset) else None,
        f"{count(drawn)} of {count(whole)} rows" if 0 < drawn < whole else None,
    ]
    return joined([dataset, *(element("small", text) for text in below if text)])


def _main_entry(measured: Measured, dataset: str, system: str, best: bool) -> Entry:
    printed = paper.printed(dataset, system)
    below = element("span", f"{printed.auc:.2f} ± {printed.error:.2f}", class_="paper") if printed else None
    ours = measured.auc(dataset, system)
    if ours is None:
        return Entry(joined([_absent(measured, dataset, system), below]), kind="absent")
    error = None if isnan(ours.error) else element("span", f"± {100 * ours.error:.2f}", class_="error")
    parts = [_mean(ours, best), _marks(measured, dataset, system), error, _rows(measured, dataset, system), below]
    return Entry(joined(parts), ours.mean)


def _entry(measured: Measured, dataset: str, system: str, best: bool) -> Entry:
    mean, last = (measured.auc(dataset, system, output) for output in ("mean", "last"))
    if mean is None:
        return Entry(_absent(measured, dataset, system), kind="absent")
    below = element("span", percent(last.mean), class_="error") if last else None
    parts = [_mean(mean, best), _marks(measured, dataset, system), below, _rows(measured, dataset, system)]
    return Entry(joined(parts), mean.mean)


def _marks(measured: Measured, dataset: str, system: str) -> Markup | None:
    """The signs of cut steps and of edges, if there are any."""
    cut = measured.cut(dataset, system)
    shown = [
        element("abbr", "⚠", title=f"{100 * cut:.0f} % of the steps were cut") if cut > CUT else None,
        element("abbr", "◂", title="a setting on an edge of its grid") if measured.on_edge(dataset, system) else None,
    ]
    return element("span", *shown, class_="flag") if any(shown) else None


def _mean(ours: Estimate, best: bool) -> Markup:
    return element("b" if best else "span", percent(ours.mean))


def _rows(measured: Measured, dataset: str, system: str) -> Markup | None:
    cap = measured.cap(dataset, system)
    return element("small", f"{count(cap)} rows") if cap else None


def _absent(measured: Measured, dataset: str, system: str) -> Markup | str:
    why = measured.note(dataset, system)
    return element("abbr", "left out", title=why) if why else "–"


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
