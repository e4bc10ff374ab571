"""Overview of the records: AUC only, with a column for each data set."""

from collections.abc import Iterator, Mapping

from contest.contestants import CONTESTANTS
from contest.datasets import PANELS, Data
from contest.kinds import lines_by_kind
from contest.records import Records, Summary, summary

BEST_OF = ("logistic", "ExactAUC-linear", "LightGBM")
"""Common first choices for a small data set."""

THE_SETS = """\
The rules and defaults of the first `AUCClassifier` were chosen using these data sets; later ones were chosen on
one half of each data set above 5,000 rows, and on KEEL data sets that are not reported. If a contestant did not learn
all training rows, the number of rows is given next to its AUC.
"""
THE_KEEL = """\
Small data sets with rare classes and categories, drawn at random before `AUCClassifier` was redesigned; no rule or
default may be chosen with them. Text is one-hot encoded for all. "Best of three" is logistic regression, `ExactAUC` on
the columns or LightGBM with 31 leaves, whichever has the highest AUC on the held-out folds, which cannot be known in
advance.
"""
THE_HALVES = """\
The half of each larger data set that was not used for any choice when `AUCClassifier` was redesigned, in five folds,
to the right of the whole data set. A half has fewer rows to learn from: compare within a column, not across.
"""

THE_CHOOSING = """\
Rules and defaults may be chosen on these: tables with text and missing values, numeric sets with rare positives, KEEL
data sets and one half of each larger LIBSVM set. Nothing is tuned for a set. Average precision in parentheses; with
means, the microseconds per row to learn.
"""
THE_REPORTING = """\
The same on data sets that no rule or default may be chosen with. `bank-before` is `bank` without `duration`, which is
known only after the call. `elec` and `weather` are learned in their own order: mean AUC of windows.
These figures predate the present drift detector and calibration. The size of the windows of the calibration was then
chosen by looking at `bank`, `bank-before`, `elec` and `weather`, so that these sets no longer judge that choice.
"""

Found = dict[tuple[str, str], Summary]


def overviews(records: Records, groups: Mapping[str, tuple[Data, ...]]) -> Iterator[str]:
    """Yield a heading and a table for each group of data sets with records."""
    found = {}
    for one in (one for group in groups.values() for one in group):
        for contestant in CONTESTANTS:
            if made := summary(records, one.name, contestant.name):
                found[one.name, contestant.name] = made
    shown = {name: [one for one in group if any(key[0] == one.name for key in found)] for name, group in groups.items()}
    if sets := shown.get("sets"):
        yield f"## Complete data sets\n\n{THE_SETS}\n{pipes(_table(found, sets))}"
    if keel := shown.get("keel"):
        yield f"## KEEL data sets\n\n{THE_KEEL}\n{pipes(_with_means(found, keel))}"
    if halves := shown.get("halves"):
        whole = {one.files: one for one in shown.get("sets", [])}
        beside = [each for one in halves for each in (whole.get(one.files), one) if each]
        yield f"## Unseen halves\n\n{THE_HALVES}\n{pipes(_table(found, beside))}"
    if any(key[0] == one.name for one in PANELS for key in found):
        yield "![AUC against time per row, raw columns](accuracy-raw.png)\n"
    for name, title, text in (
        ("choosing", "to choose rules with", THE_CHOOSING),
        ("reporting", "reported", THE_REPORTING),
    ):
        if own := shown.get(name):
            yield f"## Raw columns, {title}\n\n{text}\n{pipes(lines_by_kind(found, own))}"


def _table(found: Found, data: list[Data]) -> list[list[str]]:
    """Return a row for each contestant that takes part in all groups shown; the best of each column in bold."""
    groups = {one.group for one in data}
    present = [c for c in CONTESTANTS if groups <= {*c.groups} and any((one.name, c.name) in found for one in data)]
    columns = []
    for one in data:
        own = [found.get((one.name, contestant.name)) for contestant in present]
        best = max((_auc(made) for made in own if made), default="")
        columns.append([one.name, "---:", *(_cell(made, best) for made in own)])
    heads = [["contestant", "passes"], ["---", "---"], *([c.title, c.passes] for c in present)]
    return [[*head, *cells] for head, *cells in zip(heads, *columns, strict=True)]


def _with_means(found: Found, data: list[Data]) -> list[list[str]]:
    """Return the table with a last row for the best of three, and a last column for the means of complete rows."""

    def mean(aucs: list[float]) -> str:
        return f"{sum(aucs) / len(data):.4f}" if len(aucs) == len(data) else ""

    def line(name: str) -> list[float]:
        return [found[one.name, name].auc for one in data if (one.name, name) in found]

    rows = _table(found, data)
    means = {contestant.title: mean(line(contestant.name)) for contestant in CONTESTANTS}
    three = [[found[one.name, name].auc for name in BEST_OF if (one.name, name) in found] for one in data]
    best = [max(aucs) if len(aucs) == len(BEST_OF) else None for aucs in three]
    texts = ["" if auc is None else f"{auc:.4f}" for auc in best]
    return [
        [*rows[0], "mean"],
        [*rows[1], "---:"],
        *([*row, means[row[0]]] for row in rows[2:]),
        ["*best of three*", "", *texts, mean([auc for auc in best if auc is not None])],
    ]


def _auc(made: Summary) -> str:
    return f"{made.auc:.4f}"


def _cell(made: Summary | None, best: str) -> str:
    if made is None:
        return ""
    text = f"**{_auc(made)}**" if _auc(made) == best else _auc(made)
    return f"{text} ({made.rows:,} rows)" if made.capped else text


def pipes(rows: list[list[str]]) -> str:
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)
