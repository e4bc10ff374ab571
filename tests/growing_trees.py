"""How a tree is grown, step by step in NumPy: slow and obvious, with the random numbers of the compiled loop."""

import numpy as np

from pairloom.features.tree_splits import (
    FEW_ROWS,
    MANY_USELESS,
    MAX_DIFFERENCE,
    MAX_ROUNDS,
    MIN_GAIN_RATIO,
    MIN_INFORMATIVE,
    MIN_JUDGED,
    MIN_LEAVES,
)  # fmt: skip


class Dice:
    """Marsaglia's xorshift."""

    def __init__(self, seed):
        self.state = int(seed)

    def bits(self):
        for shift in (13, -7, 17):
            moved = self.state << shift if shift > 0 else self.state >> -shift
            self.state = (self.state ^ moved) & (2**64 - 1)
        return self.state

    def below(self, n):
        return (self.bits() >> 32) * n >> 32

    def fraction(self):
        return (self.bits() >> 11) / 2**53


class Grower:
    """Grow ``tree`` (lists of column, value, first child, side of missing values) from the ``leaf`` of each row on."""

    def __init__(self, X, targets, weight, least, tries, rng, tree=None, leaf=None, room=None):
        self.X, self.weight = X.astype(np.float32), weight.astype(np.float32).astype(np.float64)
        self.targets, self.least = targets.astype(np.float64), least
        n = len(X)
        self.tree = [list(part) for part in tree or ([0], [0.0], [0], [False])]
        self.parent, self.room = list(range(len(self.tree[0]))), room or 2 * max(1, n // least) + 1
        self.leaf = np.zeros(n, int) if leaf is None else leaf.astype(int)
        self.dice = Dice(rng.integers(1, 2**63, 1, dtype=np.uint64)[0])
        self.shuffled = np.arange(n)
        for i in range(n - 1, 0, -1):
            j = self.dice.below(i + 1)
            self.shuffled[[i, j]] = self.shuffled[[j, i]]
        self.judged = self.n_judged()
        some = self.X[self.shuffled[: self.judged]]
        varies = np.array([len(set(x[~np.isnan(x)].tolist())) > 1 for x in some.T], bool)
        self.order = [*np.flatnonzero(varies), *np.flatnonzero(~varies)]
        self.tries = tries or max(1, int(np.sqrt(varies.sum())))
        sizes = np.bincount(self.leaf, minlength=len(self.parent))
        for at in sorted(range(len(self.parent)), key=lambda at: (-sizes[at], at)):
            if self.tree[2][at] == at:
                self.split(at, [i for i in self.shuffled if self.leaf[i] == at], int(varies.sum()))

    def n_judged(self):
        """All rows, unless many of them are informative."""
        mean = np.average(self.targets, axis=0, weights=self.weight)
        q = np.square(self.weight[:, None] * (self.targets - mean)).sum(axis=1)
        informative = q.sum() ** 2 / np.square(q).sum() if q.any() else 1.0
        wanted = np.ceil(len(q) * min(1.0, MIN_INFORMATIVE / informative))
        return int(min(len(q), max(MIN_JUDGED, MIN_LEAVES * self.least, wanted)))

    def split(self, at, rows, pool):
        """Split a node and, before its sibling, all nodes below it."""
        self.leaf[rows] = at
        if len(rows) < 2 * self.least or len(self.parent) + 2 > self.room or self.pure(rows):
            return
        found, pool = self.best(rows, pool)
        if found is None:
            return
        column, cut, yes = found
        x, first = self.X[rows, column], len(self.parent)
        for part, value in zip(self.tree, (column, cut, first, yes), strict=True):
            part[at] = value
        for child in (first, first + 1):
            for part, value in zip(self.tree, (0, 0.0, child, False), strict=True):
                part.append(value)
            self.parent.append(self.parent[at])
        goes = (x <= cut) | (yes & np.isnan(x))
        for child, own in ((first, goes), (first + 1, ~goes)):
            self.split(child, [i for i, one in zip(rows, own, strict=True) if one], pool)

    def pure(self, rows):
        own = self.targets[rows]
        return bool((np.abs(own - own[0]) <= MAX_DIFFERENCE * np.abs(own[0])).all())

    def best(self, rows, pool):
        """The best of some random splits, and how many columns are left for the nodes below."""
        seen = np.array(rows[: self.judged])
        best, found, here, rounds, done, useless = 0.0, None, 0, 0, 0, 0
        while done < min(self.tries, 1 + len(rows)) and here < pool and rounds < MAX_ROUNDS:
            pick = here + self.dice.below(pool - here)
            self.order[here], self.order[pick] = self.order[pick], self.order[here]
            column = self.order[here]
            x = self.X[seen, column]
            values = set(x[~np.isnan(x)].tolist())
            gain, cut, yes = self.cut(seen, x) if len(values) > 1 else (-1.0, 0.0, False)
            if gain < 0 and (len(values) < 2 or (len(values) == 2 and not np.isnan(x).any())):
                pool -= 1  # no other cut of this column can help, neither here nor below
                self.order[here], self.order[pool] = self.order[pool], self.order[here]
                useless += 1
                if useless == MANY_USELESS and FEW_ROWS * len(seen) <= pool - here:
                    rest = self.order[here:pool]
                    vary = [j for j in rest if len(set(self.X[seen, j][~np.isnan(self.X[seen, j])].tolist())) > 1]
                    self.order[here:pool] = vary + [j for j in rest if j not in vary]
                    pool = here + len(vary)
            else:
                done, here = done + (gain >= 0), here + 1
                if gain >= 0 and (found is None or gain > best * MIN_GAIN_RATIO):
                    best, found = gain, (column, cut, yes)
            if here >= pool:
                here, rounds = 0, rounds + 1
        return found, pool

    def cut(self, seen, x):
        """A random cut: its gain, its place, and the side of missing values."""
        low, high = np.nanmin(x), np.nanmax(x)
        cut = np.float32(float(low) + self.dice.fraction() * float(high - low))
        cut = low if cut >= high else cut
        lost, n = np.isnan(x), len(x)
        best, yes = -1.0, 2 * (x <= cut).sum() > n
        for side in (False, True) if lost.any() else (False,):
            own = (x <= cut) | (side & lost)
            if min(own.sum(), n - own.sum()) >= self.least:
                gain = 0.0
                for part in (seen[own], seen[~own]):
                    weight = self.weight[part]
                    gain += (np.square(weight @ self.targets[part]) / weight.sum()).sum()
                if gain > best * MIN_GAIN_RATIO:
                    best, yes = gain, side if lost.any() else yes
        return best, float(cut), bool(yes)
