"""`pairloom systems`: the paper's Table 1 for all systems: properties, cost, and speed on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pairloom import systems
from pairloom.base.typing import Array
from pairloom.estimators.classifier import PairwiseClassifier

N_FEATURES, BATCH_ROWS = 123, 512
N_ROWS = {"online": 20_480, "offline": 2_048}
MAX_SECONDS = 0.5
"""Slower systems are measured on fewer rows."""

COLUMNS = ("system", "problem", "model", "scheme", "half-life", "variance reduction", "time", "space", "reference")
MEASURED = ("examples/s", "bytes")

NOTE = f"""\
Time per example and space of the model, true costs (the paper counts gradients only, and OPAUC's space as O(d)): \
d input columns, D features (d in linear mode), s kept examples, t examples so far, r rank, n rows in all.
Half-life: whether half_life= is supported with default parameters.
Variance reduction: how the gradient improves on that of a sample of past pairs; "exact": no sampling.
Speed: {N_FEATURES} columns, float32, default parameters, batches of {BATCH_ROWS} rows after the first two, for \
half a second; offline systems fit {N_ROWS["offline"]:,} rows. Bytes: all arrays of the model, including 98,304 for \
calibration."""


@dataclass(frozen=True)
class System:
    """A system, or one published variant of it."""

    name: str
    model: PairwiseClassifier

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of ``COLUMNS``."""
        card = self.model.card
        scheme = card.scheme if card.memory == "bounded" else f"{card.scheme}, grows"
        forgets = card.scheme == "online" and self.model.to_model().forgetting is not None
        return (
            self.name, card.problem, card.model, scheme, "yes" if forgets else "no", card.variance_reduction,
            f"O({card.time})", f"O({card.space})", card.reference,
        )  # fmt: skip


def all_systems() -> list[System]:
    """Return all published variants of all systems."""
    found = []
    for name in sorted(systems.__all__, key=str.lower):
        kind = getattr(systems, name)
        found += [System(name + suffix, kind(random_state=0, **kind.variants[suffix])) for suffix in kind.variants]
    return found


def stream(n: int) -> tuple[Array, Array]:
    """Generate rows of norm about 1, with a rare class that a linear model can learn."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, N_FEATURES)) / np.sqrt(N_FEATURES)).astype(np.float32)
    return X, np.where(X[:, :20].sum(axis=1) + 0.1 * rng.normal(size=n) > 0.5, 1, -1)


def batches(X: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    """Yield batches of rows in order."""
    for start in range(0, len(y), BATCH_ROWS):
        yield X[start : start + BATCH_ROWS], y[start : start + BATCH_ROWS]


def measure(model: Any) -> tuple[float, int]:
    """Return examples per second, and the bytes of the model."""
    X, y = stream(N_ROWS[model.card.scheme])
    if model.card.scheme == "offline":
        model.fit(X[:BATCH_ROWS], y[:BATCH_ROWS])  # compiles
        began = perf_counter()
        model.fit(X, y)
        return len(y) / (perf_counter() - began), model.nbytes_
    seen, seconds = 0, 0.0
    for number, (rows, labels) in enumerate(batches(X, y)):
        began = perf_counter()
        model.partial_fit(rows, labels, classes=[-1, 1])
        if number >= 2:  # the first two compile and fit the feature map
            seconds += perf_counter() - began
            seen += len(labels)
        if seconds > MAX_SECONDS:
            break
    return seen / seconds, model.nbytes_


def markdown(rows: list[tuple[str, ...]]) -> str:
    """Return the table of docs/systems.md."""
    head = (*COLUMNS, *MEASURED)
    rule = ["---"] * len(COLUMNS) + ["---:"] * len(MEASURED)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def run(as_markdown: bool) -> None:
    """Measure all systems and print the table."""
    console, rows = Console(), []
    for system in track(all_systems(), description="Measuring", console=Console(stderr=True), transient=True):
        speed, nbytes = measure(system.model)
        rows.append((*system.cells, f"{float(f'{speed:.2g}'):,.0f}", f"{nbytes:,}"))
    if as_markdown:
        print(markdown(rows))
        return
    table = Table()
    for heading in COLUMNS:
        table.add_column(heading, overflow="fold")
    for heading in MEASURED:
        table.add_column(heading, justify="right", no_wrap=True)
    for cells in rows:
        table.add_row(*cells)
    console.print(table, highlight=False)
    console.print(NOTE, style="dim", highlight=False)
