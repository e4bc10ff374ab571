"""Mixed columns of real streams: numbers, categories, dates, gaps."""

from pairloom.columns.kinds import Columns, ColumnsLike, Kind
from pairloom.columns.telling import ColumnReport
from pairloom.columns.transformer import ColumnEncoder

__all__ = ["ColumnEncoder", "ColumnReport", "Columns", "ColumnsLike", "Kind"]
