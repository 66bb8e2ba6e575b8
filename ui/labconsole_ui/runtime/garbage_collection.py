"""Garbage collection in the window's thread alone: Qt objects deleted in others can block both.

Python collects in the thread that creates the next object, in those of `Background` too. `~QObject` holds a
lock of Qt's while PySide waits for the interpreter, and the window's thread may hold the interpreter while it waits for
that lock. Qt objects are in cycles easily: a signal connected to a method of its owner makes one.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

COLLECTION_INTERVAL_MS = 100


class WindowCollector(QObject):
    """Collects by the thresholds of the automatic collection, from a timer of the window's thread."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._collect)
        self._timer.start(COLLECTION_INTERVAL_MS)

    def stop(self) -> None:
        """Leave the collection to Python again."""
        self._timer.stop()
        gc.enable()

    def _collect(self) -> None:
        """Collect the oldest generation that is due, and those younger with it."""
        counts = list(zip(gc.get_count(), gc.get_threshold(), strict=True))
        due = [generation for generation, (count, threshold) in enumerate(counts) if 0 < threshold < count]
        if due:
            gc.collect(due[-1])
