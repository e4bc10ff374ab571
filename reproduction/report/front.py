"""The first page: the question, the answer in five sentences, the table, the ranks, and two figures."""

from collections.abc import Callable, Sequence
from math import nan

import numpy as np

from reproduction.buffers import CENTROID as CENTROID_BUFFER
from reproduction.buffers import FIFO, WHOLE
from reproduction.buffers import QUEUE as QUEUE_BUFFER
from reproduction.report import svg
from reproduction.report.auc_table import main_table
from reproduction.report.buffers import CONSTANT, Run, in_order, mean_errors, streams
from reproduction.report.claims.base import FEWEST_SETS
from reproduction.report.estimates import Ranks, ranked
from reproduction.report.html import Markup, element, missing
from reproduction.report.measured import GROUPS, KERNEL, LINEAR, QUEUE, Measured, sets_in_order
from reproduction.report.wording import listed, of, signed, small, span
from reproduction.results import Results

QUESTION = "Is FPOGD the best online pairwise learner, and is stratification the reason?"

RIVALS = tuple(name for name in GROUPS["in the paper"] if not name.startswith("FPOGD"))
RANKED = GROUPS["in the paper"]
"""The systems of the critical-difference diagram: each other one would move the ranks of these."""

MARKERS = tuple(zip(("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"), "ovsD^", strict=True))
"""Colour and marker of each data set of the two figures."""


def front(results: Results) -> Markup:
    """Return the question, the answer, the table, the ranks and the figures."""
    measured = Measured(results)
    if not measured:
        return element("section", element("h2", QUESTION), missing("table"), id="answer")
    answer = element("div", *(element("p", text) for text in sentences(results)), class_="answer")
    figures = _ranks_figure(measured), _regret_figure(results), _error_figure(results)
    return element("section", element("h2", QUESTION), answer, main_table(measured), _link(), *figures, id="answer")


def _link() -> Markup:
    link = element("a", "Every system, both outputs, all runs", href="runs.html")
    return element("p", link, ", with settings, edges of grids and cut steps.", class_="note")


def sentences(results: Results) -> list[str]:
    """Return the answer; a sentence whose experiment was not run, or on too few sets, is missing."""
    measured = Measured(results)
    made = [_best(measured), _mean_ranks(measured), _stratification(measured), _regret_and_error(results),
            _beyond(measured)]  # fmt: skip
    n_sets = len(measured.compared_sets([KERNEL]))
    if n_sets < FEWEST_SETS:
        return [f"This run has FPOGD with a kernel on {n_sets} of at least {FEWEST_SETS} sets: too few for an answer."]
    return [text for text in made if text]


def _best(measured: Measured) -> str:
    """Return on how many sets kernel FPOGD leads the systems of the paper."""
    asked = [name for name in measured.compared_sets([KERNEL]) if measured.best(name, RIVALS)]
    first = [name for name in asked if measured.best(name, [KERNEL, *RIVALS]) == KERNEL]
    beaten = {name: [rival for rival in RIVALS if _clear(measured, name, rival, KERNEL) > 0] for name in asked}
    lost = [f"{listed(rivals)} on {name}" for name, rivals in beaten.items() if rivals]
    behind = f"significantly behind {listed(lost)}" if lost else "nowhere significantly behind one of them"
    return (
        f"Scored alike, by the mean of the iterates, FPOGD with a kernel has the highest AUC of the paper's systems on "
        f"{of(measured.titles(first), len(asked))}, and is {behind}."
    )


def _clear(measured: Measured, dataset: str, one: str, other: str) -> int:
    found = measured.difference(dataset, one, other)
    return found.clear if found else 0


def ranks_of(measured: Measured) -> Ranks | None:
    """Return the ranks over the sets that all systems of the diagram learned; None if there are too few."""
    systems = [name for name in RANKED if name in measured.systems]
    sets = measured.compared_sets(systems)
    if len(sets) < FEWEST_SETS or len(systems) < 3:
        return None
    return ranked({name: [_mean(measured, dataset, name) for dataset in sets] for name in systems})


def _mean(measured: Measured, dataset: str, system: str) -> float:
    found = measured.auc(dataset, system)
    return found.mean if found else nan


def _mean_ranks(measured: Measured) -> str:
    """Return the mean ranks and their test."""
    ranks = ranks_of(measured)
    if ranks is None or KERNEL not in ranks.names:
        return ""
    means = dict(zip(ranks.names, ranks.means, strict=True))
    same = [name for name in RIVALS if name in means and means[name] - means[KERNEL] < ranks.critical]
    worse = [name for name in RIVALS if name in means and name not in same]
    mean, test = f"{means[KERNEL]:.1f} among the paper's {len(means)} systems", f"Friedman {small(ranks.p)}"
    text = f"Over {ranks.n} sets its mean rank is {mean} ({test})"
    signs = {name: [_clear(measured, one, KERNEL, name) for one in measured.datasets] for name in RIVALS}
    single = [f"{name} {own.count(1)} and {own.count(-1)}" for name, own in signs.items() if name in means]
    return (
        f"{text}; by Nemenyi's test it is better than {listed(worse)}, and not distinguishable from {listed(same)}. "
        f"Sets where it is significantly ahead, and behind: {'; '.join(single)}."
    )


def _stratification(measured: Measured) -> str:
    """Return how a queue without strata compares."""
    sets = measured.compared_sets([KERNEL, QUEUE])
    if not sets:
        return ""
    gaps = {name: found for name in sets if (found := measured.difference(name, KERNEL, QUEUE))}
    better = [name for name, gap in gaps.items() if gap.clear > 0]
    worse = [name for name, gap in gaps.items() if gap.clear < 0]
    reason = "Stratification is not the reason" if len(better) < len(gaps) / 2 else "Stratification helps"
    ties = len(gaps) - len(better) - len(worse)
    last = [found.clear for name in sets if (found := measured.difference(name, KERNEL, QUEUE, "last"))]
    return (
        f"{reason}: FPOGD (FIFO strata, default ε) differs from a queue of as many newest rows by "
        f"{span([gap.mean for gap in gaps.values()], signed)} points, significantly better on "
        f"{_sets(better)}, worse on {_sets(worse)}, and a tie on {ties} of {len(gaps)} sets; with last iterates better "
        f"on {sum(one > 0 for one in last)}, worse on {sum(one < 0 for one in last)}."
    )


def _sets(names: Sequence[str]) -> str:
    return f"{len(names)} ({listed(names)})" if names else "none"


def _regret_and_error(results: Results) -> str:
    """Return regret and error of the gradient of the queue and of centroids, as multiples of those of strata."""
    regrets = relative_regret(results, "i.i.d.", FIFO)
    errors = relative_error(results, "common", FIFO)
    if not regrets.get(QUEUE_BUFFER) or not errors.get(QUEUE_BUFFER):
        return ""
    queue, centroid = (_multiples(regrets, errors, name) for name in (QUEUE_BUFFER, CENTROID_BUFFER))
    return (
        f"On shuffled streams, relative to the paper's strata, the queue has {queue[0]:.2f} times the regret and "
        f"{queue[1]:.2f} times the squared gradient error, centroids of the same strata {centroid[0]:.2f} and "
        f"{centroid[1]:.2f} times (medians over {len(errors[QUEUE_BUFFER])} sets; with more slots for regret)."
    )


def _multiples(regrets: "Ratios", errors: "Ratios", name: str) -> tuple[float, float]:
    regret, error = (float(np.median(list(found.get(name, {}).values()))) for found in (regrets, errors))
    return regret, error


def _beyond(measured: Measured) -> str:
    """Return what decides instead: the kernel, and its width."""
    sets = measured.compared_sets([KERNEL, LINEAR, "FPOGD, tuned width", "AUCClassifier"])
    if not sets:
        return ""
    kernel, width = (
        [name for name in sets if _clear(measured, name, one, other) > 0]
        for one, other in ((KERNEL, LINEAR), ("FPOGD, tuned width", KERNEL))
    )
    text = (
        f"What helps is the kernel (better than FPOGD without one on {of(kernel, len(sets))}) and its width (tuning it "
        f"is better again on {of(width, len(sets))})"
    )
    beyond = {"AUCClassifier": "this library's AUCClassifier", "LightGBM": "LightGBM, a batch learner,"}
    ahead = {title: sum(_clear(measured, one, name, KERNEL) > 0 for one in sets)
             for name, title in beyond.items() if name in measured.systems}  # fmt: skip
    shown = [f"{title} on {n}" for title, n in ahead.items()]
    return f"{text}; significantly better than FPOGD are {listed(shown)} of {len(sets)} sets."


def _ranks_figure(measured: Measured) -> Markup | None:
    ranks = ranks_of(measured)
    if ranks is None:
        return None
    sets = measured.compared_sets(ranks.names)
    caption = (
        f"Mean ranks over {listed(measured.titles(sets))}, by the AUC of the mean of the iterates. Friedman's test, "
        f"{small(ranks.p)}. Bars: half the critical difference of Nemenyi's test ({ranks.critical:.2f}) on each side; "
        "two systems differ significantly at 5 % if their bars do not overlap. Shaded: the bar of the best."
    )
    panel = svg.critical_difference(ranks, "Critical differences of mean ranks")
    return svg.shown("figure-ranks", [panel], caption, "Mean ranks with critical differences", wide=True)


Ratios = dict[str, dict[str, float]]
"""Algorithm -> data set -> a multiple of another algorithm's value."""


def relative_regret(results: Results, order: str, reference: str) -> Ratios:
    """Return the regret at the end of a stream as a multiple of ``reference``'s: medians over orders, constant step."""
    found: dict[tuple[str, str], list[float]] = {}
    for stream, runs in streams(results).items():
        if stream.step == CONSTANT and stream.order == order and reference in runs:
            for name, run in runs.items():
                found.setdefault((name, stream.dataset), []).append(_ratio(run, runs[reference]))
    return _nested({key: float(np.median(values)) for key, values in found.items()})


def _ratio(run: Run, reference: Run) -> float:
    least = reference.final("before")
    return run.final("before") / least if least > 0 else nan


def relative_error(results: Results, path: str, reference: str) -> Ratios:
    """Return the mean squared error of the gradient as a multiple of ``reference``'s."""
    found = {(name, dataset): one.mean / own[reference].mean
             for dataset, own in mean_errors(results, path).items() if reference in own
             for name, one in own.items()}  # fmt: skip
    return _nested(found)


def _nested(found: dict[tuple[str, str], float]) -> Ratios:
    return {name: {dataset: value for (one, dataset), value in found.items() if one == name}
            for name in in_order(name for name, _ in found)}  # fmt: skip


def _regret_figure(results: Results) -> Markup | None:
    titles = {"i.i.d.": "shuffled", "sorted": "sorted by a column"}
    found = {title: relative_regret(results, order, WHOLE) for order, title in titles.items()}
    caption = (
        "Regret at the end of a stream as a multiple of that with gradients over the whole history, by memory: one "
        "point for each data set, the median of its orders. The same step, features and number of slots for all."
    )
    return _dots_figure("figure-relative-regret", found, "regret, whole history = 1", caption, "Regret by memory")


def _error_figure(results: Results) -> Markup | None:
    titles = {"common": "at the weights of exact gradients", "own": "along its own path"}
    found = {title: relative_error(results, path, FIFO) for path, title in titles.items()}
    caption = (
        "Mean squared error of the gradient, as a multiple of that of the paper's strata (FPOGD, FIFO), by memory with "
        "four slots for each class: one point for each data set. A centroid is no row of the past: its error is bias."
    )
    return _dots_figure(
        "figure-relative-error", found, "squared error, FPOGD with FIFO = 1", caption, "Gradient error by memory"
    )


def _dots_figure(name: str, found: dict[str, Ratios], x: str, caption: str, label: str) -> Markup | None:
    sets = sets_in_order({dataset for one in found.values() for own in one.values() for dataset in own})
    if not sets:
        return None
    styles = {one: svg.Style(*MARKERS[k % len(MARKERS)]) for k, one in enumerate(sets)}
    panels = [
        svg.dots(title, x, _in_rows(ratios, styles.__getitem__), f"{label}, {title}") for title, ratios in found.items()
    ]
    return svg.shown(name, panels, caption, label, list(styles.items()), wide=True)


def _in_rows(ratios: Ratios, style: Callable[[str], svg.Style]) -> dict[str, list[tuple[float, svg.Style]]]:
    """Return the points of each row, the smallest median above."""
    order = sorted(ratios, key=lambda name: float(np.nanmedian(list(ratios[name].values()) or [nan])))
    return {name: [(value, style(dataset)) for dataset, value in ratios[name].items()] for name in order}
