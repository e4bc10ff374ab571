"""Alerts of `predict` and `serve`: by the budget of the model, with the realised rate at the end."""

from typing import Any

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.typing import Array
from pairloom.cli.console import Progress
from pairloom.metrics.intervals import wilson_of_share


class Alerts:
    """The alerts of one run, by the alert budget of a model, which continues where it was saved."""

    def __init__(self, model: Any, rate: float) -> None:
        check_number("--alert-rate", rate, 0.0, 1.0, open_low=True)
        self.rate, self.budget = rate, model.alert_budget(rate=rate)
        self.rows, self.alerts = 0, 0

    def flags(self, scores: Any) -> Array:
        """Return which rows raise an alert."""
        flags = np.asarray(self.budget(scores))
        self.rows += flags.size
        self.alerts += int(flags.sum())
        return flags

    def note(self, progress: Progress) -> None:
        """Print the realised rate next to the requested one; warn if its 95 % interval excludes that."""
        if not self.rows:
            return
        found = wilson_of_share(self.alerts / self.rows, self.rows)
        progress.note(f"alerts: {found.value:.4g} of {self.rows:,} rows, requested {self.rate:g}")
        if not found.low <= self.rate <= found.high:
            progress.note(
                f"pairloom: warning: the alert rate, {found.value:.4g} (95 % interval {found.low:.4g} to "
                f"{found.high:.4g}), differs from the requested {self.rate:g}: the scores of these rows differ from "
                "those before them, and the level is still following"
            )
