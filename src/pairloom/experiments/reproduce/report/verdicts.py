"""Every claim of the paper beside what was measured."""

from collections.abc import Sequence
from itertools import groupby

from pairloom.base.html import Markup, element
from pairloom.experiments.reproduce.report.claims import Claim, Finding, Verdict
from pairloom.experiments.reproduce.report.html import maths, note, section


def claims_section(found: Sequence[tuple[Claim, Finding]]) -> Markup:
    """One entry for each claim, in the order of the paper."""
    intro = note(
        "In the order of the paper: the claim, quoted or closely paraphrased, what was measured or computed, and the "
        "verdict by the rule beneath it. Where there is no rule, the argument is the evidence. What is computed for "
        "claims of theory is computed when this page is made."
    )
    parts = []
    for chapter, group in groupby(found, key=lambda pair: pair[0].chapter):
        parts.append(element("h3", chapter))
        parts.extend(_entry(claim, finding) for claim, finding in group)
    return section("claims", "Claims and verdicts", intro, *parts)


def badge(verdict: Verdict) -> Markup:
    """A verdict that can be read without colours."""
    return element("span", f"{verdict.sign} {verdict.value}", class_=f"badge {verdict.kind}")


def _entry(claim: Claim, finding: Finding) -> Markup:
    where = element("p", claim.place.partition(", ")[2] or claim.chapter, class_="place")
    shown = element(
        "a", "see the figure" if claim.shown.startswith("figure") else "see the table", href=f"#{claim.shown}"
    )
    return element(
        "article",
        element("div", badge(finding.verdict), where),
        element("blockquote", element("p", maths(claim.text))),
        element(
            "div",
            element("p", maths(finding.measured), *([" (", shown, ")"] if claim.shown else [])),
            element("p", "Rule: ", maths(claim.rule), class_="rule") if claim.rule else None,
        ),
        class_=f"claim {finding.verdict.kind}",
        id=f"claim-{claim.id}",
    )
