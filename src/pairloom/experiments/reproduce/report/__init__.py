"""The report: one page that needs nothing but itself, made from a folder of results."""

from importlib.resources import files
from pathlib import Path
from string import Template

from pairloom.base.files import replacing
from pairloom.base.html import Markup, joined
from pairloom.experiments.reproduce.report.auc_table import auc_section
from pairloom.experiments.reproduce.report.claims import findings
from pairloom.experiments.reproduce.report.cost import cost_section
from pairloom.experiments.reproduce.report.curves import features_section, time_section
from pairloom.experiments.reproduce.report.datasets import datasets_section
from pairloom.experiments.reproduce.report.head import TITLE, head
from pairloom.experiments.reproduce.report.regret import regret_section
from pairloom.experiments.reproduce.report.strata import strata_section
from pairloom.experiments.reproduce.report.variance import variance_section
from pairloom.experiments.reproduce.report.verdicts import claims_section
from pairloom.experiments.reproduce.results import Results

CONTENTS = (
    ("auc", "AUC"),
    ("auc-time", "Time"),
    ("features", "Features"),
    ("clusters", "Strata"),
    ("cost", "Cost"),
    ("regret", "Regret"),
    ("variance", "Variance"),
    ("datasets", "Data sets"),
    ("claims", "Claims"),
)
"""The sections: their anchors and short names."""

__all__ = ["write"]


def write(folder: Path) -> Path:
    """Write ``index.html`` beside the results; what was not measured is said to be missing.

    The same results give the same bytes.
    """
    results = Results(folder)
    found = findings(results)
    sections = [
        auc_section(results),
        time_section(results),
        features_section(results),
        strata_section(results),
        cost_section(results),
        regret_section(results),
        variance_section(results),
        datasets_section(results),
        claims_section(found),
    ]
    page = Template(_beside("page.html")).substitute(
        title=TITLE,
        style=_beside("style.css"),
        script=_beside("sort.js"),
        head=head(results, [finding for _, finding in found], CONTENTS),
        main=Markup(joined(sections, "\n")),
    )
    path = folder / "index.html"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(page.encode())
    return path


def _beside(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
