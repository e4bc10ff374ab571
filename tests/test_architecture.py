"""docs/architecture.md is correct: the calls that it lists, and the rules that it states."""

import ast
import inspect
import re
import sys
from dataclasses import is_dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import pairloom
from pairloom import AUCClassifier
from pairloom.data import fraud_like
from pairloom.features import FeatureMap, Kernel
from pairloom.losses import Loss
from pairloom.memory import Memory
from pairloom.models.base import Many, Model
from pairloom.models.rule import Rule
from pairloom.pairs import Pairs
from pairloom.race import Head
from pairloom.steps import Penalty, Schedule
from pairloom.stream import Stream
from pairloom.systems import FPOGD, SPAM
from tests.conftest import make_stream

PACKAGE = Path(pairloom.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"


def written(before):
    """The functions of the numbered list that follows a sentence of the page: the first name of each item."""
    listed = PAGE.read_text().split(before)[1].split("\n\n")[1]
    return [item.split(".")[-1] for item in re.findall(r"^\d+\. `([\w.]+)`", listed, flags=re.M)]


def call_path(call, last, module):
    """The functions of the package on the way to the first call of ``last`` in ``module``, outermost first."""
    found = []

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and not found and code.co_qualname.endswith(last) and code.co_filename.endswith(module):
            while frame is not None:
                # Comprehensions have frames of their own before Python 3.12.
                if frame.f_code.co_filename.startswith(str(PACKAGE)) and frame.f_code.co_name != "<listcomp>":
                    found.insert(0, frame.f_code.co_name)
                frame = frame.f_back

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def test_the_page_follows_a_row_through_fpogd():
    X, y = make_stream("random", 1100, 3)
    model = FPOGD(n_components=64, random_state=0).fit(X, y)
    seen = call_path(lambda: model.learn_one(X[0], y[0]), "run_block", "engines/gram.py")
    assert seen == written("`FPOGD().learn_one(x, y)`")


def fitted_on_a_frame():
    """The default classifier after 500 rows of a data frame, and a function that learns 200 more."""
    columns, y = fraud_like(700, positive=0.2, seed=0)
    frame = pd.DataFrame(columns)
    AUCClassifier(random_state=0).fit(frame, y)  # so that nothing is compiled while calls are traced
    model = AUCClassifier(random_state=0).fit(frame[:500], y[:500])
    return model, lambda: model.partial_fit(frame[500:], y[500:])


@pytest.mark.parametrize(
    ("last", "module", "lists"),
    [
        ("Encoder.learn", "columns/encoder.py", []),
        ("Folding.run", "models/exact.py", ["passes these rows to the stream", "The linear and kernel candidates"]),
        ("learn_block", "engines/cells.py", ["passes these rows to the stream", "The forest takes"]),
        ("Boosting.learn", "models/boosting.py", ["passes these rows to the stream", "Boosting keeps the rows"]),
    ],
)
def test_the_page_follows_a_frame_through_the_default_classifier(last, module, lists):
    _, learn = fitted_on_a_frame()
    encoding = written("`AUCClassifier().partial_fit(frame, y)`")
    shared = encoding[: encoding.index("_batch")]  # the stream is called in the function that made the batch
    expected = shared + [name for before in lists for name in written(before)] if lists else encoding
    assert call_path(learn, last, module) == expected


def test_the_page_lists_the_candidates_of_the_default_classifier():
    model, _ = fitted_on_a_frame()
    entrants = model.stream_.model.entrants(model.stream_.learned)
    found = [(one.name, type(one.candidate.features).__name__, type(one.model).__name__) for one in entrants]
    listed = re.findall(r"^\| ([\w, ]+) \| `(\w+)` \| `(\w+)` \|$", PAGE.read_text(), flags=re.M)
    assert sorted(found) == sorted(listed)


def functions():
    """The functions of the package, each with its file and name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for made in ast.walk(ast.parse(path.read_text())):
            if isinstance(made, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(PACKAGE).as_posix()}: {made.name}", made


MANY_ARGUMENTS = {f"cli/commands.py: {name}" for name in ("fit", "predict", "evaluate", "serve")}
"""Commands: their arguments are the options of the command line."""


def test_functions_take_at_most_twelve_arguments():
    """Related arguments are passed as one: see ``engines/arguments.py`` for compiled loops."""
    many = set()
    for name, made in functions():
        given = made.args
        count = len(given.posonlyargs + given.args + given.kwonlyargs) + bool(given.vararg) + bool(given.kwarg)
        if count > 12 and made.name != "__init__":
            many.add(name)
    assert many == MANY_ARGUMENTS


def test_one_place_chooses_engines():
    """Only engines/ calls ``takes`` and the parts of an engine."""
    for name, made in functions():
        if not name.startswith("engines/"):
            calls = [node.func for node in ast.walk(made) if isinstance(node, ast.Call)]
            called = {getattr(call, "attr", getattr(call, "id", "")) for call in calls}
            assert not called & {"takes", "learn_block", "learn_cells"}, name


def test_the_root_has_few_modules():
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def models():
    found = set()
    todo = [Model]
    while todo:
        for kind in todo.pop().__subclasses__():
            found.add(kind)
            todo.append(kind)
    return [kind for kind in found - {Many} if kind.__module__.startswith("pairloom")]


def test_models_are_frozen_and_override_no_concrete_method():
    """Properties describe a model, and the methods of the two interfaces have defaults; all others are final."""
    for kind in models():
        assert is_dataclass(kind)
        assert kind.__dataclass_params__.frozen
        for base in set(kind.__mro__[1:]) - {Model, Many}:
            if not issubclass(base, Model):
                continue
            for name, member in vars(base).items():
                concrete = inspect.isfunction(member) and not name.startswith("__")
                abstract = getattr(member, "__isabstractmethod__", False)
                if concrete and not abstract:
                    assert name not in vars(kind), f"{kind.__name__}.{name} overrides {base.__name__}.{name}"


def kinds_of_parts():
    """The names of all classes of parts and models: higher layers check capabilities, not classes."""
    bases = [FeatureMap, Kernel, Head, Loss, Many, Memory, Model, Pairs, Penalty, Rule, Schedule]
    found, todo = {base.__name__ for base in bases}, bases
    while todo:
        below = todo.pop().__subclasses__()
        found |= {kind.__name__ for kind in below if kind.__module__.startswith("pairloom.")}
        todo.extend(below)
    return found


def class_tests(source, kinds, probing=True):
    """The lines in which a value is tested for one of these classes, compared by its type, or probed for a name."""
    found = []
    for at in ast.walk(ast.parse(source)):
        called = isinstance(at, ast.Call) and isinstance(at.func, ast.Name)
        tests = called and at.func.id in {"isinstance", "issubclass"}
        tests |= isinstance(at, ast.Compare) and "type(" in ast.unparse(at)
        tests |= isinstance(at, ast.MatchClass)
        names = {name for one in ast.walk(at) for name in (getattr(one, "id", None), getattr(one, "attr", None))}
        probes = called and (at.func.id == "hasattr" or (at.func.id == "getattr" and len(at.args) == 3))
        if (tests and names & kinds) or (probing and probes):
            found.append(f"{at.lineno}: {ast.unparse(at)}")
    return found


def test_layers_above_ask_parts_and_do_not_test_their_classes():
    """Except ``engines/base.py``, which validates what users pass."""
    kinds = kinds_of_parts()
    assert {"Forest", "Landmarks", "ExactPath", "Exact", "Strata", "Gaussian"} <= kinds
    bad = [
        "isinstance(m, ExactPath)", "isinstance(f, (int, Forest))", "isinstance(f, features.Forest | None)",
        "type(m) is Grid", "Grid == type(m)", "issubclass(type(h), Exact)", "match f:\n case Forest():\n  pass",
        "hasattr(m, 'quick')", "getattr(m, 'quick', None)",
    ]  # fmt: skip
    assert all(class_tests(line, kinds) for line in bad)
    assert not class_tests("isinstance(steps, tuple)\ntype(head).__name__\ngetattr(self, name)", kinds)
    for folder in ("engines", "models", "stream", "race"):
        for path in sorted({*(PACKAGE / folder).glob("*.py")} - {PACKAGE / "engines" / "base.py"}):
            assert class_tests(path.read_text(), kinds) == [], path.name


def test_files_are_read_without_testing_classes():
    kinds = kinds_of_parts() | {"Stream", "StreamEstimator", "FeatureTransformer"}
    for path in sorted((PACKAGE / "persist").glob("*.py")):
        assert class_tests(path.read_text(), kinds, probing=False) == [], path.name


def test_a_stream_is_final():
    assert Stream.__final__


def test_one_loop_for_dense_and_csr_rows_would_change_bits():
    """The same rows, dense and CSR: scores agree up to rounding, but not bit for bit."""
    X, y = make_stream("random", 500, 8)
    one, other = (SPAM(eta=0.05, random_state=0).fit(rows, y).stream_.score(X) for rows in (X, csr_array(X)))
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert (one != other).any()
