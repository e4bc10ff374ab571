"""The records as tables: in the terminal, and in Markdown with a word on how they were measured."""

from rich.table import Table

from contest.contestants import CONTESTANTS, Contestant
from contest.datasets import Data
from contest.records import FOLDS, Records, Summary, summary

Line = tuple[Data, Contestant, Summary]

HOW = """\
Five-fold cross-validation (stratified, shuffled, seed 0). AUC on the held-out fold: mean and, in brackets, standard
error over the folds. The rows are shuffled once (seed 0); streaming contestants see them in that order, each row once.

- **Rows.** `AUCClassifier` and LightGBM get the rows as in the files. For the others the columns are standardised on
  the training fold (river's scaler learns along the stream); pixels (usps, mnist) are scaled to [-1, 1] or [0, 1] only.
- **Tuning.** `AUCClassifier` has no setting for any data set. The tuned contestants take the best of a grid ({grids})
  on the last fifth of the first fold's training rows, at most 20,000 rows on mnist and covtype, and keep it for all
  folds. So other folds' test rows took part in their tuning, which flatters them if anything; a grid on 20,000 rows may
  choose wider kernels than all rows would. The seconds of the grid are in a column of their own.
- **Seconds** are processor time of `fit` and the score of one row, one thread for all, and the mean over folds. The
  machine had other work to do at the time: read them as sizes, not as a race.
- **Bytes** are those of the fitted model, pickled, not the peak while learning.
"""


def lines(records: Records, data: tuple[Data, ...]) -> list[Line]:
    """What there is, by data set and contestant."""
    found = [(one, contestant, summary(records, one.name, contestant.name))
             for one in data for contestant in CONTESTANTS]  # fmt: skip
    return [(one, contestant, made) for one, contestant, made in found if made]


def cells(contestant: Contestant, made: Summary) -> list[str]:
    """Of one line, after the data set."""
    return [
        contestant.title,
        f"{made.auc:.4f} ({made.error:.4f})",
        f"{made.folds}",
        f"{made.seconds:,.2f}",
        f"{made.micros:,.1f}",
        f"{made.size:,}",
        f"{made.tuning:,.0f}" if len(contestant.grid) > 1 else "",
        ", ".join(f"{key} {value:g}" if isinstance(value, float) else f"{value}"
                  for key, value in made.settings.items()),
    ]  # fmt: skip


HEADINGS = ("contestant", "AUC (s.e.)", "folds", "fit, s", "µs per row", "model, bytes", "grid, s", "tuned to")


def table(records: Records, data: tuple[Data, ...]) -> Table:
    made = Table(title="AUC over held-out folds", caption="seconds: processor time, one thread; bytes: pickled model")
    for heading in ("data", *HEADINGS):
        made.add_column(heading, justify="left" if heading in ("data", "contestant", "tuned to") else "right")
    shown = lines(records, data)
    for (one, contestant, found), after in zip(shown, [*shown[1:], None], strict=True):
        made.add_row(one.name, *cells(contestant, found), end_section=after is not None and after[0] != one)
    return made


def markdown(records: Records, data: tuple[Data, ...]) -> str:
    found = lines(records, data)
    grids = "; ".join(
        f"{contestant.title}: {len(contestant.grid)} settings" for contestant in CONTESTANTS if len(contestant.grid) > 1
    )
    versions = sorted({record.package for record in records.all.values()})
    machines = sorted({record.machine for record in records.all.values()})
    parts = [
        "# AUC on real data\n\n`PAIRLOOM_DATA=folder python benchmarks/accuracy.py` measures what is missing from "
        "`docs/accuracy.json`; `--markdown` and `--figure` write this page and its picture from it.\n",
        "![AUC against time per row](accuracy.png)\n",
        _overview(found, data),
        "## How it was measured\n\n" + HOW.format(grids=grids),
        _contestants(),
        f"Versions: {', '.join(versions)}.\n\nMachine: {'; '.join(machines)}.\n",
        _details(found, data),
    ]
    return "\n".join(parts)


def _overview(found: list[Line], data: tuple[Data, ...]) -> str:
    """AUC alone: a column per data set, the best in bold."""
    shown = [one for one in data if any(line[0] == one for line in found)]
    made = {(one.name, contestant.name): summary for one, contestant, summary in found}
    best = {one.name: max(f"{s.auc:.4f}" for d, _, s in found if d == one) for one in shown}
    rows = [["contestant", "passes", *(one.name for one in shown)], ["---", "---", *("---:" for _ in shown)]]
    for contestant in CONTESTANTS:
        values = [made.get((one.name, contestant.name)) for one in shown]
        if any(values):
            texts = ["" if value is None else f"{value.auc:.4f}" for value in values]
            bold = [f"**{text}**" if text == best[one.name] else text for one, text in zip(shown, texts, strict=True)]
            rows.append([contestant.title, contestant.passes, *bold])
    return _pipes(rows)


def _contestants() -> str:
    return _pipes([["contestant", "passes", "settings"], ["---", "---", "---"],
                   *([c.title, c.passes, c.how] for c in CONTESTANTS)])  # fmt: skip


def _details(found: list[Line], data: tuple[Data, ...]) -> str:
    parts = []
    for one in data:
        own = [cells(contestant, made) for d, contestant, made in found if d == one]
        if own:
            incomplete = any(made.folds < FOLDS for d, _, made in found if d == one)
            note = " Some folds are still to be measured." if incomplete else ""
            head = f"## {one.title}\n\n{one.n_rows:,} rows, {one.n_features} columns.{note}\n\n"
            align = ["---", *("---:" for _ in HEADINGS[1:-1]), "---"]
            parts.append(head + _pipes([list(HEADINGS), align, *own]))
    return "\n".join(parts)


def _pipes(rows: list[list[str]]) -> str:
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)
