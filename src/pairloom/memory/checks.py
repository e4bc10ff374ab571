"""Whether a plan can be carried out: compiled loops write where it says, and check no index."""

import numpy as np

from pairloom.base.typing import Array
from pairloom.memory.base import Memory, Plan


def checked_plan(plan: Plan, memory: Memory, n_rows: int, n_slots: int) -> Plan:
    """The plan of a memory for so many rows and slots; ValueError, naming the memory, unless it can be carried out."""
    if not isinstance(plan, Plan):
        raise refusal(memory, f"plan must return a Plan; got {plan!r}")
    start, slot = (as_array(memory, plan, name, "iu") for name in ("start", "slot"))
    blend, mass = (as_array(memory, plan, name, "iuf") for name in ("blend", "mass"))
    if not len(slot) == len(blend) == len(mass):
        counts = f"{len(slot)}, {len(blend)} and {len(mass)}"
        raise refusal(memory, f"slot, blend and mass need one number for each event; got {counts}")
    ends = len(start) == n_rows + 1 and start[0] == 0 and start[-1] == len(slot)
    if not ends or (np.diff(start) < 0).any():
        wanted = f"{n_rows + 1} numbers that rise from 0 to {len(slot)}, the number of events"
        raise refusal(memory, f"start must be {wanted}; got {start}")
    refuse_where((slot < 0) | (slot >= n_slots), memory, "slot", slot, f"below {n_slots:,}, the number of slots")
    if memory.blends:
        refuse_where(~((blend >= 0) & (blend <= 1)), memory, "blend", blend, "between 0 and 1")
    else:
        refuse_where((blend != 0) & (blend != 1), memory, "blend", blend, "0 or 1, as the memory says blends=False")
    refuse_where(~((mass >= 0) & (mass < np.inf)), memory, "mass", mass, "finite and at least 0")
    return Plan(start, slot, blend, mass)


def as_array(memory: Memory, plan: Plan, name: str, kinds: str) -> Array:
    """A field of a plan as an array of the type that loops take."""
    values = np.asarray(getattr(plan, name))
    if values.ndim != 1 or (values.size and values.dtype.kind not in kinds):
        what = "numbers" if "f" in kinds else "whole numbers"
        raise refusal(memory, f"{name} must be an array (n,) of {what}; got {values.dtype} {values.shape}")
    return values.astype(float if "f" in kinds else np.int64, copy=False)


def refuse_where(bad: Array, memory: Memory, name: str, values: Array, wanted: str) -> None:
    """Raise ValueError if an event is bad."""
    if bad.any():
        event = int(np.argmax(bad))
        raise refusal(memory, f"{name} must be {wanted}; got {values[event]:,} in event {event}")


def refusal(memory: Memory, what: str) -> ValueError:
    """What is wrong with the plan of a memory."""
    return ValueError(f"the plan of {memory!r} cannot be carried out: {what}")
