"""Estimators on Dask: every row is learned once, models are local ones in the end, and errors name the partition."""

import importlib

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import pairloom
from pairloom import systems
from pairloom.base.tree import same
from pairloom.dask.plan import even_sizes, pieces_of, shards_of
from tests.conftest import make_stream

dask = pytest.importorskip("dask", reason="dask is missing: pip install -e .[dask]")
da = importlib.import_module("dask.array")
dd = importlib.import_module("dask.dataframe")

from pairloom.dask import FPOGD, AUCClassifier, ExactAUC, PairwiseRanker, PartitionError  # noqa: E402

N = 6000
X, Y = make_stream("normal", N, 4)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="sync"):
        yield


def chunked(sizes, *arrays):
    made = []
    for array in arrays:
        chunks = (tuple(sizes), array.shape[1]) if array.ndim == 2 else (tuple(sizes),)
        made.append(da.from_array(array, chunks=chunks))
    return made


@pytest.mark.parametrize("rounds", [1, 3])
def test_exact_models_are_those_of_one_pass(rounds):
    """Shards of very different sizes, and one with a single class."""
    order = np.concatenate([np.flatnonzero(Y < 0)[:1000], np.flatnonzero(Y > 0), np.flatnonzero(Y < 0)[1000:]])
    sizes = (1000, 5, 900, 3000, N - 4905)
    Xs, ys = chunked(sizes, X[order], Y[order])
    model = ExactAUC(dtype="float64", random_state=0, rounds=rounds).fit(Xs, ys)
    whole = systems.ExactAUC(dtype="float64", random_state=0).fit(X, Y)
    assert model.n_seen_ == N
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8, atol=1e-12)


def test_rounds_shards_and_few_rows():
    """However rows are cut into rounds and shards, each is learned once; few rows are learned in one pass."""
    Xs, ys = chunked((700, 0, 2300, 1000, 2000), X, Y)
    for rounds, shards in ((1, 16), (4, 2), (7, 3)):
        model = FPOGD(random_state=0, rounds=rounds, shards=shards).fit(Xs, ys)
        assert model.n_seen_ == N
        assert roc_auc_score(Y, model.decision_function(X)) > 0.9
    few = FPOGD(random_state=0).fit(*chunked((300, 0, 300), X[:600], Y[:600])).to_local()
    order = np.arange(600).reshape(2, 300).T.ravel()
    assert same(few.state_.stream, systems.FPOGD(random_state=0).fit(X[order], Y[order]).state_.stream)


def test_the_race_on_shards():
    """A small base keeps the test short: the structure is fixed once its settings are final."""
    Small = type("Small", (AUCClassifier,), {"base_rows": 2048})
    Xs, ys = chunked((2000, 1500, 2500), X, Y)
    model = Small(random_state=0, rounds=2).fit(Xs, ys)
    whole = pairloom.AUCClassifier(random_state=0).fit(X, Y)
    assert model.n_seen_ == N
    areas = [roc_auc_score(Y, one.decision_function(X)) for one in (model, whole)]
    assert areas[0] > areas[1] - 0.01
    local = model.to_local()
    assert isinstance(local, pairloom.AUCClassifier)
    local.partial_fit(X[:300], Y[:300])
    assert local.n_seen_ == N + 300


def test_saved_models_load_and_continue(tmp_path):
    Xs, ys = chunked((2000, 4000), X, Y)
    Small = type("Small", (AUCClassifier,), {"base_rows": 2048})
    for model in (Small(random_state=0, rounds=2), FPOGD(random_state=0, rounds=2), ExactAUC(random_state=0)):
        local = model.fit(Xs, ys).to_local()
        pairloom.save(local, tmp_path / "model.pairloom")
        again = pairloom.load(tmp_path / "model.pairloom")
        one, two = local.partial_fit(X[:700], Y[:700]), again.partial_fit(X[:700], Y[:700])
        assert same(one.state_.stream, two.state_.stream)


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["a", "b", "c"], n)
    frame = pd.DataFrame({"x": rng.normal(size=n), "kind": kind, "size": rng.integers(0, 9, n)})
    frame.loc[::7, "x"] = np.nan
    return frame, np.where(frame["x"].fillna(0) + (kind == "a") + rng.normal(size=n) > 1, "yes", "no")


@pytest.mark.parametrize("kind", [FPOGD, ExactAUC, AUCClassifier])
def test_frames_with_categories_that_few_shards_have(kind):
    frame, y = mixed(5000)
    frame.loc[3000:3010, "kind"] = "only here"
    frame.loc[4500:4510, "kind"] = "only there"
    if kind is AUCClassifier:
        kind = type("Small", (AUCClassifier,), {"base_rows": 2048})
    frames = dd.from_pandas(frame, npartitions=5, sort=False)
    labels = dd.from_pandas(pd.Series(y), npartitions=5, sort=False)
    model = kind(random_state=0, rounds=2).fit(frames, labels)
    local = model.to_local()
    assert local.n_seen_ == 5000
    assert {"a", "only here", "only there"} <= set(local.columns_.categories["kind"])
    scores = model.decision_function(frames)
    assert np.isnan(scores.shape[0])  # lazy: nothing is computed yet
    np.testing.assert_array_equal(scores.compute(), local.decision_function(frame))
    assert model.predict(frames).compute().tolist() == local.predict(frame).tolist()


def test_classes_that_one_shard_has():
    y = np.where(Y > 0, "b", "a").astype(object)
    y[-300:] = "c"
    Xs, ys = chunked((3000, 2000, 1000), X, y.astype(str))
    model = FPOGD(random_state=0, rounds=2, pos_label="b").fit(Xs, ys)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.predict_proba(Xs).compute().shape == (N, 3)


def test_delayed_partitions_weights_and_queries():
    cuts = [(0, 2000), (2000, 2000), (2000, 6000)]
    lists = [[dask.delayed(a[i:j]) for i, j in cuts] for a in (X, Y, np.full(N, 2.0), np.arange(N) // 10)]
    model = ExactAUC(dtype="float64", random_state=0).fit(*lists[:3])
    whole = systems.ExactAUC(dtype="float64", random_state=0).fit(X, Y, np.full(N, 2.0))
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
    ranker = PairwiseRanker(random_state=0, rounds=2).fit(
        lists[0], [dask.delayed(X[i:j, 0]) for i, j in cuts], groups=lists[3]
    )
    assert ranker.score(X, X[:, 0]) > 0.9
    np.testing.assert_array_equal(ranker.predict(lists[0]).compute(), ranker.predict(X))


def test_errors_name_the_partition():
    Xs, ys = chunked((3000, 3000), X, Y)
    wrong = X.copy()
    wrong[4000, 2] = np.inf
    for rows, labels, message in (
        (chunked((3000, 3000), wrong)[0], ys, "partition 1: .*infinity"),
        ([dask.delayed(X[:3000]), dask.delayed(X[3000:])], [dask.delayed(Y[:3000]), dask.delayed(Y[1:3000])],
         "partition 1: y has 2999 values, but X has 3000 rows"),
        ([dask.delayed(X[:3000]), dask.delayed(X[3000:, :2])], [dask.delayed(Y[:3000]), dask.delayed(Y[3000:])],
         "partition 1 has the columns 2, but partition 0 has 4"),
    ):  # fmt: skip
        with pytest.raises(PartitionError, match=message):
            ExactAUC(random_state=0).fit(rows, labels)
    with pytest.raises(ValueError, match="y has 3 partitions, but X has 2"):
        ExactAUC().fit(Xs, chunked((2000, 2000, 2000), Y)[0])
    with pytest.raises(ValueError, match="X must be a Dask array"):
        ExactAUC().fit(X, Y)
    with pytest.raises(ValueError, match="all 2 partitions are empty"):
        ExactAUC().fit(*chunked((0, 0), X[:0], Y[:0]))
    with pytest.raises(ValueError, match="at least two classes"):
        ExactAUC().fit(Xs, chunked((3000, 3000), np.ones(N))[0])
    with pytest.raises(ValueError, match="rounds"):
        ExactAUC(rounds=0).fit(Xs, ys)
    with pytest.raises(TypeError, match="half_life=None"):
        ExactAUC(half_life=100).fit(Xs, ys)


def test_it_is_an_estimator():
    model = FPOGD(rounds=3, eta=0.5)
    assert clone(model).get_params() == model.get_params()
    assert "rounds=3" in repr(model)


def test_the_plan_uses_every_row_once():
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = rng.integers(0, 50, rng.integers(1, 9)).tolist()
        heads, rounds = even_sizes(sizes, int(rng.integers(1, 100))), int(rng.integers(1, 6))
        learned = [(k, row) for k, n in enumerate(heads) for row in range(n)]
        for shard in shards_of([n - m for n, m in zip(sizes, heads, strict=True)], 3):
            pieces = pieces_of(shard, sizes, heads, rounds)
            assert len(pieces) == rounds
            learned += [(one.partition, row) for piece in pieces for one in piece for row in range(one.start, one.stop)]
        assert sorted(learned) == [(k, row) for k, n in enumerate(sizes) for row in range(n)]
