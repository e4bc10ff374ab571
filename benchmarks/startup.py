"""Start-up times: import, the first compiled call after an installation, and the same call in later processes.

python benchmarks/startup.py [--toy]
"""

import os
import subprocess
import sys
import tempfile
import time

from rich.console import Console

from common.script import make_parser, make_table

IMPORT = "import pairloom"
ESTIMATOR = "from pairloom.systems import FPOGD"
CALL = (
    "import time; start = time.perf_counter(); import numpy as np; from pairloom.systems import FPOGD; "
    "ready = time.perf_counter(); X = np.eye(8); FPOGD(n_components=16).fit(X, [0, 1] * 4).predict(X); "
    "print(time.perf_counter() - ready)"
)


def seconds(code: str, cache: str) -> tuple[float, str]:
    """Return the wall-clock time of a new Python process, and what it printed."""
    start = time.perf_counter()
    env = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout.strip()


def main() -> None:
    toy = make_parser(__doc__).parse_args().toy
    rounds, call = (1, CALL.replace("FPOGD(n_components=16)", "SPAM()").replace("FPOGD", "SPAM")) if toy else (5, CALL)
    table = make_table("Start-up, in new processes (best of runs)", ["call"], ["seconds"])
    with tempfile.TemporaryDirectory() as cache:
        bare = min(seconds("pass", cache)[0] for _ in range(rounds))
        table.add_row("first compiled call, empty cache", f"{float(seconds(call, cache)[1]):.2f}")
        later = min(float(seconds(call, cache)[1]) for _ in range(rounds))
        table.add_row("the same call in a later process, from the cache", f"{later:.2f}")
        for code in (IMPORT, ESTIMATOR, "import sklearn.base")[: 1 if toy else None]:
            table.add_row(code, f"{min(seconds(code, cache)[0] for _ in range(rounds)) - bare:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
