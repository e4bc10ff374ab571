"""Data sets with raw columns by kind: a line for each, and their means."""

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean

from rich.table import Table

from common.script import make_table
from contest.contestants import CONTESTANTS, Contestant
from contest.datasets import Data, Raw
from contest.records import Records, Summary, summary

KINDS = ("tables", "streams", "rare", "KEEL", "halves")


def by_kind(data: Iterable[Data]) -> dict[str, list[Data]]:
    """Return the data sets with raw columns of each kind that occurs."""
    found = {kind: [one for one in data if isinstance(one, Raw) and one.kind == kind] for kind in KINDS}
    return {kind: own for kind, own in found.items() if own}


def table_of_means(records: Records, data: tuple[Data, ...], contestants: tuple[Contestant, ...]) -> Table:
    """Tabulate the means of each contestant over the data sets of each kind that it has results of."""
    table = make_table(
        "means over data sets", ["kind", "contestant"], ["sets", "AUC", "AP", "µs per row", "µs to score"]
    )
    for kind, own in by_kind(data).items():
        for contestant in contestants:
            made = [found for one in own if (found := summary(records, one.name, contestant.name))]
            if made:
                table.add_row(kind, contestant.title, f"{len(made)} of {len(own)}", *means(made))
        table.add_section()
    return table


def means(made: list[Summary]) -> list[str]:
    """Return the mean AUC, average precision, and microseconds per learned and per scored row."""
    columns: tuple[tuple[Callable[[Summary], float | None], str], ...] = (
        (lambda one: one.auc, ".4f"), (lambda one: one.precision, ".4f"),
        (lambda one: one.micros, ",.1f"), (lambda one: one.scoring, ",.1f"),
    )  # fmt: skip
    return [format(fmean(value for one in made if (value := of(one)) is not None), how) for of, how in columns]


def lines_by_kind(found: Mapping[tuple[str, str], Summary], data: list[Data]) -> list[list[str]]:
    """Return a line for each data set, the best AUC in bold, and after each kind the means of complete columns."""
    present = [c for c in CONTESTANTS if any((one.name, c.name) in found for one in data)]
    rows = [["data", *(c.title for c in present)], ["---", *("---:" for _ in present)]]
    for kind, own in by_kind(data).items():
        for one in own:
            made = [found.get((one.name, c.name)) for c in present]
            best = max(f"{each.auc:.4f}" for each in made if each)
            rows.append([one.name, *(_cell(each, best) for each in made)])
        columns = [[found[one.name, c.name] for one in own if (one.name, c.name) in found] for c in present]
        rows.append([f"*mean of {kind}*", *(_mean(column) if len(column) == len(own) else "" for column in columns)])
    return rows


def _cell(made: Summary | None, best: str) -> str:
    if made is None:
        return ""
    auc = f"**{made.auc:.4f}**" if f"{made.auc:.4f}" == best else f"{made.auc:.4f}"
    return auc if made.precision is None else f"{auc} ({made.precision:.3f})"


def _mean(column: list[Summary]) -> str:
    auc, precision, micros, _ = means(column)
    return f"*{auc} ({precision[:-1]}), {micros} µs*"
