"""Claims on regret and on the variance of gradients: verdicts follow the numbers."""

import pytest

from reproduction.buffers import CENTROID, FIFO, FRESH, NEYMAN, OAM_TYPE, RESERVOIR, RIVALS, WHOLE
from reproduction.regret import ORDERS
from reproduction.report.buffers import CONSTANT, ROOT, horizons, streams
from reproduction.report.claims import CLAIMS, Verdict
from reproduction.report.claims.regret import correlations
from reproduction.report.regret import growth
from reproduction.results import Results
from reproduction.tests import invented
from reproduction.tests.invented import regret_cell, variance_cell
from reproduction.variance import PATHS

BY_ID = {claim.id: claim for claim in CLAIMS}
SETS = ("usps", "a9a")
OF_REGRET = ("sublinear", "sublinear-buffer", "control", "regret-figures", "variance-and-regret", "coupling",
             "robustness", "improved-bound", "lemma-2", "independence")  # fmt: skip


def finding(folder, claim, experiment, records):
    invented.save(folder / f"{experiment}.csv", records)
    return BY_ID[claim].find(Results(folder))


def runs(**systems):
    """All streams of two sets; of each algorithm: power, factor, error and bound, as far as given."""
    named = {name: systems.get(name, {}) for name in (FIFO, RESERVOIR, *RIVALS, FRESH, WHOLE)}
    return [one for dataset in SETS for order in ORDERS for eta in (0.125, 2000**-0.5)
            for system, more in named.items()
            for one in regret_cell(dataset, system, order, eta, **{"power": 0.7, **more})]  # fmt: skip


def test_runs_are_read_by_stream(tmp_path):
    invented.save(tmp_path / "regret.csv", runs())
    found = streams(Results(tmp_path))
    assert {stream.step for stream in found} == {CONSTANT, ROOT}
    assert {stream.order for stream in found} == {"i.i.d.", "sorted"}
    assert len(found) == 8
    run = next(iter(found.values()))[FIFO]
    assert run.final("before") == pytest.approx(2000**0.7)
    assert run.interval() == pytest.approx((0.7, 0.65, 0.75))
    assert run.sublinear()


@pytest.mark.parametrize(("power", "expected"), [(0.6, "HOLDS"), (0.97, "FAILS")])
def test_sublinear_is_an_interval_below_1(tmp_path, power, expected):
    records = runs(**{FIFO: {"power": power}})
    assert finding(tmp_path, "sublinear-buffer", "regret", records).verdict is Verdict[expected]
    assert finding(tmp_path, "sublinear", "regret", records).verdict is Verdict[expected]
    assert finding(tmp_path, "regret-figures", "regret", records).verdict is Verdict[expected]


def test_sublinear_in_part_where_others_lose_less(tmp_path):
    records = runs(**{FIFO: {"power": 0.7, "factor": 2.0}})
    assert finding(tmp_path, "sublinear", "regret", records).verdict is Verdict.IN_PART
    assert finding(tmp_path, "regret-figures", "regret", records).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("strata", "expected"),
    [({"power": 0.5}, "HOLDS"), ({"factor": 0.9}, "IN_PART"), ({"factor": 1.1}, "FAILS")],
)
def test_strata_improve_the_rate_or_the_regret(tmp_path, strata, expected):
    assert finding(tmp_path, "control", "regret", runs(**{RESERVOIR: strata})).verdict is Verdict[expected]


@pytest.mark.parametrize(("sign", "expected"), [(1, "HOLDS"), (-1, "FAILS")])
def test_error_and_regret_are_compared_by_rank(tmp_path, sign, expected):
    names = (WHOLE, FRESH, FIFO, RESERVOIR, OAM_TYPE, "Kar, by class", "Yang, opposite")
    systems = {name: {"error": 0.1 * k, "factor": 2 + 0.1 * sign * k} for k, name in enumerate(names)}
    found = finding(tmp_path, "variance-and-regret", "regret", runs(**systems))
    assert found.verdict is Verdict[expected]
    assert list(correlations(Results(tmp_path)).values()) == pytest.approx([sign] * 8)


@pytest.mark.parametrize(("factor", "expected"), [(1.05, "HOLDS"), (1.5, "FAILS")])
def test_coupling_is_measured_against_fresh_draws(tmp_path, factor, expected):
    found = finding(tmp_path, "coupling", "regret", runs(**{OAM_TYPE: {"factor": factor}}))
    assert found.verdict is Verdict[expected]
    assert f"{factor:.2f} to {factor:.2f} times" in found.measured


def test_robustness_is_what_sorting_does(tmp_path):
    calm = runs()
    assert finding(tmp_path, "robustness", "regret", calm).verdict is Verdict.HOLDS
    worse = [{**one, **{name: 3 * one[name] for name in ("before", "after") if name in one}}
             if one["system"] == FIFO and one["axis"] == ORDERS["sorted"] else one for one in calm]  # fmt: skip
    assert finding(tmp_path, "robustness", "regret", worse).verdict is Verdict.FAILS


def test_bounds_are_judged_at_every_row(tmp_path):
    assert finding(tmp_path, "lemma-2", "regret", runs()).verdict is Verdict.HOLDS
    assert finding(tmp_path, "independence", "regret", runs()).verdict is Verdict.IN_PART
    broken = runs(**{FRESH: {"bound": 0.5}})
    found = finding(tmp_path, "lemma-2", "regret", broken)
    assert "in 8 of 8 runs with fresh draws" in found.measured
    assert found.verdict is Verdict.FAILS
    coupled = finding(tmp_path, "lemma-2", "regret", runs(**{OAM_TYPE: {"bound": 0.5}}))
    assert "in 8 of 40 runs (8 of OAM-type reservoir)" in coupled.measured
    assert coupled.verdict is Verdict.HOLDS
    assert finding(tmp_path, "independence", "regret", broken).verdict is Verdict.FAILS
    assert "in 8 of 56 runs" in finding(tmp_path, "theorem-5", "regret", broken).measured


@pytest.mark.parametrize(("bound", "expected"), [(2.0, "HOLDS"), (20.0, "FAILS")])
def test_the_least_bound(tmp_path, bound, expected):
    records = runs(**{FIFO: {"bound": bound}})
    assert finding(tmp_path, "improved-bound", "regret", records).verdict is Verdict[expected]


def test_short_streams_have_no_verdicts(tmp_path):
    short = [one for system in (FIFO, RESERVOIR, OAM_TYPE, FRESH, *RIVALS) for order in ORDERS
             for one in regret_cell("usps", system, order, 0.125, 0.7, last=300)]  # fmt: skip
    for claim in OF_REGRET:
        found = finding(tmp_path, claim, "regret", short)
        assert found.verdict is Verdict.UNTESTED
        assert "python -m reproduction" not in found.measured


def test_growth_with_the_length_of_the_stream(tmp_path):
    ends = [invented.record("usps", WHOLE, "T", float(T), row=T, before=3 * T**0.4, after=1.0, best=1.0)
            for T in (1000, 500, 2000)]  # fmt: skip
    found = finding(tmp_path, "log-regret", "regret", ends)
    assert "usps 0.40 [0.40, 0.40]" in found.measured
    assert list(horizons(Results(tmp_path))["usps"]) == [500, 1000, 2000]
    assert growth({500: {"before": 1.0}, 1000: {"before": 2.0}}) is None
    assert growth({500: {"before": -1.0}, 1000: {"before": 2.0}, 2000: {"before": 2.0}}) is None


def errors(**means):
    named = dict.fromkeys((FIFO, RESERVOIR, CENTROID, NEYMAN, *RIVALS), 1.0) | means
    return [one for dataset in SETS for axis in PATHS.values() for system, mean in named.items()
            for one in variance_cell(dataset, system, axis, mean)]  # fmt: skip


@pytest.mark.parametrize(("mean", "expected"), [(0.5, "HOLDS"), (1.5, "FAILS")])
def test_the_least_error_of_gradients(tmp_path, mean, expected):
    found = finding(tmp_path, "variance-figures", "variance", errors(**{FIFO: mean, CENTROID: 0.1}))
    assert found.verdict is Verdict[expected]
    assert "centroids on 2 and 2" in found.measured


@pytest.mark.parametrize(("mean", "expected"), [(0.5, "HOLDS"), (1.5, "FAILS")])
def test_allocation(tmp_path, mean, expected):
    assert finding(tmp_path, "allocation", "variance", errors(**{NEYMAN: mean})).verdict is Verdict[expected]


def test_one_set_is_not_enough_for_a_verdict_on_variance(tmp_path):
    one = [record for record in errors() if record["dataset"] == "usps"]
    for claim in ("variance-figures", "allocation"):
        assert finding(tmp_path, claim, "variance", one).verdict is Verdict.UNTESTED


def test_the_certificate_says_how_often_it_fails(tmp_path):
    records = [invented.certificate_cell("usps", share, above=0.3) for share in (0.05, 0.5)]
    assert "usps 30 %" in finding(tmp_path, "certificate", "variance", records).measured
