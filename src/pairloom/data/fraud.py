"""Synthetic card payments with fraud: numbers, text, dates and missing values."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.typing import Array

ROWS_PER_DAY = 1_000
PIN_LIMIT = 50.0
"""The largest contactless amount without a PIN, before amounts grow."""
START = np.datetime64("2024-01-01T00:00:00", "s")

NUMBERS = (
    "amount", "amount_ratio", "payments_1h", "payments_24h", "minutes_since_last", "account_days", "customer_age",
    "distance_km", "ip_risk", "failed_logins", "credit_used", "merchant_days",
)  # fmt: skip
CHANNELS = ("chip", "contactless", "online", "app", "recurring", "swipe")
CHIP, CONTACTLESS, ONLINE, APP, RECURRING, SWIPE = range(6)
USUAL_CHANNELS = (0.24, 0.22, 0.26, 0.12, 0.07, 0.09)

COUNTRIES = ("DE", "FR", "NL", "AT", "IT", "ES", "PL", "GB", "US", "CH", "TR", "RO", "BR", "TH", "NG")
N_MERCHANTS = 300
N_DEVICES, N_NEW_DEVICES = 8, 12

TESTING, TAKEOVER, STOLEN, SKIMMED, BUST, PLAIN = range(1, 7)
PLAIN_SHARE = 0.06
"""Share of fraud without signs; the five other kinds have equal shares without drift."""
LOOKALIKE_SHARE = 0.015
"""Share of genuine payments with (fewer) signs of fraud."""
DRIFT_AMPLITUDE, DRIFT_TURNS = 1.3, 2.0
"""At drift 1: the amplitude of the log odds of kinds, and how often the risky merchants and countries change."""


def fraud_like(n: int, *, seed: int = 0, positive: float = 0.01, drift: float = 0.0) -> tuple[dict[str, Array], Array]:
    """Generate card payments, a few of them fraud: numbers, text, a date, missing values, and optional drift.

    There are six kinds of fraud. Stolen numbers are *tested* with small payments in quick succession; accounts are
    *taken over*; *stolen* cards are used without a PIN, for amounts just below the limit; *skimmed* cards are swiped in
    a country where that is easy; new accounts are *bust out* up to their limit; and some fraud looks like any other
    payment. Each kind has several signs, of which a payment shows some, and signs of different kinds are opposite:
    small and large amounts, young and old accounts. No single column separates the classes. Some merchants have
    frequent fraud, but most of their payments are genuine; and 15 in 1,000 genuine payments show signs of fraud.

    ================== ================================================================ ==========================
    column             content                                                          missing
    ================== ================================================================ ==========================
    time               datetime64[s], increasing, 1,000 payments a day, fewer at night  none
    amount             heavy-tailed                                                     none
    amount_ratio       relative to the customer's usual amount                          young accounts
    payments_1h        count, before this one                                           none
    payments_24h       count, before this one                                           none
    minutes_since_last heavy-tailed                                                     at random, 2 %
    account_days       age of the account                                               none
    customer_age       years                                                            at random, 5 %
    distance_km        from home, heavy-tailed                                          online; more for fraud
    ip_risk            0 to 1                                                           terminals; more for fraud
    failed_logins      count                                                            terminals
    credit_used        share of the limit                                               at random, 10 %
    merchant_days      age of the merchant's contract                                   at random, 3 %
    channel            6 values                                                         none
    country            15 values, with frequency 1 / rank^1.5                           none
    merchant           300 values, a few of them risky                                  none
    device             8 values, and 12 rare ones that appear later                     terminals (None)
    ================== ================================================================ ==========================

    Cost: O(n); 200,000 rows take about a second and 30 MB.

    Parameters
    ----------
    n
        Number of rows.
    seed
        Seed of the random generator.
    positive
        Share of fraud, exact to the nearest row, with at least one row of each class. It is constant over the stream,
        but higher at night.
    drift
        Amount of change from the first row to the last, for any n. 0: none. 1: kinds of fraud become more and less
        frequent, each along a wave of period 4/3 of the stream; each risky merchant or country is replaced after half
        of the stream; amounts grow by a half; fraudsters learn to hide two signs.

    Returns
    -------
    columns, y
        A dict with one array per column, as ``pandas.DataFrame`` takes it; and 1 for fraud, 0 for the rest.

    >>> columns, y = fraud_like(5000, seed=3)
    >>> len(columns), int(y.sum())
    (17, 50)
    >>> columns["time"].dtype, sorted(set(columns["channel"]))
    (dtype('<M8[s]'), ['app', 'chip', 'contactless', 'online', 'recurring', 'swipe'])
    >>> bool(np.isnan(columns["ip_risk"]).any())
    True
    """
    check_count("n", n)
    if n < 2:
        raise ValueError(f"n must be at least 2, for both classes; got {n!r}")
    check_number("positive", positive, 0, 1)
    check_number("drift", drift, 0)
    rng = np.random.default_rng(seed)
    world = _World.draw(rng, drift)
    time, hour = _times(n, rng)
    y = _labels(hour, min(max(1, round(positive * n)), n - 1), rng)
    day = _Day(rng, world, (np.arange(n) + 0.5) / n, hour, y, world.kinds(y, rng))
    columns = _places(day) | _habits(day)
    columns |= _amounts(day, columns)
    return {"time": time, **_numbers(day, columns), **_texts(day, columns)}, y


@dataclass(frozen=True)
class _World:
    """Properties drawn once: risky merchants and countries, and the kinds of fraud, over time."""

    drift: float
    wave: Array
    risky_merchants: Array
    risky_countries: Array
    price: Array
    released: Array

    @classmethod
    def draw(cls, rng: np.random.Generator, drift: float) -> "_World":
        turns = 2 + int(np.ceil(DRIFT_TURNS * drift))
        merchants = np.stack([rng.permutation(N_MERCHANTS) for _ in range(turns)])[:, :8]
        countries = np.stack([rng.permutation(np.arange(4, len(COUNTRIES))) for _ in range(turns)])[:, :2]
        wave = (rng.permutation(5) + rng.random()) / 5
        released = np.sort(rng.uniform(0.1, 0.95, N_NEW_DEVICES))
        return cls(drift, wave, merchants, countries, 0.6 * rng.normal(size=N_MERCHANTS), released)

    def kinds(self, y: Array, rng: np.random.Generator) -> Array:
        """Draw the kind of fraud of each row, or the kind it looks like; 0 for none."""
        u = (np.arange(len(y)) + 0.5) / len(y)
        waves = np.cos(2 * np.pi * (0.75 * u[:, None] + self.wave))
        odds = np.exp(DRIFT_AMPLITUDE * self.drift * waves)
        upto = np.cumsum((1 - PLAIN_SHARE) * odds / odds.sum(axis=1, keepdims=True), axis=1)
        fraud = 1 + (rng.random(len(y))[:, None] > upto).sum(axis=1)
        alike = np.where(rng.random(len(y)) < LOOKALIKE_SHARE, rng.integers(1, 6, len(y)), 0)
        return np.where(y == 1, fraud, alike)

    def risky(self, slots: Array, u: Array, rng: np.random.Generator) -> Array:
        """Draw from those that are risky at the time; they are replaced one after the other."""
        k = rng.integers(0, slots.shape[1], len(u))
        turn = (DRIFT_TURNS * self.drift * u + k / slots.shape[1]).astype(int)
        return np.asarray(slots[turn, k])


@dataclass(frozen=True)
class _Day:
    """Properties of all rows from which their columns are drawn."""

    rng: np.random.Generator
    world: _World
    u: Array
    hour: Array
    y: Array
    kind: Array

    def signs(self, kind: int, share: float, learned: float = 0.0) -> Array:
        """Draw the rows of a kind that show one of its signs; ``learned``: the share that hides it after a drift."""
        hidden = np.clip(learned * self.world.drift * self.u, 0, 1)
        p = np.where(self.y == 1, share * (1 - hidden), 0.5 * share)
        return np.flatnonzero((self.kind == kind) & (self.rng.random(len(self.u)) < p))


def _times(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw increasing times; return them and their hours."""
    weight = 1.2 - np.cos(2 * np.pi * (np.arange(24) - 3) / 24)
    days = np.sort(rng.uniform(0, n / ROWS_PER_DAY, n))
    part = days - np.floor(days)
    edges = np.concatenate([[0.0], np.cumsum(weight / weight.sum())])
    hour = np.interp(part, edges, np.arange(25))
    seconds = ((np.floor(days) * 24 + hour) * 3600).astype("timedelta64[s]")
    return START + seconds, hour


def _labels(hour: Array, n_positive: int, rng: np.random.Generator) -> Array:
    """Draw n_positive rows of fraud, twice as often at night."""
    weight = np.where(hour < 6, 2.0, 1.0)
    y = np.zeros(len(hour), dtype=np.int64)
    y[rng.choice(len(hour), n_positive, replace=False, p=weight / weight.sum())] = 1
    return y


def _places(day: _Day) -> dict[str, Array]:
    """Draw channel, country, merchant and device, as codes, and the distance."""
    rng, n = day.rng, len(day.u)
    channel = rng.choice(6, n, p=USUAL_CHANNELS)
    channel = np.where((day.hour < 6) & (channel < ONLINE) & (rng.random(n) < 0.5), ONLINE, channel)
    country = _zipf(len(COUNTRIES), 1.5, n, rng)
    for kind, into in ((TESTING, (ONLINE,)), (TAKEOVER, (ONLINE, APP)), (STOLEN, (CONTACTLESS,)), (SKIMMED, (SWIPE,))):
        at = day.signs(kind, 0.9)
        channel[at] = rng.choice(into, len(at))
    at = day.signs(SKIMMED, 0.8)
    country[at] = day.world.risky(day.world.risky_countries, day.u[at], rng)
    virtual = (channel == ONLINE) | (channel == APP) | (channel == RECURRING)
    merchant = _zipf(N_MERCHANTS // 2, 0.8, n, rng) * 2 + virtual
    for kind, share in ((TESTING, 0.4), (BUST, 0.4)):
        at = day.signs(kind, share)
        risky = day.world.risky(day.world.risky_merchants, day.u[at], rng)
        merchant[at] = risky // 2 * 2 + virtual[at]  # even merchants have terminals, odd ones are online
    device = _zipf(N_DEVICES, 1.0, n, rng)
    newest = np.searchsorted(day.world.released, day.u)
    device = np.where((newest > 0) & (rng.random(n) < 0.03), N_DEVICES + rng.integers(0, np.maximum(newest, 1)), device)
    distance = np.exp(1.5 + 1.2 * rng.normal(size=n)) + (country > 0) * np.exp(6 + 0.7 * rng.normal(size=n))
    at = day.signs(STOLEN, 0.8)
    distance[at] = np.exp(4.3 + 0.5 * rng.normal(size=len(at)))
    return {"channel": channel, "country": country, "merchant": merchant, "device": device, "distance_km": distance}


def _habits(day: _Day) -> dict[str, Array]:
    """Draw the customers and their history."""
    rng, n = day.rng, len(day.u)
    spends = rng.normal(size=n)
    account = rng.gamma(1.3, 600, n)
    at = day.signs(BUST, 0.85)
    account[at] = rng.gamma(4, 30, len(at))
    at = day.signs(TAKEOVER, 0.6)
    account[at] += 1000
    per_day = rng.poisson(np.exp(0.4 + 0.4 * spends))
    per_hour = rng.binomial(per_day, rng.beta(0.6, 2.5, n))
    failed = rng.poisson(0.3, n) + np.where(rng.random(n) < 0.05, rng.geometric(0.3, n), 0)
    risk = rng.beta(1.5, 7, n)
    for kind in (TESTING, STOLEN):
        at = day.signs(kind, 0.8)
        more = 1 + rng.poisson(0.7, len(at))
        per_hour[at] += more
        per_day[at] += more
    for kind in (TAKEOVER, SKIMMED, BUST):
        at = day.signs(kind, 0.8)
        per_hour[at] = per_day[at] = 0
    at = day.signs(TAKEOVER, 0.7, 0.4)
    failed[at] += rng.geometric(0.7, len(at))
    at = day.signs(TAKEOVER, 0.6)
    risk[at] = rng.beta(6, 12, len(at))
    minutes = np.exp(7 - 0.35 * per_day - 0.8 * (per_hour > 0) + rng.normal(size=n))
    age = np.clip(18 + rng.gamma(2.2, 13, n), 18, 95)
    at = day.signs(TAKEOVER, 0.6)
    age[at] = np.clip(rng.normal(72, 8, len(at)), 18, 95)
    return {
        "payments_1h": per_hour, "payments_24h": per_day, "minutes_since_last": minutes, "account_days": account,
        "customer_age": age, "ip_risk": risk, "failed_logins": failed, "spends": spends,
    }  # fmt: skip


def _amounts(day: _Day, columns: dict[str, Array]) -> dict[str, Array]:
    """Draw the amounts, relative to usual ones and to the credit limit."""
    rng, n = day.rng, len(day.u)
    level = np.exp(np.log(1.5) * day.world.drift * day.u)
    usual = np.exp(3.2 + 0.7 * columns["spends"])
    amount = usual * np.exp(day.world.price[columns["merchant"]] + 0.7 * rng.normal(size=n))
    regular = (columns["channel"] == RECURRING) | (rng.random(n) < 0.04)
    amount = np.where(regular, rng.choice((0.99, 4.99, 9.99, 14.99), n), amount)
    used = rng.beta(1.2, 1.8, n)
    at = day.signs(TESTING, 0.9, 0.3)
    amount[at] = np.exp(rng.uniform(-0.5, 2.0, len(at)))
    at = day.signs(TAKEOVER, 0.8)
    amount[at] = usual[at] * np.exp(1.3 + 0.4 * rng.normal(size=len(at)))
    at = day.signs(STOLEN, 0.9)
    amount[at] = rng.uniform(0.7, 1.0, len(at)) * PIN_LIMIT
    at = day.signs(SKIMMED, 0.8)
    amount[at] = 20 * rng.integers(5, 11, len(at))
    at = day.signs(BUST, 0.85)
    used[at] = rng.beta(12, 4, len(at))
    merchant_days = rng.gamma(2, 500, n)
    at = day.signs(BUST, 0.4)
    merchant_days[at] = rng.gamma(2, 80, len(at))
    noisy = usual * np.exp(0.2 * rng.normal(size=n))
    channel = np.where((columns["channel"] == CONTACTLESS) & (amount > PIN_LIMIT), CHIP, columns["channel"])
    amount = np.round(np.maximum(amount * level, 0.01), 2)
    return {
        "amount": amount, "amount_ratio": amount / (noisy * level), "credit_used": used,
        "merchant_days": merchant_days, "channel": channel,
    }  # fmt: skip


def _numbers(day: _Day, columns: dict[str, Array]) -> dict[str, Array]:
    """Return the columns of numbers, NaN where missing."""
    rng, n = day.rng, len(day.u)
    terminal = np.isin(columns["channel"], (CHIP, CONTACTLESS, SWIPE))
    hides = np.zeros(n, dtype=bool)
    for kind in (TESTING, TAKEOVER):
        hides[day.signs(kind, 0.5)] = True
    missing = {
        "amount_ratio": columns["account_days"] < 30,
        "minutes_since_last": rng.random(n) < 0.02,
        "customer_age": rng.random(n) < 0.05,
        "distance_km": ~terminal & (hides | (rng.random(n) < 0.3)),
        "ip_risk": terminal | hides | (rng.random(n) < 0.08),
        "failed_logins": terminal,
        "credit_used": rng.random(n) < 0.10,
        "merchant_days": rng.random(n) < 0.03,
    }
    return {name: np.where(missing.get(name, False), np.nan, columns[name].astype(float)) for name in NUMBERS}


def _texts(day: _Day, columns: dict[str, Array]) -> dict[str, Array]:
    """Return the columns of text, None where missing."""
    terminal = np.isin(columns["channel"], (CHIP, CONTACTLESS, SWIPE))
    names = {
        "channel": CHANNELS,
        "country": COUNTRIES,
        "merchant": [f"m{k:03d}" for k in range(N_MERCHANTS)],
        "device": [f"phone {k}" for k in range(N_DEVICES + N_NEW_DEVICES)],
    }
    texts = {name: np.array(known, dtype=object)[columns[name]] for name, known in names.items()}
    texts["device"][terminal] = None
    return texts


def _zipf(k: int, power: float, n: int, rng: np.random.Generator) -> Array:
    """Draw codes 0 to k - 1 with frequency 1 / (code + 1)^power."""
    weight = np.arange(1, k + 1) ** -power
    return rng.choice(k, n, p=weight / weight.sum())
