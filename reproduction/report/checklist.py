"""What the experiments take care of, and where the page shows it."""

from reproduction.columns import SLOTS
from reproduction.config import read
from reproduction.learning import SNAPSHOTS
from reproduction.problems import Protocol
from reproduction.released import ROWS
from reproduction.report.estimates import LEVEL
from reproduction.report.html import Markup, element, section
from reproduction.report.measured import GROUPS, RELEASED, Measured
from reproduction.report.wording import count, listed, number, percent
from reproduction.results import Results


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
        "The released code": "In a part of its own.",
        "Tuning": _tuning(measured, protocol),
        "Statistics": f"Corrected resampled t-test with {protocol.folds - 1} degrees of freedom, seeds of a fold "
        f"averaged; over sets Friedman's and Nemenyi's tests; level {100 * (1 - LEVEL):.0f} %. No correction for the "
        "number of pairs of systems.",
        "Later rivals": "AdaOAM is in the table. AOGD (AAAI 2024), FOAM and NOAM (2017) are not: only their abstracts "
        "were at hand, which do not determine the updates.",
        "Departures from the publications": "Constant steps for all, where OGD, Kar, SPAM and SOLAM have decreasing "
        "ones; steps that would diverge are cut; the mean iterate, where FPOGD's paper returns the last; AdaDSG sees "
        "all rows before its first step; variance with four slots for each class, where the paper has four in all; "
        "strata with reservoirs are in regret and variance only; ExactAUC is the minimiser in closed form. The "
        "budgets of KOIL, Projectron++, OPERA and SparseKernelAUC are larger than 32 rows.",
        "Times": "Two runs at a time on two cores, so close ratios say little.",
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
    capped = {
        name: [dataset for dataset in sets if measured.cap(dataset, name)] for name in systems if name != RELEASED
    }
    shown = listed([f"{name} on {listed(found)}" for name, found in capped.items() if found])
    return (
        f"Only systems whose rows cost far more than FPOGD's are limited, to an estimated {protocol.most_seconds:g} "
        f"seconds for a run; OPERA to its largest model, and the released code to its own {count(ROWS)} rows; the "
        f"cells say so: {shown}. Projectron++ has {_on_text(measured)} on text in float64: at the width 1 / (2 d) the "
        "distances of such rows are below the resolution of float32, in which it keeps a single row."
    )


def _on_text(measured: Measured) -> str:
    text = next((one for one in measured.datasets if measured.stand_in(one) or one == "rcv1"), "")
    found = measured.auc(text, "ProjectronPP") if text else None
    return percent(found.mean) if found else "no result"


def _tuning(measured: Measured, protocol: Protocol) -> str:
    tuned = [(dataset, name) for dataset in measured.datasets for name in measured.systems
             if measured.is_tuned(dataset, name)]  # fmt: skip
    edges = sum(bool(measured.edges(*cell)) for cell in tuned)
    return (
        f"Inside each of {protocol.folds} outer folds, on at most {count(protocol.selection_rows)} of its rows "
        f"({count(protocol.slow_selection_rows)} for slow systems), by {protocol.selection_folds} inner folds, "
        f"with steps from {number(protocol.etas[0])} to {number(protocol.etas[-1])}; {protocol.seeds} seeds vary "
        f"features and order. In {edges} of {len(tuned)} cells some fold selects the edge of a grid; all are marked."
    )


def _limits(measured: Measured, protocol: Protocol) -> str:
    limits = listed([f"{count(rows)} rows of {name}" for name, rows in protocol.limits])
    systems = len([name for names in GROUPS.values() for name in names if name in measured.systems])
    return (
        f"To keep the run of {systems} systems within hours on two cores, {limits} are used, because D grows with T; "
        "regret and variance use the first rows of each set."
    )
