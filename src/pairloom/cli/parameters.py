"""From --system and --set to an estimator."""

import ast
from collections.abc import Iterable
from inspect import signature
from typing import Any

DEFAULT = "AUCClassifier"
SYSTEMS = (
    DEFAULT, "AllPairs", "ExactAUC", "FourierSGD", "FPOGD", "KOIL", "OAM", "OGD", "OLP", "OPAUC", "OPERA",
    "ProjectronPP", "SOLAM", "SPAM",
)  # fmt: skip
"""Those that learn row by row; here by name, so that help and completion need not import them."""

KINDS = ("number", "category", "date", "drop")
"""What --set columns.NAME may be; other values are for the rules of all columns, such as columns.max_categories."""


def estimator(system: str, settings: Iterable[str], **more: Any) -> Any:
    """The estimator that options describe, checked; ValueError for what it does not take.

    Its seed is 0 unless it is set: the same rows give the same model.

    >>> estimator("FPOGD", ["eta=0.5", "n_components=1e2", "columns.zip=category"], pos_label="fraud")
    FPOGD(columns={'zip': 'category'}, eta=0.5, n_components=100, pos_label='fraud', random_state=0)
    """
    from pairloom import systems
    from pairloom.estimators import AUCClassifier

    if system not in SYSTEMS:
        raise ValueError(f"there is no system {system!r}; there are {', '.join(SYSTEMS)}")
    kind = AUCClassifier if system == DEFAULT else getattr(systems, system)
    values: dict[str, Any] = {"random_state": 0}
    nested: dict[str, dict[str, Any]] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set takes key=value; got {text!r}")
        name, dot, inner = key.partition(".")
        if dot:
            nested.setdefault(name, {})[inner] = literal(value)
        else:
            values[name] = literal(value)
    values |= {name: _part(name, inner) for name, inner in nested.items()} | more
    known = signature(kind).parameters
    unknown = sorted(values.keys() - known)
    if unknown:
        raise ValueError(f"{system} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    made = kind(**values)
    made.to_model()  # which checks them
    return made


def literal(text: str) -> Any:
    """A value as Python writes it, else the text itself; 1e5 is a whole number.

    >>> literal("3"), literal("1e5"), literal("median"), literal("[0.1, 2]"), literal("None")
    (3, 100000, 'median', [0.1, 2], None)
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return int(value) if isinstance(value, float) and "e" in text.lower() and value.is_integer() else value


def _part(name: str, values: dict[str, Any]) -> Any:
    """A parameter that is made of several."""
    if name == "columns":
        from pairloom.columns import Columns

        rules = {key: value for key, value in values.items() if value not in KINDS}
        unknown = sorted(rules.keys() - signature(Columns).parameters)
        if unknown:
            raise ValueError(f"--set columns.{unknown[0]}: the kind of a column is one of {', '.join(KINDS)}")
        return Columns({key: value for key, value in values.items() if key not in rules}, **rules) if rules else values
    if name == "budget":
        from pairloom.race import Budget

        unknown = sorted(values.keys() - signature(Budget).parameters)
        if unknown:
            raise ValueError(f"budget has no {unknown[0]!r}; it has {', '.join(signature(Budget).parameters)}")
        return Budget(**values)
    raise ValueError(f"--set {name}.{next(iter(values))}: only columns and budget are made of several values")
