"""The demo: two embedded data sets streamed once past three learners, with AUC live, a table and a figure."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairloom import StabilityWarning
from pairloom.experiments.figures import Panel, draw
from pairloom.features.kernels import median_squared_distance
from pairloom.systems import FPOGD
from pairloom.typing import Array

KERNEL, LINEAR, BASELINE = "FPOGD, kernel", "FPOGD, linear", "RBFSampler + SGD"

N_COMPONENTS = 512
START = 64
"""Rows that are learned before the first score."""
CHUNK = 16
"""Rows that are scored, then learned, together."""
WINDOW = 200
"""Rows of the live AUC."""
AHEAD = 256
"""Rows whose x the baseline may see ahead of the stream."""

NOTE = f"""\
AUC: over the second half of the stream; a row is scored before it is learned.
Time: learning only, {CHUNK} rows a call, on this machine; compiled code warmed up on other rows first.
Bytes: all arrays the model holds.
Fairness: all learners standardise the columns; the kernel ones have {N_COMPONENTS} features and the median width. FPOGD \
fixes scale and width on the rows it has seen. The baseline, log loss and averaged weights, does so \
on its first {AHEAD} rows ahead of the stream, which is in its favour."""


TITLE = "Ranking the rare class first, in one pass over the stream"

CAPTION = (
    f"Above: AUC of the last {WINDOW} rows, each scored before it was learned; the number beside a line is the AUC over "
    "the second half of the stream.\nBelow: the memory of FPOGD with a kernel: at most 16 strata of each class, by their "
    "share of the class."
)


class Classifier(Protocol):
    """What the demo asks of a learner."""

    def partial_fit(self, X: Array, y: Array, classes: Any) -> Any: ...
    def decision_function(self, X: Array) -> Array: ...
    @property
    def nbytes_(self) -> int: ...


class FourierSGD:
    """The usual scikit-learn answer: RBFSampler + SGDClassifier, log loss, averaged weights.

    Scale and width (one over the median squared distance) are fixed on ``ahead``, rows of the start of the stream.
    """

    def __init__(self, ahead: Array, seed: int) -> None:
        scaler = StandardScaler().fit(ahead)
        gamma = 1.0 / median_squared_distance(scaler.transform(ahead))
        sampler = RBFSampler(gamma=gamma, n_components=N_COMPONENTS, random_state=seed)
        self._map = make_pipeline(scaler, sampler).fit(ahead)
        self._sgd = SGDClassifier(loss="log_loss", average=True, random_state=seed)

    def partial_fit(self, X: Array, y: Array, classes: Any) -> "FourierSGD":
        """Learn rows in order."""
        self._sgd.partial_fit(self._map.transform(X), y, classes=classes)
        return self

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class."""
        return np.asarray(self._sgd.decision_function(self._map.transform(X)))

    @property
    def nbytes_(self) -> int:
        """Bytes of all arrays that the model holds."""
        parts = [*self._map.named_steps.values(), self._sgd]
        return sum(value.nbytes for part in parts for value in vars(part).values() if isinstance(value, np.ndarray))


@dataclass(frozen=True)
class Stream:
    """Labelled rows in their order; y is 1 for the rare class."""

    name: str
    rare: str
    rest: str
    X: Array
    y: Array


@dataclass(frozen=True)
class Moment:
    """What can be seen after ``seen`` rows: window AUC per learner, and the sizes of the kernel FPOGD's strata."""

    seen: int
    auc: dict[str, float]
    strata: list[Array]


@dataclass(frozen=True)
class Run:
    """One pass of all learners over one stream."""

    stream: Stream
    scores: dict[str, Array]
    seconds: dict[str, float]
    nbytes: dict[str, int]
    moments: list[Moment]

    def auc(self, name: str) -> float:
        """AUC over the second half of the stream."""
        half = len(self.stream.y) // 2
        return float(roc_auc_score(self.stream.y[half:], self.scores[name][half:]))

    def microseconds(self, name: str) -> float:
        """Time to learn one example."""
        return 1e6 * self.seconds[name] / len(self.stream.y)


def streams(seed: int) -> list[Stream]:
    """The embedded data, shuffled."""
    rng = np.random.default_rng(seed)
    digits, cancer = load_digits(), load_breast_cancer()
    order = rng.permutation(len(digits.target))
    hard = Stream("digits", "8", "other digits", digits.data[order], (digits.target[order] == 8).astype(int))
    order = rng.permutation(len(cancer.target))
    small = Stream("breast cancer", "malignant", "benign", cancer.data[order], (cancer.target[order] == 0).astype(int))
    return [hard, small]


def learners(ahead: Array, seed: int) -> dict[str, Classifier]:
    """Fresh learners; only the baseline looks at ``ahead``."""
    return {
        KERNEL: FPOGD(gamma="median", n_components=N_COMPONENTS, scale="standard", average="poly", random_state=seed),
        LINEAR: FPOGD(kernel="linear", loss="logistic", eta=0.003, scale="standard", average="poly", random_state=seed),
        BASELINE: FourierSGD(ahead, seed),
    }


def chunks(n: int) -> Iterator[slice]:
    """The start of the stream, then chunk by chunk."""
    edges = [0, *range(START, n, CHUNK), n]
    for start, stop in zip(edges, edges[1:], strict=False):
        yield slice(start, stop)


def pass_over(stream: Stream, models: dict[str, Classifier], watch: Callable[[Moment], None]) -> Run:
    """Test-then-train: every learner scores a chunk, then learns it."""
    X, y = stream.X, stream.y
    scores = {name: np.full(len(y), np.nan) for name in models}
    seconds = dict.fromkeys(models, 0.0)
    moments = []
    for rows in chunks(len(y)):
        for name, model in models.items():
            if rows.start:
                scores[name][rows] = model.decision_function(X[rows])
            seconds[name] += learn(model, X[rows], y[rows])
        recent = slice(max(START, rows.stop - WINDOW), rows.stop)
        kernel = models[KERNEL]
        assert isinstance(kernel, FPOGD)
        auc = {name: window_auc(y[recent], scores[name][recent]) for name in models}
        moments.append(Moment(rows.stop, auc, kernel.strata_sizes_))
        watch(moments[-1])
    return Run(stream, scores, seconds, {name: model.nbytes_ for name, model in models.items()}, moments)


def learn(model: Classifier, X: Array, y: Array) -> float:
    """Learn a chunk; return the seconds it took."""
    began = perf_counter()
    with warnings.catch_warnings():
        if len(y) == START:
            # Rows 2 and 3 are learned with the scale of row 1, that is raw, and again at row 4 with a sound one.
            warnings.simplefilter("ignore", StabilityWarning)
        model.partial_fit(X, y, classes=[0, 1])
    return perf_counter() - began


def window_auc(y: Array, scores: Array) -> float:
    """AUC of scored rows; NaN while they are fewer than half a window, or hold one class."""
    if len(y) < WINDOW // 2 or len(np.unique(y)) < 2:
        return float("nan")
    return float(roc_auc_score(y, scores))


def warm_up(stream: Stream) -> None:
    """Compile, or load from the disk, all that ``pass_over`` will call, on random rows of the same width."""
    rng = np.random.default_rng()
    X, y = rng.normal(size=(2 * START, stream.X.shape[1])), rng.permutation(np.arange(2 * START) % 2)
    pass_over(Stream("noise", "", "", X, y), learners(X, 0), lambda moment: None)


def live_text(moment: Moment) -> str:
    """Window AUC of each learner, in short."""
    short = {KERNEL: "kernel", LINEAR: "linear", BASELINE: "SGD"}
    return "AUC  " + "  ".join(
        f"{short[name]} {'   – ' if np.isnan(a) else f'{a:.3f}'}" for name, a in moment.auc.items()
    )


def run_all(seed: int, console: Console) -> list[Run]:
    """Every stream, under a progress bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=14),
        TaskProgressColumn(),
        TextColumn("{task.fields[live]}"),
        TimeRemainingColumn(compact=True),
    )
    runs = []
    with Progress(*columns, console=console) as progress:
        for stream in streams(seed):
            task = progress.add_task(stream.name, total=len(stream.y), live="warming up")
            warm_up(stream)
            models = learners(stream.X[:AHEAD], seed)
            runs.append(
                pass_over(
                    stream, models, lambda m, task=task: progress.update(task, completed=m.seen, live=live_text(m))
                )
            )
    return runs


def table(runs: list[Run]) -> Table:
    """One line per data set and learner; the best AUC of a data set in bold."""
    made = Table("data set", "learner")
    for heading in ("AUC", "µs per example", "bytes"):
        made.add_column(heading, justify="right")
    for run in runs:
        best = max(run.auc(name) for name in run.scores)
        for name in run.scores:
            auc = run.auc(name)
            made.add_row(
                run.stream.name, name, f"[bold]{auc:.4f}[/bold]" if auc == best else f"{auc:.4f}",
                f"{run.microseconds(name):.0f}", f"{run.nbytes[name]:,}",
                end_section=name == list(run.scores)[-1],
            )  # fmt: skip
    return made


def panel(run: Run) -> Panel:
    """The run as a column of the figure."""
    stream, moments = run.stream, run.moments
    rare = 100 * stream.y.mean()
    # strata_sizes_ follows classes_: the rest is 0, the rare class 1.
    sizes = [np.zeros((len(moments), max(len(m.strata[c]) for m in moments))) for c in (1, 0)]
    for at, moment in enumerate(moments):
        for filled, used in zip(sizes, reversed(moment.strata), strict=True):
            filled[at, : len(used)] = used
    return Panel(
        title=f"{stream.name}: {stream.rare} against {stream.rest}",
        subtitle=f"{len(stream.y):,} rows, {stream.X.shape[1]} columns, {rare:.0f} % {stream.rare}",
        classes=(stream.rare, stream.rest),
        seen=np.array([m.seen for m in moments]),
        auc={name: np.array([m.auc[name] for m in moments]) for name in run.scores},
        label={name: f"{name}\n{run.auc(name):.3f}" for name in run.scores},
        strata=(sizes[0], sizes[1]),
    )


def run(out: Path, seed: int) -> None:
    """Run everything; print the table, save the figure."""
    console = Console()
    runs = run_all(seed, console)
    console.print(table(runs))
    console.print(NOTE, style="dim", highlight=False)
    draw([panel(run) for run in runs], out, TITLE, CAPTION)
    console.print(f"Figure: {out}", highlight=False, soft_wrap=True)
