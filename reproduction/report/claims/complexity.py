"""Claims on time and space, from the measured cost and from counting."""

from collections.abc import Callable
from typing import NamedTuple

from pairloom.data import DATASETS
from pairloom.theory import features_needed
from reproduction.columns import SLOTS
from reproduction.report.claims.base import Claim, Finding, Verdict, argued, graded, too_few
from reproduction.report.cost import exponent, measured_costs, sweeps
from reproduction.report.estimates import Slope
from reproduction.report.measured import KERNEL, LINEAR
from reproduction.report.wording import count, listed
from reproduction.results import Results

SLACK = 0.2
"""The interval of an exponent may be above the claimed one by this much: timers are not exact."""

WIDEST = 1.0
"""A wider interval of an exponent decides nothing."""

NONZEROS = {"a9a": "451,592", "rcv1": "about 1,500,000"}
"""Nonzero entries of two sparse sets: counted in the file of a9a; 0.16 % of all entries of rcv1, as published."""


class Fit(NamedTuple):
    """The measured exponent of the time of a row, and the printed one."""

    system: str
    axis: str
    slope: Slope
    printed: float

    @property
    def within(self) -> bool:
        """Whether the interval is not above the printed exponent."""
        return self.slope.low <= self.printed + SLACK


def slope_of(results: Results, system: str, axis: str = "T") -> Slope | None:
    """Return the measured exponent of the time of a row; None if it was not measured, or too coarsely."""
    sweep = sweeps().get((system, axis))
    found = exponent(measured_costs(results), sweep) if sweep else None
    return found if found and found.high - found.low <= WIDEST else None


def fits(results: Results, systems: tuple[str, ...], axes: str) -> list[Fit]:
    """Return the measured exponents of systems for which the paper prints one; each letter of ``axes`` is an axis."""
    found = []
    for system in systems:
        for axis in axes:
            sweep, slope = sweeps().get((system, axis)), slope_of(results, system, axis)
            if slope and sweep and sweep.paper is not None:
                found.append(Fit(system, axis, slope, sweep.paper))
    return found


def _orders(results: Results, systems: tuple[str, ...], axes: str, more: str = "") -> Finding:
    """The measured exponents, and whether each is no larger than the printed one."""
    found = fits(results, systems, axes)
    if not found:
        return too_few(results, "cost")
    texts = []
    for system in systems:
        own = [f"{one.axis} {one.slope}" for one in found if one.system == system]
        texts += [f"{system}: {', '.join(own)}"] if own else []
    text = f"Time of a row, exponents: {'; '.join(texts)}.{more}"
    return Finding(text, graded(all(one.within for one in found), any(one.within for one in found)))


def linear_time(results: Results) -> Finding:
    """O(sT)."""
    return _orders(results, (LINEAR, KERNEL), "sT")


def kernel_time(results: Results) -> Finding:
    """O((sD/d) T)."""
    more = " The printed order counts gradients and leaves out the feature map: a row takes O(sD + dD) operations."
    return _orders(results, (KERNEL,), "sDdT", more)


def both_times(results: Results) -> Finding:
    """O(sT) without a kernel, O((sD/d) T) with one: the exponents above the printed ones."""
    found = fits(results, (LINEAR, KERNEL), "sDdT")
    if not found:
        return too_few(results, "cost")
    within = [one for one in found if one.within]
    over = listed([f"{one.axis} ({one.system}), because of the feature map" if (one.system, one.axis) == (KERNEL, "d")
                   else f"{one.axis} ({one.system})" for one in found if not one.within])  # fmt: skip
    text = f"{len(within)} of {len(found)} measured exponents are within the printed orders; above: {over}."
    return Finding(text, graded(len(within) == len(found), bool(within)))


def _row(system: str, space: str) -> Callable[[Results], Finding]:
    """Return a function to the finding for a row of Table 1: the exponent in T, and what is held."""

    def find(results: Results) -> Finding:
        found = fits(results, (system,), "T")
        if not found:
            return too_few(results, "cost")
        text = f"Time of a row: T to the power {found[0].slope}. Held: {space}."
        return Finding(text, graded(found[0].within, False))

    return find


def lin(results: Results) -> Finding:
    """The gradients of a step, and its operations."""
    slope = slope_of(results, "OPERA")
    measured = f": the time of a row grows as T to the power {slope}" if slope else ""
    text = (
        "Right in the table's units: a gradient for each past row, and all rows kept. But a step changes all "
        f"coefficients{measured}."
    )
    return Finding(text, Verdict.HOLDS)


def space(_: Results) -> Finding:
    """The examples that a model stores, and the frequencies."""
    source = DATASETS["a9a"]
    frequencies = source.n_features * features_needed(source.n_rows) // 2
    text = (
        "Right in the table's unit, examples: a representative and a centroid of each stratum. It leaves out the "
        f"feature map, D/2 frequencies of d numbers ({count(frequencies)} on a9a), which a seed can replace."
    )
    return Finding(text, Verdict.HOLDS)


def low_memory(_: Results) -> Finding:
    """The numbers that FPOGD holds, those of others, and those of the data."""
    texts = []
    for name, nonzeros in NONZEROS.items():
        source, slots = DATASETS[name], 2 * SLOTS
        d, D = source.n_features, features_needed(source.n_rows)
        held = ((2 * slots + 1) * D + d * D // 2, (slots + 1) * d, d)
        texts.append(f"on {name} {listed([*map(count, held), nonzeros])}")
    text = (
        f"Numbers held by FPOGD with a kernel ({SLOTS} strata for each class, D = √T ln T), Kar and a linear system, "
        f"and nonzero entries of all rows: {'; '.join(texts)}."
    )
    return Finding(text, Verdict.DESCRIPTION)


def all_pairs_time(results: Results) -> Finding:
    """The growth of the time of a row with all past rows, and with moments."""
    history, moments = slope_of(results, "AllPairs"), slope_of(results, "AllPairs, moments")
    if not history or not moments:
        return too_few(results, "cost")
    text = (
        f"Time of a row: T to the power {history} with all past rows, {moments} with running moments, which give the "
        "same gradients for the square loss of the experiments."
    )
    return Finding(text, graded(min(history.low, moments.low) > 0.5, history.low > 0.5))


def against_quadratic(results: Results) -> Finding:
    """The growth of the time of a row against that of a kernel expansion with all rows."""
    ours, explicit = slope_of(results, KERNEL), slope_of(results, "OPERA")
    if not ours or not explicit:
        return too_few(results, "cost")
    text = (
        f"Time of a row: T to the power {ours} at fixed D, {explicit} with an explicit kernel over all rows (OPERA). "
        "With D = √T ln T the sum is O(T^{1.5} ln T)."
    )
    return Finding(text, graded(ours.high < explicit.low, False))


_RULE = (
    f"holds if no 95 % interval is more than {SLACK} above the printed exponent; in part if some are not."
)  # fmt: skip
_ROWS = (
    ("gu", "Gu et al. 2019 (AdaDSG): O(T) time, O(1) space.", "AdaDSG",
     "weights; as an offline method it reads rows stored elsewhere"),
    ("natole", "Natole et al. 2018 (SPAM): O(T) time, O(1) space.", "SPAM", "weights and the mean of each class"),
    ("ying", "Ying et al. 2016 (SOLAM): O(T) time, O(1) space.", "SOLAM", "weights, their mean and a few scalars"),
    ("zhao", "Zhao et al. 2011 (OAM): O(sT) time, O(s) space.", "OAM",
     "s rows of each class; a new row meets those of the other"),
    ("opauc", "Gao et al. 2013 (OPAUC): O(T) time, O(d) space.", "OPAUC",
     "a d × d matrix for each class, the size of d examples, the table's unit"),
    ("yang", "Yang et al. 2021 (OGD): O(T) time, O(1) space.", "OGD", "weights and the previous row"),
    ("kar", "Kar et al. 2013: O(sT) time, O(s) space.", "Kar", "s rows; a new row meets all of them"),
)  # fmt: skip
"""Rows of Table 1: id, text, the system that is timed, and what it holds."""

CLAIMS = (
    Claim(
        "linear-time", "Abstract",
        "Online gradients from a buffer of size s “have a complexity of O(sT)”.",
        linear_time, _RULE, "figure-cost", central=True,
    ),
    Claim(
        "all-pairs-time", "Introduction",
        "“A drawback of online gradient descent in pairwise learning is its time complexity of O(T²) ….”",
        all_pairs_time,
        "holds if both intervals are above 0.5, in part if only the first.",
        "figure-cost",
    ),
    Claim(
        "table-1-fpogd", "Introduction, Table 1",
        "FPOGD takes O((sD/d) T) time.",
        kernel_time, _RULE, "figure-cost", central=True,
    ),
    Claim("table-1-space", "Introduction, Table 1", "FPOGD takes O(s) space.", space, central=True),
    *(
        Claim(f"table-1-{name}", "Introduction, Table 1", text, _row(system, held),
              "as for FPOGD.")
        for name, text, system, held in _ROWS
    ),
    Claim(
        "table-1-lin", "Introduction, Table 1",
        "Lin et al. 2017 (online kernel learning): O(T²) time, O(T) space.",
        lin,
    ),
    Claim(
        "table-1-kakkar", "Introduction, Table 1",
        "Kakkar et al. 2017 (sparse kernel AUC): O(T log T) time, O(T²) space.",
        argued(
            "Sorting gives O(T log T) for each step of the optimiser, as printed. But the method needs only the "
            "columns of its basis, not a Gram matrix of T² numbers.",
            Verdict.IN_PART,
        ),
    ),
    Claim(
        "against-quadratic", "Method, mapping to a kernel space",
        "“… a lower computational complexity of O((sD/d) T), compared to the O(T²) complexity associated with explicit "
        "kernel computations.”",
        against_quadratic, "holds if the first interval is below the second.", "figure-cost",
    ),
    Claim(
        "low-memory", "Method, online stratified sampling",
        "“Instead of storing the entire history of received examples, we maintain one uniform sample from each "
        "partition ….”",
        low_memory,
    ),
    Claim(
        "conclusion", "Conclusion",
        "“… a gradient complexity of O(sT) for linear models and O((D/d) sT) for nonlinear models.”",
        both_times, "as for Table 1.", "figure-cost",
    ),
)  # fmt: skip
