import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from pairloom.base.clock import next_calibration
from pairloom.stream.calibration import MIN_SLOPE, platt, quartiles, windows_of


def scored(n=2000, seed=0, slope=2.0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(3.0, 0.1, size=n)
    labels = np.where(rng.random(n) < expit(slope * 10 * (scores - 3.0) - 1.5), 1.0, -1.0)
    return scores, labels


def fit(scores, labels):
    return platt(scores, labels > 0, np.ones(len(scores)))


def test_it_is_the_maximum_likelihood_fit_with_platts_targets():
    """The same fit by scikit-learn: each row twice, with the smoothed target and its complement as weights."""
    scores, labels = scored()
    a, b = fit(scores, labels)
    n_pos, n_neg = (labels > 0).sum(), (labels < 0).sum()
    target = np.where(labels > 0, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    twice = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000, solver="newton-cholesky").fit(
        np.concatenate([scores, scores])[:, None],
        np.repeat([1, 0], len(scores)),
        sample_weight=np.concatenate([target, 1 - target]),
    )
    assert a == pytest.approx(twice.coef_[0, 0], rel=1e-6)
    assert b == pytest.approx(twice.intercept_[0], rel=1e-6)


@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8])
def test_it_does_not_depend_on_the_scale_of_the_scores(factor):
    scores, labels = scored()
    (a, b), (a_f, b_f) = fit(scores, labels), fit(factor * scores, labels)
    assert a_f * factor == pytest.approx(a, rel=1e-6)
    assert b_f == pytest.approx(b, rel=1e-6)


def test_useless_and_inverted_scores_keep_their_order():
    scores, labels = scored(slope=-2.0)
    a, b = fit(scores, labels)
    assert a == pytest.approx(MIN_SLOPE / np.subtract(*np.quantile(scores, [0.75, 0.25])))
    assert expit(a * scores + b).mean() == pytest.approx((labels > 0).mean(), abs=0.01)


def test_the_slope_is_that_inside_windows():
    """As scikit-learn fits it with an indicator for each window; between windows the scores are misleading."""
    rng = np.random.default_rng(0)
    shift = np.repeat([1.0, -1.0, 0.0], 1024)  # the more positives, the lower the scores
    scores = rng.normal(size=3072) - 2.0 * shift
    positive = rng.random(3072) < expit(1.5 * (scores + 2.0 * shift) + 2.0 * shift)
    starts = windows_of(positive)
    assert starts.tolist() == [0, 1024, 2048]
    n_pos, n_neg = positive.sum(), (~positive).sum()
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    columns = np.column_stack([scores, np.repeat(np.eye(3), 1024, axis=0)])
    twice = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000, solver="newton-cholesky", fit_intercept=False).fit(
        np.concatenate([columns, columns]), np.repeat([1, 0], 3072), sample_weight=np.concatenate([target, 1 - target])
    )
    a, b = platt(scores, positive, np.ones(3072), windows=starts)
    assert a == pytest.approx(twice.coef_[0, 0], rel=1e-6)
    assert expit(a * scores + b).mean() == pytest.approx(target.mean(), rel=1e-6)
    assert platt(scores, positive, np.ones(3072))[0] < 0.1 * a  # over all rows


def test_windows_have_ten_rows_of_either_class():
    positive = np.zeros(4096, bool)
    positive[[*range(0, 900, 100), 1500, *range(3000, 3010), 4000]] = True
    assert windows_of(positive).tolist() == [0, 2048]
    assert windows_of(~positive).tolist() == [0, 2048]
    assert windows_of(positive[:2047]).tolist() == [0]
    assert windows_of(np.zeros(0, bool)).tolist() == [0]


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_one_class_gives_finite_numbers_on_its_side(label):
    a, b = fit(np.linspace(-1, 1, 50), np.full(50, label))
    assert 0 < a < np.inf
    assert np.sign(b) == label
    a, b = fit(np.zeros(50), np.full(50, label))
    assert (a, np.sign(b)) == (1.0, label)


def test_separable_scores_give_a_finite_slope():
    scores = np.array([-2.0, -1.0, 1.0, 2.0])
    a, b = fit(scores, np.sign(scores))
    assert 0 < a < 10
    assert b == pytest.approx(0, abs=1e-9)


def test_calibration_rows_are_an_eighth_of_the_stream_apart():
    rows, t = [], 0
    while t < 100_000:
        t = next_calibration(t)
        rows.append(t)
    gaps = np.diff(rows)
    assert rows[:8] == list(range(1, 9))
    assert (gaps <= np.maximum(1, np.array(rows[:-1]) / 8)).all()
    assert gaps.max() == 2048
    assert {2**k for k in range(17)} <= set(rows)
    assert all(next_calibration(s) == min(r for r in rows if r > s) for s in range(0, 20_000, 7))


def test_weights_count_as_repetitions():
    scores, labels = scored(n=300)
    weight = np.random.default_rng(1).integers(1, 4, size=300)
    repeated = fit(np.repeat(scores, weight), np.repeat(labels, weight))
    # The middle half of the scores, by which they are cut off, is the same to a few parts in a thousand.
    assert platt(scores, labels > 0, weight.astype(float)) == pytest.approx(repeated, rel=1e-6)


def test_one_wild_score_does_not_flatten_the_slope():
    scores, labels = scored()
    wild = scores.copy()
    wild[7] = 1e6
    labels[7] = -1
    assert fit(wild, labels)[0] == pytest.approx(fit(scores, labels)[0], rel=0.1)


@pytest.mark.parametrize("value", [0.1, 1e-300, 1e12])
def test_scores_equal_but_for_rounding_are_equal(value):
    scores = np.full(9, value)
    scores[::2] *= 1 + 1e-15
    a, b = fit(scores, np.sign(np.arange(9) - 4.5))
    assert a == 1.0
    assert abs(a * value + b) < 1


def test_a_start_changes_the_fit_by_rounding_only():
    scores, labels = scored()
    cold = fit(scores, labels)
    for start in ((1.0, 0.0), (100.0, -300.0), (1e-6, 5.0), (1e300, 1e300), (5e4, 0.0), (np.inf, np.nan)):
        assert platt(scores, labels > 0, np.ones(len(scores)), start) == pytest.approx(cold, rel=1e-5)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e-90, 1e200])
def test_scores_of_any_size_have_finite_log_odds(size):
    scores = size * np.arange(8.0)
    a, b = platt(scores, np.arange(8) > 3, np.ones(8))
    assert a > 0
    assert np.isfinite(a * scores + b).all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("kind", ["normal", "ties", "signed zeros", "infinite", "missing", "huge", "float32"])
def test_quartiles_are_those_of_numpy_to_the_last_bit(kind):
    rng = np.random.default_rng(0)
    for n in [*range(1, 40), 100, 127, 1000, 4096]:
        scores = rng.normal(size=n) * 10.0 ** rng.integers(-9, 9)
        if kind == "ties":
            scores = np.round(rng.normal(size=(n, 2)), 1)[:, 1]
        elif kind == "signed zeros":
            scores = rng.choice([0.0, -0.0], n)
        elif kind in ("infinite", "missing"):
            scores[rng.integers(n)] = {"infinite": np.inf, "missing": np.nan}[kind]
        elif kind == "huge":
            scores = rng.choice([1e308, -1e308], n)
        elif kind == "float32":
            scores = scores.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            expected = np.quantile(scores, [0.25, 0.5, 0.75])
        found = np.array(quartiles(scores))
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
