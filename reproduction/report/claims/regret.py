"""Claims on the regret of buffer algorithms along real streams."""

from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from reproduction.buffers import BY_CLASS, CENTROID, FIFO, FRESH, OAM_TYPE, RESERVOIR, RIVALS
from reproduction.report.buffers import Run, Stream, long_streams, mean_errors
from reproduction.report.claims.base import Claim, Finding, graded, too_short
from reproduction.report.claims.variance import least_of
from reproduction.report.wording import interval, listed, of
from reproduction.results import Results

Runs = dict[str, Run]


def rivals_of(runs: Runs) -> Runs:
    """The other algorithms of the paper's figures."""
    return {name: run for name, run in runs.items() if name in RIVALS and run.curve}


def leads(runs: Runs, column: str = "before") -> bool:
    """Whether FPOGD with FIFO has the least regret at the last row."""
    return all(runs[FIFO].final(column) < run.final(column) for run in rivals_of(runs).values())


def sublinear(results: Results) -> Finding:
    """Whether exponents are below 1, and other buffers have more regret."""
    found = {stream: runs for stream, runs in long_streams(results, FIFO).items() if rivals_of(runs)}
    if not found:
        return too_short(results, "regret")
    below = sum(runs[FIFO].sublinear() for runs in found.values())
    ahead = sum(leads(runs) for runs in found.values())
    text = (
        f"With FIFO, as in the paper's box, the exponent of R_{{t}} is below 1 on {below} of {len(found)} streams "
        f"({_range(found)}), and R_{{T}} below those of the other algorithms' buffers on {ahead}. A stream is a set, "
        "an order of its rows, and a step."
    )
    every, most = below == len(found), 2 * ahead > len(found)
    return Finding(text, graded(every and most, every or most))


def _range(found: dict[Stream, Runs], system: str = FIFO) -> str:
    """The lowest and the highest exponent of an algorithm, with intervals."""
    known = sorted(one for runs in found.values() if system in runs and (one := runs[system].interval()))
    return f"from {interval(*known[0])} to {interval(*known[-1])}" if known else "no exponent is known"


def sublinear_buffer(results: Results) -> Finding:
    """The exponents of FPOGD's three representatives."""
    found = long_streams(results, FIFO)
    if not found:
        return too_short(results, "regret")
    shown, counts = [], {}
    for system, name in ((FIFO, "FIFO"), (RESERVOIR, "reservoirs"), (CENTROID, "centroids")):
        own = {stream: runs for stream, runs in found.items() if system in runs}
        counts[system] = sum(runs[system].sublinear() for runs in own.values())
        if own:
            shown.append(f"{name} on {counts[system]} of {len(own)} streams, {_range(own, system)}")
    near = sum(runs[FIFO].sublinear("_near") for runs in found.values())
    text = (
        f"The 95 % interval of the exponent of R_{{t}} is below 1 with {'; with '.join(shown)}. Against weights within "
        f"reach, shorter than w⋆, it is with FIFO on {near}."
    )
    return Finding(text, graded(counts[FIFO] == len(found), 2 * counts[FIFO] > len(found)))


def control(results: Results) -> Finding:
    """Reservoirs with strata against as many slots without strata."""
    found = long_streams(results, RESERVOIR, OAM_TYPE)
    if not found:
        return too_short(results, "regret")
    lower = sum(runs[RESERVOIR].final("before") < runs[OAM_TYPE].final("before") for runs in found.values())
    clear = 0
    for runs in found.values():
        own, other = runs[RESERVOIR].interval(), runs[OAM_TYPE].interval()
        clear += own is not None and other is not None and own[2] < other[1]
    text = (
        "A reservoir for each stratum beside one reservoir of as many slots without strata, the same step: "
        f"R_{{T}} is lower with strata on {lower} of {len(found)} streams; the exponent is clearly lower, with "
        f"intervals that do not overlap, on {clear}."
    )
    return Finding(text, graded(2 * clear > len(found), 2 * lower > len(found)))


def figures(results: Results) -> Finding:
    """The algorithm with the least regret on sorted streams."""
    found = {stream: runs for stream, runs in long_streams(results, FIFO, order="sorted").items() if rivals_of(runs)}
    if not found:
        return too_short(results, "regret")
    ahead = sum(leads(runs, "after") for runs in found.values())
    defined = sum(leads(runs) for runs in found.values())
    best = [_least(runs, lambda run: run.final("after")) for runs in found.values()]
    flattest = [_least(runs, lambda run: (run.interval("_after") or (np.inf,))[0]) for runs in found.values()]
    text = (
        f"On sorted streams R_{{T}} with w_{{t}}, as in the caption, is least with FPOGD (FIFO) on "
        f"{ahead} of {len(found)}, by the definition, w_{{t−1}}, on {defined}. The least is that of "
        f"{_counted(best)}; the lowest exponent that of {_counted(flattest)}."
    )
    return Finding(text, graded(ahead == len(found), 2 * ahead > len(found)))


def _least(runs: Runs, key: Callable[[Run], float]) -> str:
    """The algorithm with the smallest ``key``: FPOGD with FIFO, or another one of the paper."""
    some = {FIFO: runs[FIFO], **rivals_of(runs)}
    return min(some, key=lambda name: key(some[name]))


def _counted(names: list[str]) -> str:
    found = sorted(dict.fromkeys(names), key=names.count, reverse=True)
    return listed([f"{name} ({names.count(name)})" for name in found])


def correlations(results: Results) -> dict[Stream, float]:
    """The rank correlation of error and regret over the algorithms that take the same step on average."""
    made = {}
    for stream, runs in long_streams(results).items():
        pairs = [(float(run.whole["error"]), run.final("before")) for name, run in runs.items()
                 if name in BY_CLASS and "error" in run.whole and run.curve]  # fmt: skip
        if min(len({pair[k] for pair in pairs}) for k in (0, 1)) > 1:
            errors, regrets = (rankdata(column) for column in zip(*pairs, strict=True))
            made[stream] = float(np.corrcoef(errors, regrets)[0, 1])
    return made


def variance_and_regret(results: Results) -> Finding:
    """Whether a smaller error means less regret."""
    found = correlations(results)
    if not found:
        return too_short(results, "regret")
    mean = float(np.mean(list(found.values())))
    positive = sum(value > 0 for value in found.values())
    text = (
        "Rank correlation of the mean squared error of the gradients and R_{T} over the algorithms that take the same "
        f"step in the mean, whole history and fresh draws among them: {mean:.2f} in the mean over {len(found)} "
        f"streams, from {min(found.values()):.2f} to {max(found.values()):.2f}, and positive on {positive}."
    ).replace(" -", " −")
    return Finding(text, graded(mean >= 0.5 and 4 * positive >= 3 * len(found), mean > 0.2))


def coupling(results: Results) -> Finding:
    """A reservoir against as many fresh draws for each row."""
    found = long_streams(results, OAM_TYPE, FRESH)
    if not found:
        return too_short(results, "regret")
    ratios = {stream: runs[OAM_TYPE].final("before") / runs[FRESH].final("before") for stream, runs in found.items()}
    near = [stream for stream, ratio in ratios.items() if abs(ratio - 1) <= 0.1]
    reach = [runs[OAM_TYPE].within_reach / runs[FRESH].within_reach
             for runs in found.values() if runs[FRESH].within_reach > 0]  # fmt: skip
    single = [runs["Yang, opposite"].final("before") / runs[FRESH].final("before")
              for runs in found.values() if "Yang, opposite" in runs]  # fmt: skip
    text = (
        "A reservoir of each class is what w was trained on; fresh draws for each row are independent of w. R_{T} "
        f"of the former is {min(ratios.values()):.2f} to {max(ratios.values()):.2f} times that of the latter, within a "
        f"tenth on {len(near)} of {len(found)} streams."
    )
    if reach:
        text += f" Against weights within reach instead of w⋆, it is {min(reach):.2f} to {max(reach):.2f} times."
    if single:
        text += (
            f" One slot for each class, the newest example, fewer than log T, has {min(single):.2f} to "
            f"{max(single):.2f} times the regret of fresh draws."
        )
    return Finding(text, graded(len(near) == len(found), 2 * len(near) > len(found)))


def robustness(results: Results) -> Finding:
    """The effect of sorting on the regret, and the error of the gradient."""
    found = long_streams(results, FIFO)
    pairs = [(runs, found[other]) for stream, runs in found.items() if stream.order == "i.i.d."
             and (other := stream._replace(order="sorted")) in found]  # fmt: skip
    if not pairs:
        return too_short(results, "regret")
    ratios = [_ratio(pair, FIFO) for pair in pairs]
    rivals = [_ratio(pair, name) for pair in pairs for name in RIVALS if all(name in runs for runs in pair)]
    worst, own, typical = max(ratios), float(np.median(ratios)), float(np.median(rivals or ratios))
    text = (
        f"Sorting changes R_{{T}} of FPOGD with FIFO by a factor of {min(ratios):.2f} to {worst:.2f} "
        f"(median {own:.2f}), that of the others by {typical:.2f} in the median."
    )
    errors = mean_errors(results, "own")
    if errors:
        text += f" Its gradients have the least error of the paper's buffers on {of(least_of(errors), len(errors))}."
    return Finding(text, graded(worst <= 1.1 and own <= typical, own <= typical))


def _ratio(pair: tuple[Runs, Runs], system: str) -> float:
    """The ratio of the regret on the sorted stream to that on the shuffled one."""
    return pair[1][system].final("before") / pair[0][system].final("before")


CLAIMS = (
    Claim(
        "sublinear", "Abstract",
        "FPOGD “extends to kernel online pairwise learning while improving the sublinear regret”.",
        sublinear,
        "holds if the interval of the exponent is below 1 on every stream and the regret the least of the paper's "
        "buffers on most, in part if one of both.",
        "figure-regret",
    ),
    Claim(
        "sublinear-buffer", "Introduction, contribution 1",
        "“Our algorithm achieves sublinear regret with a buffer size of O(s).”",
        sublinear_buffer,
        "holds if the interval of the exponent is below 1 with FIFO on every stream, in part if on most.",
        "figure-regret",
    ),
    Claim(
        "control", "Introduction, contribution 2",
        "“We address variance impact on regret and propose online stratified sampling to control and improve the "
        "regret rate.”",
        control,
        "holds if strata clearly lower the exponent on most streams, in part if they lower R_{T} on most.",
        "figure-regret",
    ),
    Claim(
        "variance-and-regret", "Problem setting, Lemma 2",
        "“Reducing the variance of the stochastic gradient can improve the regret of buffer online pairwise "
        "learning.”",
        variance_and_regret,
        "holds if the mean rank correlation is at least 0.5 and that of three streams in four positive, in part if the "
        "mean is above 0.2.",
        "figure-regret",
    ),
    Claim(
        "regret-figures", "Experiments, Figures 2 and 5",
        "“Our approach exhibits stronger sublinear regret in the non-i.i.d. setting compared to other algorithms.”",
        figures,
        "holds if the regret after the step is the least of the paper's buffers on every sorted stream, in part if on "
        "most.",
        "figure-regret-after",
    ),
    Claim(
        "coupling", "Appendix A, after the proof of Theorem 5",
        "The coupling of model and buffer has a minimal impact, and a buffer of at least log T is needed because of "
        "it.",
        coupling,
        "holds if the regret of a kept reservoir is within a tenth of that of fresh draws on every stream, in part if "
        "on most.",
        "figure-regret",
    ),
    Claim(
        "robustness", "Appendix B, additional data sets",
        "The figures show “the stability of our algorithm” and its “adaptability and robustness … across different "
        "data distribution scenarios”.",
        robustness,
        "holds if sorting raises the regret by no more than a tenth on any set and by no more than it does others' in "
        "the median, in part if the latter.",
        "figure-regret",
    ),
)  # fmt: skip
