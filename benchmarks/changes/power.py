"""How soon a fall of AUC raises an alarm, and how often there is one without a change, on simulated scores.

Each detector runs inside ``DriftWatch``, which is given the scores and labels of 128 rows at a time, as in a stream.
Those of river are custom detectors there, and receive 1 - placement of each row of the rarer class. Scores are normal
with variance 1, and of positives with the mean that gives the AUC, unless stated otherwise.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.table import Table

from changes.jobs import done
from common.script import make_table
from pairloom.base.batch import Scored
from pairloom.pairs import OppositeClass
from pairloom.stream import DriftWatch
from pairloom.stream.drift import TEST_ROWS
from pairloom.stream.hooks import ArrivalScores, RecentScores
from pairloom.stream.state import StreamState

FALLS = ((0.85, 0.65), (0.79, 0.47), (0.95, 0.85), (0.90, 0.50))
SHARES = (0.002, 0.007, 0.01, 0.05, 0.2, 0.5)
EARLY = (20, 50, 100, 300)
"""Positives before an early change, with 1 % positives."""

DETECTORS = ("pairloom", "ADWIN", "KSWIN", "PageHinkley")


@dataclass(frozen=True)
class Size:
    """``streams`` for each fall and share of positives, which change after at least so many ``rows`` and ``positives``.

    At least ``rest`` rows follow. ``still``: streams of each kind without change, of ``still_rows``; detectors of
    river, of which one is slow, receive ``river_rows`` of them.
    """

    streams: int = 20
    rows: int = 20_000
    positives: int = 300
    rest: int = 20_000
    still: int = 12
    still_rows: int = 500_000
    river_rows: int = 50_000


TOY = Size(1, 256, 40, 256, 1, 1_024, 512)

Scores = tuple[np.ndarray, np.ndarray]
"""Scores, and labels 0 and 1."""


def detector(name: str, seed: int) -> Any:
    """Return a detector of river with its defaults; None: pairloom's."""
    if name == "pairloom":
        return None
    from river import drift

    return drift.KSWIN(seed=seed) if name == "KSWIN" else getattr(drift, name)()


def alarms(watch: DriftWatch, scores: np.ndarray, labels: np.ndarray, after: int | None = None) -> list[int]:
    """Return the rows with an alarm, or those up to the first later than row ``after``.

    >>> fall = np.where(np.arange(8_000) < 4_000, 2.0, -2.0), np.ones(8_000)
    >>> labels = np.arange(8_000) % 10 == 0
    >>> noise = np.random.default_rng(0).normal(size=8_000)
    >>> alarms(DriftWatch(), noise + labels * fall[0], labels * fall[1])
    [4224]
    """
    model: Any = SimpleNamespace(n_vectors=1, pairs=OppositeClass(2), forgetting=None)
    hooks = RecentScores(), ArrivalScores()
    state = StreamState(0, 1, None, None, {hook.name: hook.init(model) for hook in hooks})
    own, zero = watch.init(model), model.pairs.targets[0]
    codes, ones = np.where(labels == 1, zero, -zero), np.ones(TEST_ROWS)
    for start in range(0, len(labels) - TEST_ROWS + 1, TEST_ROWS):
        rows = slice(start, start + TEST_ROWS)
        state.t = start + TEST_ROWS
        for hook in hooks:
            hook.see(state.observed[hook.name], Scored(state.t, scores[rows, None], codes[rows], ones))
        watch.tick(own, state, model)
        if after is not None and len(own.alarms) and own.alarms[-1] > after:
            break
    found: list[int] = own.alarms.tolist()
    return found


def apart(auc: Any) -> Any:
    """Return how far the mean of positives is from that of negatives."""
    return np.sqrt(2.0) * np.vectorize(NormalDist().inv_cdf)(auc)


def delays(name: str, fall: tuple[float, float], share: float, size: Size) -> np.ndarray:
    """Return rows and positives until the alarm, for each stream; infinite without one.

    At least as many rows follow the change as precede it.
    """
    at = int(max(size.rows, np.ceil(size.positives / share)))
    at -= at % -TEST_ROWS
    rest, (before, after), found = max(at, size.rest), apart(fall), []
    for seed in range(size.streams):
        rng = np.random.default_rng([seed, int(1e4 * share), int(1e4 * fall[0])])
        labels = rng.random(at + rest) < share
        scores = rng.normal(size=at + rest) + labels * np.repeat([before, after], [at, rest])
        row = next((row for row in alarms(DriftWatch(detector(name, seed)), scores, labels, at) if row > at), None)
        found.append((np.inf, np.inf) if row is None else (row - at, labels[at:row].sum()))
    return np.array(found)


def one_share(rng: np.random.Generator, n: int, share: Any) -> Scores:
    """AUC .9; ``share`` of positives, a number or one for each row."""
    labels = rng.random(n) < share
    return rng.normal(size=n) + apart(0.9) * labels, labels


def heavy_tails(rng: np.random.Generator, n: int) -> Scores:
    labels = rng.random(n) < 0.05
    return rng.standard_cauchy(n) + 3.0 * labels, labels


def tied(rng: np.random.Generator, n: int) -> Scores:
    scores, labels = one_share(rng, n, 0.05)
    return np.clip(np.round(scores), 0, 2), labels


def periodic(rng: np.random.Generator, n: int) -> Scores:
    return one_share(rng, n, 0.026 + 0.024 * np.sin(2.0 * np.pi * np.arange(n) / 5_000))


def grouped(rng: np.random.Generator, n: int) -> Scores:
    return one_share(rng, n, np.arange(n) % 2_000 >= 1_900)


def repeated(rng: np.random.Generator, n: int) -> Scores:
    scores, labels = one_share(rng, -(-n // 20), 0.05)
    return np.repeat(scores, 20)[:n], np.repeat(labels, 20)[:n]


def learning(rng: np.random.Generator, n: int) -> Scores:
    labels = rng.random(n) < 0.05
    auc = 0.95 - 0.4 * np.exp(-np.arange(n) / 20_000)
    steps = apart(auc[::TEST_ROWS]).repeat(TEST_ROWS)[:n]
    return rng.normal(size=n) + labels * steps, labels


def waves(rng: np.random.Generator, n: int) -> Scores:
    """Scores of positives move up and down together, for some 1,000 rows at a time."""
    scores, labels = one_share(rng, n, 0.05)
    steps = np.convolve(rng.normal(size=n // 100 + 60), np.exp(-np.arange(50) / 10.0), mode="valid")
    return scores + labels * 0.5 * steps.repeat(100)[:n] / steps.std(), labels


STILL: dict[str, Callable[[np.random.Generator, int], Scores]] = {
    "0.2 % positive": lambda rng, n: one_share(rng, n, 0.002),
    "1 % positive": lambda rng, n: one_share(rng, n, 0.01),
    "balanced classes": lambda rng, n: one_share(rng, n, 0.5),
    "heavy-tailed scores": heavy_tails,
    "three different scores": tied,
    "share of positives from 0.2 to 5 %, period 5,000 rows": periodic,
    "grouped by label, 1,900 and 100 rows": grouped,
    "each row 20 times in a row": repeated,
    "AUC rises from .55 to .95": learning,
    "AUC goes up and down, by chance": waves,
}
"""Streams that do not change, or improve; 5 % positive unless stated otherwise. The last depends on its past."""


def false_alarms(name: str, kind: str, size: Size) -> float:
    """Return the number of false alarms per million rows, on streams of one kind."""
    n = size.still_rows if name == "pairloom" else size.river_rows
    count = 0
    for seed in range(size.still):
        streams = STILL[kind](np.random.default_rng([seed, list(STILL).index(kind)]), n)
        count += len(alarms(DriftWatch(detector(name, seed)), *streams))
    return 1e6 * count / (size.still * n)


def tables(size: Size, cores: int = 1) -> Iterator[Table]:
    """Yield the tables of delays in positives and in rows, and that of false alarms."""
    jobs = [(name, fall, share, size) for share, fall, name in product(SHARES, FALLS, DETECTORS)]
    found = {job[:3]: each for job, each in zip(jobs, done(delays, jobs, cores, "power"), strict=True)}
    for place, unit in enumerate(("rows", "positives")):
        yield table_of_delays({key: each[:, place] for key, each in found.items()}, unit, size)
    yield table_of_early_changes(size, cores)
    still = [(name, kind, size) for kind, name in product(STILL, DETECTORS)]
    counts = dict(zip([job[:2] for job in still], done(false_alarms, still, cores, "false alarms"), strict=True))
    title = f"False alarms per million rows, {size.still} streams of each kind"
    table = make_table(title, ["stream"], list(DETECTORS))
    for kind in STILL:
        table.add_row(kind, *(f"{counts[name, kind]:,.1f}" for name in DETECTORS))
    table.caption = (
        f"streams of {size.still_rows:,} rows for pairloom, {size.river_rows:,} for river; at most one alarm per "
        f"{TEST_ROWS} rows is counted"
    )
    yield table


def table_of_delays(found: dict[Any, np.ndarray], unit: str, size: Size) -> Table:
    title = f"{unit} until the alarm, median and 90 % of {size.streams} streams"
    table = make_table(title, ["positives", "AUC falls"], list(DETECTORS))
    for share, fall in product(SHARES, FALLS):
        cells = (np.quantile(found[name, fall, share], (0.5, 0.9), method="higher") for name in DETECTORS)
        table.add_row(f"{100 * share:g} %", f"{fall[0]:.2f} to {fall[1]:.2f}",
                      *(f"{number(median)} ({number(most)})" for median, most in cells))  # fmt: skip
    table.caption = f"the change is after {size.positives} positives or {size.rows:,} rows, whichever is later"
    return table


def table_of_early_changes(size: Size, cores: int) -> Table:
    """Tabulate the delay of pairloom's detector where little is known before the change."""
    jobs = [("pairloom", fall, 0.01, replace(size, rows=0, positives=count)) for fall, count in product(FALLS, EARLY)]
    cells = []
    for each in done(delays, jobs, cores, "early changes"):
        found = np.isfinite(each[:, 1])
        median = f"{np.median(each[found, 1]):,.0f}" if found.any() else ""
        cells.append(f"{median} ({found.mean():.0%})")
    title = "positives until the alarm, median of the streams in which it is found, and their share"
    table = make_table(title, ["AUC falls"], [f"after {count} positives" for count in EARLY])
    for k, fall in enumerate(FALLS):
        table.add_row(f"{fall[0]:.2f} to {fall[1]:.2f}", *cells[k * len(EARLY) : (k + 1) * len(EARLY)])
    table.caption = f"{size.streams} streams, 1 % positives; {size.rest:,} rows follow the change"
    return table


def number(delay: float) -> str:
    return f"{delay:,.0f}" if np.isfinite(delay) else "never"
