"""The records as tables: in the terminal, and in Markdown with a word on how they were measured."""

from collections.abc import Mapping

from rich.table import Table

from contest.contestants import CONTESTANTS, Contestant
from contest.datasets import Data
from contest.overview import overviews, pipes
from contest.records import FOLDS, Records, Summary, summary

Line = tuple[Data, Contestant, Summary]

HOW = """\
Five-fold cross-validation (stratified, shuffled, seed 0). AUC on the held-out fold: mean and, in brackets, standard
error over the folds. The rows are shuffled once (seed 0); streaming contestants see them in that order, each row once.

- **Rows.** `AUCClassifier` and all trees get the rows as in the files. For the others the columns are standardised on
  the training fold (river's scaler learns along the stream); pixels (usps, mnist) are scaled to [-1, 1] or [0, 1] only,
  except for "ExactAUC, linear". Text (KEEL) is one-hot for all contestants.
- **Halves.** Rules are chosen on one half of the shuffled rows of a set above 5,000 rows; the other half, in the same
  order, is a set of its own here.
- **Fewer rows.** river's forests take milliseconds per row. They learn the first rows of each training fold only, so
  that a fold takes about two minutes, and are tested on the whole held-out fold. The number of rows is in the tables.
- **Tuning.** `AUCClassifier` has no setting for any data set. The tuned contestants take the best of a grid ({grids})
  on the last fifth of the first fold's training rows, at most 20,000 rows on mnist and covtype, and keep it for all
  folds. So other folds' test rows took part in their tuning, which flatters them if anything; a grid on 20,000 rows may
  choose wider kernels than all rows would. The seconds of the grid are in a column of their own.
- **Seconds** are processor time of `fit` and the score of one row, one thread for all, and the mean over folds. The
  machine had other work to do at the time: read them as sizes, not as a race.
- **Model** bytes are those of the fitted model, pickled.
- **Peak** bytes are what `fit` takes at its highest, above what was there before, in a forked process of its own: the
  highest resident memory (VmHWM, set back before `fit`) less that before `fit`, both without the pages of files. A
  small fit before it loads packages and compiled code, and free memory is given back, so that neither counts. The rows
  are there before and do not count; copies of them do. The largest of the folds; empty if it was not measured yet.
"""


def lines(records: Records, data: tuple[Data, ...]) -> list[Line]:
    """What there is, by data set and contestant."""
    found = [(one, contestant, summary(records, one.name, contestant.name))
             for one in data for contestant in CONTESTANTS]  # fmt: skip
    return [(one, contestant, made) for one, contestant, made in found if made]


def cells(contestant: Contestant, made: Summary) -> list[str]:
    """Of one line, after the data set."""
    return [
        f"{contestant.title}, first {made.rows:,} rows" if made.capped else contestant.title,
        f"{made.auc:.4f} ({made.error:.4f})",
        f"{made.folds}",
        f"{made.seconds:,.2f}",
        f"{made.micros:,.1f}",
        f"{made.size:,}",
        "" if made.peak is None else f"{made.peak:,}",
        f"{made.tuning:,.0f}" if len(contestant.grid) > 1 else "",
        ", ".join(f"{key} {value:g}" if isinstance(value, float) else f"{value}"
                  for key, value in made.settings.items()),
    ]  # fmt: skip


HEADINGS = (
    "contestant", "AUC (s.e.)", "folds", "fit, s", "µs per row", "model, bytes", "peak, bytes", "grid, s", "tuned to",
)  # fmt: skip


def table(records: Records, data: tuple[Data, ...]) -> Table:
    made = Table(title="AUC over held-out folds", caption="seconds: processor time; model: pickled; peak: of fit")
    for heading in ("data", *HEADINGS):
        made.add_column(heading, justify="left" if heading in ("data", "contestant", "tuned to") else "right")
    shown = lines(records, data)
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
        "# AUC on real data\n\n`PAIRLOOM_DATA=folder python benchmarks/accuracy.py` measures what is missing from "
        "`docs/accuracy.json`; `--markdown` and `--figure` write this page and its picture from it.\n",
        "![AUC against time per row](accuracy.png)\n",
        *overviews(records, groups),
        "## How it was measured\n\n" + HOW.format(grids=grids),
        pipes([["contestant", "passes", "settings"], ["---", "---", "---"], *settings]),
        f"Versions: {', '.join(versions)}.\n\n{_machines(records, groups)}",
        "## Set by set\n",
        _details(lines(records, data), data),
    ]
    return "\n".join(parts)


def _machines(records: Records, groups: Mapping[str, tuple[Data, ...]]) -> str:
    """The machine; if there are several, who was timed on which."""
    machines = sorted({record.machine for record in records.all.values()})
    if len(machines) == 1:
        return f"Machine: {machines[0]}.\n"
    made = ["Machines: times and bytes compare well on one of them only.\n"]
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
            incomplete = any(made.folds < FOLDS for d, _, made in found if d == one)
            note = " Some folds are still to be measured." if incomplete else ""
            head = f"### {one.title}\n\n{one.n_rows:,} rows, {one.n_features} columns.{note}\n\n"
            align = ["---", *("---:" for _ in HEADINGS[1:-1]), "---"]
            parts.append(head + pipes([list(HEADINGS), align, *own]))
    return "\n".join(parts)
