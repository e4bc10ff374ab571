"""The order of rows: the warning about labels in blocks, and shuffling."""

import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from pairloom import AUCClassifier, load, save
from pairloom.base.tree import same
from pairloom.estimators import OrderWarning
from pairloom.estimators.order import random_order, share_of_orders, warn_of_order
from pairloom.systems import FPOGD, ExactAUC
from tests.conftest import make_stream


def blocks_of(labels):
    return sum(1 for k, label in enumerate(labels) if label and (k == 0 or not labels[k - 1]))


@pytest.mark.parametrize("own", [1, 2, 4, 6])
def test_the_share_of_orders_is_that_of_all_orders(own):
    found = [blocks_of(one) for one in set(permutations([1] * own + [0] * (7 - own)))]
    for blocks in range(1, own + 1):
        assert share_of_orders(blocks, own, 7) == pytest.approx(np.mean(np.array(found) <= blocks), rel=1e-9)


def test_labels_in_blocks_are_reported_with_what_to_do():
    X, y = make_stream("random", 400, 3)
    order = np.argsort(y, kind="stable")
    with pytest.warns(
        OrderWarning, match=r"rows of class -?1.0 come in 1 block, .* about \d+: .*shuffle=True"
    ) as found:
        ExactAUC().fit(X[order], y[order])
    assert found[0].filename == __file__
    with pytest.warns(OrderWarning, match="class 'rare' come in 1 block"):
        ExactAUC().fit(X[order], np.where(y[order] > 0, "rare", "rest"))


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(300) % 2,
        np.random.default_rng(0).random(5000) < 0.002,
        np.arange(9000) // 5 % 2,  # long blocks, as of a slow stream
        [0] * 5 + [1] * 5,  # too few rows to tell
        np.zeros(100),
    ],
    ids=["alternating", "rare", "slow", "few", "one class"],
)
def test_what_a_stream_may_have_is_not_reported(labels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_order(np.asarray(labels), 2)


def test_false_warnings_are_rare():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(500):
            warn_of_order(rng.random(rng.integers(2, 300)) < rng.random(), 2)


def test_partial_fit_never_shuffles_and_never_warns():
    X, y = make_stream("random", 300, 3)
    order = np.argsort(y, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shuffled, plain = (
            ExactAUC(shuffle=shuffle, random_state=0).partial_fit(X[order], y[order]) for shuffle in (True, False)
        )
    assert same(shuffled.state_, plain.state_)


@pytest.mark.parametrize("frame", [False, True])
def test_fit_with_shuffle_is_fit_on_shuffled_rows(frame, tmp_path):
    X, y = make_stream("random", 300, 3)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    rows = pd.DataFrame(X, columns=list("abc")) if frame else X
    model = FPOGD(n_components=16, random_state=5, shuffle=True).fit(rows, y, weight)
    order = random_order(5, 300)
    order = order[weight[order] > 0]
    there = rows.iloc[order] if frame else rows[order]
    plain = FPOGD(n_components=16, random_state=5).fit(there, y[order], weight[order])
    assert same(model.state_, plain.state_)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").shuffle is True


def test_shuffle_must_be_a_bool():
    with pytest.raises(ValueError, match="shuffle must be True or False; got 'yes'"):
        ExactAUC(shuffle="yes").fit([[0.0], [1.0]], [0, 1])


def test_sorted_iris():
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(AUCClassifier(shuffle=True, random_state=0), X, y).mean() > 0.94
