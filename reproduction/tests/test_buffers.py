"""Regret and variance of buffer algorithms: the experiments, at toy sizes."""

import numpy as np
import pytest

from pairloom import Stream, load, save
from pairloom.data import imbalanced
from pairloom.evaluation import gradient_variance
from pairloom.persist import ModelFileError
from pairloom.theory import Partition, RegretBound
from reproduction import problems, regret, variance
from reproduction.buffers import (
    BY_CLASS,
    FIFO,
    FRESH,
    MEMORIES,
    WHOLE,
    Buffer,
    FreshDraws,
    in_order_of,
    widest_feature,
)
from reproduction.config import read
from reproduction.problems import Fold, Split
from reproduction.regret import ORDERS
from reproduction.variance import PATHS, QUANTILES

DATA = Fold("toy", 0, 5, 1, 0)
BUFFER = Buffer(n_components=32, slots=4, seed=0)
ROWS, ETA = 200, 0.125


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    def split_of(dataset, fold, n_folds, seed):
        X, y = imbalanced(260, 4, positive=0.4, seed=fold)
        return Split(X[:250], y[:250], X[250:], y[250:])

    monkeypatch.setattr(problems, "split_of", split_of)


def curve(system, order="i.i.d.", eta=ETA):
    *records, whole = regret.curve(DATA, BUFFER, ROWS, system, order, 0, eta, points=8)
    return records, whole


@pytest.mark.parametrize(("name", "kind"), [("regret", regret.Config), ("variance", variance.Config)])
def test_every_system_of_a_configuration_is_known(name, kind):
    config = read(name, kind, quick=False)
    assert set(config.systems) <= set(MEMORIES)
    assert read(name, kind, quick=True).systems == config.systems


def test_text_has_no_column_to_sort_by():
    assert regret.tasks(True, ("rcv1",)) == []


def test_sorted_streams_keep_equal_rows_in_order():
    X = np.array([[1.0, 0.0], [-1.0, 0.1], [1.0, 0.2], [-1.0, 0.3]])
    split = Split(X, np.array([1.0, -1.0, 1.0, 1.0]), X[:0], X[:0, 0])
    assert widest_feature(X) == 0
    np.testing.assert_array_equal(in_order_of(split, 0).X[:, 1], [0.1, 0.3, 0.0, 0.2])
    np.testing.assert_array_equal(in_order_of(split, 0).y, [-1, 1, 1, 1])
    np.testing.assert_array_equal(regret.ordered(split, "i.i.d.", 0)[0].X, split.X)
    assert regret.ordered(split, "sorted", 0)[1] == 1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("system", [name for name in MEMORIES if name != "FPOGD, Neyman"])
def test_regret_of_every_algorithm(system, order):
    records, whole = curve(system, order)
    assert [one["row"] for one in records] == sorted({one["row"] for one in records})
    assert records[-1]["row"] == ROWS
    assert 0 < records[-1]["after"] < records[-1]["before"]
    assert whole["low"] <= whole["exponent"] <= whole["high"]
    assert all(one["best"] <= one["near"] for one in records[-1:])
    assert (whole["feature"] > 0) == (order == "sorted")
    assert ("bound" in records[0]) == ("lemma" in whole) == (system in BY_CLASS)
    if system in (FRESH, WHOLE):
        assert all(one["before"] <= one["bound"] for one in records)
        assert all(one["after"] <= one["bound_after"] <= whole["theorem"] for one in records[-1:])
        assert records[-1]["bound"] <= whole["lemma"]
    assert (whole["error"] < 1e-12) == (system == WHOLE)


def test_a_step_beyond_the_theory_has_no_theorem():
    assert "theorem" not in curve(FIFO, eta=0.5)[1]


def test_bounds_end_as_those_of_the_theory():
    split = DATA.split().first(ROWS)
    gradients = gradient_variance(BUFFER.learner(FIFO, ETA, ROWS), split.X, split.y)
    limits = regret.bounds(ETA, 7.0, gradients)
    lemma = RegretBound.lemma(ETA, 7.0, gradients.errors, gradients.norms)
    theorem = RegretBound.theorem(ETA, 7.0, gradients.errors, smoothness=4.0)
    assert limits["bound"][-1] == pytest.approx(lemma.total)
    assert limits["bound_after"][-1] == pytest.approx(theorem.total)
    assert regret.printed_bounds(ETA, 7.0, gradients) == pytest.approx({"lemma": lemma.total, "theorem": theorem.total})


def test_the_end_of_a_stream_without_variance():
    (record,) = regret.end(DATA, BUFFER, ROWS)
    learner = BUFFER.learner(WHOLE, 1 / np.log(ROWS), ROWS)
    split = DATA.split().first(ROWS)
    found = regret.regret(learner, split.X, split.y)
    assert record == {"row": ROWS} | {
        name: pytest.approx(value, rel=1e-5)
        for name, value in (("before", found.total[-1]), ("after", found.total_after[-1]), ("best", found.best.sum()))
    }


def test_fresh_draws_are_uniform_and_unbiased():
    """At a fixed w their errors are variance alone: four draws have a quarter of that of one."""
    split = DATA.split().first(ROWS)
    w = np.random.default_rng(0).normal(size=32)
    one, four = (
        gradient_variance(Buffer(32, n, 0).learner(FRESH, ETA, ROWS), split.X, split.y, path=w, start=50).mean()
        for n in (1, 4)
    )
    assert one / four == pytest.approx(4, rel=0.35)
    learner = BUFFER.learner(FRESH, ETA, ROWS)
    stream = Stream(learner).partial_fit(split.X[:100], split.y[:100])
    slots = stream.learned.memory.slots
    assert [slots.mass[(slots.labels == label)].sum() for label in (0, 1)] == [4, 4]


def test_a_file_with_fresh_draws_loads_only_with_their_class(tmp_path):
    """They are no part of the package, which a file may name without further ado."""
    split, path = DATA.split().first(ROWS), tmp_path / "model.pairloom"
    stream = Stream(BUFFER.learner(FRESH, ETA, ROWS)).partial_fit(split.X, split.y)
    save(stream, path)
    with pytest.raises(ModelFileError, match=r"'FreshDraws', which is not part of pairloom: pass its class, parts="):
        load(path)
    np.testing.assert_array_equal(load(path, parts=[FreshDraws]).coef, stream.coef)


@pytest.mark.parametrize("path", PATHS)
def test_errors_of_gradients(path):
    *records, whole = variance.errors(DATA, BUFFER, ROWS, 40, ETA, FIFO, path, points=10)
    assert len(records) == 10
    assert records[0]["row"] >= 40
    assert records[-1]["row"] == ROWS
    assert all(one["running"] > 0 for one in records)
    boxes = [whole[f"q{q}"] for q in QUANTILES]
    assert boxes == sorted(boxes)
    assert 10 ** boxes[0] < whole["mean"] < 10 ** (boxes[-1] + 1)
    assert len(variance.errors(DATA, BUFFER, ROWS, 40, ETA, FIFO, path, points=0)) == 1


def test_all_algorithms_share_the_common_path():
    norms = {variance.errors(DATA, BUFFER, ROWS, 40, ETA, system, "common", 0)[0]["norm"] for system in MEMORIES}
    assert len(norms) == 1


def test_the_certificate_has_exact_variances():
    (record,) = variance.certificate(DATA, BUFFER, ROWS, 40, ETA, share=0.5, examined=20)
    assert 0 <= record["above"] <= 1
    assert record["rows"] == 20
    assert record["neyman"] <= min(record["stratified"], record["printed"])
    assert record["printed"] <= record["uniform"]
    assert record["stratified"] <= record["bound"]
    assert record["uniform"] <= record["bound_uniform"]
    assert 1 <= record["n_strata"] <= 4


def test_unequal_strata_are_above_uniform_draws():
    values = np.concatenate([np.random.default_rng(0).normal(size=(97, 2)), np.zeros((3, 2))])
    strata = np.r_[np.zeros(97), 1, 2, 3]
    found = variance.compared(Partition.of(values, strata), Partition.of(values, strata), M=1.0)
    assert found["stratified"] > 3 * found["uniform"]
    assert found["largest"] == pytest.approx(0.97)


def test_strata_are_those_of_the_memory():
    """What FPOGD counts in its strata is what is assigned here."""
    split = DATA.split().first(ROWS)
    stream = Stream(BUFFER.learner(FIFO, ETA, ROWS)).partial_fit(split.X, split.y)
    memory, Z = stream.learned.memory, stream.model.features.apply(stream.learned.phi, split.X.astype(float))
    strata = variance.strata_of(Z, split.y, memory.eps, BUFFER.slots)
    np.testing.assert_array_equal(np.bincount(strata, minlength=8), memory.counts)


def test_a_path_ends_as_the_stream_does():
    split, learner = DATA.split().first(ROWS), BUFFER.learner(WHOLE, ETA, ROWS)
    Z, W = variance.path_of(learner, split.X, split.y)
    assert Z.shape == W.shape == (ROWS, 32)
    assert not W[0].any()
    stream = Stream(learner).partial_fit(split.X[:-1], split.y[:-1])
    np.testing.assert_array_equal(W[-1], stream.coef[0])
