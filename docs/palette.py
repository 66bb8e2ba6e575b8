"""Pictures with a palette of 256 colours: a third of their size, and no difference that an eye sees in a window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

COLOURS = 256
AT_ONCE = 4096
SMALLEST_FILE = 0
"""Quality for Qt's PNG writer: it compresses as far as it can."""

Floats = NDArray[np.float64]


def save(image: QImage, path: Path) -> bool:
    """Write the image as PNG with a palette. Returns whether it was written."""
    return with_palette(image).save(str(path), quality=SMALLEST_FILE)


def with_palette(image: QImage) -> QImage:
    """The image with the 256 colours that come closest to all of its own."""
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    width, height = image.width(), image.height()
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(height, image.bytesPerLine())
    pixels = rows[:, : 3 * width].reshape(-1, 3).astype(np.uint32)
    packed = pixels[:, 0] << 16 | pixels[:, 1] << 8 | pixels[:, 2]
    found, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    colours = np.stack([found >> 16 & 255, found >> 8 & 255, found & 255], axis=1).astype(np.float64)
    palette = _palette(colours, np.sqrt(counts))
    nearest = np.empty(len(colours), np.uint8)
    for start in range(0, len(colours), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        nearest[part] = ((colours[part, None] - palette) ** 2).sum(axis=2).argmin(axis=1)
    padded = np.zeros((height, (width + 3) // 4 * 4), np.uint8)
    padded[:, :width] = nearest[places.reshape(-1)].reshape(height, width)
    result = QImage(padded.tobytes(), width, height, padded.shape[1], QImage.Format.Format_Indexed8).copy()
    result.setColorTable([0xFF000000 | int(red) << 16 | int(green) << 8 | int(blue) for red, green, blue in palette])
    return result


def _palette(colours: Floats, weights: Floats) -> Floats:
    """Median cut: the group of colours that differ most is halved, until there are enough groups."""
    groups = [np.arange(len(colours))]
    while len(groups) < COLOURS:
        spreads = [_spread(colours[group], weights[group]) for group in groups]
        widest = max(range(len(groups)), key=lambda place: spreads[place].max())
        if spreads[widest].max() <= 0:
            break
        group = groups.pop(widest)
        ordered = group[np.argsort(colours[group, spreads[widest].argmax()], kind="stable")]
        sums = np.cumsum(weights[ordered])
        half = min(int(np.searchsorted(sums, sums[-1] / 2)), len(ordered) - 2)
        groups += [ordered[: half + 1], ordered[half + 1 :]]
    means = [np.average(colours[group], axis=0, weights=weights[group]) for group in groups]
    return np.asarray(means).round()


def _spread(colours: Floats, weights: Floats) -> Floats:
    """How much the colours of a group differ in red, green and blue."""
    mean = np.average(colours, axis=0, weights=weights)
    spread: Floats = (weights[:, None] * (colours - mean) ** 2).sum(axis=0)
    return spread
