"""Claims on the variance of the gradients of small buffers."""

from collections.abc import Mapping

from reproduction.buffers import CENTROID, FIFO, OAM_TYPE, QUEUE, RESERVOIR, RIVALS
from reproduction.report.buffers import averaged, certificates, mean_errors, on_path
from reproduction.report.claims.base import FEWEST_SETS, Claim, Finding, graded, too_few
from reproduction.report.claims.regret import TIE, below, spread
from reproduction.report.estimates import Difference, Estimate, compared
from reproduction.report.measured import by_dataset, known
from reproduction.report.wording import of
from reproduction.results import Results

Errors = dict[str, dict[str, Estimate]]


def least_of(errors: Errors, system: str = FIFO) -> list[str]:
    """Return the data sets where the mean error of an algorithm is below those of the other buffers of the paper."""
    return [name for name, own in errors.items()
            if system in own and all(own[system].mean < own[one].mean for one in RIVALS if one in own)]  # fmt: skip


def ratios(errors: Errors, system: str, other: str) -> dict[str, float]:
    """Return the mean error of one algorithm as a multiple of another's on each set."""
    return {name: own[system].mean / own[other].mean for name, own in errors.items()
            if system in own and other in own and own[other].mean > 0}  # fmt: skip


def differences(results: Results, path: str, system: str, other: str) -> dict[str, Difference]:
    """Return the difference of two mean errors on each set, by the corrected resampled t-test over folds."""
    found = {}
    for name, systems in on_path(results, path).items():
        runs = [{(one["fold"], 0): float(one["mean"]) for one in systems.get(key, []) if known(one, "mean")}
                for key in (system, other)]  # fmt: skip
        if difference := compared(*runs):
            found[name] = difference
    return found


def beaten(results: Results, path: str) -> list[str]:
    """Return the data sets where FIFO's error is significantly above that of another buffer of the paper.

    A single fold has no test: there any difference counts.
    """
    found = [differences(results, path, FIFO, rival) for rival in RIVALS]
    return [name for name in mean_errors(results, path)
            if any(one[name].clear > 0 or (not one[name].free and one[name].mean > 0)
                   for one in found if name in one)]  # fmt: skip


def figures(results: Results) -> Finding:
    """FIFO's error of the gradients beside the paper's buffers, the newest rows and the centroids."""
    found = {path: {name: own for name, own in mean_errors(results, path).items() if FIFO in own and {*RIVALS} & {*own}}
             for path in ("own", "common")}  # fmt: skip
    sets = [name for name in found["own"] if name in found["common"]]
    if len(sets) < FEWEST_SETS:
        return too_few(results, "variance", sets)
    own, common = (least_of(found[path]) for path in ("own", "common"))
    hits = len(own) + len(common)
    ties = sum(name not in beaten(results, path) for path, errors in found.items() for name in errors)
    text = (
        f"FIFO has the lowest mean error of the paper's buffers on {of(own, len(sets))} along its own path, on "
        f"{of(common, len(sets))} along a common one.{_beside(results, found['common'])}"
    )
    total = sum(len(errors) for errors in found.values())
    return Finding(text, graded(hits == total, 2 * ties > total))


def _beside(results: Results, common: Errors) -> str:
    """Return the errors of controls as multiples of those that they are compared with, on the common path."""
    queue, centroid, strata = (
        ratios(common, *pair) for pair in ((QUEUE, FIFO), (CENTROID, FIFO), (RESERVOIR, OAM_TYPE))
    )
    parts = []
    if queue:
        clear = [name for name, one in differences(results, "common", QUEUE, FIFO).items() if one.clear < 0]
        parts.append(
            f"as many newest rows without strata have {spread(queue)} times its error, significantly less on "
            f"{of(clear, len(queue))}"
        )
    if centroid:
        parts.append(f"centroids, though biased, {spread(centroid)} times")
    if strata:
        parts.append(f"reservoirs in strata {spread(strata)} times one reservoir's")
    return f" There {'; '.join(parts)}." if parts else ""


def allocation(results: Results) -> Finding:
    """The best allocation of draws against one draw from each stratum, in exact variances of the same strata."""
    proofs = {name: [one for one in records if known(one, "neyman")]
              for name, records in by_dataset(certificates(results)).items()}  # fmt: skip
    means = {name: {column: averaged(records, column) for column in ("neyman", "printed", "stratified")}
             for name, records in proofs.items() if records}  # fmt: skip
    if len(means) < FEWEST_SETS:
        return too_few(results, "variance", means)
    best, by_size = _over(means, "neyman", "stratified"), _over(means, "printed", "stratified")
    lower = below(best, 1 - TIE)
    text = (
        f"Draws allocated by n_{{j}}σ_{{j}} have {spread(best)} times the exact variance of one draw from each of the "
        f"same strata, lower on {of(lower, len(best))}; allocated by n_{{j}} alone, which needs no variances, "
        f"{spread(by_size)} times."
    )
    return Finding(text, graded(len(lower) == len(best), 2 * len(lower) > len(best)))


def _over(means: Mapping[str, Mapping[str, float]], column: str, other: str) -> dict[str, float]:
    """Return the ratio of two means on each set."""
    return {name: one[column] / one[other] for name, one in means.items()}


CLAIMS = (
    Claim(
        "variance-figures", "Experiments, Figures 2 and 4",
        "Gradient variance with a 4-size buffer, “emphasizing the stability of our algorithm”; we read: the lowest of "
        "all.",
        figures,
        "holds if FIFO's is the lowest on every set and path; in part if mostly not significantly above another "
        "(corrected t-test over folds).",
        "figure-variance-common", central=True,
    ),
    Claim(
        "allocation", "Appendix A, certificate of variance reduction",
        "“If the clusters have different variances, it is advisable to sample more from the high-variance cluster.”",
        allocation,
        "holds if n_{j}σ_{j} lowers the mean variance by more than 1 % on every set, in part if on most.",
        "variance",
    ),
)  # fmt: skip
