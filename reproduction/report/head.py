"""The head of the page, the counts of verdicts, and the origin of the numbers."""

from collections import Counter
from collections.abc import Sequence

from reproduction.report.claims import Claim, Finding, Verdict
from reproduction.report.html import Column, Entry, Markup, element, section, table
from reproduction.report.wording import duration
from reproduction.results import Results

TITLE = "FPOGD, reproduced"

LEAD = (
    "FPOGD learns to rank from a stream in one pass: it pairs each new row with a few stratified examples of the past, "
    "and approximates a kernel by random Fourier features. This page repeats the experiments of its paper."
)

PAPER = (
    "H. AlQuabeh, B. Mukhoty, B. Gu: Variance Reduced Online Gradient Descent for Kernelized Pairwise Learning with "
    "Limited Memory. ACML 2023, PMLR 222."
)


def head() -> Markup:
    """Return everything above the first section."""
    return element(
        "header",
        element("p", "A reproduction by pairloom", class_="kicker"),
        element("h1", TITLE),
        element("p", LEAD, class_="lead"),
        element("p", PAPER, class_="citation"),
    )


def maker(results: Results) -> str:
    """Return the command that made the results; for older results, a command that pairloom had."""
    old = "pairloom reproduce"
    return old if any(old in str(run.get("command", "")) for run in results.runs()) else "python -m reproduction"


def verdicts(found: Sequence[tuple[Claim, Finding]]) -> Markup:
    """Return the number of claims for each verdict, central claims and details."""
    counts = Counter((claim.central, finding.verdict) for claim, finding in found)
    rows = [
        [Entry(element("span", f"{one.sign} {one.value}", class_=one.kind)),
         *(Entry(str(counts[central, one]), counts[central, one]) for central in (True, False))]
        for one in Verdict
    ]  # fmt: skip
    columns = [Column("verdict"), Column("central claims"), Column("details and slips")]
    link = element("a", "Each claim with its verdict", href="#claims")
    caption = f"{len(found)} claims of the paper"
    return element("section", table(columns, rows, caption, after=element("p", link, ".")), id="verdicts")


def origin(results: Results) -> Markup:
    """Return commands, commits, versions, machine and time of the runs."""
    runs = sorted(results.runs(), key=lambda run: str(run.get("started", "")))
    if not runs:
        text = "No run is recorded in this folder. "
        inside = element("p", text, element("code", "python -m reproduction all"), " makes one.", class_="missing")
        return section("origin", "Origin of the numbers", inside)
    names = ("command", "commit", "started", "seconds", "jobs", "machine", "versions")
    rows = [[Entry(run.get(name, "–"), kind="text" if name in ("machine", "versions") else "") for name in names]
            for run in runs]  # fmt: skip
    total, commits = duration(sum(float(run.get("seconds", 0)) for run in runs)), {run.get("commit") for run in runs}
    caption = (
        f"{total} in {len(runs)} runs of the command at {len(commits)} commits: each run keeps the cells that are "
        "finished, and runs.csv and every record name the run"
    )
    return section("origin", "Origin of the numbers", table([Column(name) for name in names], rows, caption))
