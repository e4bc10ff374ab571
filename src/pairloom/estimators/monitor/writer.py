"""When the page of a model is written, and to which file."""

import os
import time
import warnings
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairloom.base.files import replacing
from pairloom.estimators.monitor.page import page
from pairloom.estimators.monitor.view import view_of

if TYPE_CHECKING:
    from pairloom.estimators.auc import AUCClassifier

MIN_INTERVAL = 2.0
"""Seconds between two pages during a call, and between single rows."""

ROWS_PER_CHECK = 1024
"""Rows after which the time is checked."""

WRITE_TIMES = 20.0
"""At the end of a call, a page is written if the last one is older than this many times its writing time, so that
writing takes at most a twentieth of the time."""


class Writer:
    """Writes the page of a model to a file. It is not part of the model."""

    def __init__(self, path: Any) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise ValueError(f"monitor must be None or the path of a page, such as 'page.html'; got {path!r}")
        self.path = path
        self._written = self._took = 0.0
        self._warned = False

    def begin(self, model: "AUCClassifier") -> None:
        """Write the first page, or raise OSError. The next page need not wait."""
        try:
            self._write(model)
            self._written = 0.0
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            text = f"monitor={os.fspath(self.path)!r} cannot be written: {reason}. Nothing was learned"
            raise OSError(getattr(error, "errno", None), text) from error

    def follow(self, model: "AUCClassifier", interval: float | None = None) -> None:
        """Write a page if the last one is ``interval`` seconds old (default MIN_INTERVAL); warn once if that fails."""
        if 0.0 <= time.time() - self._written < (MIN_INTERVAL if interval is None else interval):
            return
        try:
            self._write(model)
        except OSError as error:
            self._written = time.time()
            if not self._warned:
                self._warned = True
                text = f"the page {os.fspath(self.path)!r} could not be written ({error.strerror}); learning continues"
                warnings.warn(text, stacklevel=4)

    def finish(self, model: "AUCClassifier", *, whole: bool) -> None:
        """Write a page at the end of a call: always after ``fit``, else unless one was just written."""
        self.follow(model, 0.0 if whole else min(MIN_INTERVAL, WRITE_TIMES * self._took))

    def _write(self, model: "AUCClassifier") -> None:
        began = time.time()
        # A label may contain characters that UTF-8 cannot encode.
        text = page(view_of(model, with_importance=True), datetime.now().astimezone()).encode("utf-8", "replace")
        with replacing(Path(self.path), durable=False) as file:
            file.write(text)
        self._written = time.time()
        self._took = max(0.0, self._written - began)
