"""Claims, findings and verdicts."""

from collections.abc import Callable, Sized
from dataclasses import dataclass
from enum import Enum

from reproduction.results import Results

FEWEST_SETS = 3
"""The fewest data sets for a verdict on data sets in general; a quick run may have fewer."""


class Verdict(Enum):
    """The verdict on a claim of the paper."""

    HOLDS = "holds"
    IN_PART = "in part"
    FAILS = "does not hold"
    VACUOUS = "vacuous"
    DESCRIPTION = "description"
    MISPRINT = "misprint"
    UNTESTED = "not testable here"

    @property
    def sign(self) -> str:
        """A mark that needs no colour."""
        return {"HOLDS": "✓", "IN_PART": "◐", "FAILS": "✗", "VACUOUS": "∅", "DESCRIPTION": "•", "MISPRINT": "!",
                "UNTESTED": "–"}[self.name]  # fmt: skip

    @property
    def meaning(self) -> str:
        """What the verdict says."""
        return {
            "HOLDS": "what was measured or computed agrees",
            "IN_PART": "it agrees in some cases, or under a condition that the paper does not state",
            "FAILS": "what was measured or computed contradicts it",
            "VACUOUS": "true, but it says nothing: any method has it, or the bound is never below a trivial one",
            "DESCRIPTION": "a statement about what the paper does; there is nothing to be right or wrong",
            "MISPRINT": "wrong as printed, harmless once corrected",
            "UNTESTED": "our data or experiments cannot decide it",
        }[self.name]

    @property
    def kind(self) -> str:
        """A class of the style sheet."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Finding:
    """What was measured, in one or two sentences, and the verdict."""

    measured: str
    verdict: Verdict


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Parameters
    ----------
    id : its name in links
    place : its place in the paper: "Chapter, more"
    text : quoted, or closely paraphrased
    find : returns the finding for the results
    rule : the rule of the verdict; "" if the finding is an argument
    shown : anchor of the figure or table with the numbers
    central : whether the paper stands on it: the abstract, the theorems, and the results; otherwise a detail
    """

    id: str
    place: str
    text: str
    find: Callable[[Results], Finding]
    rule: str = ""
    shown: str = ""
    central: bool = False

    @property
    def chapter(self) -> str:
        """The chapter of the paper."""
        return self.place.partition(",")[0]


def argued(text: str, verdict: Verdict) -> Callable[[Results], Finding]:
    """Return a finding that needs no results: the text is the argument."""
    return lambda results: Finding(text, verdict)


def without(experiment: str) -> Finding:
    """Return the finding if an experiment has not been run."""
    return Finding(f"Not measured yet: needs python -m reproduction {experiment}.", Verdict.UNTESTED)


def too_few(results: Results, experiment: str, sets: Sized = ()) -> Finding:
    """Return the finding if an experiment was run on too few sets, or on too few rows, or not at all."""
    if not results.read(experiment):
        return without(experiment)
    if sets:
        return Finding(f"Measured on {len(sets)} of at least {FEWEST_SETS} sets.", Verdict.UNTESTED)
    return Finding("The streams of this run are too few or too short to judge it.", Verdict.UNTESTED)


def graded(holds: bool, in_part: bool) -> Verdict:
    """Return HOLDS or IN_PART, if true; otherwise FAILS."""
    return Verdict.HOLDS if holds else Verdict.IN_PART if in_part else Verdict.FAILS
