"""The report: two self-contained pages, made from a folder of results."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from reproduction.report.all_runs import all_runs
from reproduction.report.checklist import checklist_section
from reproduction.report.claims import claims_section, findings
from reproduction.report.cost import cost_section
from reproduction.report.curves import features_section, time_section
from reproduction.report.datasets import datasets_section
from reproduction.report.front import front
from reproduction.report.head import TITLE, head, maker, origin, verdicts
from reproduction.report.html import Markup, element, joined
from reproduction.report.regret import regret_section
from reproduction.report.released import released_section
from reproduction.report.strata import strata_section
from reproduction.report.variance import variance_section
from reproduction.results import Results, replace_file

__all__ = ["write"]


def write(folder: Path) -> Path:
    """Write ``index.html`` and ``runs.html`` into the folder of the results; return the path of the first.

    Parts that are not measured are marked as missing. The same results give the same bytes.
    """
    results = Results(folder)
    found = findings(results)
    sections = [
        front(results),
        verdicts(found),
        released_section(results),
        time_section(results),
        features_section(results),
        strata_section(results),
        cost_section(results),
        regret_section(results),
        variance_section(results),
        datasets_section(results),
        claims_section(found),
        checklist_section(results),
        origin(results),
    ]
    path = folder / "index.html"
    replace_file(path, _page(TITLE, head(), sections, results))
    back = element("header", element("h1", "All runs"), element("p", element("a", TITLE, href="index.html")))
    replace_file(folder / "runs.html", _page(f"{TITLE}: all runs", back, all_runs(results), results))
    return path


def _page(title: str, top: Markup, sections: Sequence[Markup], results: Results) -> str:
    return Template(_beside("page.html")).substitute(
        title=title, style=_beside("style.css"), script=_beside("page.js"), head=top,
        main=Markup(joined(sections, "\n")), maker=maker(results),
    )  # fmt: skip


def _beside(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
