"""Learn, evaluate and checkpoint twenty million rows: memory and speed must stay constant.

python benchmarks/soak.py [--rows 20000000] [--toy]

The table has one line for each tenth of the stream: resident memory, rows per second of CPU time (wall-clock time would
depend on other programs), AUC of the newest rows, bounds of the AUC of all rows, bytes of the newest checkpoint. The
exit code is 1 if, from the second tenth on, memory is more than 5 % or speed more than 10 % away from its median.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from common.script import make_parser, make_table
from pairloom.metrics import StreamingAUC, WindowAUC
from pairloom.persist import Checkpointer
from pairloom.systems import FPOGD

CHUNK = 10_000
TENTHS = 10


def resident() -> int:
    """Return the resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return 4096 * pages


def chunk(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a chunk, 5 % of which are of a class around the other."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((CHUNK, 8), dtype=np.float32)
    y = (rng.random(CHUNK) < 0.05).astype(int)
    X[y == 1] *= 1.7
    return X, y


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    options = parser.parse_args()
    each = max(1, (100_000 if options.toy else options.rows) // (TENTHS * CHUNK))
    model = FPOGD(n_components=32, max_strata=4, gamma="median", scale="standard", average="poly", random_state=0)
    window, whole = WindowAUC(10_000), StreamingAUC()
    headings = ["MB", "rows per CPU second", "AUC, newest 10,000", "AUC, all: from", "to", "checkpoint, MB"]
    table = make_table("A long stream", ["rows"], headings)
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
    rest = np.array(found[1:])  # everything is compiled in the first tenth
    apart = np.abs(rest / np.median(rest, axis=0) - 1.0).max(axis=0)
    Console(width=110).print(f"largest distance from the median: memory {apart[0]:.1%}, speed {apart[1]:.1%}")
    sys.exit(0 if options.toy or (apart <= [0.05, 0.1]).all() else "memory must stay within 5 %, speed within 10 %")


if __name__ == "__main__":
    main()
