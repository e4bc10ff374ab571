"""Contributions of columns: against all coalitions by brute force, and what users get."""

from itertools import product
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from pairloom import AUCClassifier, PairwiseRanker, PairwiseRegressor, load, save
from pairloom.base.tree import same
from pairloom.columns.newest import N_NEWEST, NewestRows
from pairloom.explain.shapley import with_sum
from pairloom.features import Compressed, Forest, Gaussian, Identity, Landmarks, RandomFourier
from pairloom.features.capabilities import explainable_of
from pairloom.features.compressed import CompressedState
from pairloom.features.contributions import Contrast
from pairloom.features.kernel_contributions import quadrature
from pairloom.features.leaf_contributions import BITS
from pairloom.race.mixing import soft_clip
from pairloom.race.mixture_sum import clipping_slopes
from pairloom.systems import FPOGD, KOIL, ExactAUC
from tests.conftest import make_stream
from tests.generic import SMALL, make
from tests.mixed import mixed

MEMBERS = ("linear", "boosted", "forest, renewed", "forest, boosted", "kernel, width 1, wide")


def coalitions(n):
    """All sets of n players as rows of booleans, and the weight of adding player p to each of them."""
    sets = np.array(list(product([False, True], repeat=n)))
    size = sets.sum(axis=1)
    return sets, np.array([factorial(s) * factorial(n - s - 1) / factorial(n) if s < n else 0.0 for s in size])


def brute_force(score, n, row, background):
    """Shapley values of a row by their definition; ``score`` maps rows, ``row(b, chosen)`` mixes two of them."""
    sets, weight = coalitions(n)
    code = sets @ (1 << np.arange(n))[::-1]
    total = np.zeros(n)
    for b in background:
        scores = np.asarray(score([row(b, chosen) for chosen in sets]), float)
        for p in range(n):
            without = np.flatnonzero(~sets[:, p])
            gain = scores[code[without] + (1 << (n - 1 - p))] - scores[without]
            total[p] += (weight[without] * gain).sum()
    return total / len(background)


def of_frame(model, frame, i, background):
    """The same for row i of a frame, next to rows of another one."""
    names = list(frame.columns)

    def rows(taken):
        return model.decision_function(pd.DataFrame(taken, columns=names).astype(frame.dtypes))

    x, others = frame.iloc[i].tolist(), [background.iloc[b].tolist() for b in range(len(background))]
    return brute_force(
        rows, len(names), lambda b, chosen: [u if c else v for u, v, c in zip(x, b, chosen, strict=True)], others
    )


def of_array(score, X, i, background):
    d = X.shape[1]
    return brute_force(lambda rows: score(np.array(rows)), d, lambda b, chosen: np.where(chosen, X[i], b), background)


@pytest.fixture(scope="module")
def frames():
    """Numbers, text, a date, missing values: seven columns."""
    frame, y = mixed(900)
    return frame.assign(items=frame["items"].astype(float), known=frame["known"].astype(float)), y


@pytest.fixture(scope="module")
def fitted(frames):
    X, y = frames
    model = AUCClassifier(portfolio=SMALL, random_state=0, dtype="float64").fit(X[:880], y[:880])
    mixture = model.stream_.learned.mixture
    mixture.weights = np.linspace(0.2, 1.0, len(mixture.weights))
    return model


def only(model, name):
    """The model with one member in its mixture."""
    one = model.with_state(model.state_)
    race = one.stream_.learned
    kept = [entrant.name == name for entrant in race.entrants]
    mixture = type(race.mixture)(np.array(kept, float), race.mixture.slopes, race.mixture.shifts)
    one.stream_.state.learned = type(race)(**{**vars(race), "mixture": mixture, "due": None})
    return one


@pytest.mark.parametrize("name", [*MEMBERS, "all", "frozen"])
def test_all_coalitions_of_raw_columns_agree(name, fitted, frames):
    X, _ = frames
    model = fitted if name == "all" else fitted.frozen() if name == "frozen" else only(fitted, name)
    rows, background = X[882:885], X[:3]
    found = model.explain(rows, background)
    sizes = [unclipped(model, part).max() for part in (rows, background)]
    assert max(sizes) < 4  # nothing is clipped
    for i in range(len(rows)):
        expected = of_frame(model, rows, i, background)
        assert np.abs(expected).max() > 0.02
        np.testing.assert_allclose(found.values[i], expected, rtol=0, atol=1e-8)
    assert not found.error.any()


def unclipped(model, frame):
    """The largest size of a member's score, before it is clipped, of each row."""
    stream = model.stream_
    encoded = stream.encoding.encode(stream.state.encoding, model._rows_to_score(frame))
    members = stream.model.explainable(stream.learned).members
    return np.max([np.abs(one.score(one.read(encoded))) for one in members], axis=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_contributions_add_up_where_scores_are_clipped(dtype):
    X, y = make_stream("random", 2000, 5)
    model = AUCClassifier(portfolio=SMALL, random_state=0, dtype=dtype).fit(X, y)
    mixture = model.stream_.learned.mixture
    mixture.slopes = 20.0 * mixture.slopes
    found = model.explain(X[:40], X[50:70])
    scores = model.decision_function(X[:40])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, scores, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found.scores, scores)
    members = model.stream_.model.explainable(model.stream_.learned).members
    assert np.max([np.abs(one.score(X.astype(dtype))) for one in members]) > 20
    # Before rounding is corrected, they add up to the precision of the scores.
    out = np.zeros((40, 5, 1))
    rows = X.astype(dtype)
    weights = np.full((40, 20, 1), 1 / 20)
    model.stream_.model.explainable(model.stream_.learned).contribute(
        Contrast(rows[:40], rows[50:70], np.arange(5), weights), out
    )
    raw = model.stream_.score(rows)
    atol = 3e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(out.sum(axis=(1, 2)), raw[:40] - raw[50:70].mean(), rtol=0, atol=atol)


def test_slopes_of_the_clipping_are_never_large():
    u, v = np.meshgrid(np.linspace(-30, 30, 121), np.linspace(-30, 30, 121) + 1e-12)
    slopes = clipping_slopes(u, v)
    assert slopes.min() > 0
    assert slopes.max() <= 1 + 1e-12
    np.testing.assert_allclose(slopes * (u - v), soft_clip(u) - soft_clip(v), atol=1e-9)
    np.testing.assert_allclose(np.diag(slopes), 1 / (1 + np.maximum(np.abs(np.diag(u)) - 4, 0)), rtol=1e-6)


@pytest.mark.parametrize("levels", [False, True])
def test_the_tree_explainer_of_shap_agrees_on_a_forest(levels):
    shap = pytest.importorskip("shap", reason="shap is missing: install pairloom[test]")
    X, y = make_stream("random", 1500, 6)
    X[::7, 2] = np.round(X[::7, 2])
    forest = Forest(20, max_leaves=64, growth="renewed")
    portfolio = SMALL.__class__(forests=(forest,), boosted=None, kernels=())
    model = only(AUCClassifier(portfolio=portfolio, random_state=0, dtype="float64").fit(X, y), "forest, renewed")
    (member,) = model.stream_.model.frozen(model.stream_.learned).members
    leaf = (member.yes == np.arange(member.yes.shape[1])) | (member.yes == 0)  # or room that is not used
    first, second = (np.where(leaf, -1, member.yes + k) for k in (0, 1))
    trees = [
        {
            "children_left": first[t], "children_right": second[t], "children_default": first[t],
            "features": member.columns[t], "thresholds": np.where(leaf[t], 0.0, member.values[t]),
            "values": member.w[t], "node_sample_weight": np.ones(len(leaf[t])),
        }
        for t in range(len(leaf))
    ]  # fmt: skip
    background = X[: BITS + 20] if levels else X[:32]  # more than one walk
    explainer = shap.TreeExplainer({"trees": trees}, background, feature_perturbation="interventional")
    expected = np.asarray(explainer.shap_values(X[1400:1410], check_additivity=False)).reshape(10, 6)
    out = np.zeros((10, 6, 1))
    weights = np.full((10, len(background), 1), 1 / len(background))
    for total in (member.explainable, model.stream_.model.explainable(model.stream_.learned).members[0].inner):
        out[:] = 0
        total.contribute(Contrast(X[1400:1410], background, np.arange(6), weights), out)
        np.testing.assert_allclose(out[:, :, 0], expected, rtol=0, atol=1e-7)  # shap rounds to float32
    assert np.abs(expected).max() > 0.1


@pytest.mark.filterwarnings("ignore:columns of little use")
def test_unused_columns_have_exactly_0(frames):
    X, y = frames
    X = X.assign(note=X["shop"], flat=1.0)
    model = AUCClassifier(portfolio=SMALL, random_state=0, columns={"note": "drop"}).fit(X, y)
    found = model.explain(X[:20])
    assert found.columns == list(X.columns)
    zero = [found.columns.index(name) for name in ("note", "flat")]
    assert not found.values[:, zero].any()
    assert (np.abs(found.values).max(axis=0) > 0).sum() == 7
    used = ExactAUC(random_state=0).fit(*make_stream("random", 400, 3))
    used.stream_.learned.memory.solved = (used.n_seen_, np.array([[1.0, 0.0, 2.0]], np.float32))
    assert not used.explain(np.ones((2, 3))).values[:, 1].any()


@pytest.mark.parametrize("features", [Identity(scale="standard"), Landmarks(40, Gaussian("median"))])
def test_duplicated_columns_share_equally(features):
    X, y = make_stream("random", 600, 3)
    X = X[:, [0, 1, 2, 0]]
    found = ExactAUC(features=features, dtype="float64").fit(X, y).explain(X[:10])
    np.testing.assert_allclose(found.values[:, 0], found.values[:, 3], atol=1e-9)
    assert np.abs(found.values[:, 0]).max() > 0.05


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "cauchy", "linear"])
def test_kernels_at_kept_rows(kernel):
    X, y = make_stream("random", 400, 4)
    model = KOIL(kernel=kernel, budget=40, dtype="float64", random_state=0).fit(X, y)
    found = model.explain(X[:2], X[10:13])
    assert not found.error.any()
    for i in range(2):
        expected = of_array(model.decision_function, X, i, X[10:13])
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(found.values[i], expected, rtol=0, atol=1e-8)


def test_compressed_columns_before_a_kernel_and_several_classes():
    rng = np.random.default_rng(0)
    X = np.exp(2 * rng.normal(size=(900, 4)))
    y = np.digitize(np.log(X[:, 0]) + np.log(X[:, 1]) ** 2, [0.5, 5])
    model = AUCClassifier(portfolio=SMALL, random_state=0, dtype="float64").fit(X, y)
    found = model.explain(X[:30], X[40:43])
    assert found.labels == model.predict(X[:30]).tolist()
    assert len(set(found.labels)) == 3
    decisions = model.decision_function(X[:30])
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base, decisions[np.arange(30), found.labels], rtol=0, atol=1e-10
    )
    one = model.explain(X[:3], X[40:43], label=2)
    for i in range(3):
        expected = of_array(lambda rows: model.decision_function(rows)[:, 2], X, i, X[40:43])
        np.testing.assert_allclose(one.values[i], expected, rtol=0, atol=0.05)  # some are clipped
    np.testing.assert_allclose(one.values.sum(axis=1) + one.base, decisions[:3, 2], rtol=0, atol=1e-10)
    kept = model.explain(X[:30])
    assert kept.background_hash.count("+") == 2  # other classes differ
    with pytest.raises(ValueError, match="label=7 is not one of the classes"):
        model.explain(X[:2], label=7)


def test_both_labels_of_two_classes(fitted, frames):
    X, _ = frames
    up, down = (fitted.explain(X[:4], X[20:30], label=label) for label in (1.0, -1.0))
    np.testing.assert_allclose(up.values, -down.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(up.scores, -down.scores)
    swapped = make("AUCClassifier", pos_label=-1.0).fit(*frames)
    np.testing.assert_array_equal(swapped.explain(X[:4]).scores, swapped.score_many(X[:4]))
    positives, negatives = (fitted.explain(X[:1], label=label).cells.background[0] for label in (-1.0, 1.0))
    assert not same(positives, negatives)


def test_sampled_values_are_within_their_errors():
    X, y = make_stream("random", 600, 5)
    model = FPOGD(n_components=64, dtype="float64", random_state=0, features=RandomFourier(64, Gaussian(0.2))).fit(X, y)
    found = model.explain(X[:3], X[10:18])
    again, other = (model.explain(X[:3], X[10:18], seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(found.values, again.values)
    assert (found.values != other.values).any()
    np.testing.assert_array_equal(model.explain(X[2:3], X[10:18]).values[0], found.values[2])
    assert (found.error > 0).all()
    expected = np.array([of_array(model.decision_function, X, i, X[10:18]) for i in range(3)])
    for one in (found, other):
        assert (np.abs(one.values - expected) / one.error).max() < 5
        assert np.abs(one.values - expected).max() > 1e-9
        assert one.error.max() < 0.2 * np.abs(expected).max()
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, found.scores, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", [PairwiseRanker, PairwiseRegressor])
def test_rankers_and_regressors_explain_their_prediction(kind):
    X, _ = make_stream("random", 500, 4)
    y = X[:, 0] - 0.5 * X[:, 1]
    model = kind(kernel="linear", eta=0.01, random_state=0, dtype="float64").fit(X, y)
    found = model.explain(X[:3])
    assert found.labels is None
    np.testing.assert_allclose(found.scores, model.predict(X[:3]), rtol=1e-12)
    np.testing.assert_allclose(found.values[0], of_array(model.predict, X, 0, X[-N_NEWEST:]), atol=1e-8)
    assert next(iter(model.importance())) == "x0"
    with pytest.raises(ValueError, match="label= is for classifiers"):
        model.explain(X[:1], label=1)


def test_the_background_is_the_newest_rows_of_the_other_class_whatever_the_chunks(frames):
    X, y = frames
    whole = make("ExactAUC").fit(X, y)
    parts = make("ExactAUC")
    for start in range(0, 900, 70):
        parts.partial_fit(X[start : start + 70], y[start : start + 70])
    single = make("ExactAUC")
    for row, label in zip(X.to_dict("records"), y, strict=True):
        single.learn_one(row, label)
    found = whole.explain(X[:5])
    newest = X[y == -1.0].iloc[-N_NEWEST:]
    assert found.background_hash == whole.explain(X[:5], newest).background_hash
    assert found.background_hash != whole.explain(X[:5], newest[1:]).background_hash
    np.testing.assert_array_equal(found.cells.background[0][:, 1], newest["age"])
    assert same(whole._newest, parts._newest)
    assert same(whole._newest, single._newest)
    np.testing.assert_array_equal(found.values, single.explain(X[:5]).values)
    few = whole.explain(X[:5], 4)
    np.testing.assert_array_equal(few.cells.background[0], found.cells.background[0][-4:])


def test_kept_rows_by_class_in_dense_and_csr_rows():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    kept, sparse = NewestRows.empty(3, 2), NewestRows.empty(3, 2)
    for start, end in ((0, 1), (1, 200), (200, 300)):
        kept.add(codes[start:end], X[start:end])
        sparse.add(codes[start:end], csr_array(X[start:end]))
    np.testing.assert_array_equal(kept.newest(np.array([1]), 5), X[codes == 1][-5:])
    np.testing.assert_array_equal(kept.newest(np.array([0, 2]), 20), X[codes != 1][-20:])
    assert same(kept, sparse)
    assert NewestRows.empty(2, 2048) is not None
    assert NewestRows.empty(2, 2049) is None


def test_copies_files_and_frozen_models_explain_alike(fitted, frames, tmp_path):
    X, _ = frames
    found = fitted.explain(X[:5])
    save(fitted, tmp_path / "m")
    for other in (load(tmp_path / "m"), fitted.frozen()):
        one = other.explain(X[:5])
        np.testing.assert_allclose(one.values, found.values, rtol=0, atol=1e-12)
        assert one.background_hash == found.background_hash


def test_a_model_of_an_earlier_version_asks_for_a_background(frames):
    X, y = frames
    model = make("ExactAUC").fit(X, y)
    model._newest = None
    with pytest.raises(ValueError, match="pass typical rows, background=rows"):
        model.explain(X[:2])
    with pytest.raises(ValueError, match="X=rows and background=rows"):
        model.importance()
    assert len(model.explain(X[:2], X[5:9])) == 2
    assert len(model.importance(X[:2], X[5:9])) == 7
    model.partial_fit(X[:50], y[:50])
    assert len(model.explain(X[:2])) == 2


def test_what_is_wrong_with_a_background(fitted, frames):
    X, y = frames
    numbers = X[:3].to_numpy()
    for background, message in (
        (X[:0], "0 sample"), (X.drop(columns="age"), "age"), (33, "keeps 32 rows"), (0, "background"),
        (numbers, "could not convert|data frame|numbers|string"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            fitted.explain(X[:2], background)
    with pytest.raises(ValueError, match="top"):
        fitted.explain(X[:2], top=0)
    with pytest.raises(ValueError, match="rows of two classes"):
        make("ExactAUC").partial_fit(X[:5], y[:5] * 0 + 1).explain(X[:2])


@pytest.mark.parametrize("rows", ["mapping", "csr"])
def test_other_forms_of_rows(rows, frames):
    X, y = frames
    if rows == "mapping":
        model = make("ExactAUC").fit(X, y)
        one, expected = model.explain(X.iloc[3].to_dict()), model.explain(X.iloc[3:4])
    else:
        A = make_stream("random", 300, 4)[0]
        A[A < 0] = 0
        model = make("ExactAUC").fit(csr_array(A), y[:300])
        one, expected = model.explain(csr_array(A[3:4])), model.explain(A[3:4])
    np.testing.assert_array_equal(one.values, expected.values)
    assert one.top() == expected.top()


def test_threads_change_nothing(fitted, frames):
    X, _ = frames
    found = fitted.explain(X[:200])
    fitted.n_jobs = 2
    try:
        np.testing.assert_array_equal(fitted.explain(X[:200]).values, found.values)
    finally:
        fitted.n_jobs = None
    np.testing.assert_allclose(fitted.explain(X[7:8]).values[0], found.values[7], rtol=0, atol=1e-12)


def test_few_nodes_are_as_exact_as_many():
    rng = np.random.default_rng(0)
    phi = Compressed(Landmarks(30, Gaussian(0.01)))
    X = rng.normal(size=(60, 9))
    state = phi.fix(9, X, rng)
    assert isinstance(state, CompressedState)
    total = explainable_of(phi.linear_sum(state, rng.normal(size=(1, 1, 30)), np.ones((1, 1))))
    near, far = X[:1] + 0.1 * rng.normal(size=(5, 9)), X[30:35]
    for background in (near, far):
        out = np.zeros((1, 9, 1))
        total.contribute(Contrast(X[:1], background, np.arange(9), np.full((1, 5, 1), 0.2)), out)

        def score(rows):
            found = np.zeros((len(rows), 1))
            total.add(rows, found)
            return found[:, 0]

        np.testing.assert_allclose(out[0, :, 0], of_array(score, X, 0, background), rtol=0, atol=1e-10)
    sizes, limits, nodes, weights = quadrature(9, "float64")
    assert sizes[-1] == 5
    assert limits[-1] == np.inf
    for q, t, w in zip(sizes, nodes, weights, strict=True):
        np.testing.assert_allclose(w[:q] @ t[:q] ** (2 * q - 1), 1 / (2 * q), rtol=1e-12)


def test_importance_follows_the_truth_and_scikit_learn(frames):
    X, y = make_stream("random", 800, 4)
    y = (X[:, 2] + 0.3 * X[:, 0] > 0).astype(int)
    model = ExactAUC().fit(X, y)
    assert list(model.importance())[:2] == ["x2", "x0"]
    assert model.importance(X[:50])["x2"] == pytest.approx(np.abs(model.explain(X[:50]).values[:, 2]).mean())
    shares = model.feature_importances_
    assert shares.argmax() == 2
    assert shares.sum() == pytest.approx(1)


def test_sentences_name_the_side_of_the_row(frames):
    X, y = frames
    model = make("ExactAUC").fit(X, y)
    found = model.explain(X, top=2)
    above = found.scores >= found.base
    assert above.any()
    assert not above.all()
    for i in range(len(X)):
        own = found.values[i][[found.columns.index(name) for name in found.top_columns(9)[i]]]
        assert (own > 0).all() if above[i] else (own < 0).all()
        assert (np.diff(np.abs(own)) <= 0).all()
        assert len(found.top()[i]) == min(2, len(own))
    sentences = [text for own in found.top(7) for text in own]
    for part in (" is missing, which ", "another value in ", ": above ", ": below ", " typical rows", "earlier than "):
        assert any(part in text for text in sentences), part
    assert any(text.startswith("device web raises the score by ") for text in sentences)


def test_frames_shap_and_plots(frames):
    pytest.importorskip("shap", reason="shap is missing: install pairloom[test]")
    X, y = frames
    names = {"amount": "am$unt\x1b[2J", "device": "<b>&"}
    X = X.rename(columns=names)
    found = make("ExactAUC").fit(X, y).explain(X[:30])
    assert found.to_frame().shape == (30, 7)
    other = found.to_shap()
    assert other.values.shape == (30, 7)
    np.testing.assert_array_equal(other.base_values, found.base)
    assert other.data[0, 4] == "ios"
    assert not any("\x1b" in text for own in found.top() for text in own)
    import matplotlib.pyplot as plt

    for part in (found, make("ExactAUC").fit(X, y).explain(X[:1])):
        axes = part.plot()
        axes.figure.canvas.draw()
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert not any("\x1b" in label for label in labels)
        plt.close(axes.figure)


def test_rounding_is_spread_over_the_columns_that_contribute():
    values = np.array([[1.0, -2.0, 0.0], [0.0, 0.0, 0.0]])
    made = with_sum(values, np.array([-1.0 + 1e-6, 0.0]))
    np.testing.assert_allclose(made.sum(axis=1), [-1.0 + 1e-6, 0.0], atol=1e-15)
    assert not made[:, 2].any()
    assert np.abs(made - values).max() < 1e-6
