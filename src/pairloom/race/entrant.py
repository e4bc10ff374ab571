"""One learner in a race: a grid, a path of exact minimisers, or a single model."""

from dataclasses import dataclass

import numpy as np

from pairloom.grid import Grid
from pairloom.learner import Learner
from pairloom.race.exact_path import ExactPath
from pairloom.race.mixing import Price
from pairloom.race.portfolio import Candidate
from pairloom.state import Recent
from pairloom.typing import Array


@dataclass
class Entrant:
    """A candidate that learns; it has one model or many."""

    candidate: Candidate
    learner: Grid | ExactPath | Learner
    microseconds: float

    def __len__(self) -> int:
        return 1 if isinstance(self.learner, Learner) else len(self.learner)

    @property
    def recent(self) -> Recent:
        """Test-then-train scores: the columns of the first model, then those of the next."""
        assert self.learner.state is not None
        return self.learner.state.recent

    def score(self, model: int, X: Array) -> Array:
        """Scores of valid rows by one model: (rows, classes)."""
        size = len(self.learner.pairs.models)
        return self.learner.score_with(self.learner.coef[model * size : (model + 1) * size], X)

    def price(self, n_features: int) -> Price:
        """Of one of its models."""
        return Price(self.microseconds, self.candidate.features.n_outputs(n_features))

    def only(self, model: int) -> "Entrant":
        """The entrant with one of its models, which goes on where it is."""
        if isinstance(self.learner, Learner):
            return self
        alone = self.learner.learner(model) if isinstance(self.learner, Grid) else self.learner.only([model])
        return Entrant(self.candidate, alone, self.microseconds)

    def scales(self, model: int) -> tuple[Array, Array]:
        """Mean and spread of the newest scores of a model, for each class."""
        size = len(self.learner.pairs.models)
        scores = self.recent.view()[0][:, model * size : (model + 1) * size]
        if len(scores) == 0:
            return np.zeros(size), np.ones(size)
        spread = scores.std(axis=0)
        return scores.mean(axis=0), np.where(spread > 0, spread, 1.0)
