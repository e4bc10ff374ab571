"""Parameters are checked at the first call, all of them, and a call that raises changes nothing."""

import joblib
import numpy as np
import pytest

from pairloom import AUCClassifier, Learner, PairwiseRanker, Stream
from pairloom.features import Gaussian, RandomFourier
from pairloom.race import Budget, Descent, Exact, Portfolio, Steps
from pairloom.stream import StabilityWarning
from pairloom.systems import FPOGD, KOIL, OGD, OPERA, SOLAM, SPAM, AdaDSG, AllPairs
from tests.conftest import make_stream
from tests.generic import assert_same, forms, make

FORMS = sorted(forms())
pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


@pytest.mark.parametrize("form", FORMS)
def test_every_parameter_refuses_what_makes_no_sense_and_nothing_changes(form):
    X, y = make_stream("random", 40, 3)
    model, untouched = make(form).fit(X, y), make(form).fit(X, y)
    for name, value in model.get_params(deep=False).items():
        for wrong in (object(), {"a": 1}, np.arange(7.0)):
            generator = np.random.default_rng(0)
            model.set_params(random_state=generator)
            model.set_params(**{name: wrong})
            with pytest.raises(ValueError, match=r"\w"):
                model.fit(X, y)
            assert generator.bit_generator.state == np.random.default_rng(0).bit_generator.state, name
        model.set_params(**{name: value, "random_state": 0})
    assert_same(model, untouched)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SOLAM(schedule="horizon"), "schedule must be one of 'constant', 'sqrt', 'poly'; got 'horizon'"),
        (SPAM(schedule="horizon"), "schedule must be one of"),
        (SOLAM(schedule="adagrad"), "schedule must be one of 'constant', 'sqrt', 'poly'; got 'adagrad'"),
        (KOIL(plus_plus="banana"), "plus_plus must be True or False; got 'banana'"),
        (AllPairs(eta="x"), "eta must be a number above 0; got 'x'"),
        (OGD(horizon=0), "horizon, if not None, must be an integer >= 1; got 0"),
        (FPOGD(kernel="linear", gamma="wide"), "gamma must be positive, 'paper' or 'median', got 'wide'"),
        (FPOGD(features=RandomFourier(8), kernel="banana"), "kernel must be one of"),
        (FPOGD(pos_label=[1]), r"pos_label must be one label; got \[1\]"),
    ],
)
def test_messages(model, message):
    X, y = make_stream("random", 20, 3)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_a_growth_may_be_any_number():
    X, y = make_stream("random", 60, 3)
    models = [AdaDSG(growth=growth, random_state=0).fit(X, y) for growth in (2, 2.0, np.int64(2), np.float32(2))]
    assert len({model.coef_.tobytes() for model in models}) == 1


def test_a_race_with_widths_for_other_columns_keeps_the_old_model():
    X, y = make_stream("random", 60, 3)
    model = AUCClassifier(random_state=0).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="gamma has 2 widths, but the rows have 3 columns"):
        model.set_params(gamma=[0.1, 0.2]).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize(
    "make_portfolio",
    [
        lambda: Portfolio(descent=Descent(steps=(("banana", 0.1),))),
        lambda: Portfolio(descent=Descent(steps=(("square", -0.1),))),
        lambda: Portfolio(descent=Descent(steps=())),
        lambda: Portfolio(descent=Descent(max_strata=0)),
        lambda: Portfolio(descent=Descent(penalties=(-1.0,))),
        lambda: Portfolio(exact=Exact(alphas=(-1.0,))),
        lambda: Portfolio(steps=Steps(etas=(-0.1,))),
        lambda: Portfolio(n_landmarks=0),
        lambda: Portfolio(large_landmarks="x"),
        lambda: Portfolio(kernels=(("wide", "a"),)),
        lambda: Portfolio(kernels=(("banana", 1.0),)),
        lambda: Portfolio(scale="banana"),
        lambda: Portfolio(gamma="banana"),
        lambda: Portfolio(forests=("banana",)),
        lambda: Budget(bytes=0),
    ],
)
def test_a_portfolio_that_makes_no_sense_is_refused_before_the_first_row(make_portfolio):
    X, y = make_stream("random", 20, 3)
    with pytest.raises(ValueError, match=r"\w"):
        AUCClassifier(portfolio=make_portfolio(), random_state=0).fit(X, y)


def test_opera_at_its_limit_forgets_a_label_it_cannot_learn():
    X, _ = make_stream("random", 4, 3)
    model = OPERA(max_rows=3).partial_fit(X[:3], [0, 0, 0])
    with pytest.raises(ValueError, match="max_rows=3"):
        model.learn_one(X[3], 1)
    assert model.classes_.tolist() == [0]


@pytest.mark.parametrize("form", FORMS)
def test_a_model_mapped_from_a_file_predicts_and_learns(form, tmp_path):
    X, y = make_stream("random", 60, 3)
    model = make(form).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict(X), model.predict(X))
    if hasattr(model, "partial_fit"):
        for one in (mapped, model):
            one.partial_fit(X, y).learn_one(X[0], y[0])
        np.testing.assert_array_equal(mapped.predict(X), model.predict(X))
        np.testing.assert_array_equal(
            mapped.stream_.state.observed["recent"].scores, model.stream_.state.observed["recent"].scores
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "model", [FPOGD(loss="hinge", eta=1e6, alpha=0.0), SOLAM(eta=1e6), PairwiseRanker(loss="hinge", eta=1e6)]
)
def test_a_step_far_too_long_for_a_loss_with_a_kink_warns(model):
    X, y = make_stream("random", 100, 3)
    with pytest.warns(StabilityWarning, match=r"steps of eta=1e\+06, times the rows' weights, moved the model by more"):
        model.fit(X, y)
    FPOGD(loss="hinge").fit(X, y)


def test_float_groups_are_no_groups():
    X, y = make_stream("random", 10, 3)
    with pytest.raises(ValueError, match=r"groups must be integers or text; got 0\.2 at row 0"):
        Stream(Learner(features=RandomFourier(8, Gaussian()))).partial_fit(X, y, groups=[0.2, 0.7] * 5)
