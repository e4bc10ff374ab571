"""Many candidates on one stream: each is scored before it learns, and the field narrows as evidence comes in."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pairloom.calibration import next_calibration_row
from pairloom.features import FeatureMap, Identity
from pairloom.grid import Grid
from pairloom.onepass import OnePass
from pairloom.pairs import OppositeClass
from pairloom.race.budget import Budget, largest_first
from pairloom.race.entrant import Entrant
from pairloom.race.evidence import Evidence
from pairloom.race.exact_path import ExactPath
from pairloom.race.mixing import affordable, grown, pruned
from pairloom.race.portfolio import Candidate, Portfolio
from pairloom.state import RECENT, Batch
from pairloom.typing import Array

SETTLE_ROWS = 16_384
"""From this row on, all that is left costs no more than the budget."""

NARROW_AT = 16
"""Closed windows after which each entrant is its best model alone."""

HOPELESS = 0.05
"""Area behind the best with which an entrant leaves then; the others may yet win, or help in a mixture."""

FAR = 4.0
"""Standard deviations beyond which a score is an outlier."""


class Standing(NamedTuple):
    """At ``row``, the area under the curve of a candidate's best model, and whether the mixture has it."""

    row: int
    name: str
    auc: float
    mixed: bool


class Rank(NamedTuple):
    """An entrant's best model: its area under the curve, and the standard error of what it is behind the best."""

    entrant: int
    model: int
    auc: float
    error: float


@dataclass
class Track:
    """What a race keeps: entrants, evidence, and the mixture that speaks for all.

    ``chosen`` (models, 2): entrant and model; ``shift`` and ``spread`` (models, classes) standardise their scores.
    ``counts``: weight of the rows of each class. Scores up to row ``evaluated`` are in the evidence.
    """

    entrants: list[Entrant]
    evidence: Evidence
    counts: Array
    chosen: Array
    shift: Array
    spread: Array
    evaluated: int = 0
    standings: list[Standing] = field(default_factory=list)


@dataclass(eq=False, kw_only=True)
class Race(OnePass):
    """A portfolio of learners on one stream, and the mixture of the best of them.

    The scouts learn from the first row on. At row ``portfolio.warm_rows`` the large spaces around the best scout join
    and learn the kept rows. Models are compared by pairs inside windows, scored before learning (:class:`Evidence`).
    After 16 windows each candidate is left with its best model; those more than 0.05 behind the best leave. They are
    not halved: large spaces with narrow kernels start slowly, and win later or help in a mixture. From row 16,384 on
    only a mixture is left that the budget can afford: the best around that model which, of all within one standard
    error of the best, has the largest space.

    Before, the mixture starts with the best model and takes in others, each time the one that helps most, until the
    next would make the mean of standardised scores worse in the windows. It changes at powers of two from row 16 on,
    and before row 16,384 at multiples of 512 or 1,024: by the row number, so the cuts between calls do not matter.

    Cost: that of the candidates up to row 16,384; then ``budget.microseconds``, nominally.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> race = Race(seed=0).partial_fit(X, np.where((X**2).sum(axis=1) > 4, 1, -1))
    >>> race.track.entrants[race.track.chosen[0, 0]].candidate.name.split(",")[0]
    'nystroem 256'
    """

    large_products: ClassVar[bool] = True

    features: FeatureMap = field(default_factory=Identity)
    pairs: OppositeClass = field(default_factory=OppositeClass)
    portfolio: Portfolio = field(default_factory=Portfolio)
    budget: Budget = field(default_factory=Budget)

    @property
    def needs_data(self) -> bool:
        return True

    @property
    def warm_rows(self) -> int:
        if self.state is None:
            return self.portfolio.warm_rows
        return self.budget.warm_rows(self.portfolio, self.n_columns, self._itemsize)

    @property
    def _itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def n_columns(self) -> int:
        """d."""
        assert self.state is not None, "no rows seen yet"
        return int(self.state.phi.scaler.shift.size)

    @property
    def track(self) -> Track:
        """Entrants, evidence, mixture."""
        assert self.state is not None, "no rows seen yet"
        track: Track = self.state.memory
        return track

    def _score_rows(self, X: Any) -> Array:
        """The mixture's score of each row; with more than two classes, one column for each."""
        total = np.zeros((X.shape[0], len(self.pairs.models)))
        if self.state is not None and self.track.entrants:
            track = self.track
            for (i, model), shift, spread in zip(track.chosen, track.shift, track.spread, strict=True):
                total += tame((track.entrants[i].score(int(model), X) - shift) / spread)
        return total[:, 0] if total.shape[1] == 1 else total

    def warn_if_unstable(self, stacklevel: int = 3) -> None:
        """Nothing: some candidates take steps that are too long on purpose, and lose."""

    def _run(self, batch: Batch) -> Array:
        raise AssertionError("the entrants run, each by itself")

    def _start_memory(self, n_features: int, phi: Any, rows: Any) -> Track:
        """The scouts; none before the first row."""
        C, budget = self.pairs.n_classes, self.budget
        scouts = budget.exact(self.portfolio, C).scouts(n_features)
        # A quarter: at a replay the old scouts are there until the new ones have learned.
        scouts = budget.admit(scouts, n_features, C, 0.25, itemsize=self._itemsize)
        if rows is None:
            self._check_candidates(n_features)
        entrants = [] if rows is None else [self._enter(scout, rows) for scout in scouts]
        size = len(self.pairs.models)
        return Track(
            entrants, Evidence(self.pairs.models, sum(map(len, entrants))), np.zeros(self.pairs.n_classes),
            np.zeros((1, 2), np.int64), np.zeros((1, size)), np.ones((1, size)),
        )  # fmt: skip

    def _check_candidates(self, n_features: int) -> None:
        """Raise ValueError before the first row if a candidate, also one of later, cannot learn such rows."""
        portfolio = self.portfolio
        for candidate in [*portfolio.scouts(n_features), *portfolio.finalists(portfolio.scales[0], 1.0)]:
            self._make(candidate)
            candidate.features.check(n_features)

    def _make(self, candidate: Candidate) -> Grid | ExactPath:
        return candidate.learner(
            self.pairs, max_bytes=self.budget.bytes, dtype=self.dtype, seed=self.seed, engine=self.engine
        )

    def _enter(self, candidate: Candidate, rows: Any) -> Entrant:
        learner = self._make(candidate)
        learner.settle(rows)
        return Entrant(candidate, learner, candidate.microseconds(rows.shape[1]))

    def _learn_warm(self, batch: Batch) -> None:
        kept = self.kept
        super()._learn_warm(batch)
        if self.kept is None and kept is not None:
            self._start_finalists(Batch.join(kept.batches))

    def _start_finalists(self, batch: Batch) -> None:
        """The large spaces learn the kept rows; of the scouts those of the mixture go on."""
        track, d, C = self.track, self.n_columns, self.pairs.n_classes
        ranked = [track.entrants[one.entrant].candidate for one in self._ranked()]
        guide = next((candidate for candidate in ranked if candidate.factor), ranked[0])
        sized = self.budget.sized(self.portfolio, d, C, self._itemsize)
        finalists = sized.finalists(guide.features.scale, guide.factor or 1.0)
        track.entrants = [track.entrants[i] for i in sorted(set(track.chosen[:, 0].tolist()))]
        # A small budget may make a finalist what a scout is already, or give it the same name.
        known = {entrant.candidate.name: entrant.candidate.features.n_outputs(d) for entrant in track.entrants}
        new = [
            replace(one, name=f"{one.name}, rank {one.features.n_outputs(d)}") if one.name in known else one
            for one in finalists
            if known.get(one.name) != one.features.n_outputs(d)
        ]
        held = [entrant.candidate for entrant in track.entrants]
        admitted = self.budget.admit(new, d, C, held=held, itemsize=self._itemsize)
        made = {}
        for candidate in largest_first(admitted, d):
            entrant = made[candidate.name] = self._enter(candidate, batch.X)
            entrant.learner.learn(batch)
        track.entrants += [made[candidate.name] for candidate in admitted]
        track.evidence = Evidence(self.pairs.models, sum(map(len, track.entrants)))
        track.evaluated = max(0, len(batch) - RECENT)
        track.standings = [one for one in track.standings if one.row < len(batch) or one.name not in known]
        self._evaluate()

    def _run_and_remember(self, batch: Batch) -> None:
        state, at = self.state, 0
        assert state is not None
        while at < len(batch):
            end = min(len(batch), at + next_evaluation(state.t) - state.t)
            part = batch[at:end]
            for entrant in self.track.entrants:
                entrant.learner.learn(part)
            self.track.counts += np.bincount(part.y.astype(int), part.weight, len(self.track.counts))
            state.t += end - at
            if next_evaluation(state.t - 1) == state.t:
                self._evaluate()
            at = end
        if state.t < next_evaluation(0):
            self._remember()

    def _evaluate(self) -> None:
        """Take in the scores of the rows since the last time; narrow the field and mix anew where that is due."""
        state, track = self.state, self.track
        assert state is not None
        rings, closed = [entrant.recent for entrant in track.entrants], False
        while track.evaluated < state.t:
            end = next_evaluation(track.evaluated)
            rows = np.arange(track.evaluated, end) % RECENT
            scores = np.concatenate([ring.scores[rows] for ring in rings], axis=1)
            closed = track.evidence.add(
                scores.reshape(len(rows), -1, len(self.pairs.models)), rings[0].labels[rows], rings[0].weights[rows]
            )
            track.evaluated = end
        settled = state.t >= SETTLE_ROWS
        if mixes_at(state.t):
            self._mix()
            if settled:
                self._keep({(int(i), int(model)) for i, model in track.chosen})
        if closed and track.evidence.closed == NARROW_AT and self.kept is None and not settled:
            self._narrow()
        self._remember()

    def _ranked(self) -> list[Rank]:
        """The entrants, the best first."""
        areas, errors = self.track.evidence.verdict()
        found, at = [], 0
        for i, entrant in enumerate(self.track.entrants):
            own = slice(at, at + len(entrant))
            model = int(areas[own].argmax())
            found.append(Rank(i, model, float(areas[own][model]), float(errors[own][model])))
            at += len(entrant)
        return sorted(found, key=lambda one: (-one.auc, self.track.entrants[one.entrant].microseconds))

    def _mix(self) -> None:
        """Choose the mixture among the best model of each entrant; once settled, only members can leave it."""
        state, track, ranked = self.state, self.track, self._ranked()
        assert state is not None
        first = np.cumsum([0, *map(len, track.entrants)])
        column = {int(first[one.entrant]) + one.model: one for one in ranked}
        areas = track.evidence.mixture
        if state.t < SETTLE_ROWS:
            mixture = grown(areas, list(column))
        elif state.t == SETTLE_ROWS:
            prices = {key: track.entrants[one.entrant].price(self.n_columns) for key, one in column.items()}
            mixture = affordable(areas, prices, self.budget.limit(self.n_columns))
        else:
            mixture = pruned(areas, list(column))
        chosen = [column[one] for one in mixture]
        track.chosen = np.array([(one.entrant, one.model) for one in chosen])
        scales = [track.entrants[one.entrant].scales(one.model) for one in chosen]
        track.shift, track.spread = (np.array(part) for part in zip(*scales, strict=True))
        self._report(ranked)

    def _report(self, ranked: list[Rank]) -> None:
        """Write the standings down: once in every doubling of the stream, so that they stay few."""
        state, track = self.state, self.track
        assert state is not None
        if state.t.bit_count() == 1:
            mixed = set(track.chosen[:, 0].tolist())
            track.standings += [
                Standing(state.t, track.entrants[i].candidate.name, auc, i in mixed) for i, _, auc, _ in ranked
            ]

    def _narrow(self) -> None:
        """Keep of each entrant its best model, and the mixture's; none but the hopeless has lost already.

        Hopeless is what is more than ``HOPELESS`` behind the best.
        """
        track, ranked = self.track, self._ranked()
        staying = {one.entrant: one.model for one in ranked if ranked[0].auc - one.auc <= HOPELESS}
        staying.update((int(i), int(model)) for i, model in track.chosen)
        self._keep(set(staying.items()))

    def _keep(self, staying: set[tuple[int, int]]) -> None:
        """Drop all entrants but these, and all their models but these; the mixture, which is among them, follows."""
        track = self.track
        first = np.cumsum([0, *map(len, track.entrants)])
        pairs = sorted(staying)
        track.entrants = [track.entrants[i].only(model) for i, model in pairs]
        track.evidence.only([int(first[i]) + model for i, model in pairs])
        track.chosen = np.array([(pairs.index((int(i), int(model))), 0) for i, model in track.chosen])

    def _remember(self) -> None:
        """The mixture's scores of the newest rows, from those of its models."""
        state, track = self.state, self.track
        assert state is not None
        size = len(self.pairs.models)
        total = np.zeros((RECENT, size))
        for (i, model), shift, spread in zip(track.chosen, track.shift, track.spread, strict=True):
            scores = track.entrants[i].recent.scores[:, model * size : (model + 1) * size]
            total += tame((scores - shift) / spread)
        ring = track.entrants[0].recent
        state.recent.scores[:] = total
        state.recent.labels[:], state.recent.weights[:], state.recent.count = ring.labels, ring.weights, ring.count


def tame(scores: Array) -> Array:
    """Standardised scores, in the same order, the far ones drawn in: u, beyond 4 as 4 + ln(u - 3).

    Narrow kernels give a row next to a landmark a score far outside all others, and log-odds should not follow.

    >>> tame(np.array([-2.0, 4.0, 40.0])).round(2)
    array([-2.  ,  4.  ,  7.61])
    """
    size = np.abs(scores)
    return np.asarray(np.where(size > FAR, np.copysign(FAR + np.log1p(np.maximum(size - FAR, 0.0)), scores), scores))


def next_evaluation(t: int) -> int:
    """The first row after row t at which scores are looked at: 16, 32, 64, and multiples of 128.

    >>> next_evaluation(3), next_evaluation(64), next_evaluation(1000)
    (16, 128, 1024)
    """
    return next((row for row in (16, 32, 64) if row > t), 128 * (t // 128 + 1))


def mixes_at(t: int) -> bool:
    """Whether the mixture changes at row t, one of ``next_evaluation``: only where log-odds are fitted anew."""
    return t.bit_count() == 1 or (t % 512 == 0 and t < SETTLE_ROWS and next_calibration_row(t - 1) == t)
