"""Checks of parameters: each says what was given and what would do."""

from typing import Any, get_args

import numpy as np


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise unless ``value`` is one of a Literal's words, or a key of a table."""
    known = tuple(choices) if isinstance(choices, dict) else get_args(choices)
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")


def check_number(name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False) -> None:
    """Raise unless ``value`` is a finite number in [low, high], or (low, high] where ``open_low``."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    try:
        size = float(value) if number else np.nan
    except OverflowError:  # a whole number beyond all doubles
        size = np.inf
    if not np.isfinite(size) or not low <= size <= high or (open_low and size == low):
        bound = f"{'above' if open_low else 'at least'} {low:g}" + (
            f" and at most {high:g}" if np.isfinite(high) else ""
        )
        raise ValueError(f"{name} must be a number {bound}; got {value!r}")


def check_numbers(name: str, values: Any, low: float, *, open_low: bool = False) -> None:
    """Raise unless ``values`` is a tuple of numbers, each as ``check_number`` wants it."""
    if not isinstance(values, tuple):
        raise ValueError(f"{name} must be a tuple of numbers; got {values!r}")
    for value in values:
        check_number(f"each of {name}", value, low, open_low=open_low)


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {value!r}")


def check_part(name: str, value: Any, kind: type) -> None:
    """Raise unless ``value`` is a part of this kind."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be of the class {kind.__name__}; got {value!r}")


def check_count(name: str, value: Any) -> None:
    """Raise unless ``value`` is a whole number of at least 1."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
