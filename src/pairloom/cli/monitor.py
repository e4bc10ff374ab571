"""The monitor page of `fit` and `serve`."""

from pathlib import Path
from typing import Any


def set_monitor(model: Any, page: Path | None) -> None:
    """Let a model write this page while it learns; ValueError if it has none."""
    if page is None:
        return
    if "monitor" not in model.get_params(deep=False):
        raise ValueError(f"--monitor is for AUCClassifier; {type(model).__name__} has no monitor page")
    model.set_params(monitor=str(page))


def start_monitor(model: Any, page: Path | None) -> None:
    """Write the first page of a fitted model before it learns; OSError if that fails."""
    set_monitor(model, page)
    if page is not None:
        model._page_writer()


def finish_monitor(model: Any) -> None:
    """Write the last page: between single rows, a page is written every two seconds only."""
    if getattr(model, "_writer", None) is not None:
        model._writer.finish(model, whole=True)
