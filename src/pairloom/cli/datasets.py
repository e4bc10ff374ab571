"""What `pairloom datasets` prints: the data sets known by name, and where they are."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pairloom.data.catalogue import DATASETS, Source
from pairloom.data.places import Places, usual_places


def status(source: Source, places: Places) -> str:
    """The path of each file, or what becomes of those that are not here; no file is opened."""
    found = {part: places.find(part) for part in source.parts}
    lines = [escape(str(path)) for path in found.values() if path]
    absent = [part for part, path in found.items() if path is None]
    if absent:
        which = f"{' and '.join(part.file for part in absent)} not here"
        fate = "would be downloaded" if all(part.url for part in absent) else "not on the LIBSVM page"
        lines.append(f"[dim]{which if lines else 'not here'}: {fate}[/dim]")
    return "\n".join(lines)


def table(places: Places) -> Table:
    """One row per data set."""
    made = Table("name")
    for heading in ("rows", "columns", "positive"):
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column("files", overflow="fold")
    for source in DATASETS.values():
        made.add_row(
            source.name, f"{source.n_rows:,}", f"{source.n_features:,}",
            f"{100 * source.n_positive / source.n_rows:.1f} %", status(source, places),
        )  # fmt: skip
    return made


def run(data_home: Path | None) -> None:
    """Print the table, and the places looked at."""
    console = Console()
    places = usual_places(data_home)
    console.print(table(places), highlight=False)
    console.print(f"Looked in\n{escape(places.describe())}", style="dim", highlight=False, soft_wrap=True)
