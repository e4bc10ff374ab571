"""Weights of classes, as in scikit-learn."""

from collections.abc import Mapping
from typing import Any, Literal

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
