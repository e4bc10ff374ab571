"""B_t, p_j: which past examples are kept, and what each stands for."""

from pairloom.memory.base import Memory, MemoryState, Plan, Slots
from pairloom.memory.latest import Latest
from pairloom.memory.strata import Strata

__all__ = ["Latest", "Memory", "MemoryState", "Plan", "Slots", "Strata"]
