"""Claims on data sets and sources."""

from pairloom.experiments.reproduce import paper
from pairloom.experiments.reproduce.report.claims.base import Claim, Finding, Verdict, graded
from pairloom.experiments.reproduce.report.wording import listed
from pairloom.experiments.reproduce.results import Results


def data_sets(_: Results) -> Finding:
    """Sizes, columns and ratios."""
    names = {"size": "size", "n_features": "columns", "ratio": "ratio"}
    errors = [f"the {names[column]} of {dataset}" for dataset in paper.TABLE_3 for column in paper.wrong(dataset)]
    total = 3 * len(paper.TABLE_3)
    text = f"Counted from the files: {len(errors)} of {total} values are wrong: {listed(errors)}."
    return Finding(text, graded(not errors, 2 * len(errors) < total))


def even_labels(_: Results) -> Finding:
    """Five labels against five."""
    text = (
        "Five digits on each side are possible on usps and mnist. They do not make even classes on usps, 5,427 to "
        "3,871, and the released loader maps the labels 0-4 to the negative class, which on the usps file with its "
        "labels 1-10 is four digits against six."
    )
    return Finding(text, Verdict.IN_PART)


def citation(_: Results) -> Finding:
    """Whose SPAM-NET is."""
    text = (
        "The reference is a paper on variance reduction. SPAM-NET is the elastic-net form of Natole et al. 2018, "
        "which the paper cites in its Table 1."
    )
    return Finding(text, Verdict.FAILS)


CLAIMS = (
    Claim(
        "spam-net", "Experiments, compared algorithms",
        "“SPAM-NET [Reddi et al. 2016] is an online algorithm for AUC with square loss.”",
        citation,
    ),
    Claim(
        "even-labels", "Experiments, data sets",
        "“Non-binary datasets undergo a conversion process into binary by evenly dividing the labels.”",
        even_labels, "", "datasets",
    ),
    Claim(
        "data-sets", "Appendix B, Table 3",
        "Size, columns and ratio of negative to positive examples of eight data sets.",
        data_sets, "holds if no value is wrong, in part if fewer than half are.", "datasets",
    ),
)  # fmt: skip
