"""AUC of a whole stream in bounded memory: valid bounds for any rows, chunking and merges."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from pairloom.base.tree import copy, flatten, nbytes, same, unflatten
from pairloom.metrics import StreamingAUC
from pairloom.metrics.digest import NODES_PER_ROW, REST, Digest, join_levels, keys_of, masses
from tests.conftest import examples

TINY = 168 * 4
"""Room for 4 rows and 16 nodes of each class: nearly everything is compressed."""

ROUNDING = 1e-12

LONG = 200_000


def stream(n, seed=0, share=0.3, weighted=False):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    positive[:2] = [True, False]
    return positive, rng.normal(size=n) + positive, rng.exponential(size=n) if weighted else np.ones(n)


def assert_holds(auc, y, s, w=None):
    lo, hi = auc.bounds
    ranks = s if np.isfinite(s).all() else np.unique(s, return_inverse=True)[1]
    exact = roc_auc_score(y, ranks, sample_weight=w)
    assert 0 <= lo <= auc.value <= hi <= 1
    assert lo - ROUNDING <= exact <= hi + ROUNDING
    assert nbytes(auc) <= auc.max_bytes
    return hi - lo


TRANSFORMS = {
    "itself": lambda z, t: z,
    "heavy tails": lambda z, t: np.sinh(8 * z),
    "near 1e3": lambda z, t: 1e3 + 1e-9 * z,
    "discrete": lambda z, t: np.round(z, 1),
    "drifting": lambda z, t: z + 5 * t,
    "shrinking": lambda z, t: 3 + z * 10.0 ** (-10 * t),
    "many scales": lambda z, t: np.round(z) + 10.0 ** -np.abs(np.modf(1e3 * z)[0] * 15),
}


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_a_megabyte_knows_the_area_to_three_digits(kind):
    y, z, w = stream(LONG, weighted=kind in ("itself", "drifting"))
    s = TRANSFORMS[kind](z, np.arange(LONG) / LONG)
    auc = StreamingAUC().update(y, s, w)
    assert assert_holds(auc, y, s, w) <= 0.0004  # ten times better than documented
    assert auc.counts == (y.sum(), (~y).sum())
    assert nbytes(auc) > 900_000 or kind == "discrete"


def test_one_positive_in_a_thousand():
    y, s, w = stream(LONG, share=0.001, weighted=True)
    assert assert_holds(StreamingAUC().update(y, s, w), y, s, w) <= 0.0002


@pytest.mark.parametrize("name", ["heavy tails", "near 1e3"])
def test_a_rising_function_of_the_scores_leaves_the_area_where_it_was(name):
    y, z, _ = stream(20_000)
    z = np.round(z, 4)
    s = {"near 1e3": lambda z, t: 1e3 + 1e-6 * z}.get(name, TRANSFORMS[name])(z, 0.0)
    assert len(np.unique(s)) == len(np.unique(z))
    assert 0 < assert_holds(StreamingAUC(50_000).update(y, s), y, z) < 0.004


@examples(40)
@given(st.data())
def test_bounds_hold_for_any_scores_and_no_cut_shows(data):
    n = data.draw(st.integers(2, 80))
    of = st.one_of(st.floats(allow_nan=False), st.integers(-3, 3).map(float), st.floats(1, 1 + 1e-13))
    s = np.array(data.draw(st.lists(of, min_size=n, max_size=n)))
    w = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 0.1, 3.0, 1e9]), min_size=n, max_size=n)))
    y = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    max_bytes = data.draw(st.sampled_from([168, 2 * 168, TINY]))
    cuts = sorted(data.draw(st.lists(st.integers(0, n))))
    whole, cut = StreamingAUC(max_bytes).update(y, s, w), StreamingAUC(max_bytes)
    for a, b in zip([0, *cuts], [*cuts, n], strict=True):
        cut.update(y[a:b], s[a:b], w[a:b])
    assert same(whole, cut)
    assert whole.bounds == cut.bounds or min(whole.counts) == 0
    keep = w > 0
    if y[keep].any() and not y[keep].all():
        assert_holds(whole, y[keep], s[keep], w[keep])
    else:
        assert np.isnan([whole.value, *whole.bounds]).all()
    assert whole.counts == ((y & keep).sum(), (~y & keep).sum())


@pytest.mark.parametrize("rows", [1, 7, 99, 1000])
def test_no_cut_of_a_longer_stream_shows(rows):
    y, s, w = stream(3000, weighted=True)
    cut = StreamingAUC(20_000)
    for at in range(0, 3000, rows):
        cut.update(y[at : at + rows], s[at : at + rows], w[at : at + rows])
    assert same(cut, StreamingAUC(20_000).update(y, s, w))


@examples(15)
@given(st.integers(0, 999), st.lists(st.integers(0, 300), min_size=1, max_size=7), st.randoms(use_true_random=False))
def test_any_tree_of_merges_holds_the_area(seed, cuts, order):
    y, s, w = stream(300, seed, weighted=seed % 2 == 0)
    s = np.round(s, seed % 4)
    cuts = sorted(cuts)
    parts = [StreamingAUC(TINY).update(y[a:b], s[a:b], w[a:b]) for a, b in zip([0, *cuts], [*cuts, 300], strict=True)]
    while len(parts) > 1:
        one, other = parts.pop(order.randrange(len(parts))), parts.pop(order.randrange(len(parts)))
        before = copy(other)
        assert one.merge(other) is one
        assert same(other, before)
        parts.append(one)
    assert_holds(parts[0], y, s, w)
    assert parts[0].counts == (y.sum(), (~y).sum())
    parts[0].update(y, s, w)
    assert_holds(parts[0], np.tile(y, 2), np.tile(s, 2), np.tile(w, 2))


def test_merges_are_as_fine_as_one_pass():
    y, s, w = stream(LONG, weighted=True)
    parts = [StreamingAUC().update(y[k::16], s[k::16], w[k::16]) for k in range(16)]
    while len(parts) > 1:
        parts = [one.merge(other) for one, other in zip(parts[::2], parts[1::2], strict=True)]
    assert assert_holds(parts[0], y, s, w) <= 0.0004


def test_exact_while_nothing_is_compressed_and_for_few_scores_forever():
    y, s, w = stream(5000, weighted=True)
    auc = StreamingAUC().update(y, s, w)
    for _ in range(2):
        assert assert_holds(auc, y, s, w) < 1e-10
        assert auc.value == pytest.approx(roc_auc_score(y, s, sample_weight=w), rel=1e-13)
        auc.merge(auc)
    y, s, w = stream(30_000)
    auc = StreamingAUC(20_000).update(y, np.round(s, 1))
    assert auc.bounds[1] <= np.nextafter(auc.bounds[0], 1)
    assert auc.value == pytest.approx(roc_auc_score(y, np.round(s, 1)), rel=1e-13)


def test_separated_classes_are_certain_even_when_compressed():
    y, s, _ = stream(500)
    s = s - s.min() + 1.0
    assert StreamingAUC(TINY).update(y, np.where(y, s, -s)).bounds == (1.0, 1.0)
    assert StreamingAUC(TINY).update(y, np.where(y, -s, s)).bounds == (0.0, 0.0)


def test_the_certificate_survives_rounding():
    """Sums of 0.1 round; the same nodes with whole weights do not, and their ends are inside the bounds."""
    y, s, _ = stream(50_000)
    auc = StreamingAUC(20_000).update(y, s, np.full(50_000, 0.1))
    whole = copy(auc)
    for digest in whole.digests:
        digest.weight = np.rint(digest.weight / 0.1)
        digest.waiting_weights = np.rint(digest.waiting_weights / 0.1)
    assert any(
        (digest.weight != 0.1 * its.weight).any() for digest, its in zip(auc.digests, whole.digests, strict=True)
    )
    lo, hi = np.divide(*auc._in_order())
    assert auc.bounds[0] < lo < hi < auc.bounds[1]
    lo, hi = np.divide(*whole._in_order())
    assert lo - 1e-10 < auc.bounds[0] < lo < hi < auc.bounds[1] < hi + 1e-10


def test_keys_have_the_order_of_the_scores():
    s = np.array([-np.inf, -1e308, -1.0, -1e-300, -5e-324, -0.0, 0.0, 5e-324, 1e-9, 1.0, 1 + 2**-52, 1e3, np.inf])
    keys = keys_of(s)
    np.testing.assert_array_equal(np.diff(s) > 0, keys[1:] > keys[:-1])
    assert keys[5] == keys[6]
    auc = StreamingAUC().update([1, 0, 1, 0], [-0.0, 0.0, np.inf, np.inf])
    assert auc.value == 0.5


@pytest.mark.parametrize("weighted", [False, True])
def test_nodes_of_a_digest_hold_their_rows(weighted):
    """Below any key: the lower bound is at most the true weight, and this is at most the upper bound."""
    _, s, w = stream(4000, weighted=weighted)
    keys, digest = keys_of(s), Digest(32)
    digest.add(keys, w)
    start, level, weight = digest.nodes()
    end = start | REST[level]
    assert (start & REST[level] == 0).all()
    assert weight.sum() == pytest.approx(w.sum(), rel=1e-12)
    assert len(digest.start) <= NODES_PER_ROW * 32
    for key in np.concatenate([keys[:300], start, end]):
        true = w[keys <= key].sum()
        assert weight[end <= key].sum() - 1e-9 <= true <= weight[start <= key].sum() + 1e-9


def test_masses_are_those_of_the_smallest_common_intervals():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 5, 60)
    start = rng.integers(0, 256, 60) >> level << level
    start, level = np.array(sorted({(a, -b) for a, b in zip(start, level, strict=True)})).T
    level, weight = -level, rng.integers(1, 9, len(start)).astype(float)
    joins = join_levels(start.astype(np.uint64), level.astype(np.uint8))
    for i, found in enumerate(masses(joins, weight)):
        common = max(int(start[i] ^ start[i + 1]).bit_length(), level[i])
        assert joins[i] == common
        assert found == weight[(start >> common == start[i] >> common) & (level <= common)].sum()


def test_bytes_are_at_most_what_was_asked_for_at_every_row():
    y, s, _ = stream(200)
    for max_bytes in (168, 1000, 5000):
        auc = StreamingAUC(max_bytes)
        for label, score in zip(y, s, strict=True):
            assert nbytes(auc.update(label, score)) <= max_bytes
        for other in (auc, StreamingAUC(max_bytes).update(y, s + 0.1)):
            assert nbytes(auc.merge(other)) <= max_bytes
    with pytest.raises(ValueError, match="max_bytes must be a number at least 168; got 167"):
        StreamingAUC(167)


def test_only_like_metrics_merge():
    for mine, its, said in (
        (StreamingAUC(TINY), StreamingAUC(), "the same max_bytes can be merged; got 672 and 1000000"),
        (StreamingAUC(pos_label="a"), StreamingAUC(), "the same pos_label"),
    ):
        with pytest.raises(ValueError, match=said):
            mine.merge(its)
    y, s, _ = stream(100)
    auc = StreamingAUC(TINY).update(y, s)
    before = copy(auc)
    assert same(auc.merge(StreamingAUC(TINY)), before)
    assert StreamingAUC(TINY).merge(auc).digests[0].sums >= auc.digests[0].sums > 0


def test_a_metric_is_its_own_state():
    y, s, w = stream(1000, weighted=True)
    auc = StreamingAUC(20_000, pos_label=True).update(y, s, w)
    for twin in (pickle.loads(pickle.dumps(auc)), copy(unflatten(flatten(auc))), copy(auc)):
        assert same(twin, auc)
        assert same(twin.update(y, s), copy(auc).update(y, s))
    assert repr(auc) == "StreamingAUC(max_bytes=20000, pos_label=True)"
    before = copy(auc)
    assert auc.bounds[0] < auc.value < auc.bounds[1]
    assert same(auc, before)
