"""Claims on curves: time, number of features, number of strata."""

from math import log

import numpy as np
from scipy.stats import rankdata

from pairloom.theory import features_needed
from reproduction.buffers import CENTROID, FIFO, QUEUE, RESERVOIR
from reproduction.cells import Record
from reproduction.clusters import STRATA
from reproduction.report.buffers import mean_errors
from reproduction.report.claims.accuracy import ONLINE
from reproduction.report.claims.base import FEWEST_SETS, Claim, Finding, Verdict, graded, too_few
from reproduction.report.claims.comparisons import counted
from reproduction.report.curves import curves_of, rows_of
from reproduction.report.estimates import compared
from reproduction.report.measured import GROUPS, KERNEL, Measured, by_dataset, known
from reproduction.report.strata import bound, final_auc, relative_error
from reproduction.report.wording import count, of, signed, span
from reproduction.results import Results

Curves = dict[str, list[Record]]

POINT = 0.01
"""One point of AUC x 100."""

TIE = 0.001
"""On one fold, an AUC within a tenth of a point of the highest counts as the highest."""


def _curves(results: Results) -> dict[str, Curves]:
    """Return data set -> system of the paper -> curve on the first fold, if FPOGD with a kernel has one."""
    records = [one for one in results.read("auc-time") if known(one, "auc") and one["fold"] == 0
               and one.get("system") in GROUPS["in the paper"]]  # fmt: skip
    found = {name: curves_of(own) for name, own in by_dataset(records).items()}
    measured = Measured(results)
    return {measured.title(name): curves for name, curves in found.items() if KERNEL in curves}


def _lead(curves: Curves) -> float | None:
    """Return the share of the time, on a logarithmic scale, in which FPOGD with a kernel has the highest AUC so far."""
    rivals = [system for system in curves if not system.startswith("FPOGD")]
    positive = {name: [one for one in curve if one["seconds"] > 0] for name, curve in curves.items()}
    if not rivals or not all(positive.values()):
        return None
    start = positive[KERNEL][0]["seconds"]
    end = max(curve[-1]["seconds"] for curve in positive.values())
    times = np.geomspace(start, max(end, start), 200)

    def held(system: str) -> np.ndarray:
        seconds = [one["seconds"] for one in positive[system]]
        aucs = np.array([0.5, *(one["auc"] for one in positive[system])])
        return aucs[np.searchsorted(seconds, times, side="right")]

    best = np.max([held(system) for system in rivals], axis=0)
    return float(np.mean(held(KERNEL) >= best - TIE))


def against_time(results: Results) -> Finding:
    """The share of the time in which FPOGD leads."""
    shares = {name: share for name, curves in _curves(results).items() if (share := _lead(curves)) is not None}
    if len(shares) < FEWEST_SETS:
        return too_few(results, "auc-time", shares)
    leads = [name for name, share in shares.items() if share > 0.5]
    least_to_most = span(list(shares.values()), lambda value: f"{100 * value:.0f} %")
    text = (
        "One fold. FPOGD with a kernel has the highest AUC of the paper's systems, or is within 0.1 of it, for most of "
        f"the time (logarithmic, from its first evaluation) on {counted(leads, shares)}; its "
        f"share is {least_to_most}."
    )
    return Finding(text, graded(len(leads) == len(shares), 2 * len(leads) >= len(shares)))


def _reached(curve: list[Record], auc: float) -> Record:
    """Return the first record with this AUC."""
    return next(one for one in curve if one["auc"] >= auc)


def fast(results: Results) -> Finding:
    """Rows and time to one point below the lower of two final AUCs, against each online rival with all rows."""
    fewer: dict[str, list[bool]] = {"row": [], "seconds": []}
    sets = set()
    for name, curves in _curves(results).items():
        ours = curves[KERNEL]
        for other in (curves[one] for one in ONLINE if one in curves and curves[one][-1]["row"] == ours[-1]["row"]):
            target = min(ours[-1]["auc"], other[-1]["auc"]) - POINT
            sets.add(name)
            for column, hits in fewer.items():
                hits.append(_reached(ours, target)[column] <= _reached(other, target)[column])
    if len(sets) < FEWEST_SETS:
        return too_few(results, "auc-time", sets)
    rows, time = (sum(hits) for hits in fewer.values())
    n = len(fewer["row"])
    text = (
        "One fold. To come within one point of the lower of both final AUCs, FPOGD with a kernel needs no more rows "
        f"than an online rival of the paper in {rows} of {n} comparisons on {len(sets)} sets, and no more time in "
        f"{time}."
    )
    return Finding(text, graded(min(rows, time) > n / 2, max(rows, time) > n / 2))


def enough_features(results: Results) -> Finding:
    """The largest gain from the measured D nearest to sqrt(T) ln T to a larger one."""
    records = [one for one in results.read("features") if one.get("axis") == "D" and known(one, "auc")]
    texts, flat = [], []
    for name, here in by_dataset(records).items():
        mark = features_needed(rows_of(name, here))
        folds = {value: {(one["fold"], 0): float(one["auc"]) for one in here if one["value"] == value}
                 for value in sorted({float(one["value"]) for one in here})}  # fmt: skip
        start = min(folds, key=lambda value: abs(log(value / mark)))
        gains = {value: gain for value in folds if value > start and (gain := compared(folds[value], folds[start]))}
        if gains:
            top = max(gains, key=lambda value: gains[value].mean)
            flat.append(all(gain.mean <= POINT / 2 or gain.clear <= 0 for gain in gains.values()))
            sure = "significant" if gains[top].clear > 0 else "not significant"
            steps = f"from {count(start)} (√T ln T = {count(mark)}) to {count(top)}"
            texts.append(f"{name} {signed(gains[top].mean)} {steps}, {sure}")
    if not flat:
        return too_few(results, "features")
    text = "AUC × 100 gained from the measured D nearest to √T ln T (logarithmic) to the best larger one"
    return Finding(f"{text}: {'; '.join(texts)}.", graded(all(flat), any(flat)))


def _capped(results: Results) -> dict[str, list[Record]]:
    return by_dataset([one for one in results.read("clusters") if one.get("axis") == "max_strata"])


def _rising(pairs: dict[float, float]) -> float:
    """Return the rank correlation of a quantity with the cap; 0 if it is constant."""
    values = list(pairs.values())
    return float(np.corrcoef(np.arange(len(values)), rankdata(values))[0, 1]) if len(set(values)) > 1 else 0.0


def _near_peak(records: list[Record], column: str) -> dict[float, float]:
    """Return, for each cap, rows or seconds until half a point below the highest AUC, averaged over folds."""
    found: dict[float, list[float]] = {}
    cells = sorted({(float(one["value"]), one["fold"]) for one in records if known(one, "auc")})
    for cap, fold in cells:
        curve = sorted((one for one in records if known(one, "auc") and (one["value"], one["fold"]) == (cap, fold)),
                       key=lambda one: one["row"])  # fmt: skip
        peak = max(one["auc"] for one in curve)
        found.setdefault(cap, []).append(next(one[column] for one in curve if one["auc"] >= peak - POINT / 2))
    return {cap: float(np.mean(own)) for cap, own in found.items()}


def slower_with_more(results: Results) -> Finding:
    """The trend of rows and time to the peak of AUC, over all folds."""
    texts = []
    for name, records in _capped(results).items():
        rows, seconds = (_near_peak(records, column) for column in ("row", "seconds"))
        if len(rows) > 2:
            trends = [f"{_rising(one):+.2f}".replace("-", "−") for one in (rows, seconds)]
            texts.append(
                f"on {name}, rank correlation of s with the rows until half a point below the peak {trends[0]}, with "
                f"the time {trends[1]}"
            )
    if not texts:
        return too_few(results, "clusters")
    return Finding(f"Describes one figure. Here, mean over folds: {'; '.join(texts)}.", Verdict.DESCRIPTION)


def cap_and_variance(results: Results) -> Finding:
    """Whether a smaller cap reduces the error of the gradient, and the AUC."""
    texts, verdicts = [], []
    for name, records in _capped(results).items():
        errors, aucs = relative_error(records), {cap: float(np.mean(one)) for cap, one in final_auc(records).items()}
        if len(errors) < 2 or len(aucs) < 2:
            continue
        low, high = min(errors), max(errors)
        cost = max(aucs.values()) - aucs[min(aucs)]
        verdicts.append((_rising(errors) > 0.5, cost <= POINT))
        texts.append(
            f"on {name} the squared error of the gradient, relative to the gradient, is {errors[low]:.3g} with s = "
            f"{low:g}, {errors[high]:.3g} with s = {high:g}; s = {min(aucs):g} loses {100 * cost:.2f} points of AUC"
        )
    if not verdicts:
        return too_few(results, "clusters")
    verdict = graded(all(all(one) for one in verdicts), all(any(one) for one in verdicts))
    return Finding(f"O{'; '.join(texts)[1:]}.", verdict)


def strata_reduce(results: Results) -> Finding:
    """Strata against a queue of the newest rows with as many slots."""
    found = {path: {name: own for name, own in mean_errors(results, path).items() if FIFO in own and QUEUE in own}
             for path in ("common", "own")}  # fmt: skip
    sets = min(found.values(), key=len)
    if len(sets) < FEWEST_SETS:
        return too_few(results, "variance", sets)
    lower = {
        system: [[name for name, own in errors.items() if system in own and own[system].mean < own[QUEUE].mean]
                 for errors in found.values()]
        for system in (FIFO, RESERVOIR, CENTROID)
    }  # fmt: skip
    cases = sum(map(len, found.values()))
    ratio = float(np.median([own[FIFO].mean / own[QUEUE].mean for own in found["common"].values()]))
    common, along = (of(hits, len(errors)) for hits, errors in zip(lower[FIFO], found.values(), strict=True))
    below = {system: sum(map(len, hits)) for system, hits in lower.items()}
    text = (
        "More slots help any buffer. Against a queue of the newest rows with as many, FIFO strata have a lower mean "
        f"error of the gradient on {common} along a common path (median ratio {ratio:.2f}), on {along} along their "
        f"own. Of the {cases} cases, reservoirs are lower in {below[RESERVOIR]}, centroids, not in the paper, in "
        f"{below[CENTROID]}."
    )
    best = max(below[FIFO], below[RESERVOIR])
    return Finding(text, graded(best == cases, 2 * best > cases))


def fewer_than_bound(results: Results) -> Finding:
    """The number of strata against the paper's bound."""
    records = [
        one for one in results.read("clusters") if one.get("axis") == "eps" and one["system"] == STRATA["features"]
    ]
    if not records:
        return too_few(results, "clusters")
    # One more, because the row that is being learned may start a stratum.
    over = [one for one in records if one["n_strata"] > bound(one, "bound_paper") + 1]
    trivial = [one for one in records if bound(one, "bound_paper") >= 0.999 * one["row"]]
    text = (
        f"Strata in feature space exceed the paper's bound at {len(over)} of {len(records)} measured points; at "
        f"{len(trivial)} it is t − 1, which is trivial."
    )
    verdict = graded(not over, 2 * len(over) < len(records))
    return Finding(text, Verdict.VACUOUS if not over and len(trivial) == len(records) else verdict)


CLAIMS = (
    Claim(
        "fast", "Introduction, contribution 1",
        "“We present an online pairwise algorithm for non-linear models with fast convergence.”",
        fast,
        "holds if no slower in most comparisons, in rows and in time; in part if in one.",
        "figure-auc-time", central=True,
    ),
    Claim(
        "strata-reduce", "Method, online stratified sampling",
        "“Stratified sampling reduces the variance of the stochastic gradient estimates ….”",
        strata_reduce,
        "holds if the paper's strata (FIFO or reservoirs) are below the queue in all cases, in part if in most.",
        "figure-variance-common", central=True,
    ),
    Claim(
        "fewer-strata", "Regret analysis, Remark 7",
        "“In practice, the actual number of clusters obtained may be lower due to the data distribution.”",
        fewer_than_bound,
        "holds if never above, in part if at less than half of the points; vacuous if the bound is always t − 1.",
        "figure-strata-count",
    ),
    Claim(
        "against-time", "Experiments, Figures 2 and 6",
        "“The AUC vs. time comparison … showing superior performance of the proposed method.”",
        against_time, "holds if it leads for most of the time on every set, in part if on half of the sets.",
        "figure-auc-time", central=True,
    ),
    Claim(
        "slower-with-more", "Appendix B, number of clusters",
        "“As the number of clusters increases, the AUC score exhibits a gradual ascent, taking more time ….”",
        slower_with_more, "", "figure-strata-along",
    ),
    Claim(
        "cap-and-variance", "Appendix B, number of clusters",
        "“By constraining the number of clusters, we achieve a noticeable reduction in variance while still "
        "maintaining … performance.”",
        cap_and_variance,
        "holds if the error rises with s and the smallest s loses at most one point; in part if one.",
        "figure-strata-cap",
    ),
    Claim(
        "enough-features", "Appendix B, number of random features",
        "“D = O(√T log T) is sufficient …, as the AUC does not improve significantly beyond this point.”",
        enough_features,
        "holds if no larger D gains significantly and more than half a point on any set; in part if on some.",
        "figure-features", central=True,
    ),
)  # fmt: skip
