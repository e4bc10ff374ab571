"""Claims on the bounds of regret."""

from functools import lru_cache
from math import log
from random import Random

import numpy as np

from reproduction.buffers import CONTROLS, FIFO, FRESH, QUEUE
from reproduction.report.buffers import LONG, Run, Stream, horizons, long_streams
from reproduction.report.claims.base import FEWEST_SETS, Claim, Finding, Verdict, graded, too_few
from reproduction.report.claims.regret import TIE, against_best, below, relative, sets_of, spread
from reproduction.report.regret import growth
from reproduction.report.wording import count, interval, listed, number, of, span
from reproduction.results import Results


@lru_cache
def full_history(n_rows: int, step: float, seed: int = 0) -> tuple[float, float, float]:
    """Return the regret of w_{t-1} and of w_t, and the bound of Theorem 5, with gradients over the whole history.

    So V = 0. Negatives are at 0, positives at +1 or -1 at random, with the square loss. All L_t are a + b w + c w^2, so
    the computation is exact.
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


def bounded_runs(results: Results) -> dict[tuple[Stream, str], Run]:
    """Return the runs of long streams that have bounds."""
    return {(stream, system): run for stream, runs in long_streams(results).items() for system, run in runs.items()
            if all("bound" in one and "bound_after" in one for one in run.curve)}  # fmt: skip


def broken(run: Run, regret: str, bound: str) -> bool:
    """Return whether a regret is above a bound at any row of a curve."""
    return any(one[regret] > one[bound] for one in run.curve)


def lemma_2(results: Results) -> Finding:
    """The lemma along every run, with the errors of its gradients as the variance."""
    runs = bounded_runs(results)
    fresh = {stream: run for (stream, system), run in runs.items() if system == FRESH}
    sets = sets_of(fresh)
    if len(sets) < FEWEST_SETS:
        return too_few(results, "regret", sets)
    wrong = sum(broken(run, "before", "bound") for run in fresh.values())
    kept = [run for (_, system), run in runs.items() if system not in CONTROLS]
    above = sum(broken(run, "before", "bound") for run in kept)
    tight = float(np.median([run.final("bound") / run.final("before") for run in fresh.values()]))
    text = (
        f"With a run's squared errors for V, R_{{t}} is above the bound at some row in {wrong or 'none'} of "
        f"{len(fresh)} runs with fresh draws, independent of w, and in {above or 'none'} of {len(kept)} with a buffer. "
        f"With the weights that minimise it, it is {tight:.2f} times R_{{T}} in the median"
    )
    printed = [run.whole["lemma"] / run.final("before") for run in fresh.values() if "lemma" in run.whole]
    text += f", with w̄⋆ itself {number(float(np.median(printed)))} times." if printed else "."
    return Finding(text, graded(not wrong, 10 * wrong <= len(fresh)))


def improved_bound(results: Results) -> Finding:
    """The algorithm whose errors give the smallest bound."""
    found = long_streams(results, FIFO)
    ratios = against_best(found, "bound_after")
    if len(ratios) < FEWEST_SETS:
        return too_few(results, "regret", ratios)
    lower = below(ratios, 1 - TIE)
    higher = [name for name, ratio in ratios.items() if ratio > 1 + TIE]
    shares = [_variance_share(runs[FIFO]) for runs in found.values()]
    queue = relative(found, FIFO, QUEUE, "bound_after")
    text = (
        f"With the measured errors for V and the weights that minimise it, FIFO's is {spread(ratios)} times the "
        f"lowest of the paper's other buffers, lower by more than 1 % on {of(lower, len(ratios))}, higher on "
        f"{len(higher)}"
        + (f"; {spread(queue)} times that of as many newest rows" if queue else "")
        + f". The term of V is {span([100 * share for share in shares], lambda one: f'{one:.1f}')} % of it."
    )
    half = len(ratios) / 2
    return Finding(text, graded(len(lower) > half, len(higher) <= half))


def _variance_share(run: Run) -> float:
    """Return the share of the variance's term in the bound of the theorem."""
    return run.eta * float(run.whole.get("error", 0.0)) * float(run.curve[-1]["row"]) / run.final("bound_after")


def independence(results: Results) -> Finding:
    """Fresh draws, which are independent of w, and buffers, which are not."""
    runs = bounded_runs(results)
    fresh = {stream: run for (stream, system), run in runs.items() if system == FRESH}
    kept = [run for (_, system), run in runs.items() if system not in CONTROLS]
    sets = sets_of(fresh)
    if len(sets) < FEWEST_SETS or not kept:
        return too_few(results, "regret", sets)
    after, coupled = (sum(broken(run, "after", "bound_after") for run in some) for some in (fresh.values(), kept))
    text = (
        "With fresh draws, independent of w, the loss after the step, which the proof bounds, is above the bound in "
        f"{after or 'none'} of {len(fresh)} runs. But on the stream of Theorem 5, with no draws at all, the loss "
        f"before the step is. With buffers the former is in {coupled or 'none'} of {len(kept)}."
    )
    return Finding(text, graded(False, not after))


def theorem_5(_: Results) -> Finding:
    """A stream on which the theorem's left side is larger than its right side."""
    n_rows = 10_000
    before, after, bound = full_history(n_rows, step=0.1)
    text = (
        "The proof bounds Σ L_{t}(w_{t}), the loss after the step. With gradients over the whole history, so V = 0, "
        f"negatives at 0, positives at ±1 at random, T = {count(n_rows)} and η = 0.1, the bound is {number(bound)}, "
        f"the regret {before:.1f} with w_{{t−1}} and {number(round(after, 1))} with w_{{t}}. With a buffer V > 0."
    )
    return Finding(text, Verdict.FAILS if before > bound else Verdict.HOLDS)


def log_regret(results: Results) -> Finding:
    """The same stream with the step of the remark, and real ones."""
    both = {n_rows: full_history(n_rows, step=1 / log(n_rows)) for n_rows in (1_000, 10_000, 100_000)}
    regrets = {n_rows: before for n_rows, (before, *_) in both.items()}
    power = log(regrets[100_000] / regrets[1_000]) / log(100)
    text = (
        "On the stream of Theorem 5, with gradients over the whole history, so V = 0, and η = 1/ln T, the regret grows "
        f"as T to the power {power:.2f}, where ln T itself has {_power_of_log(min(regrets), max(regrets)):.2f}. With "
        f"the loss after the step, which the proof of Theorem 5 bounds, it is {number(both[100_000][1])} at T = "
        "100,000."
    )
    real = {name: ends for name, ends in horizons(results).items() if min(ends) >= LONG}
    fitted = {name: found for name, ends in real.items() if (found := growth(ends)) is not None}
    if fitted:
        text += f" On real streams: {listed([f'{name} {interval(*found)}' for name, found in fitted.items()])}."
    return Finding(text, Verdict.FAILS if power > 0.5 else Verdict.HOLDS)


def _power_of_log(first: int, last: int) -> float:
    """Return the power of T with which ln T grows between two T."""
    return log(log(last) / log(first)) / log(last / first)


CLAIMS = (
    Claim(
        "improved-bound", "Abstract",
        "“… the variance-reduced online gradients lead to an improved sublinear regret bound.”",
        improved_bound,
        "holds if lower by more than 1 % on most sets; does not if higher by more than 1 % on most.",
        "figure-regret-after", central=True,
    ),
    Claim(
        "lemma-2", "Problem setting, Lemma 2",
        "Regret is at most ‖w̄⋆‖²/(2η) + (η/2) Σ (V(u_{t}) + ‖E u_{t}‖²) if the buffer is drawn “uniformly and "
        "independently”.",
        lemma_2, "holds if no run with fresh draws is above it, in part if at most one in ten.",
        "figure-regret", central=True,
    ),
    Claim(
        "log-regret", "Regret analysis, Remark 4",
        "“… if V(u_{t}) = 0 for all t's, then it's possible to have log(T) regret …”",
        log_regret, "does not hold if a stream's regret grows faster than √T.", "regret",
    ),
    Claim(
        "theorem-5", "Regret analysis, Theorem 5",
        "Σ L_{t}(w_{t−1}) − Σ L_{t}(w̄⋆) ≤ ‖w̄⋆‖²/(2η) + η Σ V(u_{t}) for η ≤ 1/M.",
        theorem_5, "does not hold if a stream breaks it.", "figure-regret-after", central=True,
    ),
    Claim(
        "independence", "Regret analysis, randomized buffer update",
        "“… the bound in theorem 5 holds with the assumption of model-buffer independence …”",
        independence,
        "in part if all runs with fresh draws keep the bound after the step.",
        "figure-regret-after",
    ),
)  # fmt: skip
