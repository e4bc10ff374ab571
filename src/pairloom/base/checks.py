"""Checks of parameters: each error names the value that was given and the values that are valid."""

from typing import Any, get_args

import numpy as np


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise ValueError unless ``value`` is one of the strings of a Literal, or a key of a dict."""
    known = tuple(choices) if isinstance(choices, dict) else get_args(choices)
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")


def check_number(name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False) -> None:
    """Raise ValueError unless ``value`` is a finite number in [low, high], or (low, high] if ``open_low``."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    try:
        size = float(value) if number else np.nan
    except OverflowError:  # an integer too large for float64
        size = np.inf
    if not np.isfinite(size) or not low <= size <= high or (open_low and size == low):
        bound = f"{'above' if open_low else 'at least'} {low:g}"
        bound += f" and at most {high:g}" if np.isfinite(high) else ""
        raise ValueError(f"{name} must be a number {bound}; got {value!r}")


def check_numbers(name: str, values: Any, low: float, *, open_low: bool = False) -> None:
    """Raise ValueError unless ``values`` is a tuple of numbers that each pass ``check_number``."""
    if not isinstance(values, tuple):
        raise ValueError(f"{name} must be a tuple of numbers; got {values!r}")
    for value in values:
        check_number(f"each of {name}", value, low, open_low=open_low)


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {value!r}")


def check_part(name: str, value: Any, kind: type) -> None:
    """Raise ValueError unless ``value`` is an instance of ``kind``."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be an instance of {kind.__name__}; got {value!r}")


def check_count(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is an integer >= 1."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1; got {value!r}")
