"""Claims on the regret of buffer algorithms along real streams."""

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.stats import rankdata

from reproduction.buffers import BY_CLASS, CENTROID, FIFO, FRESH, OAM_TYPE, QUEUE, RESERVOIR, RIVALS
from reproduction.report.buffers import CONSTANT, ROOT, Run, Stream, long_streams
from reproduction.report.claims.base import FEWEST_SETS, Claim, Finding, Verdict, graded, too_few
from reproduction.report.wording import number, of, span
from reproduction.results import Results

Streams = Mapping[Stream, dict[str, Run]]

TIE = 0.01
"""Two values that differ by no more than this share are a tie."""


def sets_of(found: Iterable[Stream]) -> list[str]:
    """Return the data sets of some streams, each once."""
    return list(dict.fromkeys(stream.dataset for stream in found))


def mostly(counts: Mapping[Stream, bool]) -> list[str]:
    """Return the data sets on most of whose streams something holds."""
    return [name for name in sets_of(counts)
            if np.mean([holds for stream, holds in counts.items() if stream.dataset == name]) > 0.5]  # fmt: skip


def relative(found: Streams, system: str, other: str, column: str = "before") -> dict[str, float]:
    """Return the regret of one algorithm as a multiple of another's on each set: the geometric mean over its streams.

    Streams where one of the two is not known, or not positive, are left out.
    """
    logs: dict[str, list[float]] = {}
    for stream, runs in found.items():
        if system in runs and other in runs:
            own, rival = runs[system].final(column), runs[other].final(column)
            if own > 0 and rival > 0:
                logs.setdefault(stream.dataset, []).append(float(np.log(own / rival)))
    return {name: float(np.exp(np.mean(values))) for name, values in logs.items()}


def against_best(found: Streams, column: str = "before") -> dict[str, float]:
    """Return the regret of FPOGD with FIFO as a multiple of the lowest of the paper's other buffers, on each set."""
    ratios = [relative(found, FIFO, name, column) for name in RIVALS]
    return {name: max(one[name] for one in ratios if name in one)
            for name in sets_of(found) if any(name in one for one in ratios)}  # fmt: skip


def below(ratios: Mapping[str, float], limit: float = 1.0) -> list[str]:
    """Return the data sets with a ratio below a limit."""
    return [name for name, ratio in ratios.items() if ratio < limit]


def spread(ratios: Mapping[str, float]) -> str:
    """Return a span of ratios with two decimals."""
    return span(list(ratios.values()), lambda one: f"{one:.2f}")


def sublinear(results: Results) -> Finding:
    """Whether exponents are below 1, and other buffers have more regret."""
    found = long_streams(results, FIFO)
    best, sets = against_best(found), sets_of(found)
    if len(best) < FEWEST_SETS:
        return too_few(results, "regret", best)
    counts = {stream: runs[FIFO].sublinear() for stream, runs in found.items()}
    ahead = below(best)
    queue = relative(found, QUEUE, FIFO)
    text = (
        f"The 95 % interval of FIFO's exponent of R_{{t}} is below 1 on {sum(counts.values())} of {len(counts)} "
        f"streams of {len(sets)} sets. Its R_{{T}}, as a mean over a set's streams, is the lowest of the paper's "
        f"buffers on {of(ahead, len(best))}."
    )
    if queue:
        text += f" As many newest rows without strata, not in the paper, have {spread(queue)} times it."
    every, most = len(mostly(counts)) == len(sets), 2 * len(ahead) > len(best)
    return Finding(text, graded(every and most, every or most))


def sublinear_buffer(results: Results) -> Finding:
    """The exponents of FPOGD's three representatives, and of the other buffers."""
    found = long_streams(results, FIFO)
    sets = sets_of(found)
    if len(sets) < FEWEST_SETS:
        return too_few(results, "regret", sets)
    counts = {name: [runs[name].sublinear() for runs in found.values() if name in runs]
              for name in (FIFO, RESERVOIR, CENTROID, *RIVALS)}  # fmt: skip
    values = [known[0] for runs in found.values() if (known := runs[FIFO].interval())]
    others = [one for name in RIVALS for one in counts[name]]
    text = (
        f"The 95 % interval of the exponent is below 1 with FIFO on {sum(counts[FIFO])} of {len(found)} streams"
        + (f" (exponents {span(values, lambda one: f'{one:.2f}')})" if values else "")
        + f", reservoirs on {sum(counts[RESERVOIR])}, centroids on {sum(counts[CENTROID])}, the paper's other buffers "
        f"on {sum(others)} of {len(others)}."
    )
    mild = mostly({stream: runs[FIFO].sublinear() for stream, runs in found.items()})
    return Finding(text, graded(len(mild) == len(sets), 2 * len(mild) > len(sets)))


def control(results: Results) -> Finding:
    """FIFO strata against the newest rows, and reservoirs in strata against one reservoir, with as many slots."""
    found = long_streams(results, FIFO, QUEUE, RESERVOIR, OAM_TYPE)
    queue, reservoir = relative(found, FIFO, QUEUE), relative(found, RESERVOIR, OAM_TYPE)
    sets = [name for name in queue if name in reservoir]
    if len(sets) < FEWEST_SETS:
        return too_few(results, "regret", sets)
    centroid = relative(found, CENTROID, QUEUE)
    lower = [below(ratios, 1 - TIE) for ratios in (queue, reservoir)]
    helped = [2 * len(names) > len(sets) for names in lower]
    verdict = graded(all(helped), any(helped))
    kinds = [f"{spread(ratios)} {word}" for order, word in (("i.i.d.", "shuffled"), ("sorted", "sorted"))
             if (ratios := relative(long_streams(results, FIFO, QUEUE, order=order), FIFO, QUEUE))]  # fmt: skip
    text = (
        "R_{T} of FIFO strata relative to as many newest rows without strata, means over a set's streams: "
        f"{', '.join(kinds)}; lower on {of(lower[0], len(sets))}. Reservoirs in strata relative to one reservoir: "
        f"{spread(reservoir)}, lower on {len(lower[1])}."
    )
    if centroid:
        text += f" Centroids relative to newest rows: {spread(centroid)}, lower on {len(below(centroid, 1 - TIE))}."
    return Finding(f"{text} {_CONTROL[verdict]}", verdict)


_CONTROL = {
    Verdict.HOLDS: "Strata lower the regret on most sets.",
    Verdict.IN_PART: "Strata lower the regret on most sets in one form only.",
    Verdict.FAILS: "On most sets strata do not lower the regret.",
}


def figures(results: Results) -> Finding:
    """The algorithm with the least regret on sorted streams."""
    every = long_streams(results, FIFO, order="sorted")
    steps = {step: {one: runs for one, runs in every.items() if one.step == step} for step in (CONSTANT, ROOT)}
    found = {step: streams for step, streams in steps.items() if streams}
    after, before = ({step: against_best(one, column) for step, one in found.items()} for column in ("after", "before"))
    sets = min(after.values(), key=len, default={})
    if len(sets) < FEWEST_SETS:
        return too_few(results, "regret", sets)
    level = 1 + TIE
    ahead, exact = ({step: below(one, level) for step, one in ratios.items()} for ratios in (after, before))
    text = (
        "FIFO's regret is the lowest of the paper's buffers and their forms by class, or within 1 % of it: "
        + "; ".join(
            f"with {_STEPS[step]} on {of(ahead[step], len(after[step]))} by the caption, with w_{{t}}, and on "
            f"{len(exact[step])} by the definition, with w_{{t−1}}"
            for step in found
        )
    )
    queue = relative(every, QUEUE, FIFO, "after")
    if queue:
        text += f". As many newest rows without strata have {spread(queue)} times it, less on {len(below(queue))}"
    all_sets = all(len(ahead[step]) == len(after[step]) for step in found)
    return Finding(f"{text}.", graded(all_sets, any(2 * len(ahead[step]) > len(after[step]) for step in found)))


_STEPS = {CONSTANT: "the constant step", ROOT: f"the step {ROOT}"}


def correlations(results: Results) -> dict[Stream, float]:
    """Return the rank correlation of error and regret over the algorithms that take the same step on average."""
    made = {}
    for stream, runs in long_streams(results).items():
        pairs = [(float(run.whole["error"]), run.final("before")) for name, run in runs.items()
                 if name in BY_CLASS and "error" in run.whole and run.curve]  # fmt: skip
        if pairs and min(len({pair[k] for pair in pairs}) for k in (0, 1)) > 1:
            errors, regrets = (rankdata(column) for column in zip(*pairs, strict=True))
            made[stream] = float(np.corrcoef(errors, regrets)[0, 1])
    return made


def variance_and_regret(results: Results) -> Finding:
    """Whether a smaller error means less regret."""
    found = correlations(results)
    means = {name: float(np.mean([value for stream, value in found.items() if stream.dataset == name]))
             for name in sets_of(found)}  # fmt: skip
    if len(means) < FEWEST_SETS:
        return too_few(results, "regret", means)
    mean, positive = float(np.mean(list(means.values()))), [name for name, value in means.items() if value > 0]
    text = (
        "Rank correlation of the gradient's mean squared error and R_{T}, over algorithms of the same mean step: "
        f"{number(round(mean, 2))} on average, {span([round(value, 2) for value in means.values()], number)} by set, "
        f"positive on {of(positive, len(means))}."
    )
    return Finding(text, graded(mean > 0 and 4 * len(positive) >= 3 * len(means), mean > 0))


def coupling(results: Results) -> Finding:
    """A reservoir against as many fresh draws for each row."""
    ratios = relative(found := long_streams(results, OAM_TYPE, FRESH), OAM_TYPE, FRESH)
    if len(ratios) < FEWEST_SETS:
        return too_few(results, "regret", ratios)
    near = [name for name, ratio in ratios.items() if abs(ratio - 1) <= 0.1]
    text = (
        f"A kept reservoir has {spread(ratios)} times the R_{{T}} of fresh draws for each row, which are independent "
        f"of w; within a tenth on {of(near, len(ratios))}."
    )
    if single := relative(found, "Yang, opposite", FRESH):
        text += f" The newest row alone, fewer than log T, has {spread(single)} times."
    return Finding(text, graded(len(near) == len(ratios), 2 * len(near) > len(ratios)))


def robustness(results: Results) -> Finding:
    """The effect of sorting on the regret."""
    own, queue, *rivals = (_sorting(results, name) for name in (FIFO, QUEUE, *RIVALS))
    if len(own) < FEWEST_SETS:
        return too_few(results, "regret", own)
    others = [ratio for one in rivals for ratio in one.values()] or list(own.values())
    typical, median = float(np.median(others)), float(np.median(list(own.values())))
    text = (
        f"Sorting multiplies R_{{T}} of FIFO by {spread(own)} (means over orders; median {median:.2f}), that of the "
        f"paper's other buffers by {typical:.2f} in the median"
        + (f", of the newest rows without strata by {spread(queue)}." if queue else ".")
    )
    return Finding(text, graded(max(own.values()) <= 1.1 and median <= typical, median <= typical))


def _sorting(results: Results, system: str) -> dict[str, float]:
    """Return the ratio of the mean regret on sorted streams to that on shuffled ones for each set, both steps alike."""
    logs: dict[str, dict[tuple[str, str], list[float]]] = {}
    for stream, runs in long_streams(results, system).items():
        if (value := runs[system].final("before")) > 0:
            logs.setdefault(stream.dataset, {}).setdefault((stream.step, stream.order), []).append(float(np.log(value)))
    found = {name: [float(np.mean(known[step, "sorted"]) - np.mean(known[step, "i.i.d."])) for step, _ in known
                    if (step, "sorted") in known and (step, "i.i.d.") in known]
             for name, known in logs.items()}  # fmt: skip
    return {name: float(np.exp(np.mean(values))) for name, values in found.items() if values}


CLAIMS = (
    Claim(
        "sublinear", "Abstract",
        "FPOGD “extends to kernel online pairwise learning while improving the sublinear regret”.",
        sublinear,
        "holds if below 1 on most streams of every set and the lowest on most sets, in part if one of both.",
        "figure-regret", central=True,
    ),
    Claim(
        "sublinear-buffer", "Introduction, contribution 1",
        "“Our algorithm achieves sublinear regret with a buffer size of O(s).”",
        sublinear_buffer,
        "holds if FIFO's is below 1 on most streams of every set, in part if of most sets.",
        "figure-regret", central=True,
    ),
    Claim(
        "control", "Introduction, contribution 2",
        "“We … propose online stratified sampling to control and improve the regret rate.”",
        control,
        "holds if FIFO and reservoirs have at least 1 % less with strata on most sets, in part if one.",
        "figure-regret", central=True,
    ),
    Claim(
        "variance-and-regret", "Problem setting, Lemma 2",
        "“… reducing the variance of the stochastic gradient can improve the regret …”",
        variance_and_regret,
        "“Can”: holds if the mean is positive, and three sets in four; in part if the mean is.",
        "figure-regret", central=True,
    ),
    Claim(
        "regret-figures", "Experiments, Figures 2 and 5",
        "“… stronger sublinear regret in the non-i.i.d. setting compared to other algorithms.”",
        figures,
        "holds if the regret after the step is the lowest, or within 1 % of it, on every set with both steps, in part "
        "if on most with one.",
        "figure-regret-after", central=True,
    ),
    Claim(
        "coupling", "Appendix A, after the proof of Theorem 5",
        "“… the impact [of the coupling of model and buffer] … is minimal”; the buffer must have at least log T.",
        coupling,
        "holds if within a tenth on every set, in part if on most.",
        "figure-regret",
    ),
    Claim(
        "robustness", "Appendix B, additional data sets",
        "“… the adaptability and robustness of our method across different data distribution scenarios.”",
        robustness,
        "holds if by at most 1.1 on every set and by no more than others' median; in part if the latter.",
        "figure-regret",
    ),
)  # fmt: skip
