"""Mixed columns: raw data frames against manual encoding, the cost of a row, and the fraud-like stream.

PAIRLOOM_DATA=folder python benchmarks/columns.py [--keel] [--rows] [--fraud [N]] [--drift D] [--toy]

Without options, all three. ``--keel``: five KEEL data sets with text, 5 folds x 2 seeds, raw against manual one-hot
encoding, unchanged and with a tenth of all values removed. ``--rows``: single rows and data frames of 20 columns,
compared with scikit-learn and river. ``--fraud``: N rows (100,000) of ``pairloom.data.fraud_like``, compared with
LightGBM and river. One core, one run.
"""

import warnings

from rich.console import Console
from threadpoolctl import threadpool_limits

from common.script import make_parser, require_data
from mixed.folds import sets_of_keel, table_of_folds, toy
from mixed.payments import Size, table_of_payments
from mixed.speed import table_of_frames, table_of_single_rows

TOY = Size(rows=600, block=100, every=300, slow_rows=600, positive=0.2)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--keel", action="store_true", help="raw data frames against manual encoding")
    parser.add_argument("--rows", action="store_true", help="the cost of rows and data frames")
    parser.add_argument("--fraud", nargs="?", type=int, const=100_000, metavar="N", help="N rows of payments")
    parser.add_argument("--drift", type=float, default=0.0, help="drift of the payments")
    options = parser.parse_args()
    every = not (options.keel or options.rows or options.fraud)
    if (options.keel or every) and not options.toy:
        require_data("keel/")
    console = Console(width=150)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if options.rows or every:
            n = 200 if options.toy else 10_000
            console.print(table_of_single_rows(n))
            console.print(table_of_frames(n))
        if options.keel or every:
            sets, seeds, folds = (toy(), 1, 2) if options.toy else (sets_of_keel(), 2, 5)
            console.print(table_of_folds(sets, seeds, folds))
        if options.fraud or every:
            console.print(table_of_payments(TOY if options.toy else Size(rows=options.fraud or 100_000), options.drift))


if __name__ == "__main__":
    main()
