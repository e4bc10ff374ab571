"""Claims on time and space, from the measured cost and from counting."""

from pairloom.data import DATASETS
from pairloom.theory import features_needed
from reproduction import paper
from reproduction.report.claims.base import Claim, Finding, Verdict, argued, graded, without
from reproduction.report.cost import exponent, measured_costs, sweeps
from reproduction.report.measured import KERNEL, LINEAR, Measured
from reproduction.report.wording import count, listed, of
from reproduction.results import Results

SLACK = 0.05
"""The interval of an exponent may be above the claimed one by this much: timers are not exact."""

MAP = " The printed order leaves out the feature map, d·D operations: an example takes O(sD + dD)."

SLOTS = 4
"""Strata for each class, as in the paper's study of variance."""


def _within(results: Results, systems: tuple[str, ...], axes: tuple[str, ...], more: str = "") -> Finding:
    """The measured exponents, and whether each is no larger than the paper's."""
    records, known = measured_costs(results), sweeps()
    texts, fine = [], []
    for system in systems:
        here = []
        for axis in axes:
            sweep = known.get((system, axis))
            if sweep and sweep.paper is not None and (fitted := exponent(records, sweep)):
                here.append(f"{axis} {fitted}")
                fine.append(not fitted.low > sweep.paper + SLACK)
        if here:
            texts.append(f"{system}: {', '.join(here)}")
    if not fine:
        return without("cost")
    text = f"Exponents of the time for each example, where the varied term is most of it. {'; '.join(texts)}.{more}"
    return Finding(text, graded(all(fine), any(fine)))


def linear_time(results: Results) -> Finding:
    """O(sT)."""
    return _within(results, (LINEAR, KERNEL), ("s", "T"))


def kernel_time(results: Results) -> Finding:
    """O((sD/d) T)."""
    return _within(results, (KERNEL,), ("s", "D", "d", "T"), MAP)


def both_times(results: Results) -> Finding:
    """O(sT) without a kernel, O((sD/d) T) with one."""
    return _within(results, (LINEAR, KERNEL), ("s", "D", "d", "T"), MAP)


def against_quadratic(results: Results) -> Finding:
    """Whether a row costs the same late in the stream."""
    return _within(results, (KERNEL,), ("T",))


def space(_: Results) -> Finding:
    """The numbers that a model stores."""
    shown = []
    for name in ("diabetes", "a9a", "rcv1"):
        source = DATASETS[name]
        features = features_needed(source.n_rows)
        slots, frequencies = 2 * 2 * SLOTS * features, source.n_features * features // 2
        shown.append(f"{name} {count(slots)} for strata and {count(frequencies)} for frequencies")
    text = (
        "Each stratum holds a representative and a centroid of D numbers, and the map D/2 frequencies of d: 2sD + "
        f"dD/2 numbers, not O(s). With s = {SLOTS} for each class and D = √T ln T: {'; '.join(shown)}."
    )
    return Finding(text, Verdict.FAILS)


def low_memory(_: Results) -> Finding:
    """Compared with storing all rows."""
    smaller = []
    for name in paper.TABLE_3:
        source = DATASETS[name]
        features = features_needed(source.n_rows)
        held = 4 * SLOTS * features + source.n_features * features // 2 + features
        smaller += [name] if held < source.n_rows * source.n_features else []
    text = (
        f"Counting numbers held with s = {SLOTS} for each class and D = √T ln T, frequencies included, against all "
        f"rows as a dense array: less on {of(smaller, len(paper.TABLE_3))}, and it does not grow with the stream "
        "once D is chosen."
    )
    return Finding(text, graded(len(smaller) == len(paper.TABLE_3), bool(smaller)))


def opauc_space(results: Results) -> Finding:
    """The size of its covariance matrices."""
    measured = Measured(results)
    out = [name for name in measured.datasets if measured.note(name, "OPAUC")]
    text = "OPAUC keeps a covariance matrix of each class: O(d²) numbers"
    text += f", {count(DATASETS['rcv1'].n_features ** 2)} for each on rcv1."
    text += f" It was left out here on {listed(out)}." if out else ""
    return Finding(text, Verdict.FAILS)


def all_pairs_time(_: Results) -> Finding:
    """The cost of pairing with all past rows."""
    rows = DATASETS["a9a"].n_rows
    text = (
        f"Pairing each row with all before it makes T(T − 1)/2 pairs, {count(rows * (rows - 1) // 2)} on a9a. But "
        "for the square loss, the only one of the paper's experiments, running moments give the same gradients in "
        "O(d²) for each row: OPAUC and ExactAUC in the table learn from all pairs in one pass."
    )
    return Finding(text, Verdict.IN_PART)


_RULE = (
    "an order is an upper bound: holds if no exponent's 95 % interval lies above the printed "
    f"exponent by more than {SLACK}; in part if some do."
)

CLAIMS = (
    Claim(
        "linear-time", "Abstract",
        "Online gradients from a buffer of size s “have a complexity of O(sT)”.",
        linear_time, _RULE, "figure-cost",
    ),
    Claim(
        "all-pairs-time", "Introduction",
        "“A drawback of online gradient descent in pairwise learning is its time complexity of O(T²) … due to the "
        "requirement of pairing each new data point with all previous points.”",
        all_pairs_time,
    ),
    Claim(
        "table-1-fpogd", "Introduction, Table 1",
        "FPOGD takes O((sD/d) T) time.",
        kernel_time, _RULE, "figure-cost",
    ),
    Claim(
        "table-1-space", "Introduction, Table 1",
        "FPOGD takes O(s) space.",
        space,
    ),
    Claim(
        "table-1-opauc", "Introduction, Table 1",
        "OPAUC (Gao et al. 2013) takes O(d) space.",
        opauc_space,
    ),
    Claim(
        "table-1-lin", "Introduction, Table 1",
        "Online kernel learning of pairs (Lin et al. 2017) takes O(T²) time and O(T) space.",
        argued(
            "Each step changes all t coefficients and needs the scores of all t past rows, each a sum of t kernels: "
            "O(t²) operations with a stored Gram matrix of T² numbers, O(T³) in all. O(T²) counts gradients, which are "
            "not of a fixed size here; O(T) space means computing every kernel again.",
            Verdict.FAILS,
        ),
    ),
    Claim(
        "table-1-kakkar", "Introduction, Table 1",
        "Sparse kernel AUC (Kakkar et al. 2017) takes O(T log T) time and O(T²) space.",
        argued(
            "True if the whole Gram matrix is kept. The method needs the kernel columns of its basis only, "
            "O(T·d_{max}) numbers, and is implemented so here. A pass over all pairs takes O(T log T) by "
            "sorting, as printed, for each step of the optimiser.",
            Verdict.IN_PART,
        ),
    ),
    Claim(
        "against-quadratic", "Method, mapping to a kernel space",
        "RFF maintain “a lower computational complexity of O((sD/d) T), compared to the O(T²) complexity associated "
        "with explicit kernel computations”: the time of a row does not grow with T.",
        against_quadratic, _RULE, "figure-cost",
    ),
    Claim(
        "low-memory", "Method, online stratified sampling",
        "“Stratified sampling preserves low memory utilization. Instead of storing the entire history of received "
        "examples, we maintain one uniform sample from each partition.”",
        low_memory, "holds if less is held than all rows on every set of the paper.",
    ),
    Claim(
        "conclusion", "Conclusion",
        "“Our algorithm achieves a gradient complexity of O(sT) for linear models and O((D/d) sT) for nonlinear "
        "models.”",
        both_times, _RULE, "figure-cost",
    ),
)  # fmt: skip
