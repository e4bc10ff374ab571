"""Test-then-train: every row is scored when it comes, and learned when its label does."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.typing import Array
from pairloom.evaluation.rows import Pending, Row, rows_of
from pairloom.evaluation.verbs import Verbs, verbs_of
from pairloom.metrics import StreamingAUC, WindowAUC

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOGETHER = 1000
"""Scores that the metrics take in at a time."""

COLUMNS = ("model", "row", "auc", "low", "high", "auc_mixed", "loss", "strata", "bytes", "rows_per_second")
ALERTS = ("precision", "recall")
"""Columns besides, where ``alert_rate`` asks for them."""


@dataclass(frozen=True)
class Prequential:
    """What ``prequential`` saw.

    ``table``: columns by name, one line for each model every so many rows. ``auc`` is the AUC of the newest rows, each
    scored when it came, with its 95 % interval ``low`` to ``high``: the headline. ``auc_mixed`` is that of all rows so
    far, which mixes the scores of a model that moved in between. ``loss``, ``strata`` and ``bytes`` are the model's
    own, NaN if it does not tell. ``precision`` and ``recall``, there if ``alert_rate`` was given, are those of alerts
    on this share of the newest rows, the ones with the highest scores.
    """

    table: dict[str, Array]

    @property
    def auc(self) -> dict[str, float]:
        """AUC of the newest rows of each model, at the end."""
        return {name: float(self.table["auc"][self.table["model"] == name][-1]) for name in self.names}

    @property
    def names(self) -> list[str]:
        """The models."""
        return list(dict.fromkeys(self.table["model"].tolist()))

    def plot(self) -> "Figure":
        """Draw AUC, alerts if asked for, loss, strata, bytes and speed against the rows; needs ``pairloom[plot]``."""
        from pairloom.evaluation.plot import plot

        return plot(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {auc:.4f}" for name, auc in self.auc.items())
        return f"<Prequential: {int(self.table['row'].max()):,} rows, AUC of the newest: {shown}>"


@dataclass
class Watch:
    """One model on its way along the stream."""

    name: str
    model: Any
    verbs: Verbs
    window: WindowAUC
    alert_rate: float | None = None
    whole: StreamingAUC = field(default_factory=StreamingAUC)
    seen: list[tuple[bool, float, float]] = field(default_factory=list)
    seconds: float = 0.0
    lines: list[tuple[Any, ...]] = field(default_factory=list)

    def score(self, row: Row) -> None:
        """Score a row; what is known of its label goes to the metrics, many rows at a time."""
        began = perf_counter()
        said = self.verbs.score(row)
        self.seconds += perf_counter() - began
        if row.y is not None and row.weight > 0:
            self.seen.append((row.y == self.verbs.positive, said, row.weight))
        if len(self.seen) >= TOGETHER:
            self.take_in()

    def learn(self, row: Row) -> None:
        """Learn a row."""
        began = perf_counter()
        self.verbs.learn(row)
        self.seconds += perf_counter() - began

    def take_in(self) -> None:
        """Give the metrics what they have not seen."""
        if self.seen:
            positive, scores, weights = (np.array(values) for values in zip(*self.seen, strict=True))
            self.window.update(positive, scores, weights)
            self.whole.update(positive, scores, weights)
            self.seen = []

    def write_down(self, row: int, every: int) -> None:
        """A line of the table."""
        self.take_in()
        low, high = self.window.interval()
        speed = every / self.seconds if self.seconds else np.nan
        alerts = () if self.alert_rate is None else self.window.top(self.alert_rate)
        self.lines.append(
            (self.name, row, self.window.value, low, high, self.whole.value, *own_figures(self.model), speed, *alerts)
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
    """Score every row when it comes, learn it when its label does, and say how well the scores ranked.

    Row t is scored by a model that has learned the labels that came before; its label is learned after all rows up to
    t + ``delay`` have been scored. At equal times scores come first, then labels in the order of arrival. A row without
    a label (None, NaN) is scored and never learned; labels that are still to come at the end are learned then.

    Parameters
    ----------
    model
        An estimator with ``partial_fit`` and ``decision_function`` or ``predict_proba``, one of river, one of pairloom;
        or a mapping from names to such, which see the same rows side by side.
    stream
        (X, y), (X, y, weight), :class:`Rows`, or an iterable of these, read once and never kept.
    delay
        Rows, or "times": the times ``arrived`` and ``labelled`` of :class:`Rows`.
    every
        Rows between two lines of the table.
    window
        The newest rows, over which AUC is taken.
    classes
        The two labels, the positive one second, unless ``pos_label`` of a model names it.
    alert_rate
        The share of the newest rows, those with the highest scores, whose precision and recall are columns as well:
        0.01 is the top 10 of a window of 1,000. Rows that tie for the last places share them. None: no such columns.
    progress
        Whether to show a bar, if ``rich`` is installed.

    Cost: that of scoring and learning one row at a time, and about 1 MB for each model besides the rows whose labels
    are still to come.

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
    models = model if isinstance(model, Mapping) else {type(model).__name__: model}
    watches = [
        Watch(str(name), one, verbs_of(str(name), one, classes), WindowAUC(window), alert_rate)
        for name, one in models.items()
    ]
    count = follow(watches, tracked(rows_of(stream, delay), stream, progress), every)
    for watch in watches if count % every else ():
        watch.write_down(count, count % every)
    lines = sorted((line for watch in watches for line in watch.lines), key=lambda line: line[1])
    columns = COLUMNS if alert_rate is None else COLUMNS + ALERTS
    return Prequential({name: np.array([line[k] for line in lines]) for k, name in enumerate(columns)})


def follow(watches: list[Watch], rows: Iterable[Row], every: int) -> int:
    """Score and learn in the order of time; the number of rows."""
    pending, count = Pending(), 0
    for row in rows:
        for late in pending.before(row.arrived):
            for watch in watches:
                watch.learn(late)
        for watch in watches:
            watch.score(row)
        pending.add(row)
        count += 1
        for watch in watches if count % every == 0 else ():
            watch.write_down(count, every)
    for late in pending.rest():
        for watch in watches:
            watch.learn(late)
    return count


def own_figures(model: Any) -> tuple[float, float, float]:
    """Loss, strata and bytes of a model, as far as it tells."""
    try:
        strata = float(np.sum(model.n_strata_)) if hasattr(model, "n_strata_") else np.nan
        return float(getattr(model, "loss_", np.nan)), strata, float(getattr(model, "nbytes_", np.nan))
    except Exception:  # a model that has learned nothing has no figures yet
        return np.nan, np.nan, np.nan


def tracked(rows: Any, stream: Any, progress: bool) -> Any:
    """The rows, under a bar with the time left if rich is installed; their number is known for arrays only."""
    if not progress:
        return rows
    try:
        from rich.progress import track
    except ModuleNotFoundError:
        return rows
    y = getattr(stream, "y", stream[1] if isinstance(stream, tuple) and len(stream) > 1 else None)
    return track(rows, description="test, then train", total=None if y is None else len(y))
