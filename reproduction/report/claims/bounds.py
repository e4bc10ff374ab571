"""Claims on the bounds of regret."""

from functools import lru_cache
from math import log
from random import Random

import numpy as np

from reproduction.buffers import CONTROLS, FIFO, FRESH, RIVALS
from reproduction.report.buffers import LONG, Run, Stream, horizons, long_streams
from reproduction.report.claims.base import Claim, Finding, Verdict, graded, too_short
from reproduction.report.regret import growth
from reproduction.report.wording import count, interval, listed, number
from reproduction.results import Results


@lru_cache
def full_history(n_rows: int, step: float, seed: int = 0) -> tuple[float, float, float]:
    """Regret of w_{t-1} and of w_t, and the bound of Theorem 5, with gradients over the whole history: no variance.

    Negatives are at 0, positives at +1 or -1 at random, with the square loss. All L_t are a + b w + c w^2, so the
    computation is exact.
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
    """The runs of long streams that have bounds."""
    return {(stream, system): run for stream, runs in long_streams(results).items() for system, run in runs.items()
            if all("bound" in one and "bound_after" in one for one in run.curve)}  # fmt: skip


def broken(run: Run, regret: str, bound: str) -> bool:
    """Whether a regret is above a bound at any row of a curve."""
    return any(one[regret] > one[bound] for one in run.curve)


def lemma_2(results: Results) -> Finding:
    """The lemma along every run, with the errors of its gradients as the variance."""
    runs = bounded_runs(results)
    fresh = [run for (_, system), run in runs.items() if system == FRESH]
    if not fresh:
        return too_short(results, "regret")
    wrong = sum(broken(run, "before", "bound") for run in fresh)
    above = [key for key, run in runs.items() if key[1] not in CONTROLS and broken(run, "before", "bound")]
    kept = sum(system not in CONTROLS for _, system in runs)
    tight = float(np.median([run.final("before") / run.final("bound") for run in fresh]))
    printed = [run.whole["lemma"] / run.final("before") for run in fresh if "lemma" in run.whole]
    text = (
        "The argument is the standard one. With the squared errors of the run's gradients for V, R_{t} is above the "
        f"bound at some row in {wrong} of {len(fresh)} runs with fresh draws for each row, which are independent "
        f"of w. Those of a buffer are not: there it is in {len(above)} of {kept} runs"
        + (f" ({listed(_where(above))})" if above else "")
        + ". The bound holds for all weights instead of w̄⋆; with those that minimise it, R_{T} is "
        f"{tight:.2f} of it with fresh draws, in the median."
    )
    if printed:
        times = number(float(np.median(printed)))
        text += f" With w̄⋆ itself, whose norm is large, the bound is {times} times R_{{T}} in the median."
    return Finding(text, graded(not wrong, 10 * wrong <= len(fresh)))


def _where(keys: list[tuple[Stream, str]]) -> list[str]:
    """The algorithms of some runs, with the number of their runs."""
    systems = [system for _, system in keys]
    return [f"{systems.count(system)} of {system}" for system in dict.fromkeys(systems)]


def improved_bound(results: Results) -> Finding:
    """The algorithm whose errors give the smallest bound."""
    found = long_streams(results, FIFO)
    ends = [{system: run.final("bound_after") for system, run in runs.items()} for runs in found.values()]
    ends = [{system: bound for system, bound in one.items() if bound == bound} for one in ends]
    if not all(FIFO in one and set(RIVALS) & set(one) for one in ends) or not ends:
        return too_short(results, "regret")
    least = [one for one in ends if all(one[FIFO] < one[rival] for rival in RIVALS if rival in one)]
    shares = [_variance_share(runs[FIFO]) for runs in found.values()]
    text = (
        "Theorem 5's bound with the errors of each algorithm's gradients for V, at the weights that minimise it: "
        f"that of FPOGD with FIFO is below those of the other buffers on {len(least)} of {len(found)} streams. Its "
        f"term of variance is {100 * min(shares):.1f} to {100 * max(shares):.1f} % of it. In these bounds less "
        "variance makes the constant smaller, not the exponent."
    )
    return Finding(text, graded(len(least) == len(found), 2 * len(least) > len(found)))


def _variance_share(run: Run) -> float:
    """The share of the variance's term in the bound of the theorem."""
    return run.eta * float(run.whole.get("error", 0.0)) * float(run.curve[-1]["row"]) / run.final("bound_after")


def independence(results: Results) -> Finding:
    """Fresh draws, which are independent of w, and buffers, which are not."""
    runs = bounded_runs(results)
    fresh = [run for (_, system), run in runs.items() if system == FRESH]
    kept = [run for (_, system), run in runs.items() if system in RIVALS or system.startswith("FPOGD")]
    if not fresh or not kept:
        return too_short(results, "regret")
    after, before, coupled = (
        sum(broken(run, regret, "bound_after") for run in some)
        for some, regret in ((fresh, "after"), (fresh, "before"), (kept, "after"))
    )
    text = (
        "The model is trained on what a buffer holds, so that the assumption is not met in a run. Fresh draws for "
        f"each row do meet it: there Σ L_{{t}}(w_{{t}}), of which the proof speaks, is above the bound in {after} of "
        f"{len(fresh)} runs, and Σ L_{{t}}(w_{{t−1}}), of which the theorem does, in {before}; on the stream of "
        f"Theorem 5 it is. Of buffers, the former is above it in {coupled} of {len(kept)} runs."
    )
    return Finding(text, graded(False, after == 0))


def theorem_5(results: Results) -> Finding:
    """A stream on which the theorem's left side is larger than its right side."""
    n_rows = 10_000
    before, after, bound = full_history(n_rows, step=0.1)
    text = (
        "The proof bounds Σ L_{t}(w_{t}), the loss after the step; the statement and the definition of regret "
        "have L_{t}(w_{t−1}). With gradients over the whole history, so V = 0, on a stream with negatives at 0 "
        f"and positives at ±1 at random (square loss, T = {count(n_rows)}, η = 0.1 < 1/M = 1/2): regret {before:.1f} "
        f"with w_{{t−1}}, {number(round(after, 1))} with w_{{t}}, and a bound of {number(bound)}."
    )
    runs = bounded_runs(results)
    if runs:
        counts = [sum(broken(run, regret, "bound_after") for run in runs.values()) for regret in ("before", "after")]
        text += (
            f" On the streams of the figure the regret with w_{{t−1}} is above the bound at some row in {counts[0]} of "
            f"{len(runs)} runs, that with w_{{t}} in {counts[1]}."
        )
    return Finding(text, Verdict.FAILS if before > bound else Verdict.HOLDS)


def log_regret(results: Results) -> Finding:
    """The same stream with the step of the remark, and real ones."""
    regrets = {n_rows: full_history(n_rows, step=1 / log(n_rows))[0] for n_rows in (1_000, 10_000, 100_000)}
    shown = listed([f"{count(regret)} at T = {count(rows)}" for rows, regret in regrets.items()])
    power = log(regrets[100_000] / regrets[1_000]) / log(100)
    text = (
        f"It rests on the same gap. On the stream of Theorem 5 with V = 0 and η = 1/ln T the regret is {shown}: it "
        f"grows as T to the power {power:.2f}, not as ln T, which goes from {log(1_000):.1f} to {log(100_000):.1f}."
    )
    real = {name: ends for name, ends in horizons(results).items() if min(ends) >= LONG}
    fitted = {name: found for name, ends in real.items() if (found := growth(ends)) is not None}
    if fitted:
        shown = listed([f"{name} {interval(*found)}" for name, found in fitted.items()])
        first, last = (end(T for name in fitted for T in real[name]) for end in (min, max))
        logarithm = log(log(last) / log(first)) / log(last / first)
        text += f" On real streams the power is: {shown}; that of ln T itself would be {logarithm:.2f}."
    return Finding(text, Verdict.FAILS if power > 0.5 else Verdict.HOLDS)


CLAIMS = (
    Claim(
        "improved-bound", "Abstract",
        "“The variance-reduced online gradients lead to an improved sublinear regret bound.”",
        improved_bound,
        "holds if the bound with FPOGD's errors is the least of all buffers on every stream, in part if on most.",
        "figure-regret-after",
    ),
    Claim(
        "lemma-2", "Problem setting, Lemma 2",
        "Regret is at most ‖w̄⋆‖²/(2η) + (η/2) Σ (V(u_{t}) + ‖E u_{t}‖²) for a buffer drawn uniformly and "
        "independently.",
        lemma_2, "holds if no run with fresh draws is above it at any row, in part if at most one in ten is.",
        "figure-regret",
    ),
    Claim(
        "log-regret", "Regret analysis, Remark 4",
        "“If V(u_{t}) = 0 for all t's, then it's possible to have log(T) regret by choosing η = 1/log(T).”",
        log_regret, "does not hold if the regret of a stream grows faster than √T where V = 0.", "regret",
    ),
    Claim(
        "theorem-5", "Regret analysis, Theorem 5",
        "Σ L_{t}(w_{t−1}) − Σ L_{t}(w̄⋆) ≤ ‖w̄⋆‖²/(2η) + η Σ V(u_{t}) for η ≤ 1/M.",
        theorem_5, "does not hold if a stream breaks it.", "figure-regret-after",
    ),
    Claim(
        "independence", "Regret analysis, randomized buffer update",
        "“The bound in theorem 5 holds with the assumption of model-buffer independence.”",
        independence,
        "in part if the loss after the step keeps the bound in all runs with fresh draws: that before it need not.",
        "figure-regret-after",
    ),
)  # fmt: skip
