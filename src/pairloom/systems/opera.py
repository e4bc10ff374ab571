"""OPERA: each row is paired with all previous rows, in the space of a kernel."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_choice, check_count
from pairloom.base.compiled import add_rows, compiled, copy_to, dot
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.fused_steps import SKIP, safe_length
from pairloom.engines.state import LOSS, PAIRS, STEPS, State
from pairloom.estimators.card import Card, model_kind
from pairloom.estimators.parameters import estimator
from pairloom.features.compiled_kernels import kernel_row, kernel_with_itself
from pairloom.losses import LOSSES, Loss, LossName, Square, loss_slope, loss_value, with_loss
from pairloom.memory.history import check_rows
from pairloom.models.expansion import Expansion, ExpansionState, KernelBlock, KernelRow
from pairloom.models.moments_rule import PairSet
from pairloom.steps import Polynomial
from pairloom.systems.base import KernelClassifier

MIN_CAPACITY = 64
"""Initial capacity in rows; it doubles when it is exhausted."""


@estimator
class OPERA(KernelClassifier):
    r"""Online pairwise learning with an exact kernel: each step uses the pairs of a row with all previous rows.

    .. math::

        f \leftarrow f - \frac{\gamma_t}{t - 1} \sum_{i < t} \ell'_i\, \big(k(x_t, \cdot) - k(x_i, \cdot)\big), \qquad
        f = \sum_i a_i k(x_i, \cdot), \qquad \gamma_t = \eta\, t^{-\theta}

    Ying and Zhou's loss 1/2 (f(x_t) - f(x_i) - (y_t - y_i))^2 over all pairs makes differences of scores close to those
    of the labels +1 and -1, so that all scores of a class should be equal. Lin et al. use other losses; for AUC they
    use the pairs of different classes. The coefficients a_i sum to 0 after every row.

    It keeps all rows: kernel systems with a budget or with random features approximate it.
    :class:`~pairloom.systems.AllPairs` with ``features=RandomFourier(512)`` takes the same steps in a space of explicit
    features, at a cost that does not grow with the stream.

    Parameters
    ----------
    pairs : "all" (OPERA) or "opposite": pairs of different classes, whose scores should differ by 1 (AUC). Both divide
        the sum by the number of all rows.
    loss : "square" (with the papers' factor 1/2); with opposite pairs also "hinge", "squared_hinge" or "logistic".
    eta : step size, 1 / mu in the papers, with mu the largest k(x, x) + k(x', x') - 2 k(x, x'): at most 2, except for
        the linear kernel.
    power : theta; the papers' theory requires 1/2 < theta < 1.
    max_rows : largest number of rows; a call with more rows raises ValueError and changes nothing.

    Attributes
    ----------
    support_ : all rows so far, scaled, of shape (n, d).

    Notes
    -----
    Cost: row t takes t d flops for its kernels and, for each model, t^2 for f at all previous rows. t^2 + t d numbers:
    64 MB for 4,096 rows of float32 with few columns. A sample weight scales the step, and the share of the row in the
    sums of later rows.

    References
    ----------
    Ying and Zhou, Online Pairwise Learning Algorithms, Neural Computation 2016.
    Lin, Lei, Zhang and Zhou, Online Pairwise Learning Algorithms with Convex Loss Functions, Information Sciences 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OPERA(scale="standard").fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    >>> model.support_.shape, bool(abs(model.coef_.sum()) < 1e-12)
    ((400, 30), True)
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "-AUC": {"pairs": "opposite"}}

    pairs: PairSet = "all"
    loss: LossName = "square"
    eta: float = 0.5
    power: float = 0.6
    max_rows: int = 4096

    @property
    def card(self) -> Card:
        cost, model = "t d + t^2", model_kind(self.kernel)
        return Card("Ying and Zhou 2016, Lin et al. 2017", cost, cost, "general", model, "exact", memory="grows")

    def _make_model(self, n_classes: int, seed: int | None) -> "PairExpansion":
        check_choice("loss", self.loss, LOSSES)
        return PairExpansion(
            pair_set=self.pairs,
            loss=LOSSES[self.loss],
            max_rows=self.max_rows,
            step=Polynomial(self.eta, self.power),
            **self._common_parts(n_classes, seed),
        )


@node
class History(ExpansionState):
    """All rows so far, in the first ``used`` of n entries.

    Scaled ``points`` (n, d), kernels between them ``gram`` (n, n), labels ``y`` (n, models), weights ``mass`` (n,);
    for each model, coefficients ``coef`` and values ``f`` at all points (models, n).
    """

    points: Annotated[Array, "R _n d"]
    gram: Annotated[Array, "R _n _n"]
    y: Annotated[Array, "f8 _n v"]
    mass: Annotated[Array, "f8 _n"]
    coef: Annotated[Array, "f8 v _n"]
    f: Annotated[Array, "f8 v _n"]
    used: Annotated[Array, "i8 1 0:_n+1"]

    def reserve(self, rows: int, max_rows: int) -> None:
        """Grow the arrays for this many rows, to a capacity that depends only on the number of rows."""
        have, size = len(self.mass), MIN_CAPACITY
        while size < rows:
            size *= 2
        more = min(size, max_rows) - have
        if more > 0:
            for name in ("points", "y", "mass"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), old.dtype)]))
            for name in ("coef", "f"):
                setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, more))))
            self.gram = np.pad(self.gram, (0, more))


@dataclass(frozen=True, kw_only=True)
class PairExpansion(Expansion):
    """The model of :class:`OPERA`."""

    pair_set: PairSet = "all"
    loss: Loss = field(default_factory=Square)
    max_rows: int = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("pairs", self.pair_set, PairSet)
        check_count("max_rows", self.max_rows)
        if self.pair_set == "all" and self.loss.name != "square":
            raise ValueError(f"pairs='all' needs loss='square': with loss={self.loss.name!r} use pairs='opposite'")

    @property
    def factor(self) -> float:
        """Factor of the loss: ``Square`` has no factor 1/2."""
        return 0.5 if self.loss.name == "square" else 1.0

    @property
    def draws(self) -> int:
        return 0

    def init(self, n_features: int, first: Batch | None) -> State:
        return self.begin_empty(n_features, first)

    @property
    def limited(self) -> "PairExpansion":
        return self

    def check_room(self, state: State | None, n: int) -> None:
        instead = "a system of fixed size, such as KOIL(), or AllPairs(features=RandomFourier(512))"
        check_rows("OPERA", self.max_rows, 0 if state is None else int(state.memory.used[0]), n, instead)

    @property
    def forgetting(self) -> "PairExpansion":
        return self

    def forget(self, state: State, keep: float) -> None:
        """Reduce the weight of past rows in later sums, and increase the step size to that of a younger stream."""
        state.forget(keep)
        state.memory.mass *= decay_factors(state.memory.mass, keep)

    def terms(self, kept: History) -> list[tuple[Array, Array]]:
        n = int(kept.used[0])
        return [(kept.points[:n], kept.coef[:, :n])]

    def start(self, gamma: Array, dim: int) -> History:
        models = len(self.pairs.targets)
        return History(
            gamma, np.zeros((0, dim), self.dtype), np.zeros((0, 0), self.dtype), np.zeros((0, models)), np.zeros(0),
            np.zeros((models, 0)), np.zeros((models, 0)), np.zeros(1, np.int64),
        )  # fmt: skip

    def _pair(self, y: float, partners: Array) -> tuple[Array, Array]:
        """Return a and b of the margins a (f(x) - f(x_i)) + b; a = 0 for pairs that do not count."""
        if self.pair_set == "all":
            return np.ones(len(partners)), 1.0 - (y - partners)
        return (y - partners) / 2.0, np.zeros(len(partners))

    def step_row(self, state: State, row: KernelRow) -> None:
        kept, n = state.memory, int(state.memory.used[0])
        kept.reserve(n + 1, self.max_rows)
        kept.points[n], kept.y[n] = row.x, row.y
        kept.gram[n, : n + 1] = kept.gram[: n + 1, n] = self.values(state, row.x, kept.points[: n + 1])
        for k in range(len(row.y)):
            self._descend(state, k, row, n)
        kept.mass[n] = row.weight
        kept.used[0] += 1

    def _descend(self, state: State, k: int, row: KernelRow, n: int) -> None:
        """Take a step of model k on the pairs of row n, and update f at all rows."""
        kept = state.memory
        gram, coef = kept.gram[: n + 1, : n + 1], kept.coef[k, : n + 1]
        a, b = self._pair(row.y[k], kept.y[:n, k])
        if a.any():
            p = kept.mass[:n] / kept.mass[:n].sum()
            f = coef @ gram
            margin = a * (f[n] - f[:n]) + b
            g = float(self.factor * p[a != 0] @ self.loss.value(margin[a != 0]))
            q = self.factor * p * a * self.loss.derivative(margin)
            v = np.append(-q, q.sum())
            squared_norm = float(v @ gram @ v)
            smooth = g > 0 and np.isfinite(self.loss.smoothness)
            rate = reference.guard(row.eta, squared_norm / (2.0 * g) if smooth else 0.0, g + squared_norm, state.tally)
            if rate:
                coef -= rate * v
                state.tally[[STEPS, PAIRS, LOSS]] += [row.weight, np.count_nonzero(a), row.weight * g]
        kept.f[k, : n + 1] = coef @ gram

    def run_block(self, state: State, block: KernelBlock) -> None:
        kept = state.memory
        kept.reserve(int(kept.used[0]) + len(block.y), self.max_rows)
        smooth = bool(np.isfinite(self.loss.smoothness))
        rule = Rule(self.kernel.code, float(kept.gamma), self.pair_set == "all", self.loss.code, smooth, self.factor)
        past = kept.points, kept.gram, kept.y, kept.mass, kept.coef, kept.f, kept.used
        with_loss(learn, self.loss)(tuple(block), tuple(rule), past, state.tally)


class Rule(NamedTuple):
    """Codes of kernel and loss, and the parameters of ``PairExpansion``."""

    kernel: int
    gamma: float
    all_pairs: bool
    loss: int
    smooth: bool
    factor: float


@compiled
def learn(block_: Any, rule_: Any, past: Any, tally: Array) -> None:
    """Run ``PairExpansion.step_row`` over a block of rows.

    f <- f - eta v with v = sum_i p_i a_i l'_i (k(x, .) - k(x_i, .)). ``past``: the fields of ``History`` except gamma;
    the values of f at all rows are stored, so that no score is computed twice.
    """
    block, rule = KernelBlock(*block_), Rule(*rule_)
    X, y, weight, scores = block.X, block.y, block.weight, block.scores
    points, gram, labels, mass, coef, f, used = past
    room = mass.shape[0]
    values, partners = np.empty(room, X.dtype), np.empty(room, np.int64)
    q, change = np.empty(room), np.empty(room)
    for i in range(X.shape[0]):
        n = used[0]
        own = kernel_with_itself(rule.kernel, X[i])
        kernel_row(rule.kernel, rule.gamma, X[i], points[:n], values[:n])
        total = 0.0
        for j in range(n):
            total += mass[j]
        for k in range(y.shape[1]):
            s = dot(coef[k, :n], values[:n]) if n > 0 else 0.0
            scores[i, k] = s
            f[k, n] = s
            count, g, psi = pair_slopes(
                rule.all_pairs, rule.loss, rule.factor, y[i, k], s, labels[:n, k], mass, total, f[k], partners, q
            )  # fmt: skip
            if count == 0:
                continue
            # change_j = <v, k(x_j, .)> at all rows before this one, along = the same at this one.
            change[:n] = 0.0
            add_rows(change[:n], gram, partners[:count], q)
            squared_norm, along = 0.0, psi * own
            for j in range(n):
                change[j] += psi * values[j]
            for e in range(count):
                squared_norm += q[e] * change[partners[e]]
                along += q[e] * values[partners[e]]
            squared_norm += psi * along
            rate = safe_length(g, squared_norm, 1.0, block.eta[i], rule.smooth, False, tally)
            if rate == SKIP:
                continue
            for e in range(count):
                coef[k, partners[e]] -= rate * q[e]
            for j in range(n):
                f[k, j] -= rate * change[j]
            coef[k, n] = -rate * psi
            f[k, n] = s - rate * along
            tally[STEPS] += weight[i]
            tally[PAIRS] += count
            tally[LOSS] += weight[i] * g
        copy_to(points[n], X[i])
        copy_to(gram[n], values[:n])
        copy_to(gram[:, n], values[:n])
        gram[n, n], labels[n], mass[n] = own, y[i], weight[i]
        used[0] += 1


@compiled
def pair_slopes(
    all_pairs: bool, loss: int, factor: float, y: float, s: float, labels: Array, mass: Array, total: float,
    f: Array, partners: Array, q: Array,
) -> tuple[int, float, float]:  # fmt: skip
    """Return the number of ``partners``, the loss g and psi = sum_i p_i a_i l'_i; fill q_i = -p_i a_i l'_i."""
    count, g, psi = 0, 0.0, 0.0
    for j in range(labels.shape[0]):
        a = 1.0 if all_pairs else (y - labels[j]) / 2.0
        if a != 0:
            margin = a * (s - f[j]) + (1.0 - (y - labels[j]) if all_pairs else 0.0)
            p = factor * mass[j] / total
            g += p * loss_value(loss, margin)
            partners[count], q[count] = j, -p * a * loss_slope(loss, margin)
            psi -= q[count]
            count += 1
    return count, g, psi
