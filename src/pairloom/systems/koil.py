"""KOIL: kernel AUC with one fixed-size buffer per class, and steps on the nearest violators."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_choice, check_count, check_flag, check_number
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.state import LOSS, PAIRS, STEPS, State
from pairloom.estimators.card import Card, model_kind
from pairloom.estimators.parameters import estimator
from pairloom.losses import LOSSES, Hinge, Loss, with_loss
from pairloom.models.expansion import Expansion, ExpansionState, KernelBlock, KernelRow
from pairloom.steps import Constant
from pairloom.systems.base import KernelClassifier
from pairloom.systems.koil_loop import Rule, Supports, learn

Policy = Literal["fifo", "rs"]
Select = Literal["violators", "neighbours"]
HingeName = Literal["hinge", "squared_hinge"]


@estimator
class KOIL(KernelClassifier):
    r"""Rank one class above the other by a sum of kernels at ``budget`` rows of each class.

    .. math::

        \tfrac12 \|f\|^2 + C \sum_{i \in V_t} \ell(y_t (f(x_t) - f(x_i)))

    V_t are the ``n_neighbors`` rows nearest to x_t among the kept rows of the other class with a margin below 1, the
    violators. A gradient step shrinks all coefficients by 1 - eta, gives x_t the coefficient eta C y_t |V_t| and
    subtracts eta C y_t from those of V_t. A row without violators is not kept. The first rows of a class, which have no
    pair, enter with eta C y_t. More than two classes: one model per class against the rest, each with its own buffers.

    Parameters
    ----------
    policy : replacement in a full buffer: "fifo" (the oldest row leaves) or "rs" (x_t replaces a random row with
        probability s / N, else it is dropped; N counts all rows of its class, so this is not a uniform sample).
    plus_plus : whether the nearest kept row of the same class inherits the coefficient of a removed row. Without it,
        "rs" forgets on a long stream: a dropped x_t changes its violators, but its own coefficient is lost.
    loss : "hinge" (the paper) or "squared_hinge": steps 2 eta C (1 - m) instead of eta C, the gradient of the square
        without a factor 1/2 (the "L2" step of the published code is not a gradient).
    budget : number s of kept rows per class.
    n_neighbors : largest number k of violators in a step.
    select : "violators" (the nearest of the violators, as in the published code) or "neighbours" (the violators among
        the nearest rows, another reading of the paper).
    C : weight of the loss relative to the norm.
    eta : step size, at most 1 (0.01 in the paper).

    Attributes
    ----------
    loss_ : mean loss over all kept rows of the other class, not only violators.

    Notes
    -----
    Cost: 2 s d flops and 2 s kernel values per row, and 2 (k + 3) s flops to update f at the supports. Each model has
    2 s d numbers for the supports and 4 s^2 for the kernels between them.

    A sample weight scales the step and counts as that many rows in N. A half-life decays only N, and so requires
    ``policy="rs"``.

    References
    ----------
    Hu, Yang, King, Lyu and So, Kernelized Online Imbalanced Learning with Fixed Budgets, AAAI 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KOIL(gamma="median", scale="standard", random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.98)
    True
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "-FIFO": {"policy": "fifo", "plus_plus": False},
        "-FIFO++": {"policy": "fifo"},
        "-RS": {"policy": "rs", "plus_plus": False},
        "-RS++": {"policy": "rs"},
    }

    policy: Policy = "rs"
    plus_plus: bool = True
    loss: HingeName = "hinge"
    budget: int = 100
    n_neighbors: int = 5
    select: Select = "violators"
    C: float = 10.0
    eta: float = 0.01

    @property
    def card(self) -> Card:
        return Card("Hu et al. 2015", "s d", "s d + s^2", model=model_kind(self.kernel))

    def _make_model(self, n_classes: int, seed: int | None) -> "Budgeted":
        check_choice("loss", self.loss, HingeName)
        check_number("eta", self.eta, 0, 1, open_low=True)
        return Budgeted(
            policy=self.policy,
            plus_plus=self.plus_plus,
            loss=LOSSES[self.loss],
            budget=self.budget,
            n_neighbors=self.n_neighbors,
            select=self.select,
            C=self.C,
            step=Constant(self.eta),
            **self._common_parts(n_classes, seed),
        )


@node
class Buffers(ExpansionState):
    """Two buffers of s slots for each model: one for the rest, then one for its class.

    ``supports`` (models, 2 s, d) and ``coef`` (models, 2 s). ``stored`` (models, 2): rows put into each buffer so far.
    ``seen``: weight of each class so far. ``gram`` (models, 2 s, 2 s) and ``values`` (models, 2 s): kernels between the
    supports, and f at them; only the compiled loop updates these.
    """

    supports: Annotated[Array, "R v m d"]
    coef: Annotated[Array, "f8 v m"]
    stored: Annotated[Array, "i8 v 2 0:BIG"]
    seen: Annotated[Array, "f8 v 2 0:MASS"]
    gram: Annotated[Array, "R v m m"]
    values: Annotated[Array, "f8 v m"]


@dataclass(frozen=True, kw_only=True)
class Budgeted(Expansion):
    """The model of :class:`KOIL`."""

    policy: Policy = "rs"
    plus_plus: bool = True
    loss: Loss = field(default_factory=Hinge)
    budget: int = 100
    n_neighbors: int = 5
    select: Select = "violators"
    C: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("policy", self.policy, Policy)
        check_flag("plus_plus", self.plus_plus)
        check_choice("select", self.select, Select)
        check_count("budget", self.budget)
        check_count("n_neighbors", self.n_neighbors)
        check_number("C", self.C, 0, open_low=True)

    @property
    def draws(self) -> int:
        return len(self.pairs.targets) if self.policy == "rs" else 0

    def start(self, gamma: Array, dim: int) -> Buffers:
        m, slots, dtype = len(self.pairs.targets), 2 * self.budget, np.dtype(self.dtype)
        return Buffers(
            gamma, np.zeros((m, slots, dim), dtype), np.zeros((m, slots)), np.zeros((m, 2), np.int64),
            np.zeros((m, 2)), np.zeros((m, slots, slots), dtype), np.zeros((m, slots)),
        )  # fmt: skip

    @property
    def state_symbols(self) -> dict[str, int]:
        return {"m": 2 * self.budget}

    def init(self, n_features: int, first: Batch | None) -> State:
        return self.begin_empty(n_features, first)

    @property
    def forgetting(self) -> "Budgeted | None":
        """The model itself with "rs", which counts the rows of each class."""
        return self if self.policy == "rs" else None

    def forget(self, state: State, keep: float) -> None:
        state.forget(keep)
        state.memory.seen *= decay_factors(state.memory.seen, keep)

    def terms(self, kept: Buffers) -> list[tuple[Array, Array]]:
        used = [np.concatenate([self._slots(kept, k, side) for side in (0, 1)]) for k in range(len(kept.coef))]
        return [(kept.supports[k, slots], kept.coef[k : k + 1, slots]) for k, slots in enumerate(used)]

    def _slots(self, kept: Buffers, k: int, side: int) -> Array:
        """Return the slots in use of a buffer."""
        return side * self.budget + np.arange(min(kept.stored[k, side], self.budget))

    def step_row(self, state: State, row: KernelRow) -> None:
        for k in range(len(row.y)):
            self._step_model(state, k, float(row.y[k]), row)

    def _step_model(self, state: State, k: int, y: float, row: KernelRow) -> None:
        kept: Buffers = state.memory
        own, other = int(y > 0), int(y < 0)
        kept.seen[k, own] += row.weight
        partners = self._slots(kept, k, other)
        points, coef = kept.supports[k], kept.coef[k]
        supports, terms = self.terms(kept)[k]
        f, *others = (float(terms[0] @ self.values(state, x, supports)) for x in (row.x, *points[partners]))
        margins = y * (f - np.array(others))
        chosen = self._choose(margins, self.values(state, row.x, points[partners]))
        slopes = self.loss.derivative(margins[chosen])

        forced = len(partners) == 0 or (kept.stored[k, own] == 0 and len(chosen) == 0)
        rate = self._rate(state, row, points[partners[chosen]], slopes, self.loss.value(margins[chosen]).sum())
        if rate == 0:
            return
        coef *= max(0.0, 1.0 - row.eta)
        coef[partners[chosen]] += rate * y * slopes
        alpha = rate * y if forced else -rate * y * slopes.sum()
        if alpha != 0:
            self._store(state, k, own, row, alpha)
        if len(partners):
            state.tally[STEPS] += row.weight
            state.tally[PAIRS] += len(chosen)
            state.tally[LOSS] += row.weight * self.loss.value(margins).mean()

    def _choose(self, margins: Array, near: Array) -> Array:
        """Return the nearest violators, nearest first; ties go to the lower slot."""
        nearest = np.argsort(-near, kind="stable")
        if self.select == "neighbours":
            nearest = nearest[: self.n_neighbors]
        return nearest[margins[nearest] < 1][: self.n_neighbors]

    def _rate(self, state: State, row: KernelRow, partners: Array, slopes: Array, g: float) -> float:
        """Return eta C, reduced if a step on the squared hinge would be unstable; v is the gradient."""
        points = np.vstack([row.x[None, :], partners])
        v = np.concatenate([[slopes.sum()], -slopes]) if len(slopes) else np.ones(1)
        squared_norm = float(v @ self.kernel(state.memory.gamma, points, points) @ v)
        smooth = g > 0 and np.isfinite(self.loss.smoothness)
        curvature = squared_norm / (2.0 * g) if smooth else 0.0
        return reference.guard(row.eta * self.C, curvature, g + squared_norm, state.tally)

    def _store(self, state: State, k: int, own: int, row: KernelRow, alpha: float) -> None:
        """Store x_t in the buffer of its class, by ``policy`` if the buffer is full."""
        kept: Buffers = state.memory
        buffer = slice(own * self.budget, (own + 1) * self.budget)
        points, coef, stored = kept.supports[k, buffer], kept.coef[k, buffer], kept.stored[k, own]
        full = stored >= self.budget
        place = stored % self.budget
        if full and self.policy == "rs":
            place = int(min(row.draws[k] * max(kept.seen[k, own] / row.weight, self.budget), self.budget))
        lost = (row.x, alpha)
        if place < self.budget:
            lost = (points[place].copy(), coef[place])
            points[place], coef[place] = row.x, alpha
            kept.stored[k, own] += 1
        if full and self.plus_plus:
            coef[np.argmax(self.values(state, lost[0], points))] += lost[1]

    def run_block(self, state: State, block: KernelBlock) -> None:
        kept: Buffers = state.memory
        rule = Rule(
            self.kernel.code, float(kept.gamma), self.loss.code, bool(np.isfinite(self.loss.smoothness)), float(self.C),
            min(self.n_neighbors, self.budget), self.select == "violators", self.policy == "fifo", bool(self.plus_plus),
        )  # fmt: skip
        supports = Supports(kept.supports, kept.coef, kept.stored, kept.seen, kept.gram, kept.values)
        with_loss(learn, self.loss)(tuple(block), tuple(rule), tuple(supports), state.tally)
