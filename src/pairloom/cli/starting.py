"""The model that `fit` starts with: a new one, or with --from one that has learned, whose options stay as they are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from pairloom.cli.fit_options import FitOptions
from pairloom.cli.labels import LabelReader, normalize_label
from pairloom.cli.parameters import DEFAULT, KINDS, make_estimator, parse_value
from pairloom.cli.predict import load_classifier
from pairloom.columns.kinds import columns_of
from pairloom.estimators.saving import FileColumns

PAGE = "monitor"
"""The parameter that is not part of the model: the page may be elsewhere every night."""


def first_model(options: FitOptions) -> tuple[Any, LabelReader]:
    """Return the model before the first row, a new one or the one that is continued, and the reader of its labels."""
    if options.start is not None:
        model = load_to_continue(options, options.start)
        return model, LabelReader.of(model)
    labels = LabelReader(options.positive)
    parameters: dict[str, Any] = {} if options.positive is None else {"pos_label": labels.positive}
    if options.half_life is not None:
        half_life = options.half_life
        parameters["half_life"] = int(half_life) if half_life.is_integer() else half_life
    return make_estimator(options.system or DEFAULT, options.settings, **parameters), labels


def malformed_values(model: Any) -> dict[str, int]:
    """Return the numbers of malformed values that were treated as missing, by column, in all rows so far."""
    report = model.columns_ if hasattr(model, "stream_") else None
    return {} if report is None else dict(report.malformed)


def load_to_continue(options: FitOptions, path: Path) -> Any:
    """Return the model of a file; raise ValueError if it cannot learn, or if an option contradicts it."""
    model = load_classifier(path)
    if model.needs_all_rows:
        raise ValueError(f"--from {path}: {type(model).__name__} needs all rows at once; fit a new model")
    try:
        model.stream_.check_room(0)
    except ValueError as error:
        raise ValueError(f"--from {path}: {error}") from None
    for option, known in contradictions(options, model):
        _refuse(option, known, path)
    _set_page(model, options)
    return model


def contradictions(options: FitOptions, model: Any) -> Iterator[tuple[str, str]]:
    """Yield each option that contradicts a model, and what the model has instead."""
    known: FileColumns | None = model._file_columns
    if options.system not in (None, type(model).__name__):
        yield f"--system {options.system}", type(model).__name__
    if options.half_life is not None and options.half_life != model.half_life:
        yield f"--half-life {options.half_life:g}", f"half_life={model.half_life}"
    if options.positive is not None and normalize_label(options.positive) != _positive(model):
        yield f"--positive {options.positive}", f"the positive label {_positive(model)}"
    if known is not None and options.label not in (None, known.label):
        yield f"--label {options.label}", f"the label {known.label!r}"
    if known is not None and options.weight not in (None, known.weight):
        yield f"--weight {options.weight}", "no weights" if known.weight is None else f"the weight {known.weight!r}"
    names = {str(name) for name in getattr(model, "feature_names_in_", ())}
    for name in options.drop:
        if name in names:
            yield f"--drop {name}", "this column"
    if options.width not in (None, model.n_features_in_):
        yield f"--width {options.width}", f"{model.n_features_in_} columns"
    yield from _changed_parameters(options, model)


def _changed_parameters(options: FitOptions, model: Any) -> Iterator[tuple[str, str]]:
    for text in options.settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set expects KEY=VALUE; got {text!r}")
        if key != PAGE:
            present, given = _present(model, key, value), parse_value(value)
            if present != given and repr(present) != repr(given):
                yield f"--set {text}", f"{key}={present}"


def _present(model: Any, key: str, value: str) -> Any:
    """Return the value of a parameter of a model, or of an inner one such as columns.zip or budget.bytes."""
    name, _, inner = key.partition(".")
    if name not in model.get_params(deep=False):
        raise ValueError(f"{type(model).__name__} has no parameter {name!r}")
    if not inner:
        return getattr(model, name)
    if name == "columns" and value in KINDS:
        return None if model.columns_ is None else model.columns_.kinds.get(inner)
    return getattr(columns_of(model.columns) if name == "columns" else getattr(model, name), inner, None)


def _positive(model: Any) -> str | None:
    """Return the positive label as it would be given to --positive."""
    positive = LabelReader.of(model).positive
    found = getattr(model, "pos_label_", None) if positive is None else positive
    return None if found is None else normalize_label(str(found))


def _refuse(option: str, known: str, path: Path) -> NoReturn:
    raise ValueError(f"{option} contradicts {path}, which has {known}: leave the option out, or fit a new model")


def _set_page(model: Any, options: FitOptions) -> None:
    pages = [text.partition("=")[2] for text in options.settings if text.partition("=")[0] == PAGE]
    if pages:
        model.set_params(monitor=parse_value(pages[-1]))
