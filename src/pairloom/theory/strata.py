"""How many strata a threshold can make."""

from math import ceil, floor, inf
from typing import Literal

from pairloom.base.checks import check_choice, check_count, check_number

Form = Literal["corrected", "printed"]
"""A statement as the paper prints it, or one that holds."""


def most_strata(
    radius: float, distance: float, dim: int, *, n_rows: int | None = None, form: Form = "corrected"
) -> float:
    r"""The largest number of strata in a ball of R^d, if a row farther than epsilon from all centres founds one.

    .. math::

        \kappa \le (1 + 2R/\epsilon)^d, \quad\text{printed: } \lceil (R/\epsilon)^d \rceil

    Centres farther than epsilon apart have disjoint balls of radius epsilon / 2, all inside a ball of radius
    R + epsilon / 2: hence the first. The second takes balls of radius epsilon to be disjoint; three points -R, 0, R
    of a line, and an epsilon of 0.9 R, say that they are not. Both are for centres that stay where they were founded:
    with moving centres, the method's own, there is no bound but the number of rows. In D features the bound is of no
    use at all: a limit, ``max_strata``, is.

    Parameters
    ----------
    radius
        R, of a ball that holds all points; 1 for unit features.
    distance
        epsilon; ``Strata(eps=...)`` is its square.
    dim
        d.
    n_rows
        Rows so far, at least as many as strata; None: any number.
    form
        "corrected" or "printed".

    >>> most_strata(1.0, 0.9, 1), most_strata(1.0, 0.9, 1, form="printed")
    (3.0, 2.0)
    """
    check_number("radius", radius, 0)
    check_number("distance", distance, 0, open_low=True)
    check_count("dim", dim)
    check_choice("form", form, Form)
    corrected = form == "corrected"
    try:
        count = (1.0 + 2.0 * radius / distance if corrected else radius / distance) ** dim
        whole = float(floor(count) if corrected else max(1, ceil(count)))
    except OverflowError:
        whole = inf
    return whole if n_rows is None else min(float(n_rows), whole)
