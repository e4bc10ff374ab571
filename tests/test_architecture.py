"""The house as docs/architecture.md describes it: the way of a row, and the shape of the tree."""

import ast
import inspect
import re
import sys
from dataclasses import is_dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

import pairloom
from pairloom import AUCClassifier
from pairloom.features import FeatureMap, Kernel
from pairloom.losses import Loss
from pairloom.memory import Memory
from pairloom.models.base import Model
from pairloom.models.many import Many
from pairloom.models.rule import Rule
from pairloom.pairs import Pairs
from pairloom.race import Head, Portfolio
from pairloom.steps import Penalty, Schedule
from pairloom.stream import Stream
from pairloom.systems import FPOGD, SPAM
from tests.conftest import make_stream

PACKAGE = Path(pairloom.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"


def written(heading):
    """The functions of a numbered list of the page: the first name of each item."""
    after = PAGE.read_text().split(heading)[1]
    items = re.findall(r"^\d+\. `([\w.]+)`", after.split("\n\n`")[0].split("\n\n##")[0], flags=re.M)
    return [item.split(".")[-1] for item in items]


def way(call, last, module):
    """The functions of the package on the way to the first call of ``last`` in ``module``, outermost first."""
    found = []

    def watch(frame, event, _):
        if event == "call" and not found and frame.f_code.co_name == last and frame.f_code.co_filename.endswith(module):
            while frame is not None:
                if frame.f_code.co_filename.startswith(str(PACKAGE)):
                    found.insert(0, frame.f_code.co_name)
                frame = frame.f_back

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def test_the_way_of_a_row_through_fpogd_is_the_one_on_the_page():
    X, y = make_stream("random", 1100, 3)
    model = FPOGD(n_components=32, random_state=0).fit(X, y)
    seen = way(lambda: model.learn_one(X[0], y[0]), "learn_block", "engines/fused.py")
    assert seen == written("`FPOGD().learn_one(x, y)`")


def test_the_way_of_rows_through_the_race_is_the_one_on_the_page():
    X, y = make_stream("random", 700, 3)
    # One candidate, a grid: others take other ways at the end.
    portfolio = Portfolio(exact=None, forests=())
    model = AUCClassifier(portfolio=portfolio, random_state=0).fit(X[:500], y[:500])
    clone(model).fit(X, y)  # so that nothing is compiled while calls are watched
    seen = way(lambda: model.partial_fit(X[500:], y[500:]), "learn_tile", "engines/blocked.py")
    assert seen == written("`AUCClassifier().partial_fit(X, y)`")


def functions():
    """The functions of the package, each with its file and name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for made in ast.walk(ast.parse(path.read_text())):
            if isinstance(made, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(PACKAGE).as_posix()}: {made.name}", made


MANY_ARGUMENTS = {"cli/at_work.py: fit", "cli/at_work.py: predict"}
"""Commands: their arguments are the options of the command line."""


def test_functions_take_at_most_twelve_arguments():
    """What belongs together is passed together: see ``engines/arguments.py`` for compiled loops."""
    many = set()
    for name, made in functions():
        given = made.args
        count = len(given.posonlyargs + given.args + given.kwonlyargs) + bool(given.vararg) + bool(given.kwarg)
        if count > 12 and made.name != "__init__":
            many.add(name)
    assert many == MANY_ARGUMENTS


def test_one_place_chooses_engines():
    """``takes`` is asked, and a part of an engine is run, in engines/ only."""
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
    return [kind for kind in found if kind.__module__.startswith("pairloom")]


def test_models_are_frozen_and_override_nothing_concrete():
    for kind in models():
        assert is_dataclass(kind)
        assert kind.__dataclass_params__.frozen
        for base in kind.__mro__[1:]:
            if not (inspect.isclass(base) and issubclass(base, Model)):
                continue
            for name, member in vars(base).items():
                concrete = (inspect.isfunction(member) or isinstance(member, property)) and not name.startswith("__")
                abstract = getattr(member, "__isabstractmethod__", False)
                if concrete and not abstract:
                    assert name not in vars(kind), f"{kind.__name__}.{name} overrides {base.__name__}.{name}"


def kinds_of_parts():
    """The classes of parts and models, by name: what a layer above must ask, not tell apart."""
    bases = [FeatureMap, Kernel, Head, Loss, Many, Memory, Model, Pairs, Penalty, Rule, Schedule]
    found, todo = {base.__name__ for base in bases}, bases
    while todo:
        below = todo.pop().__subclasses__()
        found |= {kind.__name__ for kind in below if kind.__module__.startswith("pairloom.")}
        todo.extend(below)
    return found


def class_tests(source, kinds):
    """The lines in which a value is tested for one of these classes, compared by its type, or probed for a name."""
    found = []
    for at in ast.walk(ast.parse(source)):
        called = isinstance(at, ast.Call) and isinstance(at.func, ast.Name)
        tests = called and at.func.id in {"isinstance", "issubclass"}
        tests |= isinstance(at, ast.Compare) and "type(" in ast.unparse(at)
        tests |= isinstance(at, ast.MatchClass)
        names = {name for one in ast.walk(at) for name in (getattr(one, "id", None), getattr(one, "attr", None))}
        probes = called and (at.func.id == "hasattr" or (at.func.id == "getattr" and len(at.args) == 3))
        if (tests and names & kinds) or probes:
            found.append(f"{at.lineno}: {ast.unparse(at)}")
    return found


def test_a_race_asks_its_parts_and_does_not_test_their_classes():
    kinds = kinds_of_parts()
    assert {"Forest", "Landmarks", "ExactPath", "Exact", "Strata", "Gaussian"} <= kinds
    bad = [
        "isinstance(m, ExactPath)", "isinstance(f, (int, Forest))", "isinstance(f, features.Forest | None)",
        "type(m) is Grid", "Grid == type(m)", "issubclass(type(h), Exact)", "match f:\n case Forest():\n  pass",
        "hasattr(m, 'quick')", "getattr(m, 'quick', None)",
    ]  # fmt: skip
    assert all(class_tests(line, kinds) for line in bad)
    assert not class_tests("isinstance(steps, tuple)\ntype(head).__name__\ngetattr(self, name)", kinds)
    for path in sorted((PACKAGE / "race").glob("*.py")):
        assert class_tests(path.read_text(), kinds) == [], path.name


def test_a_stream_is_final():
    assert Stream.__final__


def test_one_loop_for_dense_and_csr_rows_would_change_bits():
    """The same rows, dense and CSR: scores agree to rounding, and not to the bit."""
    X, y = make_stream("random", 500, 8)
    one, other = (SPAM(eta=0.05, random_state=0).fit(rows, y).stream_.score(X) for rows in (X, csr_array(X)))
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert (one != other).any()
