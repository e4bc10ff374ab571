"""Promises 5 and 6: bounded memory, and bits that depend on seed and rows alone."""

import copy
import pickle
from functools import partial

import pytest

from pairloom.base.tree import nbytes
from pairloom.systems import FPOGD
from tests.conftest import make_stream
from tests.generic import FPOGD_VARIANTS, assert_only_the_seed_matters, assert_same


@pytest.fixture(params=FPOGD_VARIANTS, ids=str)
def parameters(request):
    return {"random_state": 0, "n_components": 64, **FPOGD_VARIANTS[request.param]}


# 5. Memory does not grow with the stream.


def test_5_bytes_are_the_formula_and_flat():
    d, D, s = 6, 64, 8
    X, y = make_stream("random", 30_000, d)
    model = FPOGD(n_components=D, max_strata=s, random_state=0)
    sizes = []
    for start in range(0, 30_000, 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000])
        sizes.append(model.nbytes_)
    # Representatives and centres, weights and average, frequencies with their offset and scaling, in float32; ...
    single = 4 * (2 * 2 * s * D + 2 * D + d * D // 2 + D // 2 + 2 * d)
    # ... counts, labels, queries and scatter, recent scores, labels and weights, the tally, the width, the groups, the
    # log-odds.
    double = 8 * (4 * 2 * s + 4 * 4096 + 7 + 1 + 2 + 2)
    # The weights as a combination of the representatives, with their products; the newest 32 rows of each class.
    combination = 4 * (D + (2 * s) ** 2) + 8 * (2 * (2 * s) + 1)
    newest = 8 * (2 * 32 * (d + 1) + 2)
    assert sizes[1] == sizes[-1] == single + double + combination + newest
    assert sizes[0] == single + double + combination + newest + 1000 * (4 * d + 3 * 8)
    assert nbytes(model.stream_.state) + newest == sizes[-1]
    assert len(pickle.dumps(model)) < sizes[-1] + 10_000


@pytest.mark.soak
def test_5_flat_over_millions_of_rows():
    import resource

    X, y = make_stream("random", 100_000, 6)
    model = FPOGD(n_components=64, random_state=0).fit(X, y)
    size, peak = model.nbytes_, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(30):
        model.partial_fit(X, y)
    assert model.n_seen_ == 3_100_000
    assert model.nbytes_ == size
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < peak + 50_000


# 6. Same seed, same rows: same bits; no global random state.


def test_6_the_global_generator_is_neither_read_nor_written(parameters):
    X, y = make_stream("random", 200, 5)
    assert_only_the_seed_matters(partial(FPOGD, **parameters), X, y)


def test_6_fit_twice_and_copies_go_on_alike(parameters):
    X, y = make_stream("random", 400, 5)
    model = FPOGD(**parameters).fit(X, y)
    assert_same(model, FPOGD(**parameters).fit(X[::-1], y[::-1]).fit(X, y))
    other = copy.deepcopy(model)
    other.partial_fit(X[:100], y[:100])
    assert other.n_seen_ == 500
    assert model.n_seen_ == 400
    assert_same(model.partial_fit(X[:100], y[:100]), other)
