"""Which column tells the time of rows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeColumn:
    """The column that tells the time, by its name, or by its place in rows without names.

    ``dates``: it holds dates, and times are seconds since 1970; else it holds numbers, which are the times.
    """

    column: str | int
    dates: bool
