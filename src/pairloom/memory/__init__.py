"""Memories: the kept past examples B_t, and their weights p_j."""

from pairloom.memory.base import CSRMemory, Memory
from pairloom.memory.history import HistoryState, WholeHistory
from pairloom.memory.latest import Latest, Window
from pairloom.memory.reservoir import Reservoir
from pairloom.memory.rsx import RSx
from pairloom.memory.slots import Example, MemoryState, Plan, Slots
from pairloom.memory.strata import Strata

BUILT_IN = frozenset({Latest, Reservoir, RSx, Strata, WholeHistory, Window})
"""Memories whose plans need no check; subclasses are excluded, because their plans may differ."""

__all__ = [
    "CSRMemory",
    "Example",
    "HistoryState",
    "Latest",
    "Memory",
    "MemoryState",
    "Plan",
    "RSx",
    "Reservoir",
    "Slots",
    "Strata",
    "WholeHistory",
    "Window",
]
