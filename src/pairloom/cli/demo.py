"""`pairloom demo`: payments whose fraudsters change their method, alerts on a budget, and a few systems compared."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.cli.demo_figure import Curves, draw_curves
from pairloom.cli.monitor import finish_monitor, set_monitor
from pairloom.data import payments
from pairloom.estimators import AUCClassifier, BoostingClassifier
from pairloom.systems import FPOGD, ExactAUC

ROWS, FRAUD, CHANGE = 20_000, 0.02, 0.6
"""Number of payments, share of fraud, and where in the stream fraudsters change their method."""

BLOCK, WINDOW = 500, 2_000
"""Rows that are scored and then learned, and rows of a window of AUC and alerts."""

BUDGET = 0.02
"""Requested share of rows with an alert."""

OURS, BATCH = "AUCClassifier", "gradient boosting, retrained"

NOTE = f"""\
AUC: of rows {WINDOW:,} to {round(CHANGE * ROWS):,}, and of all after the change; every block of {BLOCK} rows is \
scored, then learned.
Time: scoring and learning the second half.
{BATCH}: that of scikit-learn, trained on all rows so far every {WINDOW:,} rows. The other systems find changes \
themselves (drift="auto").
`pairloom demo --systems` compares all online systems on two real data sets."""


class Retrained:
    """Gradient boosting of scikit-learn, trained on all rows so far at the end of each window."""

    changes_: tuple[int, ...] = ()

    def __init__(self, categories: Array, seed: int) -> None:
        self._model = HistGradientBoostingClassifier(
            max_leaf_nodes=7, learning_rate=0.1, max_iter=100, early_stopping=False, categorical_features=categories,
            random_state=seed,
        )  # fmt: skip
        self._rows: list[Array] = []
        self._labels: list[Array] = []

    def partial_fit(self, X: Array, y: Array, classes: Any) -> "Retrained":
        self._rows.append(X)
        self._labels.append(y)
        if len(self._rows) * BLOCK % WINDOW == 0:
            with threadpool_limits(1, "openmp"):  # as many threads as cores are slower than one on so few rows
                self._model.fit(np.concatenate(self._rows), np.concatenate(self._labels))
        return self

    def score_many(self, X: Array) -> Array:
        with threadpool_limits(1, "openmp"):
            return np.asarray(self._model.predict_proba(X)[:, 1])


class Contender(NamedTuple):
    """A model, and the rows in the form that it takes."""

    name: str
    model: Any
    rows: Any


@dataclass
class Run:
    """What a model said on arrival: ``scores`` and alerts (``flags``) of rows, and seconds of each block.

    ``first``: the first row with a score.
    """

    name: str
    model: Any
    y: Array
    first: int
    scores: Array = field(default_factory=lambda: np.zeros(ROWS))
    flags: Array = field(default_factory=lambda: np.zeros(ROWS, bool))
    seconds: Array = field(default_factory=lambda: np.zeros(ROWS // BLOCK))

    def auc(self, start: int, stop: int) -> float:
        """Return the AUC of these rows; NaN with scores for less than half a window, or with one class."""
        start = max(start, self.first)
        y = self.y[start:stop]
        if len(y) < WINDOW // 2 or not 0 < y.sum() < len(y):
            return float("nan")
        return float(roc_auc_score(y, self.scores[start:stop]))

    @property
    def found(self) -> int | None:
        """The row at which the change was found."""
        return next((row for row in self.model.changes_ if row > CHANGE * ROWS), None)

    @property
    def frauds_until_found(self) -> str:
        """The number of frauds from the change until it was found."""
        return "" if self.found is None else str(self.y[round(CHANGE * ROWS) : self.found].sum())


def contenders(columns: dict[str, Array], seed: int) -> list[Contender]:
    """Return the models, AUCClassifier first."""
    table = import_extra("pyarrow", "io", "The demo").table(columns)
    numbers, categories = encoded(columns)
    return [
        Contender(OURS, AUCClassifier(random_state=seed), table),
        Contender("BoostingClassifier", BoostingClassifier(drift="auto", random_state=seed), table),
        Contender("ExactAUC, linear", ExactAUC(drift="auto", scale="standard", random_state=seed), table),
        Contender("FPOGD, kernel", FPOGD(drift="auto", gamma="median", scale="standard", random_state=seed), table),
        Contender(BATCH, Retrained(categories, seed), numbers),
    ]


def encoded(columns: dict[str, Array]) -> tuple[Array, Array]:
    """Return the columns as numbers, with the hour for the time and codes for text, and which are codes."""
    made = []
    for values in columns.values():
        if values.dtype.kind == "M":
            values = (values - values.astype("M8[D]")) / np.timedelta64(1, "h")
        elif values.dtype.kind == "O":
            codes = {text: code for code, text in enumerate(sorted(set(values) - {None}))}
            values = np.array([codes.get(text, np.nan) for text in values])
        made.append(values)
    return np.column_stack(made), np.array([values.dtype.kind == "O" for values in columns.values()])


def follow(contender: Contender, y: Array, on_block: Callable[[Run, int], None]) -> Run:
    """Score and then learn the stream block by block; AUCClassifier raises alerts as well."""
    model, first = contender.model, WINDOW if contender.name == BATCH else BLOCK
    run = Run(contender.name, model, y, first)
    for start in range(0, ROWS, BLOCK):
        rows, began = slice(start, start + BLOCK), perf_counter()
        if start >= first:
            run.scores[rows] = model.score_many(contender.rows[rows])
        if start >= first and run.name == OURS:
            run.flags[rows] = model.alert_budget(rate=BUDGET)(run.scores[rows])
        model.partial_fit(contender.rows[rows], y[rows], classes=[0, 1])
        run.seconds[start // BLOCK] = perf_counter() - began
        on_block(run, start + BLOCK)
    return run


def live_text(run: Run, seen: int) -> str:
    """Return the AUC of the newest rows, the alerts, and whether the change has been found."""
    auc = run.auc(seen - WINDOW, seen)
    alerts = f"  alerts {run.flags.sum()} of {BUDGET * (seen - BLOCK):.0f}" if run.name == OURS else ""
    found = "" if run.found is None else f"  change found at row {run.found:,}"
    return f"AUC {'  -  ' if np.isnan(auc) else f'{auc:.3f}'}{alerts}{found}"


def run_all(seed: int, page: Path, console: Console) -> list[Run]:
    """Run all models, with a progress bar for each; the first one writes its monitor page."""
    columns, y = payments(ROWS, positive=FRAUD, change=CHANGE, seed=seed)
    bar = (TextColumn("{task.description:28}"), BarColumn(bar_width=14), TextColumn("{task.fields[live]}"))
    runs = []
    with Progress(*bar, console=console) as progress:
        for contender in contenders(columns, seed):
            task = progress.add_task(contender.name, total=ROWS, live="starting")
            if contender.name == OURS:
                set_monitor(contender.model, page)

            def update(run: Run, seen: int, task: TaskID = task) -> None:
                progress.update(task, completed=seen, live=live_text(run, seen))

            runs.append(follow(contender, y, update))
            finish_monitor(contender.model)
    return runs


def summary(run: Run) -> str:
    """Say what was found, and how the alerts kept their budget."""
    change, budget = round(CHANGE * ROWS), run.model.alert_budget(rate=BUDGET)
    found = "not found"
    if run.found is not None:
        since = run.model.stream_.state.observed["drift"].since
        found = f"found at row {run.found:,}, after {run.frauds_until_found} frauds, and dated to row {since:,}"
    each = run.flags[WINDOW:].reshape(-1, WINDOW).sum(axis=1)
    return (
        f"{ROWS:,} payments, {run.y.sum()} of them fraud; at row {change:,} fraudsters change their method.\n"
        f"Change: {found}.\n"
        f"Alerts: {100 * budget.realised:.2f} % of the rows, requested {100 * BUDGET:g} %; {each.min()} to "
        f"{each.max()} in each {WINDOW:,} rows, requested {BUDGET * WINDOW:.0f}; "
        f"{100 * run.y[run.flags].mean():.0f} % of them are fraud."
    )


def make_table(runs: list[Run]) -> Table:
    """Return a table of the models."""
    table, change, half = Table("system"), round(CHANGE * ROWS), ROWS // BLOCK // 2
    for heading in ("AUC before", "AUC after the change", "frauds until it was found", "µs per row"):
        table.add_column(heading, justify="right")
    for run in runs:
        micros = 1e6 * run.seconds[half:].sum() / (ROWS - half * BLOCK)
        before, after = run.auc(WINDOW, change), run.auc(change, ROWS)
        table.add_row(run.name, f"{before:.4f}", f"{after:.4f}", run.frauds_until_found, f"{micros:.0f}")
    return table


def make_curves(runs: list[Run]) -> Curves:
    """Return what the figure shows: AUCClassifier and gradient boosting, and the alerts."""
    ours, ends = runs[0], range(WINDOW // 2, ROWS + 1, BLOCK)
    each = (ROWS // 1_000, 1_000)
    return Curves(
        rows=np.array(ends),
        auc={run.name: np.array([run.auc(end - WINDOW, end) for end in ends])
             for run in runs if run.name in (OURS, BATCH)},
        window=WINDOW,
        alerts=ours.flags.reshape(each).sum(axis=1),
        hits=(ours.flags & (ours.y == 1)).reshape(each).sum(axis=1),
        per=each[1],
        budget=BUDGET * each[1],
        change=round(CHANGE * ROWS),
        found=ours.found,
        frauds=ours.frauds_until_found,
    )  # fmt: skip


def run(out: Path, page: Path, seed: int) -> None:
    """Run the job; print its results and a table, and save the figure and the monitor page."""
    console = Console()
    runs = run_all(seed, page, console)
    draw_curves(make_curves(runs), out)
    console.print(summary(runs[0]), highlight=False)
    console.print(f"Figure: {out}\nMonitor page: {page}\n", highlight=False, soft_wrap=True)
    console.print(make_table(runs))
    console.print(NOTE, style="dim", highlight=False)
