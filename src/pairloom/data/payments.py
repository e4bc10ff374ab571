"""Synthetic payments with rare fraud whose method changes overnight."""

import numpy as np
from scipy.special import expit

from pairloom.base.checks import check_count, check_number
from pairloom.base.typing import Array

ROWS_PER_DAY = 500
START = np.datetime64("2025-01-01T00:00:00", "s")

MERCHANTS = {
    "grocery": 0.28, "fuel": 0.15, "restaurant": 0.18, "travel": 0.08, "electronics": 0.09, "gaming": 0.07,
    "pharmacy": 0.07, "jewellery": 0.03, "vouchers": 0.05,
}  # fmt: skip
COUNTRIES = {
    "DE": 0.32, "FR": 0.16, "NL": 0.11, "GB": 0.10, "US": 0.08, "PL": 0.07, "RO": 0.05, "NG": 0.03, "BR": 0.04,
    "CN": 0.04,
}  # fmt: skip
DEVICES = {"ios": 0.24, "android": 0.28, "web": 0.24, "terminal": 0.24}

UNKNOWN_AGE = 0.15
"""Share of customers of unknown age."""


def payments(
    n: int, *, seed: int = 0, positive: float = 0.01, change: float | None = None
) -> tuple[dict[str, Array], Array]:
    r"""Generate payments, a few of them fraud: a date, heavy-tailed numbers, text, missing values, a sudden change.

    The log-odds of fraud are a sum over columns. At first they increase with the logarithm of the amount, and are
    higher for electronics and jewellery, in two countries, and at night. After the change they decrease with the
    amount, and are higher for gaming and vouchers, in two other countries, and for young customers. The columns
    themselves do not change, only who is a fraudster does.

    ================== ============================================================
    column             content
    ================== ============================================================
    time               datetime64[s], increasing, 500 payments a day
    amount             log-normal: one in a hundred is above 300
    minutes_since_last log-normal, not related to fraud
    merchant           9 values
    country            10 values
    device             4 values, None for 2 % of the rows; not related to fraud
    customer_age       years, NaN for 15 % of the rows
    ================== ============================================================

    Cost: O(n); 20,000 rows take 20 ms. :func:`fraud_like` is less simple, and drifts slowly.

    Parameters
    ----------
    n
        Number of rows.
    seed
        Seed of the random generator.
    positive
        Expected share of fraud, above 0 and below 1; the same before and after the change.
    change
        Position of the change, as a share of the stream; None: no change.

    Returns
    -------
    columns, y
        A dict with one array per column, as ``pandas.DataFrame`` takes it; and 1 for fraud, 0 for the rest.

    >>> columns, y = payments(20_000, positive=0.02, change=0.6)
    >>> len(columns), int(y[:12_000].sum()), int(y[12_000:].sum())
    (7, 249, 146)
    """
    check_count("n", n)
    check_number("positive", positive, 0, 1)
    if not 0 < positive < 1:
        raise ValueError(f"positive must be a number above 0 and below 1; got {positive!r}")
    if change is not None:
        check_number("change", change, 0, 1)
    rng = np.random.default_rng(seed)
    columns, size = _columns(n, rng)
    at = n if change is None else round(change * n)
    before, after = _log_odds(columns, size)
    chance = np.concatenate([_with_share(before[:at], positive), _with_share(after[at:], positive)])
    return columns, (rng.random(n) < chance).astype(np.int64)


def _columns(n: int, rng: np.random.Generator) -> tuple[dict[str, Array], Array]:
    """Draw the columns, and the logarithm of the amounts in standard deviations."""
    seconds = np.sort(rng.uniform(0.0, 86_400 * n / ROWS_PER_DAY, n))
    size = rng.normal(size=n)
    texts = {
        name: rng.choice(np.array(list(shares), object), n, p=list(shares.values()))
        for name, shares in (("merchant", MERCHANTS), ("country", COUNTRIES), ("device", DEVICES))
    }
    texts["device"][rng.random(n) < 0.02] = None
    age = np.clip(rng.normal(43, 15, n), 18, 92).round()
    return {
        "time": START + seconds.astype("timedelta64[s]"),
        "amount": np.exp(3.2 + 1.1 * size).round(2),
        "minutes_since_last": np.exp(5.0 + 1.5 * rng.normal(size=n)).round(1),
        **texts,
        "customer_age": np.where(rng.random(n) < UNKNOWN_AGE, np.nan, age),
    }, size


def _log_odds(columns: dict[str, Array], size: Array) -> tuple[Array, Array]:
    """Return the log-odds of fraud by the first method and by the second, each up to a constant."""
    hour = (columns["time"] - columns["time"].astype("M8[D]")) / np.timedelta64(1, "h")
    before = 1.5 * size + 2.0 * np.isin(columns["merchant"], ["electronics", "jewellery"])
    before += 2.0 * np.isin(columns["country"], ["NG", "RO"]) + 1.2 * (hour < 6)
    after = -1.3 * size + 2.4 * np.isin(columns["merchant"], ["gaming", "vouchers"])
    after += 2.0 * np.isin(columns["country"], ["BR", "CN"]) + 1.0 * (columns["customer_age"] < 25)
    return before, after


def _with_share(log_odds: Array, share: float) -> Array:
    """Return the probabilities of these log-odds plus the constant that gives them this mean, by bisection."""
    low, high = -50.0, 50.0
    for _ in range(60 if len(log_odds) else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(log_odds + middle).mean() < share else (low, middle)
    return np.asarray(expit(log_odds + low))
