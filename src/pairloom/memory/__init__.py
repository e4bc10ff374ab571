"""B_t, p_j: which past examples are kept, and what each stands for."""

from pairloom.memory.base import Example, Memory, MemoryState, Plan, Slots
from pairloom.memory.latest import Latest
from pairloom.memory.strata import Strata

__all__ = ["Example", "Latest", "Memory", "MemoryState", "Plan", "Slots", "Strata"]
