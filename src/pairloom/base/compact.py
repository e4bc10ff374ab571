"""Compact rows: one number for each column, or a few for a date; missing values are NaN."""

from typing import Literal

NUMBER, DATE_PART, CODE = "npc"
"""Letters for the kinds of compact columns: a number, a further number of a date, the code of a category."""

Form = Literal["numbers", "trees", "codes", "all"]
"""What a model receives of compact rows (:class:`~pairloom.features.encoding.Encoding`)."""
