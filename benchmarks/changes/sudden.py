"""Sudden changes: rows until each learner has recovered, over several seeds."""

from collections.abc import Iterator

import numpy as np
from rich.table import Table

from changes.jobs import done
from changes.learners import Learner
from changes.recovery import WITHIN, Recovery, goal_of, recovery
from changes.streams import Length, sudden
from common.script import make_table

Found = dict[tuple[str, str], list[Recovery]]
"""By stream and title of the learner, one for each seed."""


def measure(
    names: list[str], learners: tuple[Learner, ...], seeds: list[int], length: Length, cores: int = 1
) -> Found:  # fmt: skip
    """Run each learner on each stream."""
    jobs = [(name, learner, seed, length) for name in names for learner in learners for seed in seeds]
    found: Found = {}
    for (name, learner, *_), runs in zip(jobs, done(one, jobs, cores, "sudden changes"), strict=True):
        for how, run in zip(learner.ways, runs, strict=True):
            found.setdefault((name, learner.title(how)), []).append(run)
    return found


def one(name: str, learner: Learner, seed: int, length: Length) -> list[Recovery]:
    """Run all variants of a learner on a stream; the goal is that of the first variant."""
    stream = sudden(name, seed, length)
    goal = goal_of(stream, lambda: learner.make(**learner.ways[0]))
    return [recovery(stream, lambda how=how: learner.make(**how), goal) for how in learner.ways]


def table_of_recovery(found: Found, length: Length) -> Table:
    n_seeds = max(len(runs) for runs in found.values())
    title = f"{length.before + length.after:,} rows that change at row {length.before:,}, {n_seeds} seeds"
    headings = ["rows to recovery", "range", "never", "AUC before", "at the end", "the goal", "first alarm after",
                "other alarms", "CPU s"]  # fmt: skip
    table = make_table(title, ["learner"], headings)
    for stream in dict.fromkeys(name for name, _ in found):
        table.add_section()
        table.add_row(f"[bold]{stream}")
        for (name, title), runs in found.items():
            if name == stream:
                table.add_row(f"  {title}", *cells(runs, length.before))
    table.caption = (
        f"median and range over seeds; recovered: AUC of the newest {length.window:,} rows, or as many as have "
        f"{length.positives} positives, within {WITHIN} of that of the same learner trained on the new concept alone; "
        f"never counts as {length.after:,} rows"
    )
    return table


def cells(runs: list[Recovery], at: int) -> Iterator[str]:
    rows = [run.rows for run in runs]
    yield f"{np.median(rows):,.0f}"
    yield f"{min(rows):,} to {max(rows):,}"
    yield str(sum(run.never for run in runs) or "")
    for values in ([run.before for run in runs], [run.after for run in runs], [run.goal_after for run in runs]):
        yield f"{np.median(values):.4f}"
    first = [min((row for row in run.alarms if row > at), default=None) for run in runs]
    yield f"{np.median([row - at for row in first if row is not None]):,.0f}" if any(first) else ""
    yield str(sum(len(run.alarms) for run in runs) - sum(row is not None for row in first) or "")
    yield f"{np.median([run.seconds for run in runs]):.1f}"
