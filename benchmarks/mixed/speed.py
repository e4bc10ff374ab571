"""Cost of single rows and data frames of 20 mixed columns."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from common.script import make_table
from pairloom.columns import ColumnEncoder

NUMBERS, TEXTS = [f"n{k}" for k in range(12)], [f"c{k}" for k in range(6)]


def mixed_rows(n: int) -> pd.DataFrame:
    """Return 12 numeric columns with missing values, 6 categories, a bool and a date."""
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random((n, 12)) < 0.1, np.nan, rng.normal(size=(n, 12)))
    frame = pd.DataFrame(dict(zip(NUMBERS, numbers.T, strict=True)))
    for name, size in zip(TEXTS, (3, 5, 8, 12, 40, 200), strict=True):
        frame[name] = np.array([f"value {k}" for k in range(size)])[rng.integers(0, size, n)]
    frame["flag"] = rng.random(n) < 0.5
    frame["time"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n), unit="min")
    return frame


def sklearn_encoder() -> Any:
    """Return scikit-learn's encoding: mean and indicator, one-hot, the bool unchanged, without the date."""
    numbers, texts = SimpleImputer(add_indicator=True), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("n", numbers, NUMBERS), ("c", texts, TEXTS), ("b", "passthrough", ["flag"])])


def river_encoder() -> Any:
    """Return river's encoding: running means, one-hot, the bool unchanged, without the date."""
    from river import compose, preprocessing, stats

    numbers = compose.Select(*NUMBERS) | preprocessing.StatImputer(*((name, stats.Mean()) for name in NUMBERS))
    return numbers + (compose.Select(*TEXTS) | preprocessing.OneHotEncoder()) + compose.Select("flag")


def dicts(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as mappings, with None for missing values."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def micros(call: Callable[[Any], object], rows: list[Any]) -> float:
    """Return the CPU microseconds of a call, the best mean of five parts."""
    size = max(1, len(rows) // 5)
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    return min(1e6 * seconds(partial(_each, call, part), 1) / len(part) for part in parts)


def _each(call: Callable[[Any], object], rows: list[Any]) -> None:
    for row in rows:
        call(row)


def seconds(call: Callable[[], object], times: int = 3) -> float:
    """Return the least CPU seconds of a few calls."""
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def table_of_single_rows(n: int) -> Table:
    frame = mixed_rows(n)
    rows, few = dicts(frame), [frame.iloc[k : k + 1] for k in range(min(n, 300))]
    ours, theirs, river = ColumnEncoder(), sklearn_encoder().fit(frame), river_encoder()
    ours.learn_one(rows[0])
    found = {
        "ColumnEncoder.learn_one": micros(ours.learn_one, rows),
        "river, learn_one": micros(river.learn_one, rows),
        "ColumnEncoder.transform_one": micros(ours.transform_one, rows),
        "river, transform_one": micros(river.transform_one, rows),
        "scikit-learn, transform of one row": micros(theirs.transform, few),
    }
    table = make_table("CPU time of single rows", ["one row of 20 columns"], ["µs", "times ours"])
    for name, taken in found.items():
        own = found["ColumnEncoder.learn_one" if "learn_one" in name else "ColumnEncoder.transform_one"]
        table.add_row(name, f"{taken:,.1f}", f"{taken / own:.1f}")
    table.caption = "river and scikit-learn ignore the date; scikit-learn gets the row as a data frame"
    return table


def table_of_frames(n: int) -> Table:
    frame = mixed_rows(n)
    rows, river = dicts(frame.iloc[: max(1, n // 10)]), river_encoder()
    ours, theirs = ColumnEncoder().fit(frame), sklearn_encoder().fit(frame)

    def row_by_row() -> None:
        for row in rows:
            river.learn_one(row)
            river.transform_one(row)

    found = {
        "ColumnEncoder, fit and transform": seconds(lambda: ColumnEncoder().fit(frame).transform(frame)),
        "ColumnEncoder, transform": seconds(lambda: ours.transform(frame)),
        "scikit-learn, fit and transform": seconds(lambda: sklearn_encoder().fit_transform(frame)),
        "scikit-learn, transform": seconds(lambda: theirs.transform(frame)),
        "river, learn_one and transform_one": seconds(row_by_row, 1) * n / len(rows),
    }
    table = make_table("CPU time of data frames", [f"a frame of {n:,} rows"], ["ns per value", "times ours"])
    for name, taken in found.items():
        alone = name.endswith(", transform")
        own = found["ColumnEncoder, transform" if alone else "ColumnEncoder, fit and transform"]
        table.add_row(name, f"{1e9 * taken / frame.size:,.0f}", f"{taken / own:.1f}")
    return table
