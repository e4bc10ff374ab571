"""Questions that the table answers."""

from math import isnan

from reproduction import paper
from reproduction.report.estimates import paired
from reproduction.report.html import Markup, element, joined, note
from reproduction.report.measured import KERNEL, Measured, group_of
from reproduction.report.wording import listed, percent, signed


def questions(measured: Measured) -> Markup:
    """A list of questions and answers."""
    asked = [
        ("Is FPOGD with a kernel at or above the paper's FPOGD on ijcnn1, mnist and usps?", _at_or_above(measured)),
        (
            "How far are FPOGD and AUCClassifier from batch logistic regression on a9a and diabetes?",
            _logistic(measured),
        ),
        ("Does anything reach the printed 85.82 on german?", _german(measured)),
    ]
    items = [joined([element("dt", question), element("dd", answer)]) for question, answer in asked]
    return element("dl", *items, class_="questions")


def _at_or_above(measured: Measured) -> Markup:
    lines = []
    for dataset in ("ijcnn1", "mnist", "usps"):
        ours, printed = measured.auc(dataset, KERNEL), paper.AUC[dataset]["FPOGD"]
        if ours is None:
            lines.append(element("li", f"{dataset}: not measured yet."))
            continue
        word = "yes" if 100 * ours.mean >= printed.auc else "no"
        difference = signed(ours.mean - printed.auc / 100)
        error = "" if isnan(ours.error) else f" ± {100 * ours.error:.2f}"
        text = f": {percent(ours.mean)}{error} against {printed.auc:.2f} ± {printed.error:.2f} ({difference})."
        lines.append(element("li", f"{dataset}: ", element("strong", word), text))
    return element("ul", *lines)


def _logistic(measured: Measured) -> Markup:
    lines = []
    for dataset in ("a9a", "diabetes"):
        batch = measured.folds(dataset, "logistic")
        for system in (KERNEL, "AUCClassifier"):
            gap = paired(measured.folds(dataset, system), batch)
            if gap is None:
                lines.append(element("li", f"{dataset}, {system}: not measured yet."))
                continue
            error = "" if isnan(gap.error) else f" ± {100 * gap.error:.2f}"
            text = {1: "clearly ahead", -1: "clearly behind", 0: "no clear difference"}[gap.clear]
            mean = element("strong", f"{signed(gap.mean)}{error}")
            lines.append(element("li", f"{dataset}, {system}: ", mean, f" over {gap.n} folds; {text}."))
    how = "Mean of the differences fold by fold, × 100, ± its standard error; clear is more than two of them."
    return joined([element("ul", *lines), note(how)])


def _german(measured: Measured) -> Markup:
    target = paper.AUC["german"]["FPOGD"].auc
    found = {system: one for system in measured.systems if (one := measured.auc("german", system))}
    if not found:
        return element("p", "german: not measured yet.")
    reached = [system for system, one in found.items() if 100 * one.mean >= target]
    best = max(found, key=lambda system: found[system].mean)
    online = max((one for one in found if group_of(one) != "batch"), key=lambda one: found[one].mean, default=best)
    folds = max((max(measured.folds("german", system).values()), system) for system in found)
    answer = f"{listed(reached)} of {len(found)} systems." if reached else f"None of {len(found)} systems does."
    text = (
        f" The closest is {best} with {percent(found[best].mean)}"
        + (f", of those that see each row once {online} with {percent(found[online].mean)}" if online != best else "")
        + f"; the best single fold of any system is {percent(folds[0])} ({folds[1]})."
    )
    return element("p", element("strong", answer), text)
