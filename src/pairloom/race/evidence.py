"""How models are compared on a stream: pairs inside windows, scored before learning."""

from collections.abc import Sequence
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

VERDICTS, RAW = 32, 16
"""Windows whose verdicts, and whose scores, are remembered."""


@node
class ScoredWindow:
    """Scores (n, models, classes), each given before its row was learned, with labels and weights."""

    scores: Array
    labels: Array
    weights: Array

    def auc(self, targets: Array, scores: Array | None = None) -> Array:
        """Area under the curve of each model; with more than two classes, the mean over classes against the rest."""
        scores = self.scores if scores is None else scores
        areas = [
            weighted_auc(scores[:, :, k], self.labels == target, self.weights)
            for k, target in enumerate(targets)
            if FEW <= (self.labels == target).sum() <= len(self.labels) - FEW
        ]
        return np.asarray(np.mean(areas, axis=0))


@node
class Evidence:
    """The windows of a race over ``targets``, the classes that the models speak for.

    Scores of different moments are not comparable, since the model moved in between: so only pairs inside a window
    count. ``verdicts`` (windows, models): areas under the curve in the newest closed windows; ``closed`` counts all.
    """

    targets: Array
    n_models: int
    open: list[ScoredWindow] = field(default_factory=list)
    raw: list[ScoredWindow] = field(default_factory=list)
    verdicts: Array = field(default_factory=lambda: np.zeros((0, 0)))
    closed: int = 0

    def __post_init__(self) -> None:
        if self.verdicts.size == 0:
            self.verdicts = np.zeros((0, self.n_models))

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
        self.verdicts = np.vstack([self.verdicts[1 - VERDICTS :], window.auc(self.targets)])
        self.closed += 1
        self.open = []
        return True

    def windows(self) -> list[ScoredWindow]:
        """The newest closed windows; before the first is closed the open one, if it says anything at all."""
        if self.raw or not self.open:
            return self.raw
        window = self.open[0]
        counts = np.unique(window.labels, return_counts=True)[1]
        return [window] if len(counts) > 1 and counts.min() >= FEW else []

    def verdict(self) -> tuple[Array, Array]:
        """Mean area of each model over the newer half of the windows, and the error of its distance to the best's.

        The standard error, over windows, of what it is behind; infinite for fewer than two windows. The older half
        speaks of models that were still small.
        """
        areas = self.verdicts[min(self.closed, VERDICTS) // 2 :]
        if self.closed == 0:
            areas = np.array([window.auc(self.targets) for window in self.windows()])
        if len(areas) == 0:
            return np.full(self.n_models, 0.5), np.full(self.n_models, np.inf)
        means = areas.mean(axis=0)
        if len(areas) < 2:
            return means, np.full(self.n_models, np.inf)
        gaps = areas[:, [int(means.argmax())]] - areas
        return means, gaps.std(axis=0, ddof=1) / np.sqrt(len(areas))

    def mixture(self, models: Sequence[int]) -> Array:
        """Area in each window of the sum of some models' standardised scores."""
        areas = []
        for window in self.windows():
            scores = window.scores[:, list(models)]
            spread = scores.std(axis=0)
            mixed = (scores / np.where(spread > 0, spread, 1.0)).sum(axis=1, keepdims=True)
            areas.append(float(window.auc(self.targets, mixed)[0]))
        return np.array(areas)

    def only(self, models: list[int]) -> None:
        """Forget the other models."""
        self.n_models = len(models)
        self.verdicts = self.verdicts[:, models]
        for window in [*self.open, *self.raw]:
            window.scores = window.scores[:, models]

    def _joined(self) -> ScoredWindow:
        """The open window, with the newest rows of each class."""
        parts = [np.concatenate([getattr(w, name) for w in self.open]) for name in ("scores", "labels", "weights")]
        keep = np.zeros(len(parts[1]), bool)
        for label in np.unique(parts[1]):
            keep[np.flatnonzero(parts[1] == label)[-ROOM:]] = True
        return ScoredWindow(*(part[keep] for part in parts))
