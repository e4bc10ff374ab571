"""Do the tests notice? Seeded one-line changes to engines, feature maps and memories, each met by the tests.

python benchmarks/mutations.py [CHECKOUT] [--count 50] [--seed 0] [--only FILE.json] [--toy]

A mutation turns < into <=, + into -, min into max, a number into another, and the like, in one place of a copy of the
package. Nothing is compiled (NUMBA_DISABLE_JIT), so that a mutation costs seconds. Tests that fail without any mutation
then (those of the compiler itself) are left out. The table names the test that caught each mutation; what survives is
either equivalent, or a gap. ``--only`` repeats the mutations that another run wrote to ``--out``, also in another
checkout: they are found by file, function and text.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

HERE = Path(__file__).resolve().parent.parent
FOLDERS = ("engines", "features", "memory")
TESTS = [
    "agreement", "sparse", "blocked", "memories", "memory_laws", "memory", "allocation", "features", "kernels",
    "nystroem", "whitened", "growing", "transformer", "learner", "grid", "weights", "multiclass", "compositions",
    "properties", "oam", "fpogd",
]  # fmt: skip
SWAPS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.And: "or", ast.Or: "and",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "flatnonzero": "argsort", "cumsum": "sort", "cos": "sin", "sin": "cos"}


@dataclass(frozen=True)
class Mutation:
    """``old`` becomes ``new`` at its ``place``-th appearance among all mutations of a function."""

    file: str
    function: str
    place: int
    old: str
    new: str


def mutations(path: Path, name: str) -> Iterator[tuple[Mutation, tuple[int, int, int, int]]]:
    """All mutations of a file, with the place in the text that each replaces."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    for top in ast.walk(ast.parse(text)):
        if not isinstance(top, ast.FunctionDef) or top.name.startswith("__"):
            continue
        seen: dict[tuple[str, str], int] = {}
        for spot in ast.walk(ast.Module(top.body, [])):
            made = replaced(spot, lines)
            if made is None or isinstance(spot, ast.FunctionDef):
                continue
            old, new = segment(spot, lines), made
            place = seen[old, new] = seen.get((old, new), -1) + 1
            where = (spot.lineno, spot.col_offset, spot.end_lineno or 0, spot.end_col_offset or 0)
            yield Mutation(name, top.name, place, old, new), where


def segment(spot: Any, lines: list[str]) -> str:
    """``ast.get_source_segment``, which splits the text into its lines each time."""
    taken = [line.encode() for line in lines[spot.lineno - 1 : spot.end_lineno]]
    taken[-1] = taken[-1][: spot.end_col_offset]
    taken[0] = taken[0][spot.col_offset :]
    return b"".join(taken).decode()


def replaced(spot: ast.AST, lines: list[str]) -> str | None:
    """A line of code with one thing changed; None if there is nothing to change."""

    def code(part: ast.AST) -> str:
        return f"({segment(part, lines)})"

    if isinstance(spot, ast.Compare) and len(spot.ops) == 1 and type(spot.ops[0]) in SWAPS:
        return f"{code(spot.left)} {SWAPS[type(spot.ops[0])]} {code(spot.comparators[0])}"
    if isinstance(spot, ast.BinOp) and type(spot.op) in SWAPS:
        return f"{code(spot.left)} {SWAPS[type(spot.op)]} {code(spot.right)}"
    if isinstance(spot, ast.BoolOp):
        return f" {SWAPS[type(spot.op)]} ".join(map(code, spot.values))
    if isinstance(spot, ast.Constant) and isinstance(spot.value, (int, float)) and not isinstance(spot.value, bool):
        return repr(spot.value + 1)
    if isinstance(spot, ast.Constant) and isinstance(spot.value, bool):
        return repr(not spot.value)
    if isinstance(spot, ast.Call) and isinstance(spot.func, ast.Name) and spot.func.id in NAMES:
        return f"{NAMES[spot.func.id]}({', '.join(segment(a, lines) for a in spot.args)})"
    return None


def everything(package: Path) -> dict[Mutation, tuple[int, int, int, int]]:
    """All mutations of the package that can be told apart."""
    found: dict[Mutation, tuple[int, int, int, int]] = {}
    for folder in FOLDERS:
        for path in sorted((package / folder).glob("*.py")):
            found.update(mutations(path, f"{folder}/{path.name}"))
    return found


def mutated(text: str, where: tuple[int, int, int, int], new: str) -> str:
    """The text with one place replaced."""
    lines = text.splitlines(keepends=True)
    row, column, end_row, end_column = where
    head, tail = lines[row - 1].encode()[:column].decode(), lines[end_row - 1].encode()[end_column:].decode()
    return "".join([*lines[: row - 1], head, f"({new})", tail, *lines[end_row:]])


def verdict(checkout: Path, source: Path, tests: list[str], more: list[str]) -> str:
    """The first test that fails with the package in ``source``; empty if none does."""
    env = {**os.environ, "PYTHONPATH": str(source), "NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *more, *tests]
    try:
        done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, timeout=900, check=False)
    except subprocess.TimeoutExpired:
        return "no end"
    failed = [line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return ";".join(failed) if done.returncode else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=HERE)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=Path, help="mutations that another run wrote")
    parser.add_argument("--out", type=Path, help="write the mutations and their verdicts, as JSON")
    parser.add_argument("--toy", action="store_true", help="no test is run")
    asked = parser.parse_args()
    checkout = asked.checkout.resolve()
    package = checkout / "src" / "pairloom"
    known = everything(package)
    picked = random.Random(asked.seed).sample(sorted(known, key=str), 3 if asked.toy else asked.count)
    if asked.only:
        picked = [Mutation(**item["mutation"]) for item in json.loads(asked.only.read_text())]
    tests = [f"tests/test_{name}.py" for name in TESTS if (checkout / f"tests/test_{name}.py").exists()]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        shutil.copytree(package, source / "pairloom", ignore=shutil.ignore_patterns("__pycache__"))
        sick = "" if asked.toy else verdict(checkout, source, tests, [])
        more = ["-x", *(f"--deselect={name}" for name in sick.split(";") if name)]
        results = []
        for one in track(picked, description="mutations", console=Console(stderr=True)):
            path = source / "pairloom" / one.file
            text = path.read_text() if one in known else ""
            if one in known:
                path.write_text(mutated(text, known[one], one.new))
            caught = "not there" if one not in known else "" if asked.toy else verdict(checkout, source, tests, more)
            if one in known:
                path.write_text(text)
            results.append((one, caught))
            if asked.out:
                asked.out.write_text(json.dumps([{"mutation": asdict(m), "caught": c} for m, c in results], indent=1))
    report(results, sick)


def report(results: list[tuple[Mutation, str]], sick: str) -> None:
    table = Table("where", "was", "became", "caught by", title="Mutations")
    for one, caught in results:
        table.add_row(f"{one.file}, {one.function}", one.old, one.new, caught.split(";")[0] or "NOBODY")
    console = Console(width=150)
    console.print(table)
    console.print(f"{sum(bool(c) for _, c in results)} of {len(results)} caught; left out: {sick or 'no test'}")


if __name__ == "__main__":
    main()
