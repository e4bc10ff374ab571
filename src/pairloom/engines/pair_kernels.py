"""Compiled pieces of a step on dense rows: partners, their losses, their gradient, and the slots."""

from pairloom.base.compiled import add_rows, compiled, dots, move
from pairloom.base.typing import Array
from pairloom.engines.arguments import Buffer, Objective, Partners, Row
from pairloom.losses import loss_slope, loss_value
from pairloom.pairs import pair_offset, pair_sign


@compiled
def find_partners(
    pairs: int, model: float, by_class: bool, joint: bool, gain: float, y: float, query: int,
    labels: Array, queries: Array, mass: Array, partners: Array, p: Array,
) -> int:  # fmt: skip
    """``reference.paired``: fills partners and p; -1 where there is nothing to learn from."""
    count, paired, everything = 0, 0.0, 0.0
    for j in range(mass.shape[0]):
        if mass[j] > 0:
            everything += mass[j]
            if pair_sign(pairs, y, labels[j], model) != 0 and queries[j] == query:
                partners[count] = j
                p[count] = mass[j]
                paired += mass[j]
                count += 1
    total = paired if by_class else everything
    if total == 0 or (count == 0 and not joint):
        return -1
    for k in range(count):
        p[k] = gain * (p[k] / total)
    return count


@compiled
def write_slot(
    j: int, z: Array, y: float, query: int, blend: float, new_mass: float,
    points: Array, labels: Array, queries: Array, mass: Array,
) -> None:  # fmt: skip
    """``Slots.write``."""
    if blend == 1:
        points[j] = z
    elif blend > 0:
        move(points[j], z, blend)
    if blend > 0:
        labels[j] = y
        queries[j] = query
    mass[j] = new_mass


@compiled
def losses_of(w: Array, s: float, row: Row, objective: Objective, buffer: Buffer, partners: Partners) -> float:
    """g = sum_j p_j l(m_j); fills q_j = -p_j a_j l'(m_j)."""
    slot, p, q = partners.slot, partners.p, partners.q
    loss, pairs, model = objective.loss, objective.pairs, row.target
    dots(w, buffer.points, slot, q)
    g = 0.0
    for k in range(slot.shape[0]):
        label = buffer.labels[slot[k]]
        a = pair_sign(pairs, row.y, label, model)
        margin = a * (s - q[k]) + pair_offset(pairs, row.y, label, model)
        g += p[k] * loss_value(loss, margin)
        q[k] = -p[k] * a * loss_slope(loss, margin)
    return g


@compiled
def combine(v: Array, z: Array, points: Array, partners: Array, q: Array) -> None:
    """v <- sum_k q_k (B_k - z)."""
    psi = 0.0
    for k in range(partners.shape[0]):
        psi -= q[k]
    psi = v.dtype.type(psi)
    for c in range(v.shape[0]):
        v[c] = psi * z[c]
    add_rows(v, points, partners, q)
