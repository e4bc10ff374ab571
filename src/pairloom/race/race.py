"""Many candidates on one stream: each is scored before it learns, and has as much to say as its scores were good."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_choice
from pairloom.base.clock import NEVER, REFITS, mixes_at, next_evaluation, next_refit
from pairloom.base.randomness import fresh_seed
from pairloom.base.threads import on_one_thread
from pairloom.base.typing import Array
from pairloom.engines.base import EngineName
from pairloom.models.base import Dtype, Model, Trouble
from pairloom.pairs import OppositeClass
from pairloom.race.budget import Budget
from pairloom.race.entrant import Entrant, Runner
from pairloom.race.evidence import Evidence
from pairloom.race.frozen import FrozenState, frozen
from pairloom.race.mixing import heard, shares, spoken, spread, stacked, tame
from pairloom.race.portfolio import Candidate, Portfolio
from pairloom.race.refits import refit
from pairloom.race.state import Mixture, RaceState, Standing, thinned
from pairloom.race.telling import log
from pairloom.stream import Kept, Recent, RecentScores, StreamState
from pairloom.stream.observers import RECENT
from pairloom.stream.stream import advance

SETTLED, LEAVES = 16_384, 0.02
"""The row from which on candidates leave whose share of the mixture is smaller than this."""

FROZEN = "a frozen model only predicts: go on learning with the model that it was made of"


@dataclass(frozen=True, kw_only=True)
class Race(Model):
    """A portfolio of candidates on one stream, and the mixture of them that ranks best.

    All candidates that the budget can afford learn from the first rows on. Rules on data (scaling, width, landmarks)
    are fixed anew at rows 8, 32, 128, 512 and 1,024: what is made then takes in the rows before it while the stream
    goes on, a few for each new one, and takes over at a row that is known beforehand. So no row waits for another. At
    row 1,024 the best kernel space goes on to a larger one, where that pays.

    Candidates are compared by pairs inside windows, scored before learning (:class:`Evidence`), and mixed by weights
    that make log-odds of their scores (:func:`~pairloom.race.mixing.stacked`): with few rows of the rarer class nearly
    equal ones, with many those that the rows ask for. Weights change at rows 16, 32, ..., and four times in every
    doubling of the stream. From row 16,384 on, who has next to nothing to say leaves. All of it follows from row
    numbers, so the cuts between calls do not matter. Messages: ``logging.getLogger("pairloom.race")``.

    Parameters
    ----------
    pairs : the classes.
    portfolio : the candidates.
    budget : bytes and microseconds.
    dtype, seed, engine : as in :class:`~pairloom.Learner`.

    Cost: ``budget.microseconds`` per row, nominally.

    >>> from pairloom import Stream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> stream = Stream(Race(seed=0)).partial_fit(X, np.where((X**2).sum(axis=1) > 4, 1, -1))
    >>> bool(stream.auc()[0] > 0.9), len(stream.model.mixture(stream.learned)) > 1
    (True, True)
    """

    large_products: ClassVar[bool] = False
    """Not when it scores; ``run`` limits threads itself."""

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
        """No: it keeps the first rows itself."""
        return False

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def takes_nan(self) -> bool:
        return self.portfolio.takes_nan

    def warm_rows(self, n_features: int) -> int:
        return 0

    def init(self, n_features: int, first: Batch | None) -> RaceState:
        """The candidates without rules on data; the others enter at row 8."""
        admitted = self.admitted(n_features)
        models = {}
        for one in admitted:
            models[one.name] = self.make(one)
            one.features.check(n_features)
        ready = [one for one in admitted if not one.refits]
        entrants = [self.entrant(one, 0, n_features, models[one.name].init(n_features, None)) for one in ready]
        evidence = Evidence(self.pairs.targets, sum(map(len, models.values())))
        kept = Kept() if len(ready) < len(admitted) else None
        counts = np.zeros(self.pairs.n_classes)
        return RaceState(n_features, entrants, evidence, counts, Mixture.empty(self.n_vectors), kept)

    @on_one_thread
    def run(self, state: RaceState, batch: Batch) -> Scored | None:
        for entrant in self.running(state):
            advance(entrant.model, (RecentScores(),), entrant.stream, batch)
        np.add.at(state.counts, batch.y.astype(int), batch.weight)  # row by row: the cut into calls must not show
        state.t += len(batch)
        if state.kept is not None:
            state.kept.add(batch)
        t, scored = state.t, None
        if t < next_evaluation(0):
            scored = Scored(t, np.zeros((len(batch), self.n_vectors)), batch.y, batch.weight, batch.query)
        elif next_evaluation(t - 1) == t:
            arrived = self._mixed(state, state.evaluated)
            self._evaluate(state)
            scored = arrived
            if mixes_at(t, state.since or 0):
                scored = replace(self._mixed(state, state.since or 0), first=arrived.scores)
        refit(self, state)
        return scored

    def score(self, state: RaceState | FrozenState, X: Any) -> Array:
        """The mixture's score of each row; with more than two classes, one column for each."""
        if isinstance(state, FrozenState):
            return state.score(X, self.n_vectors)
        total = np.zeros((X.shape[0], self.n_vectors))
        first, mixture = 0, state.mixture
        for entrant, weight in zip(self.running(state), mixture.weights, strict=False):
            own = slice(first, first + len(entrant))
            if weight > 0:
                total += weight * tame(entrant.score(X, mixture.slopes[own], mixture.shifts[own]))
            first = own.stop
        return total

    def shaped(self, scores: Array) -> Array:
        """One column per class, or none for two classes."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def waiting(self, state: RaceState) -> None:
        """None: the mixture's scores are known at every evaluation."""

    def next_row(self, state: RaceState) -> int:
        refit = NEVER if state.kept is None else next_refit(state.t)
        return min(next_evaluation(state.t), refit)

    def check_room(self, state: RaceState | FrozenState | None, n: int) -> None:
        """There is room for every row, unless it is frozen."""
        if isinstance(state, FrozenState):
            raise ValueError(FROZEN)

    def trouble(self, state: RaceState, told: float) -> Trouble | None:
        """None: some candidates take steps that are too long on purpose, and lose."""
        return None

    @property
    def forgets(self) -> bool:
        return True

    def forget(self, state: RaceState, keep: float) -> None:
        for entrant in (*self.running(state), *state.coming):
            entrant.model.forget(entrant.stream.learned, keep)
        state.since = state.t - int(keep * state.age)
        state.evidence.forget(keep)

    def frozen(self, state: RaceState | FrozenState) -> FrozenState:
        """Only what predicts."""
        return state if isinstance(state, FrozenState) else frozen(state, self.running(state))

    def mixture(self, state: RaceState | FrozenState) -> list[str]:
        """The names of the candidates that make the predictions now, those with most to say first."""
        if isinstance(state, FrozenState):
            return [one.name for one in sorted(state.members, key=lambda one: -one.weight)]
        order = np.argsort(-state.mixture.weights, kind="stable")
        return [state.entrants[i].name for i in order if state.mixture.weights[i] > 0]

    def admitted(self, n_features: int) -> list[Candidate]:
        """The candidates that the budget can afford."""
        return self.budget.admit(self.portfolio, n_features, self.pairs.n_classes, self.itemsize)

    def running(self, state: RaceState) -> list[Entrant]:
        """The entrants, with what learns; it follows from their names."""
        for entrant in (*state.entrants, *state.coming):
            if entrant.runner is None:
                entrant.runner = self.runner(entrant, state.n_features)
        return state.entrants

    def runner(self, entrant: Entrant, n_features: int) -> Runner:
        """What an entrant's name, stage and size stand for; KeyError if there is no such candidate."""
        candidate = {one.name: one for one in self.admitted(n_features)}[entrant.name]
        if entrant.large:
            candidate = candidate.larger(n_features)[entrant.large]
        return Runner(candidate, self.make(candidate, entrant.stage))

    @property
    def itemsize(self) -> int:
        """Bytes of a number of ``dtype``."""
        return np.dtype(self.dtype).itemsize

    def make(self, candidate: Candidate, stage: int = 0) -> Any:
        """The models of a candidate whose rules were fixed at row ``stage``."""
        since = 3 * REFITS[stage] // 4 if stage else 0  # before it takes over there is no need to know more
        return candidate.model(
            self.pairs, since=since, max_bytes=self.budget.bytes, dtype=self.dtype, seed=self.seed, engine=self.engine
        )  # fmt: skip

    def entrant(self, candidate: Candidate, stage: int, n_features: int, learned: Any, large: int = 0) -> Entrant:
        """A candidate before its first row."""
        model = self.make(candidate, stage)
        observed = {RecentScores.name: RecentScores().init(model)}
        stream = StreamState(0, n_features, learned, None, observed)
        return Entrant(candidate.name, stage, large, stream, Runner(candidate, model))

    def _evaluate(self, state: RaceState) -> None:
        """Take in the scores of the rows since the last time; weigh the candidates anew where that is due."""
        rings = [entrant.recent for entrant in self.running(state)]
        while state.evaluated < state.t:
            end = next_evaluation(state.evaluated)
            rows = np.arange(state.evaluated, end) % RECENT
            rows = rows[rings[0].weights[rows] > 0]  # those that grew a forest have no score
            scores = np.concatenate([ring.scores[rows] for ring in rings], axis=1)
            if len(rows):
                scores = np.nan_to_num(scores.reshape(len(rows), -1, self.n_vectors))
                state.evidence.add(scores, rings[0].labels[rows], rings[0].weights[rows])
            state.evaluated = end
        if mixes_at(state.t, state.since or 0):
            self._mix(state)
            if state.age >= SETTLED:
                weights = state.mixture.weights
                self.keep(state, (weights >= LEAVES * weights.sum()).tolist())

    def _mix(self, state: RaceState) -> None:
        """Weigh models and candidates by the evidence so far."""
        running = self.running(state)
        sizes = [len(one) for one in running]
        areas, rare = state.evidence.verdict()
        parts = shares(areas, rare, sizes)
        families = [one.candidate.family for one in running]
        prior = np.array([1.0 / families.count(family) for family in families])
        windows = state.evidence.newer()[0]
        weights = stacked(*spoken(windows, parts, sizes, self.pairs.targets), prior) if windows else prior
        rings = [self._counting(state, one.recent) for one in running]
        recent = np.concatenate(rings, axis=1)
        recent = recent.reshape(len(recent), len(parts), self.n_vectors)
        whole = np.array([bool(np.isfinite(ring).all()) for ring in rings])
        weights, prior = weights * whole, prior * whole  # who left the range of numbers says nothing
        state.mixture = Mixture(heard(weights, prior), parts[:, None] / spread(recent), recent.mean(axis=0))
        self._write_down(state, areas, parts, sizes)

    def _counting(self, state: RaceState, ring: Recent) -> Array:
        """The scores of a ring, of the rows that count."""
        n = state.age
        if n >= RECENT or state.since is None:
            return ring.view()[0]
        return ring.scores[np.arange(ring.count - n, ring.count) % RECENT]

    def _write_down(self, state: RaceState, areas: Array, parts: Array, sizes: list[int]) -> None:
        """The standings: four times in every doubling, unless the stream changes, and not without end."""
        share = state.mixture.weights / state.mixture.weights.sum()
        first = np.cumsum([0, *sizes])[:-1]
        means = np.add.reduceat(areas * parts, first)
        told = [Standing(state.t, one.name, float(means[i]), float(share[i])) for i, one in enumerate(state.entrants)]
        state.standings = thinned([*state.standings, *told])
        said = sorted(told, key=lambda one: -one.share)
        log.info("row %s: %s", f"{state.t:,}", ", ".join(f"{o.name} {o.auc:.4f} ({o.share:.0%})" for o in said))

    def keep(self, state: RaceState, staying: list[bool]) -> None:
        """Let the others leave."""
        if all(staying) or not any(staying):
            return
        running = self.running(state)
        models = np.repeat(staying, [len(one) for one in running])
        gone = [one.name for one, stays in zip(running, staying, strict=True) if not stays]
        log.info("row %s: leave: %s", f"{state.t:,}", "; ".join(gone))
        state.evidence.only(np.flatnonzero(models).tolist())
        state.entrants = [one for one, stays in zip(running, staying, strict=True) if stays]
        now = state.mixture
        weights = heard(now.weights[np.array(staying)], np.ones(sum(staying)))
        state.mixture = Mixture(weights, now.slopes[models], now.shifts[models])

    def _mixed(self, state: RaceState, after: int = 0) -> Scored:
        """The mixture's scores of the newest rows after row ``after``, from those of its models."""
        ring, mixture = self.running(state)[0].recent, state.mixture
        rows = np.arange(max(after, ring.count - RECENT), ring.count) % RECENT
        total, first = np.zeros((len(rows), self.n_vectors)), 0
        for entrant, weight in zip(state.entrants, mixture.weights, strict=False):
            own = slice(first, first + len(entrant))
            if weight > 0:
                scores = entrant.recent.scores[rows].reshape(len(rows), len(entrant), -1) - mixture.shifts[own]
                total += weight * tame((scores * mixture.slopes[own]).sum(axis=1))
            first = own.stop
        return Scored(ring.count, total, ring.labels[rows], ring.weights[rows])
