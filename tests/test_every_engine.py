"""Every published form of every estimator in float64: CSR rows are dense rows, and compiled code is the specification.

Apart from ``test_every_estimator.py``, which runs in float32: two processes compile the two types at the same time.
They go through the forms in opposite orders: most functions without a type of rows are then compiled only once.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from tests.conftest import STREAMS, make_stream
from tests.generic import forms, make, outputs

FORMS = sorted(forms())

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


@pytest.mark.parametrize("form", FORMS[::-1])
def test_sparse_rows_and_frames_give_the_model_of_arrays(form):
    X, y = make_stream("random", 300, 5)
    X[np.abs(X) < 0.5] = 0
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 300)
    for labels in (np.digitize(X[:, 0], [-0.5, 0.5]), y):
        dense, thin = (make(form, dtype="float64").fit(rows, labels, weight) for rows in (X, csr_array(X)))
        for one, other in zip(outputs(dense, X), outputs(thin, csr_array(X)), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-7)
    names = list("abcde")
    frame = make(form, dtype="float64").fit(pd.DataFrame(X, columns=names), y, weight)
    np.testing.assert_array_equal(frame.predict(pd.DataFrame(X, columns=names)), dense.predict(X))
    assert frame.score_one(dict(zip(names, X[0], strict=True))) == dense.score_one(X[0])


@pytest.mark.parametrize("k", range(len(FORMS))[::-1], ids=FORMS[::-1])
def test_the_compiled_code_does_what_the_specification_says(k):
    """Two classes on one kind of stream, three on another; the tests of each system have more."""
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 160)
    for n_classes in (2, 3):
        X, labels = make_stream(STREAMS[(k + n_classes - 2) % 4], 160, 4)
        if n_classes == 3:
            labels = np.digitize(X[:, 0], [-0.5, 0.5])
        fast, slow = (make(FORMS[k], dtype="float64", engine=e).fit(X, labels, weight) for e in ("auto", "reference"))
        recent = [model.stream_.state.observed["recent"].scores for model in (fast, slow)]
        np.testing.assert_allclose(*recent, atol=1e-8 * np.abs(recent[1]).max())
        assert fast.n_pairs_ == slow.n_pairs_
