"""The head of the page: a summary of the verdicts, and the origin of the numbers."""

from collections import Counter
from collections.abc import Sequence

from reproduction.report.claims import Finding, Verdict
from reproduction.report.html import Column, Entry, Markup, details, element, joined, table
from reproduction.report.wording import duration
from reproduction.results import Results

TITLE = "FPOGD, reproduced"

LEAD = (
    "FPOGD learns to rank from a stream: one pass, a few stratified examples of the past to pair each new one with, "
    "and random Fourier features for the kernel. This page runs the experiments of the paper that introduced it, on "
    "the same data sets and beside the same competitors, and shows the paper's numbers next to ours. At its end "
    "every claim of the paper is listed with what was measured and a verdict, computed from the results by a rule that "
    "is written beside it."
)

PAPER = (
    "Hilal AlQuabeh, Bhaskar Mukhoty, Bin Gu: Variance Reduced Online Gradient Descent for Kernelized Pairwise "
    "Learning with Limited Memory. ACML 2023, PMLR 222."
)


def head(results: Results, findings: Sequence[Finding], contents: Sequence[tuple[str, str]]) -> Markup:
    """Everything above the first section."""
    links = [element("li", element("a", title, href=f"#{name}")) for name, title in contents]
    return element(
        "header",
        element("p", "A reproduction by pairloom", class_="kicker"),
        element("h1", TITLE),
        element("p", LEAD, class_="lead"),
        element("p", PAPER, class_="citation"),
        _summary(findings),
        _origin(results),
        element("nav", element("ul", *links), aria_label="Contents"),
    )


def maker(results: Results) -> str:
    """The command that made the results; for older results, a command that pairloom had."""
    old = "pairloom reproduce"
    return old if any(old in str(run.get("command", "")) for run in results.runs()) else "python -m reproduction"


def _summary(findings: Sequence[Finding]) -> Markup:
    counts = Counter(finding.verdict for finding in findings)
    shown = [
        element(
            "li", element("b", counts[verdict]), element("span", f"{verdict.sign} {verdict.value}"), class_=verdict.kind
        )
        for verdict in Verdict
    ]
    bars = [
        element("span", class_=verdict.kind, style=f"flex-grow: {counts[verdict]}")
        for verdict in Verdict
        if counts[verdict]
    ]
    title = element("p", f"{len(findings)} claims of the paper", class_="summary-title")
    return element(
        "div", title, element("ul", *shown), element("div", *bars, class_="bar", aria_hidden="true"), class_="summary"
    )


def _origin(results: Results) -> Markup:
    runs = sorted(results.runs(), key=lambda run: str(run.get("started", "")))
    if not runs:
        text = "No run is recorded in this folder. "
        return element("p", text, element("code", "python -m reproduction all"), " makes one.", class_="missing")
    last = runs[-1]
    learning = sum(float(one.get("seconds", 0)) for name in ("selection", "table") for one in results.read(name))
    facts = [
        ("Command", element("code", last.get("command", "–"))),
        ("Commit", element("code", last.get("commit", "–"))),
        ("Versions", last.get("versions", "–")),
        ("Machine", last.get("machine", "–")),
        ("Date", last.get("started", "–")),
        ("Time", _time(sum(float(run.get("seconds", 0)) for run in runs), len(runs), learning)),
    ]
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    return joined([element("dl", *pairs, class_="origin"), _every_run(runs) if len(runs) > 1 else None])


def _time(seconds: float, n_runs: int, learning: float) -> str:
    text = duration(seconds) + (f" in {n_runs} runs" if n_runs > 1 else "")
    return f"{text}; processor time of learning and selecting for the table: {duration(learning)}" if learning else text


def _every_run(runs: Sequence[dict[str, object]]) -> Markup:
    names = ("run", "command", "commit", "started", "seconds", "jobs", "machine", "versions")
    rows = [[Entry(run.get(name, "–"), kind="text" if name in ("machine", "versions") else "") for name in names]
            for run in runs]  # fmt: skip
    return details(f"All {len(runs)} runs", table([Column(name) for name in names], rows, "Runs"))
