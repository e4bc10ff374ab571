"""Mixed columns of real streams: numbers, categories, dates, gaps."""

from pairloom.columns.kinds import Columns, ColumnsLike, Kind

__all__ = ["Columns", "ColumnsLike", "Kind"]
