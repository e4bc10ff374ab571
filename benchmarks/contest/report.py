"""The records as tables, in the terminal and in Markdown with the protocol."""

from collections.abc import Mapping

from rich.table import Table

from common.script import make_table
from contest.contestants import CONTESTANTS, Contestant
from contest.datasets import Data
from contest.overview import overviews, pipes
from contest.records import Records, Summary, summary

Line = tuple[Data, Contestant, Summary]

HOW = """\
Five-fold cross-validation (stratified, shuffled, seed 0); three folds for raw columns, two above 30,000 rows. The
tables show the AUC on the held-out fold, the mean over folds with its standard error in parentheses. The rows are
shuffled once (seed 0); streaming contestants see them in that order, each row once.

- **Rows.** `AUCClassifier` and all trees get unscaled rows. For the others, columns are standardised on the training
  fold (river's scaler learns along the stream); pixels (usps, mnist) are only scaled to [-1, 1] or [0, 1], except for
  "ExactAUC, linear". Text (KEEL) is one-hot encoded for all contestants.
- **Raw columns.** `AUCClassifier` gets the data frame, with text and missing values. LightGBM gets text as pandas
  categories, CatBoost as its `cat_features`; logistic regression one-hot encoded, with numbers standardised and their
  mean for missing ones. Only the first 60,000 rows are used.
- **In order.** Blocks of 500 rows are scored, then learned; AUC and average precision are means over windows of 1,000
  rows after the first. Batch contestants are fitted again after each window, on all rows so far.
- **Halves.** Design choices were made on one half of the shuffled rows of each data set above 5,000 rows; the other
  half, in the same order, is a separate data set here.
- **Fewer rows.** river's forests take milliseconds per row. They learn only the first rows of each training fold, so
  that a fold takes about two minutes, and are tested on the whole held-out fold. The number of rows is in the tables.
- **Tuning.** `AUCClassifier` has no settings per data set. The tuned contestants use the best of a grid ({grids})
  on the last fifth of the first fold's training rows, at most 20,000 rows on mnist and covtype, for all folds.
  Test rows of other folds were therefore used in their tuning, which can only favour them; a grid on 20,000 rows may
  select wider kernels than one on all rows. The seconds of the grid are in a separate column.
- **Seconds** are the CPU time of `fit` and of scoring one row, with one thread for all, averaged over folds; "to
  score" is the CPU time per row of scoring the held-out fold at once. The machine had other load at the time, so small
  differences are not meaningful.
- **Model** bytes are those of the pickled model.
- **Peak** bytes are the growth of memory during `fit` in a forked process: the highest resident memory (VmHWM, reset
  before `fit`) minus that before `fit`, both without file pages. A small fit beforehand loads packages and compiled
  code, and free memory is released, so that neither counts. The rows are already in memory and do not count, but
  copies of them do. The value is the largest over folds, and empty if it was not measured.
"""


def lines(records: Records, data: tuple[Data, ...], contestants: tuple[Contestant, ...] = CONTESTANTS) -> list[Line]:
    """Return the available results by data set and contestant."""
    found = [(one, contestant, summary(records, one.name, contestant.name))
             for one in data for contestant in contestants]  # fmt: skip
    return [(one, contestant, made) for one, contestant, made in found if made]


def cells(contestant: Contestant, made: Summary) -> list[str]:
    """Return the cells of a line after the data set."""
    return [
        f"{contestant.title}, first {made.rows:,} rows" if made.capped else contestant.title,
        f"{made.auc:.4f}" if made.folds == 1 else f"{made.auc:.4f} ({made.error:.4f})",
        "" if made.precision is None else f"{made.precision:.4f}",
        f"{made.folds}",
        f"{made.seconds:,.2f}",
        f"{made.micros:,.1f}",
        "" if made.scoring is None else f"{made.scoring:,.1f}",
        f"{made.size:,}",
        "" if made.peak is None else f"{made.peak:,}",
        f"{made.tuning:,.0f}" if len(contestant.grid) > 1 else "",
        ", ".join(f"{key} {value:g}" if isinstance(value, float) else f"{value}"
                  for key, value in made.settings.items()),
    ]  # fmt: skip


HEADINGS = (
    "contestant", "AUC (s.e.)", "AP", "folds", "fit, s", "µs per row", "µs to score", "model, bytes", "peak, bytes",
    "grid, s", "tuned to",
)  # fmt: skip


def table(records: Records, data: tuple[Data, ...], contestants: tuple[Contestant, ...] = CONTESTANTS) -> Table:
    made = make_table("AUC over held-out folds", ["data", HEADINGS[0]], HEADINGS[1:-1])
    made.add_column(HEADINGS[-1])
    made.caption = "AP: average precision; seconds: CPU time; model: pickled; peak: of fit"
    shown = lines(records, data, contestants)
    for (one, contestant, found), after in zip(shown, [*shown[1:], None], strict=True):
        made.add_row(one.name, *cells(contestant, found), end_section=after is not None and after[0] != one)
    return made


def markdown(records: Records, groups: Mapping[str, tuple[Data, ...]]) -> str:
    grids = "; ".join(
        f"{contestant.title}: {len(contestant.grid)} settings" for contestant in CONTESTANTS if len(contestant.grid) > 1
    )
    versions = sorted({record.package for record in records.all.values()})
    data = tuple(one for group in groups.values() for one in group)
    settings = [[contestant.title, contestant.passes, contestant.how] for contestant in CONTESTANTS]
    parts = [
        "# AUC on real data\n\n`PAIRLOOM_DATA=folder python benchmarks/accuracy.py` runs what is missing from "
        "`docs/accuracy.json`; `--markdown` and `--figure` generate this page and its figure from it.\n",
        "![AUC against time per row](accuracy.png)\n",
        *overviews(records, groups),
        "## Protocol\n\n" + HOW.format(grids=grids),
        pipes([["contestant", "passes", "settings"], ["---", "---", "---"], *settings]),
        f"Versions: {', '.join(versions)}.\n\n{_machines(records, groups)}",
        "## Results by data set\n",
        _details(lines(records, data), data),
    ]
    return "\n".join(parts)


def _machines(records: Records, groups: Mapping[str, tuple[Data, ...]]) -> str:
    """Name the machine; if there are several, what was measured on which."""
    machines = sorted({record.machine for record in records.all.values()})
    if len(machines) == 1:
        return f"Machine: {machines[0]}.\n"
    made = ["Machines (times and bytes are only comparable on the same machine):\n"]
    for machine in machines:
        keys = {(record.data, record.contestant) for record in records.all.values() if record.machine == machine}
        parts = []
        for name, group in groups.items():
            own = [c.title for c in CONTESTANTS if any((one.name, c.name) in keys for one in group)]
            parts += [f"{name}: {'; '.join(own)}"] if own else []
        made.append(f"- {machine}. {'. '.join(parts)}.")
    return "\n".join(made) + "\n"


def _details(found: list[Line], data: tuple[Data, ...]) -> str:
    parts = []
    for one in data:
        own = [cells(contestant, made) for d, contestant, made in found if d == one]
        if own:
            incomplete = any(made.folds < one.folds for d, _, made in found if d == one)
            note = " Some folds have not been measured yet." if incomplete else ""
            head = f"### {one.title}\n\n{one.n_rows:,} rows, {one.n_features} columns.{note}\n\n"
            align = ["---", *("---:" for _ in HEADINGS[1:-1]), "---"]
            parts.append(head + pipes([list(HEADINGS), align, *own]))
    return "\n".join(parts)
