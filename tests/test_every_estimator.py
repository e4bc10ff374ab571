"""Checks of every estimator of the package, in each published form, against its card.

Those in float64 are in ``test_every_engine.py``: each file compiles the loops of one type, in a process of its own.
"""

import copy
import inspect
import pickle
import re
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics import roc_auc_score
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import check_class_weight_classifiers, check_estimator

from pairloom import load, save, systems
from pairloom.base.tree import same
from pairloom.columns import ColumnEncoder
from pairloom.estimators import FeatureTransformer
from tests.conftest import STREAMS, make_stream
from tests.generic import assert_only_the_seed_matters, assert_same, classes, forms, make, outputs

FORMS = sorted(forms())
ONLINE = [form for form in FORMS if make(form).card.scheme == "online"]
BOUNDED = [form for form in FORMS if make(form).card.memory == "bounded"]
GROWS = [form for form in FORMS if make(form).card.memory == "grows"]
CLASSIFIERS = [form for form in FORMS if is_classifier(make(form))]

SAMPLE_WEIGHTS = {"check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"}
"""scikit-learn exempts its own SGD from these: they reorder the rows."""

NARROW = {"KOIL-FIFO": {"check_class_weight_classifiers"}}
"""Its published width, 1 / 2d, sees nothing of rows 20 apart: scores are 0 to 18 digits but for a few, whose log-odds
then have no bounds, whatever classes weigh. The check below, with a width by the rows, passes."""


pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


def test_there_are_estimators_and_every_system_is_published():
    assert len(FORMS) > 10
    for name, kind in classes().items():
        if kind.__module__.startswith("pairloom.systems"):
            assert getattr(systems, name) is kind


@pytest.mark.parametrize("form", FORMS)
def test_the_card_and_the_docstring_say_what_it_is(form):
    model = make(form)
    card = model.card
    assert card.reference
    assert card.time
    assert card.space
    text = inspect.getdoc(type(model))
    for heading in ("Parameters", "Attributes", "Notes\n-----\nCost: ", "References", "Examples"):
        assert text.count(f"\n\n{heading}") == 1, heading
    for name in model.get_params():
        assert re.search(rf"^{name} : ", text, re.MULTILINE), name
    assert hasattr(model, "partial_fit") == hasattr(model, "learn_one") == (card.scheme == "online")


@pytest.mark.parametrize("kind", [*classes().values(), FeatureTransformer, ColumnEncoder])
def test_a_notebook_shows_it_without_a_warning(kind):
    """scikit-learn reads the docstring for it; warnings are errors here."""
    X, y = make_stream("random", 30, 3)
    model = kind() if kind.__name__ not in forms() else make(kind.__name__)
    for shown in (model, model.fit(pd.DataFrame(X, columns=list("abc")), y)):
        assert kind.__name__ in estimator_html_repr(shown)
        assert kind.__name__ in shown._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    "form", [next(form for form in FORMS if forms()[form][0] is kind) for kind in classes().values()]
)
@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
def test_scikit_learn_checks_pass(form):
    """One form of each class: they are checks of the class."""
    results = check_estimator(make(form), on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= SAMPLE_WEIGHTS | NARROW.get(form, set())


@pytest.mark.parametrize("form", [form for form in CLASSIFIERS if "gamma" in make(form).get_params()])
def test_classes_weigh_as_scikit_learn_wants_it_where_the_kernel_sees_the_rows(form):
    check_class_weight_classifiers(form, make(form, gamma="median"))


@pytest.mark.parametrize(("form", "kind"), [(form, STREAMS[k % 4]) for k, form in enumerate(ONLINE)])
def test_chunks_and_single_rows_give_the_same_bits(form, kind):
    """Rows of weight 1 and of weights that are rounded when they are added up: no sum may depend on the calls."""
    X, y = make_stream(kind, 330, 5)
    rng = np.random.default_rng(0)
    weight = np.where(rng.random(330) < 0.3, 1.0, rng.exponential(size=330))
    whole, one_by_one, chunks = (make(form) for _ in range(3))
    whole.partial_fit(X, y, sample_weight=weight)
    for row in zip(X, y, weight, strict=True):
        one_by_one.learn_one(*row)
    for rows in np.array_split(np.arange(330), [1, 3, 70, 71, 256, 300]):
        chunks.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
    assert_same(whole, one_by_one)
    assert_same(whole, chunks)
    if "duplicates" not in kind:
        assert_same(whole, make(form).fit(X, y, sample_weight=weight))


@pytest.mark.parametrize("form", FORMS)
def test_predicting_changes_nothing_and_a_row_stands_for_itself(form):
    X, y = make_stream("random", 200, 5)
    model = make(form).fit(X, y)
    before = pickle.dumps(model)
    expected = outputs(model, X)
    for k, values in enumerate(outputs(model, X[57:58])):
        np.testing.assert_array_equal(values[0], expected[k][57])
    model.score_one(X[0])
    repr(model)
    assert np.isfinite([model.nbytes_, model.loss_, model.n_pairs_, model.n_seen_]).all()
    assert all(np.isfinite(values).all() for values in expected)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("form", [form for form in ONLINE if form in CLASSIFIERS])
def test_a_batch_may_hold_one_class_only(form):
    X, y = make_stream("random", 300, 4)
    order = np.argsort(y[:150], kind="stable")
    X[:150], y[:150] = X[:150][order], y[:150][order]
    model = make(form).partial_fit(X[:60], y[:60])
    assert set(model.predict(X)) == {-1.0}
    for start in range(60, 300, 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20])
    assert model.classes_.tolist() == [-1.0, 1.0]
    assert_same(model, make(form).fit(X, y))


@pytest.mark.parametrize("form", FORMS)
def test_bad_input_leaves_the_model_as_it_was(form):
    X, y = make_stream("random", 200, 5)
    model = make(form).fit(X, y)
    before = pickle.dumps(model)
    bad = X[:20].copy()
    bad[3, 1], what = (np.inf, "infinity") if model.__sklearn_tags__().input_tags.allow_nan else (np.nan, "NaN")
    learn = [name for name in ("partial_fit", "fit") if hasattr(model, name)]
    for name in learn:
        with pytest.raises(ValueError, match=f"{what} at row 3, column 1"):
            getattr(model, name)(bad, y[:20])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            getattr(model, name)(X[:20], y[:19])
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match="X has 4 features"):
            model.partial_fit(X[:, :4], y)
        with pytest.raises(ValueError, match=f"{what} at row 0, column 1"):
            model.learn_one(bad[3], y[3])
    with pytest.raises(ValueError, match=f"{what} at row 3, column 1"):
        model.predict(bad)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("form", FORMS)
def test_the_seed_alone_decides(form):
    X, y = make_stream("random", 200, 5)
    assert_only_the_seed_matters(partial(make, form), X, y)


@pytest.mark.parametrize("form", FORMS)
def test_clones_pickles_and_copies(form):
    X, y = make_stream("random", 300, 5)
    model = make(form).fit(X[:200], y[:200])
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "stream_")
    assert_same(model, clone(model).fit(X[:200], y[:200]))
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for other in others:
        assert_same(model, other)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    if hasattr(model, "partial_fit"):
        model.partial_fit(X[200:], y[200:])
        for other in others:
            assert other.n_seen_ == 200
            assert_same(model, other.partial_fit(X[200:], y[200:]))


STAGES = (0, 1, 12, 100, 170, 500, 700)
"""Before the second class; in the warm start; in a race, while second candidates catch up; after a change."""


@pytest.mark.parametrize("form", FORMS)
def test_it_is_saved_and_loaded_at_every_stage(form, tmp_path):
    X, y = make_stream("one_class_first", 710, 3)
    order = np.argsort(-y[:50], kind="stable")
    X[:50], y[:50] = X[:50][order], y[:50][order]
    y[350:] *= -1.0
    model = make(form)
    if form not in ONLINE:
        saved_and_loaded(model, tmp_path / "model")
        saved_and_loaded(model.fit(X, y), tmp_path / "model")
        return
    forgets = form not in CLASSIFIERS or model.to_model().forgetting is not None
    if forgets:
        model.set_params(half_life=300, **({"drift": "auto"} if form in CLASSIFIERS else {}))
    for at, end in pairwise((*STAGES, 710)):
        found = saved_and_loaded(model, tmp_path / "model")
        for one in (model, found):
            for rows in (slice(at, at + 1), slice(at + 1, end)):
                if rows.start < rows.stop:
                    one.partial_fit(X[rows], y[rows])
        assert same(model.state_, found.state_)


def saved_and_loaded(model, path):
    """A model from its file."""
    save(model, path)
    found = load(path)
    assert repr(model) == repr(found)
    assert not hasattr(model, "stream_") or same(model.state_, found.state_)
    return found


@pytest.mark.parametrize("form", [form for form in BOUNDED if form in ONLINE])
def test_memory_does_not_grow(form):
    model, sizes = make(form), []
    settled = model.card.settled
    X, y = make_stream("random", 5 * settled // 2, 5)
    for start in range(0, len(y), settled // 2):
        model.partial_fit(X[start : start + settled // 2], y[start : start + settled // 2])
        sizes.append(model.nbytes_)
    assert sizes[-1] <= sizes[2]
    assert len(pickle.dumps(model)) < sizes[-1] + 20_000


@pytest.mark.parametrize("form", GROWS)
def test_what_grows_refuses_to_pass_its_limit(form):
    X, y = make_stream("random", 60, 5)
    model = make(form, max_rows=50).partial_fit(X[:40], y[:40])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="10 more"):
        model.partial_fit(X[40:], y[40:])
    assert pickle.dumps(model) == before
    model.partial_fit(X[40:50], y[40:50])
    with pytest.raises(ValueError, match="max_rows=50"):
        model.learn_one(X[50], y[50])
    assert model.n_seen_ == 50


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_weight_zero_are_not_there(form):
    X, y = make_stream("random", 300, 5)
    weight = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    assert_same(make(form).fit(X, y, sample_weight=weight), make(form).fit(X[weight > 0], y[weight > 0]))


@pytest.mark.parametrize("form", CLASSIFIERS)
def test_it_learns(form):
    rng = np.random.default_rng(0)
    X = 0.5 * rng.normal(size=(2000, 4))
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + 0.2 * rng.normal(size=2000) > 0.6, "rare", "rest")
    # The better of two: a published form may forget what it has learned (KOIL-RS, see its docstring).
    models = [make(form).fit(X[:n], y[:n]) for n in (200, 1500)]
    assert max(roc_auc_score(y[1500:] == "rest", model.decision_function(X[1500:])) for model in models) > 0.9


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("form", FORMS)
def test_never_nan_whatever_the_units(form, scale):
    X, y = make_stream("random", 300, 5)
    model = make(form)
    for part in range(3):
        rows = slice(100 * part, 100 * part + 100)
        (model.partial_fit if hasattr(model, "partial_fit") else model.fit)(scale * X[rows], y[rows])
    assert all(np.isfinite(values).all() for values in outputs(model, scale * X))
