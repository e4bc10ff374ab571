"""Merging estimators: races, columns, weights of classes, scores, and what is reset."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import pairloom
from pairloom import AUCClassifier
from pairloom.base.tree import copy, flatten, same
from pairloom.stream.hooks import N_RECENT
from pairloom.systems import FPOGD, ExactAUC
from tests.conftest import make_stream


def test_a_race_is_merged_and_goes_on(tmp_path):
    """Parts keep candidates and trees; base and parts stay as they were; the file of the merged model loads."""
    X, y = make_stream("normal", 9000, 4)
    base = AUCClassifier(random_state=0).fit(X[:3000], y[:3000])
    parts = base.fork(3)
    for k, part in enumerate(parts):
        part.partial_fit(X[3000 + 1900 * k :][: 1900 - 13 * k], y[3000 + 1900 * k :][: 1900 - 13 * k])
    before = [copy(one.state_) for one in (base, *parts)]
    merged = base.merge(parts)
    assert all(same(one.state_, was) for one, was in zip((base, *parts), before, strict=True))
    assert merged.n_seen_ == base.n_seen_ + sum(part.n_seen_ - base.n_seen_ for part in parts)
    assert merged.n_pairs_ > max(part.n_pairs_ for part in parts)
    assert merged.race_["row"][-1] == merged.n_seen_
    assert not any(name.endswith("fixed") for name in flatten(merged.state_).values)
    area = roc_auc_score(y[8700:], merged.decision_function(X[8700:]))
    assert area > roc_auc_score(y[8700:], base.decision_function(X[8700:])) - 0.002
    pairloom.save(merged, tmp_path / "m.pairloom")
    again = pairloom.load(tmp_path / "m.pairloom")
    for one in (merged, again):
        one.partial_fit(X[8700:8900], y[8700:8900])
        one.partial_fit(X[8900:], y[8900:])
    assert same(merged.state_.stream, again.state_.stream)


def test_a_race_with_other_candidates_or_trees_says_so():
    X, y = make_stream("normal", 5000, 4)
    base = AUCClassifier(random_state=0).fit(X[:3000], y[:3000])
    alone = base.with_state(copy(base.state_)).partial_fit(X[3000:], y[3000:])
    with pytest.raises(ValueError, match=r"base\.fork\(n\)"):
        base.merge([alone])
    early = AUCClassifier(random_state=0).fit(X[:1500], y[:1500])
    with pytest.raises(ValueError, match="until row 2,048"):
        early.merge(early.fork(2))


def test_scores_are_pooled_and_log_odds_fitted_to_them():
    X, y = make_stream("normal", 9000, 3)
    base = ExactAUC(random_state=0).fit(X[:1000], y[:1000])
    parts = [
        part.partial_fit(X[a:b], y[a:b]) for part, a, b in zip(base.fork(2), (1000, 3000), (3000, 9000), strict=True)
    ]
    merged = base.merge(parts)
    scores, labels, _ = merged.stream_.recent()
    assert len(labels) == N_RECENT
    assert set(scores[-4:].tolist()) <= {s for part in parts for s in part.stream_.recent()[0][-6:].tolist()}
    assert abs(np.mean(merged.predict_proba(X)[:, 1]) - np.mean(y > 0)) < 0.03


def frame_of(n, kinds, seed):
    rng = np.random.default_rng(seed)
    kind = rng.choice(kinds, n)
    frame = pd.DataFrame({"x": rng.normal(size=n), "kind": kind})
    return frame, frame["x"].to_numpy() + (kind == "a") + rng.normal(size=n) > 1


def test_categories_of_all_parts_are_united():
    """Codes that parts gave to new categories are unified; statistics are those of all rows."""
    frame, y = frame_of(3000, ["a", "b"], 0)
    base = AUCClassifier(random_state=0).fit(frame, y)
    parts = base.fork(2)
    new = [frame_of(600, kinds, seed) for seed, kinds in ((1, ["a", "c"]), (2, ["d", "c", "b"]))]
    for part, (own, labels) in zip(parts, new, strict=True):
        part.partial_fit(own, labels)
    merged = base.merge(parts)
    assert merged.columns_.categories["kind"] == ["a", "b", "c", "d"] or set(merged.columns_.categories["kind"]) == {
        "a",
        "b",
        "c",
        "d",
    }
    rows = pd.concat([frame, *(own for own, _ in new)])
    names = merged._encoder.state.categories[1]
    encoding = merged.stream_.state.encoding
    for code, name in enumerate(names):
        assert encoding.sums[1 + code, 0] == (rows["kind"] == name).sum()
    merged.partial_fit(*frame_of(300, ["d", "a"], 3))
    one_hot = FPOGD(random_state=0).fit(frame, y)
    others = [part.partial_fit(*rows) for part, rows in zip(one_hot.fork(2), new, strict=True)]
    with pytest.raises(ValueError, match="part 1 has other new categories of the column 'kind'"):
        one_hot.merge(others)


def test_balanced_weights_continue_from_all_rows():
    X, y = make_stream("normal", 4000, 3)
    base = ExactAUC(class_weight="balanced", random_state=0).fit(X[:1000], y[:1000])
    parts = [
        part.partial_fit(X[a:b], y[a:b]) for part, a, b in zip(base.fork(2), (1000, 2000), (2000, 4000), strict=True)
    ]
    merged, whole = base.merge(parts), ExactAUC(class_weight="balanced", random_state=0).fit(X, y)
    assert merged._class_counts.mass.sum() == pytest.approx(whole._class_counts.mass.sum())
    assert merged._class_counts.total == 4000


def test_columns_without_values_so_far():
    frame, y = frame_of(1500, ["a", "b"], 0)
    frame["late"] = None
    base = ExactAUC(random_state=0).partial_fit(frame, y)
    parts = base.fork(2)
    for part, value in zip(parts, (1.5, "text"), strict=True):
        own, labels = frame_of(200, ["a", "b"], 1)
        part.partial_fit(own.assign(late=value), labels)
    with pytest.raises(ValueError, match="different kinds of the column 'late'"):
        base.merge(parts)
    assert base.merge(parts[:1]).columns_.kinds["late"] == "number"
