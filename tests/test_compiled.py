"""The cache of machine code, in real processes."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pairloom
from pairloom.base import machine_code as places
from pairloom.base.machine_code import NEVER_COMPILED

CALL = "import numpy as np; from pairloom.base.compiled import dot; print(dot(np.arange(3.0), np.arange(3.0)))"


def run(code, package, cache=None):
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(package.parent)}
    if cache:
        env["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def copy_package(folder):
    source = Path(pairloom.__file__).parent
    return Path(shutil.copytree(source, folder / "pairloom", ignore=shutil.ignore_patterns("__pycache__")))


def machine_code(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.nbc"))


def test_a_second_process_compiles_nothing(tmp_path):
    package, cache = copy_package(tmp_path / "site"), tmp_path / "cache"
    assert run(CALL, package, cache) == "5.0"
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")}
    assert files
    hits = run(CALL + "; print(sum(dot.stats.cache_hits.values()))", package, cache)
    assert hits.splitlines() == ["5.0", "1"]
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")} == files


CALLER = """
import numpy as np
from pairloom.base.compiled import compiled

@compiled
def grow(inverse, e, n, distance):
    e[n] = -1.0
    for a in range(n + 1):
        for b in range(n + 1):
            inverse[a, b] += e[a] * e[b] / distance

@compiled
def call(inverse, e, n, distance):
    grow(inverse, e, n, distance)

def bits(function):
    inverse, e = np.zeros((60, 60)), np.random.default_rng(0).normal(size=60)
    function(inverse, e, 59, 0.7)
    return inverse.tobytes().hex()
"""


def test_the_process_that_compiles_and_later_ones_give_the_same_bits(tmp_path):
    """Without inlining, grow would be optimised again for its caller, which changes its last bits."""
    package, cache = copy_package(tmp_path / "site"), tmp_path / "cache"
    (package.parent / "caller.py").write_text(CALLER)
    call, count = "from caller import *; print(bits(call))", "; print(*call.stats.cache_hits.values())"
    first = run(call + count, package, cache)
    assert run(call + count, package, cache).split() == [first, "1"]
    # nor does it matter what else a process has loaded
    alone = "from caller import *; bits(grow); print(*grow.stats.cache_hits.values()); "
    assert run(alone + call, package, cache).split() == ["1", first]


def test_an_edit_in_another_file_never_runs_stale_code(tmp_path):
    """loss_slope is compiled into the engine's loop; Numba itself watches only the engine's file."""
    package = copy_package(tmp_path)
    code = (
        "import numpy as np; from pairloom.engines.arguments import Buffer, Objective, Partners, Row; "
        "from pairloom.engines.fused_steps import losses_of; "
        "none, one, w = np.zeros(1, np.int64), np.ones(1), np.ones(2); "
        "partners, buffer = Partners(none, one, np.zeros(1)), Buffer(np.zeros((1, 2)), np.zeros(1), none, one); "
        "losses_of(w, 0.5, Row(w, 1.0, 1.0, 1.0), Objective(0, True, 0, one, True, False), buffer, partners); "
        "print(partners.q[0])"
    )
    first = run(code, package)
    (folder,) = (package / "__pycache__").glob("pairloom-*")
    os.utime(folder, (0, 0))
    losses = package / "losses.py"
    losses.write_text(losses.read_text().replace("return -2.0 * (1.0 - m)", "return -4.0 * (1.0 - m)"))
    second = run(code, package)
    assert float(second) == 2 * float(first) != 0
    (left,) = (package / "__pycache__").glob("pairloom-*")  # the old folder is gone
    assert left != folder


@pytest.mark.parametrize(
    ("file", "counts"),
    [("cli/commands.py", False), ("data/readers/new.py", False), ("data/new.py", False),
     ("race/race.py", False), ("losses.py", True), ("base/extras.py", True), ("models/data/new.py", True)],
)  # fmt: skip
def test_an_edit_counts_unless_nothing_is_compiled_there(tmp_path, monkeypatch, file, counts):
    package = copy_package(tmp_path)
    monkeypatch.setattr(places, "PACKAGE", package)
    before = places.source_hash()
    (package / file).parent.mkdir(exist_ok=True)
    with (package / file).open("a") as source:
        source.write("# edited\n")
    assert (places.source_hash() != before) == counts


@pytest.mark.parametrize("folder", sorted(NEVER_COMPILED))
def test_where_an_edit_does_not_count_nothing_is_compiled(folder):
    files = sorted((places.PACKAGE / folder).rglob("*.py"))
    assert files
    for path in files:
        source = path.read_text()
        assert not any(word in source for word in ("@compiled", "base.compiled", "njit", "numba.jit")), path


def test_compiled_functions_use_nothing_from_where_an_edit_does_not_count():
    n_functions = 0
    for file in sorted(places.PACKAGE.rglob("*.py")):
        source = file.read_text()
        if "@compiled" not in source:
            continue
        module = importlib.import_module(".".join(file.relative_to(places.PACKAGE.parent).with_suffix("").parts))
        functions = [one for one in vars(module).values() if hasattr(one, "py_func")]
        n_functions += len(functions)
        used = {name for one in functions for name in one.py_func.__code__.co_names}
        for folder, names in re.findall(r"^from pairloom\.(\w+)[\w.]* import ([^(\n]+|\([^)]*\))", source, re.M):
            assert folder not in NEVER_COMPILED or not used & set(re.findall(r"\w+", names)), file
    assert n_functions > 100


def test_numbas_own_setting_is_left_alone():
    import numba

    assert not str(numba.config.CACHE_DIR).count("pairloom-")


def test_importing_pairloom_does_not_import_scikit_learn():
    code = "import sys, pairloom; print({'sklearn', 'matplotlib', 'typer'} & set(sys.modules))"
    assert run(code, Path(pairloom.__file__).parent) == "set()"


def test_importing_one_estimator_does_not_import_all():
    code = "import sys; from pairloom import AUCClassifier; names = set(sys.modules); "
    code += "print({'sklearn.metrics', 'pairloom.persist', 'pairloom.systems', 'matplotlib', 'rich'} & names)"
    assert run(code, Path(pairloom.__file__).parent) == "set()"


def test_without_a_writable_folder_it_compiles_in_memory(tmp_path):
    package = copy_package(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    assert run(CALL, package, cache=tmp_path / "file") == "5.0"
