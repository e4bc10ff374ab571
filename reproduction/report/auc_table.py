"""The AUC of the paper's table and of every other system, differences to the paper, times and settings."""

import re
from dataclasses import dataclass
from math import isnan

from reproduction import paper
from reproduction.report.estimates import Estimate, apart
from reproduction.report.html import (
    Column,
    Entry,
    Markup,
    details,
    element,
    joined,
    missing,
    note,
    number_entry,
    section,
    table,
)
from reproduction.report.measured import GROUPS, Measured, group_of, in_order, sets_in_order, text_of
from reproduction.report.wording import count, duration, listed, percent, signed
from reproduction.results import Results

FLAGGED = 2.0
"""Differences of more than this many combined standard errors are marked."""

NOTE = (
    "AUC × 100 on the test rows: mean ± standard error over five outer folds (standard deviation with n − 1, over √5). "
    "Columns are scaled to [−1, 1] on the training part of each fold; text has rows of norm 1, and so have the rows "
    "that linear systems see from 100 columns on; AUCClassifier and LightGBM get rows as they are. Settings are "
    "selected once for each set, by three inner folds on the first outer training part, on at most 10,000 of its rows "
    "(slow systems: 8 settings on 2,500 rows), and kept for all folds. Each one-pass system sees each row once. "
    "Offline systems and those that keep a kernel expansion learn at most 10,000 rows; the cell says so. Bold: the "
    "highest mean, batch references aside."
)


@dataclass(frozen=True)
class Gap:
    """A difference to the paper; ``errors``: in combined standard errors."""

    dataset: str
    system: str
    ours: Estimate
    printed: paper.Printed
    errors: float


def auc_section(results: Results) -> Markup:
    """Two tables of AUC, the differences, the questions, the times and the settings."""
    measured = Measured(results)
    if not measured:
        return section("auc", "AUC", missing("table"), settings_table(results))
    return section(
        "auc", "AUC", note(NOTE), papers_table(measured), _differences(measured), element("h3", "Every system"),
        every_table(measured), time_table(measured), settings_table(results),
    )  # fmt: skip


def gaps(measured: Measured) -> list[Gap]:
    """All cells that are also in the paper, without stand-ins."""
    found = []
    for dataset in measured.datasets:
        for system in GROUPS["in the paper"]:
            ours, printed = measured.auc(dataset, system), paper.printed(dataset, system)
            if ours and printed and not measured.stand_in(dataset):
                errors = apart(Estimate(100 * ours.mean, 100 * ours.error, ours.n), printed.auc, printed.error)
                found.append(Gap(dataset, system, ours, printed, errors))
    return found


def papers_table(measured: Measured) -> Markup:
    """Data sets by systems as in the paper, whose numbers are below ours."""
    batch = [system for system in GROUPS["batch"] if system in measured.systems]
    extra = [system for system in ("AUCClassifier",) if system in measured.systems]
    columns = [Column("data set")]
    groups = {"systems of the paper": GROUPS["in the paper"], "ours": extra, "batch": batch}
    columns += [Column(_breakable(system), group) for group, names in groups.items() for system in names]
    systems = [system for names in groups.values() for system in names]
    errors = {(gap.dataset, gap.system): gap.errors for gap in gaps(measured)}
    rows = []
    for dataset in measured.datasets:
        best = measured.best(dataset, [*GROUPS["in the paper"], *extra])
        rows.append([
            Entry(_name(measured, dataset)),
            *(_entry(measured, dataset, system, best, errors, with_paper=True) for system in systems),
        ])  # fmt: skip
    after = joined([_key(measured), _left_out(measured, systems)])
    return table(columns, rows, "AUC × 100 as in the paper's Table 2, the printed values below ours", "auc", after)


def every_table(measured: Measured) -> Markup:
    """Systems by data sets; a click on a data set sorts by it."""
    columns = [Column("system"), Column("group"), *(Column(_name(measured, dataset)) for dataset in measured.datasets)]
    online = [system for system in measured.systems if group_of(system) != "batch"]
    best = {dataset: measured.best(dataset, online) for dataset in measured.datasets}
    rows = [
        [
            Entry(system),
            Entry(group_of(system), kind="group"),
            *(_entry(measured, dataset, system, best[dataset], {}) for dataset in measured.datasets),
        ]
        for system in measured.systems
    ]
    after = _left_out(measured, measured.systems)
    return table(columns, rows, "AUC × 100 of every system; click on a data set to sort by it", "auc every", after)


def _breakable(system: str) -> Markup:
    """A name that may break between its words, such as ExactAUC: headings are wider than numbers."""
    return joined(re.findall(r"[A-Z]?[^A-Z]+|[A-Z]+(?![a-z])[^A-Za-z]*", system), Markup("<wbr>"))


def _name(measured: Measured, dataset: str) -> Markup:
    stand_in = measured.stand_in(dataset)
    return joined([dataset, element("small", f"stand-in: {stand_in}") if stand_in else None])


def _entry(
    measured: Measured,
    dataset: str,
    system: str,
    best: str | None,
    errors: dict[tuple[str, str], float],
    with_paper: bool = False,
) -> Entry:
    printed = paper.printed(dataset, system) if with_paper else None
    faint = "paper faint" if measured.stand_in(dataset) else "paper"
    below = element("span", f"{printed.auc:.2f} ± {printed.error:.2f}", class_=faint) if printed else None
    ours = measured.auc(dataset, system)
    if ours is None:
        why = measured.note(dataset, system)
        return Entry(joined([element("abbr", "left out", title=why) if why else "–", below]), kind="absent")
    cap = measured.cap(dataset, system)
    rows = element("small", f"{count(cap)} rows") if cap else None
    mean = element("b" if system == best else "span", percent(ours.mean))
    error = None if isnan(ours.error) else element("span", f" ± {100 * ours.error:.2f}", class_="error")
    return Entry(joined([mean, error, _flag(errors.get((dataset, system))), rows, below]), ours.mean)


def _flag(errors: float | None) -> Markup | None:
    if errors is None or abs(errors) <= FLAGGED:
        return None
    sign, word = ("▲", "above") if errors > 0 else ("▼", "below")
    return element("abbr", sign, class_="flag", title=f"{abs(errors):.1f} combined standard errors {word} the paper")


def _key(measured: Measured) -> Markup:
    text = (
        "▲ ▼: ours is above or below the printed value, printed below it, by more than two combined standard "
        "errors. The printed values of FPOGD are below both of its forms."
    )
    stand_ins = [dataset for dataset in measured.datasets if measured.stand_in(dataset)]
    if stand_ins:
        text += f" {listed(stand_ins)}: other rows than the paper's, so its values are grey and not compared."
    return note(text)


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


def _why(measured: Measured, gap: Gap, difference: float) -> str:
    cap = measured.cap(gap.dataset, gap.system)
    capped = f"; here it learned {count(cap)} of {count(measured.n_train(gap.dataset))} rows" if cap else ""
    return paper.reason(gap.dataset, gap.system, difference) + capped


def _differences(measured: Measured) -> Markup | None:
    every = gaps(measured)
    flagged = sorted((gap for gap in every if abs(gap.errors) > FLAGGED), key=lambda gap: -abs(gap.errors))
    if not every:
        return None
    columns = [Column(title) for title in ("data set", "system", "ours", "paper", "difference", "in errors", "why")]
    rows = []
    for gap in flagged:
        difference = gap.ours.mean - gap.printed.auc / 100
        rows.append([
            Entry(gap.dataset), Entry(gap.system), Entry(percent(gap.ours.mean), gap.ours.mean),
            Entry(f"{gap.printed.auc:.2f}", gap.printed.auc), Entry(signed(difference), difference),
            Entry(f"{gap.errors:+.1f}".replace("-", "−"), gap.errors),
            Entry(_why(measured, gap, difference), kind="text"),
        ])  # fmt: skip
    title = f"{len(flagged)} of {len(every)} values differ from the printed ones by more than two standard errors"
    return details(title, table(columns, rows, "Where ours and the printed values differ, and why"))


def time_table(measured: Measured) -> Markup:
    """Microseconds of learning for each row."""
    columns = [Column("system"), Column("group"), *(Column(dataset) for dataset in measured.datasets)]
    rows = []
    for system in measured.systems:
        times = [measured.micros(dataset, system) for dataset in measured.datasets]
        rows.append([
            Entry(system), Entry(group_of(system), kind="group"), *map(number_entry, times)
        ])  # fmt: skip
    after = note(
        "Processor time of learning divided by the rows learned, over all folds, in one thread; the selection of "
        "settings is not in it. A batch learner sees its rows many times."
    )
    return table(columns, rows, "Time of learning, µs for each row", "every", after)


def settings_table(results: Results) -> Markup | None:
    """The settings that the inner folds selected."""
    records = results.read("selection")
    if not records:
        return None
    sets = {name: rank for rank, name in enumerate(sets_in_order(one.get("dataset", "") for one in records))}
    systems = {name: rank for rank, name in enumerate(in_order(one.get("system", "") for one in records))}
    columns = [Column(title) for title in ("data set", "system", "settings", "of", "inner AUC", "rows", "time")]
    shown = {"n_settings": count, "auc": percent, "rows": count, "seconds": duration}
    rows = []
    for one in sorted(records, key=lambda one: (sets[one.get("dataset", "")], systems[one.get("system", "")])):
        rows.append([
            Entry(one.get("dataset", "")), Entry(one.get("system", "")),
            Entry(text_of(str(one.get("settings", ""))), kind="text settings"),
            *(number_entry(one.get(name), text, Entry("–")) for name, text in shown.items()),
        ])  # fmt: skip
    caption = "Selected settings: the best mean AUC of three inner folds"
    return details(f"The {len(rows)} selected settings", table(columns, rows, caption))
