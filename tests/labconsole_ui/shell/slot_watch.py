"""Measures how long the window's thread is kept from its event loop: the longest slot, and a little more."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer

TICK_MS = 2
_SCHEDULER = Path("/proc/thread-self/schedstat")


class SlotWatch(QObject):
    """Ticks every 2 ms; a late tick means that something else had the thread.

    Where the kernel tells it (Linux), the time that the thread waited for a processor is not counted: a busy
    machine is not the window's fault.
    """

    def __init__(self) -> None:
        super().__init__()
        self.longest_s = 0.0
        self._last = self._now()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start(TICK_MS)

    def restart(self) -> None:
        """Forget what was measured."""
        self.longest_s = 0.0
        self._last = self._now()

    def _tick(self) -> None:
        now = self._now()
        self.longest_s = max(self.longest_s, now - self._last - TICK_MS / 1000)
        self._last = now

    def _now(self) -> float:
        waited = int(_SCHEDULER.read_text().split()[1]) / 1e9 if _SCHEDULER.exists() else 0.0
        return time.perf_counter() - waited
