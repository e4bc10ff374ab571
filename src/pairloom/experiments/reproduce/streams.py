"""Systems without the face of an estimator: what the algorithm itself costs."""

from typing import Any

from pairloom.base.typing import Array
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.stream import Stream

WARM_ROWS = 2_048


def core(system: PairwiseClassifier, X: Array, y: Array) -> Stream:
    """A fresh stream through the model that a system stands for, with everything compiled.

    An estimator also fits the calibration of its probabilities, about eight times in every doubling of the stream: no
    part of any published system, and on a short stream more work than most of them. To compile, the first rows are
    learned by another stream, which is thrown away.
    """
    model = system.to_model()
    learn(Stream(model), X[:WARM_ROWS], y[:WARM_ROWS], whole=system.needs_all_rows)
    return Stream(model)


def learn(stream: Stream, X: Any, y: Array, *, whole: bool = False) -> None:
    """Learn rows with labels -1 and +1; ``whole`` if the model needs all of them before the first."""
    batch = stream.check(X, y)
    if whole:
        stream.start_with(batch)
    stream.start(X.shape[1])
    stream.learn(batch)
