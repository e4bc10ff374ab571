"""The answer in five sentences. Every number and every conclusion is computed from the records."""

from collections.abc import Sequence
from math import nan

import numpy as np

from reproduction import paper
from reproduction.buffers import CENTROID as CENTROID_BUFFER
from reproduction.buffers import FIFO
from reproduction.buffers import QUEUE as QUEUE_BUFFER
from reproduction.report.buffers import ROOT, Ratios, error_of, regret_of, relative_runs
from reproduction.report.claims.base import FEWEST_SETS
from reproduction.report.estimates import Ranks, ranked
from reproduction.report.measured import (
    GROUPS,
    KERNEL,
    KERNEL_TUNED,
    LINEAR,
    PROJECTRON_TUNED,
    QUEUE,
    Measured,
    Output,
    spoken,
)
from reproduction.report.wording import listed, percent, power_of_two, small
from reproduction.results import Results

RIVALS = tuple(name for name in GROUPS["in the paper"] if not name.startswith("FPOGD"))
RANKED = GROUPS["in the paper"]
"""The systems of the critical-difference diagram: each other one would move the ranks of these."""

TUNED = {KERNEL: KERNEL_TUNED, "ProjectronPP": PROJECTRON_TUNED}
"""The systems of the paper that have a column with a tuned width."""


def sentences(results: Results) -> list[str]:
    """Return the answer; a sentence whose experiment was not run, or on too few sets, is missing."""
    measured = Measured(results)
    n_sets = len(measured.compared_sets([KERNEL]))
    if n_sets < FEWEST_SETS:
        return [f"This run has FPOGD with a kernel on {n_sets} of at least {FEWEST_SETS} sets: too few for an answer."]
    made = [_best(measured), _mean_ranks(measured), _stratification(measured), _regret_and_error(results),
            _kernel_and_steps(measured)]  # fmt: skip
    return [text for text in made if text]


def signs(measured: Measured, one: str, other: str, output: Output = "mean") -> dict[str, int]:
    """Return 1 for each set on which a system is significantly ahead of another, -1 if behind, otherwise 0."""
    gaps = {name: measured.difference(name, one, other, output) for name in measured.datasets}
    return {name: gap.clear for name, gap in gaps.items() if gap}


def those(found: dict[str, int], sign: int) -> list[str]:
    """Return the sets with this sign."""
    return [name for name, own in found.items() if own == sign]


def ranks_of(
    measured: Measured, instead: dict[str, str] | None = None, output: Output = "mean"
) -> Ranks | None:  # fmt: skip
    """Return the ranks over the sets that all systems of the diagram learned; None if there are too few.

    ``instead``: columns that replace systems; ``output``: the iterate that scores, for systems with iterates.
    """
    systems = [(instead or {}).get(name, name) for name in RANKED]
    systems = [name for name in systems if name in measured.systems]
    sets = measured.compared_sets(systems)
    if len(sets) < FEWEST_SETS or len(systems) < 3:
        return None
    return ranked({name: [_mean(measured, dataset, name, output) for dataset in sets] for name in systems})


def _mean(measured: Measured, dataset: str, system: str, output: Output) -> float:
    found = measured.auc(dataset, system, output) or measured.auc(dataset, system)
    return found.mean if found else nan


def _best(measured: Measured) -> str:
    """Return on how many sets kernel FPOGD leads the systems of the paper, and how it does if widths are tuned."""
    asked = [name for name in measured.compared_sets([KERNEL]) if measured.best(name, RIVALS)]
    if not asked:
        return ""
    first = [name for name in asked if measured.best(name, [KERNEL, *RIVALS]) == KERNEL]
    lost: dict[str, list[str]] = {}
    for rival in RIVALS:
        for name in those(signs(measured, KERNEL, rival), -1):
            lost.setdefault(name, []).append(spoken(rival))
    sets: dict[str, list[str]] = {}
    for name, rivals in lost.items():
        sets.setdefault(listed(rivals), []).append(name)
    behind = [f"{rivals} on {listed(names)}" for rivals, names in sets.items()]
    widths = signs(measured, KERNEL_TUNED, PROJECTRON_TUNED)
    ahead, after = those(widths, 1), those(widths, -1)
    most = 2 * len(first) > len(asked) and not lost and len(ahead) >= len(after)
    text = (
        f"FPOGD is {'' if most else 'not clearly '}the best of the paper's systems: with the paper's kernel width for "
        "all, and scored by the mean of the iterates, FPOGD with a kernel has the highest AUC of them "
        f"on {len(first)} of {len(asked)} sets, and significantly ahead of it are {', and '.join(behind) or 'none'}"
    )
    if widths:
        text += (
            f"; with the width tuned for both, Projectron++ is significantly ahead of it on {len(after)} sets and "
            f"behind on {len(ahead)}"
        )
    return f"{text}."


def _mean_ranks(measured: Measured) -> str:
    """Return the mean ranks and their test, and those with tuned widths."""
    ranks = ranks_of(measured)
    if ranks is None or KERNEL not in ranks.names:
        return ""
    means = dict(zip(ranks.names, ranks.means, strict=True))
    rivals = [name for name in RIVALS if name in means]
    same = [spoken(name) for name in rivals if means[name] - means[KERNEL] < ranks.critical]
    worse = [spoken(name) for name in rivals if spoken(name) not in same]
    forms = ", FPOGD in two forms" if LINEAR in means else ""
    text = (
        f"Over {ranks.n} sets its mean rank is {means[KERNEL]:.1f} among the {len(rivals) + 1} systems{forms} "
        f"(Friedman's test: {small(ranks.p)}); by Nemenyi's test it is better than {listed(worse)}, and not "
        f"distinguishable from {listed(same)}"
    )
    tuned = ranks_of(measured, TUNED)
    if tuned and {*TUNED.values()} <= {*tuned.names}:
        own = dict(zip(tuned.names, tuned.means, strict=True))
        text += (
            f"; with tuned widths the mean rank of Projectron++ is {own[PROJECTRON_TUNED]:.1f}, and that of FPOGD "
            f"{own[KERNEL_TUNED]:.1f}"
        )
    return f"{text}."


def _stratification(measured: Measured) -> str:
    """Return how a queue without strata compares."""
    found = signs(measured, QUEUE, KERNEL)
    if not found:
        return ""
    better, worse = those(found, 1), those(found, -1)
    reason = "Stratification is not the reason" if 2 * len(worse) < len(found) else "Stratification helps"
    text = (
        f"{reason}: a plain queue of the newest rows, with as many slots, is significantly better than the strata on "
        f"{_some(better)}, worse on {_some(worse)}, and not significantly different on "
        f"{len(found) - len(better) - len(worse)} of {len(found)} sets"
    )
    if last := signs(measured, QUEUE, KERNEL, "last"):
        better, worse = those(last, 1), those(last, -1)
        own = f"it is better on {_some(better)} and worse on {_some(worse)}"
        text += f"; with last iterates {own if better or worse else 'no difference is significant'}"
    return f"{text}."


def _some(names: Sequence[str]) -> str:
    """Return how many sets, and which."""
    return f"{len(names)} ({listed(names)})" if names else "none"


def _regret_and_error(results: Results) -> str:
    """Return regret and error of the gradient of the queue and of centroids relative to the paper's strata."""
    regrets, errors = (relative_runs(results, "i.i.d.", FIFO, value=value) for value in (regret_of, error_of))
    root = relative_runs(results, "i.i.d.", FIFO, ROOT)
    names = (CENTROID_BUFFER, QUEUE_BUFFER)
    if not all(found.get(name) for found in (regrets, errors) for name in names):
        return ""
    (regret, queue), (error, newest) = ([_median(found, name) for name in names] for found in (regrets, errors))
    text = (
        f"A smaller error of the gradient {'need not mean' if error < 1 <= regret else 'may mean'} less regret: on "
        f"shuffled streams, in the median of {len(regrets[QUEUE_BUFFER])} sets, centroids of the same strata have "
        f"{100 * error:.0f} % of the squared error of the paper's strata and {_more(regret)} regret"
    )
    text += f" ({_more(_median(root, CENTROID_BUFFER))} with the step {ROOT})" if root.get(CENTROID_BUFFER) else ""
    return f"{text}, and the queue has {100 * newest:.0f} % of the error and {_more(queue)} regret."


def _median(found: Ratios, name: str) -> float:
    return float(np.median(list(found[name].values())))


def _more(ratio: float) -> str:
    """Return how much more, or less, something is than 1."""
    share = round(100 * (ratio - 1))
    return f"{abs(share)} % {'more' if share > 0 else 'less'}" if share else "as much"


def _kernel_and_steps(measured: Measured) -> str:
    """Return the effect of the kernel, and of steps beyond the paper's grid with the mean iterate."""
    kernel = signs(measured, KERNEL, LINEAR)
    if not kernel:
        return ""
    text = (
        f"What helps is the kernel (significantly better than FPOGD without one on {len(those(kernel, 1))} of "
        f"{len(kernel)} sets, worse on {len(those(kernel, -1))})"
    )
    longer = [name for name in kernel if _median_step(measured, name, "mean") > paper.STEPS[-1]]
    cut, name = max((measured.cut(name, KERNEL), name) for name in kernel)
    if longer and cut > 0:
        text += (
            f", and averaging over long steps: on {len(longer)} sets the selected step is beyond the paper's grid, "
            f"{power_of_two(paper.STEPS[0])} to {power_of_two(paper.STEPS[-1])}, and up to {100 * cut:.0f} % of the "
            f"steps are cut ({name})"
        )
    ranks = ranks_of(measured, output="last")
    falls = {name: (mean.mean, last.mean) for name in kernel if (mean := measured.auc(name, KERNEL))
             and (last := measured.auc(name, KERNEL, "last"))}  # fmt: skip
    if ranks is None or not falls:
        return f"{text}."
    rank = dict(zip(ranks.names, ranks.means, strict=True))[KERNEL]
    most = max(falls, key=lambda name: falls[name][0] - falls[name][1])
    before, after = (percent(one) for one in falls[most])
    return (
        f"{text}; with the last iterate, which the paper's algorithm returns, its mean rank is {rank:.1f}, and its AUC "
        f"falls most on {most}, from {before} to {after}."
    )


def _median_step(measured: Measured, dataset: str, output: Output) -> float:
    return float(np.median(measured.chosen(dataset, KERNEL, "eta", output) or [0.0]))
