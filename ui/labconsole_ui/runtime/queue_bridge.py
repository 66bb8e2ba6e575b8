"""The bridge from the Qt-free run queue to the window: reports as Qt signals, pumping."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from labconsole.engine.protocol import LiveFrame
from labconsole.model.trial import Event
from labconsole.store.errors import StoreError
from labconsole.store.records import RunRow, RunStatus

if TYPE_CHECKING:
    from labconsole.engine.queue import RunQueue

PUMP_INTERVAL_MS = 250
LIVE_HZ = 8.0


class QueueBridge(QObject):
    """Owns the run queue and emits what it reports; all signals come on the window's thread.

    `live` and `event` carry a `LiveFrame` and an `Event`, `finished` a final `RunStatus`; the first argument of each
    is the run's id.
    """

    items_changed = Signal()
    live = Signal(int, object)
    event_recorded = Signal(int, object)
    log = Signal(int, str)
    finished = Signal(int, object)
    live_plots_switched = Signal(bool)
    failed = Signal(str)
    """A failed write of the queue, as a sentence; emitted once, however often it tries again."""
    _woken = Signal()

    def __init__(self, make_queue: Callable[[Callable[[], None]], RunQueue], parent: QObject | None = None) -> None:
        """`make_queue` gets the function that wakes the window from any thread, and returns the queue."""
        super().__init__(parent)
        self._lock = Lock()
        self._wake_pending = False
        self._live_plots = True
        self._report = ""
        self._woken.connect(self._pump_woken, Qt.ConnectionType.QueuedConnection)
        self.queue = make_queue(self._wake)
        self.queue.listeners.append(_Forwarder(self))
        self._timer = QTimer(self)
        self._timer.setInterval(PUMP_INTERVAL_MS)
        self._timer.timeout.connect(self._pump)
        self._timer.start()

    @property
    def live_plots(self) -> bool:
        """Whether runs send live frames at all."""
        return self._live_plots

    def set_live_plots(self, on: bool) -> None:
        """Let the run in progress and later runs send live frames, or not."""
        if on != self._live_plots:
            self._live_plots = on
            self.queue.set_live(LIVE_HZ if on else 0.0)
            self.live_plots_switched.emit(on)

    def recover(self) -> None:
        """Recover the runs of consoles that died; `failed` is emitted if the store refuses."""
        self._try(self.queue.recover)

    def refresh(self, rows: Iterable[RunRow]) -> None:
        """Update the queue by runs that a view has read, so that all views show the same status."""
        if any(not row.status.final for row in rows):
            self._try(self.queue.refresh_other_runs)

    def close(self) -> None:
        """Stop pumping and close the queue; blocks until a worker that still runs has exited.

        A recovery is left to the next console, so that the window is not blocked.
        """
        self._timer.stop()
        self._try(lambda: self.queue.close(evaluation_s=0.0))

    def _wake(self) -> None:
        """Called from any thread, often: many calls make one pump."""
        with self._lock:
            if self._wake_pending:
                return
            self._wake_pending = True
        self._woken.emit()

    @Slot()
    def _pump_woken(self) -> None:
        with self._lock:
            self._wake_pending = False
        self._pump()

    @Slot()
    def _pump(self) -> None:
        if self._timer.isActive():
            self._try(self.queue.pump)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except StoreError as error:
            if str(error) != self._report:
                self._report = str(error)
                self.failed.emit(self._report)
        else:
            self._report = ""


class _Forwarder:
    """The queue's listener: emits each report as the bridge's signal."""

    def __init__(self, bridge: QueueBridge) -> None:
        self._bridge = bridge

    def items_changed(self) -> None:
        self._bridge.items_changed.emit()

    def live(self, run_id: int, frame: LiveFrame) -> None:
        self._bridge.live.emit(run_id, frame)

    def event(self, run_id: int, event: Event) -> None:
        self._bridge.event_recorded.emit(run_id, event)

    def log(self, run_id: int, line: str) -> None:
        self._bridge.log.emit(run_id, line)

    def finished(self, run_id: int, status: RunStatus) -> None:
        self._bridge.finished.emit(run_id, status)
