"""Reasons for alerts: how often the first one is right, and what explaining costs.

PAIRLOOM_DATA=folder python benchmarks/reasons.py [--seeds N ...] [--toy]

Streams: simulated payments without a change (60,000 rows for each seed, 0.7 % fraud; the generator is
streams/payments.py beside PAIRLOOM_DATA). AUCClassifier learns the first 40,000 rows. Of the others, the 1 % with the
highest scores are flagged. The first reason of each flagged row that is fraud is compared with the column that has the
largest contribution to the log-odds that the labels were drawn with, next to the same 32 background rows. "amount": the
share of these rows in which that column is the amount, so that "amount" as an answer for all would be right; "chance":
that of a column drawn at random. The last columns are the same for all other frauds, which were not flagged.

Times: AUCClassifier with 20 columns of numbers, 32 background rows and one thread; the median of several calls. They
are processor times, which other work on the machine changes less than elapsed times.
"""

import os
import runpy
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from common.script import make_parser, make_table, require_data
from pairloom import AUCClassifier
from pairloom.columns.report import ColumnsWarning
from pairloom.data import payments as toy_payments

LEARNED, FLAGGED = 40_000, 0.01
ELECTRONICS, COUNTRIES = ["electronics", "jewelry", "jewellery"], ["NG", "RO"]


def terms(frame: pd.DataFrame, *, toy: bool) -> dict[str, np.ndarray]:
    """Return the log-odds by column, before the product of note and device."""
    hour = pd.DatetimeIndex(frame["time" if toy else "timestamp"]).hour
    size, merchant = np.log(frame["amount"].to_numpy()), "merchant" if toy else "merchant_category"
    factors = (1.5 / 1.1, 2.0, 2.0, 1.2) if toy else (1.1, 1.6, 1.5, 1.0)
    night = (hour < 6) if toy else (hour < 6) | (hour >= 23)
    values = (size, frame[merchant].isin(ELECTRONICS), frame["country"].isin(COUNTRIES), night)
    names = ("amount", merchant, "country", "time" if toy else "timestamp")
    return {name: f * np.asarray(v, float) for name, f, v in zip(names, factors, values, strict=True)}


def true_contributions(rows: pd.DataFrame, background: pd.DataFrame, *, toy: bool) -> pd.DataFrame:
    """Return the Shapley values of the generating formula; those of a product of two columns are known exactly."""
    own, usual = terms(rows, toy=toy), terms(background, toy=toy)
    found = {name: own[name] - usual[name].mean() for name in own}
    if not toy:
        g, d = (_gift(one) for one in (rows, background)), (_web(one) for one in (rows, background))
        (gx, gb), (dx, db) = g, d
        for name, a, b, e, f in (("note", gx, gb, dx, db), ("device", dx, db, gx, gb)):
            found[name] = 0.6 * ((a[:, None] - b) * (e[:, None] + f)).mean(axis=1)
    return pd.DataFrame({name: found.get(name, np.zeros(len(rows))) for name in rows})


def _gift(frame: pd.DataFrame) -> np.ndarray:
    return frame["note"].str.contains("gift").to_numpy(float)


def _web(frame: pd.DataFrame) -> np.ndarray:
    return (frame["device"] == "web-chrome").to_numpy(float)


def agreement(frame: pd.DataFrame, y: np.ndarray, learned: int, *, toy: bool) -> list[tuple[int, float, float]]:
    """Return, for flagged and for other frauds: their number, and the shares of right first reasons and of amounts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnsWarning)  # the id
        model = AUCClassifier(random_state=0).fit(frame[:learned], y[:learned])
    rest, labels = frame[learned:].reset_index(drop=True), y[learned:]
    scores = model.score_many(rest)
    flagged = np.zeros(len(rest), bool)
    flagged[np.argsort(-scores)[: max(20, round(FLAGGED * len(rest)))]] = True
    background, made = frame[:learned][y[:learned] == 0].iloc[-32:], []
    for which in (flagged, ~flagged):
        frauds = rest[which & (labels == 1)].reset_index(drop=True)
        largest = true_contributions(frauds, background, toy=toy).idxmax(axis=1).to_numpy()
        reasons = model.explain(frauds)
        assert reasons.background_hash == model.explain(frauds, background).background_hash
        highest = np.array(reasons.columns)[reasons.values.argmax(axis=1)]
        made.append((len(frauds), float((highest == largest).mean()), float((largest == "amount").mean())))
    return made


def timings(rows: int, each: tuple[int, ...]) -> list[tuple[str, float]]:
    """Return milliseconds per row of calls with these numbers of rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows + max(each), 20))
    y = (X[:, 0] + X[:, 1] ** 2 + X[:, 2] * X[:, 3] + rng.normal(size=len(X)) > 3.2).astype(int)
    model = AUCClassifier(random_state=0).fit(X[:rows], y[:rows])
    made = []
    for n in each:
        part, took = X[rows : rows + n], []
        model.explain(part)
        for _ in range(9 if n < 100 else 3):
            began = time.process_time()
            model.explain(part)
            took.append((time.process_time() - began) / n)
        made.append((f"{n:,} rows" if n > 1 else "one row", 1e3 * float(np.median(took))))
    return made


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    console = Console()
    headings = ("flagged", "right", "amount", "chance", "others", "right", "amount")
    table = make_table("the first reason of frauds", ("seed",), headings)
    for seed in [0] if args.toy else args.seeds:
        frame, y = stream(seed, toy=args.toy)
        first, others = agreement(frame, y, 1_200 if args.toy else LEARNED, toy=args.toy)
        shown = [(str(n), f"{right:.2f}", f"{amount:.2f}") for n, right, amount in (first, others)]
        table.add_row(str(seed), *shown[0], f"{1 / frame.shape[1]:.2f}", *shown[1])
    console.print(table)
    times = make_table("time of explain, 20 columns", ("call",), ("ms per row",))
    for name, took in timings(*(300, (1, 20)) if args.toy else (20_000, (1, 1_000))):
        times.add_row(name, f"{took:.2f}")
    console.print(times)


def stream(seed: int, *, toy: bool) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows and labels of a stream."""
    if toy:
        columns, y = toy_payments(2_000, seed=seed, positive=0.05)
        return pd.DataFrame(columns), y
    require_data("the LIBSVM files, beside streams/payments.py")
    path = Path(os.environ["PAIRLOOM_DATA"]).parent / "streams" / "payments.py"
    generator: Any = runpy.run_path(str(path))["payments"]
    frame, y, _ = generator(seed, change=None)
    return frame, y


if __name__ == "__main__":
    main()
