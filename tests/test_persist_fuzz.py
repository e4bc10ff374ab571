"""Truncated, damaged or hostile files: always a ModelFileError, and no allocation larger than the file.

Whatever loads has a state that its model could have: it scores and learns, and compiled code stays in its arrays
(`make soak` checks their bounds).
"""

import json
import os
import sys
import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pairloom import AUCClassifier, Learner, Stream, load, save
from pairloom.features import Forest, Growing, RandomFourier
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory
from pairloom.models import StepPath
from pairloom.persist import ModelFileError
from pairloom.persist.format import has_too_many_entries
from pairloom.race import Budget
from pairloom.steps import AdaGrad
from pairloom.systems import FPOGD, KOIL, OPAUC, OPERA, SOLAM, SPAM, ExactAUC, FourierSGD, ProjectronPP, SparseKernelAUC
from tests.conftest import examples, make_stream
from tests.hostile import damaged, flipped, hostile, read, sign, with_flip
from tests.test_state import SMALL

pytestmark = pytest.mark.filterwarnings("ignore")

X, Y = make_stream("random", 1300, 3)
SPARSE = csr_array(np.where(np.abs(X) < 0.5, 0.0, X))


def learner(memory, features=None):
    return Stream(Learner(features=features or RandomFourier(8), memory=memory, seed=0))


TREES = Forest(4, max_leaves=6, n_rows=40)


def adaptive(features):
    return Stream(Learner(features, memory=Latest(size=3), step=AdaGrad(0.1), seed=0))


MODELS = {
    "fpogd": lambda: (FPOGD(n_components=8, max_strata=4, random_state=0), X, 200),
    "csr": lambda: (FPOGD(kernel="linear", max_strata=4, average="mean", random_state=0), SPARSE, 1100),
    "centroids": lambda: (FPOGD(kernel="linear", max_strata=4, representative="centroid"), SPARSE, 1100),
    "kept csr": lambda: (FPOGD(n_components=8, cluster_in="input", max_strata=4, random_state=0), SPARSE, 100),
    "seats": lambda: (learner(Strata(eps=1.0, max_strata=3, allocation="neyman", slots=7)), X, 300),
    "rsx": lambda: (learner(RSx(5, by="class")), X, 40),
    "reservoir": lambda: (learner(Reservoir(5)), X, 40),
    "history": lambda: (learner(WholeHistory(max_rows=200)), X, 40),
    "growing": lambda: (learner(Latest(size=3), Growing(64, block=16)), X, 300),
    "forest": lambda: (FPOGD(features=TREES, max_strata=4, random_state=0), X, 200),
    "forest, levels": lambda: (learner(Latest(size=3), replace(TREES, levels=(1, 2))), SPARSE, 200),
    "renewed": lambda: (adaptive(replace(TREES, growth="renewed")), X, 250),
    "boosted": lambda: (learner(Latest(size=3), replace(TREES, growth="boosted")), X, 120),
    "path": lambda: (Stream(StepPath(adaptive(TREES).model, [0.1, 0.5])), X, 200),
    "koil": lambda: (KOIL(budget=5, random_state=0), X, 100),
    "opera": lambda: (OPERA(max_rows=200), X, 50),
    "projectron": lambda: (ProjectronPP(max_supports=10), X, 50),
    "exact": lambda: (ExactAUC(), X, 300),
    "opauc": lambda: (OPAUC(), X, 50),
    "sketch": lambda: (OPAUC(rank=3, random_state=0), X, 50),
    "spam": lambda: (SPAM(), SPARSE, 50),
    "solam": lambda: (SOLAM(), SPARSE, 50),
    "sgd": lambda: (FourierSGD(n_components=8, random_state=0), X, 50),
    "basis": lambda: (SparseKernelAUC(max_support=5, random_state=0), X, 100),
    "grid": lambda: (FPOGD(n_components=8, eps=0.5, random_state=0).grid(etas=[0.1, 0.2]), X, 300),
    "fading": lambda: (FPOGD(n_components=8, max_strata=4, eps=1.0, half_life=20, random_state=0), X, 200),
    "fading by time": lambda: (FPOGD(n_components=8, max_strata=4, eps=1.0, half_life=(0, 0.1)), X, 600),
    "fading, kept": lambda: (FPOGD(n_components=8, max_strata=4, half_life=(0, 0.1), random_state=0), X, 300),
    "fading grid": lambda: (FPOGD(n_components=8, eps=0.5, half_life=20, random_state=0).grid(etas=[0.1]), X, 300),
    "race": lambda: (AUCClassifier(portfolio=SMALL, budget=Budget(2**24), random_state=0), X, 1100),
    "catching up": lambda: (AUCClassifier(portfolio=SMALL, budget=Budget(2**24), random_state=0), X, 170),
}  # fmt: skip
FEW = ("fpogd", "kept csr", "seats", "race")


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """A valid file of each model, by name: where it is, its header and arrays, rows, and how many were learned."""
    folder = tmp_path_factory.mktemp("hostile")

    @cache
    def of(name):
        model, rows, at = MODELS[name]()
        getattr(model, "partial_fit" if hasattr(model, "partial_fit") else "fit")(rows[:at], Y[:at])
        path = folder / name
        save(model, path)
        return path, *read(path), rows, at

    return of


def load_or_refuse(path, raw):
    """The model of these bytes; None if they are rejected, as they should be."""
    path.write_bytes(raw)
    try:
        return load(path)
    except ModelFileError:
        return None


def attack(valid, name, seed):
    """Load one hostile file; whatever loads must work, or say what is wrong with it, in bounds."""
    path, header, arrays, rows, at = valid(name)
    state_only = seed % 2 == 0
    raw = hostile(header, arrays, np.random.default_rng(seed), state_only=state_only)
    model = load_or_refuse(path.with_suffix(".hostile"), raw)
    if model is None or not state_only:
        return  # other parameters may need any amount of memory when they learn
    with np.errstate(all="ignore"):
        try:
            (model.score if isinstance(model, Stream) else model.decision_function)(rows[:5])
            if hasattr(model, "partial_fit"):
                model.partial_fit(rows[at : at + 140], Y[at : at + 140])
        except (ValueError, ArithmeticError, IndexError) as error:
            # Numbers that no stream gives may be too much for NumPy, which says so; compiled code must never see them.
            if str(error) == "index is out of bounds":
                raise


@pytest.mark.parametrize("name", FEW)
@examples(50)
@given(seed=st.integers(0, 2**32 - 1))
def test_files_that_are_cut_off_or_damaged(valid, name, seed):
    path = valid(name)[0]
    raw = path.read_bytes()
    assert load_or_refuse(path.with_suffix(".damaged"), damaged(raw, np.random.default_rng(seed))) is None


@pytest.mark.parametrize("name", MODELS)
@examples(30)
@given(seed=st.integers(0, 2**32 - 1))
def test_hostile_files_with_a_right_digest(valid, name, seed):
    attack(valid, name, seed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["part", "tuple", "float", "array", "number", "dtype", "model", "state", "values", "kinds"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@examples(200)
@given(model=JSON, state=JSON, rest=st.dictionaries(st.sampled_from(["names", "position", "pairloom"]), JSON))
def test_headers_of_anything(tmp_path_factory, model, state, rest):
    path = tmp_path_factory.getbasetemp() / "anything"
    assert load_or_refuse(path, sign({"schema": 1, "model": model, "state": state, **rest}, {})) is None


@examples(200)
@given(raw=st.binary(max_size=300), ours=st.booleans())
def test_bytes_of_anything(tmp_path_factory, raw, ours):
    path = tmp_path_factory.getbasetemp() / "anything"
    assert load_or_refuse(path, b"pairloom" + raw if ours else raw) is None


# Sizes: rejected before anything of that size is allocated.

HUGE = 2**40


def set_value(header, name, value):
    header["state"]["values"][name] = value


CLAIMS = {
    "columns": lambda header: set_value(header, "stream.n_features", HUGE),
    "rows": lambda header: set_value(header, "stream.t", 2**52),
    "components": lambda header: header["model"].update(n_components=HUGE),
    "strata": lambda header: header["model"].update(max_strata=HUGE),
    "digits": lambda header: header["model"].update(max_strata=10**4000),
    "horizon": lambda header: header["model"].update(n_components="auto", horizon=10**300),
    "widths": lambda header: header["model"].update(gamma=[1.0] * 500_000),
    "depth": lambda header: header["model"].update(gamma=eval("[" * 90 + "]" * 90)),
    "items": lambda header: header["state"]["kinds"].update({"stream.kept": "list 999999"}),
    "paths": lambda header: header["state"]["values"].update({f"x{i}": i for i in range(100_000)}),
    "names": lambda header: header.update(names=["x"] * 100_000),
    "classes": lambda header: header.update(
        model={"part": "Stream", "observers": [], "model": {"part": "OppositeClass", "n_classes": HUGE}}
    ),
    "portfolio": lambda header: header["model"].update(part="AUCClassifier"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_nothing_is_made_that_the_file_has_no_room_for(claim, valid):
    path, header, arrays, *_ = valid("fpogd")
    header = json.loads(json.dumps(header))
    CLAIMS[claim](header)
    raw = sign(header, arrays)
    load_or_refuse(path.with_suffix(".huge"), raw)  # imports and compiles
    tracemalloc.start()
    try:
        refused = load_or_refuse(path.with_suffix(".huge"), raw) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused
    assert peak < 30 * len(raw) + 2**20


@pytest.mark.parametrize("size", [HUGE, 10**4])
def test_a_race_of_too_many_candidates_is_refused(size, valid):
    path, header, arrays, *_ = valid("catching up")
    header = json.loads(json.dumps(header))
    kernels = [{"tuple": ["wide", 1.0 + i]} for i in range(min(size, 10**5))]
    header["model"]["portfolio"].update(kernels={"tuple": kernels}, n_landmarks=size)
    assert load_or_refuse(path.with_suffix(".huge"), sign(header, arrays)) is None


def test_arrays_that_are_said_to_be_larger_than_the_file(valid):
    path, header, arrays, *_ = valid("fpogd")
    for shape in ([HUGE], [HUGE, 0], [2**47] * 3, [-1], [True], [0.5]):
        for dtype in ("<f8", "|O", "<U0", "<U999999"):

            def claim(about, shape=shape, dtype=dtype):
                return {**about, next(iter(about)): {"dtype": dtype, "shape": shape, "offset": 16}}

            assert load_or_refuse(path.with_suffix(".huge"), sign(header, arrays, claim)) is None


def test_json_that_is_nested_as_deep_as_the_header_is_long(tmp_path):
    text = (b"[" * 10**6).ljust(64 * 15626 - 16)
    raw = b"pairloom" + len(text).to_bytes(8, "little") + text
    assert load_or_refuse(tmp_path / "deep", raw + bytes(32)) is None


OPEN = (".w", ".w_bar", ".squares", ".scores")
"""What may be any number: weights, and scores."""


def learns_on(valid, name, path, flip):
    """Whether a file with one number changed loads; then it scores, learns, and is saved, in finite numbers."""
    file, header, arrays, rows, at = valid(name)
    raw = with_flip(header, arrays, path, flip)
    model = None if raw is None else load_or_refuse(file.with_suffix(".flipped"), raw)
    if model is None:
        return False
    with np.errstate(all="ignore"):
        scores = [model.decision_function(rows[:5])]
        repr(model)
        model.partial_fit(rows[at : at + 50], Y[at : at + 50])
        scores.append(model.decision_function(rows[:5]))
    assert np.isfinite(scores).all() or path.endswith(OPEN), (path, flip)
    save(model, file.with_suffix(".again"))
    load(file.with_suffix(".again"))
    return True


RACES = ("race", "catching up", "fpogd")


@pytest.mark.parametrize("name", RACES)
def test_a_file_with_one_wrong_number_is_refused_or_learns_on(name, valid):
    """A few of them; all in `make soak`."""
    found = flipped(*valid(name)[1:3])
    loaded = [learns_on(valid, name, *one) for one in found[:: max(1, len(found) // 20)]]
    assert not all(loaded)


@pytest.mark.soak
@pytest.mark.parametrize("name", RACES)
def test_every_file_with_one_wrong_number_is_refused_or_learns_on(name, valid):
    for one in flipped(*valid(name)[1:3]):
        learns_on(valid, name, *one)


CROWDED = {
    "lists": lambda header: header["model"].update(gamma=[[]] * 400_000),
    "deep lists": lambda header: header["model"].update(gamma=[eval("[" * 20 + "]" * 20)] * 30_000),
    "parts": lambda header: header["model"].update(gamma=[{"part": "Square"}] * 80_000),
    "numbers": lambda header: header["model"].update(gamma=[0] * 1_100_000),
    "paths": lambda header: header.update(names=[""] * 1_100_000),
}


@pytest.mark.parametrize("kind", CROWDED)
def test_a_header_of_more_entries_than_any_model_is_not_even_parsed(kind, valid, monkeypatch):
    path, header, arrays, *_ = valid("fpogd")
    header = json.loads(json.dumps(header))
    CROWDED[kind](header)
    monkeypatch.setattr("pairloom.persist.format._parse", lambda text: pytest.fail("it was"))
    assert load_or_refuse(path.with_suffix(".crowded"), sign(header, arrays)) is None


def test_what_load_would_refuse_is_not_saved(valid, tmp_path, monkeypatch):
    model = load(valid("fpogd")[0])
    monkeypatch.setattr("pairloom.persist.format.MAX_BRANCHES", 20)
    with pytest.raises(ValueError, match="than a file can store"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_signs_in_text_are_not_counted():
    text = json.dumps({"a": "[{,\\" * 50_000, 'b"[': ["\\\\", '"[' * 50_000]}).encode()
    assert not has_too_many_entries(text)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(100))
def test_a_million_hostile_files(block, valid):
    """Run by `make soak`, where every compiled function checks its indices."""
    assert os.environ.get("NUMBA_BOUNDSCHECK") == "1", "run `make soak`: it sets NUMBA_BOUNDSCHECK=1"
    names = list(MODELS)
    for seed in range(10_000 * block, 10_000 * (block + 1)):
        attack(valid, names[seed // 2 % len(names)], seed)


@pytest.mark.soak
def test_files_that_a_fuzzer_finds(valid, tmp_path):
    """Guided by what the code does with them, where atheris is installed."""
    pytest.importorskip("atheris", reason="atheris is not installed: pip install atheris")
    import subprocess

    code = (
        "import sys, atheris\n"
        "with atheris.instrument_imports(include=['pairloom.persist']):\n"
        "    from pairloom import ModelFileError, load\n"
        "def one(raw):\n"
        f"    open({str(tmp_path / 'fuzzed')!r}, 'wb').write(raw)\n"
        "    try:\n"
        f"        load({str(tmp_path / 'fuzzed')!r})\n"
        "    except ModelFileError:\n"
        "        pass\n"
        "atheris.Setup(sys.argv, one)\n"
        "atheris.Fuzz()\n"
    )
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "seed").write_bytes(valid("fpogd")[0].read_bytes())
    subprocess.run([sys.executable, "-c", code, str(corpus), "-runs=1000000"], check=True)
