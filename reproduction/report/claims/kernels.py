"""Claims on random Fourier features and the pairwise kernel, each with a small computation."""

from functools import lru_cache
from math import exp, log, sqrt

import numpy as np

from pairloom.data import DATASETS
from pairloom.theory import degrees_of_freedom, features_needed, pairwise_failure
from reproduction import paper
from reproduction.cells import Array
from reproduction.report.claims.base import Claim, Finding, Verdict, graded
from reproduction.report.wording import count, listed, number, of, span
from reproduction.results import Results

GAMMA = 0.5
"""gamma of the kernel exp(-gamma (x - x')^2) in these computations; its frequencies are standard normal."""

STREAMS = 200
"""The number of small streams for Theorem 8."""


def _map(x: float, frequencies: Array) -> Array:
    """Return the map of the paper's analysis, of unit length."""
    mapped: Array = np.concatenate([np.cos(frequencies * x), np.sin(frequencies * x)])
    return mapped / float(np.sqrt(len(frequencies)))


def _kernel(x: Array) -> Array:
    """Return the Gram matrix of points on a line."""
    kernel: Array = np.exp(-GAMMA * np.square(x[:, None] - x))
    return kernel


def box(_: Results) -> Finding:
    """The map of the algorithm's box."""
    rng = np.random.default_rng(0)
    x, other = 0.3, 1.1
    kernel = exp(-GAMMA * (x - other) ** 2)
    once, again = rng.normal(size=(2, 100_000))
    right = float(_map(x, once) @ _map(other, once))
    redrawn = float(_map(x, once) @ _map(other, again))
    text = (
        f"The factor must be √(2/D), as in section 4.2: for a kernel of {kernel:.3f} the inner product is {right:.3f} "
        f"with it, {2 * right:.3f} with the box's. And frequencies must be drawn once: different draws give "
        f"{redrawn:.3f}."
    )
    return Finding(text, Verdict.MISPRINT if abs(right - kernel) < 0.01 else Verdict.FAILS)


def corollary(_: Results) -> Finding:
    """How often the error of the pairwise kernel is above delta."""
    n_features, delta, n_maps = 100, 0.1, 2_000
    points = np.array([0.0, 1.0, 0.5, 2.0])
    frequencies = np.random.default_rng(0).normal(size=(n_maps, n_features // 2))
    estimate = sum(sign * np.cos(frequencies * (points[a] - points[b])).mean(axis=1) for sign, a, b in _TERMS)
    exact = sum(sign * exp(-GAMMA * (points[a] - points[b]) ** 2) for sign, a, b in _TERMS)
    share = float(np.mean(np.abs(estimate - exact) > delta))
    printed = pairwise_failure(n_features, delta, form="printed")
    text = (
        f"With D = {n_features} and δ = {delta}, {100 * share:.0f} % of {count(n_maps)} maps have a larger error; the "
        f"printed probability is {number(printed)}. The exponent must have Dδ²: Hoeffding gives 2 exp(−Dδ²/64)."
    )
    return Finding(text, Verdict.MISPRINT if share > printed else Verdict.HOLDS)


_TERMS = ((1, 0, 2), (1, 1, 3), (-1, 0, 3), (-1, 1, 2))
"""Sign and points of the four terms of the pairwise kernel of (x_0, x_1) and (x_2, x_3)."""


def least_features(rows: int, columns: int) -> float:
    """Return the D above which the bound of Theorem 3 is below 1, for delta = T^(-1/4) and sigma R = 1.

    sigma R = 1 favours the claim: rows scaled to [-1, 1] have a larger diameter.
    """
    return (4 * columns + 8) * sqrt(rows) * (8 * log(2) + log(rows) / 4)


def probability(_: Results) -> Finding:
    """The probability of the theorem at the number of features that the remark proposes."""
    times = {name: least_features(one.n_rows, one.n_features) / features_needed(one.n_rows)
             for name, one in ((name, DATASETS[name]) for name in paper.TABLE_3)}  # fmt: skip
    empty = [name for name, ratio in times.items() if ratio >= 1]
    text = (
        "At δ = T^{−1/4}, D = √T ln T and σR = 1, which favours the claim, it is 0 or less on "
        f"{of(empty, len(times))} of Table 3, and needs {span(list(times.values()), number)} times as many features. "
        "Missing: a square on σR/δ, and δ/4 for pairs."
    )
    return Finding(text, _emptiness(len(empty), len(times)))


def _emptiness(empty: int, total: int) -> Verdict:
    return Verdict.VACUOUS if empty == total else Verdict.IN_PART if empty else Verdict.HOLDS


def features_in_theory(_: Results) -> Finding:
    """How D must grow, and its constant."""
    shares = {name: least_features(one.n_rows, one.n_features) / one.n_rows
              for name, one in ((name, DATASETS[name]) for name in paper.TABLE_3)}  # fmt: skip
    above = [name for name, share in shares.items() if share > 1]
    text = (
        "The order is right: Dδ² = ln T at δ = T^{−1/4}. But for a probability above 0, Theorem 3 needs "
        f"{span(list(shares.values()), number)} times T features, more than T on {of(above, len(shares))} of Table 3."
    )
    return Finding(text, graded(not above, True))


def positive(_: Results) -> Finding:
    """Eigenvalues of a Gram matrix of pairs."""
    points = np.random.default_rng(0).normal(size=(2, 40))
    gram = _kernel(points.ravel())
    gram = gram[:40, :40] + gram[40:, 40:] - gram[:40, 40:] - gram[40:, :40]
    least = float(np.linalg.eigvalsh(gram).min())
    text = (
        "It is the inner product of differences G_{x} − G_{x′}; the smallest eigenvalue for 40 random pairs is "
        f"{number(least)}."
    )
    return Finding(text, Verdict.HOLDS if least > -1e-10 else Verdict.FAILS)


@lru_cache
def approximated(seed: int, n_components: int, penalty: float) -> tuple[float, float]:
    """Return both sides of Theorem 8 on a random stream.

    30 rows with labels at random lie at four points, so that no function fits every pair. w* minimises
    sum_t L_t(w) + T penalty ||w||^2 / 2 with a Gaussian kernel, w̄* the same with random features; the loss is the
    square loss, with M = 2. delta is the largest error of the pairwise kernel at the four points.
    """
    rng, rows, points = np.random.default_rng(seed), 30, 2.0 * np.arange(4)
    at, label = rng.integers(len(points), size=rows), rng.random(rows) < 0.5
    late, early = np.tril_indices(rows, -1)
    apart = np.where(label[late], 1, -1)[:, None] * (np.eye(len(points))[at[late]] - np.eye(len(points))[at[early]])
    opposite = label[late] != label[early]
    pairs, weights = apart[opposite], 1 / late[opposite]
    frequencies, kernel = rng.normal(size=n_components // 2), _kernel(points)
    exact, mapped = np.linalg.cholesky(kernel), np.array([_map(x, frequencies) for x in points])
    best, other = (_minimiser(pairs @ space, weights, rows * penalty) for space in (exact, mapped))
    losses = [float(weights @ np.square(1 - pairs @ values)) for values in (mapped @ other, exact @ best)]
    # The coefficients of the points sum to 0, so that sum |a_ij| is at least half of their sizes.
    size = float(np.abs(np.linalg.solve(exact.T, best)).sum()) / 2
    error = mapped @ mapped.T - kernel
    delta = float(np.ptp((error[:, None] - error).reshape(-1, len(points)), axis=1).max())
    return losses[0] - losses[1], rows * (size * delta) ** 2


def _minimiser(design: Array, weights: Array, penalty: float) -> Array:
    """Return the shortest w that minimises sum_i weights_i (1 - <design_i, w>)^2 + penalty ||w||^2 / 2."""
    normal = design.T @ (weights[:, None] * design) + penalty / 2 * np.eye(design.shape[1])
    w: Array = np.linalg.lstsq(normal, design.T @ weights, rcond=None)[0]
    return w


def theorem_8(_: Results) -> Finding:
    """The minimisers with and without a penalty, where no function fits every pair."""
    free, short = ([approximated(seed, n_components, penalty) for seed in range(STREAMS)]
                   for n_components, penalty in ((2, 0.0), (20, 1.0)))  # fmt: skip
    broken, penalised = (sum(left > 1.000001 * right + 1e-9 for left, right in some) for some in (free, short))
    text = (
        "The proof's ∇ℓ(w⋆, z, z′) = 0 for every pair is false where rows contradict each other. For minimisers of "
        f"ΣL_{{t}} a sum of 0 is enough: the bound is broken on {broken or 'none'} of {STREAMS} streams of such rows "
        "(Gaussian kernel, D = 2). But it is stated for any w⋆: with a penalty (λ = 1, D = 20) it is on "
        f"{penalised or 'none'}, by a term of order Tδ."
    )
    return Finding(text, graded(not broken and not penalised, not broken))


def small_delta(_: Results) -> Finding:
    """Order of the three terms."""
    orders = {rows: rows * rows ** (-0.5) + rows**0.5 / 2 + rows ** (-0.5) * rows for rows in (10**4, 10**6)}
    power = log(orders[10**6] / orders[10**4], 10) / 2
    text = (
        f"All terms grow as T to the power {power:.2f}, but only if ‖w⋆‖₁, a sum over all pairs of rows, and the "
        "variances are bounded."
    )
    return Finding(text, graded(False, power < 1))


def remark_9(_: Results) -> Finding:
    """The size of the coefficients for three penalties."""
    rng = np.random.default_rng(0)
    G = _kernel(np.concatenate([rng.normal(0.0, 1.0, 8), rng.normal(1.0, 1.0, 8)]))
    i, j = (index.ravel() for index in np.meshgrid(np.arange(8, 16), np.arange(8)))
    pairs = G[np.ix_(i, i)] - G[np.ix_(i, j)] - G[np.ix_(j, i)] + G[np.ix_(j, j)]
    n = len(i)
    sizes = [float(np.abs(np.linalg.solve(pairs + 0.5 * n * penalty * np.eye(n), np.ones(n))).sum())
             for penalty in (1e-6, 1e-3, 1.0)]  # fmt: skip
    text = (
        f"A penalty does: for {n} pairs ‖w⋆‖₁ is {listed([number(size) for size in sizes])} with λ = 10⁻⁶, 10⁻³ and 1. "
        "But the theorem has none."
    )
    return Finding(text, graded(False, sizes == sorted(sizes, reverse=True)))


def decays(_: Results) -> Finding:
    """The number of eigenvalues above 1 / T; the printed numbers are multiples of it, up to logarithms."""
    lengths, index = (10**3, 10**5), np.arange(1.0, 10**6 + 1)
    powers = {}
    for name, spectrum in {"c = 1": index**-2.0, "c = 2": index**-4.0}.items():
        few, many = (degrees_of_freedom(spectrum, 1 / rows) for rows in lengths)
        powers[name] = log(many / few) / log(lengths[1] / lengths[0])
    text = (
        f"The effective dimension grows as T to the power {powers['c = 1']:.2f} for 1/i² and {powers['c = 2']:.2f} for "
        "1/i⁴, as printed. But “r > 1” must be r < 1, and 1/i, which has no sum, is no kernel's decay."
    )
    right = abs(powers["c = 1"] - 0.5) < 0.05 and abs(powers["c = 2"] - 0.25) < 0.05
    return Finding(text, Verdict.MISPRINT if right else Verdict.FAILS)


CLAIMS = (
    Claim(
        "few-features", "Introduction, contribution 3",
        "“… only O(√T log T) features in comparison to O(T) … while maintaining a sublinear error bound.”",
        features_in_theory, "", "figure-features", central=True,
    ),
    Claim(
        "box", "Method, the algorithm",
        "z_{t} = (2/√D)[sin(q_{i}·x_{t}), cos(q_{i}·x_{t})], with q_{i} sampled at every step.",
        box,
    ),
    Claim(
        "theorem-3", "Regret analysis, Theorem 3",
        "“… with probability at least 1 − 2⁸(σR/δ) exp(−Dδ²/(4d + 8)) …”",
        probability, "vacuous if it is 0 or less on every set.", central=True,
    ),
    Claim(
        "remark-4", "Regret analysis, Remark 4",
        "“Choosing η = 1/√T and δ = T^{−1/4} makes the regret bound sublinear which is optimal.”",
        small_delta,
    ),
    Claim(
        "pairwise-kernel", "Regret analysis, pairwise kernel",
        "“… the pairwise kernel … is positive semi-definite …”",
        positive,
    ),
    Claim(
        "theorem-8", "Regret analysis, Theorem 8",
        "Σ L_{t}(w̄⋆) − Σ L_{t}(w⋆) ≤ (M/2) T ‖w⋆‖₁² δ².",
        theorem_8, "in part if only minimisers without a penalty keep it.", central=True,
    ),
    Claim(
        "remark-9", "Regret analysis, Remark 9",
        "“‖w⋆‖₁ is controlled by the regularization.”",
        remark_9,
    ),
    Claim(
        "corollary", "Appendix A, Corollary 10",
        "The error of the pairwise kernel is at most δ with probability at least 1 − 8 exp(−D²δ/2).",
        corollary,
    ),
    Claim(
        "decays", "Appendix B, number of random features",
        "Enough features: 5T log 2T for eigenvalues 1/i, T^{1/2c} log T for R²/i^{2c}, log² T for r^{i} (r > 1).",
        decays,
    ),
)  # fmt: skip
