"""The claims of the paper: each has its place, and its verdict follows the numbers."""

import math

import numpy as np
import pytest

from pairloom.theory import features_needed
from reproduction import paper
from reproduction.report.claims import CLAIMS, PLACES, Verdict, findings
from reproduction.report.claims.bounds import full_history
from reproduction.report.claims.sampling import stratified, uniform
from reproduction.report.estimates import estimate
from reproduction.results import Results
from reproduction.tests import invented
from reproduction.tests.invented import record

BY_ID = {claim.id: claim for claim in CLAIMS}
RIVALS = ("SPAM-NET", "OGD", "SparseKernelAUC", "ProjectronPP", "Kar")


def verdict(folder, claim, experiment, records):
    invented.save(folder / f"{experiment}.csv", records)
    return BY_ID[claim].find(Results(folder)).verdict


def table(kernel, rivals, datasets=("usps", "a9a"), **more):
    """AUCs with a little noise over five folds."""
    noise = (-0.002, -0.001, 0.0, 0.001, 0.002)
    systems = {"FPOGD, kernel": kernel, **dict.fromkeys(RIVALS, rivals), **more}
    return [
        record(dataset, system, fold=fold, auc=auc + noise[fold] * (1 + k / 9), rows=900, n_train=900)
        for dataset in datasets
        for k, (system, auc) in enumerate(systems.items())
        for fold in range(5)
    ]


def test_every_claim_has_its_own_name_and_a_place():
    assert len(BY_ID) == len(CLAIMS)
    assert all(claim.place in PLACES for claim in CLAIMS)
    assert {claim.place for claim in CLAIMS} == set(PLACES)


def test_without_results_only_theory_has_verdicts(tmp_path):
    found = dict(findings(Results(tmp_path)))
    waiting = [claim.id for claim, finding in found.items() if "python -m reproduction" in finding.measured]
    assert {"superiority", "against-time", "enough-features", "strata-reduce", "linear-time", "sublinear", "lemma-2",
            "regret-figures", "variance-figures", "allocation"} <= set(waiting)  # fmt: skip
    assert all(found[BY_ID[name]].verdict is Verdict.UNTESTED for name in waiting)
    failing = {claim.id for claim, finding in found.items() if finding.verdict is Verdict.FAILS}
    assert {
        "certificate",
        "theorem-5",
        "log-regret",
        "bound-on-strata",
        "reservoir",
        "corollary",
        "theorem-3",
    } <= failing


@pytest.mark.parametrize(("kernel", "rivals", "expected"), [(0.9, 0.8, "HOLDS"), (0.8, 0.9, "FAILS")])
def test_superiority_follows_the_table(tmp_path, kernel, rivals, expected):
    for claim in ("superiority", "majority", "best-on-six", "offline"):
        assert verdict(tmp_path, claim, "table", table(kernel, rivals)) is Verdict[expected]


def test_superiority_in_part_where_the_lead_is_split(tmp_path):
    records = table(0.9, 0.8, ("usps",)) + table(0.8, 0.9, ("a9a",))
    assert verdict(tmp_path, "superiority", "table", records) is Verdict.IN_PART
    assert verdict(tmp_path, "best-on-six", "table", records) is Verdict.FAILS


def test_printed_numbers_are_compared_in_combined_errors(tmp_path):
    exact = [record(dataset, system, fold=fold, auc=one.auc / 100 + (fold - 2) / 1000)
             for dataset, row in paper.AUC.items() for system, one in row.items() for fold in range(5)
             if system != "FPOGD"]  # fmt: skip
    assert verdict(tmp_path, "numbers", "table", exact) is Verdict.HOLDS
    moved = [{**one, "auc": one["auc"] - 0.1} for one in exact]
    assert verdict(tmp_path, "numbers", "table", moved) is Verdict.FAILS
    stand_in = [{**one, "note": "stand-in: other"} for one in moved]
    assert verdict(tmp_path, "numbers", "table", stand_in) is Verdict.UNTESTED


def test_german_is_judged_by_the_best_of_all(tmp_path):
    assert verdict(tmp_path, "german", "table", table(0.79, 0.75, ("german",), LightGBM=0.8)) is Verdict.FAILS
    assert verdict(tmp_path, "german", "table", table(0.79, 0.75, ("german",), LightGBM=0.87)) is Verdict.HOLDS


@pytest.mark.parametrize(("power", "expected"), [(1.0, "HOLDS"), (1.6, "FAILS")])
def test_orders_are_upper_bounds(tmp_path, power, expected):
    rng = np.random.default_rng(0)
    records = [
        record("", "FPOGD, kernel", axis, value, fold, micros=value**growth * rng.lognormal(0, 0.01))
        for axis, growth in (("s", power), ("T", power - 1))
        for value in (8192.0, 16384.0, 32768.0, 65536.0)
        for fold in range(3)
    ]
    assert verdict(tmp_path, "linear-time", "cost", records) is Verdict[expected]


@pytest.mark.parametrize(("gain", "expected"), [(0.0, "HOLDS"), (0.05, "FAILS")])
def test_enough_features(tmp_path, gain, expected):
    mark = features_needed(32_561)
    records = [record("a9a", "FPOGD, kernel", "D", float(D), fold, auc=0.8 + gain * (mark * 2 < D) + fold / 1000)
               for D in (512, 2048, 8192) for fold in range(5)]  # fmt: skip
    assert verdict(tmp_path, "enough-features", "features", records) is Verdict[expected]


@pytest.mark.parametrize(("power", "reduce", "cap"), [(-1, "HOLDS", "IN_PART"), (1, "FAILS", "HOLDS")])
def test_strata_and_the_error_of_the_gradient(tmp_path, power, reduce, cap):
    records = [record("a9a", "FPOGD, kernel", "max_strata", float(s), 0, row=row, **more)
               for s in (1, 2, 4, 8) for row in (100, 200)
               for more in ({"error": float(s) ** power, "norm": 1.0}, {"auc": 0.9, "seconds": 1.0})]  # fmt: skip
    assert verdict(tmp_path, "strata-reduce", "clusters", records) is Verdict[reduce]
    assert verdict(tmp_path, "cap-and-variance", "clusters", records) is Verdict[cap]


@pytest.mark.parametrize(("pace", "expected"), [(0.1, "HOLDS"), (100.0, "FAILS")])
def test_who_leads_in_time(tmp_path, pace, expected):
    curves = [record("usps", system, row=row, seconds=row * speed, auc=0.9 + bonus - 0.4 * math.exp(-row / 100))
              for system, speed, bonus in (("FPOGD, kernel", pace, 0.02 if pace < 1 else -0.1), ("OGD", 1.0, 0.0))
              for row in range(10, 1000, 10)]  # fmt: skip
    assert verdict(tmp_path, "against-time", "auc-time", curves) is Verdict[expected]


def test_variances_of_strata_are_those_of_simulated_draws():
    rng = np.random.default_rng(0)
    strata = [rng.normal(size=size) for size in (6, 3, 1)]
    strata = [one - one.mean() for one in strata]
    sizes, variances = [len(one) for one in strata], [float(one.var()) for one in strata]
    draws = sum(len(one) / 10 * rng.choice(one, size=200_000) for one in strata)
    assert draws.var() == pytest.approx(stratified(sizes, variances), rel=0.02)
    everything = rng.choice(np.concatenate(strata), size=(200_000, 3)).mean(axis=1)
    assert everything.var() == pytest.approx(uniform(sizes, variances, 3), rel=0.02)


def test_the_stream_that_breaks_the_theorem_is_summed_right():
    """The same regret by pairs, one after the other."""
    from random import Random

    n_rows, step, rng = 60, 0.1, Random(0)
    stream = []
    for _ in range(n_rows):
        positive, right = rng.random() < 0.5, rng.random() < 0.5
        stream.append((1 if positive else -1, (1.0 if right else -1.0) if positive else 0.0))

    def loss(w, t):
        y, x = stream[t]
        return sum((1 - w * y * (x - other)) ** 2 for label, other in stream[:t] if label != y) / t

    def gradient(w, t):
        y, x = stream[t]
        return sum(-2 * (1 - w * y * (x - other)) * y * (x - other) for label, other in stream[:t] if label != y) / t

    w, before, after = 0.0, 0.0, 0.0
    for t in range(1, n_rows):
        before += loss(w, t)
        w -= step * gradient(w, t)
        after += loss(w, t)
    a, b, c = np.polyfit((-1, 0, 1), [sum(loss(w, t) for t in range(1, n_rows)) for w in (-1, 0, 1)], 2)
    least = c - b**2 / (4 * a)
    found = full_history(n_rows, step)
    assert found[0] == pytest.approx(before - least, abs=1e-9)
    assert found[1] == pytest.approx(after - least, abs=1e-9)


def test_estimates():
    one = estimate([0.1, 0.2, 0.3, 0.4, 0.5])
    assert one.error == pytest.approx(math.sqrt(0.025 / 5))
    assert (estimate([0.5]).clear, estimate([1.0, 1.1]).clear, estimate([-1.0, -1.1]).clear) == (0, 1, -1)


def test_the_corrected_table_of_data_sets():
    assert {name: paper.wrong(name) for name in paper.TABLE_3 if paper.wrong(name)} == {
        "diabetes": ("ratio",), "usps": ("ratio",), "german": ("size",),
    }  # fmt: skip
    assert features_needed(581_012) == 10_117
    assert paper.reason("german", "OGD", -0.05) != "not known"
    assert paper.reason("german", "OGD", 0.05) == "not known"
    assert paper.reason("covtype", "OGD", 0.05) == "not known"


def test_a_quick_run_says_what_its_sets_cannot_show(tmp_path):
    """Small sets only, and a sweep that ends at the mark: no verdict, and not "run it again"."""
    assert verdict(tmp_path, "large-scale", "table", table(0.9, 0.8)) is Verdict.UNTESTED
    sweep = [record("usps", "FPOGD, kernel", "D", float(D), fold, auc=0.9) for D in (64, 512, 1024) for fold in (0, 1)]
    assert verdict(tmp_path, "enough-features", "features", sweep) is Verdict.UNTESTED
    for claim in ("large-scale", "enough-features"):
        assert "python -m reproduction" not in BY_ID[claim].find(Results(tmp_path)).measured
