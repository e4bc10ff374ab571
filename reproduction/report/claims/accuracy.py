"""Claims on AUC, from the table."""

from collections.abc import Collection

import numpy as np

from reproduction import paper
from reproduction.report.claims.base import Claim, Finding, Verdict, graded, without
from reproduction.report.measured import GROUPS, KERNEL, LINEAR, Measured
from reproduction.report.wording import listed, of, percent, signed
from reproduction.results import Results

RIVALS = tuple(system for system in GROUPS["in the paper"] if not system.startswith("FPOGD"))
ONLINE = tuple(system for system in RIVALS if system != "SparseKernelAUC")
LARGE = 20_000
"""The fewest training rows of a large data set."""


def _sets(measured: Measured, hits: list[str], asked: Collection[str]) -> str:
    return of(measured.titles(hits), len(asked))


def _ahead(measured: Measured, rivals: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The data sets where kernel FPOGD has a higher mean than every rival, and all data sets with both."""
    asked, won = [], []
    for dataset in measured.datasets:
        ours = measured.auc(dataset, KERNEL)
        others = [one.mean for rival in rivals if (one := measured.auc(dataset, rival))]
        if ours and others:
            asked.append(dataset)
            won += [dataset] if ours.mean > max(others) else []
    return won, asked


def _behind(measured: Measured, asked: list[str], rivals: tuple[str, ...]) -> list[str]:
    """The rivals that are clearly ahead of kernel FPOGD, with their data sets."""
    found = []
    for dataset in asked:
        for rival in rivals:
            gap = measured.difference(dataset, KERNEL, rival)
            if gap and gap.clear < 0:
                found.append(f"{rival} on {dataset} by {signed(-gap.mean)}")
    return found


def _few_rows(measured: Measured, asked: list[str], rivals: tuple[str, ...]) -> str:
    """A note if some of the rivals learned only a part of the rows."""
    capped = [rival for rival in rivals if any(measured.cap(dataset, rival) for dataset in asked)]
    return (
        f" On the larger sets {listed(capped)} learned a part of the rows only; the table says how many."
        if capped
        else ""
    )


def superiority(results: Results) -> Finding:
    """Against all rivals of the paper that learn online."""
    measured = Measured(results)
    won, asked = _ahead(measured, ONLINE)
    if not asked:
        return without("table")
    text = (
        f"FPOGD with a kernel has the highest mean AUC of the paper's online systems on {_sets(measured, won, asked)}."
    )
    behind = _behind(measured, asked, ONLINE)
    text += f" Clearly ahead of it: {listed(behind)}." if behind else " No other is clearly ahead of it anywhere."
    text += _few_rows(measured, asked, ONLINE)
    return Finding(text, graded(len(won) == len(asked), 2 * len(won) >= len(asked) or not behind))


def majority(results: Results) -> Finding:
    """Against linear systems, and against kernel systems."""
    measured = Measured(results)
    linear, asked = _ahead(measured, ("SPAM-NET", "OGD", "Kar"))
    kernel, with_kernel = _ahead(measured, ("SparseKernelAUC", "ProjectronPP"))
    if not asked or not with_kernel:
        return without("table")
    text = (
        f"FPOGD with a kernel is ahead of all linear systems on {_sets(measured, linear, asked)}, and of both kernel "
        f"systems on {_sets(measured, kernel, with_kernel)}."
    )
    text += _few_rows(measured, with_kernel, ("SparseKernelAUC", "ProjectronPP"))
    majorities = [2 * len(linear) > len(asked), 2 * len(kernel) > len(with_kernel)]
    return Finding(text, graded(all(majorities), any(majorities)))


def best_on_six(results: Results) -> Finding:
    """On the seven data sets of the paper's table."""
    measured = Measured(results)
    won, asked = ([name for name in names if name in paper.AUC and not measured.stand_in(name)]
                  for names in _ahead(measured, RIVALS))  # fmt: skip
    if not asked:
        return without("table")
    text = (
        f"Best of the paper's systems on {_sets(measured, won, asked)}; not on {listed(sorted(set(asked) - set(won)))}."
    )
    return Finding(text, graded(7 * len(won) >= 6 * len(asked), 2 * len(won) > len(asked)))


def offline(results: Results) -> Finding:
    """Against the offline system of the paper, and against batch references."""
    measured = Measured(results)
    won, asked = _ahead(measured, ("SparseKernelAUC",))
    if not asked:
        return without("table")
    text = f"Ahead of SparseKernelAUC, the paper's offline system, on {_sets(measured, won, asked)}."
    text += _few_rows(measured, asked, ("SparseKernelAUC",))
    for batch in GROUPS["batch"]:
        better, both = _ahead(measured, (batch,))
        text += f" Ahead of {batch}, which the paper does not have, on {len(better)} of {len(both)}." if both else ""
    return Finding(text, graded(len(won) == len(asked), 2 * len(won) > len(asked)))


def large_scale(results: Results) -> Finding:
    """The margin to the best rival on large and on small data sets."""
    measured = Measured(results)
    margins: dict[bool, list[float]] = {True: [], False: []}
    for dataset in measured.datasets:
        ours, best = measured.auc(dataset, KERNEL), measured.best(dataset, RIVALS)
        if ours and best and (other := measured.auc(dataset, best)):
            margins[measured.n_train(dataset) >= LARGE].append(ours.mean - other.mean)
    if not any(margins.values()):
        return without("table")
    if not all(margins.values()):
        return Finding("Needs large and small sets; only one kind was measured.", Verdict.UNTESTED)
    large, small = float(np.mean(margins[True])), float(np.mean(margins[False]))
    text = (
        f"Mean margin of FPOGD with a kernel to the best other system of the paper: {signed(large)} on "
        f"{len(margins[True])} sets with {LARGE:,} rows to learn or more, {signed(small)} on {len(margins[False])} "
        "smaller ones."
    )
    return Finding(text, graded(large > 0 and large > small, large > 0 or large > small))


def non_linear(results: Results) -> Finding:
    """Kernel against linear FPOGD."""
    measured = Measured(results)
    pairs = {name: gap for name in measured.datasets
             if (gap := measured.difference(name, KERNEL, LINEAR))}  # fmt: skip
    if not pairs:
        return without("table")
    better = [name for name, gap in pairs.items() if gap.clear > 0]
    worse = [name for name, gap in pairs.items() if gap.clear < 0]
    text = (
        f"The kernel form is clearly above the linear one on {_sets(measured, better, pairs)}, clearly below on "
        f"{_sets(measured, worse, pairs)}."
    )
    return Finding(text, graded(len(better) == len(pairs), bool(better)))


def separable(results: Results) -> Finding:
    """Whether a plane separates the mapped classes."""
    measured = Measured(results)
    found = {name: one.mean for name in measured.datasets if (one := measured.auc(name, KERNEL))}
    if not found:
        return without("table")
    parted = [name for name, mean in found.items() if mean > 0.9995]
    top = max(found, key=found.__getitem__)
    text = (
        f"Separable classes have an AUC of 100. FPOGD with a kernel has it on {_sets(measured, parted, found)}; its "
        f"highest is {percent(found[top])}, on {top}."
    )
    return Finding(text, graded(len(parted) == len(found), bool(parted)))


CLAIMS = (
    Claim(
        "superiority", "Abstract",
        "“The experiments on real-world datasets demonstrate the superiority of our algorithm over both kernelized "
        "and linear online pairwise learning algorithms.”",
        superiority,
        "holds if highest on every set; in part if on half of them or more, or if no other is clearly (two standard "
        "errors, fold by fold) ahead.",
        "auc",
    ),
    Claim(
        "majority", "Introduction, contribution 4",
        "“Our methodology showcases improvements across both linear and nonlinear models for the majority of the "
        "examined datasets.”",
        majority, "holds if ahead on more than half of the sets in both comparisons, in part if in one.", "auc",
    ),
    Claim(
        "non-linear", "Introduction",
        "“By combining kernelization, efficient kernel approximation, and online stratified sampling, our method "
        "overcomes linear limitations, handles nonlinear data.”",
        non_linear,
        "holds if the kernel form is clearly (two standard errors, fold by fold) better on every set, in part if on "
        "some.",
        "auc",
    ),
    Claim(
        "separable", "Method, mapping to a kernel space",
        "“By performing this transformation, we project the non-linearly separable data into a higher-dimensional "
        "space where it becomes linearly separable.”",
        separable, "holds if the mean test AUC is above 99.95 on every set, in part if on some.", "auc",
    ),
    Claim(
        "best-on-six", "Experiments, Table 2",
        "FPOGD is printed in bold, as the best system, on six of seven data sets: all but diabetes.",
        best_on_six,
        "holds if best on six sevenths of the sets or more, in part if on more than half; stand-ins are left out.",
        "auc",
    ),
    Claim(
        "offline", "Experiments, results",
        "“Table 2 clearly demonstrates that our algorithm outperforms both online and offline linear and nonlinear "
        "pairwise learning algorithms”: the offline ones.",
        offline, "holds if ahead of the paper's offline system on every set, in part if on more than half.", "auc",
    ),
    Claim(
        "large-scale", "Experiments, results",
        "“… yielding enhanced AUC performance particularly on large-scale datasets.”",
        large_scale,
        "holds if the margin on large sets is positive and larger than on small ones, in part if one of both.",
        "auc",
    ),
)  # fmt: skip
