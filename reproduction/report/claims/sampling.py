"""Claims on the theory of strata and their variance, each with a small computation."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np

from reproduction.report.buffers import averaged, certificates
from reproduction.report.claims.base import Claim, Finding, Verdict, argued, graded
from reproduction.report.measured import by_dataset
from reproduction.report.wording import listed, number, span
from reproduction.results import Results


def stratified(sizes: Sequence[int], variances: Sequence[float]) -> float:
    """Return the variance of the mean from one uniform draw of each stratum: sum of (n_j/N)^2 Var_j."""
    total = sum(sizes)
    return sum((size / total) ** 2 * variance for size, variance in zip(sizes, variances, strict=True))


def uniform(sizes: Sequence[int], variances: Sequence[float], n_draws: int) -> float:
    """Return the variance of the mean from uniform draws, if the strata have equal means."""
    total = sum(sizes)
    return sum(size / total * variance for size, variance in zip(sizes, variances, strict=True)) / n_draws


def certificate(results: Results) -> Finding:
    """Strata of sizes (97, 1, 1, 1), and those of real streams."""
    sizes, variances = (97, 1, 1, 1), (1.0, 0.0, 0.0, 0.0)
    strata, draws = stratified(sizes, variances), uniform(sizes, variances, len(sizes))
    text = (
        "The proof takes Σ (n_{j}/N) Var_{j}/κ for the variance Σ (n_{j}/N)² Var_{j}: the same only for equal sizes. "
        f"With sizes (97, 1, 1, 1) and all variance in the first, strata have {strata / draws:.1f} times the variance "
        "of uniform draws."
    )
    proofs = by_dataset(certificates(results))
    if proofs:
        shares = [averaged(records, "above") for records in proofs.values()]
        times = [averaged(records, "stratified") / averaged(records, "uniform") for records in proofs.values()]
        text += (
            f" On {listed(list(proofs))} it is larger in {span(shares, lambda one: f'{100 * one:.0f}')} % of rows, "
            f"{span(times, number)} times on average."
        )
    return Finding(text, graded(strata <= draws, False))


def equal_strata(_: Results) -> Finding:
    """Strata of equal size."""
    sizes, variances = (25, 25, 25, 25), (1.0, 2.0, 3.0, 4.0)
    strata, draws = stratified(sizes, variances), uniform(sizes, variances, 4)
    one_each = stratified((1,) * 8, (0.0,) * 8)
    text = (
        f"Four equal strata with variances 1 to 4 and equal means have {strata:.4g}, four uniform draws {draws:.4g}. "
        f"But with one stratum for each example the variance is {one_each:g}: more than a factor of t − 1."
    )
    return Finding(text, graded(False, abs(strata - draws) < 1e-12))


def reservoir(_: Results) -> Finding:
    """The distribution of the member that the slot of a stratum holds, by counting."""
    laws = {n: _kept(n) for n in range(1, 9)}
    even = all(share == Fraction(1, n) for n, law in laws.items() for share in law)
    text = (
        "The opposite is meant, and true: with this probability the slot is exactly uniform over the stratum, as "
        f"counted for 1 to {max(laws)} members."
    )
    return Finding(text, Verdict.MISPRINT if even else Verdict.HOLDS)


def _kept(n: int) -> list[Fraction]:
    """Return the probability of each of n members to be in the slot at the end."""
    law: list[Fraction] = []
    for k in range(1, n + 1):
        law = [share * (1 - Fraction(1, k)) for share in law] + [Fraction(1, k)]
    return law


def unbiased(_: Results) -> Finding:
    """The gradient of two strata at a fixed w: the mean over all draws, and with the newest members."""
    strata = ((0.0, 1.0, 5.0), (2.0, 4.0))
    members = [one for stratum in strata for one in stratum]
    total = len(members)
    full = float(np.mean([_gradient(0.3, one) for one in members]))
    draws = [sum(len(stratum) / total * _gradient(0.3, one) for stratum, one in zip(strata, chosen, strict=True))
             for chosen in product(*strata)]  # fmt: skip
    newest = sum(len(stratum) / total * _gradient(0.3, stratum[-1]) for stratum in strata)
    expected = float(np.mean(draws))
    text = (
        "With reservoirs and a fixed w it is: for five points in two strata the mean over draws is "
        f"{number(expected)}, the full gradient {number(full)}. FIFO gives {number(newest)} every time, and w depends "
        "on the kept rows."
    )
    return Finding(text, graded(False, abs(expected - full) < 1e-12))


def _gradient(w: float, partner: float, x: float = 3.0) -> float:
    """Return the gradient of (1 - w (x - partner))^2 in w."""
    return -2 * (1 - w * (x - partner)) * (x - partner)


def lemma_1(_: Results) -> Finding:
    """Two examples at the same point with different labels."""
    gradients = [_gradient(0.0, 1.0), 0.0]
    variance = float(np.var(gradients))
    text = (
        "The proof keeps the label fixed. For AUC, with past examples of both labels at one x, the right side is 0, "
        f"the variance {variance:g}. In strata of one class it holds, with M the Lipschitz constant in x, which grows "
        "with ‖w‖."
    )
    return Finding(text, graded(False, variance > 0))


def smoothness(_: Results) -> Finding:
    """The Lipschitz constant in x of the square loss's gradient."""
    slopes = {
        w: max(abs(_gradient(w, x + 1e-6) - _gradient(w, x)) / 1e-6 for x in np.linspace(-1, 1, 41))
        for w in (1.0, 10.0, 100.0)
    }
    shown = listed([number(round(slope, 1)) for slope in slopes.values()])
    text = (
        f"Only for bounded ‖w‖: in one dimension, |x| ≤ 1 and z_{{t}} = 3, its gradient has the Lipschitz constant "
        f"{shown} in x for w = {listed([f'{w:g}' for w in slopes])}."
    )
    return Finding(text, graded(False, slopes[100.0] > slopes[1.0]))


def balls(_: Results) -> Finding:
    """Whether members stay near a moving centroid."""
    members = [0.0]
    for point in (0.9, 1.4, 1.7, 1.95):
        if (point - np.mean(members)) ** 2 <= 1.0:
            members.append(point)
    away = abs(members[0] - float(np.mean(members)))
    text = (
        f"Centroids move: {listed([f'{one:g}' for one in members])} join one stratum in turn with ε = 1, and its "
        f"centroid is then {away:.2f} from the first. And FIFO's sample is not uniform."
    )
    return Finding(text, graded(False, away > 1))


def centroid(_: Results) -> Finding:
    """The weight of the first member of a stratum in its centroid."""
    n_members, step = 20, 0.05
    constant = mean = 1.0
    for n in range(2, n_members + 1):
        constant *= 1 - step
        mean *= 1 - 1 / n
    text = (
        f"For η_{{c}} = 1/n, which is not stated: the first of {n_members} members then has {100 * mean:.0f} % of the "
        f"weight. With the constant {step} of the released code it has {100 * constant:.0f} %."
    )
    return Finding(text, graded(False, abs(mean * n_members - 1) < 1e-9))


def bound_on_strata(_: Results) -> Finding:
    """Three points on a line."""
    radius, eps = 1.0, 0.9
    points = (-1.0, 0.0, 1.0)
    apart = min(abs(a - b) for a in points for b in points if a != b) > eps
    printed = ceil(radius / eps)
    text = (
        f"−1, 0 and 1 lie in a ball of R = 1, farther than ε = {eps} apart: {len(points)} strata, above {printed}. "
        f"(1 + 2R/ε)^{{d}}, here {1 + 2 * radius / eps:.2f}, is right, for centroids that do not move."
    )
    return Finding(text, Verdict.FAILS if apart and len(points) > printed else Verdict.HOLDS)


def rare_updates(_: Results) -> Finding:
    """How often a slot changes."""
    late, early = (sum(1 / t for t in range(first + 1, 2 * first + 1)) for first in (10_000, 1_000))
    text = (
        f"A slot is replaced {late:.2f} times in rows 10,001 to 20,000, as in 1,001 to 2,000 ({early:.2f}): rarer, but "
        "the sample stays uniform over the past."
    )
    return Finding(text, graded(False, abs(late - early) < 0.01))


CLAIMS = (
    Claim(
        "assumptions", "Problem setting, assumptions",
        "The assumptions “encompass commonly used loss functions such as squared loss”.",
        smoothness,
    ),
    Claim(
        "lemma-1", "Problem setting, Lemma 1",
        "V(u_{t}) ≤ M² E‖x_{i} − E x_{i}‖² for an example drawn uniformly from the past.",
        lemma_1, central=True,
    ),
    Claim(
        "balls", "Method, online stratified sampling",
        "“… balls of radius ε, and ensures that each ball is represented by a uniform sample …”",
        balls,
    ),
    Claim(
        "unbiased", "Method, online stratified sampling",
        "“Note that the gradient mentioned above is unbiased …”",
        unbiased,
    ),
    Claim(
        "centroid", "Method, the algorithm",
        "The update c ← c + η_{c} (z_{t} − c) minimises the upper bound of the variance.",
        centroid,
    ),
    Claim(
        "equivalences", "Regret analysis, Remark 6",
        "“For … ε ≥ R the algorithm is equivalent to [Yang et al. 2021] and if ε ≤ R/T … [Boissier et al. 2016].”",
        argued(
            "Only with one clustering for both classes and FIFO. And the box compares squared distances: two points at "
            "distance R = 2 make two strata; with T = 3, two of 0, 0.1 and 1 share one.",
            Verdict.IN_PART,
        ),
    ),
    Claim(
        "bound-on-strata", "Regret analysis, Remark 7",
        "The number of clusters is at most min{t − 1, ⌈(R/ε)^{d}⌉} in a ball of radius R.",
        bound_on_strata,
    ),
    Claim(
        "reservoir", "Regret analysis, randomized buffer update",
        "“… with a probability of 1/|C_{j}|, which makes it challenging to establish a uniform distribution …”",
        reservoir,
    ),
    Claim(
        "rare-updates", "Related work",
        "“… buffer-based loss becomes less informative as buffer updates become increasingly rare …”",
        rare_updates,
    ),
    Claim(
        "certificate", "Appendix A, certificate of variance reduction",
        "V(u_{t}) ≥ V(û_{t}): strata never have a larger variance than as many uniform draws.",
        certificate, "does not hold if any strata break it.", "variance", central=True,
    ),
    Claim(
        "equal-strata", "Appendix A, certificate of variance reduction",
        "“… the bound becomes 1/κ_{t} … the maximum reduction in variance is (t − 1) …”",
        equal_strata,
    ),
)  # fmt: skip
