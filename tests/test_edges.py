"""Edge cases: errors for invalid rows name row and column, and extreme doubles are safe."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from pairloom import AUCClassifier, Learner, PairwiseRanker, PairwiseRegressor, Stream
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.systems import FPOGD, KOIL, OAM, ExactAUC, SparseKernelAUC
from tests.conftest import make_stream
from tests.covering import every_pair

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


def calls(X, y):
    """Every public method that accepts rows, of models with ten columns."""
    model = FPOGD(random_state=0).fit(X, y)
    ranker = PairwiseRanker(random_state=0).fit(X, y)
    stream = Stream(Learner(seed=0)).partial_fit(X, y)
    phi = FeatureTransformer().fit(X)
    yield from (model.predict, model.decision_function, model.predict_proba, model.score_many, ranker.predict)
    yield from (lambda rows: model.partial_fit(rows, y[:1]), lambda rows: FPOGD().fit(rows, y[:1]))
    yield from (lambda rows: ranker.pair_score(X[:1], rows), stream.score, phi.transform, FeatureTransformer().fit)
    yield lambda rows: stream.partial_fit(rows, y[:1])


@pytest.mark.parametrize("column", [10, 12, 2_000_000_000, -1])
def test_a_csr_column_that_is_not_there_is_found_by_every_call(column):
    X, y = make_stream("random", 50, 10)
    for call in calls(X, y):
        bad = csr_matrix((np.ones(1), [3], [0, 1]), shape=(1, 10))
        bad.indices[0] = column
        with pytest.raises(ValueError, match=f"stores column {column} at row 0, but has 10|indices must be >= 0"):
            call(bad)


def test_other_sparse_formats_are_checked_before_they_are_converted():
    X, y = make_stream("random", 50, 10)
    model = FPOGD(random_state=0).fit(X, y)
    by_column = csc_array(X[:5])
    by_column.indices[3] = 2_000_000_000
    coordinates = coo_array(X[:5])
    coordinates.coords[1][3] = 12
    for bad in (by_column, coordinates):
        with pytest.raises(ValueError, match=r"indices must be < 5|stores column 12, but has 10 columns"):
            model.predict(bad)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X + 1j, "Complex data not supported"),
        (lambda X: X.astype(str), "X must contain numbers, got the text .* at row 0, column 0"),
        (lambda X: X.astype("M8[s]"), r"X must contain numbers, got datetime64\[s\]"),
        (lambda X: np.ma.masked_array(X, np.arange(X.size).reshape(X.shape) == 0), "X is masked at row 0, column 0"),
        (lambda X: np.where(np.arange(10) == 4, "1.5", X.astype(object)), "got '1.5' at row 0, column 4"),
        (lambda X: np.where(np.arange(10) == 4, "abc", X.astype(object)), "got 'abc' at row 0, column 4"),
        (lambda X: np.where(np.arange(10) == 4, 1e300, X), r"1e\+300 at row 0, column 4, too large for float32"),
        (lambda X: np.where(np.arange(10) == 4, np.inf, X), "infinity at row 0, column 4"),
    ],
)
def test_what_is_no_number_is_refused_by_name(change, message):
    X, y = make_stream("random", 50, 10)
    for call in calls(X, y):
        with pytest.raises(ValueError, match=message):
            call(change(X[:1]))


def test_lists_say_which_entry_is_text():
    X, y = make_stream("random", 50, 3)
    with pytest.raises(ValueError, match="X must contain numbers, got 'x' at row 1, column 2"):
        FPOGD(random_state=0).fit(X, y).predict([[1.0, 2.0, 3.0], [1.0, 2.0, "x"]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, lambda columns: pa.table(columns)])
def test_frames_name_the_column(frame):
    X, y = make_stream("random", 50, 3)
    columns = dict(zip("abc", X.T, strict=True))
    model = FPOGD(random_state=0).fit(frame(columns), y)
    with pytest.raises(ValueError, match="column 'b' contains infinity at row 7"):
        model.predict(frame({**columns, "b": np.where(np.arange(50) == 7, np.inf, X[:, 1])}))
    with pytest.raises(ValueError, match="column 'c' must contain numbers, but contains 'x' at row 0"):
        model.predict(frame({**columns, "c": ["x"] * 50}))


def test_one_row_says_which_value_is_no_number():
    X, y = make_stream("random", 50, 3)
    model = FPOGD(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y)
    unnamed = FPOGD(random_state=0).fit(X, y)
    for row in (["1", 2, 3], [1j, 2, 3], [None, 2, 3], np.ma.masked_array([1.0, 2, 3], [True, False, False])):
        with pytest.raises(ValueError, match=r"a row must contain numbers only, got .* in column 0|is masked"):
            unnamed.learn_one(row, 1.0)
    for row in (["x", 2, 3], [1j, 2, 3], {"b": 1, "a": [], "c": 3}):
        with pytest.raises(ValueError, match=r"column 'a' must contain numbers, but contains .* at row 0"):
            model.learn_one(row, 1.0)
    with pytest.raises(ValueError, match="column 'b' contains infinity at row 0"):
        model.score_one({"b": np.inf, "a": 2, "c": 3})


@pytest.mark.parametrize("kind", [FPOGD, PairwiseRanker])
def test_a_pandas_row_keeps_its_names(kind):
    X, y = make_stream("random", 40, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    rows, whole = kind(random_state=0), kind(random_state=0).partial_fit(frame, y)
    for (_, row), label in zip(frame.iterrows(), y, strict=True):
        rows.learn_one(row[["c", "a", "b"]] if rows.__dict__.get("n_features_in_") else row, label)
    assert rows.feature_names_in_.tolist() == ["a", "b", "c"]
    assert rows.score_one(frame.iloc[0][::-1]) == whole.score_one(X[0])
    with pytest.raises(ValueError, match=r"unknown columns \['z'\]"):
        rows.learn_one(frame.iloc[0].rename({"b": "z"}), y[0])
    plain = kind(random_state=0).learn_one(pd.Series(X[0]), y[0])
    assert not hasattr(plain, "feature_names_in_")
    with pytest.raises(ValueError, match="without column names"):
        plain.learn_one(frame.iloc[0], y[0])


@every_pair(
    scale=["standard", "wide", "maxabs", "minmax", None], dtype=["float32", "float64"], rows=[np.asarray, csr_array]
)
def test_denormal_and_tiny_columns(scale, dtype, rows):
    X, y = make_stream("random", 80, 3)
    X[:, 1] = 0
    X[:4, 1] = [0, 0, 1e-41, 0]
    for data in (X, np.where(np.arange(3) == 1, X * 1e-30, X), 1e-165 * X):
        for model in (FPOGD(gamma="median", scale=scale, dtype=dtype), ExactAUC(scale=scale, dtype=dtype)):
            assert np.isfinite(model.fit(rows(data), y).decision_function(rows(data))).all()


def test_a_race_takes_denormal_columns():
    X, y = make_stream("random", 300, 3)
    X[:, 1] = 0
    X[:4, 1] = [0, 0, 1e-41, 0]
    assert np.isfinite(AUCClassifier(random_state=0).fit(X, y).decision_function(X)).all()


@pytest.mark.parametrize(
    "model",
    [
        FPOGD(scale="standard"), FPOGD(gamma="median"), FPOGD(kernel="linear", scale="minmax", eta=0.01),
        KOIL(scale="standard", kernel="matern32"), ExactAUC(scale="wide"), AUCClassifier(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
@pytest.mark.parametrize("rows", [np.asarray, csr_array])
def test_a_row_far_away_does_not_poison_a_model(model, rows):
    """1e15 fits into float32, but neither 1e40 times the spread of the earlier rows nor its square does."""
    X, y = make_stream("random", 200, 3)
    X *= 1e-25
    far = np.full((1, 3), 1e15)
    model.fit(rows(X), y)
    assert np.isfinite(model.decision_function(rows(far))).all()
    model.partial_fit(rows(far), y[:1])
    assert np.isfinite(model.decision_function(rows(np.concatenate([X, far])))).all()


@pytest.mark.parametrize("unit", [1e-25, 1e-17, 1e-8, 1e8])
def test_differences_of_labels_are_exact_whatever_their_unit(unit):
    X, _ = make_stream("random", 400, 3)
    y = X[:, 0] + np.square(X[:, 1])
    one, other = (PairwiseRegressor(random_state=0).fit(X, c * y).predict(X) / c for c in (1.0, unit))
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_a_basis_of_nothing_scores_nothing():
    model = SparseKernelAUC(random_state=0).fit(np.zeros((5, 2)), np.ones(5))
    assert model.stream_.score(np.ones((3, 2))).tolist() == [0.0, 0.0, 0.0]
    for weight in (1e-100, 1e100):
        X, y = make_stream("random", 60, 3)
        heavy = SparseKernelAUC(random_state=0).fit(X, y, sample_weight=np.full(60, weight))
        np.testing.assert_allclose(heavy.coef_, SparseKernelAUC(random_state=0).fit(X, y).coef_, rtol=1e-6)


def test_a_reservoir_survives_rows_of_next_to_no_weight():
    X, y = make_stream("random", 2000, 3)
    model = OAM(random_state=0).fit(X, y, sample_weight=np.where(np.arange(2000) < 1000, 1.0, 1e-18))
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("gap", [None, pd.NA, np.nan, pd.NaT])
def test_a_missing_value_of_any_kind_is_nan_with_its_place(gap):
    X, y = make_stream("random", 20, 3)
    model = FPOGD(random_state=0).fit(X, y)
    rows = X.astype(object)
    rows[3, 1] = gap
    for call in (model.predict, lambda rows: FPOGD().fit(rows, y), Stream(Learner()).partial_fit(X, y).score):
        with pytest.raises(ValueError, match=r"NaN at row 3, column 1|got NaT at row 3, column 1"):
            call(rows)
    labels = y.astype(object)
    labels[4] = gap
    with pytest.raises(ValueError, match=r"Input y contains \w+. It is at row 4"):
        FPOGD().fit(X, labels)
    with pytest.raises(ValueError, match="sample_weight"):
        model.learn_one(X[0], y[0], sample_weight=gap)


def test_masks_hide_no_labels_and_no_groups():
    X, y = make_stream("random", 20, 3)
    hidden = np.ma.masked_array(y, np.arange(20) == 7)
    for call in (FPOGD().fit, Stream(Learner()).partial_fit, PairwiseRanker().fit):
        with pytest.raises(ValueError, match="y is masked at row 7"):
            call(X, hidden)
    with pytest.raises(ValueError, match="groups is masked at row 7"):
        PairwiseRanker().fit(X, y, groups=np.ma.masked_array(np.arange(20), np.arange(20) == 7))


def test_numbers_beyond_all_doubles_and_rows_without_columns():
    X, y = make_stream("random", 20, 3)
    model = FPOGD(random_state=0).fit(X, y)
    huge = X.astype(object)
    huge[2, 1] = 10**400
    for call in (model.predict, Stream(Learner()).partial_fit(X, y).score):
        with pytest.raises(ValueError, match="too large for float64"):
            call(huge)
    with pytest.raises(ValueError, match="too large for float64"):
        model.score_one([1.0, 10**400, 2.0])
    with pytest.raises(ValueError, match="eta must be a number above 0"):
        FPOGD(eta=10**400).fit(X, y)
    with pytest.raises(ValueError, match=r"X must have rows and columns, got shape \(20, 0\)"):
        Stream(Learner()).partial_fit(X[:, :0], y)
    with pytest.raises(ValueError, match=r"y has shape \(\), but X has 20 rows"):
        Stream(Learner()).partial_fit(X, {1, 2})


def test_a_parameter_changed_between_calls_does_not_reach_the_learner():
    X, y = make_stream("random", 20, 3)
    model = FPOGD(random_state=0).fit(X, y).set_params(dtype="float64")
    with pytest.raises(ValueError, match="too large for float32"):
        model.learn_one([1e50, 1.0, 1.0], 1.0)
    assert np.isfinite(model.set_params(dtype="banana").score_many(X)).all()
    with pytest.raises(ValueError, match=r"pos_label='typo' is not one of the classes \[-1.0, 1.0\]"):
        model.set_params(pos_label="typo").score_many(X)
