"""Evidence of a race: windows of test-then-train scores, in which models are compared by their AUC."""

from dataclasses import field
from typing import Annotated

import numpy as np

from pairloom.base.spec import WEIGHT, Count
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.metrics.auc import weighted_auc

WINDOW_ROWS, WINDOW_CLASS_ROWS = 512, 10
"""A window is closed once it has the first number of rows, and the second number of each class seen in it.

Two classes are enough if a third is so rare that another one has reached ``MAX_CLASS_ROWS``."""

MIN_AUC_ROWS = 3
"""Rows of each class needed for the AUC of an open window."""

MAX_CLASS_ROWS = 2048
"""Maximum number of rows per class in an open window; the newest are kept."""

MAX_WINDOWS = 16
"""Maximum number of closed windows; the newest are kept."""

USED_SHARE = 0.6
"""Share of the closed windows that is used: in the older ones, models had seen few rows."""


@node
class ScoredWindow:
    """Test-then-train scores (n, models, classes) with labels and weights."""

    scores: Annotated[Array, "f8 _n M v finite"]
    labels: Annotated[Array, "label _n"]
    weights: Annotated[Array, f"f8 _n {WEIGHT}"]

    @property
    def rare(self) -> int:
        """Rows of the rarest class; 0 if there is only one class."""
        counts = np.unique(self.labels, return_counts=True)[1]
        return int(counts.min()) if len(counts) > 1 else 0

    def auc(self, targets: Array) -> Array:
        """Return the AUC of each model; with more than two classes, the mean over classes against the rest."""
        areas = [
            weighted_auc(self.scores[:, :, k], self.labels == target, self.weights)
            for k, target in enumerate(targets)
            if MIN_AUC_ROWS <= (self.labels == target).sum() <= len(self.labels) - MIN_AUC_ROWS
        ]
        return np.asarray(np.mean(areas, axis=0))


@node
class Evidence:
    """The windows of a race over ``targets``, the classes that have models.

    Only pairs inside a window are compared: models change, so that scores of distant rows are not comparable.
    ``open``: the window that is being filled, if any. ``raw``: the newest closed windows, and ``areas`` (windows,
    models): the AUC in each. ``closed``: the number of closed windows so far.
    """

    targets: Annotated[Array, "f8 v"]
    n_models: Count
    open: list[ScoredWindow] = field(default_factory=list)
    raw: list[ScoredWindow] = field(default_factory=list)
    areas: Annotated[Array, "f8 _n M 0:2"] = field(default_factory=lambda: np.zeros((0, 0)))
    closed: Count = 0

    def __post_init__(self) -> None:
        if self.areas.size == 0:
            self.areas = np.zeros((0, self.n_models))

    def check(self) -> None:
        if not len(self.raw) == len(self.areas) == min(self.closed, MAX_WINDOWS) or len(self.open) > 1:
            raise ValueError(f"must have at most one open window, and the newest {MAX_WINDOWS} closed windows")
        if self.areas.shape[1] != self.n_models:
            raise ValueError(f"must have areas of {self.n_models} models")

    def add(self, scores: Array, labels: Array, weights: Array) -> bool:
        """Add rows in order, and return whether a window was closed."""
        window = self._extended(scores, labels, weights)
        self.open = [window]
        seen = np.unique(window.labels, return_counts=True)[1]
        enough = seen >= WINDOW_CLASS_ROWS
        if seen.sum() < WINDOW_ROWS or enough.sum() < 2 or (not enough.all() and seen.max() < MAX_CLASS_ROWS):
            return False
        self.raw = [*self.raw[1 - MAX_WINDOWS :], window]
        self.areas = np.vstack([self.areas[1 - MAX_WINDOWS :], window.auc(self.targets)])
        self.closed += 1
        self.open = []
        return True

    def used(self) -> tuple[list[ScoredWindow], Array]:
        """Return the windows in which models are compared, and the AUC in them (windows, models).

        Before the first window is closed, this is the open one, if it has enough rows.
        """
        if self.raw:
            n = min(len(self.raw), int(np.ceil(USED_SHARE * self.closed)))
            return self.raw[-n:], self.areas[-n:]
        window = self.open[0] if self.open else None
        if window is None or window.rare < MIN_AUC_ROWS:
            return [], self.areas
        return [window], window.auc(self.targets)[None]

    def mean_auc(self) -> tuple[Array, float]:
        """Return the mean AUC of each model, windows weighted by their rows of the rarest class, and these rows."""
        windows, areas = self.used()
        rare = np.array([window.rare for window in windows], float)
        if not windows:
            return np.full(self.n_models, 0.5), 0.0
        return rare @ areas / rare.sum(), float(rare.sum())

    def clear(self) -> None:
        """Drop all windows."""
        self.open, self.raw, self.closed = [], [], 0
        self.areas = np.zeros((0, self.n_models))

    def forget(self, keep: float) -> None:
        """Keep this share of the closed windows, the newest ones; if none are left, drop the open window too."""
        self.closed = round(keep * self.closed)
        if not self.closed:
            self.open = []
        self.raw = self.raw[max(0, len(self.raw) - self.closed) :]
        self.areas = self.areas[max(0, len(self.areas) - self.closed) :]

    def keep_models(self, models: list[int]) -> None:
        """Drop the scores of all other models."""
        self.n_models = len(models)
        self.areas = self.areas[:, models]
        for window in [*self.open, *self.raw]:
            window.scores = window.scores[:, models]

    def _extended(self, scores: Array, labels: Array, weights: Array) -> ScoredWindow:
        """Return the open window with more rows, the newest of each class."""
        windows = [*self.open, ScoredWindow(scores, labels, weights)]
        parts = [np.concatenate([getattr(w, name) for w in windows]) for name in ("scores", "labels", "weights")]
        keep = np.zeros(len(parts[1]), bool)
        for label in np.unique(parts[1]):
            keep[np.flatnonzero(parts[1] == label)[-MAX_CLASS_ROWS:]] = True
        return ScoredWindow(*(part[keep] for part in parts))
