"""Streams that change: drift detection, and forgetting."""

from dataclasses import replace

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
from pairloom.stream.drift import (
    BLOCK_ROWS,
    EXPONENTS,
    FALSE_ALARM_ROWS,
    MAX_PARTNERS,
    MAX_PAST,
    Bets,
    DriftWatch,
    Watched,
    block_means,
    placements,
)
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
def test_a_placement_is_the_weighted_share_of_the_newest_others_with_lower_scores(n):
    rng = np.random.default_rng(n)
    scores, labels = rng.integers(0, 20, (n, 1)).astype(float), (rng.random(n) < 0.1).astype(float)
    recent, arrivals = rings(scores, labels)
    weights = rng.uniform(0.5, 2.0, n)
    recent.weights[np.arange(n) % N_RECENT] = weights
    placed, _, rows = placements(Watched(), recent, arrivals, np.array([1.0]))
    others = np.flatnonzero(labels == 0)[-MAX_PARTNERS:]
    rest, mass = scores[others, 0], weights[others] / weights[others].sum()
    wanted = [mass @ ((rest < scores[r - 1, 0]) + 0.5 * (rest == scores[r - 1, 0])) for r in rows]
    np.testing.assert_allclose(placed, wanted, rtol=1e-12)
    assert rows.tolist() == [r for r in range(max(1, n - N_RECENT + 1), n + 1) if labels[r - 1] == 1]


def test_extreme_weights_give_placements():
    rng = np.random.default_rng(0)
    labels = (np.arange(400) % 10 == 0).astype(float)
    recent, arrivals = rings(rng.normal(size=(400, 1)), labels)
    for own in (labels == 1, labels == 0):
        recent.weights[:400] = np.where(own, 1e100, 1e-300)
        placed, weights, rows = placements(Watched(), recent, arrivals, np.array([1.0]))
        assert np.isfinite(placed).all()
        assert 0.3 < placed.mean() < 0.7
        assert np.isfinite(block_means(placed, weights, rows)[0]).all()


def test_of_two_classes_the_rarer_one_is_placed_whichever_it_is_and_until_the_next_change():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(400, 1)), (rng.random(400) < 0.9).astype(float)
    own = Watched()
    placed, _, rows = placements(own, *rings(scores, labels), np.array([1.0]))
    assert (labels[rows - 1] == 0).all()
    assert len(rows) == (labels == 0).sum()
    turned = placements(Watched(), *rings(-scores, 1 - labels), np.array([1.0]))
    np.testing.assert_allclose(turned[0], placed, rtol=1e-12)
    labels[-360:] = 0  # now the other class is the rarer one
    later = placements(own, *rings(scores, labels), np.array([1.0]))
    assert (labels[later[2] - 1] == 0).all()


def test_with_three_classes_every_row_is_placed_by_the_score_of_its_own_class():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300).astype(float)
    scores = 3.0 * (labels[:, None] == np.arange(3)) + rng.normal(size=(300, 3))
    placed, _, rows = placements(Watched(), *rings(scores, labels), np.arange(3.0))
    assert rows.tolist() == list(range(1, 301))
    assert placed.mean() > 0.9


def test_repeated_rows_count_once_and_weights_count_as_repetitions():
    placed, rows = np.array([0.2, 0.2, 0.2, 0.8]), np.array([1, 2, 3, 33])
    assert block_means(placed, np.ones(4), rows)[0] == pytest.approx([0.2, 0.8])
    means, _ = block_means(np.array([0.2, 0.8]), np.array([3.0, 1.0]), np.array([1, BLOCK_ROWS]))
    assert means == pytest.approx([0.35])
    assert block_means(np.zeros(0), np.zeros(0), np.zeros(0, np.int64)) == ([], [])


def test_wealth_is_the_largest_product_of_bets_up_to_now():
    """By definition: for each exponent, the maximum over the starts k of the product of the bets from k on."""
    draws, own, p_values = np.random.default_rng(0).random(300), Bets(), []
    for i, x in enumerate(draws):
        tie = np.random.Generator(np.random.PCG64())
        tie.bit_generator.state = own.rng.bit_generator.state
        p_values.append(((draws[:i] < x).sum() + tie.random()) / (i + 1))
        own.add(x, i + 1, i)
        bets = np.log(EXPONENTS)[:, None] + (EXPONENTS - 1.0)[:, None] * np.log(p_values)
        tails = np.cumsum(bets[:, ::-1], axis=1)
        np.testing.assert_allclose(np.log(own.wealth), tails.max(axis=1), atol=1e-9)
        np.testing.assert_array_equal(own.starts, i + 1 - tails.argmax(axis=1))
    assert np.abs(np.sort(p_values) - np.linspace(0, 1, 300)).max() < 1.63 / 300**0.5  # Kolmogorov-Smirnov, 1 %


def test_the_past_is_a_uniform_sample():
    own = Bets()
    for i in range(6 * MAX_PAST):
        own.add(i / (6 * MAX_PAST), i + 1, i)
    counts = np.histogram(own.past, bins=6, range=(0, 1))[0]
    assert abs(counts - 100).max() < 4 * 100**0.5


def alarms_in(means, each=BLOCK_ROWS):
    """Return after which of the means, one for each ``each`` rows, the detector raises an alarm."""
    own, found = Watched(), []
    for k, mean in enumerate(means):
        if (
            DriftWatch()._change(own, (k + 1) * each, np.array([mean]), np.ones(1), np.array([k * each + 1]))
            is not None
        ):
            found.append(k)
            own.restart((k + 1) * each)
        own.seen = k * each + 1
    return found


def test_what_does_not_change_or_improves_raises_no_alarm():
    """12 streams of 320,000 rows each: one false alarm in a million rows, at most, also of discrete placements."""
    draws = np.random.default_rng(0).random((4, 10_000))
    improving = 1.0 - draws * np.linspace(0.5, 0.05, 10_000)
    found = [alarms_in(means) for kind in (draws**8, (draws < 0.97).astype(float), improving) for means in kind]
    assert sum(map(len, found)) <= 12 * 320_000 / FALSE_ALARM_ROWS


@pytest.mark.parametrize(
    ("before", "after", "most"), [((8, 1), (2, 1), 25), ((4, 1), (1, 1.1), 30), ((20, 1), (6, 1), 35)]
)
def test_a_fall_is_found_within_few_placements(before, after, most):
    """AUC 0.89 to 0.67, 0.8 to 0.48 and 0.95 to 0.86, 0.6 % positive: the median over 20 streams."""
    rng, delays = np.random.default_rng(0), []
    for _ in range(20):
        means = np.concatenate([rng.beta(*before, 300), rng.beta(*after, 200)])
        delays.append(next((k for k in alarms_in(means, each=160) if k >= 300), 500) - 299)
    assert np.median(delays) <= most


def test_a_state_of_an_older_file_keeps_its_alarms_and_starts_a_new_sample():
    flat = flatten(Watched(seen=500, since=200, alarms=np.array([300])))
    values = {name: value for name, value in flat.values.items() if not name.startswith("bets")}
    arrays = {name: array for name, array in flat.arrays.items() if not name.startswith("bets")}
    arrays |= {"errors": np.full(2048, 0.5), "rows": np.arange(1, 2049)}
    kinds = {name: kind for name, kind in flat.kinds.items() if not name.startswith("bets")}
    own = unflatten(replace(flat, arrays=arrays, values=values | {"count": 90}, kinds=kinds))
    assert (own.count, own.seen, own.since, own.alarms.tolist()) == (0, 500, 200, [300])
    assert own.errors is own.rows is None
    assert same(own.bets, Bets())


def test_a_model_forgets_what_was_before_the_change():
    X, y = reversed_stream(4000, 2000)
    model, plain = (ExactAUC(random_state=0, drift=drift).fit(X, y) for drift in ("auto", None))
    assert len(model.changes_) == 1
    assert plain.changes_ == []
    assert 2000 < model.changes_[0] <= 2384
    assert abs(model.stream_.state.observed["drift"].since - 2000) < 100
    assert model.stream_.learned.memory.counts.sum() < 2200  # rows since the change, and a few more
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
    X, y = reversed_stream(3200, 2500, positive=0.3)
    whole = make().fit(X, y)
    assert len(whole.changes_) == 1
    cut = make()
    for rows in np.split(np.arange(3200), [1, 700, 2499, 2537, 2687, 2817]):
        cut.partial_fit(X[rows], y[rows], classes=[0, 1])
        pairloom.save(cut, tmp_path / "model")
        cut = pairloom.load(tmp_path / "model")
    assert same(cut.state_, whole.state_)
    one = make().partial_fit(X[:2670], y[:2670])
    for x, label in zip(X[2670:2820], y[2670:2820], strict=True):
        one.learn_one(x, label)
    assert same(one.partial_fit(X[2820:], y[2820:]).state_, whole.state_)
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
