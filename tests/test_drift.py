"""Streams that change: drift detection, and forgetting."""

from math import log

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import pairloom
from pairloom import AUCClassifier, Learner, Stream
from pairloom.base.tree import flatten, same, unflatten
from pairloom.estimators import BoostingClassifier
from pairloom.features import Forest
from pairloom.memory import Latest
from pairloom.race import Budget
from pairloom.race.standings import MAX_STANDINGS, Standing, thinned
from pairloom.steps import AdaGrad
from pairloom.stream.drift import FALSE_ALARM_RATE, MAX_ERRORS, MIN_ERRORS, PARTNER_ROWS, Watched, change_in, new_errors
from pairloom.stream.hooks import N_RECENT, Arrivals, Recent
from pairloom.systems import FPOGD, OGD, ExactAUC


def reversed_stream(n, at, seed=0, d=4, positive=0.2):
    """A linear rule whose signs are all reversed after row ``at``."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    score = X @ rng.normal(size=d) * np.where(np.arange(n) < at, 1.0, -1.0)
    return X, (score > np.quantile(score, 1 - positive)).astype(int)


def rings(scores, labels):
    """Return the state that a stream keeps of these rows."""
    n = len(labels)
    recent, arrivals = (
        Recent(np.zeros((N_RECENT, scores.shape[1]))),
        Arrivals(np.zeros((N_RECENT, scores.shape[1])), []),
    )
    places = np.arange(n) % N_RECENT
    recent.labels[places], recent.weights[places], arrivals.scores[places] = labels, 1.0, scores
    recent.count = arrivals.count = n
    return recent, arrivals


@pytest.mark.parametrize("n", [300, 5000])
def test_an_error_is_the_share_of_pairs_with_the_newest_others_in_the_wrong_order(n):
    rng = np.random.default_rng(n)
    scores, labels = rng.integers(0, 20, (n, 1)).astype(float), (rng.random(n) < 0.1).astype(float)
    own = Watched(seen=n - 128)
    errors, rows = new_errors(own, *rings(scores, labels), np.array([1.0]))
    rest = scores[labels == 0, 0][-PARTNER_ROWS:]
    wanted = [np.mean((rest > scores[r - 1, 0]) + 0.5 * (rest == scores[r - 1, 0])) for r in rows]
    np.testing.assert_allclose(errors, wanted, rtol=1e-12)
    assert rows.tolist() == [r for r in range(n - 127, n + 1) if labels[r - 1] == 1]


def test_of_two_classes_the_rarer_one_is_looked_at_whichever_it_is():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(400, 1)), (rng.random(400) < 0.9).astype(float)
    errors, rows = new_errors(Watched(), *rings(scores, labels), np.array([1.0]))
    assert (labels[rows - 1] == 0).all()
    assert len(errors) == (labels == 0).sum()
    turned = new_errors(Watched(), *rings(-scores, 1 - labels), np.array([1.0]))
    np.testing.assert_allclose(turned[0], errors, rtol=1e-12)


def test_with_three_classes_every_row_has_the_error_of_its_own_class():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300).astype(float)
    scores = 3.0 * (labels[:, None] == np.arange(3)) + rng.normal(size=(300, 3))
    errors, rows = new_errors(Watched(seen=200), *rings(scores, labels), np.arange(3.0))
    assert rows.tolist() == list(range(201, 301))
    assert errors.mean() < 0.1


def test_what_does_not_change_is_not_called_changed():
    """Also if most errors are 0 and a few are 1: 300 streams, each as long as the memory of errors."""
    draws = np.random.default_rng(0).random((100, MAX_ERRORS))
    for kind in (draws, draws**8, (draws < 0.03).astype(float)):
        assert not any(change_in(errors[:n]) for errors in kind for n in range(64, MAX_ERRORS + 1, 128))


def test_what_changes_is_found_and_its_length_estimated():
    rng = np.random.default_rng(0)
    for more in (24, 48, 300):
        errors = np.concatenate([rng.random(1000) ** 8, rng.uniform(0.4, 1.0, more)])
        assert more / 2 <= change_in(errors) <= 2 * more
    assert change_in(np.concatenate([rng.uniform(0.4, 1.0, 1000), rng.random(200) ** 8])) == 0  # it got better


def test_the_bound_is_bennetts():
    """At the edge: errors of 0 and e, so that mean and variance are plain numbers."""
    old = np.zeros(4 * MIN_ERRORS)
    sizes = [MIN_ERRORS << k for k in range(16) if MIN_ERRORS << k <= 5 * MIN_ERRORS // 2]
    sure = log(len(sizes) / FALSE_ALARM_RATE)
    v = 1.0 / len(old)
    up = np.sqrt(2.0 * v * sure / len(old)) + 2.0 * sure / (3.0 * len(old))

    def surprise(e):
        x = max(0.0, e - up) / v
        return MIN_ERRORS * v * ((1.0 + x) * np.log1p(x) - x)

    grid = np.linspace(0.0, 1.0, 2001)
    edge = grid[np.argmax([surprise(e) > sure for e in grid])] if surprise(1.0) > sure else 1.0
    found = [change_in(np.concatenate([old, np.full(MIN_ERRORS, e)])) for e in (edge - 0.002, min(1.0, edge + 0.002))]
    assert found == ([0, MIN_ERRORS] if surprise(1.0) > sure else [0, 0])


def test_a_model_forgets_what_was_before_the_change():
    X, y = reversed_stream(4000, 2000)
    model, plain = (ExactAUC(random_state=0, drift=drift).fit(X, y) for drift in ("auto", None))
    assert len(model.changes_) == 1
    assert plain.changes_ == []
    assert 2000 < model.changes_[0] <= 2256
    assert abs(model.stream_.state.observed["drift"].since - 2000) < 200
    assert model.stream_.learned.memory.counts.sum() < 2100  # rows since the alarm, and a few more
    late = slice(3000, None)
    areas = [roc_auc_score(y[late], one.stream_.recent()[0][late]) for one in (model, plain)]
    assert areas[0] > 0.95
    assert areas[1] < 0.7


@pytest.mark.parametrize(
    "make",
    [
        lambda: AUCClassifier(random_state=0, budget=Budget(microseconds=40)),
        lambda: FPOGD(n_components=64, average="mean", random_state=0, drift="auto"),
        lambda: ExactAUC(random_state=0, drift="auto", half_life=500),
        lambda: BoostingClassifier(random_state=0, drift="auto", half_life=500),
    ],
    ids=["race", "fpogd", "exact", "boosting"],
)
def test_alarms_do_not_depend_on_the_cuts_and_survive_files(make, tmp_path):
    X, y = reversed_stream(2200, 1500, positive=0.3)
    whole = make().fit(X, y)
    assert len(whole.changes_) == 1
    cut = make()
    for rows in np.split(np.arange(2200), [1, 700, 1499, 1537, 1601, 1700]):
        cut.partial_fit(X[rows], y[rows], classes=[0, 1])
        pairloom.save(cut, tmp_path / "model")
        cut = pairloom.load(tmp_path / "model")
    assert same(cut.state_, whole.state_)
    one = make().partial_fit(X[:1590], y[:1590])
    for x, label in zip(X[1590:1700], y[1590:1700], strict=True):
        one.learn_one(x, label)
    assert same(one.partial_fit(X[1700:], y[1700:]).state_, whole.state_)
    assert same(unflatten(flatten(whole.state_)), whole.state_)


def test_where_nothing_changes_watching_changes_nothing():
    X, y = reversed_stream(3000, 3000)
    watched, plain = (ExactAUC(random_state=0, drift=drift).fit(X, y) for drift in ("auto", None))
    assert watched.changes_ == []
    assert same(watched.stream_.learned, plain.stream_.learned)


class Twice:
    """A detector that raises an alarm at its 300th number, and requires floats."""

    def __init__(self):
        self.n, self.drift_detected = 0, False

    def update(self, x):
        assert isinstance(x, float)
        assert 0 <= x <= 1
        self.n += 1
        self.drift_detected = self.n == 300


def test_a_detector_of_the_users_own_takes_its_place_and_cannot_be_saved(tmp_path):
    X, y = reversed_stream(2000, 2000)
    own = Twice()
    model = ExactAUC(random_state=0, drift=own).fit(X, y)
    row = np.flatnonzero(y)[299] + 1
    assert model.changes_ == [row - row % -128]
    assert own.n == 0  # it was copied
    assert ExactAUC(random_state=0, drift=own).fit(X, y).changes_ == model.changes_
    with pytest.raises(TypeError, match=r"ExactAUC.drift is <.*Twice.*a custom detector"):
        pairloom.save(model, tmp_path / "model")


def test_rivers_detectors_will_do():
    drift = pytest.importorskip("river.drift", reason="river is not installed: pip install river")
    X, y = reversed_stream(4000, 2000, positive=0.5)
    model = ExactAUC(random_state=0, drift=drift.ADWIN()).fit(X, y)
    assert any(2000 < row < 2500 for row in model.changes_)


@pytest.mark.parametrize("drift", ["always", 3, object()])
def test_what_is_no_detector_is_refused_before_anything_is_learned(drift):
    model = FPOGD(n_components=32, drift=drift)
    with pytest.raises(ValueError, match="drift must be None, 'auto', or a detector"):
        model.fit(*reversed_stream(20, 20))
    assert not hasattr(model, "stream_")


def test_a_model_without_a_past_says_so():
    with pytest.raises(ValueError, match=r"drift= fades statistics .* OGD with these parameters keeps none"):
        OGD(average="last", schedule="constant", drift="auto").fit(*reversed_stream(20, 20))


def test_a_forest_is_regrown_after_a_change_and_turns_to_the_next_tree():
    X, y = reversed_stream(3000, 3000)
    forest = Forest(10, max_leaves=64, n_rows=512, growth="renewed")
    learner = Learner(forest, memory=Latest(size=4), step=AdaGrad(0.1), seed=0)
    stream = Stream(learner).partial_fit(X, np.where(y, 1, -1))
    phi = stream.learned.phi
    before = phi.planted
    learner.forget(stream.learned, 0.05)
    assert (phi.past.since, phi.past.turn, phi.past.old) == (2850, before, 10)
    assert phi.planted == sum(forest.next_planting(k) <= 150 for k in range(before))
    roots = phi.nodes.values[:, 0].copy()
    stream.partial_fit(X[:200], np.where(y, 1, -1)[:200])
    grown = phi.past.turn - before
    assert grown == phi.planted - sum(forest.next_planting(k) <= 150 for k in range(before)) > 0
    turned = (np.arange(before, phi.past.turn) % 10).tolist()
    assert np.flatnonzero(phi.nodes.values[:, 0] != roots).tolist() == sorted(turned)


def test_a_race_forgets_its_windows_and_weighs_its_members_soon():
    X, y = reversed_stream(3000, 2048, positive=0.3)
    model = AUCClassifier(random_state=0, budget=Budget(microseconds=40)).fit(X, y)
    race = model.stream_.learned
    assert race.since is not None
    assert race.evidence.closed <= (3000 - race.since) // 512
    rows = sorted({row for row in model.race_["row"].tolist() if row > model.changes_[0]})
    assert rows[0] <= model.changes_[0] + 128


def test_standings_are_bounded():
    standings = [Standing(row, name, 0.5, 0.5) for row in range(0, 5000 * 512, 512) for name in "ab"]
    kept = []
    for one in standings:
        kept = thinned([*kept, one])
    assert len(kept) <= MAX_STANDINGS + 2
    assert kept[0].row == 0
    assert kept[-1] is standings[-1]
    assert len({one.row for one in kept}) > MAX_STANDINGS / 5
