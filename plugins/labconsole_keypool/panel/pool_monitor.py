"""Monitors the runs of the signing service, and the key store while none is in progress: where the keys are."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from labconsole.engine.protocol import LiveFrame
from labconsole.engine.queue import QueueState
from labconsole.model.trial import Event
from labconsole.store.records import RunStatus
from labconsole_keypool.device.pool_operations import counts_of
from labconsole_keypool.panel.pool_state import PoolState, idle_state, running_state
from labconsole_keypool.panel.run_plots import (
    START_EVENT,
    RunPoints,
    load_points,
    newest_run,
    stored_at_start,
)
from labconsole_keypool.store.key_records import Counts
from labconsole_ui.panels.trial_panel import PanelContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.views.live.live_run import LiveRun

IDLE_MS = 2000
POINTS_MS = 1000
DRAW_MS = 125
MOST_POINTS_LIVE = 100_000
"""A run with more requests is read again only at its end."""


class PoolMonitor(QObject):
    """Signals: `began` a run; `framed` and `drawn` a live frame; `state` and `points` carry new values."""

    began = Signal()
    framed = Signal(object)
    drawn = Signal(object)
    state = Signal(object)
    points = Signal(object)

    def __init__(self, context: PanelContext, parent: QObject) -> None:
        super().__init__(parent)
        self._bridge = context.bridge
        self._trial = context.trial
        self._run_id: int | None = None
        self._live: LiveRun | None = None
        self._at_start = 0
        self._store = ""
        self._running = self._active = False
        self._read_points = True
        self._background = Background(self)
        self._idle = self._timer(IDLE_MS, self._count)
        self._due = self._timer(DRAW_MS, self._draw)
        self._due.setSingleShot(True)
        self._points_due = self._timer(POINTS_MS, self._load)
        self._bridge.live.connect(self._take)
        self._bridge.event_recorded.connect(self._event)
        self._bridge.finished.connect(self._finished)

    @property
    def running(self) -> bool:
        """Whether a run of the service is in progress."""
        return self._running

    def watch_store(self, name: str) -> None:
        """The key store whose keys are counted while no run is in progress."""
        if name != self._store:
            self._store = name
            self._count()

    def set_active(self, active: bool) -> None:
        """Read only while the page is visible."""
        self._active = active
        if not active:
            for timer in (self._idle, self._points_due, self._due):
                timer.stop()
            return
        self._idle.start()
        self._count()
        if self._run_id is None:
            kind, path = self._trial.kind, self._bridge.queue.store.path
            self._background.submit(partial(newest_run, path, kind), self._show_newest, self._show_read_error)
        elif self._running:
            self._points_due.start()
        else:
            self._load()

    def recount(self) -> None:
        """Count the keys now, after a change of the key store."""
        self._count()

    def _show_newest(self, run_id: int | None) -> None:
        if run_id is not None and self._run_id is None:
            self._run_id = run_id
            self._load()

    def _take(self, run_id: int, frame: LiveFrame) -> None:
        if not self._running or run_id != self._run_id:
            items = self._bridge.queue.items
            kinds = [item.kind for item in items if item.run_id == run_id and item.state is QueueState.RUNNING]
            if kinds != [self._trial.kind]:
                return
            self._begin(run_id)
        assert self._live is not None
        self._live.add_frame(frame)
        self.framed.emit(self._live)
        if self._active and not self._due.isActive():
            self._due.start()

    def _begin(self, run_id: int) -> None:
        self._run_id, self._live, self._running = run_id, LiveRun(self._trial.live), True
        self._read_points = True
        self.began.emit()
        path = self._bridge.queue.store.path
        self._background.submit(partial(stored_at_start, path, run_id), self._set_start_count, self._show_read_error)
        if self._active:
            self._points_due.start()

    def _event(self, run_id: int, event: Event) -> None:
        if event.name == START_EVENT and "new" in event.data:
            self._at_start = int(event.data["new"])

    def _set_start_count(self, new: int | None) -> None:
        if new is not None:
            self._at_start = new

    def _finished(self, run_id: int, status: RunStatus) -> None:
        if run_id != self._run_id or not self._running:
            return
        self._running = False
        self._points_due.stop()
        self._load()
        self._count()

    def _draw(self) -> None:
        if self._live is None or self._live.latest is None or not self._running:
            return
        rates = {name: self._live.figures(name).rate or 0.0 for name in self._live.names(observed=False)}
        self.state.emit(running_state(self._live.latest, rates, self._at_start))
        self.drawn.emit(self._live)

    def _load(self) -> None:
        if self._run_id is not None and (self._read_points or not self._running):
            path = self._bridge.queue.store.path
            self._background.submit(
                partial(load_points, path, self._run_id, ended=not self._running),
                self._show_points,
                self._show_read_error,
            )

    def _show_points(self, points: RunPoints) -> None:
        if points.run_id == self._run_id:
            self._read_points = points.requests <= MOST_POINTS_LIVE
            self.points.emit(points)

    def _count(self) -> None:
        if self._store and self._active and not self._running:
            self._background.submit(partial(counts_of, self._store), self._counted, self._show_read_error)

    def _counted(self, counts: Counts) -> None:
        if not self._running:
            self.state.emit(idle_state(counts))

    def _show_read_error(self, sentence: str) -> None:
        """A database that is locked for a moment is read at the next poll; the next run reports a lasting lock."""
        self.state.emit(PoolState(trouble=sentence))

    def _timer(self, interval_ms: int, work: object) -> QTimer:
        timer = QTimer(self)
        timer.setInterval(interval_ms)
        timer.timeout.connect(work)
        return timer
