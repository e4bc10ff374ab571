"""Reasons: the contributions of columns to the score of a row, next to typical rows."""

from pairloom.explain.explanation import Explanation
from pairloom.explain.history import ImportanceHistory

__all__ = ["Explanation", "ImportanceHistory"]
