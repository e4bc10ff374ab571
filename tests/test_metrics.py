"""Metrics of a window: exact, weighted, with ties; and confidence intervals."""

import pickle
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t
from sklearn.metrics import average_precision_score, roc_auc_score

from pairloom.base.tree import copy, flatten, same, unflatten
from pairloom.metrics import StreamingAUC, WindowAUC, delong
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.curve import average_precision, mass_above, partial_auc
from tests.conftest import examples

KINDS = {
    "normal": lambda z: z,
    "ties": np.round,
    "large": lambda z: 1e3 + np.round(z, 1),
    "small": lambda z: 1e-9 * z,
    "near 1": lambda z: 1.0 + 1e-15 * np.round(z, 2),
    "infinite": lambda z: np.where(z > 1, np.inf, np.where(z < -1, -np.inf, z)),
}


def rows(kind, n=400, share=0.3, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    positive[:2] = [True, False]
    scores = KINDS[kind](rng.normal(size=n) + positive)
    return positive, scores, rng.choice([0.1, 1.0, 7.0], n) if weighted else np.ones(n)


def finite(scores):
    """Ranks in place of scores: scikit-learn refuses infinite ones."""
    return np.unique(scores, return_inverse=True)[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("share", "weighted"), [(0.3, False), (0.3, True), (0.001, True)])
def test_a_window_agrees_with_scikit_learn(kind, share, weighted):
    y, s, w = rows(kind, 2000, share, weighted=weighted)
    auc = WindowAUC(1500).update(y, s, w)
    assert auc.counts == (y[500:].sum(), 1500 - y[500:].sum()) or min(auc.counts) == 0
    auc = WindowAUC(2000).update(y, s, w)
    ranks = finite(s)
    assert auc.value == pytest.approx(roc_auc_score(y, ranks, sample_weight=w), rel=1e-13)
    assert auc.average_precision == pytest.approx(average_precision_score(y, ranks, sample_weight=w), rel=1e-13)
    for max_fpr in (1e-4, 0.05, 0.3, 1.0):
        expected = roc_auc_score(y, ranks, sample_weight=w, max_fpr=max_fpr)
        assert auc.partial(max_fpr) == pytest.approx(expected, rel=1e-12)


def areas_by_definition(y, s, w, max_fpr):
    """Average precision, and the standardised partial area, summed up over the distinct scores."""
    own, other = mass_above(s, y, w)
    precision = own[1:] / (own + other)[1:]
    tpr, fpr = own / own[-1], other / other[-1]
    inside = fpr <= max_fpr
    x, height = np.append(fpr[inside], max_fpr), np.append(tpr[inside], np.interp(max_fpr, fpr, tpr))
    chance = 0.5 * max_fpr**2
    partial = 0.5 * (1.0 + (np.trapezoid(height, x) - chance) / (max_fpr - chance))
    return np.diff(own) @ precision / own[-1], partial


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_fpr", [1e-4, 0.05, 0.3])
def test_average_precision_and_partial_area_follow_their_definitions(kind, weighted, max_fpr):
    y, s, w = rows(kind, 2000, 0.3, weighted=weighted)
    expected = areas_by_definition(y, s, w, max_fpr)
    assert (average_precision(s, y, w), partial_auc(s, y, w, max_fpr)) == pytest.approx(expected, rel=1e-12)


@examples(40)
@given(st.data())
def test_the_newest_rows_count_however_they_are_cut_into_calls(data):
    y, s, w = rows("ties", 60, seed=data.draw(st.integers(0, 99)))
    w[data.draw(st.lists(st.integers(0, 59)))] = 0.0
    size = data.draw(st.integers(1, 70))
    cuts = sorted(data.draw(st.lists(st.integers(0, 60))))
    whole, cut = WindowAUC(size).update(y, s, w), WindowAUC(size)
    for a, b in zip([0, *cuts], [*cuts, 60], strict=True):
        cut.update(y[a:b], s[a:b], w[a:b])
    assert same(whole, cut)
    newest = np.flatnonzero(w > 0)[-size:]
    assert whole.counts == (y[newest].sum(), (~y[newest]).sum())
    if min(whole.counts):
        assert whole.value == pytest.approx(roc_auc_score(y[newest], s[newest], sample_weight=w[newest]), rel=1e-13)


def test_row_by_row_it_is_rivers_window():
    river = pytest.importorskip("river.metrics", reason="river is not installed: pip install river")
    y, s, _ = rows("normal", 500, seed=3)  # no ties: there they count 0
    ours, theirs = WindowAUC(100), river.RollingROCAUC(100)
    for label, score in zip(y.tolist(), s.tolist(), strict=True):
        ours.update(label, score)
        theirs.update(label, score)
        if min(ours.counts):
            assert ours.value == pytest.approx(theirs.get(), abs=1e-12)


@pytest.mark.parametrize("labels", [[], [1, 1], [0, 0]])
def test_one_class_is_nan_and_counts(labels):
    auc = WindowAUC(10).update(labels, np.arange(len(labels)))
    assert auc.counts == (sum(labels), len(labels) - sum(labels))
    for value in (auc.value, auc.partial(0.5), auc.average_precision, *auc.interval()):
        assert np.isnan(value)
    assert np.isnan(auc.precision_at(3)) if not labels else auc.precision_at(3) == labels[0]


def test_precision_at_k_is_the_mean_over_all_ways_to_break_ties():
    y, s, w = rows("ties", 60, seed=1)
    auc, rng = WindowAUC(60).update(y, s), np.random.default_rng(0)
    for k in (1, 2, 7, 30, 60):
        orders = [np.lexsort((rng.random(60), -s))[:k] for _ in range(4000)]
        assert auc.precision_at(k) == pytest.approx(np.mean([y[top].mean() for top in orders]), abs=0.02)
    assert auc.precision_at(1000) == y.mean()
    distinct = WindowAUC(60).update(y, np.arange(60), w)
    assert distinct.precision_at(9) == pytest.approx(w[-9:][y[-9:]].sum() / w[-9:].sum())


@pytest.mark.parametrize("metric", [lambda **k: WindowAUC(9, **k), StreamingAUC])
def test_labels_of_any_kind(metric):
    s = [0.3, 0.2, 0.4, 0.1]
    for y in ([1, 0, 0, 1], [True, False, False, True], [1.0, -1.0, -1.0, 1.0], np.array([1, 0, 0, 1], object)):
        assert metric().update(y, s).value == 0.25
    assert metric(pos_label="yes").update(["yes", "no", "maybe", "yes"], s).value == 0.25
    assert metric(pos_label=0).update([1, 0, 0, 1], s).value == 0.75
    for given_, said in (
        (([1, 2, 0], [1, 2, 3]), "it is 2 at row 1"),
        ((["yes", "no"], [1, 2]), "it is 'yes' at row 0"),
        (([1, None], [1, 2]), "missing at row 1"),
        (([1.0, np.nan], [1, 2]), "missing at row 1"),
        (([1, 0], [1.0, np.nan]), "score is NaN at row 1"),
        (([1, 0], ["a", 1.0]), "got 'a' at row 0"),
        (([1, 0], [[1.0], [2.0]]), "one column"),
        (([1, 0], [1.0]), "y_true has 2 rows, but score has 1"),
        (([1, 0], [1.0, 2.0], [1.0]), "sample_weight has shape"),
        (([1, 0], [1.0, 2.0], [1.0, -1.0]), "-1.0 at row 1"),
        (([1, 0], [1.0, 10**400]), "too large for float64"),
    ):
        auc = metric().update(1, 2.0)
        before = copy(auc)
        with pytest.raises(ValueError, match=said):
            auc.update(*given_)
        assert same(auc, before)


def test_parameters_are_checked():
    for call, said in (
        (lambda: WindowAUC(0), "size must be an integer >= 1"),
        (lambda: WindowAUC(3).partial(0.0), "max_fpr must be a number above 0 and at most 1"),
        (lambda: WindowAUC(3).precision_at(0), "k must be an integer"),
        (lambda: WindowAUC(3).interval(1.0), "level must be below 1"),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_a_window_is_its_own_state():
    y, s, w = rows("normal", 50)
    auc = WindowAUC(20, pos_label=True).update(y, s, w)
    for twin in (pickle.loads(pickle.dumps(auc)), copy(unflatten(flatten(auc))), copy(auc)):
        assert same(twin, auc)
        assert same(twin.update(y, s), copy(auc).update(y, s))
    assert repr(auc) == "WindowAUC(size=20, pos_label=True)"


def drawn(area, n_pos, n_neg, seed):
    positive = np.arange(n_pos + n_neg) < n_pos
    shift = np.sqrt(2.0) * NormalDist().inv_cdf(area)
    return np.random.default_rng(seed).normal(size=len(positive)) + shift * positive, positive


@pytest.mark.parametrize(
    ("area", "n_pos", "n_neg"), [(0.6, 50, 50), (0.75, 40, 400), (0.9, 100, 300), (0.97, 150, 150)]
)
def test_the_interval_holds_the_area_as_often_as_it_says(area, n_pos, n_neg):
    held = 0
    for seed in range(500):
        low, high = delong(*drawn(area, n_pos, n_neg, seed))
        held += low <= area <= high
    assert 0.93 <= held / 500 <= 0.97


def test_the_variance_is_delongs():
    """Pair by pair, as published, with Welch's degrees of freedom."""
    s, positive = drawn(0.8, 12, 30, 0)
    s = np.round(s, 1)
    heaviside = np.heaviside(s[positive][:, None] - s[~positive][None, :], 0.5)
    area = heaviside.mean()
    a, b = heaviside.mean(axis=1).var(ddof=1) / 12, heaviside.mean(axis=0).var(ddof=1) / 30
    reach = t.ppf(0.975, (a + b) ** 2 / (a**2 / 11 + b**2 / 29)) * np.sqrt(a + b)
    logits = [np.log(bound / (1 - bound)) for bound in delong(s, positive)]
    assert np.mean(logits) == pytest.approx(np.log(area / (1 - area)))
    assert np.ptp(logits) / 2 == pytest.approx(reach / (area * (1 - area)), rel=1e-12)


def test_weights_of_an_interval_are_shares():
    s, positive = drawn(0.8, 40, 60, 1)
    w = np.random.default_rng(0).exponential(size=100)
    np.testing.assert_allclose(delong(s, positive, w), delong(s, positive, 1e6 * w), rtol=1e-12)
    np.testing.assert_allclose(delong(s, positive, np.full(100, 3.0)), delong(s, positive), rtol=1e-12)
    some = np.arange(100) % 3 > 0
    np.testing.assert_allclose(delong(s, positive, some * w), delong(s[some], positive[some], w[some]), rtol=1e-12)
    low, high = delong(s, positive, w)
    assert low < weighted_auc(s[:, None], positive, w)[0] < high
    assert high - low > np.diff(delong(s, positive))[0]
    mirrored = delong(-s, positive, w)
    np.testing.assert_allclose([1 - mirrored[1], 1 - mirrored[0]], [low, high], rtol=1e-12)


def test_intervals_of_perfect_scores_and_of_few_rows():
    assert delong(np.arange(40.0), np.arange(40) >= 20) == (0.025 ** (1 / 20), 1.0)
    assert delong(np.arange(40.0), np.arange(40) < 5, level=0.8) == (0.0, pytest.approx(1 - 0.1 ** (1 / 5), rel=1e-14))
    for scores, positive in (
        ([1, 2], [0, 1]),
        ([2, 1, 3], [1, 0, 0]),
        ([1, 1], [0, 1]),
        ([1, 2, 3, 4, 2], [0, 1, 0, 1, 1]),
    ):
        low, high = delong(np.array(scores, float), np.array(positive, bool))
        assert 0 <= low < 0.1
        assert high > 0.9
    low, high = delong(np.arange(4.0), np.array([0, 1, 0, 1], bool), np.array([1.0, 1.0, 1e-90, 1.0]))
    assert (low, high) == (pytest.approx(0.025), 1.0)
    apart, wrong = np.arange(40.0), np.append(-1.0, np.arange(39.0))
    for seed in range(20):  # weights for which the area is not quite 1
        w = np.random.default_rng(seed).exponential(size=40)
        assert 0 < delong(apart, apart >= 20, w)[0] < 0.9
        assert (
            delong(apart, apart >= 20, w)[1] == delong(wrong, (wrong >= 20) | (wrong < 0), w * (wrong >= 0))[1] == 1.0
        )
    assert delong(np.zeros(50), np.arange(50) < 20) == (0.5, 0.5)
    assert np.isnan(delong(np.zeros(2), np.ones(2, bool))).all()


def test_an_interval_narrows_as_rows_come_and_widens_with_its_level():
    widths = [np.diff(delong(*drawn(0.8, n, n, 0)))[0] for n in (20, 80, 320, 1280)]
    np.testing.assert_allclose(np.array(widths[1:]) / widths[:-1], 0.5, atol=0.15)
    auc = WindowAUC(100).update(*drawn(0.8, 50, 50, 0)[::-1])
    bounds = [auc.interval(level) for level in (0.999, 0.95, 0.5)]
    assert bounds[0][0] < bounds[1][0] < bounds[2][0] < auc.value < bounds[2][1] < bounds[1][1] < bounds[0][1]
