"""How models are compared on a stream: pairs inside windows, scored before learning."""

from dataclasses import field

import numpy as np

from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.metrics.auc import weighted_auc

WINDOW_ROWS, WINDOW_RARE = 512, 10
"""A window ends when it has this many rows, and this many of each class that it has seen.

Two classes will do where the third is so rare that another has filled its room."""

FEW = 3
"""Rows of each class without which an open window says nothing."""

ROOM = 2048
"""Rows of one class kept of an open window: a long one keeps the newest."""

RAW = 16
"""Windows that are remembered."""

NEWER = 0.6
"""The share of the windows so far that has a say: the older ones speak of models that were still small."""


@node
class ScoredWindow:
    """Scores (n, models, classes), each given before its row was learned, with labels and weights."""

    scores: Array
    labels: Array
    weights: Array

    @property
    def rare(self) -> int:
        """Rows of the rarest class that is there; 0 if it is the only one."""
        counts = np.unique(self.labels, return_counts=True)[1]
        return int(counts.min()) if len(counts) > 1 else 0

    def auc(self, targets: Array) -> Array:
        """Area under the curve of each model; with more than two classes, the mean over classes against the rest."""
        areas = [
            weighted_auc(self.scores[:, :, k], self.labels == target, self.weights)
            for k, target in enumerate(targets)
            if FEW <= (self.labels == target).sum() <= len(self.labels) - FEW
        ]
        return np.asarray(np.mean(areas, axis=0))


@node
class Evidence:
    """The windows of a race over ``targets``, the classes that the models speak for.

    Scores of different moments are not comparable, since the model moved in between: so only pairs inside a window
    count. ``areas`` (windows, models): areas under the curve in the newest closed windows, ``raw``; ``closed`` counts
    all.
    """

    targets: Array
    n_models: int
    open: list[ScoredWindow] = field(default_factory=list)
    raw: list[ScoredWindow] = field(default_factory=list)
    areas: Array = field(default_factory=lambda: np.zeros((0, 0)))
    closed: int = 0

    def __post_init__(self) -> None:
        if self.areas.size == 0:
            self.areas = np.zeros((0, self.n_models))

    def add(self, scores: Array, labels: Array, weights: Array) -> bool:
        """Take in rows, in order; whether a window was closed."""
        self.open.append(ScoredWindow(scores, labels, weights))
        window = self._joined()
        self.open = [window]
        seen = np.unique(window.labels, return_counts=True)[1]
        enough = seen >= WINDOW_RARE
        if seen.sum() < WINDOW_ROWS or enough.sum() < 2 or (not enough.all() and seen.max() < ROOM):
            return False
        self.raw = [*self.raw[1 - RAW :], window]
        self.areas = np.vstack([self.areas[1 - RAW :], window.auc(self.targets)])
        self.closed += 1
        self.open = []
        return True

    def newer(self) -> tuple[list[ScoredWindow], Array]:
        """The windows that have a say, and the areas in them (windows, models).

        Before the first is closed the open one, if it says anything at all.
        """
        if self.raw:
            n = min(len(self.raw), int(np.ceil(NEWER * self.closed)))
            return self.raw[-n:], self.areas[-n:]
        window = self.open[0] if self.open else None
        if window is None or window.rare < FEW:
            return [], self.areas
        return [window], window.auc(self.targets)[None]

    def verdict(self) -> tuple[Array, float]:
        """Mean area of each model, each window counting by its rows of the rarer class; and the number of these."""
        windows, areas = self.newer()
        rare = np.array([window.rare for window in windows], float)
        if not windows:
            return np.full(self.n_models, 0.5), 0.0
        return rare @ areas / rare.sum(), float(rare.sum())

    def restart(self) -> None:
        """Forget all windows."""
        self.open, self.raw, self.closed = [], [], 0
        self.areas = np.zeros((0, self.n_models))

    def forget(self, keep: float) -> None:
        """Let the closed windows be ``keep`` times as many; the newest stay. If none does, the open one begins anew."""
        self.closed = round(keep * self.closed)
        if not self.closed:
            self.open = []
        self.raw = self.raw[max(0, len(self.raw) - self.closed) :]
        self.areas = self.areas[max(0, len(self.areas) - self.closed) :]

    def only(self, models: list[int]) -> None:
        """Forget the other models."""
        self.n_models = len(models)
        self.areas = self.areas[:, models]
        for window in [*self.open, *self.raw]:
            window.scores = window.scores[:, models]

    def _joined(self) -> ScoredWindow:
        """The open window, with the newest rows of each class."""
        parts = [np.concatenate([getattr(w, name) for w in self.open]) for name in ("scores", "labels", "weights")]
        keep = np.zeros(len(parts[1]), bool)
        for label in np.unique(parts[1]):
            keep[np.flatnonzero(parts[1] == label)[-ROOM:]] = True
        return ScoredWindow(*(part[keep] for part in parts))
