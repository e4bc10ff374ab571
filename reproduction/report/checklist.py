"""What the experiments take care of, and where the page shows it."""

from reproduction import paper
from reproduction.columns import SLOTS, steps
from reproduction.config import read
from reproduction.learning import SNAPSHOTS
from reproduction.problems import Protocol, Shape
from reproduction.released import ROWS
from reproduction.report.estimates import LEVEL
from reproduction.report.html import Markup, element, section
from reproduction.report.measured import EARLY, GROUPS, RELEASED, Measured, in_order, spoken
from reproduction.report.wording import count, listed, number, percent, power_of_two
from reproduction.results import Results

TEXT = Shape(10_000, 10_000, sparse=True)
"""A shape of text: only that it is sparse matters for the steps."""


def checklist_section(results: Results) -> Markup:
    """Return one line for each point that a referee asks about."""
    measured, protocol = Measured(results), read("protocol", Protocol, quick=False)
    lines = {
        "Averaging": _averaging(),
        "Caps": _caps(measured, protocol),
        "The control without strata": f"A queue of the newest {SLOTS} rows of each class is in the table, in regret "
        f"and in variance; Kar, OAM and Algorithm 1 as printed keep as many examples as FPOGD, {2 * SLOTS}. Its width "
        "is tuned in a column beside that of FPOGD.",
        "Algorithm 1 as printed": "One clustering for both classes and weights over the whole history: the column "
        "“FPOGD, as printed”. “FPOGD, kernel” has strata of each class, and weights within the other class.",
        "The released code": f"In a part of its own, with both forms of FPOGD stopped after the same {count(ROWS)} "
        "rows.",
        "Tuning": _tuning(measured, protocol, results),
        "Stand-ins": _stand_ins(measured),
        "Scaling": "Columns to [−1, 1] on the training part of each fold; rows of text to norm 1, and from 100 columns "
        "on also the rows of linear systems; AUCClassifier and LightGBM get rows as they are.",
        "Statistics": f"Corrected resampled t-test with {protocol.folds - 1} degrees of freedom, seeds of a fold "
        f"averaged; over sets Friedman's and Nemenyi's tests; level {100 * (1 - LEVEL):.0f} %. No correction for the "
        "number of pairs of systems.",
        "Later rivals": "AdaOAM is in the table. AOGD (AAAI 2024), FOAM and NOAM (2017) are not: only their abstracts "
        "were at hand, which do not determine the updates.",
        "Departures from the publications": "Constant steps for all, where OGD, Kar, SPAM and SOLAM have decreasing "
        "ones; steps beyond the paper's grid; steps that would diverge are cut; the mean iterate, where FPOGD's paper "
        "returns the last; the width is tuned in columns of their own; AdaDSG sees all rows before its first step; "
        "variance with four slots for each class, where the paper has four in all; strata with reservoirs are in "
        "regret and variance only; ExactAUC is the minimiser in closed form. The budgets of KOIL, Projectron++, OPERA "
        "and Sparse Kernel AUC are larger than 32 rows.",
        "Times": "Several runs at a time on one machine, so close ratios say little.",
        "Limits": _limits(measured, protocol),
    }
    items = [element("li", element("strong", f"{name}. "), text) for name, text in lines.items()]
    return section("checklist", "Checklist", element("ol", *items, class_="checklist"))


def _averaging() -> str:
    return (
        "Every system with iterates is scored with their mean and with the last one, each with its own settings. Sums "
        f"of kernels are averaged over {SNAPSHOTS} iterates. Offline systems and AUCClassifier have one output."
    )


def _caps(measured: Measured, protocol: Protocol) -> str:
    sets, systems = measured.datasets, measured.systems
    limited = [name for name in systems if name not in (RELEASED, *EARLY)]
    capped = {name: [dataset for dataset in sets if measured.cap(dataset, name)] for name in limited}
    shown = listed([f"{spoken(name)} on {listed(found)}" for name, found in capped.items() if found])
    return (
        f"Only systems whose rows cost far more than FPOGD's are limited, to an estimated {protocol.most_seconds:g} "
        f"seconds for a run; OPERA to its largest model, and the released code to its own {count(ROWS)} rows; the "
        f"cells say so: {shown}. Projectron++ has {_on_text(measured)} on text in float64: at the width 1 / (2 d) the "
        "distances of such rows are below the resolution of float32, in which it keeps a single row."
    )


def _on_text(measured: Measured) -> str:
    found = measured.auc(measured.title("rcv1"), "ProjectronPP")
    return percent(found.mean) if found else "no result"


def _stand_ins(measured: Measured) -> str:
    found = [f"{name} in place of {other}" for name in measured.datasets if (other := measured.replaced(name))]
    if not found:
        return "None."
    return (
        f"{listed(found)}, whose file was not at hand. It counts like any other set in the answer, in ranks and in "
        "claims on the algorithms, but not in claims on the printed values, which are of another set."
    )


def _tuning(measured: Measured, protocol: Protocol, results: Results) -> str:
    tuned = [(dataset, name) for dataset in measured.datasets for name in measured.systems
             if measured.is_tuned(dataset, name)]  # fmt: skip
    edges = sum(bool(measured.edges(*cell)) for cell in tuned)
    most = sum(measured.on_edge(*cell) for cell in tuned)
    untuned = [spoken(name) for name in measured.systems if name not in {name for _, name in tuned}]
    few = protocol.slow_selection_rows
    fewer = {one["system"] for one in results.read("selection")
             if one.get("rows") == few < measured.n_train(measured.title(one["dataset"]))}  # fmt: skip
    slow = listed([spoken(name) for name in in_order(fewer)])
    return (
        f"Inside each of {protocol.folds} outer folds, on at most {count(protocol.selection_rows)} of its rows "
        f"({count(few)} on some sets for {slow}), by {protocol.selection_folds} inner folds, with steps from "
        f"{number(protocol.etas[0])} to {number(protocol.etas[-1])} (on text to {number(steps(TEXT, protocol)[-1])}), "
        f"where the paper has {power_of_two(paper.STEPS[0])} to {power_of_two(paper.STEPS[-1])}; {protocol.seeds} "
        f"seeds vary features and order. In {edges} of {len(tuned)} cells some fold selects the edge of a grid; marked "
        f"are the {most} where most folds do. Not tuned: {listed(untuned)}."
    )


def _limits(measured: Measured, protocol: Protocol) -> str:
    limits = listed([f"{count(rows)} rows of {name}" for name, rows in protocol.limits])
    systems = len([name for names in GROUPS.values() for name in names if name in measured.systems])
    return (
        f"To keep the run of {systems} systems within hours on two cores, {limits} are used, because D grows with T; "
        "regret and variance use the first rows of each set."
    )
