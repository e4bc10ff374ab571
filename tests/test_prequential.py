"""Prequential evaluation: the state that scores each row, and delayed labels."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from scipy.sparse import csr_array
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score

from pairloom import AUCClassifier
from pairloom.evaluation import Rows, prequential
from pairloom.systems import FPOGD, SPAM
from tests.conftest import make_stream
from tests.generic import SMALL
from tests.mixed import mixed

X, LABELS = make_stream("random", 700, 3)
Y = (LABELS > 0).astype(int)


class Recorder:
    """A model that records its calls in order."""

    pos_label = 1

    def __init__(self):
        self.log = []

    def score_one(self, x):
        self.log.append(("score", x[0]))
        return float(np.sin(x[0]))

    def learn_one(self, x, y, sample_weight=1.0):
        self.log.append(("learn", x[0], y, sample_weight))


def quiet(model, stream, **changes):
    return prequential(model, stream, progress=False, **changes)


def numbered(n):
    return np.arange(float(n))[:, None]


def by_hand(n, delay):
    """Row t is scored, then the label of row t - delay learned; pending labels are learned at the end."""
    log = []
    for t in range(n):
        log.append(("score", float(t)))
        if t >= delay:
            log.append(("learn", float(t - delay), (t - delay) % 2, 1.0))
    return log + [("learn", float(t), t % 2, 1.0) for t in range(max(0, n - delay), n)]


@pytest.mark.parametrize("delay", [0, 1, 3, 50])
def test_a_label_is_learned_after_all_rows_within_the_delay_were_scored(delay):
    model = Recorder()
    quiet(model, (numbered(20), np.arange(20) % 2), delay=delay)
    assert model.log == by_hand(20, delay)


def test_times_decide_and_at_equal_times_scores_come_first():
    model = Recorder()
    arrived = [0, 1, 1, 2, 5]
    labelled = [1, 9, 1, 1, 5]
    quiet(model, Rows(numbered(5), np.ones(5, int), arrived=arrived, labelled=labelled), delay="times")
    order = [(entry[0], entry[1]) for entry in model.log]
    assert order == [
        ("score", 0), ("score", 1), ("score", 2), ("learn", 0), ("learn", 2), ("score", 3), ("learn", 3), ("score", 4),
        ("learn", 4), ("learn", 1),
    ]  # fmt: skip


def test_times_may_be_dates_of_a_frame():
    days = pd.date_range("2026-01-01", periods=6).to_series(index=range(6))
    frame = pd.DataFrame(X[:6], columns=list("abc"))
    model = FPOGD(random_state=0)
    quiet(model, Rows(frame, Y[:6], arrived=days, labelled=days + pd.Timedelta(days=2)), delay="times")
    assert model.n_seen_ == 6
    assert model.feature_names_in_.tolist() == list("abc")


def test_a_missing_label_is_scored_and_never_learned():
    model = Recorder()
    found = quiet(model, (numbered(6), [1, None, 0, np.nan, 1, 0]), every=2)
    assert sum(entry[0] == "score" for entry in model.log) == 6
    assert [entry[1] for entry in model.log if entry[0] == "learn"] == [0, 2, 4, 5]
    assert found.table["row"].tolist() == [2, 4, 6]


def test_weights_go_along():
    model = Recorder()
    quiet(model, (numbered(3), np.array([0, 1, 0]), np.array([1.0, 2.5, 0.0])))
    assert [entry[3] for entry in model.log if entry[0] == "learn"] == [1.0, 2.5, 0.0]


@pytest.mark.parametrize("delay", [0, 37])
def test_auc_is_that_of_the_scores_on_arrival(delay):
    found = quiet(FPOGD(gamma="median", random_state=0), (X, Y), delay=delay, every=250, window=200)
    model, scores = FPOGD(gamma="median", random_state=0), []
    for t in range(700):
        if t > delay:
            model.learn_one(X[t - delay - 1], Y[t - delay - 1])
        scores.append(model.score_one(X[t]))
    ends = [250, 500, 700]
    expected = [roc_auc_score(Y[end - 200 : end], scores[end - 200 : end]) for end in ends]
    assert found.table["row"].tolist() == ends
    np.testing.assert_allclose(found.table["auc"], expected, rtol=1e-12)
    np.testing.assert_allclose(found.table["auc_mixed"], [roc_auc_score(Y[:end], scores[:end]) for end in ends])
    assert (found.table["low"] < found.table["auc"]).all()
    assert (found.table["auc"] < found.table["high"]).all()


def test_models_of_other_libraries_and_containers_side_by_side():
    linear_model = pytest.importorskip("river.linear_model", reason="river is not installed: pip install river")
    from river import preprocessing

    def models():
        return {
            "ours": SPAM(eta=0.02),
            "sklearn": SGDClassifier(loss="log_loss", random_state=0),
            "river": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        }

    rows = X + 0.8 * Y[:, None]
    found = quiet(models(), (rows, Y), window=400)
    assert all(auc > 0.7 for auc in found.auc.values())
    pieces = ((rows[i : i + 100], Y[i : i + 100]) for i in range(0, 700, 100))
    others = {name: model for name, model in models().items() if name != "ours"}
    again = quiet(others, pieces, window=400)
    for name in others:
        assert again.auc[name] == pytest.approx(found.auc[name], abs=1e-9)
    assert np.isfinite(found.table["bytes"]).sum() == 1
    sparse = quiet({"river": models()["river"]}, (csr_array(rows), Y), window=400)
    assert sparse.auc["river"] == pytest.approx(found.auc["river"], abs=1e-9)


def test_the_positive_label_is_the_second_class_or_the_models_own():
    names = np.where(Y, "bad", "good")
    separated = X + 3 * Y[:, None]
    plain = quiet(SPAM(eta=0.02), (separated, names), classes=("good", "bad"), window=300)
    own = quiet(SPAM(eta=0.02, pos_label="bad"), (separated, names), classes=("bad", "good"), window=300)
    assert plain.auc["SPAM"] == own.auc["SPAM"] > 0.9


def test_a_race_along_the_stream():
    found = quiet(AUCClassifier(portfolio=SMALL, random_state=0), (X[:300], Y[:300]), every=150)
    assert found.auc["AUCClassifier"] > 0.7


def test_the_figure_shows_what_models_report(tmp_path):
    models = {"kernel": FPOGD(gamma="median", random_state=0), "SGD": SGDClassifier(loss="log_loss", random_state=0)}
    figure = quiet(models, (X, Y), every=100, window=200).plot()
    assert [ax.get_ylabel() for ax in figure.axes] == [
        "AUC of the newest rows", "loss", "strata", "bytes", "rows per second",
    ]  # fmt: skip
    figure.savefig(tmp_path / "evaluation.png")
    assert imread(tmp_path / "evaluation.png")[..., :3].std() > 0.05


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delay": -1}, "delay"),
        ({"delay": "soon"}, "delay"),
        ({"every": 0}, "every must be an integer"),
        ({"classes": (1,)}, "classes must be two labels"),
        ({"delay": "times"}, "needs the times"),
        ({"model": object()}, "can be evaluated on a stream if it has partial_fit"),
        ({"stream": (X, Y[:5])}, "X and y must have the same number of rows"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(changes, message):
    asked = {"model": SPAM(), "stream": (X, Y), **changes}
    with pytest.raises(ValueError, match=message):
        prequential(asked.pop("model"), asked.pop("stream"), progress=False, **asked)


def test_mixed_frames_are_taken_as_they_are():
    frame, y = mixed(400)
    frame.loc[0, "device"] = None
    models = {name: FPOGD(n_components=16, random_state=0) for name in ("rows", "frames")}
    found = prequential(models["rows"], (frame, y), classes=(-1, 1), progress=False)
    models["frames"].partial_fit(frame, y)
    assert found.auc["FPOGD"] > 0.5
    assert models["rows"].columns_ == models["frames"].columns_
