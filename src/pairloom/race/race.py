"""Race: many candidates learn on one stream, and a mixture of the best of them predicts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_choice
from pairloom.base.clock import NEVER, REFIT_ROWS, mixes_at, next_evaluation, next_refit
from pairloom.base.compact import Form
from pairloom.base.graph import Value
from pairloom.base.parallel import run_all
from pairloom.base.randomness import fresh_seed
from pairloom.base.spec import PlainValues, StateSpec
from pairloom.base.threads import on_one_thread
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.engines.base import EngineName
from pairloom.features.capabilities import FrozenSum
from pairloom.features.encoding import Encoding
from pairloom.models.base import Dtype, Many, Model
from pairloom.pairs import OppositeClass
from pairloom.race.budget import Budget
from pairloom.race.checks import check_entrant, check_portfolio_size, check_state
from pairloom.race.evidence import Evidence
from pairloom.race.merging import merge_entrants
from pairloom.race.mixing import candidate_scores, drop_negligible, fit_weights, model_shares, soft_clip, spread
from pairloom.race.mixture_sum import MixtureSum
from pairloom.race.portfolio import Candidate, Portfolio
from pairloom.race.refits import refit
from pairloom.race.standings import Standing, log, thinned
from pairloom.race.state import Entrant, FrozenState, Mixture, RaceState
from pairloom.stream.hooks import N_RECENT, Recent, RecentScores
from pairloom.stream.state import Kept, StreamState, stream_spec

DROP_FROM_ROW, MIN_ENTRANT_SHARE = 16_384, 0.02
"""From this row on, candidates with a smaller share of the mixture are dropped."""


@dataclass(frozen=True, kw_only=True)
class Race(Model):
    """A portfolio of candidates on one stream, and a mixture of them that predicts.

    All candidates that fit the budget learn from the first rows on. Data-dependent settings (scaling, width,
    landmarks) are fixed again at rows 8, 32, 128, 512 and 1,024. Each refitted candidate learns a few of the earlier
    rows for each new row, and replaces the old one at a row known in advance, so that no single row is slow. At row
    1,024 the best kernel candidate gets a larger feature space, if its share of the mixture is large enough.

    Models are compared by their AUC in windows of test-then-train scores (:class:`Evidence`). Candidates are weighted
    by stacking (:func:`~pairloom.race.mixing.fit_weights`): nearly equally with few rows of the rarest class, and
    mostly by their scores with many. Weights are fitted at rows 16, 32, ..., and four times in every doubling of the
    stream. From row 16,384 on, candidates with a small share of the mixture are dropped. All of this depends on row
    numbers only, so results do not depend on the chunking. Progress is logged to
    ``logging.getLogger("pairloom.race")``.

    Parameters
    ----------
    pairs : the classes.
    portfolio : the candidates.
    budget : bytes and microseconds.
    encoding : of mixed columns, in the form "all": each candidate reads its own form. None: all read the same columns.
    dtype, seed, engine : as in :class:`~pairloom.Learner`.

    Cost: ``budget.microseconds`` per row, nominally.

    >>> from pairloom import Stream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> stream = Stream(Race(seed=0)).partial_fit(X, np.where((X**2).sum(axis=1) > 4, 1, -1))
    >>> bool(stream.auc()[0] > 0.9), len(stream.model.mixture(stream.learned)) > 1
    (True, True)
    """

    pairs: OppositeClass = field(default_factory=OppositeClass)
    portfolio: Portfolio = field(default_factory=Portfolio)
    budget: Budget = field(default_factory=Budget)
    encoding: Encoding | None = None
    dtype: Dtype = "float32"
    seed: int | None = None
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, Dtype)
        check_choice("engine", self.engine, EngineName)
        if self.seed is None:
            object.__setattr__(self, "seed", fresh_seed())

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def takes_nan(self) -> bool:
        return self.encoding is not None or self.portfolio.takes_nan

    @property
    def form(self) -> Form:
        return "all"

    def reading(self, encoding: Encoding) -> "Race":
        return replace(self, encoding=encoding)

    @property
    def limited(self) -> "Race":
        return self

    @property
    def forgetting(self) -> "Race":
        return self

    @property
    def itemsize(self) -> int:
        """Bytes of a number of ``dtype``."""
        return np.dtype(self.dtype).itemsize

    def init(self, n_features: int, first: Batch | None) -> RaceState:
        """Return the state before the first row; candidates with data-dependent settings enter at row 8."""
        admitted = self.admitted(n_features)
        models = {}
        for one in admitted:
            models[one.name] = self.make_model(one)
            one.features.check(one.width(n_features))
        ready = [one for one in admitted if not one.refits]
        entrants = [
            self.new_entrant(one, 0, n_features, models[one.name].init(one.width(n_features), None)) for one in ready
        ]
        evidence = Evidence(self.pairs.targets, sum(map(len, models.values())))
        kept = Kept() if len(ready) < len(admitted) else None
        counts = np.zeros(self.pairs.n_classes)
        return RaceState(n_features, entrants, evidence, counts, Mixture.empty(self.n_vectors), kept)

    def run(self, state: RaceState, batch: Batch) -> Scored | None:
        due, entrants = self.next_row(state), self.entrants(state)
        state.waiting = state.waiting or Kept()
        state.waiting.add(batch)
        learning = [(one, batch) for one in entrants if not one.model.steady]
        if state.t + len(batch) == due:
            learning += self._steady(state)
            # Long tasks first: several threads then end at nearly the same time.
            learning.sort(key=lambda pair: -pair[0].candidate.microseconds(state.n_features))
        run_all([partial(one.learn, rows) for one, rows in learning])
        np.add.at(state.counts, batch.y.astype(int), batch.weight)  # row by row: the chunking must not matter
        state.t += len(batch)
        if state.kept is not None:
            state.kept.add(batch)
        scored = self._act(state) if state.t == due else None
        if state.t < next_evaluation(0):
            zeros = np.zeros((len(batch), self.n_vectors))
            return Scored(state.t, zeros, batch.y, batch.weight, batch.query)
        return scored

    @on_one_thread
    def _act(self, state: RaceState) -> Scored | None:
        """Do what is due after a row of ``next_row``; return the new scores of the mixture, if there are any."""
        t, scored = state.t, None
        if next_evaluation(t - 1) == t:
            arrived = self._mixed_scores(state, state.evaluated)
            self._evaluate(state)
            scored = arrived
            if mixes_at(t, state.since or 0):
                scored = replace(self._mixed_scores(state, state.since or 0), first=arrived.scores)
        refit(self, state)
        return scored

    def score(self, state: RaceState | FrozenState, X: Any) -> Array:
        """Return the mixture's score of each row; with more than two classes, one column for each."""
        if isinstance(state, FrozenState):
            return state.score(X, self.n_vectors, self.encoding)
        self.entrants(state)
        total = np.zeros((X.shape[0], self.n_vectors))
        for entrant, weight, slopes, shifts in state.members():
            own = entrant.candidate.columns_of(X)
            total += weight * soft_clip(entrant.model.mixed_scores(entrant.stream.learned, own, slopes, shifts))
        return total

    def explainable(self, state: RaceState | FrozenState) -> MixtureSum | None:
        if not isinstance(state, FrozenState):
            self.entrants(state)
        return state.explainable(self.encoding)

    def to_onnx(self, state: RaceState | FrozenState, x: Value) -> Value:
        return self.frozen(state).to_onnx(x, self.n_vectors, self.encoding)

    def n_scored(self, state: RaceState | FrozenState, t: int) -> int | None:
        if isinstance(state, FrozenState):
            return None
        return state.evaluated if t >= next_evaluation(0) else t

    def next_row(self, state: RaceState) -> int:
        if state.due is None or state.due <= state.t:
            refit = NEVER if state.kept is None else next_refit(state.t)
            steady = [one.model.next_row(one.stream.learned) for one in self.entrants(state) if one.model.steady]
            state.due = min(next_evaluation(state.t), refit, *steady)
        return state.due

    def learn_waiting(self, state: RaceState) -> None:
        """Let steady entrants learn the rows that they have not learned."""
        for one, rows in self._steady(state):
            one.learn(rows)

    def _steady(self, state: RaceState) -> list[tuple[Entrant, Batch]]:
        """Return the steady entrants with the rows that wait for them, and let no row wait any longer."""
        if state.waiting is None:
            return []
        rows, state.waiting = state.waiting.all(), None
        return [(one, rows) for one in self.entrants(state) if one.model.steady]

    def check_room(self, state: RaceState | FrozenState | None, n: int) -> None:
        """Raise ValueError if the race is frozen."""
        if isinstance(state, FrozenState):
            raise ValueError("a frozen model only predicts: continue learning with the model that was frozen")

    def state_spec(self, n_features: int, t: int, room: int) -> StateSpec:
        spec = super().state_spec(n_features, t, room)
        check_portfolio_size(self.portfolio)
        return replace(
            spec, kind=RaceState | FrozenState, check=partial(check_state, self, n_features, t),
            parts={"stream": partial(self._stream_spec, n_features), "member": self._member_spec},
        )  # fmt: skip

    def _stream_spec(self, n_features: int, nearby: PlainValues) -> StateSpec:
        """Return the specification of an entrant's stream, which depends on the entrant's name, stage and size."""
        entrant = nearby.parent
        name, stage, large = entrant.text("name"), entrant.count("stage"), entrant.count("large")
        check_entrant(self, name, stage, large, n_features)
        model = self.make_model(self.candidate(name, large, n_features), stage)
        return stream_spec(model, (RecentScores(),))(nearby)

    def _member_spec(self, nearby: PlainValues) -> StateSpec:
        """Return the specification of a member of a frozen race, which depends on the columns that it reads."""
        if self.encoding is None:
            return StateSpec(FrozenSum)
        form = nearby.text("form")
        check_choice("form", form, Form)
        return StateSpec(FrozenSum, {"d": self.encoding.width_of(cast(Form, form))})

    def forget(self, state: RaceState, keep: float) -> None:
        self.learn_waiting(state)
        state.due = None
        for entrant in (*self.entrants(state), *state.coming):
            forgetting = entrant.model.forgetting
            if forgetting is not None:
                forgetting.forget(entrant.stream.learned, keep)
        state.since = state.t - int(keep * state.age)
        state.evidence.forget(keep)

    def settle(self, state: RaceState) -> tuple[RaceState, Scored | None]:
        if state.waiting is None and state.evaluated == state.t:
            return state, None
        made = copy(state)
        self.learn_waiting(made)
        scored = self._mixed_scores(made, made.evaluated)
        self._gather(made)
        return made, scored

    def recode(self, state: RaceState, codes: dict[int, Array]) -> None:
        self.learn_waiting(state)
        for one in self.entrants(state):
            if one.candidate.form == "codes":
                one.model.recode(one.stream.learned, codes)

    def merge(self, base: RaceState, parts: Sequence[RaceState]) -> RaceState:
        """Merge each candidate, pool the evidence, and fit the mixture to it."""
        made = merge_entrants(self, base, [self.settle(part)[0] for part in parts])
        self._mix(made)
        self._drop(made)
        return made

    def frozen(self, state: RaceState | FrozenState) -> FrozenState:
        """Return the state that only predicts."""
        if isinstance(state, FrozenState):
            return state
        self.entrants(state)
        return state.freeze()

    def mixture(self, state: RaceState | FrozenState) -> list[str]:
        """Return the names of the candidates in the mixture, by decreasing weight."""
        if isinstance(state, FrozenState):
            return [one.name for one in sorted(state.members, key=lambda one: -one.weight)]
        order = np.argsort(-state.mixture.weights, kind="stable")
        return [state.entrants[i].name for i in order if state.mixture.weights[i] > 0]

    def admitted(self, n_features: int) -> list[Candidate]:
        """Return the candidates that fit the budget."""
        n = n_features if self.encoding is None else len(self.encoding.kinds)
        candidates = self.portfolio.candidates(n)
        if self.encoding is not None:
            candidates = [one.reading(self.encoding) for one in candidates]
        return self.budget.admit(candidates, n, self.pairs.n_classes, self.itemsize)

    def candidate(self, name: str, large: int, n_features: int) -> Candidate:
        """Return the candidate of this name, enlarged to ``large`` features unless 0; KeyError if there is none."""
        candidate = {one.name: one for one in self.admitted(n_features)}[name]
        return candidate.larger(n_features)[large] if large else candidate

    def make_model(self, candidate: Candidate, stage: int = 0) -> Many:
        """Return the models of a candidate whose settings were fixed at row ``stage``."""
        since = 3 * REFIT_ROWS[stage] // 4 if stage else 0  # no score is needed long before it replaces the old one
        return candidate.model(
            self.pairs, since=since, max_bytes=self.budget.bytes, dtype=self.dtype, seed=self.seed, engine=self.engine
        )  # fmt: skip

    def new_entrant(self, candidate: Candidate, stage: int, n_features: int, learned: Any, large: int = 0) -> Entrant:
        """Return a candidate as an entrant before its first row."""
        model = self.make_model(candidate, stage)
        observed = {RecentScores.name: RecentScores().init(model)}
        stream = StreamState(0, candidate.width(n_features), learned, None, observed)
        return Entrant(candidate.name, stage, large, stream, candidate, model)

    def entrants(self, state: RaceState) -> list[Entrant]:
        """Return the entrants, with their candidates and models, which a state from a file or a copy lacks."""
        for one in (*state.entrants, *state.coming):
            if one.candidate is None:
                one.candidate = self.candidate(one.name, one.large, state.n_features)
                one.model = self.make_model(one.candidate, one.stage)
        return state.entrants

    def keep_entrants(self, state: RaceState, kept: list[bool]) -> None:
        """Drop all other entrants, unless none would be left."""
        if all(kept) or not any(kept):
            return
        entrants = self.entrants(state)
        models = np.repeat(kept, [len(one) for one in entrants])
        dropped = [one.name for one, stays in zip(entrants, kept, strict=True) if not stays]
        log.info("row %s: dropped: %s", f"{state.t:,}", "; ".join(dropped))
        state.evidence.keep_models(np.flatnonzero(models).tolist())
        state.entrants = [one for one, stays in zip(entrants, kept, strict=True) if stays]
        now = state.mixture
        weights = drop_negligible(now.weights[np.array(kept)], np.ones(sum(kept)))
        state.mixture = Mixture(weights, now.slopes[models], now.shifts[models])

    def _evaluate(self, state: RaceState) -> None:
        """Add the scores since the last evaluation to the evidence, and fit the weights when due."""
        self._gather(state)
        if mixes_at(state.t, state.since or 0):
            self._mix(state)
            self._drop(state)

    def _drop(self, state: RaceState) -> None:
        """Drop entrants with a small share, after enough rows."""
        if state.age >= DROP_FROM_ROW and not state.fixed:
            weights = state.mixture.weights
            self.keep_entrants(state, (weights >= MIN_ENTRANT_SHARE * weights.sum()).tolist())

    def _gather(self, state: RaceState) -> None:
        """Add the scores since the last evaluation to the evidence."""
        rings = [entrant.recent for entrant in self.entrants(state)]
        while state.evaluated < state.t:
            end = min(next_evaluation(state.evaluated), state.t)
            rows = np.arange(state.evaluated, end) % N_RECENT
            rows = rows[rings[0].weights[rows] > 0]  # rows used to grow a forest have no score
            scores = np.concatenate([ring.scores[rows] for ring in rings], axis=1)
            if len(rows):
                scores = np.nan_to_num(scores.reshape(len(rows), -1, self.n_vectors))
                state.evidence.add(scores, rings[0].labels[rows], rings[0].weights[rows])
            state.evaluated = end

    def _mix(self, state: RaceState) -> None:
        """Fit the weights of models and candidates to the evidence so far."""
        entrants = self.entrants(state)
        sizes = [len(one) for one in entrants]
        areas, rare = state.evidence.mean_auc()
        shares = model_shares(areas, rare, sizes)
        families = [one.candidate.family for one in entrants]
        prior = np.array([one.candidate.head.prior(rare) / families.count(one.candidate.family) for one in entrants])
        windows = state.evidence.used()[0]
        weights = prior
        if windows:
            weights = fit_weights(*candidate_scores(windows, shares, sizes, self.pairs.targets), prior)
        rings = [self._since_forgotten(state, one.recent) for one in entrants]
        recent = np.concatenate(rings, axis=1)
        recent = recent.reshape(len(recent), len(shares), self.n_vectors)
        finite = np.array([bool(np.isfinite(ring).all()) for ring in rings])
        weights, prior = weights * finite, prior * finite  # a diverged entrant has no weight
        scaling = shares[:, None] / spread(recent), recent.mean(axis=0)
        state.mixture = Mixture(drop_negligible(weights, prior), *scaling)
        self._record(state, areas, shares, sizes)

    def _since_forgotten(self, state: RaceState, ring: Recent) -> Array:
        """Return the scores in a ring buffer of the rows that were not forgotten."""
        n = state.age
        if n >= N_RECENT or state.since is None:
            return ring.view()[0]
        return ring.scores[np.arange(ring.count - n, ring.count) % N_RECENT]

    def _record(self, state: RaceState, areas: Array, shares: Array, sizes: list[int]) -> None:
        """Add the standings of this row, and log them."""
        share = state.mixture.weights / state.mixture.weights.sum()
        first = np.cumsum([0, *sizes])[:-1]
        means = np.add.reduceat(areas * shares, first)
        new = [Standing(state.t, one.name, float(means[i]), float(share[i])) for i, one in enumerate(state.entrants)]
        state.standings = thinned([*state.standings, *new])
        best_first = sorted(new, key=lambda one: -one.share)
        log.info("row %s: %s", f"{state.t:,}", ", ".join(f"{o.name} {o.auc:.4f} ({o.share:.0%})" for o in best_first))

    def _mixed_scores(self, state: RaceState, after: int = 0) -> Scored:
        """Return the mixture's scores of the newest rows after row ``after``, from those of its models."""
        ring = self.entrants(state)[0].recent
        rows = np.arange(max(after, ring.count - N_RECENT), ring.count) % N_RECENT
        total = np.zeros((len(rows), self.n_vectors))
        for entrant, weight, slopes, shifts in state.members():
            scores = entrant.recent.scores[rows].reshape(len(rows), len(entrant), -1) - shifts
            total += weight * soft_clip((scores * slopes).sum(axis=1))
        return Scored(ring.count, total, ring.labels[rows], ring.weights[rows])
