"""Every figure of docs/speed.md, in one run on an idle machine: about 20 minutes.

PAIRLOOM_DATA=folder python benchmarks/speed.py [--toy]

Prints the tables of calls.py, wide.py, throughput.py and startup.py, and writes them to docs/speed.md, between the
lines that name the script. ``--toy`` writes nothing.
"""

import re
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

import calls
import startup
import throughput
import wide
from common.script import DOCS, make_parser, markdown_of, require_data
from contest.datasets import DATASETS

SCRIPTS: dict[str, Callable[[bool], Iterator[Table]]] = {
    "calls": lambda toy: calls.tables(list(DATASETS), 20_000, toy),
    "wide": lambda toy: iter([wide.table_of(wide.NAMES, toy)]),
    "throughput": throughput.tables,
    "startup": lambda toy: iter([startup.table_of(toy)]),
}


def replaced(page: str, script: str, tables: list[Table]) -> str:
    """Return a page with these tables between the lines of a script."""
    made = "\n\n".join(map(markdown_of, tables))
    pattern = rf"(<!-- {script}\.py -->\n).*?(<!-- end -->)"
    return re.sub(pattern, lambda found: f"{found[1]}\n{made}\n\n{found[2]}", page, count=1, flags=re.DOTALL)


def main() -> None:
    toy = make_parser(__doc__).parse_args().toy
    if not toy:
        require_data()
    console, page = Console(width=180), (DOCS / "speed.md").read_text()
    for script, tables in SCRIPTS.items():
        found = []
        for table in tables(toy):
            console.print(table)
            found.append(table)
        page = replaced(page, script, found)
    if not toy:
        (DOCS / "speed.md").write_text(page)


if __name__ == "__main__":
    main()
