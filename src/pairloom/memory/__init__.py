"""B_t, p_j: which past examples are kept, and what each stands for."""

from pairloom.memory.base import Example, Memory, MemoryState, Plan, Slots, chosen_memory
from pairloom.memory.checks import checked_plan
from pairloom.memory.history import WholeHistory
from pairloom.memory.latest import Latest
from pairloom.memory.reservoir import Reservoir
from pairloom.memory.rsx import RSx
from pairloom.memory.strata import Strata
from pairloom.memory.window import Window

BUILT_IN = frozenset({Latest, Reservoir, RSx, Strata, WholeHistory, Window})
"""Memories whose plans need no check. Not their subclasses, which may plan something else."""

__all__ = [
    "BUILT_IN",
    "Example",
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
    "checked_plan",
    "chosen_memory",
]
