"""What the nodes of a state look like: dtype and shape of each array and, where compiled code trusts it, its range.

A rule is one or more of these, with "|" between them:

- ``f8 S D``: an array of float64 and this shape. ``i8``, ``i4``, ``b1``; ``R`` is the dtype of the model. Sizes are
  numbers, names that stand for one number in a whole model, or names of this node alone: ``_n``, ``_N`` at least 1.
- ``i8 g 0:cap+1``: the same, with every number in range; so may be ``f8``, and then every number is finite.
  ``f8 d finite``, ``f8 d positive``: every number is, and above 0.
- ``Scaler``: a node. ``rows``: dense or CSR. ``rng``: a generator. ``none``, ``bool``, ``float``, ``text``.
  ``count``: a whole number from 0 on. ``radius``: a number from 0 on. ``label``: codes of classes, or finite numbers.
- ``@phi``: whatever the parts of the model say; ``any``: what is checked no further, from parts of the caller's own.
- ``absent``: nothing is there. ``@squares?``: as "@", and parts of the caller's own may leave it out; ``finite?``: as
  "finite", a number that is, or nothing is there.

``BIG`` is 2^53, ``t`` the rows of the stream, ``MASS`` what weights may add up to, ``EARLY`` and ``LATE`` the bounds of
time. Weights of models and scores may be any numbers: a model whose numbers overflowed is saved as well.
"""

SLOTS = {"slots": "Slots"}
WIDTH = {"gamma": "f8 0:LATE"}
FOURIER = {"scaler": "Scaler", "gamma": "@gamma", "projection": "R d h finite", "offset": "R h finite"}
ENGINE = {"phi": "@phi", "memory": "@memory", "rng": "rng"}

MEMBER = {"name": "text", "weight": "radius", "offset": "f8 v"}
WEIGHT = "1e-101:1e101"

LAYOUT: dict[str, dict[str, str]] = {
    "Batch": {
        "X": "rows _n", "y": "label _n", "weight": f"f8 _n {WEIGHT}", "query": "i8 _n", "time": "f8 _n EARLY:LATE?",
    },
    # Feature maps.
    "Scaler": {"shift": "R d finite", "scale": "R d positive", "reach": "R d finite | R 0"},
    "IdentityState": {"scaler": "Scaler"},
    "FourierState": FOURIER,
    "GrowingState": {**FOURIER, "seed": "i8 0:SEED"},
    "NystroemState": {
        "scaler": "Scaler", "gamma": "@gamma", "widths": "R d finite", "center": "R d finite",
        "landmarks": "R d _M finite", "squares": "R 2 _M finite", "mixing": "R _M D finite",
    },
    "WhitenedState": {
        "inner": "@inner", "mean": "R D finite", "directions": "R D k finite", "cut": "R k D finite",
        "factor": "R 1 finite",
    },
    "ForestState": {"scaler": "Scaler", "nodes": "Nodes", "grown": "i8 0:BIG"},
    "GroveState": {
        "scaler": "Scaler", "nodes": "Nodes", "grown": "i8 0:1", "sample": "Sample", "seed": "i8 0:SEED",
        "planted": "count", "past": "Past?",
    },
    "Past": {"since": "count", "turn": "count", "old": "count"},
    "Sample": {
        "columns": "R d n", "y": "f8 n finite", "weight": "f8 n 0:1e101", "scores": "f8 n k finite | f8 n 0",
        "count": "count",
    },
    "Nodes": {
        "columns": "i4 T N 0:d", "values": "R T N", "yes": "i4 T N 0:N", "missing_yes": "b1 T N",
        "cells": "i4 T K N 0:L",
    },
    # Memories: S slots, in g groups of s; c strata. Points have p numbers (0: no dense form), those by
    # which rows are clustered u, their centres q.
    "Slots": {"points": "R S p finite", "labels": "label S", "queries": "i8 S", "mass": "f8 S 0:MASS", "rows": "@rows"},
    "MemoryState": SLOTS,
    "LatestState": {**SLOTS, "seen": "i8 g 0:t+1"},
    "HistoryState": {**SLOTS, "seen": "i8 1 0:S+1"},
    "RSxState": {**SLOTS, "seen": "i8 g 0:t+1", "total": "f8 g 0:MASS", "pointer": "i8 g s 0:s"},
    "ReservoirState": {**SLOTS, "seen": "i8 g 0:t+1", "total": "f8 g 0:MASS", "unit": "f8 g 0:MASS"},
    "StrataState": {
        **SLOTS, "centers": "R c q finite", "scatter": "f8 c finite", "used": "i8 g 0:cap+1", "eps": "radius",
        "tie": "radius",
        "seats": "@seats", "lazy": "LazyCenters | none", "spare": "finite?",
    },
    "Seats": {
        "count": "f8 c", "rows": "i8 g 0:BIG", "owner": "i8 g s -1:c", "slot": "i8 g s -1:s", "born": "i8 g s 0:BIG",
    },
    "LazyCenters": {"c_hat": "f8 u c", "factors": "f8 c", "squares": "f8 c", "stale": "b1 c"},
    # Statistics: v weight vectors, C classes.
    "Intercept": {"b": "f8 v"},
    "Means2": {"counts": "f8 v 2", "sums": "f8 v 2 D", "products": "f8 v 2"},
    "Saddle": {"point": "f8 v 3", "counts": "f8 v 2", "kappa": "f8 v", "total": "f8 1"},
    "MomentsState": {"rows": "f8 v s", "mass": "f8 v s", "mean": "f8 v s D+1", "scatter": "f8 v s e"},
    "SketchState": {
        "rows": "f8 v 2", "mass": "f8 v 2", "mean": "f8 v 2 D", "rho": "f8 v 2 s", "Y": "f8 v 2 D s",
    },
    "ClassMoments": {
        "counts": "f8 C 0:MASS", "means": "f8 C D finite", "scatter": "f8 C D D finite", "rows": "R s D finite",
        "labels": "label s", "weights": "f8 s 0:1e101", "filled": "i8 1 0:s",
    },
    # Sums of kernels: m supports at most.
    "ExpansionState": WIDTH,
    "Buffers": {
        **WIDTH, "supports": "R v m d", "coef": "f8 v m", "stored": "i8 v 2 0:BIG", "seen": "f8 v 2 0:MASS",
        "gram": "R v m m", "values": "f8 v m",
    },
    "Span": {
        **WIDTH, "supports": "R v m d", "coef": "f8 v m", "used": "i8 v 0:m+1", "inverse": "f8 v m m",
    },
    "History": {
        **WIDTH, "points": "R _n d", "gram": "R _n _n", "y": "f8 _n v", "mass": "f8 _n", "coef": "f8 v _n",
        "f": "f8 v _n", "used": "i8 1 0:_n+1",
    },
    "BasisState": {**WIDTH, "supports": "R _n d", "coef": "f8 _n", "starts": "i8 v+1 0:_n+1"},
    # Models.
    "LazyModel": {
        "w_hat": "f8 v D", "u_hat": "f8 v a", "factors": "f8 v 6", "columns": "i4 l _R 0:D", "values": "R l _R",
        "counts": "i8 l 0:_R+1", "stale": "b1 l", "squares": "@lazy_squares?",
    },
    "State": {
        **ENGINE, "w": "@w", "w_bar": "@w_bar", "t": "count", "tally": "@tally", "totals": "@totals", "csr": "bool",
        "lazy": "@lazy", "squares": "@squares?", "cells": "@cells?", "since": "finite?",
    },
    "GridState": {
        **ENGINE, "w": "R v D", "w_bar": "R a D", "t": "count", "tally": "f8 7 v 0:LATE", "totals": "f8 0 2",
        "csr": "bool", "lazy": "none", "squares": "absent", "cells": "absent", "since": "finite?", "gram": "R S S",
        "frozen": "i8 v 0:BIG", "open": "Batch | none", "faded": "f8 _f 2 0:BIG?",
    },
    # Estimators and streams.
    "ClassCounts": {"mass": "f8 C 0:MASS", "total": "float"},
    "Recent": {"scores": "f8 4096 v", "labels": "label 4096", "weights": "f8 4096 0:1e101", "count": "count"},
    "Timeline": {
        "rows": "i8 256 0:BIG", "areas": "f8 256 3", "alerts": "f8 256 3 0:BIG", "scores": "f8 256 2 5",
        "cuts": "f8 2",
        "count": "count", "each": "count", "open": "count",
    },
    "Arrivals": {"scores": "f8 4096 v", "query": "i8 4096 | i8 0", "count": "count"},
    "Fit": {"a": "f8 v 0:LATE", "b": "f8 v finite", "row": "count?"},
    "Faded": {"time": "finite?"},
    "Watched": {
        "errors": "f8 2048 0:2", "rows": "i8 2048 0:BIG", "count": "count", "seen": "count", "since": "count",
        "alarms": "i8 _n 0:BIG",
    },
    "ScoredWindow": {"scores": "f8 _n M v finite", "labels": "label _n", "weights": f"f8 _n {WEIGHT}"},
    "Standing": {"row": "count", "name": "text", "auc": "radius", "share": "radius"},
    "FrozenLinear": {
        **MEMBER, "shift": "R d finite", "reach": "R d finite | R 0", "scale": "R d positive", "w": "f8 d v",
    },
    "FrozenKernel": {
        **MEMBER, "shift": "R d finite", "reach": "R d finite | R 0", "widths": "R d finite", "center": "R d finite",
        "landmarks": "R d _M finite", "squares": "R _M finite", "beta": "f8 _M v",
    },
    "FrozenForest": {
        **MEMBER, "columns": "i4 _T _N 0:d", "values": "R _T _N", "yes": "i4 _T _N 0:_N", "w": "f8 _T _N v",
        "missing_yes": "b1 _T _N?",
    },
    "Mixture": {"weights": "f8 E 0:LATE", "slopes": "f8 M v", "shifts": "f8 M v"},
}  # fmt: skip
