"""The second page: all runs of the table with their settings, differences to the paper, and all runs of regret."""

from reproduction import paper
from reproduction.report.auc_table import FLAGGED, Gap, every_section, gaps
from reproduction.report.buffers import streams
from reproduction.report.cost import costs_section
from reproduction.report.html import Column, Entry, Markup, element, maths, note, number_entry, section, table
from reproduction.report.measured import LINEAR, Measured, group_of, in_order, sets_in_order, text_of
from reproduction.report.regret import exponents_section
from reproduction.report.variance import errors_section
from reproduction.report.wording import count, percent, signed
from reproduction.results import Results

COLUMNS = ("data set", "system", "fold", "seed", "AUC", "last", "settings", "settings of last", "edges", "cut", "rows",
           "µs per row")  # fmt: skip


def all_runs(results: Results) -> list[Markup]:
    """Return the sections of the page."""
    measured = Measured(results)
    return [
        every_section(measured), _differences(measured), _times(measured), _runs(measured, results),
        exponents_section(results), _regret(results), errors_section(results), costs_section(results),
    ]  # fmt: skip


def _runs(measured: Measured, results: Results) -> Markup:
    records = [one for one in results.read("table") if "auc" in one]
    sets = {name: rank for rank, name in enumerate(sets_in_order(one["dataset"] for one in records))}
    systems = {name: rank for rank, name in enumerate(in_order(one["system"] for one in records))}
    rows = []
    order = [
        (sets[one["dataset"]], systems[one["system"]], one["fold"], one["value"], k) for k, one in enumerate(records)
    ]
    for one in (records[key[-1]] for key in sorted(order)):
        micros = 1e6 * one["seconds"] / one["rows"] if one.get("rows") and "seconds" in one else None
        rows.append([
            Entry(measured.title(one["dataset"])), Entry(one["system"]), Entry(str(one["fold"]), one["fold"]),
            Entry(f"{one['value']:g}", one["value"]), number_entry(one["auc"], percent),
            number_entry(one.get("auc_last"), percent),
            *(Entry(text_of(str(one.get(name, ""))), kind="settings") for name in ("settings", "settings_last")),
            Entry(one.get("edges", "")), number_entry(one.get("cut"), lambda share: f"{100 * share:.1f} %"),
            number_entry(one.get("rows"), count), number_entry(micros),
        ])  # fmt: skip
    after = note("Edges: settings on an end of their grid. Cut: share of steps that were cut or skipped as unstable.")
    return section("runs", f"All {len(rows)} runs of the table",
                   table([Column(title) for title in COLUMNS], rows, "All runs of the table", after=after))  # fmt: skip


def _differences(measured: Measured) -> Markup:
    every = [gap for gap in gaps(measured) if gap.system != LINEAR]  # one printed value, two forms of FPOGD
    flagged = sorted((gap for gap in every if abs(gap.errors) > FLAGGED), key=lambda gap: -abs(gap.errors))
    titles = ("data set", "system", "ours", "paper", "difference", "in errors", "why")
    rows = [_difference(measured, gap) for gap in flagged]
    caption = (
        f"{len(flagged)} of {len(every)} values of the last iterate, which the paper's algorithm returns, differ from "
        "the printed ones by more than two standard errors"
    )
    return section("differences", "Differences to the printed values",
                   table([Column(title) for title in titles], rows, caption))  # fmt: skip


def _difference(measured: Measured, gap: Gap) -> list[Entry]:
    difference, cap = gap.ours.mean - gap.printed.auc / 100, measured.cap(gap.dataset, gap.system)
    capped = f"; here it learned {count(cap)} of {count(measured.n_train(gap.dataset))} rows" if cap else ""
    return [
        Entry(gap.dataset), Entry(gap.system), Entry(percent(gap.ours.mean), gap.ours.mean),
        Entry(f"{gap.printed.auc:.2f}", gap.printed.auc), Entry(signed(difference), difference),
        Entry(f"{gap.errors:+.1f}".replace("-", "−"), gap.errors),
        Entry(paper.reason(gap.dataset, gap.system, difference) + capped, kind="text"),
    ]  # fmt: skip


def _times(measured: Measured) -> Markup:
    columns = [Column("system"), Column("group"), *(Column(dataset) for dataset in measured.datasets)]
    rows = [[Entry(system), Entry(group_of(system), kind="group"),
             *(number_entry(measured.micros(dataset, system)) for dataset in measured.datasets)]
            for system in measured.systems]  # fmt: skip
    after = note("Processor time of learning, without selection, over the rows learned.")
    shown = table(columns, rows, "Time of learning, µs for each row", "every", after)
    return section("times", "Time of learning", shown)


def _regret(results: Results) -> Markup:
    titles = ("set", "order", "number", "step", "algorithm", "R_{T}", "exponent", "R_{T} after", "exponent after",
              "loss of w⋆", "Lemma 2", "Theorem 5", "Lemma 2, w⋆", "error of gradient")  # fmt: skip
    rows = [
        [Entry(stream.dataset), Entry(stream.order), Entry(str(stream.fold), stream.fold),
         Entry(f"{run.eta:.3g}", run.eta), Entry(system), number_entry(run.final("before")), run.entry(),
         number_entry(run.final("after")), run.entry("_after"),
         *(number_entry(run.final(name)) for name in ("best", "bound", "bound_after")),
         *(number_entry(run.whole.get(name)) for name in ("lemma", "error"))]
        for stream, runs in streams(results).items() for system, run in runs.items()
    ]  # fmt: skip
    after = note(maths(
        "R_{T}: at the last row, before the step, and after it. Lemma 2 bounds the one, Theorem 5 the other, both by "
        "the weights w' that minimise them: bound(w') + Σ L_{t}(w') − L_{t}(w⋆). Lemma 2, w⋆: with w⋆ itself. "
        "Algorithms with one buffer for both classes take shorter steps, and have no bounds."
    ))  # fmt: skip
    shown = table([Column(maths(one)) for one in titles], rows, "Regret and bounds of every run", after=after)
    return section("regret-runs", f"All {len(rows)} runs of regret", element("div", shown))
