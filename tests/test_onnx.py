"""Exported models agree with those that were exported, in onnxruntime: every estimator, map and kernel.

Those in float64 are in ``test_onnx_double.py``, mixed columns in ``test_onnx_columns.py``.
"""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from sklearn.exceptions import NotFittedError

import pairloom
from pairloom import AUCClassifier
from pairloom.base.graph import NoGraph
from pairloom.estimators import BoostingClassifier, FeatureTransformer
from pairloom.features import (
    Cauchy,
    Compressed,
    FeatureMap,
    Forest,
    Gaussian,
    Growing,
    Identity,
    Landmarks,
    Laplace,
    Matern32,
    Matern52,
    Nystroem,
    OrthogonalFourier,
    RandomFourier,
    Whitened,
)
from pairloom.features.identity import IdentityState
from pairloom.persist import export_onnx
from pairloom.systems import FPOGD, KOIL, OPAUC
from tests.conftest import make_stream
from tests.generic import SMALL, forms, make
from tests.runtime import assert_agrees, feeds_of, run, session_of

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")

DTYPE = "float32"
KERNELS = [Gaussian("median"), Laplace("median"), Cauchy("median"), Matern32("median"), Matern52(0.3)]
MAPS = [
    Identity(), Identity(scale="standard"), OrthogonalFourier(32, scale="minmax"), Growing(64, block=16),
    *(RandomFourier(32, kernel, scale="standard") for kernel in KERNELS),
    *(Nystroem(16, kernel, rank=8, scale="standard") for kernel in KERNELS), Landmarks(16, scale="wide"),
    Landmarks(16, Laplace("median")), Whitened(RandomFourier(32), rank=4), Compressed(),
    Compressed(RandomFourier(32, scale="wide")), Compressed(Landmarks(16, scale="wide")), Forest(8, max_leaves=64),
    Forest(8, max_leaves=64, growth="renewed"),
]  # fmt: skip


def heavy_stream(n=1200):
    """A stream with a column with heavy tails, and a constant one."""
    X, y = make_stream("random", n, 5)
    X[:, 1], X[:, 4] = np.sign(X[:, 1]) * np.exp(3 * np.abs(X[:, 1])), 2.0
    return X.astype(np.float32).astype(float), y


def check_form(form, dtype, folder):
    X, y = make_stream("random", 900, 5)
    model = make(form, dtype=dtype).fit(X[:700], y[:700])
    assert_agrees(model, X.astype(dtype), session_of(model, folder))


def check_map(features, dtype, folder):
    X, y = heavy_stream()
    cluster_in = "features" if features.growing is None else "input"
    model = FPOGD(features=features, cluster_in=cluster_in, eta=0.001, random_state=0, dtype=dtype)
    model.fit(X[:1100], y[:1100])
    assert_agrees(model, X.astype(dtype), session_of(model, folder))


def check_kernel(kernel, dtype, folder):
    X, y = make_stream("random", 500, 5)
    model = KOIL(kernel=kernel, scale="standard", gamma=0.2, budget=20, dtype=dtype)
    model.set_params(random_state=0).fit(X, y)
    assert_agrees(model, X.astype(dtype), session_of(model, folder))


def check_classes(model, folder):
    """Five classes, and the score of one of them."""
    X, y = five_classes()
    model.fit(X[:1000], y[:1000])
    session = session_of(model, folder)
    assert_agrees(model, X.astype(model.dtype), session)
    assert run(session, feeds_of(session, X[:3]))["probabilities"].shape == (3, 5)
    model.set_params(pos_label="c")
    assert_agrees(model, X.astype(model.dtype), session_of(model, folder))


def five_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    return X, np.array(list("abcde"))[np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.8, 0.0, 0.4, 1.2])]


FIVE = [
    AUCClassifier(portfolio=SMALL, random_state=0), BoostingClassifier(n_trees=12, random_state=0),
    FPOGD(random_state=0, n_components=32, gamma="median"), FPOGD(features=Forest(8, max_leaves=64), random_state=0),
    KOIL(random_state=0, budget=20), OPAUC(random_state=0),
]  # fmt: skip


@pytest.mark.parametrize("form", sorted(forms()))
def test_every_estimator(form, tmp_path):
    check_form(form, DTYPE, tmp_path)


@pytest.mark.parametrize("features", MAPS, ids=str)
def test_every_map(features, tmp_path):
    check_map(features, DTYPE, tmp_path)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "cauchy", "matern32", "matern52", "linear"])
def test_every_kernel_at_kept_examples(kernel, tmp_path):
    check_kernel(kernel, DTYPE, tmp_path)


@pytest.mark.parametrize("model", FIVE, ids=lambda model: type(model).__name__)
def test_five_classes(model, tmp_path):
    check_classes(model.set_params(dtype=DTYPE, pos_label=None), tmp_path)


def near(values):
    """Values, and the next floats on either side."""
    return np.concatenate([np.nextafter(values, -np.inf), values, np.nextafter(values, np.inf)])


@pytest.mark.parametrize("ml_opset", [3, 5])
@pytest.mark.parametrize("kind", ["boosting", "forest", "race"])
def test_rows_at_thresholds_with_gaps_and_extreme_values(kind, ml_opset, tmp_path):
    X, y = make_stream("duplicates", 1500, 3)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    known = {
        "boosting": BoostingClassifier(n_trees=20), "forest": FPOGD(features=Forest(20, max_leaves=64)),
        "race": AUCClassifier(portfolio=SMALL, features=Forest(20, max_leaves=64)),
    }  # fmt: skip
    model = known[kind].set_params(random_state=0).fit(X, y)
    learned = model.stream_.learned
    if kind == "boosting":
        cuts = np.concatenate([bins.cuts.T for bins in learned.bins])
    else:
        nodes = learned.phi.nodes if kind == "forest" else model.frozen().stream_.learned.members[0]
        cuts = np.repeat(np.unique(nodes.values)[:, None], 3, axis=1)
    cuts = np.concatenate([np.unique(np.where(np.isfinite(cuts), cuts, 0.0), axis=0), X[:50].astype(np.float32)])
    rng = np.random.default_rng(1)
    rows = np.concatenate([near(cuts.astype(np.float32)), np.full((3, 3), [[np.nan], [1e15], [-1e15]])])
    rows = rng.permuted(rows, axis=0).astype(np.float32)
    assert len(rows) > 150
    session = session_of(model, tmp_path, ml_opset=ml_opset)
    assert_agrees(model, rows, session)
    used = {one.domain: one.version for one in onnx.load(tmp_path / "model.onnx").opset_import}
    assert used == ({"": 21, "ai.onnx.ml": 5} if ml_opset == 5 else {"": 17, "ai.onnx.ml": 3})


def test_rows_far_from_all_others(tmp_path):
    X, y = heavy_stream()
    model = AUCClassifier(portfolio=SMALL, random_state=0).fit(X, y)
    far = np.concatenate([s * 10.0**e * np.eye(5) for e in (1, 3, 8, 15) for s in (1, -1)])
    assert_agrees(model, far.astype(np.float32), session_of(model, tmp_path))


def test_frozen_models_and_models_before_their_first_mixture(tmp_path):
    X, y = make_stream("random", 600, 4)
    model = AUCClassifier(portfolio=SMALL, random_state=0).fit(X, y)
    feeds = {"X": X.astype(np.float32)}
    of_frozen = run(session_of(model.frozen(), tmp_path), feeds)["score"]
    np.testing.assert_array_equal(of_frozen, run(session_of(model, tmp_path), feeds)["score"])
    early = AUCClassifier(portfolio=SMALL, random_state=0).partial_fit(X[:6], y[:6], classes=[-1, 1])
    found = run(session_of(early, tmp_path), feeds)["score"]
    np.testing.assert_allclose(found, early.score_many(X), atol=1e-6)


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [([0, 1], 0), (["b", "a"], "a"), ([True, False], None), ([1.0, 2.0], None), ([2**40, 7], None)],
)
def test_labels_keep_their_type(labels, pos_label, tmp_path):
    X, y = make_stream("random", 300, 3)
    model = OPAUC(random_state=0, pos_label=pos_label).fit(X, np.array(labels)[(y > 0).astype(int)])
    session = session_of(model, tmp_path)
    assert_agrees(model, X.astype(np.float32), session)
    assert run(session, feeds_of(session, X[:1]))["label"].tolist()[0] in labels


def test_models_without_trees_use_the_older_operators(tmp_path):
    X, y = make_stream("random", 300, 3)
    session_of(OPAUC(random_state=0).fit(X, y), tmp_path)
    made = onnx.load(tmp_path / "model.onnx")
    assert (made.ir_version, made.opset_import[0].version) == (8, 17)
    assert {dim.dim_param for dim in made.graph.input[0].type.tensor_type.shape.dim} == {"rows", ""}


@dataclass(frozen=True)
class Squares(FeatureMap):
    def n_outputs(self, n_features):
        return n_features

    def fix(self, n_features, rows, rng):
        return IdentityState(Identity().fix(n_features, rows, rng).scaler)

    def apply(self, state, X):
        return np.square(X)


@dataclass(frozen=True)
class Doubled(Identity):
    """A map with another formula than its base class, which has an ONNX form and a sum as one loop."""

    def apply(self, state, X):
        return 2.0 * super().apply(state, X)


@dataclass(frozen=True)
class Flat(Gaussian):
    @staticmethod
    def profile(r2):
        return 1.0 / (1.0 + r2)


@pytest.mark.parametrize(
    "features",
    [Squares(), Doubled(), Forest(4, levels=(2,)), Nystroem(8, Flat(0.1)), Whitened(Doubled()), Compressed(Squares())],
    ids=str,
)
def test_parts_without_a_form_are_named(features, tmp_path):
    X, y = make_stream("random", 200, 3)
    model = FPOGD(features=features, eta=1e-4, random_state=0).fit(X, y)
    part = {"Nystroem": "Flat", "Whitened": "Doubled", "Compressed": "Squares"}
    name = part.get(type(features).__name__, type(features).__name__)
    with pytest.raises(NoGraph, match=rf"^{name}.* has no ONNX form"):
        export_onnx(model, tmp_path / "model.onnx")
    assert not any(tmp_path.iterdir())


def test_what_cannot_be_exported_says_why(tmp_path):
    X, y = make_stream("random", 200, 3)
    path = tmp_path / "model.onnx"
    cases = [
        (FeatureTransformer().fit(X), "a FeatureTransformer has no ONNX form"),
        (AUCClassifier(features=RandomFourier(8), random_state=0).fit(X, y), r"linear_sum.*RandomFourier"),
        (OPAUC().partial_fit(X[:5], np.ones(5)), r"rows of one class only, \[1.0\]"),
        (BoostingClassifier(dtype="float64", n_trees=5).fit(X, y), "need ml_opset=5"),
        (OPAUC().fit(X, y.astype("datetime64[D]")), "neither numbers nor text"),
    ]
    for model, reason in cases:
        with pytest.raises(ValueError, match=reason):
            export_onnx(model, path, ml_opset=3)
    with pytest.raises(NotFittedError):
        export_onnx(OPAUC(), path)
    with pytest.raises(TypeError, match="got a dict"):
        export_onnx({}, path)
    with pytest.raises(ValueError, match="ml_opset must be 5, or 3"):
        export_onnx(OPAUC().fit(X, y), path, ml_opset=4)
    assert not any(tmp_path.iterdir())


def test_the_command_writes_the_file_or_leaves_it(command, tmp_path):
    X, y = make_stream("random", 300, 3)
    model = OPAUC(random_state=0).fit(X, y)
    pairloom.save(model, tmp_path / "model")
    done = command("export", "model", "out.onnx", cwd=tmp_path)
    assert done.returncode == 0
    assert "inputs:  X (float)" in done.stdout
    assert "outputs: label (double), probabilities (float), score (float)" in done.stdout
    export_onnx(model, tmp_path / "again.onnx")
    before = (tmp_path / "out.onnx").read_bytes()
    assert before == (tmp_path / "again.onnx").read_bytes()
    pairloom.save(BoostingClassifier(dtype="float64", n_trees=5).fit(X, y), tmp_path / "trees")
    for code, words, message in (
        (2, ("model", "model"), "is also an input"), (2, ("trees", "out.onnx", "--ml-opset", "3"), "need ml_opset=5"),
        (2, ("none", "out.onnx"), "No such file"),
    ):  # fmt: skip
        done = command("export", *words, cwd=tmp_path)
        assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert (tmp_path / "out.onnx").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.onnx", "model", "out.onnx", "trees"]
