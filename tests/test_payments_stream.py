"""The stream of payments with a sudden change: the claims of its docstring."""

import numpy as np
import pytest

from pairloom.data import payments

N = 100_000


@pytest.fixture(scope="module")
def stream():
    return payments(N, seed=1, positive=0.02, change=0.6)


def test_rows_are_fixed_by_the_arguments():
    columns, y = payments(2_000, seed=7, positive=0.1, change=0.5)
    again, labels = payments(2_000, seed=7, positive=0.1, change=0.5)
    assert all((columns[name] == again[name])[columns[name] == columns[name]].all() for name in columns)
    np.testing.assert_array_equal(y, labels)
    assert not np.array_equal(columns["amount"], payments(2_000, seed=8)[0]["amount"])
    np.testing.assert_array_equal(y[:1_000], payments(2_000, seed=7, positive=0.1, change=0.5)[1][:1_000])


def test_columns_are_what_the_docstring_says(stream):
    columns, _ = stream
    time = columns["time"]
    assert (np.diff(time) >= np.timedelta64(0)).all()
    assert (time[-1] - time[0]) / np.timedelta64(1, "D") == pytest.approx(N / 500, rel=0.01)
    assert (columns["amount"] > 300).mean() == pytest.approx(0.01, abs=0.002)
    assert np.isnan(columns["customer_age"]).mean() == pytest.approx(0.15, abs=0.005)
    sizes = {name: len(set(columns[name]) - {None}) for name in ("merchant", "country", "device")}
    assert sizes == {"merchant": 9, "country": 10, "device": 4}
    assert np.mean([device is None for device in columns["device"]]) == pytest.approx(0.02, abs=0.003)


def test_the_share_of_fraud_is_the_same_before_and_after(stream):
    y = stream[1]
    assert y[:60_000].mean() == pytest.approx(0.02, abs=0.002)
    assert y[60_000:].mean() == pytest.approx(0.02, abs=0.002)


def test_only_who_is_a_fraudster_changes(stream):
    columns, y = stream
    large, old = columns["amount"] > np.median(columns["amount"]), np.arange(N) < 60_000
    gaming = columns["merchant"] == "gaming"
    for signs, before in ((large, True), (gaming, False)):
        rates = [y[signs & part].mean() / y[~signs & part].mean() for part in (old, ~old)]
        assert (rates[0] > 2 * rates[1]) if before else (rates[1] > 2 * rates[0])
        assert signs[old].mean() == pytest.approx(signs[~old].mean(), abs=0.01)
    unchanged = payments(N, seed=1, positive=0.02)
    assert (unchanged[1][60_000:][large[60_000:]].mean()) > 0.02
    assert all(columns[name] is not None and (columns[name][:9] == unchanged[0][name][:9]).all()
               for name in ("amount", "merchant", "time"))  # fmt: skip


@pytest.mark.parametrize("change", [0.0, 1.0, None])
def test_a_change_at_either_end_leaves_one_method(change):
    columns, y = payments(20_000, positive=0.05, change=change)
    large = columns["amount"] > np.median(columns["amount"])
    assert (y[large].mean() > y[~large].mean()) == (change != 0.0)


@pytest.mark.parametrize("wrong", [{"n": 0}, {"positive": 0.0}, {"positive": 1.0}, {"change": 1.5}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        payments(**({"n": 100} | wrong))
