"""What a claim is, and what can be found about it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from pairloom.experiments.reproduce.results import Results


class Verdict(Enum):
    """On a claim of the paper."""

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
    """What was measured, in a sentence or two with the numbers, and the verdict that follows."""

    measured: str
    verdict: Verdict


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Parameters
    ----------
    id : its name in links
    place : where it stands: "Chapter, more"
    text : quoted, or closely paraphrased
    find : what the results say about it
    rule : how the verdict follows; "" where the finding is an argument
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
        """The part of the paper that it stands in."""
        return self.place.partition(",")[0]


def without(experiment: str) -> Finding:
    """Where an experiment has not been run."""
    return Finding(f"Not measured yet: needs pairloom reproduce {experiment}.", Verdict.UNTESTED)


def too_short(results: Results, experiment: str) -> Finding:
    """Where an experiment has been run on few rows only, as in a quick run, or not at all."""
    if not results.read(experiment):
        return without(experiment)
    return Finding("The streams of this run are too few or too short to judge it.", Verdict.UNTESTED)


def graded(holds: bool, in_part: bool) -> Verdict:
    """The first that is true, or FAILS."""
    return Verdict.HOLDS if holds else Verdict.IN_PART if in_part else Verdict.FAILS
