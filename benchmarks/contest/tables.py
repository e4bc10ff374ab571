"""Data sets with raw columns: real tables, and numeric sets with rare positives."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from contest.keel import Rows
from pairloom.data import fraud_like


def read_table(name: str) -> Rows:
    """Read a table in file order: text stays text, an empty cell is missing, the last column is the label."""
    path = Path(os.environ["PAIRLOOM_DATA"]) / "tables" / f"{name}.csv.xz"
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    labels = frame.pop(frame.columns[-1])
    return frame, labels.to_numpy()


def read_rare(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read an archive of ADBench; label 1 is the rare class."""
    with np.load(Path(os.environ["PAIRLOOM_DATA"]) / "adbench" / f"{name}.npz") as file:
        return file["X"].astype(float), file["y"]


def made_table() -> Rows:
    """Return a few simulated payments with text and missing values."""
    columns, y = fraud_like(300, positive=0.3)
    return pd.DataFrame(columns)[["amount", "ip_risk", "channel"]], y


def one_hot() -> Any:
    """Return the usual encoding of raw columns: numbers with their mean for gaps, standardised; others one-hot."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )


def text_columns(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]


def take(X: Any, rows: np.ndarray) -> Any:
    """Return these rows of an array or a frame."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
