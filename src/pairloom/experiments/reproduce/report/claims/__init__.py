"""The paper's claims, each with a function from results to a verdict.

A new claim is an entry in the ``CLAIMS`` of one of these modules; its place decides where it stands on the page.
"""

from pairloom.experiments.reproduce.report.claims import (
    accuracy,
    bounds,
    complexity,
    kernels,
    printed,
    regret,
    sampling,
    sweeps,
    tables,
    variance,
)
from pairloom.experiments.reproduce.report.claims.base import Claim, Finding, Verdict
from pairloom.experiments.reproduce.results import Results

__all__ = ["CLAIMS", "PLACES", "Claim", "Finding", "Verdict", "findings"]

PLACES = (
    "Abstract",
    "Introduction",
    "Introduction, Table 1",
    "Introduction, contribution 1",
    "Introduction, contribution 2",
    "Introduction, contribution 3",
    "Introduction, contribution 4",
    "Problem setting, assumptions",
    "Problem setting, Lemma 1",
    "Problem setting, Lemma 2",
    "Method, mapping to a kernel space",
    "Method, online stratified sampling",
    "Method, the algorithm",
    "Regret analysis, Theorem 3",
    "Regret analysis, Remark 4",
    "Regret analysis, Theorem 5",
    "Regret analysis, Remark 6",
    "Regret analysis, Remark 7",
    "Regret analysis, randomized buffer update",
    "Regret analysis, pairwise kernel",
    "Regret analysis, Theorem 8",
    "Regret analysis, Remark 9",
    "Related work",
    "Experiments, Table 2",
    "Experiments, compared algorithms",
    "Experiments, data sets",
    "Experiments, implementation",
    "Experiments, results",
    "Experiments, Figures 2 and 6",
    "Experiments, Figures 2 and 5",
    "Experiments, Figures 2 and 4",
    "Conclusion",
    "Appendix A, after the proof of Theorem 5",
    "Appendix A, certificate of variance reduction",
    "Appendix A, Corollary 10",
    "Appendix B, Table 3",
    "Appendix B, number of clusters",
    "Appendix B, number of random features",
    "Appendix B, additional data sets",
)
"""Where a claim can stand, in the order of the paper; lemmas, theorems and remarks share one numbering."""

_MODULES = (accuracy, printed, complexity, sweeps, kernels, sampling, bounds, regret, variance, tables)

CLAIMS: tuple[Claim, ...] = tuple(
    sorted((claim for module in _MODULES for claim in module.CLAIMS), key=lambda claim: PLACES.index(claim.place))
)
"""All claims, in the order of the paper."""


def findings(results: Results) -> list[tuple[Claim, Finding]]:
    """Each claim with what the results say about it."""
    return [(claim, claim.find(results)) for claim in CLAIMS]
