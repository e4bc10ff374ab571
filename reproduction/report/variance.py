"""Errors of the gradients of small buffers, and the certificate of variance reduction."""

from collections.abc import Sequence

from reproduction.cells import Record
from reproduction.report import svg
from reproduction.report.buffers import averaged, certificates, in_order, mean_errors, on_path
from reproduction.report.html import ABSENT, Column, Entry, Markup, missing, note, section, table
from reproduction.report.measured import known
from reproduction.report.wording import count, number
from reproduction.results import Results
from reproduction.variance import QUANTILES

TITLE = "Variance of gradients"

Systems = dict[str, list[Record]]


def variance_section(results: Results) -> Markup:
    """Return running errors and boxes along both paths, and the certificate."""
    paths = {path: on_path(results, path) for path in ("own", "common")}
    proofs = certificates(results)
    if not any(paths.values()) and not proofs:
        return section("variance", TITLE, missing("variance"))
    texts = {"own": "Each along its own path.", "common": "All at the weights of exact gradients over the history."}
    figures = [_figure(f"figure-variance-{path}", paths[path], texts[path]) for path in paths if paths[path]]
    return section("variance", TITLE, *figures, _certificate(proofs) if proofs else None)


def errors_section(results: Results) -> Markup:
    """Return the mean errors on every set, along both paths."""
    return section("errors", "Mean squared errors of gradients", _means(results))


def _figure(name: str, found: dict[str, Systems], text: str) -> Markup:
    panels = [make(name, dataset, systems) for make in (_running, _boxes) for dataset, systems in found.items()]
    caption = (
        f"Squared error of the gradient from four slots for each class, e_{{t}} = ‖u_{{t}} − ∇L_{{t}}(w)‖², first fold."
        f" {text} First: exponential averages with factor 0.95. Then: boxes of log10 e_{{t}} from the 25 to the 75 per "
        "cent quantile, whiskers from 5 to 95."
    )
    systems = in_order(system for systems in found.values() for system in systems)
    entries = [(system, svg.style_of(system)) for system in systems]
    return svg.shown(name, panels, caption, "Error of the gradient: running averages, then boxes", entries)


def _running(name: str, dataset: str, systems: Systems) -> Markup:
    figure, axes = svg.panel(dataset, "rows t", "running error")
    for system in reversed(list(systems)):
        points = [one for one in systems[system] if one["fold"] == 0 and one.get("running", 0) > 0]
        points.sort(key=lambda one: one["row"])
        svg.line(axes, [one["row"] for one in points], [one["running"] for one in points], svg.style_of(system), 6)
    svg.log_axis(axes, "y", number)
    axes.xaxis.set_major_formatter(lambda value, _: count(value))
    return svg.inline(figure, f"{name}: running error of the gradient on {dataset}")


def _boxes(name: str, dataset: str, systems: Systems) -> Markup:
    quantiles = [f"q{q}" for q in QUANTILES]
    figure, axes = svg.named_rows(dataset, "log10 of the error", list(systems))
    for height, (system, records) in enumerate(systems.items()):
        for one in [one for one in records if all(known(one, q) for q in quantiles)][:1]:
            svg.box(axes, height, [float(one[q]) for q in quantiles], svg.style_of(system))
    axes.grid(visible=False, axis="y")
    return svg.inline(figure, f"{name}: boxes of the error of the gradient on {dataset}")


def _means(results: Results) -> Markup | None:
    own, common = (mean_errors(results, path) for path in ("own", "common"))
    datasets = list(own or common)
    systems = in_order(system for found in (own, common) for errors in found.values() for system in errors)
    if not systems:
        return None
    columns = [Column("algorithm")]
    columns += [Column(name, path) for path in ("own path", "common path") for name in datasets]
    rows = []
    for system in systems:
        shown = [found.get(name, {}).get(system) for found in (own, common) for name in datasets]
        entries = [ABSENT if one is None else Entry(_with_error(one.mean, one.error), one.mean) for one in shown]
        rows.append([Entry(system), *entries])
    after = note(
        "Mean of eₜ over the stream, mean over folds ± one standard error. Four slots for each class; Yang's has one. "
        "The centroid of a stratum is no row of the past: its error is bias, not variance. Fresh uniform draws from "
        "the whole past are a control that no stream can have."
    )
    return table(columns, rows, "Mean squared error of the gradient", "every", after)


def _with_error(mean: float, error: float) -> str:
    return number(mean) if error != error else f"{number(mean)} ± {number(error)}"


def _certificate(proofs: Sequence[Record]) -> Markup:
    titles = ("set", "ε / mean distance", "strata", "largest", "rows above 1", "ratio, median", "by strata", "uniform",
              "as printed", "Neyman")  # fmt: skip
    rows = []
    for key in dict.fromkeys((one["dataset"], one["value"]) for one in proofs):
        here = [one for one in proofs if (one["dataset"], one["value"]) == key]
        mean = {name: averaged(here, name) for name in (
            "n_strata", "largest", "above", "ratio_q50", "stratified", "uniform", "printed", "neyman")}  # fmt: skip
        rows.append([
            Entry(key[0]), Entry(f"{key[1]:g}", key[1]), Entry(number(mean["n_strata"]), mean["n_strata"]),
            Entry(f"{100 * mean['largest']:.0f} %", mean["largest"]),
            Entry(f"{100 * mean['above']:.0f} %", mean["above"]), Entry(number(mean["ratio_q50"]), mean["ratio_q50"]),
            *(Entry(number(mean[name]), mean[name]) for name in ("stratified", "uniform", "printed", "neyman")),
        ])  # fmt: skip
    after = note(
        "Exact variances over all partners of a row, on the common path, means over rows and folds: one draw from each "
        "stratum, and as many uniform draws. The ratio is the first over the second; the certificate says that it is "
        "never above 1. As printed: the appendix's formula for the first. Neyman: the least that as many draws can "
        "have. Largest: share of the largest stratum."
    )
    return table([Column(title) for title in titles], rows, "The certificate at real strata", "every", after)
