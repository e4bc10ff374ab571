"""Claims on regret and on the variance of gradients along a run."""

from functools import lru_cache
from math import log
from random import Random

from pairloom.experiments.reproduce.report.claims.base import Claim, Finding, Verdict, untested
from pairloom.experiments.reproduce.report.wording import count, listed, number
from pairloom.experiments.reproduce.results import Results

NO_REGRET = "These experiments do not measure regret."
NO_VARIANCE = "These experiments do not compare the variance of the buffers of different systems."


@lru_cache
def full_history(n_rows: int, step: float, seed: int = 0) -> tuple[float, float, float]:
    """Regret of w_{t-1} and of w_t, and the bound of Theorem 5, where gradients use the whole history: no variance.

    Negatives are at 0, positives at +1 or -1 by lot, the loss is the square. All L_t are a + b w + c w^2, so nothing
    is approximated.
    """
    rng = Random(seed)
    w = before = after = 0.0
    n_negative, positives = 0, [0, 0]
    total = [0.0, 0.0, 0.0]
    for t in range(1, n_rows + 1):
        positive, right = rng.random() < 0.5, rng.random() < 0.5
        side = 1.0 if right else -1.0
        if positive:
            pairs, tilt = n_negative, side * n_negative
        else:
            pairs, tilt = sum(positives), float(positives[1] - positives[0])
        if t > 1:
            loss = [pairs / (t - 1), -2 * tilt / (t - 1), pairs / (t - 1)]
            before += _value(loss, w)
            w -= step * (loss[1] + 2 * loss[2] * w)
            after += _value(loss, w)
            total = [one + more for one, more in zip(total, loss, strict=True)]
        n_negative += not positive
        positives[right] += positive
    best = -total[1] / (2 * total[2])
    least = _value(total, best)
    return before - least, after - least, best**2 / (2 * step)


def _value(loss: list[float], w: float) -> float:
    return loss[0] + loss[1] * w + loss[2] * w * w


def theorem_5(_: Results) -> Finding:
    """A stream on which the theorem's left side is larger than its right side."""
    n_rows = 10_000
    before, after, bound = full_history(n_rows, step=0.1)
    text = (
        "The proof bounds Σ L_{t}(w_{t}), the loss after the step; the statement and the definition of regret "
        "have L_{t}(w_{t−1}). With gradients over the whole history, so V = 0, on a stream with negatives at 0 "
        f"and positives at ±1 by lot (square loss, T = {count(n_rows)}, η = 0.1 < 1/M = 1/2): regret {before:.1f} "
        f"with w_{{t−1}}, {number(round(after, 1))} with w_{{t}}, and a bound of {number(bound)}."
    )
    return Finding(text, Verdict.FAILS if before > bound else Verdict.HOLDS)


def log_regret(_: Results) -> Finding:
    """The same stream with the step of the remark."""
    regrets = {n_rows: full_history(n_rows, step=1 / log(n_rows))[0] for n_rows in (1_000, 10_000, 100_000)}
    told = listed([f"{count(regret)} at T = {count(rows)}" for rows, regret in regrets.items()])
    growth = log(regrets[100_000] / regrets[1_000]) / log(100)
    text = (
        f"It rests on the same gap. On the stream of Theorem 5 with V = 0 and η = 1/ln T the regret is {told}: it "
        f"grows as T to the power {growth:.2f}, not as ln T, which goes from {log(1_000):.1f} to {log(100_000):.1f}."
    )
    return Finding(text, Verdict.FAILS if growth > 0.5 else Verdict.HOLDS)


CLAIMS = (
    Claim(
        "sublinear", "Abstract",
        "FPOGD “extends to kernel online pairwise learning while improving the sublinear regret”.",
        untested(NO_REGRET),
    ),
    Claim(
        "improved-bound", "Abstract",
        "“The variance-reduced online gradients lead to an improved sublinear regret bound.”",
        untested(f"{NO_REGRET} On the bound itself see Theorem 5 and the certificate of Appendix A."),
    ),
    Claim(
        "sublinear-buffer", "Introduction, contribution 1",
        "“Our algorithm achieves sublinear regret with a buffer size of O(s).”",
        untested(NO_REGRET),
    ),
    Claim(
        "control", "Introduction, contribution 2",
        "“We address variance impact on regret and propose online stratified sampling to control and improve the "
        "regret rate.”",
        untested(NO_REGRET),
    ),
    Claim(
        "lemma-2", "Problem setting, Lemma 2",
        "Regret is at most ‖w̄⋆‖²/(2η) + (η/2) Σ (V(u_{t}) + ‖E u_{t}‖²) for a buffer drawn uniformly and "
        "independently.",
        untested(f"{NO_REGRET} The argument is the standard one; in a run the buffer is not independent of w."),
    ),
    Claim(
        "variance-and-regret", "Problem setting, Lemma 2",
        "“Reducing the variance of the stochastic gradient can improve the regret of buffer online pairwise "
        "learning.”",
        untested(NO_REGRET),
    ),
    Claim(
        "log-regret", "Regret analysis, Remark 4",
        "“If V(u_{t}) = 0 for all t's, then it's possible to have log(T) regret by choosing η = 1/log(T).”",
        log_regret, "does not hold if the regret grows faster than √T where V = 0.",
    ),
    Claim(
        "theorem-5", "Regret analysis, Theorem 5",
        "Σ L_{t}(w_{t−1}) − Σ L_{t}(w̄⋆) ≤ ‖w̄⋆‖²/(2η) + η Σ V(u_{t}) for η ≤ 1/M.",
        theorem_5, "does not hold if a stream breaks it.",
    ),
    Claim(
        "independence", "Regret analysis, randomized buffer update",
        "“The bound in theorem 5 holds with the assumption of model-buffer independence.”",
        untested(f"{NO_REGRET} The model is trained on what the buffer holds, so the assumption is not met."),
    ),
    Claim(
        "regret-figures", "Experiments, Figures 2 and 5",
        "“Our approach exhibits stronger sublinear regret in the non-i.i.d. setting compared to other algorithms.”",
        untested(NO_REGRET),
    ),
    Claim(
        "variance-figures", "Experiments, Figures 2 and 4",
        "With a buffer of size 4, FPOGD has the lowest variance of gradients of the buffer algorithms.",
        untested(NO_VARIANCE),
    ),
    Claim(
        "coupling", "Appendix A, after the proof of Theorem 5",
        "The coupling of model and buffer has a minimal impact, and a buffer of at least log T is needed because of "
        "it.",
        untested(NO_REGRET),
    ),
    Claim(
        "robustness", "Appendix B, additional data sets",
        "The figures show “the stability of our algorithm” and its “adaptability and robustness … across different "
        "data distribution scenarios”.",
        untested(f"{NO_REGRET} {NO_VARIANCE}"),
    ),
)  # fmt: skip
