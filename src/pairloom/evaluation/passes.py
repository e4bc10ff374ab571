"""A learner on its way along a stream, open to see at every row."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.clock import last_replay
from pairloom.base.typing import Array
from pairloom.engines.state import State
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features.growing import refuse_growing
from pairloom.models.learner import Learner
from pairloom.stream import Stream

BLOCK = 256
"""Rows mapped at a time, and whose pairs with the past are summed up together, as products of matrices."""


class Pass:
    """One pass of a learner, in float64, with the rules on data that it will have at the end.

    A stream keeps its first rows, and learns them again when rules on data are fixed anew; the pass that is left is the
    one with the last rules, and this is that one. So after row t the weights are those of a stream that has learned all
    rows and goes back to its start: they end as ``Stream(learner).partial_fit(X, y).coef`` does, up to rounding.

    Parameters
    ----------
    learner : with any engine; the reference engine takes its place, which is the same up to rounding.
    batch : all rows.

    Attributes
    ----------
    learner, batch : with arrays of float64.
    state : what was learned so far: ``state.w`` (vectors, D), ``state.memory``, ``state.phi``.
    """

    def __init__(self, learner: Learner, batch: Batch) -> None:
        refuse_growing(learner.features, "a pass that is looked at")
        self.learner = replace(learner, engine="reference")
        self.batch = Batch(batch.X.astype(float), batch.y, batch.weight, batch.query)
        d = batch.X.shape[1]
        settled = last_replay(len(batch), learner.warm_rows(d))
        self.state: State = self.learner.init(d, self.batch[:settled] if learner.needs_data else None)
        self.first = min(len(batch), learner.features.growers(self.state.phi))

    @property
    def dim(self) -> int:
        """D."""
        return int(self.state.w.shape[1])

    def blocks(self) -> Iterator[tuple[range, Array]]:
        """Numbers of the rows that are learned, in pieces, and phi of them; not those whose labels made the map."""
        for start in range(self.first, len(self.batch), BLOCK):
            rows = range(start, min(start + BLOCK, len(self.batch)))
            yield rows, self.learner.features.dense(self.state.phi, self.batch.X[rows.start : rows.stop]).astype(float)

    # OpenBLAS may set this flag for nothing: see Stream.learn.
    @np.errstate(invalid="ignore")
    def learn(self, row: int) -> None:
        """Learn one row; rows must come in order. For many of them, have BLAS on one thread."""
        self.state.t = max(self.state.t, self.first)
        self.learner.run(self.state, self.batch[row : row + 1])


def learner_and_rows(model: Any, X: Any, y: Any) -> tuple[Learner, Batch]:
    """The learner under a model, before its first row, and rows as it takes them; ValueError for another model."""
    if isinstance(model, Stream):
        model = model.model
    if isinstance(model, PairwiseClassifier):
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"there are no pairs: all rows have the label {classes.tolist()[0]!r}")
        model, y = model.to_model(len(classes)), codes
    if not isinstance(model, Learner):
        raise ValueError(
            "this is for learners that pair each row with a memory: a Learner, or a system that is one, such as FPOGD, "
            f"OGD, OLP or OAM; got {model!r}"
        )
    return model, Stream(model).check(X, y)
