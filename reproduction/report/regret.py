"""Regret along shuffled and sorted streams, with fitted exponents and bounds."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from reproduction.buffers import FIFO
from reproduction.report import svg
from reproduction.report.buffers import CONSTANT, ROOT, Run, Stream, horizons, in_order, streams
from reproduction.report.estimates import slope
from reproduction.report.html import (
    ABSENT,
    Column,
    Entry,
    Markup,
    details,
    maths,
    missing,
    note,
    number_entry,
    section,
    table,
)
from reproduction.report.wording import count, interval, number
from reproduction.results import Results

TITLE = "Regret"

BOUND = svg.Style("#b2182b", "|", (0, (2, 1.2)), width=1.2)

Runs = dict[Stream, dict[str, Run]]


def regret_section(results: Results) -> Markup:
    """Curves for both definitions and both steps, exponents, bounds, and the regret without variance."""
    found = {stream: runs for stream, runs in streams(results).items() if stream.fold == 0}
    if not found:
        return section("regret", TITLE, missing("regret"))
    constant = {stream: runs for stream, runs in found.items() if stream.step == CONSTANT}
    root = {stream: runs for stream, runs in found.items() if stream.step == ROOT}
    figures = [
        _figure("figure-regret", constant, "before", "R_{t} = Σ L_{t}(w_{t−1}) − L_{t}(w⋆), the definition, with a "
                "constant step; above in the order of the shuffle, below sorted by the column of largest variance."),
        _figure("figure-regret-after", constant, "after", "The same with L_{t}(w_{t}), the loss after the step, which "
                "the caption of the paper's figure names and its proof bounds."),
        _figure("figure-regret-root", root, "before", "R_{t} by the definition with the step of the remark, "
                "η = 1/√T."),
    ]  # fmt: skip
    parts = [figure for figure in figures if figure is not None]
    tables = [_exponents(constant or found, ending, *texts) for ending, texts in _COMPARATORS.items()]
    return section("regret", TITLE, *parts, *tables, _all_runs(found), _ends(results))


def _figure(name: str, found: Runs, column: str, what: str) -> Markup | None:
    datasets = list(dict.fromkeys(stream.dataset for stream in found))
    if not datasets:
        return None
    panels = [
        _panel(name, dataset, {one: runs for one, runs in found.items() if one.dataset == dataset}, column)
        for dataset in datasets
    ]
    bound = "Lemma 2" if column == "before" else "Theorem 5, as its proof has it"
    caption = (
        f"{what} Both axes are logarithmic: a straight line of slope b is t^{{b}}, and b = 1 is a loss in every row. "
        f"Short dashes: the bound of {bound}, for FPOGD with FIFO, at the weights that minimise it."
    )
    systems = in_order(system for runs in found.values() for system in runs)
    entries = [*((system, svg.style_of(system)) for system in systems), (bound, BOUND)]
    return svg.shown(name, panels, caption, f"Regret against rows ({column} the step)", entries)


def _panel(name: str, dataset: str, found: Runs, column: str) -> Markup:
    figure, *both = svg.stacked(
        (f"{dataset}, i.i.d. order", "", "regret"), (f"{dataset}, {_sorted_by(found)}", "rows t", "regret")
    )
    for axes, order in zip(both, ("i.i.d.", "sorted"), strict=True):
        for runs in (runs for stream, runs in found.items() if stream.order == order):
            for system in reversed(list(runs)):
                _line(axes, runs[system], column, svg.style_of(system))
            if FIFO in runs:
                _line(axes, runs[FIFO], "bound" if column == "before" else "bound_after", BOUND)
        svg.log_axis(axes, "x", count)
        svg.log_axis(axes, "y", number)
    return svg.inline(figure, f"{name}: regret on {dataset}, i.i.d. order above, sorted below")


def _line(axes: Axes, run: Run, column: str, style: svg.Style) -> None:
    points = [(one["row"], one[column]) for one in run.curve if one.get(column, 0) > 0]
    svg.line(axes, [row for row, _ in points], [value for _, value in points], style, n_markers=6)


def _sorted_by(found: Runs) -> str:
    named = {int(run.whole.get("feature", 0)) for runs in found.values() for run in runs.values()} - {0}
    return f"sorted by column {min(named)}" if named else "sorted"


_COMPARATORS = {
    "": (
        "Exponents of the regret",
        "b of R_{t} ~ t^{b} over the last nine tenths of the rows, by the definition (w before the step), constant "
        "step; in brackets 95 % intervals of a block bootstrap. Below 1 the regret is sublinear there. Each stream is "
        "one order of the rows.",
    ),
    "_near": (
        "Exponents of the regret against weights within reach",
        "The same against w', which minimises Σ L_{t}(w) + ‖w‖²/(2η), instead of w⋆, whose norm is often so "
        "large that no algorithm comes near it in these rows. No exponent where R_{t} is not positive.",
    ),
}
"""Caption and note of a table of exponents, by the ending of its columns."""


def _exponents(found: Runs, ending: str, caption: str, text: str) -> Markup:
    systems = in_order(system for runs in found.values() for system in runs)
    keys = sorted(found, key=lambda stream: stream.order)
    columns = [Column("algorithm"), *(Column(stream.dataset, stream.order) for stream in keys)]
    rows = [[Entry(system), *(_exponent(found[stream].get(system), ending) for stream in keys)] for system in systems]
    return table(columns, rows, caption, "every", note(maths(text)))


def _exponent(run: Run | None, ending: str = "") -> Entry:
    return _interval(None if run is None else run.interval(ending))


def _interval(found: tuple[float, float, float] | None) -> Entry:
    return ABSENT if found is None else Entry(interval(*found), found[0])


def _all_runs(found: Runs) -> Markup:
    titles = ("set", "order", "step", "algorithm", "R_{T}", "exponent", "R_{T} after", "exponent after", "loss of w⋆",
              "Lemma 2", "Theorem 5", "Lemma 2, w⋆", "error of gradient")  # fmt: skip
    rows = [
        [Entry(stream.dataset), Entry(stream.order), Entry(f"{run.eta:.3g}", run.eta), Entry(system),
         number_entry(run.final("before")), _exponent(run), number_entry(run.final("after")), _exponent(run, "_after"),
         *(number_entry(run.final(name)) for name in ("best", "bound", "bound_after")),
         *(number_entry(run.whole.get(name)) for name in ("lemma", "error"))]
        for stream, runs in found.items() for system, run in runs.items()
    ]  # fmt: skip
    after = maths(
        "R_{T}: at the last row, before the step, and after it. Lemma 2 bounds the one, Theorem 5 the other; both by "
        "the weights w' that minimise them: bound(w') + Σ L_{t}(w') − L_{t}(w⋆). The last but one is Lemma 2 with w⋆ "
        "itself. Algorithms with one buffer for both classes take shorter steps, and have no bounds. The error is the "
        "mean of e_{t} along the algorithm's own path."
    )
    return details(
        f"All {len(rows)} runs",
        table([Column(maths(one)) for one in titles], rows, "Regret and bounds of every run", "every", note(after)),
    )


def _ends(results: Results) -> Markup | None:
    found = horizons(results)
    lengths = sorted({T for ends in found.values() for T in ends})
    if not lengths:
        return None
    columns = [Column("set"), *(Column(f"T = {count(T)}") for T in lengths), Column("exponent in T")]
    rows = [
        [Entry(name), *(number_entry(ends.get(T, {}).get("before")) for T in lengths), _interval(growth(ends))]
        for name, ends in found.items()
    ]
    after = maths(
        "R_{T} of whole streams by the definition, gradients over the whole history, so without variance, and the step "
        "η = 1/ln T of the remark, in a space of few features. Of order log T, the exponent would be near 0."
    )
    return table(columns, rows, "Regret without variance, against the length of the stream", "every", note(after))


def growth(ends: dict[int, dict[str, float]]) -> tuple[float, float, float] | None:
    """The exponent of R_T in T with its interval; None if R_T is not positive or known for fewer than three T."""
    regrets: Sequence[float] = [float(one["before"]) for one in ends.values()]
    if len(regrets) < 3 or min(regrets) <= 0:
        return None
    fitted = slope(list(ends), regrets)
    return None if fitted is None else (fitted.value, fitted.low, fitted.high)
