"""Place labels next to the points of a panel so that they cover neither each other nor the points."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

ANGLES = np.radians([0, 180, 90, 270, 45, 135, 315, 225, 22, 158, 338, 202, 68, 112, 292, 248])
DISTANCES = (1.0, 1.8, 2.7, 3.8, 5.0, 6.5)
"""In radii of a marker: the first touch it, the others get a line."""
ROUNDS = 4
PAD = 3.0


def label(axes: Axes, points: np.ndarray, radii: np.ndarray, texts: list[str], styles: list[dict[str, Any]]) -> None:
    """Write ``texts`` next to ``points`` (data coordinates; ``radii`` in points), after the layout is settled.

    Each label in turn takes the place that costs least: what it would cover, what would stick out of the panel, and its
    distance. A few rounds of this leave no overlaps where there is room.
    """
    figure: Any = axes.figure
    scale = figure.dpi / 72
    centres = axes.transData.transform(points)
    sizes = np.array([_size(axes, text, style) for text, style in zip(texts, styles, strict=True)])
    marks = np.hstack([centres - scale * radii[:, None], centres + scale * radii[:, None]])
    panel = np.array(axes.get_window_extent().extents)
    boxes = np.full((len(texts), 4), np.nan)
    spots = [_spots(*one) for one in zip(centres, sizes, scale * radii, strict=True)]
    for _ in range(ROUNDS):
        for k in np.lexsort(points.T):
            rest = np.arange(len(texts)) != k
            prices = _prices(spots[k], boxes[rest], marks, panel) + _crossed(
                spots[k], centres[k], boxes[rest], centres[rest]
            )
            boxes[k] = spots[k][np.argmin(prices)]
    for k, (text, style) in enumerate(zip(texts, styles, strict=True)):
        _write(axes, text, boxes[k], centres[k], scale * radii[k], style)


def _size(axes: Axes, text: str, style: dict[str, Any]) -> np.ndarray:
    """Width and height in pixels."""
    made = axes.text(0, 0, text, transform=None, **style)
    extent = made.get_window_extent()
    made.remove()
    return np.array([extent.width, extent.height]) + 2 * PAD


def _spots(centre: np.ndarray, size: np.ndarray, radius: float) -> np.ndarray:
    """Boxes around the marker, for each distance and angle."""
    ways = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
    middles = np.concatenate([centre + ways * (radius * distance + size / 2) for distance in DISTANCES])
    return np.hstack([middles - size / 2, middles + size / 2])


def _prices(spots: np.ndarray, boxes: np.ndarray, marks: np.ndarray, panel: np.ndarray) -> np.ndarray:
    """Of each spot: the share of it that is outside or over something, and its distance."""
    area = (spots[0, 2:] - spots[0, :2]).prod()
    outside = 1.0 - _covered(spots, panel[None]).sum(axis=1) / area
    covered = np.nansum(_covered(spots, boxes), axis=1) + 0.7 * _covered(spots, marks).sum(axis=1)
    return 10.0 * outside + 6.0 * covered / area + 0.25 * (np.repeat(DISTANCES, len(ANGLES)) - 1.0)


def _crossed(spots: np.ndarray, centre: np.ndarray, boxes: np.ndarray, strangers: np.ndarray) -> np.ndarray:
    """The price of other points and labels that the line from a marker to each spot runs over."""
    ways = (spots[:, :2] + spots[:, 2:]) / 2 - centre
    along = centre + np.linspace(0.3, 1.0, 8)[:, None, None] * ways  # (place on the line, spot, 2)
    near = np.abs(along[:, :, None] - strangers).max(axis=3) < 5.0
    inside = ((along[:, :, None] > boxes[:, :2]) & (along[:, :, None] < boxes[:, 2:])).all(axis=3)
    price = 0.3 * near.any(axis=0).sum(axis=1) + 0.4 * inside.any(axis=0).sum(axis=1)
    return np.where(np.repeat(DISTANCES, len(ANGLES)) > 1.0, price, 0.0)  # the nearest have no line


def _covered(spots: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Area that each spot shares with each other box."""
    low, high = np.maximum(spots[:, None, :2], others[:, :2]), np.minimum(spots[:, None, 2:], others[:, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(axis=2))


def _write(axes: Axes, text: str, box: np.ndarray, centre: np.ndarray, radius: float, style: dict[str, Any]) -> None:
    middle, invert = (box[:2] + box[2:]) / 2, axes.transData.inverted()
    gap = np.maximum(np.maximum(box[:2] - centre, centre - box[2:]), 0)
    if np.hypot(*gap) > 1.6 * radius:
        end = np.clip(centre, box[:2] + PAD, box[2:] - PAD)
        line = invert.transform(np.array([centre, end]))
        axes.plot(*line.T, color=style["color"], linewidth=0.6, alpha=0.6, zorder=2)
    x, y = invert.transform(middle)
    axes.text(x, y, text, ha="center", va="center", zorder=5, **style)
