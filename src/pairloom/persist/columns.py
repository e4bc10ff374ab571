"""Whether what a file says of named columns is something that an encoder could know."""

import numpy as np

from pairloom.columns import Columns
from pairloom.columns.loops import CATEGORY, COUNT, DROP, HIGH, LOW, MASS, N_STATISTICS, OPEN
from pairloom.columns.state import CODES, KINDS, width_of
from pairloom.columns.values import LONGEST
from pairloom.persist.walk import Scope, Walk

MOST_COLUMNS = 999_999


def check_columns(walk: Walk, path: str, part: Columns, n_features: int) -> list[str]:
    """Take the state of an encoder whose rows have ``n_features`` numbers; the names of its columns."""
    walk.branch(path, "ColumnsState")
    names = [walk.value(item, "text") for item in walk.items(f"{path}.names", MOST_COLUMNS)]
    c, codes = len(names), part.max_categories + part.n_hashed
    if not c or len(set(names)) < c:
        raise walk.refuse(f"{path}.names", "must be different texts")
    layout, width = walk.value(f"{path}.layout", "count"), walk.value(f"{path}.width", "count")
    if layout > CODES or width != n_features:
        raise walk.refuse(path, f"must be of a known layout, with {n_features} numbers")
    scope = Scope({"c": c})
    rules = {"kinds": f"i8 c 0:{len(KINDS)}", "starts": "i8 c 0:BIG", "statistics": f"f8 {N_STATISTICS} c"}
    for name, rule in rules.items():
        walk.take(f"{path}.{name}", rule, scope, {})
    kinds, starts, statistics = (walk.flat.arrays[f"{path}.{name}"] for name in ("kinds", "starts", "statistics"))
    sizes = np.diff(starts, append=width)
    for kind, size in zip(kinds.tolist(), sizes.tolist(), strict=True):
        if size != width_of(kind, layout, codes) and (kind == DROP or size != width_of(OPEN, layout, codes)):
            raise walk.refuse(f"{path}.starts", "must leave each column its room")
    came = statistics[COUNT] > 0
    known = [_categories(walk, item, part.max_categories) for item in walk.items(f"{path}.categories", c)]
    highest = np.where(np.array(known) == part.max_categories, codes, known)
    coded = came & (kinds == CATEGORY)
    if starts[0] or len(known) != c or not np.isfinite(statistics).all() or (came & ~(statistics[MASS] > 0)).any():
        raise walk.refuse(path, "must know something of each column")
    if (statistics[LOW, coded] < 0).any() or (statistics[HIGH, coded] >= highest[coded]).any():
        raise walk.refuse(f"{path}.statistics", "must be of the codes that there are")
    return names


def _categories(walk: Walk, path: str, most: int) -> int:
    """Take the categories of a column; their number."""
    found = [walk.value(item, "text") for item in walk.items(path, most)]
    if len(set(found)) < len(found) or any(not 0 < len(name) <= LONGEST for name in found):
        raise walk.refuse(path, f"must be different texts of at most {LONGEST} letters")
    return len(found)
