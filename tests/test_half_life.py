"""Half-lives: the weight of a row halves after a number of rows, or a time; nothing else changes."""

import pickle
from datetime import timedelta
from operator import attrgetter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier

from pairloom import Grid, Learner, Stream, load, save
from pairloom.base.clock import TIME_DECAY_ROWS, decay_rows
from pairloom.base.tree import flatten, same
from pairloom.estimators import PairwiseRanker
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.memory import Example, Reservoir, RSx, Strata
from pairloom.steps import Constant, Sqrt
from pairloom.stream import Forgetting
from pairloom.stream.forgetting import FADE_BELOW
from pairloom.systems import FPOGD, KOIL, OGD, OPAUC, OPERA, SOLAM, SPAM, AdaOAM, AllPairs, ExactAUC, SparseKernelAUC
from tests.conftest import STREAMS, make_stream
from tests.generic import assert_same, forms, make, outputs

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")

RULES = {"eps": 1.0, "gamma": 0.2, "scale": None}
"""Instead of data-dependent settings: while rows are kept for these, nothing decays."""


def fixed(form, **more):
    """A form without data-dependent settings; a race keeps its own first rows."""
    known = {} if form == "AUCClassifier" else {k: v for k, v in RULES.items() if k in make(form).get_params()}
    return make(form, **{**known, **more})


def fades(form):
    model = make(form)
    return model.card.scheme == "online" and (not is_classifier(model) or model.to_model().forgetting is not None)


FADING_FORMS = [form for form in sorted(forms()) if fades(form)]


def by_rows(n, half_life):
    """The weight of each row after row n: it decays at every scheduled row from its own on."""
    apart = decay_rows(half_life)
    row = np.arange(1, n + 1)
    return 2.0 ** (-apart * (n // apart - (row - 1) // apart) / half_life)


def by_time(time, half_life):
    """The same, at multiples of 256 rows, by the newest time so far."""
    weight, last, newest = np.ones(len(time)), None, np.maximum.accumulate(time)
    for row in range(TIME_DECAY_ROWS, len(time) + 1, TIME_DECAY_ROWS):
        keep = 1.0 if last is None else 2.0 ** (-(newest[row - 1] - last) / half_life)
        if last is None or keep <= FADE_BELOW:
            last = newest[row - 1]
            weight[:row] *= keep
    return weight


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("half_life", [10, 100, 1000])
def test_an_exact_minimiser_is_that_of_weighted_rows(half_life, n_classes):
    X, y = make_stream("random", 700, 4)
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.5, 0.5])
    own = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 700)
    ours = ExactAUC(dtype="float64", half_life=half_life).fit(X, y, own)
    truth = ExactAUC(dtype="float64").fit(X, y, own * by_rows(700, half_life))
    np.testing.assert_allclose(ours.coef_, truth.coef_, rtol=1e-9, atol=1e-12)
    assert ours.n_pairs_ == pytest.approx(truth.n_pairs_, abs=1)
    assert np.abs(ours.coef_ - ExactAUC(dtype="float64").fit(X, y, own).coef_).max() > 1e-3


STATISTICS = {
    "means and covariances": (OPAUC, {}, ("mass", "mean", "scatter")),
    "means and covariances, adaptive": (AdaOAM, {}, ("mass", "mean", "scatter")),
    "sketch": (OPAUC, {"rank": 3}, ("mass", "mean", "rho", "Y")),
    "means": (SPAM, {}, ("counts", "sums")),
    "share of positives": (SOLAM, {}, ("counts",)),
    "rows of a class": (KOIL, {"budget": 10}, ("seen",)),
    "all rows": (OPERA, {"max_rows": 330}, ("mass",)),
    "history": (AllPairs, {"form": "history", "max_rows": 330}, ("slots.mass",)),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_are_those_of_weighted_rows(name):
    X, y = make_stream("random", 330, 4)
    kind, parameters, names = STATISTICS[name]
    ours = kind(half_life=50, random_state=0, **parameters).fit(X, y)
    truth = kind(random_state=0, **parameters).fit(X, y, by_rows(330, 50))
    for find in map(attrgetter, names):
        np.testing.assert_allclose(
            *(find(model.stream_.learned.memory) for model in (ours, truth)), rtol=1e-6, atol=1e-9
        )


def test_strata_count_weighted_rows_and_steps_go_by_the_rows_that_count():
    X, y = make_stream("random", 330, 4)
    model = FPOGD(eps=np.inf, gamma=0.1, n_components=8, schedule="sqrt", half_life=50, random_state=0).fit(X, y)
    weight = by_rows(330, 50)
    np.testing.assert_allclose(np.concatenate(model.strata_sizes_), [weight[y < 0].sum(), weight[y > 0].sum()])
    learned = model.stream_.learned
    assert learned.counted == pytest.approx(weight.sum())
    np.testing.assert_allclose(learned.ages(3), weight.sum() + np.arange(1, 4))


def test_by_time_the_newest_row_so_far_is_now():
    X, y = make_stream("random", 2000, 4)
    rng = np.random.default_rng(0)
    time = 1.7e9 + np.cumsum(rng.exponential(60.0, 2000)) + rng.normal(0, 300, 2000)
    time[600:1200] -= 36_000.0  # ten hours late
    truth = ExactAUC(dtype="float64").fit(X, y, by_time(time, 6 * 3600.0))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(when=pd.to_datetime(time, unit="s"))
    dropped = ExactAUC(dtype="float64", half_life=("when", "6h"), columns={"when": "drop"}).fit(frame, y)
    np.testing.assert_allclose(dropped.coef_, truth.coef_, rtol=1e-9)
    # As numbers in seconds, in an array, where float32 has no digits for them; and the column is learned from.
    rows = np.column_stack([X, time])
    ours = ExactAUC(half_life=(4, 6 * 3600.0)).fit(rows, y)
    assert ours.stream_.state.time == time.max()
    assert ours.stream_.learned.counted == pytest.approx(2000 - dropped.stream_.learned.since, abs=1e-3)
    assert ours.n_features_in_ == 5


def test_the_container_of_times_does_not_matter_nor_do_cuts():
    X, y = make_stream("random", 600, 2)
    when = pd.Timestamp("2026-03-01", tz="UTC") + pd.to_timedelta(np.arange(600), "h")
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(when=when.tz_localize(None))
    kinds = [
        frame, pl.from_pandas(frame), frame.assign(when=when.tz_convert("Asia/Tokyo")),
        frame.assign(when=[one.to_pydatetime() for one in when]).astype({"when": object}),
        frame.assign(when=[one.isoformat() for one in when]),
    ]  # fmt: skip

    def fresh():
        return ExactAUC(half_life=("when", timedelta(days=2)), columns={"when": "drop"}, random_state=0)

    models = [fresh().fit(one, y) for one in kinds]
    one_by_one, cut = fresh(), fresh()
    for row, label in zip(frame.to_dict("records"), y, strict=True):
        one_by_one.learn_one(row, label)
    for rows in np.split(np.arange(600), [1, 255, 256, 500]):
        cut.partial_fit(frame.iloc[rows], y[rows])
    assert models[0].stream_.learned.since > 300
    for other in (*models[1:], one_by_one, cut):
        assert same(models[0].state_.stream, other.state_.stream)


@pytest.mark.parametrize(("form", "kind"), [(form, STREAMS[k % 4]) for k, form in enumerate(FADING_FORMS)])
def test_every_form_in_any_cuts_from_a_file_and_in_bounded_memory(form, kind, tmp_path):
    X, y = make_stream(kind, 300, 5)
    whole, one_by_one, chunks = (fixed(form, half_life=40) for _ in range(3))
    whole.partial_fit(X, y)
    for x, label in zip(X, y, strict=True):
        one_by_one.learn_one(x, label)
    for rows in np.split(np.arange(300), [1, 3, 70, 71, 250]):
        chunks.partial_fit(X[rows], y[rows])
        save(pickle.loads(pickle.dumps(chunks)), tmp_path / "model")
        chunks = load(tmp_path / "model")
    assert_same(whole, one_by_one)
    assert same(whole.state_, chunks.state_)
    plain = fixed(form).partial_fit(X, y)
    assert not same(whole.state_, plain.state_)
    assert whole.nbytes_ <= plain.nbytes_ + 16 * 128
    assert clone(whole).get_params()["half_life"] == 40
    assert all(np.isfinite(values).all() for values in outputs(whole, X))


@pytest.mark.parametrize("k", range(len(FADING_FORMS)), ids=FADING_FORMS)
def test_compiled_code_and_csr_rows_forget_as_the_specification_does(k):
    """Two classes or three, in turn; the agreement of all options of a learner is tested where it is without fading."""
    form, weight = FADING_FORMS[k], np.random.default_rng(0).choice([0.5, 1.0, 2.0], 120)
    X, y = make_stream(STREAMS[k % 4], 120, 4)
    X[np.abs(X) < 0.3] = 0.0
    y = y if k % 2 else np.digitize(X[:, 0], [-0.5, 0.5])
    slow, fast, thin = (
        fixed(form, dtype="float64", half_life=30, engine=engine).fit(rows, y, weight)
        for engine, rows in (("reference", X), ("auto", X), ("auto", csr_array(X)))
    )
    truth, *recent = (model.stream_.state.observed["recent"].scores for model in (slow, fast, thin))
    for ours in recent:
        np.testing.assert_allclose(ours, truth, atol=1e-8 * np.abs(truth).max())


def test_nothing_is_in_a_state_that_does_not_fade():
    X, y = make_stream("random", 100, 3)
    names = {path.split(".")[-1] for path in flatten(FPOGD(random_state=0).fit(X, y).state_).values}
    assert names.isdisjoint({"since", "time", "spare", "half_life"})


def test_rows_that_are_kept_for_rules_count_in_full():
    X, y = make_stream("random", 1100, 3)
    model = FPOGD(n_components=8, half_life=100, random_state=0).fit(X[:1023], y[:1023])
    assert model.stream_.learned.since is None
    model.partial_fit(X[1023:], y[1023:])
    weight = by_rows(1100, 100)
    assert model.stream_.learned.counted == pytest.approx(1024 * weight[1023] + weight[1024:].sum())


@pytest.mark.parametrize("allocation", ["equal", "neyman"])
def test_strata_that_nothing_joins_make_room_where_the_rows_are_now(allocation):
    rng = np.random.default_rng(0)
    X = 10.0 * rng.integers(0, 8, size=(4000, 1)) + 0.1 * rng.normal(size=(4000, 1))
    X[2000:] += 1000.0  # and eight other places
    memory = Strata(eps=4.0, max_strata=8, allocation=allocation)
    one = Learner(Identity(), memory=memory, step=Constant(1e-9), seed=0)
    y = rng.choice([-1, 1], 4000)
    for rows in (X, csr_array(X)):
        stream = Stream(one, [Forgetting(100)]).partial_fit(rows, y)
        state = stream.learned.memory
        assert (state.dense_centers() > 900).all()
        np.testing.assert_allclose(np.sort(state.dense_centers()[:8, 0] - 1000), 10 * np.arange(8), atol=1.0)
        assert (state.slots.points[state.slots.mass > 0] > 900).all()
    assert (Stream(one).partial_fit(X, y).learned.memory.centers < 900).sum() > 6


@pytest.mark.parametrize("half_life", [100, 4])
def test_a_sample_of_rows_that_fade_is_by_what_they_count(half_life):
    """Half of the weight is younger than a half-life, whether this is longer or shorter than the sample."""
    rng, young = np.random.default_rng(0), []
    for memory in (Reservoir(16, by="joint"), RSx(16)):
        for _ in range(15):
            state = memory.start(1, 1, 0, np.dtype(float), None)
            for t in range(1, 401):
                z = np.array([float(t)])
                memory.observe(state, Example(z, z, 0.0, 1.0, 0, rng.random(memory.draws)))
                if t % 4 == 0:
                    memory.forget(state, 2.0 ** (-4 / half_life))
            assert state.slots.mass.max() <= 16  # a new row has full weight, regardless of the length of the stream
            mass = state.slots.mass / state.slots.mass.sum()
            young.append(mass[state.slots.points[:, 0] > 400 - half_life].sum())
    assert np.mean(young) == pytest.approx(0.5 / (1 - 2.0 ** (-400 / half_life)), abs=0.06)


def test_a_grid_forgets_as_its_models_do_alone_and_lets_them_go_on():
    X, y = make_stream("random", 300, 4)
    one = Learner(RandomFourier(16, Gaussian(0.2)), memory=Strata(eps=0.5), step=Sqrt(0.3), average="mean", seed=2)
    alone, grid = (Stream(model, [Forgetting(30)]) for model in (one, Grid([one, one], 64)))
    for rows in np.split(np.arange(200), [7, 70, 130]):  # open blocks, with rows at which weights decay
        grid.partial_fit(X[rows], y[rows]).score(X[:3])
    alone.partial_fit(X[:200], y[:200])
    picked = grid.only(1)
    for stream in (alone, picked):
        stream.partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(picked.coef, alone.coef, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(picked.learned.memory.slots.mass, alone.learned.memory.slots.mass)
    assert picked.learned.since == alone.learned.since


@pytest.mark.parametrize("form", ["ExactAUC", "FPOGD", "KOIL-RS", "OAMgra", "OLP", "OPAUCr", "SOLAM", "SPAM-L2"])
def test_never_nan_however_much_is_forgotten(form):
    X, y = make_stream("random", 500, 3)
    y[100:400] = -1.0  # a single class for 1,200 half-lives
    model = fixed(form, half_life=0.25).fit(X, y)
    assert all(np.isfinite(values).all() for values in outputs(model, X))
    rows = np.column_stack([X, np.arange(500) >= 300])  # and a long night
    model = fixed(form, half_life=(3, 1e-9)).fit(rows, y)
    assert all(np.isfinite(values).all() for values in outputs(model, rows))


WHOLE = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "when": pd.date_range("2026-01-01", periods=4)})
FRAME = WHOLE.assign(when=WHOLE["when"].where(WHOLE["x"] != 3))
ERRORS = [
    (-1, WHOLE, "half_life, in rows, must be a number above 0; got -1"),
    (0, WHOLE, "must be a number above 0; got 0"),
    (np.nan, WHOLE, "must be a number above 0; got nan"),
    (True, WHOLE, "must be a number above 0; got True"),
    ("7d", WHOLE, "name the time column"),
    (("when",), WHOLE, "as in half_life="),
    ((-1, 3.0), WHOLE, "the name or the index of a time column"),
    (("when", "soon"), WHOLE, "'soon', which is not a duration: write \"90s\""),
    (("when", "0d"), WHOLE, "must be a number above 0; got 0.0"),
    (("when", timedelta(days=-1)), WHOLE, "must be a number above 0"),
    (("then", "7d"), WHOLE, r"names the column 'then', but the columns are \['x', 'when'\]"),
    (("when", "7d"), FRAME, "column 'when' contains the time of rows, by half_life=, but is missing at row 2"),
    (("when", 7.0), WHOLE, 'must contain numbers, but contains dates: for dates pass a duration'),
    (("x", "7d"), WHOLE, "must contain dates, but contains numbers: give it as a number in the units"),
    ((0, 7.0), WHOLE, "names the column 0, but the columns are"),
    ((2, 7.0), np.eye(4)[:, :2], "names column 2, but rows have 2, from 0 to 1"),
    ((0, "7d"), np.eye(4), "must contain dates, but contains numbers, as all rows without names do"),
    (("when", "7d"), np.eye(4), "names the column 'when', but X has no names"),
]  # fmt: skip


@pytest.mark.parametrize(("half_life", "rows", "message"), ERRORS)
def test_what_is_no_half_life_is_said_and_nothing_changes(half_life, rows, message):
    y, fresh = [0, 1, 0, 1], FPOGD(half_life=half_life, random_state=0)
    with pytest.raises(ValueError, match=message):
        fresh.fit(rows, y)
    if "missing" not in message:
        one = rows.iloc[0].to_dict() if isinstance(rows, pd.DataFrame) else rows[0]
        pattern = "." if "contains" in message else message
        with pytest.raises(ValueError, match=pattern):
            fresh.learn_one(one, 0)
    assert not hasattr(fresh, "stream_")
    fitted = FPOGD(random_state=0).fit(WHOLE if isinstance(rows, pd.DataFrame) else rows, y)
    before = pickle.dumps(fitted.stream_.state)
    with pytest.raises(ValueError, match=message):
        fitted.set_params(half_life=half_life).fit(rows, y)
    assert pickle.dumps(fitted.stream_.state) == before


def test_a_row_without_its_time_leaves_the_model_as_it_was():
    model = FPOGD(half_life=("when", "7d"), random_state=0).fit(WHOLE, [0, 1, 0, 1])
    before = pickle.dumps(model.state_)
    for learn in (lambda: model.partial_fit(FRAME, [0, 1, 0, 1]), lambda: model.learn_one({"x": 1.0, "when": None}, 1)):
        with pytest.raises(ValueError, match="contains the time of rows, by half_life=, but is missing at row"):
            learn()
    assert pickle.dumps(model.state_) == before
    assert np.isfinite(model.score_one({"x": 1.0, "when": None}))  # to score a row, no time is needed


def test_who_has_nothing_to_forget_says_so():
    X, y = make_stream("random", 30, 3)
    for model in (
        OGD(schedule="constant", average="last", half_life=10), KOIL(policy="fifo", half_life=10),
        PairwiseRanker(average="last", half_life=10),
    ):  # fmt: skip
        for learn in (lambda model=model: model.fit(X, y), lambda model=model: model.learn_one(X[0], y[0])):
            with pytest.raises(ValueError, match=f"{type(model).__name__} with these parameters keeps none: its"):
                learn()
    for model in (SparseKernelAUC(half_life=10), SPAM(means="full", half_life=10)):
        with pytest.raises(ValueError, match=f"{type(model).__name__} needs all rows at once: leave half_life=None"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="rows of a Stream have no time"):
        FPOGD(half_life=("when", "7d")).grid(etas=[0.1]).partial_fit(X, y)


def test_a_half_life_that_was_changed_after_the_fit_is_not_saved(tmp_path):
    X, y = make_stream("random", 60, 3)
    model = SPAM(half_life=10, random_state=0).fit(X, y).set_params(half_life=20)
    with pytest.raises(ValueError, match="were changed after it was fitted"):
        save(model, tmp_path / "model")
    other = SPAM(half_life=10, random_state=0).fit(X, y).partial_fit(X, y)
    assert_same(model.partial_fit(X, y).state_, other.state_)
