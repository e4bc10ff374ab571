"""Signs: decision_function scores classes_[1]; score_many and score_one score the positive class."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from pairloom.systems import FPOGD
from tests.generic import forms, make

CLASSIFIERS = [form for form in sorted(forms()) if is_classifier(make(form))]
NAMES = [("rare", "rest"), ("fraud", "ok"), ("yes", "no"), (1, 0), (-1, 1), (True, False)]


def stream():
    rng = np.random.default_rng(0)
    X = 0.5 * rng.normal(size=(260, 3))
    return X, X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=260) > 0.5


@pytest.mark.parametrize(("positive", "negative"), NAMES)
@pytest.mark.parametrize("turned", [False, True])
def test_every_method_and_both_orders(positive, negative, turned):
    X, rule = stream()
    y = np.where(rule, positive, negative)
    asked = negative if turned else positive
    model = FPOGD(kernel="linear", eta=0.02, pos_label=asked, random_state=0).fit(X, y)
    assert model.pos_label_ == asked
    scores, decisions, shares = model.score_many(X), model.decision_function(X), model.predict_proba(X)
    assert roc_auc_score(y == asked, scores) > 0.95
    assert roc_auc_score(y == model.classes_[1], decisions) > 0.95
    column = model.classes_.tolist().index(asked)
    assert (np.argsort(shares[:, column], kind="stable") == np.argsort(scores, kind="stable")).mean() > 0.9
    np.testing.assert_array_equal(np.sign(scores), np.where(model.predict(X) == asked, 1, -1))
    for i in range(5):
        assert model.score_one(X[i]) == scores[i]
        assert model.predict_proba_one(X[i]) == dict(zip(model.classes_.tolist(), shares[i], strict=True))
    assert model.decision_function(X[:1])[0] == (scores[0] if asked == model.classes_[1] else -scores[0])


@pytest.mark.parametrize(("positive", "negative"), NAMES[:3])
def test_scikit_learns_scorers_are_right_whatever_pos_label_is(positive, negative):
    X, rule = stream()
    y = np.where(rule, positive, negative)
    for pos_label in (None, positive, negative):
        model = FPOGD(kernel="linear", eta=0.02, pos_label=pos_label, random_state=0)
        assert cross_val_score(model, X, y, scoring="roc_auc", cv=3).min() > 0.9


@pytest.mark.parametrize("form", CLASSIFIERS)
def test_score_many_is_score_one_for_every_row(form):
    X, rule = stream()
    y = np.where(rule, "rare", "rest")
    model = make(form, pos_label="rare").fit(X, y)
    scores = model.score_many(X[:20])
    assert scores.tolist() == [model.score_one(x) for x in X[:20]]
    np.testing.assert_array_equal(scores, -model.decision_function(X[:20]))


def test_three_classes_need_a_positive_one():
    X, _ = stream()
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    model = FPOGD(kernel="linear", eta=0.02, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="score_one and score_many need a positive class: set pos_label"):
        model.score_many(X)
    with pytest.raises(AttributeError, match=r"the classes are \[0, 1, 2\]: set pos_label"):
        assert model.pos_label_ is None
    model.set_params(pos_label=2)
    np.testing.assert_array_equal(model.score_many(X), model.decision_function(X)[:, 2])


def test_the_positive_class_is_known_before_it_is_seen():
    X, _ = stream()
    model = FPOGD(pos_label="fraud", random_state=0).partial_fit(X[:5], ["ok"] * 5)
    assert model.classes_.tolist() == ["fraud", "ok"]
    assert model.predict_proba(X[:3]).shape == (3, 2)
    assert set(model.predict(X)) == {"ok"}
    with pytest.raises(ValueError, match=r"label 'maybe' at row 0 is not one of \['fraud', 'ok'\]"):
        model.partial_fit(X[:1], ["maybe"])


@pytest.mark.parametrize("scale", [1e4, 1e6, 1e12])
@pytest.mark.parametrize("form", ["AdaDSG", "OPAUC", "FPOGD", "ExactAUC"])
def test_probabilities_of_three_classes_far_away(form, scale):
    X, _ = stream()
    linear = {"kernel": "linear", "eta": 0.01} if form == "FPOGD" else {}
    model = make(form, **linear).fit(X, np.digitize(X[:, 0], [-0.3, 0.3]))
    shares = model.predict_proba(scale * X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # So far away, two shares may be the same number.
    assert (shares[np.arange(len(X)), model.predict(scale * X)] == shares.max(axis=1)).all()
