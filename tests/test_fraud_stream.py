"""The fraud-like stream: the claims of its docstring, column by column."""

import numpy as np
import pandas as pd
import pytest

from pairloom.data import fraud_like

TEXTS = ("channel", "country", "merchant", "device")
N = 40_000


@pytest.fixture(scope="module")
def stream():
    columns, y = fraud_like(N, seed=1, positive=0.02)
    return pd.DataFrame(columns), y


@pytest.mark.parametrize("drift", [0, 1.0, 3.5])
def test_rows_are_fixed_by_the_arguments(drift):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    columns, y = fraud_like(2_000, seed=7, drift=drift)
    again, labels = fraud_like(2_000, seed=7, drift=drift)
    pd.testing.assert_frame_equal(pd.DataFrame(columns), pd.DataFrame(again))
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    others = fraud_like(2_000, seed=8, drift=drift)[0], fraud_like(2_000, seed=7, drift=drift + 1)[0]
    for other in others:
        assert not np.array_equal(columns["amount"], other["amount"])


def test_the_frame_has_numbers_texts_and_a_rising_date(stream):
    frame, y = stream
    assert frame.shape == (N, 17)
    assert y.shape == (N,)
    assert set(y.tolist()) == {0, 1}
    numbers = [name for name in frame if name not in (*TEXTS, "time")]
    assert len(numbers) == 12
    for name in numbers:
        column = frame[name].to_numpy()
        assert column.dtype == np.float64
        assert not np.isinf(column).any()
        assert np.nanmin(column) >= 0
    assert frame["time"].is_monotonic_increasing
    assert frame["time"].dtype.kind == "M"
    assert frame["time"].iloc[-1] - frame["time"].iloc[0] == pytest.approx(pd.Timedelta(days=40), rel=0.01)
    for name in TEXTS:
        assert {type(value) for value in frame[name].dropna()} == {str}
    assert frame[["credit_used", "ip_risk"]].max().max() <= 1


@pytest.mark.parametrize(("n", "positive", "count"), [(1000, 0.01, 10), (1000, 0.5, 500), (2, 0.01, 1), (50, 1, 49)])
def test_the_share_of_fraud_is_exact_and_leaves_both_classes(n, positive, count):
    columns, y = fraud_like(n, positive=positive)
    assert y.sum() == count
    assert {len(column) for column in columns.values()} == {n}


@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_fraud_is_as_frequent_all_along_but_more_so_by_night(drift):
    columns, y = fraud_like(N, positive=0.05, drift=drift)
    quarters = y.reshape(4, -1).mean(axis=1)
    np.testing.assert_allclose(quarters, 0.05, atol=0.01)
    night = pd.Series(columns["time"]).dt.hour < 6
    assert y[night].mean() > 1.5 * y[~night].mean()


def test_gaps_are_where_they_should_be(stream):
    frame, y = stream
    share = frame.isna().mean()
    whole = ["time", "amount", "payments_1h", "payments_24h", "account_days", "channel", "country", "merchant"]
    assert not share[whole].any()
    for name, expected in (("minutes_since_last", 0.02), ("customer_age", 0.05), ("credit_used", 0.1)):
        assert share[name] == pytest.approx(expected, abs=0.005)
    terminal = frame["channel"].isin(["chip", "contactless", "swipe"])
    for name in ("device", "failed_logins"):
        np.testing.assert_array_equal(frame[name].isna(), terminal)
    assert frame["ip_risk"].isna()[terminal].all()
    np.testing.assert_array_equal(frame["amount_ratio"].isna(), frame["account_days"] < 30)
    missing = frame["ip_risk"].isna()[~terminal]
    fraud = y[~terminal] == 1
    assert missing[fraud].mean() > 1.5 * missing[~fraud].mean()


def test_texts_are_as_many_and_as_frequent_as_said(stream):
    frame, _ = stream
    assert frame[list(TEXTS)].nunique().to_dict() == {"channel": 6, "country": 15, "merchant": 300, "device": 20}
    countries = frame["country"].value_counts(normalize=True)
    assert countries.iloc[0] > 2 * countries.iloc[1] > 4 * countries.iloc[4]
    first = frame["device"].drop_duplicates(keep="first").dropna().index
    assert np.sum(first > 0.09 * N) == 12  # those that appear later
    late = frame["device"].value_counts(normalize=True).iloc[8:]
    assert late.sum() < 0.05


def test_amounts_are_heavy_tailed_and_grow_with_the_drift_only(stream):
    amount = stream[0]["amount"].to_numpy()
    assert amount.max() > 20 * np.median(amount)
    for drift, growth in ((0.0, 1.0), (1.0, 1.5)):
        payments = fraud_like(N, drift=drift)[0]["amount"]
        first, last = np.median(payments[:4000]), np.median(payments[-4000:])
        assert last / first == pytest.approx(growth, rel=0.1)


@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_merchants_go_bad_and_recover_only_if_the_world_moves(drift):
    columns, y = fraud_like(4 * N, positive=0.05, drift=drift)
    frame = pd.DataFrame({"merchant": columns["merchant"], "y": y})
    ends = (frame.iloc[: N // 2], frame.iloc[-N // 2 :])
    first, last = (set(end[end["y"] == 1]["merchant"].value_counts().index[:5]) for end in ends)
    assert len(first & last) >= 4 if drift == 0 else len(first & last) <= 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fraud_like(0), "n must be an integer"),
        (lambda: fraud_like(1), "n must be at least 2"),
        (lambda: fraud_like(10, positive=2), "positive must be a number at least 0 and at most 1"),
        (lambda: fraud_like(10, drift=-1), "drift must be a number at least 0"),
    ],
)
def test_slips_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
