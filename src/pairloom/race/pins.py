"""A portfolio with some of its axes pinned."""

from dataclasses import fields, replace
from typing import Any

from pairloom.features import FeatureMap
from pairloom.features.scaling import check_scaling
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
        kernels = dict.fromkeys((scale, 1.0) for scale, _ in portfolio.kernels)
        portfolio = replace(portfolio, gamma=gamma, kernels=tuple(kernels))
    if not _is_race(scale):
        check_scaling(scale)
        kernels = dict.fromkeys((scale, factor) for _, factor in portfolio.kernels)
        portfolio = replace(portfolio, scale=scale, kernels=tuple(kernels))
    if max_strata is not None:
        portfolio = replace(portfolio, descent=replace(portfolio.descent, max_strata=max_strata))
    if n_components is not None:
        sizes = {name: min(n_components, getattr(portfolio, name)) for name in ("n_landmarks", "large_landmarks")}
        portfolio = replace(portfolio, **sizes)
    return portfolio if loss == "race" else _with_loss(portfolio, loss)


def _is_race(value: Any) -> bool:
    return isinstance(value, str) and value == "race"


def _with_loss(portfolio: Portfolio, loss: str) -> Portfolio:
    """Steps for one loss: its own, or those of the logistic loss; exact minimisers are for the square loss alone."""
    etas = [eta for name, eta in portfolio.descent.steps if name == loss]
    etas = etas or [eta for name, eta in portfolio.descent.steps if name != "square"]
    descent = replace(portfolio.descent, steps=tuple((loss, eta) for eta in etas))
    steps = replace(portfolio.steps, loss=loss)
    return replace(portfolio, descent=descent, steps=steps, exact=portfolio.exact if loss == "square" else None)
