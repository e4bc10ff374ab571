"""Many candidates on one stream: each is scored before it learns, and the field narrows as evidence comes in."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_choice
from pairloom.base.clock import mixes_at, next_evaluation
from pairloom.base.randomness import fresh_seed
from pairloom.base.typing import Array
from pairloom.engines.base import EngineName
from pairloom.models.base import Dtype, Model, Trouble
from pairloom.pairs import OppositeClass
from pairloom.race.budget import Budget, largest_first
from pairloom.race.entrant import ALL, Entrant, Runner, enter
from pairloom.race.evidence import Evidence
from pairloom.race.mixing import affordable, grown, pruned
from pairloom.race.portfolio import Candidate, Portfolio
from pairloom.race.state import RaceState, Standing
from pairloom.stream import RecentScores
from pairloom.stream.observers import RECENT
from pairloom.stream.stream import advance

SETTLE_ROWS = 16_384
"""From this row on, all that is left costs no more than the budget."""

NARROW_AT = 16
"""Closed windows after which each entrant is its best model alone."""

HOPELESS = 0.05
"""Area behind the best with which an entrant leaves then; the others may yet win, or help in a mixture."""

FAR = 4.0
"""Standard deviations beyond which a score is an outlier."""


class Rank(NamedTuple):
    """An entrant's best model: its area under the curve, and the standard error of what it is behind the best."""

    entrant: int
    model: int
    auc: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Race(Model):
    """A portfolio of candidates on one stream, and the mixture of the best of them.

    The scouts learn from the first row on. At row ``portfolio.warm_rows`` the large spaces around the best scout join
    and learn the kept rows. Models are compared by pairs inside windows, scored before learning (:class:`Evidence`).
    After 16 windows each candidate is left with its best model; those more than 0.05 behind the best leave. They are
    not halved: large spaces with narrow kernels start slowly, and win later or help in a mixture. From row 16,384 on
    only a mixture is left that the budget can afford: the best around that model which, of all within one standard
    error of the best, has the largest space.

    Before, the mixture starts with the best model and takes in others, each time the one that helps most, until the
    next would make the mean of standardised scores worse in the windows. It changes at powers of two from row 16 on,
    and before row 16,384 at multiples of 512 or 1,024: by the row number, so the cuts between calls do not matter.

    Parameters
    ----------
    pairs : the classes.
    portfolio : the candidates.
    budget : bytes and microseconds.
    dtype, seed, engine : as in :class:`~pairloom.Learner`.

    Cost: that of the candidates up to row 16,384; then ``budget.microseconds``, nominally.

    >>> from pairloom import Stream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> stream = Stream(Race(seed=0)).partial_fit(X, np.where((X**2).sum(axis=1) > 4, 1, -1))
    >>> stream.model.mixture(stream.learned)[0].split(",")[0]
    'nystroem 256'
    """

    large_products: ClassVar[bool] = True

    pairs: OppositeClass = field(default_factory=OppositeClass)
    portfolio: Portfolio = field(default_factory=Portfolio)
    budget: Budget = field(default_factory=Budget)
    dtype: Dtype = "float32"
    seed: int | None = None
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, Dtype)
        check_choice("engine", self.engine, EngineName)
        if self.seed is None:
            object.__setattr__(self, "seed", fresh_seed())

    @property
    def needs_data(self) -> bool:
        return True

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def takes_nan(self) -> bool:
        """No: not all of its candidates do."""
        return False

    def warm_rows(self, n_features: int) -> int:
        return self.budget.warm_rows(self.portfolio, n_features, self._itemsize)

    def init(self, n_features: int, first: Batch | None) -> RaceState:
        """The scouts; none before the first row."""
        scouts: list[Entrant] = []
        if first is None:
            self._check_candidates(n_features)
        else:
            # A quarter: at a replay the old scouts are there until the new ones have learned.
            admitted = self.budget.admit(
                self._scouts(n_features), n_features, self.pairs.n_classes, 0.25, itemsize=self._itemsize
            )
            scouts = [enter(one, False, self._make(one), first) for one in admitted]
        size = self.n_vectors
        last = first is not None and len(first) == self.warm_rows(n_features)
        return RaceState(
            n_features, scouts, Evidence(self.pairs.targets, sum(map(len, scouts))), np.zeros(self.pairs.n_classes),
            np.zeros((1, 2), np.int64), np.zeros((1, size)), np.ones((1, size)), first=first if last else None,
        )  # fmt: skip

    def run(self, state: RaceState, batch: Batch) -> Scored | None:
        for entrant in self._running(state):
            advance(entrant.model, (RecentScores(),), entrant.stream, batch)
        state.counts += np.bincount(batch.y.astype(int), batch.weight, len(state.counts))
        state.t += len(batch)
        due = next_evaluation(state.t - 1) == state.t
        if not due and state.t > next_evaluation(0):
            return None
        first = self._mixed(state, state.evaluated).scores
        if due:
            self._evaluate(state)
            if state.first is not None and len(state.first) == state.t:
                self._start_finalists(state, state.first)
                state.first = None
        return replace(self._mixed(state), first=first)

    def score(self, state: RaceState, X: Any) -> Array:
        """The mixture's score of each row; with more than two classes, one column for each."""
        total = np.zeros((X.shape[0], self.n_vectors))
        entrants = self._running(state)
        mixture = zip(state.chosen, state.shift, state.spread, strict=True) if entrants else ()
        for (i, model), shift, spread in mixture:
            total += tame((entrants[i].score(int(model), X) - shift) / spread)
        return total

    def shaped(self, scores: Array) -> Array:
        """One column per class, or none for two classes."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def waiting(self, state: RaceState) -> None:
        """None: the mixture's scores are known at every evaluation."""

    def next_row(self, state: RaceState) -> int:
        return next_evaluation(state.t)

    def check_room(self, state: RaceState | None, n: int) -> None:
        """There is room for every row."""

    def trouble(self, state: RaceState, told: float) -> Trouble | None:
        """None: some candidates take steps that are too long on purpose, and lose."""
        return None

    def mixture(self, state: RaceState) -> list[str]:
        """The names of the candidates that make the predictions now, the best first."""
        return [state.entrants[i].name for i, _ in state.chosen]

    @property
    def _itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    def _scouts(self, n_features: int) -> list[Candidate]:
        return self.budget.exact(self.portfolio, self.pairs.n_classes).scouts(n_features)

    def _finalists(self, state: RaceState) -> list[Candidate]:
        sized = self.budget.sized(self.portfolio, state.n_features, self.pairs.n_classes, self._itemsize)
        return sized.finalists(state.scale, state.factor)

    def _check_candidates(self, n_features: int) -> None:
        """Raise ValueError before the first row if a candidate, also one of later, cannot learn such rows."""
        portfolio = self.portfolio
        for candidate in [*portfolio.scouts(n_features), *portfolio.finalists(portfolio.scales[0], 1.0)]:
            self._make(candidate)
            candidate.features.check(n_features)

    def _make(self, candidate: Candidate) -> Any:
        return candidate.learner(
            self.pairs, max_bytes=self.budget.bytes, dtype=self.dtype, seed=self.seed, engine=self.engine
        )

    def _running(self, state: RaceState) -> list[Entrant]:
        """The entrants, with what learns; it follows from their names."""
        for entrant in state.entrants:
            if entrant.runner is None:
                known = self._finalists(state) if entrant.finalist else self._scouts(state.n_features)
                named = {name: one for one in known for name in (one.name, ranked_name(one, state.n_features))}
                model = self._make(named[entrant.name])
                entrant.runner = Runner(
                    replace(named[entrant.name], name=entrant.name),
                    model if entrant.only == ALL else model.pick(entrant.only),
                )
        return state.entrants

    def _start_finalists(self, state: RaceState, batch: Batch) -> None:
        """The large spaces learn the kept rows; of the scouts those of the mixture go on."""
        d, C = state.n_features, self.pairs.n_classes
        ranked = [state.entrants[one.entrant].candidate for one in self._ranked(state)]
        guide = next((candidate for candidate in ranked if candidate.factor), ranked[0])
        state.racing, state.scale, state.factor = True, guide.features.scale, guide.factor or 1.0
        state.entrants = [state.entrants[i] for i in sorted(set(state.chosen[:, 0].tolist()))]
        # A small budget may make a finalist what a scout is already, or give it the same name.
        known = {entrant.name: entrant.candidate.features.n_outputs(d) for entrant in state.entrants}
        new = [
            replace(one, name=ranked_name(one, d)) if one.name in known else one
            for one in self._finalists(state)
            if known.get(one.name) != one.features.n_outputs(d)
        ]
        held = [entrant.candidate for entrant in state.entrants]
        admitted = self.budget.admit(new, d, C, held=held, itemsize=self._itemsize)
        made = {}
        for candidate in largest_first(admitted, d):
            entrant = made[candidate.name] = enter(candidate, True, self._make(candidate), batch)
            advance(entrant.model, (RecentScores(),), entrant.stream, batch)
        state.entrants += [made[candidate.name] for candidate in admitted]
        state.evidence = Evidence(self.pairs.targets, sum(map(len, state.entrants)))
        state.evaluated = max(0, len(batch) - RECENT)
        state.standings = [one for one in state.standings if one.row < len(batch) or one.name not in known]
        self._evaluate(state)

    def _evaluate(self, state: RaceState) -> None:
        """Take in the scores of the rows since the last time; narrow the field and mix anew where that is due."""
        rings, closed = [entrant.recent for entrant in state.entrants], False
        while state.evaluated < state.t:
            end = next_evaluation(state.evaluated)
            rows = np.arange(state.evaluated, end) % RECENT
            scores = np.concatenate([ring.scores[rows] for ring in rings], axis=1)
            closed = state.evidence.add(
                scores.reshape(len(rows), -1, self.n_vectors), rings[0].labels[rows], rings[0].weights[rows]
            )
            state.evaluated = end
        settled = state.t >= SETTLE_ROWS
        if mixes_at(state.t, SETTLE_ROWS):
            self._mix(state)
            if settled:
                self._keep(state, {(int(i), int(model)) for i, model in state.chosen})
        if closed and state.evidence.closed == NARROW_AT and state.racing and not settled:
            self._narrow(state)

    def _ranked(self, state: RaceState) -> list[Rank]:
        """The entrants, the best first."""
        areas, errors = state.evidence.verdict()
        found, at = [], 0
        for i, entrant in enumerate(state.entrants):
            own = slice(at, at + len(entrant))
            model = int(areas[own].argmax())
            found.append(Rank(i, model, float(areas[own][model]), float(errors[own][model])))
            at += len(entrant)
        return sorted(found, key=lambda one: (-one.auc, state.entrants[one.entrant].price(state.n_features).cost))

    def _mix(self, state: RaceState) -> None:
        """Choose the mixture among the best model of each entrant; once settled, only members can leave it."""
        ranked = self._ranked(state)
        first = np.cumsum([0, *map(len, state.entrants)])
        column = {int(first[one.entrant]) + one.model: one for one in ranked}
        areas = state.evidence.mixture
        if state.t < SETTLE_ROWS:
            mixture = grown(areas, list(column))
        elif state.t == SETTLE_ROWS:
            prices = {key: state.entrants[one.entrant].price(state.n_features) for key, one in column.items()}
            mixture = affordable(areas, prices, self.budget.limit(state.n_features))
        else:
            mixture = pruned(areas, list(column))
        chosen = [column[one] for one in mixture]
        state.chosen = np.array([(one.entrant, one.model) for one in chosen])
        scales = [state.entrants[one.entrant].scales(one.model) for one in chosen]
        state.shift, state.spread = (np.array(part) for part in zip(*scales, strict=True))
        # Written down once in every doubling of the stream, so that standings stay few.
        if state.t.bit_count() == 1:
            mixed = set(state.chosen[:, 0].tolist())
            state.standings += [Standing(state.t, state.entrants[i].name, auc, i in mixed) for i, _, auc, _ in ranked]

    def _narrow(self, state: RaceState) -> None:
        """Keep of each entrant its best model, and the mixture's; none but the hopeless has lost already.

        Hopeless is what is more than ``HOPELESS`` behind the best.
        """
        ranked = self._ranked(state)
        staying = {one.entrant: one.model for one in ranked if ranked[0].auc - one.auc <= HOPELESS}
        staying.update((int(i), int(model)) for i, model in state.chosen)
        self._keep(state, set(staying.items()))

    def _keep(self, state: RaceState, staying: set[tuple[int, int]]) -> None:
        """Drop all entrants but these, and all their models but these; the mixture, which is among them, follows."""
        first = np.cumsum([0, *map(len, state.entrants)])
        pairs = sorted(staying)
        state.entrants = [state.entrants[i].left_with(model) for i, model in pairs]
        state.evidence.only([int(first[i]) + model for i, model in pairs])
        state.chosen = np.array([(pairs.index((int(i), int(model))), 0) for i, model in state.chosen])

    def _mixed(self, state: RaceState, after: int = 0) -> Scored:
        """The mixture's scores of the newest rows after row ``after``, from those of its models."""
        ring, size = state.entrants[0].recent, self.n_vectors
        rows = np.arange(max(after, ring.count - RECENT), ring.count) % RECENT
        total = np.zeros((len(rows), size))
        for (i, model), shift, spread in zip(state.chosen, state.shift, state.spread, strict=True):
            scores = state.entrants[i].recent.scores[rows, model * size : (model + 1) * size]
            total += tame((scores - shift) / spread)
        return Scored(ring.count, total, ring.labels[rows], ring.weights[rows])


def ranked_name(candidate: Candidate, n_features: int) -> str:
    """The name of a finalist, if a scout has the same."""
    return f"{candidate.name}, rank {candidate.features.n_outputs(n_features)}"


def tame(scores: Array) -> Array:
    """Standardised scores, in the same order, the far ones drawn in: u, beyond 4 as 4 + ln(u - 3).

    Narrow kernels give a row next to a landmark a score far outside all others, and log-odds should not follow.

    >>> tame(np.array([-2.0, 4.0, 40.0])).round(2)
    array([-2.  ,  4.  ,  7.61])
    """
    size = np.abs(scores)
    return np.asarray(np.where(size > FAR, np.copysign(FAR + np.log1p(np.maximum(size - FAR, 0.0)), scores), scores))
