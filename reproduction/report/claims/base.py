"""Claims, findings and verdicts."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from reproduction.results import Results


class Verdict(Enum):
    """The verdict on a claim of the paper."""

    HOLDS = "holds"
    IN_PART = "in part"
    FAILS = "does not hold"
    UNTESTED = "not tested here"

    @property
    def sign(self) -> str:
        """A mark that needs no colour."""
        return {"HOLDS": "✓", "IN_PART": "◐", "FAILS": "✗", "UNTESTED": "–"}[self.name]

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
    """

    id: str
    place: str
    text: str
    find: Callable[[Results], Finding]
    rule: str = ""
    shown: str = ""

    @property
    def chapter(self) -> str:
        """The chapter of the paper."""
        return self.place.partition(",")[0]


def argued(text: str, verdict: Verdict) -> Callable[[Results], Finding]:
    """A finding that needs no results: the text is the argument."""
    return lambda results: Finding(text, verdict)


def without(experiment: str) -> Finding:
    """The finding if an experiment has not been run."""
    return Finding(f"Not measured yet: needs python -m reproduction {experiment}.", Verdict.UNTESTED)


def too_short(results: Results, experiment: str) -> Finding:
    """The finding if an experiment has been run on too few rows, as in a quick run, or not at all."""
    if not results.read(experiment):
        return without(experiment)
    return Finding("The streams of this run are too few or too short to judge it.", Verdict.UNTESTED)


def graded(holds: bool, in_part: bool) -> Verdict:
    """HOLDS or IN_PART, if true; otherwise FAILS."""
    return Verdict.HOLDS if holds else Verdict.IN_PART if in_part else Verdict.FAILS
