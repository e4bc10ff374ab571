"""Claims on AUC, from the table."""

import numpy as np

from reproduction.report.claims.base import FEWEST_SETS, Claim, Finding, Verdict, argued, graded, too_few
from reproduction.report.claims.comparisons import (
    against,
    ahead_of_all,
    counted,
    named,
    papers_sets,
    partly,
    standing,
)
from reproduction.report.measured import (
    CENTROID,
    GROUPS,
    KERNEL,
    LINEAR,
    QUEUE,
    Measured,
    Output,
    is_imbalanced,
    spoken,
)
from reproduction.report.wording import listed, signed
from reproduction.results import Results

RIVALS = tuple(system for system in GROUPS["in the paper"] if not system.startswith("FPOGD"))
OFFLINE = "SparseKernelAUC"
ONLINE = tuple(system for system in RIVALS if system != OFFLINE)
KERNELS = (OFFLINE, "ProjectronPP")
LINEARS = tuple(system for system in RIVALS if system not in KERNELS)
OUTPUTS: tuple[Output, ...] = ("mean", "last")
LARGE = 20_000
"""The fewest training rows of a large data set."""


def _ahead(behind: dict[str, list[str]]) -> str:
    """Return the systems that are significantly ahead, with their sets."""
    return listed([f"{listed([spoken(one) for one in systems])} on {name}" for name, systems in behind.items()])


def superiority(results: Results) -> Finding:
    """Among the paper's systems that learn online, with both iterates."""
    measured = Measured(results)
    datasets = papers_sets(measured)
    mean, last = (standing(measured, ONLINE, datasets, output) for output in OUTPUTS)
    if len(mean.sets) < FEWEST_SETS:
        return too_few(results, "table", mean.sets)
    text = (
        "With the mean iterate for all, FPOGD with a kernel is the highest of the paper's online systems on "
        f"{counted(mean.highest, mean.sets)}; significantly ahead: {_ahead(mean.behind)}."
    )
    if last.sets:
        text += f" With the last iterate: {named(last.highest)}; ahead: {_ahead(last.behind)}."
    beyond = standing(measured, ONLINE, [name for name in measured.datasets if is_imbalanced(name)])
    text += f" Of {len(beyond.sets)} imbalanced sets: {len(beyond.highest)}." if beyond.sets else ""
    text += partly(measured, ONLINE, mean.sets)
    ways = [one for one in (mean, last) if one.sets]
    most = all(2 * len(one.highest) > len(one.sets) and not one.behind for one in ways)
    return Finding(text, graded(most, any(2 * len(one.highest) >= len(one.sets) for one in ways)))


def stratification(results: Results) -> Finding:
    """Strata against a queue of the newest rows, and centroids against the newest member of each stratum."""
    measured = Measured(results)
    mean, last = (against(measured, KERNEL, QUEUE, measured.datasets, output) for output in OUTPUTS)
    if len(mean.sets) < FEWEST_SETS:
        return too_few(results, "table", mean.sets)
    centroid = against(measured, CENTROID, KERNEL, measured.datasets)
    text = (
        "Against a queue of the newest rows, with as many slots but no strata, FPOGD with a kernel is significantly "
        f"above on {counted(mean.above, mean.sets)}, below on "
        f"{named(mean.below)}; mean difference {signed(mean.mean)}."
    )
    text += f" With last iterates: {len(last.above)} above, {len(last.below)} below." if last.sets else ""
    if centroid.sets:
        text += (
            " Centroids, not in the paper, against FPOGD: above on "
            f"{named(centroid.above)}, below on {named(centroid.below)}."
        )
    ways = [one for one in (mean, last) if one.sets]
    most = all(2 * len(one.above) > len(one.sets) for one in ways)
    return Finding(text, graded(most, any(len(one.above) > len(one.below) for one in ways)))


def majority(results: Results) -> Finding:
    """Linear FPOGD against linear systems, and FPOGD with a kernel against those with kernels."""
    measured = Measured(results)
    datasets = papers_sets(measured)
    pairs = {
        "linear FPOGD against linear systems": (LINEAR, LINEARS),
        "FPOGD with a kernel against kernel systems": (KERNEL, KERNELS),
    }
    found = {name: standing(measured, rivals, datasets, form=form) for name, (form, rivals) in pairs.items()}
    fewest = min((one.sets for one in found.values()), key=len)
    if len(fewest) < FEWEST_SETS:
        return too_few(results, "table", fewest)
    parts, clear = [], []
    for name, (form, rivals) in pairs.items():
        sets = found[name].sets
        mean, last = (len(ahead_of_all(measured, form, rivals, sets, output)) for output in OUTPUTS)
        clear.append(2 * mean > len(sets))
        parts.append(
            f"{name}: the highest mean on {len(found[name].highest)} of {len(sets)} sets, significantly ahead of "
            f"all on {mean}, with the last iterate on {last}"
        )
    highest = [2 * len(one.highest) > len(one.sets) for one in found.values()]
    text = f"{'; '.join(parts)}.{partly(measured, RIVALS, datasets)}"
    return Finding(text[0].upper() + text[1:], graded(all(clear), any(highest) or any(clear)))


def offline(results: Results) -> Finding:
    """Against the offline system of the paper; batch references for comparison."""
    measured = Measured(results)
    datasets = papers_sets(measured)
    found = against(measured, KERNEL, OFFLINE, [name for name in datasets if not measured.cap(name, OFFLINE)])
    n = len(found.sets)
    if n < FEWEST_SETS:
        return too_few(results, "table", found.sets)
    text = (
        f"Against {spoken(OFFLINE)}, the paper's offline system, where it learned all rows: significantly above on "
        f"{counted(found.above, found.sets)}, below on {named(found.below)}."
    )
    batch = standing(measured, GROUPS["batch"], datasets)
    if batch.sets:
        learners = ", ".join(GROUPS["batch"])
        text += f" A batch learner ({learners}) is significantly above FPOGD on {counted(batch.behind, batch.sets)}."
    return Finding(
        text,
        graded(2 * len(found.above) > n and not found.below, not found.below or len(found.above) > len(found.below)),
    )


def large_scale(results: Results) -> Finding:
    """The margin to the best rival, on large and on small data sets."""
    measured = Measured(results)
    margins: dict[bool, list[float]] = {True: [], False: []}
    shown = []
    for name in papers_sets(measured):
        ours = measured.auc(name, KERNEL)
        best = measured.best(name, RIVALS)
        if ours and best and (other := measured.auc(name, best)):
            margins[measured.n_train(name) >= LARGE].append(ours.mean - other.mean)
            shown.append(f"{name} {signed(ours.mean - other.mean)}")
    large, small = margins[True], margins[False]
    if len(large + small) < FEWEST_SETS:
        return too_few(results, "table", large + small)
    if not large or not small:
        return Finding("Needs large and small sets; only one kind was measured.", Verdict.UNTESTED)
    over, under = float(np.mean(large)), float(np.mean(small))
    text = (
        "Mean margin of FPOGD with a kernel to the best of the paper's other systems: "
        f"{signed(over)} on {len(large)} sets with {LARGE:,} or more rows to learn, {signed(under)} on {len(small)} "
        f"smaller ones ({listed(shown)}).{partly(measured, RIVALS, papers_sets(measured))}"
    )
    return Finding(text, graded(over > 0 and over > under, over > 0 or over > under))


def non_linear(results: Results) -> Finding:
    """Kernel against linear FPOGD."""
    measured = Measured(results)
    found = against(measured, KERNEL, LINEAR, papers_sets(measured))
    if len(found.sets) < FEWEST_SETS:
        return too_few(results, "table", found.sets)
    text = (
        "The kernel form is significantly above the linear one on "
        f"{counted(found.above, found.sets)}, below it on {named(found.below)}."
    )
    return Finding(text, graded(2 * len(found.above) > len(found.sets) and not found.below, bool(found.above)))


CLAIMS = (
    Claim(
        "superiority", "Abstract",
        "“The experiments … demonstrate the superiority of our algorithm over both kernelized and linear online "
        "pairwise learning algorithms.”",
        superiority,
        "holds if highest on most sets, never significantly behind (corrected resampled t-test, 5 %), with both "
        "iterates; in part if highest on half, with one.",
        "answer", central=True,
    ),
    Claim(
        "stratification", "Introduction",
        "“… online stratified sampling … mitigates variance impact, resulting in a robust and effective online "
        "pairwise learning approach.”",
        stratification,
        "holds if significantly above on most sets with both iterates; in part if more often above than below with "
        "one.",
        "answer", central=True,
    ),
    Claim(
        "majority", "Introduction, contribution 4",
        "“… improvements across both linear and nonlinear models for the majority of the examined datasets.”",
        majority,
        "holds if significantly ahead of all on most sets in both comparisons, with the mean iterate; in "
        "part if in one, or if its mean is the highest on most in one.",
        "answer", central=True,
    ),
    Claim(
        "non-linear", "Introduction",
        "“… our method overcomes linear limitations, handles nonlinear data.”",
        non_linear, "holds if significantly above on most sets and below on none; in part if above on some.", "answer",
        central=True,
    ),
    Claim(
        "separable", "Method, mapping to a kernel space",
        "“… we project the non-linearly separable data into a higher-dimensional space where it becomes linearly "
        "separable.”",
        argued(
            "Motivation. Distinct rows are linearly separable in the space of a Gaussian kernel, whatever their "
            "labels. Test AUC cannot show it.",
            Verdict.DESCRIPTION,
        ),
    ),
    Claim(
        "offline", "Experiments, results",
        "“… our algorithm outperforms both online and offline linear and nonlinear pairwise learning algorithms”: "
        "offline.",
        offline,
        "holds if significantly above on most sets and below on none; in part if never below, or more often above.",
        "answer",
        central=True,
    ),
    Claim(
        "large-scale", "Experiments, results",
        "“… yielding enhanced AUC performance particularly on large-scale datasets.”",
        large_scale, "holds if the margin is positive and larger on large sets; in part if one of both.",
        "answer", central=True,
    ),
)  # fmt: skip
