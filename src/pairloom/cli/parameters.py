"""Make an estimator from --system and --set."""

import ast
from collections.abc import Iterable
from inspect import signature
from typing import Any

DEFAULT = "AUCClassifier"
SYSTEMS = (
    DEFAULT, "AdaOAM", "AllPairs", "ExactAUC", "FourierSGD", "FPOGD", "KOIL", "OAM", "OGD", "OLP", "OPAUC", "OPERA",
    "ProjectronPP", "SOLAM", "SPAM",
)  # fmt: skip
"""Online systems; listed by name so that --help and completion need not import them."""

KINDS = ("number", "category", "date", "drop")
"""Values of --set columns.NAME; other values are options of all columns, such as columns.max_categories."""


def make_estimator(system: str, settings: Iterable[str], **parameters: Any) -> Any:
    """Return the estimator that options describe; raise ValueError for unknown or invalid parameters.

    Its seed is 0 by default: the same rows give the same model.

    >>> make_estimator("FPOGD", ["eta=0.5", "n_components=1e2", "columns.zip=category"], pos_label="fraud")
    FPOGD(columns={'zip': 'category'}, eta=0.5, n_components=100, pos_label='fraud', random_state=0)
    """
    from pairloom import systems
    from pairloom.estimators import AUCClassifier

    if system not in SYSTEMS:
        raise ValueError(f"unknown system {system!r}; choose one of {', '.join(SYSTEMS)}")
    kind = AUCClassifier if system == DEFAULT else getattr(systems, system)
    values: dict[str, Any] = {"random_state": 0}
    nested: dict[str, dict[str, Any]] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set expects KEY=VALUE; got {text!r}")
        name, dot, inner = key.partition(".")
        if dot:
            nested.setdefault(name, {})[inner] = parse_value(value)
        else:
            values[name] = parse_value(value)
    values |= {name: _nested_parameter(name, inner) for name, inner in nested.items()} | parameters
    known = signature(kind).parameters
    unknown = sorted(values.keys() - known)
    if unknown:
        raise ValueError(f"{system} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    estimator = kind(**values)
    estimator.to_model()  # validates the parameters
    return estimator


def parse_value(text: str) -> Any:
    """Parse a Python literal; other text is returned as it is. 1e5 is an integer.

    >>> parse_value("3"), parse_value("1e5"), parse_value("median"), parse_value("[0.1, 2]"), parse_value("None")
    (3, 100000, 'median', [0.1, 2], None)
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return int(value) if isinstance(value, float) and "e" in text.lower() and value.is_integer() else value


def _nested_parameter(name: str, values: dict[str, Any]) -> Any:
    """Return the parameter ``columns`` or ``budget``."""
    if name == "columns":
        from pairloom.columns import Columns

        options = {key: value for key, value in values.items() if value not in KINDS}
        unknown = sorted(options.keys() - signature(Columns).parameters)
        if unknown:
            raise ValueError(f"--set columns.{unknown[0]}: the kind of a column is one of {', '.join(KINDS)}")
        kinds = {key: value for key, value in values.items() if key not in options}
        return Columns(kinds, **options) if options else values
    if name == "budget":
        from pairloom.race import Budget

        unknown = sorted(values.keys() - signature(Budget).parameters)
        if unknown:
            raise ValueError(f"budget has no {unknown[0]!r}; it has {', '.join(signature(Budget).parameters)}")
        return Budget(**values)
    raise ValueError(f"--set {name}.{next(iter(values))}: only columns and budget have nested values")
