"""Streams that change, suddenly and slowly, and streams that do not.

PAIRLOOM_DATA=folder python benchmarks/drift.py [--sudden] [--slow] [--covtype] [--iid] [--columns] [--seeds 21 22 23]
    [--without-forest] [--figure] [--power] [--jobs N] [--toy]

Without options, the first five. ``--sudden``: streams of 60,000 rows whose concept changes at row 20,000; the number of
rows until each learner has recovered, with and without change detection, compared with river's adaptive random forest
(``changes/recovery.py`` has the definition). ``--slow``: 200,000 rows of ``pairloom.data.fraud_like`` with drift,
compared with LightGBM and river. ``--covtype``: covtype in file order. ``--iid``: the cost of ``drift="auto"`` without
change. ``--columns``: changes of columns, found without labels. ``--power``: rows and positives until the alarm, and
false alarms, on simulated scores, compared with river's detectors. ``--figure`` draws docs/drift.png from the results
of sudden and slow. Do not use the default seeds for any choice. One core, CPU time, one run.
"""

import argparse
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from changes import columns, power, slow, sudden
from changes.figure import draw
from changes.learners import FAST, FOREST
from changes.order import Walk, covtype, table_of_order
from changes.still import table_of_still
from changes.streams import GENERATORS, Length
from common.script import DOCS, make_parser, require_data
from contest.datasets import DATASETS, TOY
from mixed.payments import Size
from pairloom.data import imbalanced


def arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--sudden", action="store_true", help="sudden changes")
    parser.add_argument("--slow", action="store_true", help="a slow change: payments")
    parser.add_argument("--covtype", action="store_true", help="covtype in file order")
    parser.add_argument("--iid", action="store_true", help="data sets in random order")
    parser.add_argument("--columns", action="store_true", help="changes of columns, without labels")
    parser.add_argument("--power", action="store_true", help="delays and false alarms of detectors")
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22, 23], help="of the streams")
    parser.add_argument("--without-forest", action="store_true", help="without river's forest, which is slow")
    parser.add_argument("--figure", action="store_true", help="draw docs/drift.png; measures --sudden and --slow")
    parser.add_argument("--jobs", type=int, default=1, help="measurements at a time")
    options = parser.parse_args()
    if options.figure:
        options.sudden = options.slow = True
    chosen = (options.sudden, options.slow, options.covtype, options.iid, options.columns, options.power)
    if not any(chosen):
        options.sudden = options.slow = options.covtype = options.iid = options.columns = True
        options.power = options.toy
        options.figure |= options.toy
    if (options.covtype or options.iid or options.columns) and not options.toy:
        require_data("covtype.binary.xz and tables/bank.csv.xz")
    return options


def main() -> None:
    options = arguments()
    toy, seeds, console = options.toy, [0] if options.toy else options.seeds, Console(width=170)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if options.sudden:
            learners = FAST if options.without_forest else (*FAST, FOREST)
            length = Length(300, 300, window=100, positives=5) if toy else Length()
            names = ["reversed, 50 % positive"] if toy else list(GENERATORS)
            changes = sudden.measure(names, learners, seeds, length, options.jobs)
            console.print(sudden.table_of_recovery(changes, length))
        if options.slow:
            size = Size(rows=400, block=100, every=100, positive=0.2) if toy else Size(rows=200_000)
            payments = slow.measure(seeds, size, not options.without_forest, options.jobs)
            console.print(slow.table_of_payments(payments, seeds, size))
        if options.figure:
            with TemporaryDirectory() as folder:
                draw(names[0], changes, length, payments, size, (Path(folder) if toy else DOCS) / "drift.png")
        if options.covtype:
            X, y = imbalanced(600, 5) if toy else covtype()
            walk = Walk(block=100, window=100, together=2) if toy else Walk()
            console.print(table_of_order(X, np.maximum(y, 0), walk))
        if options.iid:
            console.print(table_of_still(TOY if toy else DATASETS, seeds[:2]))
        if options.columns:
            console.print(*columns.tables(toy), sep="\n")
        if options.power:
            for table in power.tables(power.TOY if toy else power.Size(), options.jobs):
                console.print(table)


if __name__ == "__main__":
    main()
