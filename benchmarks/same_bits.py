"""Check whether two checkouts of the project give the same scores, to the last bit, on one machine.

python benchmarks/same_bits.py OLD_CHECKOUT NEW_CHECKOUT [--toy]

Every estimator in every published form, compositions of parts, grids and feature maps learn short synthetic streams:
dense and CSR, with weights, three classes, in several chunkings, shorter and longer than 1,024 rows. Each checkout runs
in a separate process, on one core, through the public interface only. The exit code is 1 if a case differs or fails.
Names that end in "(calibrated)" are log-odds or predictions, all others raw scores. Without checkouts, this one is
compared with itself.

In checkouts without ``compiled.SelfContained``, a process that compiles may differ in the last bits from one that loads
the same functions from the disk cache. A checkout in which anything was compiled is therefore run again, and the second
run counts.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from common.script import ONE_CORE, ROOT, make_parser, make_table


@dataclass(frozen=True)
class Found:
    """By name of the case: its digest and kind, or why it failed, and its arrays."""

    digests: dict[str, str]
    kinds: dict[str, str]
    failed: dict[str, str]
    arrays: dict[str, np.ndarray]


def collect(folder: Path, toy: bool) -> None:
    """Run all cases with the package that this process imports; print the digests, and save arrays to the folder."""
    from numba.core.event import install_recorder

    import pairloom
    from bits.cases import cases

    warnings.simplefilter("ignore")
    arrays: dict[str, np.ndarray] = {}
    kinds: dict[str, str] = {}
    failed: dict[str, str] = {}
    package = Path(pairloom.__file__).resolve().parent
    with install_recorder("numba:compile") as recorder:
        for case in track(cases(toy), description=str(package.parent.parent), console=Console(stderr=True)):
            try:
                made = case.run()
            except Exception as error:  # one checkout may reject what the other accepts
                failed[f"{case.name}: {case.setting}"] = f"{type(error).__name__}: {error}"
                continue
            arrays |= made
            kinds |= dict.fromkeys(made, case.kind)
    np.savez(folder / "arrays.npz", **{str(i): array for i, array in enumerate(arrays.values())})
    digests = {name: digest(array) for name, array in arrays.items()}
    about = {"package": str(package), "compiled": len(recorder.buffer)}
    print(json.dumps({**about, "digests": digests, "kinds": kinds, "failed": failed}))


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()


def found_in(checkout: Path, toy: bool, again: bool = True) -> Found:
    """Run ``collect`` in a process that imports the package of a checkout."""
    source = checkout.resolve() / "src"
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, **ONE_CORE, "PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--collect", folder, *["--toy"] * toy]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"{checkout}: the cases could not be run; the error is above")
        printed = json.loads(done.stdout.splitlines()[-1])
        if not Path(printed["package"]).is_relative_to(source):
            sys.exit(f"{checkout}: there is no package in {source}; Python took {printed['package']}")
        with np.load(Path(folder) / "arrays.npz") as saved:
            arrays = {name: saved[str(i)] for i, name in enumerate(printed["digests"])}
    if printed["compiled"] and again:
        return found_in(checkout, toy, again=False)
    return Found(printed["digests"], printed["kinds"], printed["failed"], arrays)


def largest(a: np.ndarray | None, b: np.ndarray | None) -> tuple[str, str]:
    """Return the largest absolute and relative difference as text."""
    if a is None or b is None:
        return "in one only", ""
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}", ""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return "not finite", ""
    gap, size = np.abs(a - b), np.maximum(np.abs(a), np.abs(b))
    relative = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)
    return f"{gap.max(initial=0):.2g}", f"{relative.max(initial=0):.2g}"


def counts(kinds: dict[str, str], differ: list[str]) -> Table:
    """Count the cases of each kind, and those that differ."""
    headings = ["raw scores", "differ", "calibrated", "differ"]
    made = make_table("Two checkouts, bit by bit", ["kind"], headings)
    for kind in dict.fromkeys(kinds.values()):
        cells = []
        for calibrated in (False, True):
            names = {name for name in kinds if kinds[name] == kind and name.endswith("(calibrated)") == calibrated}
            cells += [str(len(names)), str(len(names.intersection(differ)))]
        made.add_row(kind, *cells)
    return made


def compare(old: Found, new: Found) -> int:
    """Print the differences; return the number of cases that differ or failed."""
    console = Console(width=130)
    kinds = old.kinds | new.kinds
    differ = [name for name in kinds if old.digests.get(name) != new.digests.get(name)]
    failed = [(name, "old", why) for name, why in old.failed.items()]
    failed += [(name, "new", why) for name, why in new.failed.items()]
    table = Table("case", "largest difference", "relative", title="Differences")
    for name in differ:
        table.add_row(name, *largest(old.arrays.get(name), new.arrays.get(name)))
    for name, which, why in failed:
        table.add_row(name, f"{which} failed: {why}", "")
    console.print(counts(kinds, differ))
    if differ or failed:
        console.print(table)
        console.print(f"{len(kinds)} cases, {len(differ)} differ, {len(failed)} failed")
    else:
        console.print(f"{len(kinds)} cases, all the same")
    return len(differ) + len(failed)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("old", nargs="?", type=Path, default=ROOT, help="a checkout")
    parser.add_argument("new", nargs="?", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--collect", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.collect:
        collect(options.collect, options.toy)
    else:
        sys.exit(1 if compare(found_in(options.old, options.toy), found_in(options.new, options.toy)) else 0)


if __name__ == "__main__":
    main()
