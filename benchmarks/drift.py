"""Streams that change, suddenly and slowly, and streams that do not.

PAIRLOOM_DATA=folder python benchmarks/drift.py [--sudden] [--slow] [--covtype] [--iid] [--seeds 21 22 23]
    [--without-forest] [--figure] [--jobs N] [--toy]

Without a choice all four. ``--sudden``: four streams of 60,000 rows whose concept changes at row 20,000; rows until
each learner is back, with and without what it has against changes, beside river's adaptive random forest (how they are
counted: ``changes/recovery.py``). ``--slow``: 200,000 rows of ``pairloom.data.fraud_like`` with drift, beside LightGBM
and river. ``--covtype``: covtype in the order of its file. ``--iid``: what ``drift="auto"`` costs where nothing
changes. ``--figure`` draws docs/drift.png from what was measured, sudden and slow. Nothing is to be chosen by the
default seeds. One core, processor time, one run.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from changes import slow, sudden
from changes.figure import draw
from changes.learners import FAST, FOREST
from changes.order import Walk, covtype, table_of_order
from changes.still import table_of_still
from changes.streams import GENERATORS, Length
from contest.datasets import DATASETS, TOY
from mixed.payments import Size
from pairloom.data import imbalanced

DOCS = Path(__file__).parent.parent / "docs"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sudden", action="store_true", help="sudden changes")
    parser.add_argument("--slow", action="store_true", help="a slow change: payments")
    parser.add_argument("--covtype", action="store_true", help="covtype in its own order")
    parser.add_argument("--iid", action="store_true", help="sets in random order")
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22, 23], help="of the streams")
    parser.add_argument("--without-forest", action="store_true", help="leave out river's, which is slow")
    parser.add_argument("--figure", action="store_true", help="draw docs/drift.png; measures --sudden and --slow")
    parser.add_argument("--jobs", type=int, default=1, help="measurements at a time")
    parser.add_argument("--toy", action="store_true", help="a small run on made-up rows")
    asked = parser.parse_args()
    if asked.figure:
        asked.sudden = asked.slow = True
    if not (asked.sudden or asked.slow or asked.covtype or asked.iid):
        asked.sudden = asked.slow = asked.covtype = asked.iid = True
        asked.figure |= asked.toy
    if (asked.covtype or asked.iid) and not asked.toy and "PAIRLOOM_DATA" not in os.environ:
        sys.exit("set PAIRLOOM_DATA to the folder with covtype.binary.xz")
    return asked


def main() -> None:
    asked = arguments()
    toy, seeds, console = asked.toy, [0] if asked.toy else asked.seeds, Console(width=170)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if asked.sudden:
            learners = FAST if asked.without_forest else (*FAST, FOREST)
            length = Length(300, 300, window=100, positives=5) if toy else Length()
            names = ["reversed, 50 % positive"] if toy else list(GENERATORS)
            changes = sudden.measure(names, learners, seeds, length, asked.jobs)
            console.print(sudden.table_of_recovery(changes, length))
        if asked.slow:
            size = Size(rows=400, block=100, every=100, positive=0.2) if toy else Size(rows=200_000)
            payments = slow.measure(seeds, size, not asked.without_forest, asked.jobs)
            console.print(slow.table_of_payments(payments, seeds, size))
        if asked.figure:
            with TemporaryDirectory() as folder:
                draw(names[0], changes, length, payments, size, (Path(folder) if toy else DOCS) / "drift.png")
        if asked.covtype:
            X, y = imbalanced(600, 5) if toy else covtype()
            walk = Walk(block=100, window=100, together=2) if toy else Walk()
            console.print(table_of_order(X, np.maximum(y, 0), walk))
        if asked.iid:
            console.print(table_of_still(TOY if toy else DATASETS, seeds[:2]))


if __name__ == "__main__":
    main()
