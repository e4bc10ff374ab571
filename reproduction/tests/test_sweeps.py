"""The sweeps of the reproduction: strata, and cost."""

from dataclasses import replace

import numpy as np
import pytest

from pairloom.data import imbalanced
from pairloom.features import Gaussian, RandomFourier
from pairloom.systems import FPOGD
from reproduction import clusters, cost, problems
from reproduction.clusters import Learning
from reproduction.config import read
from reproduction.cost import SYSTEMS
from reproduction.problems import Fold, Split
from reproduction.report.cost import exponent
from reproduction.report.estimates import slope

DATA = Fold("toy", 0, 5, 100, 0)
LEARNING = Learning(eps=0.05, eta=0.05, alpha=1e-6, n_components=64)


@pytest.fixture
def toy(monkeypatch):
    def split_of(dataset, fold, n_folds, seed):
        X, y = imbalanced(500, 4, positive=0.3, seed=fold)
        return Split(X[:400], y[:400], X[400:], y[400:])

    monkeypatch.setattr(problems, "split_of", split_of)


def without(records, *columns):
    return [{name: value for name, value in one.items() if name not in columns} for one in records]


def test_sparse_rows_are_clustered_in_feature_space_only():
    assert clusters.STRATA["input"] not in {task.cell.system for task in clusters.tasks(True, ("rcv1",))}


def test_auc_and_time_of_a_curve(toy):
    records = clusters.curve(DATA, LEARNING, max_strata=4, points=5)
    assert [list(one) for one in records] == [["row", "seconds", "auc"]] * 5
    assert [one["row"] for one in records] == [32, 60, 113, 213, 400]
    assert np.all(np.diff([one["seconds"] for one in records]) > 0)
    assert 0.5 < records[-1]["auc"] < 1
    again = clusters.curve(DATA, LEARNING, max_strata=4, points=5)
    assert without(again, "seconds") == without(records, "seconds")


def test_more_strata_less_error_of_the_gradient(toy):
    few, many = (clusters.gradient(DATA, LEARNING, s, rows=300, window=100) for s in (1, 32))
    assert [list(one) for one in few] == [["row", "error", "norm"]] * 3
    assert [one["row"] for one in few] == [100, 200, 300]
    assert all(a["error"] > 2 * b["error"] > 0 for a, b in zip(few, many, strict=True))
    assert few == clusters.gradient(DATA, LEARNING, 1, rows=300, window=100)


@pytest.mark.parametrize("space", ["features", "input"])
def test_strata_grow_up_to_the_cap_and_below_the_packing_bound(toy, space):
    def run(share):
        return clusters.strata(DATA, space, share, n_components=64, cap=50, points=8)

    fine, coarse = run(0.01), run(1.0)
    assert [list(one) for one in fine + coarse] == [["row", "n_strata", "bound_paper", "bound_packing"]] * (
        len(fine) + len(coarse)
    )
    assert fine[-1]["n_strata"] == 50
    assert fine[-1]["row"] < 400  # followed no further
    assert 1 < coarse[-1]["n_strata"] < 25
    assert coarse[-1]["row"] == 400
    for one in fine + coarse:
        assert one["bound_paper"] <= one["bound_packing"]
        assert one["n_strata"] <= clusters.at_most(one["row"], one["bound_packing"])
    assert run(0.01) == fine


def test_strata_are_those_of_the_estimator(toy):
    """The number that is counted without a model is that of FPOGD on the same rows."""
    X, y = DATA.split().X, DATA.split().y
    eps = 0.5 * clusters.mean_squared_distance(X)
    model = FPOGD(
        eps=eps, max_strata=500, strata="joint", normalization="history", cluster_in="input",
        features=RandomFourier(64, Gaussian("paper")), random_state=0,
    ).fit(X, y)  # fmt: skip
    assert clusters.strata(DATA, "input", 0.5, 64, 500, 3)[-1]["n_strata"] == model.n_strata_[0]


def test_every_system_is_timed():
    config = read("cost", cost.Config, quick=True)
    assert {sweep.system for sweep in config.sweeps} == set(SYSTEMS)
    for sweep in config.sweeps:
        sizes = {"s": 4, "D": 16, "d": 4, "T": 64} | {sweep.axis: 8 if sweep.axis != "T" else 64}
        (record,) = cost.measure(sweep.system, sweep.axis, sizes, 1e-3, 0.5, seed=0)
        assert list(record) == ["micros", "rows"]
        assert record["rows"] % 64 == 0
        assert record["micros"] * record["rows"] >= 1e-3 * 1e6


def test_sweeps_name_all_sizes_and_the_true_costs():
    """The costs beside which exponents are shown are those of the systems' cards."""
    for sweep in read("cost", cost.Config, quick=False).sweeps:
        system = SYSTEMS[sweep.system]
        sizes = {**sweep.sizes, sweep.axis: sweep.values[0]}
        assert {"d", "T", *system.sizes} == set(sizes), sweep
        assert min(sweep.values) <= sweep.fit_from <= min(sweep.quick), sweep
        assert set(sweep.quick) <= set(sweep.values), sweep
        assert sum(value >= sweep.fit_from for value in sweep.values) >= 3, sweep
        card = system.made(sizes, 0).card
        if card.model == "linear":
            words = {"D": "d", "d D + s D": "s d", "D^2": "d^2"}
            time = words.get(card.time, card.time.replace("D", "d"))
        else:
            time = card.time.replace("log n", "log T")
        assert sweep.true_cost == f"O({time})", sweep


def test_exact_powers_have_exact_slopes():
    values = np.array([4.0, 16, 64, 256, 4, 16])
    for power in (-1, 0, 0.5, 2):
        found = slope(values, 3 * values**power)
        assert (found.value, found.low, found.high, found.factor) == pytest.approx((power, power, power, 3), abs=1e-9)


def test_the_interval_of_a_slope_covers_it_19_times_in_20():
    rng = np.random.default_rng(0)
    values = np.repeat([4.0, 8, 16, 32], 3)
    inside = 0
    for _ in range(1000):
        found = slope(values, 2 * values**1.5 * np.exp(0.1 * rng.normal(size=12)))
        assert found.low < found.value < found.high
        inside += found.low < 1.5 < found.high
    assert 930 < inside < 970


def test_a_slope_needs_two_values_and_its_interval_three_points():
    assert slope([3, 3, 3], [1, 2, 3]) is None
    two = slope([1, 2], [1, 2])
    assert two.value == pytest.approx(1)
    assert np.isnan([two.low, two.high]).all()


def test_the_exponent_of_a_sweep_is_that_of_its_upper_values():
    sweep = replace(read("cost", cost.Config, quick=False).sweeps[0], fit_from=16)
    key = {"system": sweep.system, "axis": sweep.axis}
    records = [{**key, "value": v, "micros": max(v, 8) ** 2} for v in (2, 4, 8, 16, 32, 64)]
    records += [{**key, "axis": "T", "value": 16, "micros": 1.0}]
    assert exponent(records, sweep).value == pytest.approx(2.0)
