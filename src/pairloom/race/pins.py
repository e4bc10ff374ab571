"""A portfolio with some of its axes pinned."""

from dataclasses import fields, replace
from typing import Any

from pairloom.features import FeatureMap
from pairloom.race.portfolio import OneMap, Portfolio


def pinned(
    portfolio: Portfolio,
    features: FeatureMap | None = None,
    gamma: Any = "race",
    scale: Any = "race",
    loss: str = "race",
    n_components: int | None = None,
    max_strata: int | None = None,
) -> Portfolio:
    """The candidates of a portfolio that have these values; "race" and None leave it as it is."""
    if features is not None:
        values = {f.name: getattr(portfolio, f.name) for f in fields(Portfolio)}
        portfolio = OneMap(**values, features=features)
    if not _is_race(gamma):
        portfolio = replace(portfolio, gamma=gamma, widths=(1.0,), near_widths=(1.0,), far_widths=())
    if not _is_race(scale):
        portfolio = replace(portfolio, scales=(scale,))
    if max_strata is not None:
        portfolio = replace(portfolio, descent=replace(portfolio.descent, max_strata=max_strata))
    if n_components is not None:
        portfolio = _cut(portfolio, n_components)
    return portfolio if loss == "race" else _with_loss(portfolio, loss)


def _is_race(value: Any) -> bool:
    return isinstance(value, str) and value == "race"


def _with_loss(portfolio: Portfolio, loss: str) -> Portfolio:
    """Steps for one loss: its own, or those of the logistic loss; exact minimisers are for the square loss alone."""
    etas = [eta for name, eta in portfolio.descent.steps if name == loss]
    etas = etas or [eta for name, eta in portfolio.descent.steps if name != "square"]
    descent = replace(portfolio.descent, steps=tuple((loss, eta) for eta in etas))
    return replace(portfolio, descent=descent, exact=portfolio.exact if loss == "square" else None)


def _cut(portfolio: Portfolio, size: int) -> Portfolio:
    """No more than ``size`` features anywhere, but for the linear model's."""
    size += size % 2
    return replace(
        portfolio,
        scout_landmarks=min(size, portfolio.scout_landmarks),
        scout_rank=min(size, portfolio.scout_rank),
        n_components=min(size, portfolio.n_components),
        rank=min(size, portfolio.rank),
        exact_rank=min(size, portfolio.exact_rank),
        whitening=tuple(min(size // 2, k) for k in portfolio.whitening),
    )
