"""`pairloom datasets`: list the known data sets and their files."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pairloom.data.catalogue import DATASETS, Source
from pairloom.data.files import DataFolders, data_folders


def status(source: Source, folders: DataFolders) -> str:
    """Return the path of each file, or whether it can be downloaded; no file is opened."""
    found = {part: folders.find(part) for part in source.parts}
    lines = [escape(str(path)) for path in found.values() if path]
    absent = [part for part, path in found.items() if path is None]
    if absent:
        which = f"{' and '.join(part.file for part in absent)} not found" if lines else "not found"
        advice = "can be downloaded" if all(part.url for part in absent) else "no download available"
        lines.append(f"[dim]{which}; {advice}[/dim]")
    return "\n".join(lines)


def make_table(folders: DataFolders) -> Table:
    """Return a table with one row per data set."""
    table = Table("name")
    for heading in ("rows", "columns", "positive"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("files", overflow="fold")
    for source in DATASETS.values():
        table.add_row(
            source.name, f"{source.n_rows:,}", f"{source.n_features:,}",
            f"{100 * source.n_positive / source.n_rows:.1f} %", status(source, folders),
        )  # fmt: skip
    return table


def run(data_home: Path | None) -> None:
    """Print the table, and the folders that were searched."""
    console = Console()
    folders = data_folders(data_home)
    console.print(make_table(folders), highlight=False)
    console.print(f"Searched\n{escape(folders.describe())}", style="dim", highlight=False, soft_wrap=True)
