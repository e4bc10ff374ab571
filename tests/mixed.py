"""A stream of mixed columns: numbers with missing values, bool, categories, a date."""

import numpy as np
import pandas as pd

SHOPS = [f"shop {k}" for k in range(40)]


def mixed(n=200, seed=0):
    """Return a pandas frame and labels -1 and +1, which depend on every kind of column."""
    rng = np.random.default_rng(seed)
    amount, age = rng.lognormal(size=n), rng.normal(size=n)
    device, shop = rng.choice(["ios", "android", "web"], n), rng.choice(SHOPS, n)
    time = np.datetime64("2024-03-01T00:00") + np.cumsum(rng.integers(1, 90, n)).astype("timedelta64[m]")
    y = np.where(age + (device == "web") + (amount > 2) + 0.5 * rng.normal(size=n) > 1, 1.0, -1.0)
    frame = pd.DataFrame(
        {
            "amount": np.where(rng.random(n) < 0.2, np.nan, amount), "age": age, "items": rng.integers(1, 9, n),
            "known": rng.random(n) < 0.5, "device": device.astype(object), "shop": shop, "time": time,
        }
    )  # fmt: skip
    frame.loc[rng.random(n) < 0.1, "device"] = None
    frame.loc[rng.random(n) < 0.1, "time"] = pd.NaT
    # Missing values in a first row are tested separately: mappings do not declare their types.
    frame.loc[0, ["amount", "age", "device"]] = [1.0, 0.5, "ios"]
    frame.loc[0, "time"] = time[0]
    return frame, y


def records(frame):
    """Return rows as mappings."""
    return frame.to_dict("records")
