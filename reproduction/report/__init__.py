"""The report: one self-contained page, made from a folder of results."""

from importlib.resources import files
from pathlib import Path
from string import Template

from reproduction.report.auc_table import auc_section
from reproduction.report.claims import claims_section, findings
from reproduction.report.cost import cost_section
from reproduction.report.curves import features_section, time_section
from reproduction.report.datasets import datasets_section
from reproduction.report.head import TITLE, head, maker
from reproduction.report.html import Markup, joined
from reproduction.report.regret import regret_section
from reproduction.report.strata import strata_section
from reproduction.report.variance import variance_section
from reproduction.results import Results, replace_file

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
    """Write ``index.html`` into the folder of the results; parts that are not measured are marked as missing.

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
        maker=maker(results),
    )
    path = folder / "index.html"
    replace_file(path, page)
    return path


def _beside(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
