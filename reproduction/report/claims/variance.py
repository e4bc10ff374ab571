"""Claims on the variance of the gradients of small buffers."""

from reproduction.buffers import CENTROID, FIFO, NEYMAN, RESERVOIR, RIVALS
from reproduction.report.buffers import averaged, certificates, mean_errors
from reproduction.report.claims.base import Claim, Finding, graded, too_short
from reproduction.report.estimates import Estimate
from reproduction.report.wording import listed, number, of
from reproduction.results import Results

Errors = dict[str, dict[str, Estimate]]

FEWEST_SETS = 2
"""The fewest data sets for a verdict; a quick run has only one."""


def least_of(errors: Errors, system: str = FIFO) -> list[str]:
    """The data sets where the mean error of an algorithm is below those of the other buffers of the paper."""
    return [name for name, own in errors.items()
            if system in own and all(own[system].mean < own[one].mean for one in RIVALS if one in own)]  # fmt: skip


def figures(results: Results) -> Finding:
    """The algorithm with the smallest error of the gradients."""
    found = {path: {name: own for name, own in mean_errors(results, path).items() if FIFO in own}
             for path in ("own", "common")}  # fmt: skip
    if min(len(errors) for errors in found.values()) < FEWEST_SETS:
        return too_short(results, "variance")
    own, common = (least_of(found[path]) for path in ("own", "common"))
    n = len(found["own"])
    others = [
        f"with {name} on {len(least_of(found['own'], system))} and {len(least_of(found['common'], system))}"
        for system, name in ((RESERVOIR, "reservoirs"), (CENTROID, "centroids"))
    ]
    shown = listed([f"{name} {_means(errors)}" for name, errors in found["common"].items()])
    text = (
        "Mean of ‖u_{t} − ∇L_{t}(w)‖² with four slots for each class. FPOGD with FIFO, as in the paper's box, is below "
        f"Yang, Kar and the reservoir without strata along its own path on {of(own, n)}, along a common path on "
        f"{of(common, n)}; {' and '.join(others)}. On the common path, FIFO, reservoirs, centroids and the least of "
        f"the others: {shown}."
    )
    hits = len(own) + len(common)
    return Finding(text, graded(hits == 2 * n, hits > n))


def _means(errors: dict[str, Estimate]) -> str:
    shown = [errors[one].mean for one in (FIFO, RESERVOIR, CENTROID) if one in errors]
    rest = [errors[one].mean for one in RIVALS if one in errors]
    return ", ".join(number(one) for one in [*shown, *([min(rest)] if rest else [])])


def allocation(results: Results) -> Finding:
    """Slots allocated by n_j sigma_j against one slot for each stratum."""
    found = {name: own for name, own in mean_errors(results, "common").items() if NEYMAN in own and RESERVOIR in own}
    if len(found) < FEWEST_SETS:
        return too_short(results, "variance")
    lower = [name for name, own in found.items() if own[NEYMAN].mean < own[RESERVOIR].mean]
    shown = listed([f"{name} {number(own[NEYMAN].mean)} and {number(own[RESERVOIR].mean)}"
                   for name, own in found.items()])  # fmt: skip
    text = (
        'allocation="neyman" with two strata and four slots has a lower mean error than four strata of one reservoir '
        f"each on {of(lower, len(found))}: {shown}, on a common path."
    )
    proofs = certificates(results)
    if proofs:
        best, one_each = averaged(proofs, "neyman"), averaged(proofs, "stratified")
        text += (
            " In exact variances of the same four strata, the best way of sharing out as many draws has "
            f"{number(best)}, one draw from each {number(one_each)}, in the mean over sets."
        )
    return Finding(text, graded(len(lower) == len(found), 2 * len(lower) >= len(found)))


CLAIMS = (
    Claim(
        "variance-figures", "Experiments, Figures 2 and 4",
        "With a buffer of size 4, FPOGD has the lowest variance of gradients of the buffer algorithms.",
        figures,
        "holds if FPOGD with FIFO has the least mean error of the paper's buffers on every set along both paths, in "
        "part if in most of these cases.",
        "figure-variance-common",
    ),
    Claim(
        "allocation", "Appendix A, certificate of variance reduction",
        "“If the clusters have different variances, it is advisable to sample more from the high-variance cluster. "
        "This extension can be easily incorporated into our algorithm.”",
        allocation,
        "holds if slots shared out by n_{j}σ_{j} have a lower mean error on every set, in part if on half of them.",
        "figure-variance-common",
    ),
)  # fmt: skip
