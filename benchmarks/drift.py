"""Streams that change: rows until a learner is back after a sudden change.

python benchmarks/drift.py [--sudden] [--seeds 0 1 2] [--without-forest] [--toy]

``--sudden``: four streams of 60,000 rows whose concept changes at row 20,000; every learner with and without what it
has against changes, beside river's adaptive random forest. How recovery is counted: ``changes/recovery.py``.
One core, processor time, one run.
"""

import argparse
import warnings

from rich.console import Console
from threadpoolctl import threadpool_limits

from changes.learners import FAST, FOREST
from changes.streams import GENERATORS, Length
from changes.sudden import measure, table_of_recovery


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sudden", action="store_true", help="sudden changes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the streams")
    parser.add_argument("--without-forest", action="store_true", help="leave out river's, which is slow")
    parser.add_argument("--toy", action="store_true", help="a small run")
    asked = parser.parse_args()
    console = Console(width=170)
    warnings.simplefilter("ignore")
    learners = FAST if asked.without_forest else (*FAST, FOREST)
    with threadpool_limits(1):
        names, seeds, length = list(GENERATORS), asked.seeds, Length()
        if asked.toy:
            names, seeds, length = names[1:2], seeds[:1], Length(400, 400, window=100, positives=5)
        console.print(table_of_recovery(measure(names, learners, seeds, length), length))


if __name__ == "__main__":
    main()
