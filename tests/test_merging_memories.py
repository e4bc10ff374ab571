"""Merging memories: strata keep counts, reservoirs stay unbiased, the newest rows are those of all parts."""

import numpy as np
import pytest

from pairloom import Learner, Stream
from pairloom.base.tree import copy
from pairloom.features import Identity
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.memory.merging import systematic
from pairloom.steps import Constant


def streams(memory, sizes, seed=0):
    """A base and parts, whose rows are their own numbers; row numbers of each, and the merged stream."""
    n = sum(sizes)
    X = np.arange(n, dtype=float)[:, None]
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    model = Learner(Identity(), memory=memory, step=Constant(1e-9), dtype="float64", seed=seed)
    cuts = np.cumsum([0, *sizes])
    base = Stream(model).partial_fit(X[: cuts[1]], y[: cuts[1]])
    parts = base.fork(len(sizes) - 1)
    for part, a, b in zip(parts, cuts[1:], cuts[2:], strict=False):
        if b > a:
            part.partial_fit(X[a:b], y[a:b])
    return base, parts, base.merge(parts), y


def kept(stream):
    slots = stream.learned.memory.slots
    used = slots.mass > 0
    return slots.points[used, 0].astype(int), slots.mass[used], slots.labels[used]


def test_the_newest_rows_of_all_parts_in_turn():
    _, _, merged, _ = streams(Window(5), (10, 4, 7, 0))
    assert sorted(kept(merged)[0].tolist()) == [11, 12, 13, 19, 20]
    merged.partial_fit([[100.0]], [1.0])  # the oldest is the third newest of the first part
    assert sorted(kept(merged)[0].tolist()) == [12, 13, 19, 20, 100]


def test_rows_of_the_base_fill_the_rest():
    _, _, merged, _ = streams(Latest("previous", 6), (10, 1, 2))
    assert sorted(kept(merged)[0].tolist()) == [7, 8, 9, 10, 11, 12]
    assert merged.learned.memory.seen.tolist() == [13]


def test_the_whole_history_is_kept_in_the_order_of_the_parts():
    _, parts, merged, y = streams(WholeHistory(100), (20, 10, 15))
    rows, _, labels = kept(merged)
    assert rows.tolist() == list(range(45))
    np.testing.assert_array_equal(labels, y > 0)
    with pytest.raises(ValueError, match="max_rows=40"):
        streams(WholeHistory(40), (20, 10, 15))
    assert len(kept(parts[0])[0]) == 30


@pytest.mark.parametrize("memory", [Reservoir(12, by="joint"), RSx(12)], ids=["Reservoir", "RSx"])
def test_samples_of_the_past_stay_unbiased(memory):
    """The weighted mean of the rows kept, over many seeds, is that of all rows."""
    sizes, means, counts = (60, 30, 90), [], np.zeros(180)
    for seed in range(300):
        rows, mass, _ = kept(streams(memory, sizes, seed)[2])
        means.append(mass @ rows / mass.sum())
        np.add.at(counts, rows, mass / mass.sum())
    error = np.std(means) / np.sqrt(len(means))
    assert abs(np.mean(means) - 89.5) < 4 * error
    shares = [counts[a:b].sum() / len(means) for a, b in ((0, 60), (60, 90), (90, 180))]
    np.testing.assert_allclose(shares, [1 / 3, 1 / 6, 1 / 2], atol=0.03)


def test_a_reservoir_that_is_not_full_keeps_all_rows():
    _, _, merged, _ = streams(Reservoir(50, by="joint"), (20, 10, 15))
    rows, mass, _ = kept(merged)
    assert sorted(rows.tolist()) == list(range(45))
    assert (mass == 1).all()


def test_systematic_sampling_keeps_what_stands_for_much():
    worth = np.array([100.0, *np.ones(50)])
    kept_rows, masses = systematic(worth, 6, np.random.default_rng(0))
    assert 0 in kept_rows.tolist()
    assert masses.sum() == pytest.approx(150)


@pytest.mark.parametrize("representative", ["fifo", "reservoir", "centroid"])
@pytest.mark.parametrize("step", [0.05, "mean"])
def test_strata_keep_counts_and_the_mean_centre_is_exact(representative, step):
    memory = Strata(eps=30.0**2, max_strata=4, representative=representative, centroid_step=step)
    base, parts, merged, y = streams(memory, (30, 40, 50))
    state = merged.learned.memory
    for c, label in enumerate((-1.0, 1.0)):
        assert state.counts[4 * c : 4 * c + 4].sum() == pytest.approx((y == label).sum())
    assert (state.used <= 4).all()
    for k in range(2):  # the first stratum of each class is that of the base; what parts added is added
        added = [part.learned.memory.counts[4 * k] - base.learned.memory.counts[4 * k] for part in parts]
        assert state.counts[4 * k] >= base.learned.memory.counts[4 * k] + sum(added) - 1e-9
    merged.partial_fit([[1.0], [2.0]], [1.0, -1.0])


def test_strata_beyond_the_limit_are_united():
    memory = Strata(eps=0.5, max_strata=3)
    _, parts, merged, y = streams(memory, (2, 40, 40))
    state = merged.learned.memory
    assert state.used.max() == 3
    assert state.counts.sum() == pytest.approx(len(y))
    assert all(part.learned.memory.used.max() == 3 for part in parts)


def test_seats_cannot_be_merged():
    with pytest.raises(TypeError, match="neyman"):
        streams(Strata(eps=1.0, allocation="neyman"), (30, 10, 10))


def test_merging_changes_neither_base_nor_parts():
    base, parts, _, _ = streams(Strata(eps=30.0**2), (30, 40, 50))
    before = copy(base.state)
    base.merge(parts).partial_fit([[5.0]], [1.0])
    np.testing.assert_array_equal(before.learned.memory.slots.points, base.learned.memory.slots.points)
