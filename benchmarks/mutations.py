"""Mutation testing: seeded one-line changes to the package, each run against the tests that execute the line.

python benchmarks/mutations.py [CHECKOUT] [--count 60] [--seed 0] [--only FILE.json] [--out FILE.json] [--toy]

A mutation changes < to <=, + to -, min to max, a number to another, and so on, in one place of a copy of the package.
Tests are selected by coverage: the suite runs once, and each mutation is tested with the tests that reach its line,
the fastest first, until one fails. Lines of compiled functions are not traced; instead, the lines that call them count,
and tests that name them. Tests that fail without any mutation are left out. ``--only`` repeats the mutations that
another run wrote to ``--out``, also in another checkout: they are found by file, function and text. ``--folder`` keeps
the coverage of a checkout for the next run. ``--toy`` runs no tests.
"""

import ast
import json
import os
import random
import re
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

from common.script import ROOT, make_parser

FOLDERS = ("engines", "features", "memory", "race", "persist", "columns", "stream")
TEST_SECONDS = 120
"""Seconds after which a test fails."""
MUTATION_SECONDS = 300
"""Seconds after which a mutation counts as not caught."""
FIRST_TESTS = 400
"""Tests that are run first."""
SWAPS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.And: "or", ast.Or: "and",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "flatnonzero": "argsort", "cumsum": "sort", "cos": "sin", "sin": "cos"}
Where = tuple[int, int, int, int]
"""First line and column, last line and column."""


@dataclass(frozen=True)
class Mutation:
    """``old`` becomes ``new`` at its ``place``-th occurrence among all mutations of a function."""

    file: str
    function: str
    place: int
    old: str
    new: str


@dataclass(frozen=True)
class Spot:
    """Where a mutation is, and whether the function around it is compiled."""

    where: Where
    compiled: bool


def mutations(path: Path, name: str) -> Iterator[tuple[Mutation, Spot]]:
    """Yield all mutations of a file."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    for top in ast.walk(ast.parse(text)):
        if not isinstance(top, ast.FunctionDef) or top.name.startswith("__"):
            continue
        seen: dict[tuple[str, str], int] = {}
        for node in ast.walk(ast.Module(top.body, [])):
            new = replaced(node, lines)
            if new is None or not isinstance(node, ast.expr):
                continue
            old = segment(node, lines)
            place = seen[old, new] = seen.get((old, new), -1) + 1
            where = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            yield Mutation(name, top.name, place, old, new), Spot(where, is_compiled(top))


def segment(node: Any, lines: list[str]) -> str:
    """Return the source of a node, like ``ast.get_source_segment``, which splits the text into lines each time."""
    taken = [line.encode() for line in lines[node.lineno - 1 : node.end_lineno]]
    taken[-1] = taken[-1][: node.end_col_offset]
    taken[0] = taken[0][node.col_offset :]
    return b"".join(taken).decode()


def replaced(node: ast.AST, lines: list[str]) -> str | None:
    """Return the code of a node with one change; None if there is nothing to change."""

    def code(part: ast.AST) -> str:
        return f"({segment(part, lines)})"

    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        return f"{code(node.left)} {SWAPS[type(node.ops[0])]} {code(node.comparators[0])}"
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        return f"{code(node.left)} {SWAPS[type(node.op)]} {code(node.right)}"
    if isinstance(node, ast.BoolOp):
        return f" {SWAPS[type(node.op)]} ".join(map(code, node.values))
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return repr(node.value + 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return repr(not node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        return f"{NAMES[node.func.id]}({', '.join(segment(a, lines) for a in node.args)})"
    return None


def everything(package: Path) -> dict[Mutation, Spot]:
    """Return all mutations of the package."""
    found: dict[Mutation, Spot] = {}
    for folder in FOLDERS:
        for path in sorted((package / folder).glob("*.py")):
            found.update(mutations(path, f"{folder}/{path.name}"))
    return found


def mutated(text: str, where: Where, new: str) -> str:
    """Return the text with one place replaced."""
    lines = text.splitlines(keepends=True)
    row, column, end_row, end_column = where
    head, tail = lines[row - 1].encode()[:column].decode(), lines[end_row - 1].encode()[end_column:].decode()
    return "".join([*lines[: row - 1], head, f"({new})", tail, *lines[end_row:]])


class Suite:
    """The tests of a checkout, run against a copy of its package."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.checkout, self.folder = checkout, folder
        self.source, self.machine_code = folder / "src", folder / "machine-code"
        shutil.rmtree(self.source, ignore_errors=True)
        shutil.copytree(
            checkout / "src" / "pairloom", self.source / "pairloom", ignore=shutil.ignore_patterns("__pycache__")
        )
        # An edit must not discard the machine code of all other files: Numba checks each file by itself.
        path = self.source / "pairloom" / "base" / "machine_code.py"
        found = "\nFOLDER ="
        path.write_text(path.read_text().replace(found, f"\nsource_hash = lambda: 'mutations'{found}"))
        self.calls = Calls(self.source / "pairloom")
        self.reached: dict[str, dict[str, list[str]]] = {}
        self.seconds: dict[str, float] = {}
        self.sick: set[str] = set()

    def pytest(self, *more: str, seconds: float | None = None) -> tuple[int, str]:
        """Run pytest; return its exit code and output. Raises TimeoutExpired."""
        env = {**os.environ, "PYTHONPATH": str(self.source), "OPENBLAS_NUM_THREADS": "1"}
        env |= {"NUMBA_CACHE_DIR": str(self.machine_code), "COVERAGE_FILE": str(self.folder / "coverage")}
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        command += [f"--timeout={TEST_SECONDS}", *more]
        done = subprocess.run(
            command, cwd=self.checkout, env=env, capture_output=True, text=True, timeout=seconds, check=False
        )
        return done.returncode, done.stdout

    def trace(self) -> None:
        """Find which tests reach which lines, how long each takes, and which fail without mutations."""
        kept = self.folder / "coverage.json"
        if not kept.exists():
            config = self.folder / "coveragerc"
            config.write_text(f"[run]\nsource = {self.source / 'pairloom'}\n")
            more = [
                f"--cov={self.source / 'pairloom'}",
                f"--cov-config={config}",
                "--cov-context=test",
                "--cov-report=",
            ]
            _, output = self.pytest("tests", "-n", "2", "--durations=0", "--durations-min=0", "-vv", *more)
            found = {"reached": self._lines(), "seconds": _seconds(output), "sick": sorted(_failed(output))}
            kept.write_text(json.dumps(found))
        found = json.loads(kept.read_text())
        self.reached, self.seconds, self.sick = found["reached"], found["seconds"], set(found["sick"])

    def _lines(self) -> dict[str, dict[str, list[str]]]:
        from coverage import CoverageData

        data = CoverageData(str(self.folder / "coverage"))
        data.read()
        package = self.source / "pairloom"
        return {
            str(Path(file).relative_to(package)): {
                str(line): sorted({context.partition("|")[0] for context in contexts} - {""})
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }

    def chosen(self, one: Mutation, spot: Spot) -> list[str]:
        """Return the tests that reach a mutation, the fastest first."""
        places = [(one.file, line) for line in range(spot.where[0], spot.where[2] + 1)]
        named: set[str] = set()
        if spot.compiled:
            places, named = self.calls.places(one.function), self._mention(self.calls.around(one.function))
        tests = {test for file, line in places for test in self.reached.get(file, {}).get(str(line), [])} | named
        return sorted(tests - self.sick, key=lambda test: (self.seconds.get(test, 0.0), test))

    def _mention(self, names: set[str]) -> set[str]:
        """Return the tests of files that mention one of these functions."""
        words = re.compile(rf"\b({'|'.join(names)})\b")
        files = {path.name for path in (self.checkout / "tests").glob("test_*.py") if words.search(path.read_text())}
        return {test for test in self.seconds if Path(test.partition("::")[0]).name in files}

    def verdict(self, one: Mutation, spot: Spot) -> str:
        """Return the first test that fails with a mutation; empty if none does."""
        tests = self.chosen(one, spot)
        if not tests:
            return ""
        path = self.source / "pairloom" / one.file
        text, time = path.read_text(), path.stat().st_mtime_ns
        path.write_text(mutated(text, spot.where, one.new))
        try:
            self._discard(one, spot)
            return self._first_failure(tests)
        finally:
            path.write_text(text)
            os.utime(path, ns=(time, time))
            self._discard(one, spot)

    def _first_failure(self, tests: list[str]) -> str:
        """Return the first test that fails: the fastest ones are run first, then the rest in the order of the suite."""
        names = self.folder / "tests.txt"
        for part in (tests[:FIRST_TESTS], tests[FIRST_TESTS:]):
            if not part:
                continue
            names.write_text("\n".join(part))
            try:
                code, output = self.pytest("-x", f"@{names}", seconds=MUTATION_SECONDS)
            except subprocess.TimeoutExpired:
                return ""
            if code:
                return (sorted(_failed(output)) or ["the package does not import"])[0]
        return ""

    def _discard(self, one: Mutation, spot: Spot) -> None:
        """Remove the machine code of all callers of a compiled function, which is inlined there."""
        around = self.calls.around(one.function) if spot.compiled else set()
        for index in self.machine_code.rglob("*.nbi"):
            if index.name.partition("-")[0].rpartition(".")[2] in around:
                index.unlink()


class Calls:
    """The call graph by name: compiled functions are not traced, but their callers are."""

    def __init__(self, package: Path) -> None:
        self.compiled: dict[str, set[str]] = {}
        self.lines: dict[str, set[tuple[str, int]]] = {}
        for path in sorted(package.rglob("*.py")):
            file = str(path.relative_to(package))
            for top in ast.walk(ast.parse(path.read_text())):
                if not isinstance(top, ast.FunctionDef):
                    continue
                used = [(getattr(n, "id", None) or getattr(n, "attr", ""), n) for n in ast.walk(top)]
                if is_compiled(top):
                    self.compiled.setdefault(top.name, set()).update(name for name, _ in used)
                    continue
                for name, node in used:
                    if name:
                        self.lines.setdefault(name, set()).add((file, node.lineno))  # type: ignore[attr-defined]

    def around(self, name: str) -> set[str]:
        """Return a compiled function and all compiled functions that call it, directly or not."""
        found = {name}
        while more := {one for one, used in self.compiled.items() if used & found} - found:
            found |= more
        return found

    def places(self, name: str) -> list[tuple[str, int]]:
        """Return the places where Python calls one of them."""
        return sorted(place for one in self.around(name) for place in self.lines.get(one, ()))


def is_compiled(function: ast.FunctionDef) -> bool:
    """Return whether Numba compiles it."""
    return any(isinstance(one, ast.Name) and one.id == "compiled" for one in function.decorator_list)


def _failed(output: str) -> set[str]:
    """Return the failed tests of the short summary."""
    found = (re.match(r"(?:FAILED|ERROR) (.+?)(?: - .*)?$", line) for line in output.splitlines())
    return {one[1] for one in found if one}


def _seconds(output: str) -> dict[str, float]:
    """Return the seconds of each test, from --durations."""
    found = (re.match(r"([\d.]+)s call +(.+)$", line) for line in output.splitlines())
    return {one[2]: float(one[1]) for one in found if one}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=Path, help="mutations that another run wrote")
    parser.add_argument(
        "--out",
        type=Path,
        help="write the mutations and their verdicts as JSON; an interrupted run continues from it",
    )
    parser.add_argument("--folder", type=Path, help="keeps the coverage of a checkout for the next run")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    known = everything(checkout / "src" / "pairloom")
    picked = random.Random(options.seed).sample(sorted(known, key=str), 3 if options.toy else options.count)
    if options.only:
        picked = [Mutation(**item["mutation"]) for item in json.loads(options.only.read_text())]
    known_verdicts = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    done = {Mutation(**item["mutation"]): item["caught"] for item in known_verdicts}
    results: list[tuple[Mutation, str]] = []
    with tempfile.TemporaryDirectory() as temporary:
        suite = Suite(checkout, (options.folder or Path(temporary)).resolve())
        if not options.toy:
            suite.trace()
        for one in track(picked, description="mutations", console=Console(stderr=True)):
            if one in done:
                results.append((one, done[one]))
                continue
            gone = one not in known
            results.append((one, "not there" if gone else "" if options.toy else suite.verdict(one, known[one])))
            if options.out:
                options.out.write_text(json.dumps([{"mutation": asdict(m), "caught": c} for m, c in results], indent=1))
    report(results)


def report(results: list[tuple[Mutation, str]]) -> None:
    table = Table("where", "was", "became", "caught by", title="Mutations")
    for one, caught in results:
        table.add_row(f"{one.file}, {one.function}", one.old, one.new, caught or "NOT CAUGHT")
    console = Console(width=150)
    console.print(table)
    console.print(f"{sum(bool(caught) for _, caught in results)} of {len(results)} caught")


if __name__ == "__main__":
    main()
