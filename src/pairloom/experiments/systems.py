"""The paper's Table 1 as a live page: every system of the library, what it is, what it costs, how fast it runs here."""

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

N_FEATURES, BATCH = 123, 512
ROWS = {"online": 20_480, "offline": 2_048}
SECONDS = 0.5
"""A system that is slower is measured on fewer rows."""

COLUMNS = ("system", "problem", "model", "scheme", "half-life", "variance reduction", "time", "space", "reference")
MEASURED = ("examples/s", "bytes")

NOTE = f"""\
Time per example and space of the model, true costs (the paper counts gradients only, and OPAUC's space as O(d)): \
d input columns, D features (d in linear mode), s kept examples, t examples so far, r rank, n rows in all.
Half-life: whether it takes half_life=, with default parameters; the others keep nothing that could fade.
Variance reduction: what makes the gradient of all pairs so far better than a sample of them does; "exact": no sample.
Measured here: {N_FEATURES} columns, float32, default parameters, batches of {BATCH} rows after the first two, for \
half a second; offline systems fit {ROWS["offline"]:,} rows. Bytes: all arrays of the model, 98,304 of them for its \
calibration."""


@dataclass(frozen=True)
class Line:
    """One system, or one published form of it."""

    name: str
    model: PairwiseClassifier

    @property
    def words(self) -> tuple[str, ...]:
        """The columns that the class declares."""
        card = self.model.card
        scheme = card.scheme if card.memory == "bounded" else f"{card.scheme}, grows"
        fades = card.scheme == "online" and self.model.to_model().forgets
        return (
            self.name, card.problem, card.model, scheme, "yes" if fades else "no", card.variance_reduction,
            f"O({card.time})", f"O({card.space})", card.reference,
        )  # fmt: skip


def lines() -> list[Line]:
    """Every published form of every system."""
    found = []
    for name in sorted(systems.__all__, key=str.lower):
        kind = getattr(systems, name)
        found += [Line(name + suffix, kind(random_state=0, **kind.variants[suffix])) for suffix in kind.variants]
    return found


def stream(n: int) -> tuple[Array, Array]:
    """Rows of norm about 1 with a rare class that a linear model finds."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, N_FEATURES)) / np.sqrt(N_FEATURES)).astype(np.float32)
    return X, np.where(X[:, :20].sum(axis=1) + 0.1 * rng.normal(size=n) > 0.5, 1, -1)


def batches(X: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    """Rows in order."""
    for start in range(0, len(y), BATCH):
        yield X[start : start + BATCH], y[start : start + BATCH]


def measure(model: Any) -> tuple[float, int]:
    """Examples per second, and the bytes of the model."""
    X, y = stream(ROWS[model.card.scheme])
    if model.card.scheme == "offline":
        model.fit(X[:BATCH], y[:BATCH])  # compiles
        began = perf_counter()
        model.fit(X, y)
        return len(y) / (perf_counter() - began), model.nbytes_
    seen, clock = 0, 0.0
    for number, (rows, labels) in enumerate(batches(X, y)):
        began = perf_counter()
        model.partial_fit(rows, labels, classes=[-1, 1])
        if number >= 2:  # the first compile and settle rules on data
            clock += perf_counter() - began
            seen += len(labels)
        if clock > SECONDS:
            break
    return seen / clock, model.nbytes_


def markdown(rows: list[tuple[str, ...]]) -> str:
    """The table as docs/systems.md holds it."""
    head = (*COLUMNS, *MEASURED)
    rule = ["---"] * len(COLUMNS) + ["---:"] * len(MEASURED)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def run(as_markdown: bool) -> None:
    """Measure every system under a progress bar, then print the table."""
    console, rows = Console(), []
    for line in track(lines(), description="measuring", console=Console(stderr=True), transient=True):
        speed, nbytes = measure(line.model)
        rows.append((*line.words, f"{float(f'{speed:.2g}'):,.0f}", f"{nbytes:,}"))
    if as_markdown:
        print(markdown(rows))
        return
    made = Table()
    for heading in COLUMNS:
        made.add_column(heading, overflow="fold")
    for heading in MEASURED:
        made.add_column(heading, justify="right", no_wrap=True)
    for cells in rows:
        made.add_row(*cells)
    console.print(made, highlight=False)
    console.print(NOTE, style="dim", highlight=False)
