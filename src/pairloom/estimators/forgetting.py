"""Half-lives and detectors of estimators: who can forget, and who has nothing to."""

from typing import Any

from pairloom.models.base import Model
from pairloom.stream import Observer
from pairloom.stream.drift import watch_of
from pairloom.stream.forgetting import forgetting_by


def forgetting_of(
    name: str, model: Model, half_life: Any = None, drift: Any = None, needs_all_rows: bool = False
) -> tuple[Observer, ...]:
    """Who lets the rows of an estimator fade, and who watches for changes; ValueError where that would do nothing.

    >>> from pairloom.systems import ExactAUC
    >>> forgetting_of("ExactAUC", ExactAUC().to_model(), half_life=5_000)
    (Forgetting(half_life=5000.0, time=None),)
    """
    found = forgetting_by(half_life), () if drift is None else (watch_of(drift),)
    for asked, value in zip(("half_life", "drift"), found, strict=True):
        instead = f"leave {asked}=None, or use a system that forgets, such as FPOGD, SPAM or ExactAUC"
        if value and needs_all_rows:
            raise ValueError(f"{asked}= is for streams, and {name} needs all rows at once: {instead}")
        if value and not model.forgets:
            raise ValueError(
                f"{asked}= lets fade what a model keeps of all rows so far, and {name} with these parameters keeps "
                "nothing of that kind: its steps do not grow shorter, it takes no average and counts no rows, so that "
                f"a new row moves it as much as ever. So {instead}"
            )
    return (*found[0], *found[1])
