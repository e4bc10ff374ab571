"""Type names shared by every part."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
