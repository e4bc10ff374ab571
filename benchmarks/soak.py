"""Twenty million rows through learning, metrics and checkpoints: memory must stay flat, and so must the speed.

python benchmarks/soak.py [--rows 20000000] [--toy]

A table with one line for each tenth of the stream: resident memory, rows per second of CPU time (the clock's time tells
of other programs), AUC of the newest rows, the certificate of the AUC of all rows, bytes of the newest checkpoint. Exit
code 1 if, from the second tenth on, memory is 5 % or speed 10 % away from its median.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pairloom.metrics import StreamingAUC, WindowAUC
from pairloom.persist import Checkpointer
from pairloom.systems import FPOGD

CHUNK = 10_000
TENTHS = 10


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return 4096 * pages


def chunk(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with 5 % of a class that lies around the other, made anew from their number."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((CHUNK, 8), dtype=np.float32)
    y = (rng.random(CHUNK) < 0.05).astype(int)
    X[y == 1] *= 1.7
    return X, y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--toy", action="store_true", help="a small run that only shows that the script works")
    asked = parser.parse_args()
    each = max(1, (100_000 if asked.toy else asked.rows) // (TENTHS * CHUNK))
    model = FPOGD(n_components=32, max_strata=4, gamma="median", scale="standard", average="poly", random_state=0)
    window, whole = WindowAUC(10_000), StreamingAUC()
    table = Table("rows", title="A long stream")
    for heading in ("MB", "rows per CPU second", "AUC, newest 10,000", "AUC, all: from", "to", "checkpoint, MB"):
        table.add_column(heading, justify="right")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpointer(folder, every=max(CHUNK, each * CHUNK // 2), keep=2)
        for tenth in track(range(TENTHS), description="rows", console=Console(stderr=True)):
            began = time.process_time()
            for number in range(tenth * each, (tenth + 1) * each):
                X, y = chunk(number)
                if number:
                    scores = model.score_many(X)
                    window.update(y, scores)
                    whole.update(y, scores)
                model.partial_fit(X, y)
                kept.after(model, (number + 1) * CHUNK)
            speed = each * CHUNK / (time.process_time() - began)
            found.append((resident(), speed))
            newest = max(path.stat().st_size for path in Path(folder).iterdir())
            low, high = whole.bounds
            table.add_row(
                f"{(tenth + 1) * each * CHUNK:,}", f"{resident() / 1e6:.1f}", f"{speed:,.0f}", f"{window.value:.4f}",
                f"{low:.5f}", f"{high:.5f}", f"{newest / 1e6:.2f}",
            )  # fmt: skip
    Console(width=110).print(table)
    rest = np.array(found[1:])  # in the first tenth all is compiled
    apart = np.abs(rest / np.median(rest, axis=0) - 1.0).max(axis=0)
    Console(width=110).print(f"largest distance from the median: memory {apart[0]:.1%}, speed {apart[1]:.1%}")
    sys.exit(0 if asked.toy or (apart <= [0.05, 0.1]).all() else "memory is to stay within 5 %, speed within 10 %")


if __name__ == "__main__":
    main()
