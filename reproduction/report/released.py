"""The authors' released code: what it runs, and what it computes once its crash is repaired."""

from reproduction.released import ROWS
from reproduction.report.html import Column, Entry, Markup, element, missing, note, number_entry, section, table
from reproduction.report.measured import EARLY, KERNEL, LINEAR, RELEASED, Measured
from reproduction.report.wording import count, percent
from reproduction.results import Results

COLUMNS = (RELEASED, EARLY[1], EARLY[0], LINEAR, KERNEL)


def released_section(results: Results) -> Markup:
    """Return what the authors' released code runs, and how its repaired form compares."""
    title = "The authors' released code"
    measured = Measured(results)
    sets = measured.compared_sets([KERNEL, RELEASED])
    if not sets:
        return section("released", title, missing("table"))
    text = (
        "The code that the authors released runs another method than the paper describes: no Fourier features, an L1 "
        "penalty, rows of norm 4, four strata whose centroids move away from their members, the weights of the wrong "
        f"class, two folds, and an end after {count(ROWS)} rows. It stops with a ValueError on its first positive row, "
        "because counts are passed in place of ε. The column “released code” is what it computes with ε as it defines "
        "it, written from this description, on columns scaled like those of the others. It is linear and stops early, "
        f"so the columns beside it are FPOGD stopped after the same rows. Against it, {_compared(measured)}."
    )
    known = [name for name in COLUMNS if name in measured.systems]
    rows = [[Entry(name), *(number_entry(one.mean if (one := measured.auc(name, system)) else None, percent)
                            for system in known)] for name in sets]  # fmt: skip
    after = note("The mean of the iterates; the released code returns the last one.")
    shown = table([Column("data set"), *map(Column, known)], rows, "AUC × 100 of the released code", after=after)
    return section("released", title, element("p", text), shown)


def _compared(measured: Measured) -> str:
    """Return on how many sets each form of FPOGD is significantly better and worse, early and at the end."""
    texts = []
    for system, name in ((EARLY[1], f"FPOGD without a kernel on the same {count(ROWS)} rows"),
                         (EARLY[0], f"FPOGD with one on the same {count(ROWS)} rows"),
                         (KERNEL, "FPOGD with one on all rows")):  # fmt: skip
        gaps = {one: gap for one in measured.datasets if (gap := measured.difference(one, system, RELEASED))}
        better, worse = ([one for one, gap in gaps.items() if gap.clear == sign] for sign in (1, -1))
        if gaps:
            texts.append(f"{name} is significantly better on {len(better)} of {len(gaps)} sets, worse on {len(worse)}")
    return "; ".join(texts)
