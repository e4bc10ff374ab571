"""Claims on curves: time, number of features, number of strata."""

from math import isnan

import numpy as np
from scipy.stats import rankdata

from pairloom.theory import features_needed
from reproduction.cells import Record
from reproduction.clusters import STRATA
from reproduction.report.claims.base import Claim, Finding, Verdict, graded, without
from reproduction.report.curves import curves_of, rows_of
from reproduction.report.estimates import Difference, compared
from reproduction.report.measured import GROUPS, KERNEL, by_dataset, known
from reproduction.report.strata import bound, final_auc, relative_error
from reproduction.report.wording import count, duration, listed, number, of, signed
from reproduction.results import Results


def _curves(results: Results) -> dict[str, dict[str, list[Record]]]:
    """Data set -> system of the paper -> curve, if FPOGD with a kernel has one."""
    records = [
        one for one in results.read("auc-time") if known(one, "auc") and one.get("system") in GROUPS["in the paper"]
    ]
    found = {name: curves_of(own) for name, own in by_dataset(records).items()}
    return {name: curves for name, curves in found.items() if KERNEL in curves}


def _lead(curves: dict[str, list[Record]]) -> float | None:
    """The share of the time, on a logarithmic scale, in which FPOGD with a kernel has the highest AUC so far."""
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
    return float(np.mean(held(KERNEL) >= best))


def against_time(results: Results) -> Finding:
    """The share of the time in which FPOGD leads."""
    shares = {name: share for name, curves in _curves(results).items() if (share := _lead(curves)) is not None}
    if not shares:
        return without("auc-time")
    leads = [name for name, share in shares.items() if share > 0.5]
    shown = listed([f"{name} {100 * share:.0f} %" for name, share in shares.items()])
    text = (
        "From its first evaluation on, FPOGD with a kernel has the highest AUC of the paper's systems for most of "
        f"the time (logarithmic) on {of(leads, len(shares))}. Its shares of the time: {shown}."
    )
    return Finding(text, graded(len(leads) == len(shares), 2 * len(leads) >= len(shares)))


def fast(results: Results) -> Finding:
    """The share of a stream that is needed."""
    shares = {}
    for name, curves in _curves(results).items():
        curve = curves[KERNEL]
        near = next(one["row"] for one in curve if one["auc"] >= curve[-1]["auc"] - 0.01)
        shares[name] = near / curve[-1]["row"]
    if not shares:
        return without("auc-time")
    middle = float(np.median(list(shares.values())))
    shown = listed([f"{name} {100 * share:.2g} %" for name, share in shares.items()])
    text = (
        f"FPOGD with a kernel is within one point of its final AUC after {100 * middle:.0f} % of the rows (median): "
        f"{shown}."
    )
    return Finding(text, graded(middle <= 0.25, middle <= 0.5))


def enough_features(results: Results) -> Finding:
    """The gain from the first D at or above sqrt(T) ln T to the largest D."""
    records = [one for one in results.read("features") if one.get("axis") == "D" and known(one, "auc")]
    if not records:
        return without("features")
    gains: list[Difference] = []
    texts = []
    for name, here in by_dataset(records).items():
        mark = features_needed(rows_of(name, here))
        values = sorted({float(one["value"]) for one in here})
        first, last = next((value for value in values if value >= 0.9 * mark), values[-1]), values[-1]
        folds = {
            value: {(one["fold"], 0): one["auc"] for one in here if one["value"] == value} for value in (first, last)
        }
        gain = compared(folds[last], folds[first])
        if gain is not None and first < last:
            gains.append(gain)
            error = "" if isnan(gain.error) else f" ± {100 * gain.error:.2f}"
            span = f"from D = {count(first)} to {count(last)}"
            texts.append(f"on {name} (√T ln T = {count(mark)}) {signed(gain.mean)}{error} {span}")
    if not gains:
        return Finding("The values of D measured do not reach beyond √T ln T.", Verdict.UNTESTED)
    flat = [gain for gain in gains if gain.mean <= 0.005 or gain.clear <= 0]
    return Finding(f"AUC × 100 gained: {listed(texts)}.", graded(len(flat) == len(gains), bool(flat)))


def _capped(results: Results) -> dict[str, list[Record]]:
    return by_dataset([one for one in results.read("clusters") if one.get("axis") == "max_strata"])


def _rising(pairs: dict[float, float]) -> float:
    """Rank correlation of a quantity with the cap; 0 if it is constant."""
    values = list(pairs.values())
    return float(np.corrcoef(np.arange(len(values)), rankdata(values))[0, 1]) if len(set(values)) > 1 else 0.0


def slower_with_more(results: Results) -> Finding:
    """Rows and time until the AUC is near its peak, for each cap."""
    texts, trends = [], []
    for name, records in _capped(results).items():
        times = {}
        for cap in sorted({float(one["value"]) for one in records}):
            curve = sorted((one for one in records if one["value"] == cap and known(one, "auc") and one["fold"] == 0),
                           key=lambda one: one["row"])  # fmt: skip
            if curve:
                peak = max(one["auc"] for one in curve)
                times[cap] = next(one for one in curve if one["auc"] >= peak - 0.005)
        if len(times) < 3:
            continue
        rows, seconds = ({cap: float(one[key]) for cap, one in times.items()} for key in ("row", "seconds"))
        trends.append((_rising(rows), _rising(seconds)))
        low, high = min(times), max(times)
        trend = [f"{one:+.2f}".replace("-", "−") for one in trends[-1]]
        texts.append(
            f"on {name}, within half a point of its peak after {count(rows[low])} rows ({duration(seconds[low])}) with "
            f"s = {low:g} and {count(rows[high])} rows ({duration(seconds[high])}) with s = {high:g}; rank correlation "
            f"with s {trend[0]} in rows, {trend[1]} in time"
        )
    if not trends:
        return without("clusters")
    holds = all(min(pair) > 0.5 for pair in trends)
    return Finding(f"O{'; '.join(texts)[1:]}.", graded(holds, all(max(pair) > 0.5 for pair in trends)))


def cap_and_variance(results: Results) -> Finding:
    """Whether a smaller cap reduces the error of the gradient, and the AUC."""
    texts, verdicts = [], []
    for name, records in _capped(results).items():
        errors, aucs = relative_error(records), {cap: float(np.mean(one)) for cap, one in final_auc(records).items()}
        if len(errors) < 2 or len(aucs) < 2:
            continue
        low, high = min(errors), max(errors)
        cost = max(aucs.values()) - aucs[min(aucs)]
        verdicts.append((_rising(errors) > 0.5, cost <= 0.01))
        texts.append(
            f"on {name} the squared error of the gradient, as a share of the squared gradient, is {errors[low]:.3g} "
            f"with s = {low:g} and {errors[high]:.3g} with s = {high:g}; s = {min(aucs):g} loses {100 * cost:.2f} "
            "points of AUC to the best cap"
        )
    if not verdicts:
        return without("clusters")
    return Finding(
        f"O{'; '.join(texts)[1:]}.", graded(all(all(one) for one in verdicts), all(any(one) for one in verdicts))
    )


def strata_reduce(results: Results) -> Finding:
    """Whether more strata reduce the error of the gradient."""
    texts, falls = [], []
    for name, records in _capped(results).items():
        errors = relative_error(records)
        if len(errors) < 2:
            continue
        low, high = min(errors), max(errors)
        falls.append((errors[high] < errors[low], _rising(errors)))
        texts.append(f"on {name} {errors[low]:.3g} with s = {low:g} and {errors[high]:.3g} with s = {high:g}")
    if not falls:
        return without("clusters")
    text = f"Squared error of the gradient against that of all pairs, as a share of the latter: {'; '.join(texts)}."
    holds = all(lower and trend < -0.5 for lower, trend in falls)
    return Finding(text, graded(holds, any(lower for lower, _ in falls)))


def fewer_than_bound(results: Results) -> Finding:
    """The number of strata against the paper's bound."""
    records = [
        one for one in results.read("clusters") if one.get("axis") == "eps" and one["system"] == STRATA["features"]
    ]
    if not records:
        return without("clusters")
    # One more, because the row that is being learned may start a stratum.
    over = [one for one in records if one["n_strata"] > bound(one, "bound_paper") + 1]
    loosest = max(bound(one, "bound_paper") / max(one["n_strata"], 1) for one in records)
    finals = {(one["dataset"], float(one["value"])): one for one in sorted(records, key=lambda one: one["row"])}
    shown = listed([f"{count(one['n_strata'])} with ε = {share:g} of the mean on {name}"
                   for (name, share), one in sorted(finals.items())])  # fmt: skip
    text = (
        f"Strata at the end of the stream, or at 2,048: {shown}. Above the paper's bound at {len(over)} of "
        f"{len(records)} points of time; at its loosest the bound is {number(loosest)} times the number of strata. "
        "That data keep below it does not make it a bound: see the claim below."
    )
    return Finding(text, graded(not over, 2 * len(over) < len(records)))


CLAIMS = (
    Claim(
        "fast", "Introduction, contribution 1",
        "“We present an online pairwise algorithm for non-linear models with fast convergence.”",
        fast, "holds if a quarter of the rows is enough in the median, in part if half is.", "figure-auc-time",
    ),
    Claim(
        "strata-reduce", "Method, online stratified sampling",
        "“Stratified sampling reduces the variance of the stochastic gradient estimates. … we effectively minimize "
        "the variance of the stochastic gradient.”",
        strata_reduce,
        "holds if the error falls as s grows (rank correlation below −0.5) on every set, in part if it is lower "
        "with most strata on some.",
        "figure-strata-cap",
    ),
    Claim(
        "fewer-strata", "Regret analysis, Remark 7",
        "“In practice, the actual number of clusters obtained may be lower due to the data distribution.”",
        fewer_than_bound,
        "holds if the number of strata never passes the bound, in part if it does for less than half of the stream.",
        "figure-strata-count",
    ),
    Claim(
        "against-time", "Experiments, Figures 2 and 6",
        "“The AUC vs. time comparison of the algorithms in different datasets showing superior performance of the "
        "proposed method.”",
        against_time,
        "holds if it leads for more than half of the time on every set, in part if on half of the sets.",
        "figure-auc-time",
    ),
    Claim(
        "slower-with-more", "Appendix B, number of clusters",
        "“As the number of clusters increases, the AUC score exhibits a gradual ascent, taking more time to reach "
        "its peak value.”",
        slower_with_more,
        "holds if rows and time to the peak both rise with s (rank correlation above 0.5), in part if one does.",
        "figure-strata-along",
    ),
    Claim(
        "cap-and-variance", "Appendix B, number of clusters",
        "“By constraining the number of clusters, we achieve a noticeable reduction in variance while still "
        "maintaining a commendable level of performance.”",
        cap_and_variance,
        "two parts: the error of the gradient rises with s, and the tightest cap loses at most one point of AUC; "
        "holds if both, in part if one.",
        "figure-strata-cap",
    ),
    Claim(
        "enough-features", "Appendix B, number of random features",
        "“D = O(√T log T) is sufficient for a good approximation of the kernel, as the AUC does not improve "
        "significantly beyond this point.”",
        enough_features,
        "holds if from √T ln T to the largest D the AUC gains at most half a point, or nothing clear, on every set; "
        "in part if on some.",
        "figure-features",
    ),
)  # fmt: skip
