"""The paper's claims, each with a function from results to a verdict.

A new claim is an entry in the ``CLAIMS`` of one of these modules. Its place determines the order on the page.
"""

from collections.abc import Sequence

from reproduction.report.claims import (
    accuracy,
    bounds,
    complexity,
    kernels,
    printed,
    regret,
    sampling,
    sweeps,
    variance,
)
from reproduction.report.claims.base import Claim, Finding, Verdict
from reproduction.report.html import Markup, element, maths, note, section
from reproduction.results import Results

__all__ = ["CLAIMS", "PLACES", "Claim", "Finding", "Verdict", "claims_section", "findings"]

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
"""The places of claims, in the order of the paper; lemmas, theorems and remarks share one numbering."""

_MODULES = (accuracy, printed, complexity, sweeps, kernels, sampling, bounds, regret, variance)

CLAIMS: tuple[Claim, ...] = tuple(
    sorted((claim for module in _MODULES for claim in module.CLAIMS), key=lambda claim: PLACES.index(claim.place))
)
"""All claims, in the order of the paper."""


def findings(results: Results) -> list[tuple[Claim, Finding]]:
    """Each claim with its finding."""
    return [(claim, claim.find(results)) for claim in CLAIMS]


def claims_section(found: Sequence[tuple[Claim, Finding]]) -> Markup:
    """Central claims first, then details; in both, one entry for each claim in the order of the paper."""
    meanings = [element("li", badge(verdict), " ", verdict.meaning) for verdict in Verdict]
    intro = note(
        "The claim, quoted or closely paraphrased, what was measured or computed, and the verdict by its rule. Where "
        "there is no rule, the argument is the evidence. Significant: at 5 % by the corrected resampled t-test."
    )
    parts = [intro, element("ul", *meanings, class_="meanings")]
    for title, central in (("Central claims", True), ("Details and slips", False)):
        own = [pair for pair in found if pair[0].central is central]
        parts += [element("h3", f"{title} ({len(own)})"), *(_entry(claim, finding) for claim, finding in own)]
    return section("claims", "Claims and verdicts", *parts)


def badge(verdict: Verdict) -> Markup:
    """A verdict that can be read without colours."""
    return element("span", f"{verdict.sign} {verdict.value}", class_=f"badge {verdict.kind}")


def _entry(claim: Claim, finding: Finding) -> Markup:
    """Return a claim with its finding; the rule of a detail shows when the pointer rests on its verdict."""
    link = element("a", "figure" if claim.shown.startswith("figure") else "table", href=f"#{claim.shown}")
    rule = element("p", "Rule: ", maths(claim.rule), class_="rule") if claim.rule and claim.central else None
    title = claim.rule if claim.rule and not claim.central else None
    return element(
        "article",
        element("div", badge(finding.verdict), element("p", claim.place, class_="place"), title=title),
        element("blockquote", element("p", maths(claim.text))),
        element("div", element("p", maths(finding.measured), *([" (", link, ")"] if claim.shown else [])), rule),
        class_=f"claim {finding.verdict.kind}",
        id=f"claim-{claim.id}",
    )
