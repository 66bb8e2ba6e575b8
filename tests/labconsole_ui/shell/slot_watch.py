"""Measures how long the window's thread is kept from its event loop: the longest slot, and a little more."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import nlargest
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer

TICK_MS = 2
_SCHEDULER = Path("/proc/thread-self/schedstat")


@contextmanager
def slots_watched() -> Iterator[SlotWatch]:
    """Watch the slots in the block; garbage collections leave alone what was made before, as in `open_window`."""
    gc.collect()
    gc.freeze()
    watch = SlotWatch()
    try:
        yield watch
    finally:
        watch.stop()
        gc.unfreeze()


class SlotWatch(QObject):
    """Ticks every 2 ms; a late tick means that something else had the thread.

    Where the kernel tells it (Linux), the time that the thread waited for a processor is not counted in `longest_s`: a
    busy machine is not the window's fault. `cpu_s` holds, longest first, the times that the thread itself computed
    between two ticks: on any system what the window costs, but not what it waits for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.restart()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start(TICK_MS)

    def restart(self) -> None:
        """Forget what was measured."""
        self.longest_s, self.cpu_s = 0.0, [0.0, 0.0]
        self._last, self._last_cpu = self._now(), time.thread_time()

    def stop(self) -> None:
        """Measure no more."""
        self._timer.stop()

    def assert_short(self) -> None:
        """No slot computed for more than 50 ms.

        Other things that the machine does slow down what computes beside them, to about half its speed: one slot in
        all may therefore be longer, up to 100 ms.
        """
        assert self.cpu_s[1] < 0.05
        assert self.cpu_s[0] < 0.1

    def _tick(self) -> None:
        now, cpu = self._now(), time.thread_time()
        self.longest_s = max(self.longest_s, now - self._last - TICK_MS / 1000)
        self.cpu_s = nlargest(2, [*self.cpu_s, cpu - self._last_cpu])
        self._last, self._last_cpu = now, cpu

    def _now(self) -> float:
        waited = int(_SCHEDULER.read_text().split()[1]) / 1e9 if _SCHEDULER.exists() else 0.0
        return time.perf_counter() - waited
