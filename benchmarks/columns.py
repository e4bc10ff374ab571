"""Rows as they are: raw frames beside encodings by hand, what a row costs, and the fraud-like stream.

PAIRLOOM_DATA=folder python benchmarks/columns.py [--keel] [--rows] [--fraud [N]] [--drift D] [--toy]

Without a choice all three. ``--keel``: five sets of KEEL with text, 5 folds x 2 seeds, raw against one-hot by hand, as
they are and with a tenth of all values removed. ``--rows``: single rows and frames of 20 columns, beside scikit-learn
and river. ``--fraud``: N rows (100,000) of ``pairloom.data.fraud_like``, beside LightGBM and river. One core, one run.
"""

import argparse
import os
import sys
import warnings

from rich.console import Console
from threadpoolctl import threadpool_limits

from mixed.folds import sets_of_keel, table_of_folds, toy
from mixed.payments import Size, table_of_payments
from mixed.speed import table_of_frames, table_of_single_rows

TOY = Size(rows=600, block=100, every=300, slow_rows=600, positive=0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keel", action="store_true", help="raw frames beside encodings by hand")
    parser.add_argument("--rows", action="store_true", help="what rows and frames cost")
    parser.add_argument("--fraud", nargs="?", type=int, const=100_000, metavar="N", help="N rows of payments")
    parser.add_argument("--drift", type=float, default=0.0, help="of the payments")
    parser.add_argument("--toy", action="store_true", help="a small run on made-up rows")
    asked = parser.parse_args()
    every = not (asked.keel or asked.rows or asked.fraud)
    if (asked.keel or every) and not asked.toy and "PAIRLOOM_DATA" not in os.environ:
        sys.exit("set PAIRLOOM_DATA to the folder that holds keel/")
    console = Console(width=150)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if asked.rows or every:
            n = 200 if asked.toy else 10_000
            console.print(table_of_single_rows(n))
            console.print(table_of_frames(n))
        if asked.keel or every:
            sets, seeds, folds = (toy(), 1, 2) if asked.toy else (sets_of_keel(), 2, 5)
            console.print(table_of_folds(sets, seeds, folds))
        if asked.fraud or every:
            console.print(table_of_payments(TOY if asked.toy else Size(rows=asked.fraud or 100_000), asked.drift))


if __name__ == "__main__":
    main()
