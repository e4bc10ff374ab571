"""Mixed columns of real streams: numbers, categories, dates, missing values."""

from pairloom.columns.kinds import Columns, ColumnsLike, ColumnsWarning, Kind
from pairloom.columns.report import ColumnReport
from pairloom.columns.transformer import ColumnEncoder

__all__ = ["ColumnEncoder", "ColumnReport", "Columns", "ColumnsLike", "ColumnsWarning", "Kind"]
