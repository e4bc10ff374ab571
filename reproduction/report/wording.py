"""Numbers and lists in sentences."""

from collections.abc import Callable, Sequence
from math import floor, log2, log10

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(auc: float) -> str:
    """An AUC x 100, with two decimals as in the paper."""
    return f"{100 * auc:.2f}"


def signed(auc: float) -> str:
    """A difference of AUCs x 100.

    >>> signed(-0.0123)
    '−1.23'
    """
    return f"{100 * auc:+.2f}".replace("-", "−")


def count(number: float) -> str:
    """A whole number with commas."""
    return f"{number:,.0f}"


def number(value: float) -> str:
    """Three digits, with a power of ten if the plain number is long.

    >>> number(0.0000123), number(0.25), number(16.0), number(123456)
    ('1.23·10⁻⁵', '0.25', '16', '123,456')
    """
    if value == 0:
        return "0"
    size = floor(log10(abs(value)))
    if -4 <= size <= 2:
        text = f"{value:.3g}"
    elif 2 < size < 6:
        text = f"{value:,.0f}"
    else:
        text = f"{value / 10.0**size:.3g}·10{str(size).translate(_SUPERSCRIPT)}"
    return text.replace("-", "−")


def interval(value: float, low: float, high: float) -> str:
    """An estimate and the ends of its interval.

    >>> interval(0.5, -0.25, 0.75)
    '0.50 [−0.25, 0.75]'
    """
    return f"{value:.2f} [{low:.2f}, {high:.2f}]".replace("-", "−").replace("inf", "∞")


def duration(seconds: float) -> str:
    """A time in a readable unit.

    >>> duration(0.0021), duration(0.1), duration(95), duration(7300)
    ('2.1 ms', '100 ms', '95 s', '2 h 2 min')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def listed(names: Sequence[str]) -> str:
    """Names with commas and "and".

    >>> listed(["usps", "a9a", "german"]), listed([])
    ('usps, a9a and german', 'none')
    """
    if len(names) < 2:
        return names[0] if names else "none"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def of(hits: Sequence[str], total: int, things: str = "sets") -> str:
    """How many of how many, and their names.

    >>> of(["usps"], 3), of(["usps", "a9a"], 2), of([], 2)
    ('1 of 3 sets (usps)', 'all 2 sets', 'none of 2 sets')
    >>> of(["usps"], 1), of([], 1)
    ('the only set (usps)', 'no set of one')
    """
    if total == 1:
        thing = things.removesuffix("s")
        return f"the only {thing} ({hits[0]})" if hits else f"no {thing} of one"
    if not hits:
        return f"none of {total} {things}"
    return f"all {total} {things}" if len(hits) == total else f"{len(hits)} of {total} {things} ({listed(hits)})"


def span(values: Sequence[float], text: Callable[[float], str]) -> str:
    """The least and the largest of some numbers; only one of them if they look the same.

    >>> span([0.9, 0.5, 0.7], str), span([1, 1], str)
    ('0.5 to 0.9', '1')
    """
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} to {high}"


def power_of_two(value: float) -> str:
    """A power of two.

    >>> power_of_two(2.0**-8)
    '2⁻⁸'
    """
    return f"2{str(round(log2(value))).translate(_SUPERSCRIPT)}"


def small(p: float) -> str:
    """A p-value in a sentence.

    >>> small(0.0234), small(1e-9)
    ('p = 0.023', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
