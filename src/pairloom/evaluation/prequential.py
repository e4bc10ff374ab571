"""Prequential evaluation: each row is scored on arrival, and learned when its label arrives."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.evaluation.adapters import Adapter, adapter_of
from pairloom.evaluation.rows import Pending, Row, rows_of
from pairloom.metrics import StreamingAUC, WindowAUC
from pairloom.race.standings import COLOURS
from pairloom.stream import AlertBudget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRIC_ROWS = 1000
"""Number of scores added to the metrics at a time."""

COLUMNS = ("model", "row", "auc", "low", "high", "auc_mixed", "loss", "strata", "bytes", "rows_per_second")
ALERT_COLUMNS = ("alert_rate", "precision", "recall")
"""Additional columns with ``alert_rate``."""


PANELS = {
    "auc": "AUC of the newest rows",
    "alert_rate": "alert rate",
    "precision": "precision of alerts",
    "recall": "recall of alerts",
    "loss": "loss",
    "strata": "strata",
    "bytes": "bytes",
    "rows_per_second": "rows per second",
}
"""Columns of the table that are plotted, with their labels."""


@dataclass(frozen=True)
class Prequential:
    """The result of ``prequential``.

    ``table``: columns by name, one line for each model every n rows. ``auc`` is the AUC of the newest rows by their
    scores on arrival, with its 95 % interval ``low`` to ``high``. ``auc_mixed`` is the AUC of all rows so far, which
    mixes scores of different states of the model. ``loss``, ``strata`` and ``bytes`` are reported by the model, or
    NaN. ``alert_rate``, ``precision`` and ``recall``, only if requested, are those of the alerts among the newest rows,
    each decided on arrival.
    """

    table: dict[str, Array]

    @property
    def auc(self) -> dict[str, float]:
        """Final AUC of the newest rows, by model."""
        return {name: float(self.table["auc"][self.table["model"] == name][-1]) for name in self.names}

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return list(dict.fromkeys(self.table["model"].tolist()))

    def plot(self) -> "Figure":
        """Plot AUC with its 95 % interval, alerts, loss, strata, bytes and speed; needs ``pairloom[plot]``."""
        pyplot = import_extra("matplotlib.pyplot", "plot", "Drawing an evaluation")
        table = self.table
        shown = [name for name in PANELS if name in table and np.isfinite(table[name]).any()]
        heights = [2.2 if name == "auc" else 1.0 for name in shown]
        figure: Figure
        figure, axes = pyplot.subplots(
            len(shown), 1, sharex=True, squeeze=False, figsize=(8, 1.6 * sum(heights) + 0.6), layout="constrained",
            gridspec_kw={"height_ratios": heights},
        )  # fmt: skip
        for name, ax in zip(shown, axes[:, 0], strict=True):
            for k, model in enumerate(self.names):
                own = table["model"] == model
                rows, colour = table["row"][own], COLOURS[k % len(COLOURS)]
                ax.plot(rows, table[name][own], color=colour, linewidth=1.8, label=model)
                if name == "auc":
                    ax.fill_between(rows, table["low"][own], table["high"][own], color=colour, alpha=0.15, linewidth=0)
            ax.set_ylabel(PANELS[name])
            if name in ("bytes", "rows_per_second"):
                ax.set_yscale("log")
            ax.spines[["top", "right"]].set_visible(False)
        axes[0, 0].legend(frameon=False, loc="lower right")
        axes[-1, 0].set_xlabel("rows")
        axes[-1, 0].xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
        return figure

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {auc:.4f}" for name, auc in self.auc.items())
        return f"<Prequential: {int(self.table['row'].max()):,} rows, AUC of the newest: {shown}>"


@dataclass
class Run:
    """One model during the evaluation."""

    name: str
    model: Any
    adapter: Adapter
    window: WindowAUC
    budget: AlertBudget | None = None
    alerts: deque[tuple[bool, bool, float]] = field(default_factory=deque)
    whole: StreamingAUC = field(default_factory=StreamingAUC)
    seen: list[tuple[bool, float, float]] = field(default_factory=list)
    seconds: float = 0.0
    lines: list[tuple[Any, ...]] = field(default_factory=list)

    def score(self, row: Row) -> None:
        """Score a row, and add it to the metrics, many rows at a time; a row without a label has weight 0."""
        start = perf_counter()
        score = self.adapter.score(row)
        self.seconds += perf_counter() - start
        self.seen.append((bool(row.y == self.adapter.positive), score, 0.0 if row.y is None else row.weight))
        if len(self.seen) >= METRIC_ROWS:
            self.update_metrics()

    def learn(self, row: Row) -> None:
        """Learn a row."""
        start = perf_counter()
        self.adapter.learn(row)
        self.seconds += perf_counter() - start

    def update_metrics(self) -> None:
        """Add the rows since the last call to the metrics."""
        if self.seen:
            positive, scores, weights = (np.array(values) for values in zip(*self.seen, strict=True))
            self.window.update(positive, scores, weights)
            self.whole.update(positive, scores, weights)
            if self.budget is not None:
                new = zip(self.budget(scores).tolist(), positive.tolist(), weights.tolist(), strict=True)
                self.alerts.extend(one for one in new if one[2] > 0)
            self.seen = []

    def add_line(self, row: int, every: int) -> None:
        """Add a line to the table."""
        self.update_metrics()
        low, high = self.window.interval()
        speed = every / self.seconds if self.seconds else np.nan
        alerts = () if self.budget is None else alert_figures(self.alerts)
        self.lines.append(
            (self.name, row, self.window.value, low, high, self.whole.value, *model_figures(self.model), speed, *alerts)
        )
        self.seconds = 0.0


def prequential(
    model: Any,
    stream: Any,
    *,
    delay: int | str = 0,
    every: int = 1000,
    window: int = 1000,
    classes: Any = (0, 1),
    alert_rate: float | None = None,
    progress: bool = True,
) -> Prequential:
    """Score each row on arrival, learn it when its label arrives, and evaluate how well the scores rank.

    Row t is scored by a model that has learned all labels that arrived earlier; it is learned after all rows up to
    t + ``delay`` have been scored. At equal times rows are scored first, then learned in order of arrival. A row
    without a label (None, NaN) is scored but never learned; labels still pending at the end are learned at the end.

    Parameters
    ----------
    model
        An estimator of pairloom, of river, or with ``partial_fit`` and ``decision_function`` or ``predict_proba``; or a
        mapping from names to models, all evaluated on the same rows.
    stream
        (X, y), (X, y, weight), :class:`Rows`, or an iterable of these, read once.
    delay
        Delay of labels in rows, or "times" to use the times ``arrived`` and ``labelled`` of :class:`Rows`.
    every
        Rows between two lines of the table.
    window
        The number of newest rows for the AUC.
    classes
        The two labels, the positive one second, unless ``pos_label`` of a model names it.
    alert_rate
        The requested rate of alerts: an :class:`~pairloom.stream.AlertBudget` for each model decides on each row on
        arrival; the first 500 rows raise no alert. Adds the realised rate, precision and recall of the alerts among the
        newest rows. None: no such columns.
    progress
        Whether to show a progress bar, if ``rich`` is installed.

    Cost: that of scoring and learning one row at a time, plus about 1 MB per model and the rows with pending labels.

    Reference: Gama, Sebastiao and Rodrigues, On evaluating stream learning algorithms, Machine Learning 2013.

    >>> from pairloom.systems import SPAM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = (X[:, 0] + rng.normal(size=2000) > 1).astype(int)
    >>> models = {"now": SPAM(eta=0.1), "late": SPAM(eta=0.1)}
    >>> found = prequential(models, (X, y), delay=100, progress=False)
    >>> found.table["row"].tolist(), bool(found.auc["now"] > 0.7)
    ([1000, 1000, 2000, 2000], True)
    """
    check_count("every", every)
    if delay != "times":
        check_count("delay + 1", delay + 1 if isinstance(delay, int) else delay)
    if len(classes) != 2:
        raise ValueError(f"classes must be two labels, the positive one second; got {list(classes)}")
    if alert_rate is not None:
        check_number("alert_rate", alert_rate, 0.0, 1.0, open_low=True)
    check_count("window", window)
    models = model if isinstance(model, Mapping) else {type(model).__name__: model}
    runs = [
        Run(str(name), one, adapter_of(str(name), one, classes), WindowAUC(window), alerts=deque(maxlen=window))
        for name, one in models.items()
    ]
    for run in runs if alert_rate is not None else ():
        run.budget = AlertBudget(alert_rate)
    count = follow(runs, tracked(rows_of(stream, delay), stream, progress), every)
    for run in runs if count % every else ():
        run.add_line(count, count % every)
    lines = sorted((line for run in runs for line in run.lines), key=lambda line: line[1])
    columns = COLUMNS if alert_rate is None else COLUMNS + ALERT_COLUMNS
    return Prequential({name: np.array([line[k] for line in lines]) for k, name in enumerate(columns)})


def follow(runs: list[Run], rows: Iterable[Row], every: int) -> int:
    """Score and learn rows in time order, and return their number."""
    pending, count = Pending(), 0
    for row in rows:
        for late in pending.before(row.arrived):
            for run in runs:
                run.learn(late)
        for run in runs:
            run.score(row)
        pending.add(row)
        count += 1
        for run in runs if count % every == 0 else ():
            run.add_line(count, every)
    for late in pending.before(None):
        for run in runs:
            run.learn(late)
    return count


def alert_figures(alerts: Iterable[tuple[bool, bool, float]]) -> tuple[float, float, float]:
    """Return rate, precision and recall of alerts, from the alert, the label and the weight of each row.

    >>> alert_figures([(True, True, 1.0), (True, False, 3.0), (False, True, 1.0), (False, False, 1.0)])
    (0.5, 0.25, 0.5)
    """
    raised, positive, weights = np.array(list(alerts), dtype=float).reshape(-1, 3).T
    caught, own, all_own = (float(weights @ rows) for rows in (raised * positive, raised, positive))
    rate = float(raised.mean()) if len(raised) else np.nan
    return rate, caught / own if own else np.nan, caught / all_own if all_own else np.nan


def model_figures(model: Any) -> tuple[float, float, float]:
    """Return loss, strata and bytes of a model; NaN for those that it does not have."""
    try:
        strata = float(np.sum(model.n_strata_)) if hasattr(model, "n_strata_") else np.nan
        return float(getattr(model, "loss_", np.nan)), strata, float(getattr(model, "nbytes_", np.nan))
    except Exception:  # before its first row a model has none of them
        return np.nan, np.nan, np.nan


def tracked(rows: Any, stream: Any, progress: bool) -> Any:
    """Return the rows, with a progress bar if rich is installed; their number is known for arrays only."""
    if not progress:
        return rows
    try:
        from rich.progress import track
    except ModuleNotFoundError:
        return rows
    y = getattr(stream, "y", stream[1] if isinstance(stream, tuple) and len(stream) > 1 else None)
    return track(rows, description="test, then train", total=None if y is None else len(y))
