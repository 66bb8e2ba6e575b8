"""The live view: figures and plots of the run in progress; those of the last run stay visible."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QCheckBox, QHBoxLayout, QTabWidget, QVBoxLayout, QWidget

from labconsole.analysis.number_format import format_duration, format_figure, format_metric
from labconsole.engine.protocol import LiveFrame
from labconsole.engine.queue import QueueItem, QueueState
from labconsole.engine.run_commands import DELIVERED, REFUSED
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Event, LiveChannel, Metric, Trial
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.plots.curve_plot import PlotCurve, TimePlot
from labconsole_ui.plots.plot_grid import PlotGrid
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import EventLoopQueue
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.views.live.figure_table import Figure, FigureTable
from labconsole_ui.views.live.growing_curves import GrowingCurve
from labconsole_ui.views.live.live_run import ChannelFigures, LiveRun, rate_unit, rounded_rate
from labconsole_ui.views.live.role_plots import RolePlots, role_curves
from labconsole_ui.views.live.role_table import RoleTable
from labconsole_ui.views.live.send_command import CommandButton
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import page_parent
from labconsole_ui.widgets.status_text import queue_item_title, status_text

DRAW_MS = 125
TABLE_NS = 250_000_000
"""The table of roles shows the newest values after this time, so that they can be read."""
LOW_HEIGHT = 420
SIDE_WIDTH = 236
QWIDGETSIZE_MAX = 16_777_215


class LiveView(QWidget):
    """Receives every frame, keeps the newest, and draws at most eight times a second while it is visible.

    `command_reported` carries the event of a command that the operator has sent: delivered, or refused.
    """

    command_reported = Signal(object)

    def __init__(self, bridge: QueueBridge, plugins: Plugins, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_chapter(self, "reference/window.md#live-plots")
        self.setAccessibleName(self.tr("Live figures and plots"))
        self._bridge = bridge
        self._plugins = plugins
        self._theme = theme
        self._run_id: int | None = None
        self._item: QueueItem | None = None
        self._live: LiveRun | None = None
        self._status: RunStatus | None = None
        self._trial: Trial[Any] | None = None
        self._final: Mapping[str, Metric] = {}
        self._table_ns = 0
        self._background = Background(self)
        self._low = False
        self._build()
        self._turns = EventLoopQueue(self)
        self._due = QTimer(self)
        self._due.setSingleShot(True)
        self._due.setInterval(DRAW_MS)
        self._due.timeout.connect(self._draw)
        bridge.live.connect(self._receive)
        bridge.items_changed.connect(self._items_changed)
        bridge.finished.connect(self._finished)
        bridge.event_recorded.connect(self._receive_event)
        theme.changed.connect(self._apply_theme)
        self._apply_theme()
        self._draw_figures()

    @property
    def live(self) -> LiveRun | None:
        """The values of the shown run so far."""
        return self._live

    # Reports of the queue

    def _items_changed(self) -> None:
        running = [item for item in self._bridge.queue.items if item.state is QueueState.RUNNING]
        if running and running[0].run_id != self._run_id:
            self._begin(running[0].run_id)
        self._schedule()

    def _receive(self, run_id: int, frame: LiveFrame) -> None:
        if run_id != self._run_id:
            self._begin(run_id)
        if self._live is not None:
            self._live.add_frame(frame)
        self._schedule()

    def _finished(self, run_id: int, status: RunStatus) -> None:
        if run_id == self._run_id:
            self._status = status
            self._schedule()
            path = self._bridge.queue.store.path
            self._background.submit(
                lambda: _stored_metrics(path, run_id), self._receive_final, self._receive_unreadable
            )

    def _receive_event(self, run_id: int, event: Event) -> None:
        if event.name in (DELIVERED, REFUSED) and "sent_by" in event.data:
            self.command_reported.emit(event)

    def _receive_final(self, stored: tuple[int, Mapping[str, Metric]]) -> None:
        if stored[0] == self._run_id:
            self._final = stored[1]
            self._schedule()

    def _receive_unreadable(self, sentence: str) -> None:
        self._note.setText(sentence)

    def _begin(self, run_id: int) -> None:
        """Start to show another run: its curves replace those before."""
        self._run_id, self._status, self._final = run_id, None, {}
        self._item = next((item for item in self._bridge.queue.items if item.run_id == run_id), None)
        self._trial = self._find_trial()
        self._live = LiveRun(self._trial.live if self._trial is not None else ())
        self._table_ns = 0
        self.role_plots.begin(self._live)
        self.role_table.begin(self._live.role_channels)
        self._tabs.tabBar().setVisible(bool(self._live.role_channels))
        if not self._live.role_channels:
            self._tabs.setCurrentWidget(self._plots)

    def _find_trial(self) -> Trial[Any] | None:
        """The trial of the run, None if it is not installed: channels then have their names as titles."""
        try:
            return self._plugins.trial(self._item.kind) if self._item is not None else None
        except KeyError:
            return None

    def _switched(self, on: bool) -> None:
        self.off_box.setChecked(not on)
        self._schedule()

    # Drawing

    def _schedule(self) -> None:
        if self.isVisible() and not self._due.isActive():
            self._due.start()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what changed while the view was hidden."""
        super().showEvent(event)
        self._schedule()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop drawing while the view is hidden."""
        super().hideEvent(event)
        self._due.stop()
        self._turns.replace(())

    def _draw(self) -> None:
        """Draw each plot in a turn of its own: all at once would block the window when a run begins."""
        self._turns.add(
            self._draw_figures, self._draw_rates, self._draw_latencies, self._draw_processor, self._draw_memory
        )
        if self._drawn is not None:
            self._turns.add(*self.role_plots.turns, self._draw_roles)

    def _draw_figures(self) -> None:
        trial = self._trial if self._status is None else None
        self.command_button.offer(self._run_id, trial.commands if trial is not None else ())
        self._title.setText(self._heading())
        self._note.setText(self._explanation())
        self._side.setToolTip(self._explanation())
        self._strip.set_figures(self._figures())
        for layout in (self._strip.layout(), self._column, self._halves):
            # Before anything is painted: other captions may need another height.
            if layout is not None:
                layout.activate()

    @property
    def _drawn(self) -> LiveRun | None:
        """The run whose curves are drawn; None while there is none, or curves are not wanted."""
        return None if self.off_box.isChecked() else self._live

    def _draw_rates(self) -> None:
        if (live := self._drawn) is None:
            return
        counted = live.shown(observed=False)
        self.rate_plot.set_unit(rate_unit(live.channel(counted[0]).unit) if counted else "")
        self.rate_plot.set_curves(
            [_curve(live.channel(name).title, live.rates[name], live.zero_ns) for name in counted if name in live.rates]
        )

    def _draw_latencies(self) -> None:
        if (live := self._drawn) is None:
            return
        observed = live.shown(observed=True)
        self.latency_plot.set_title(live.channel(observed[0]).title if len(observed) == 1 else self.tr("Latency"))
        several = len(live.latencies) > 1
        self.latency_plot.set_curves(
            [
                _curve(f"{live.channel(name).title} {label}" if several else label, curve, live.zero_ns)
                for name, curves in live.latencies.items()
                for label, curve in curves.items()
            ]
        )

    def _draw_processor(self) -> None:
        if (live := self._drawn) is not None:
            self.cpu_plot.set_curves(role_curves(live.processors, live.zero_ns))

    def _draw_memory(self) -> None:
        if (live := self._drawn) is not None:
            self.memory_plot.set_curves(role_curves(live.memories, live.zero_ns))

    def _draw_roles(self) -> None:
        if (live := self._drawn) is None or live.latest is None or not self.role_table.isVisible():
            return
        now = live.latest.t_ns
        if self._status is not None or now - self._table_ns >= TABLE_NS:
            self._table_ns = now
            self.role_table.show_roles(live)

    def _heading(self) -> str:
        if self._run_id is None:
            return self.tr("No run yet")
        name = queue_item_title(self._item) if self._item is not None else ""
        return self.tr("Run {0}: {1}").format(self._run_id, name) if name else self.tr("Run {0}").format(self._run_id)

    def _explanation(self) -> str:
        if self.off_box.isChecked():
            return self.tr("No live figures: runs are not asked for any. Samples are recorded as ever.")
        if self._run_id is None:
            return self.tr("Figures and curves appear here once a run has started.")
        if self._final:
            return self.tr("Final figures, from the stored samples. The curves are those of the live view.")
        return self.tr(
            "Live figures, cumulative since T0; curves cover the last second. "
            "Final figures come from the stored samples."
        )

    def _figures(self) -> list[Figure]:
        status = self._status or (RunStatus.RUNNING if self._run_id is not None else None)
        frame = self._live.latest if self._live is not None else None
        preparing = status is RunStatus.RUNNING and (frame is None or frame.begin_ns is None)
        state = self.tr("Preparing") if preparing else status_text(status) if status is not None else "–"
        figures = [Figure(self.tr("Status"), state)]
        if self._live is None or frame is None:
            return figures
        done = f"{frame.done:,} / {frame.total:,}" if frame.total else f"{frame.done:,}"
        elapsed = (frame.t_ns - frame.begin_ns) / 1e9 if frame.begin_ns is not None else None
        figures += [
            Figure(self.tr("Done"), done, self.tr("Counts of the channel that shows the progress")),
            Figure(self.tr("Elapsed"), format_duration(elapsed), self.tr("Time since T0, the start of the load")),
        ]
        if self._final:
            return figures + self._final_figures()
        progress = self._live.leading
        if progress is not None:
            figures += self._rate_figures(self._live.channel(progress), self._live.figures(progress))
        for name in self._live.shown(observed=True)[:1]:
            figures += self._latency_figures(self._live.channel(name), self._live.figures(name))
        about = self.tr("Counted since T0")
        others = [name for name in self._live.shown(observed=False) if name != progress and frame.channels[name].count]
        return figures + [
            Figure(self._live.channel(name).title, f"{frame.channels[name].count:,}", about) for name in others
        ]

    def _final_figures(self) -> list[Figure]:
        """The trial's key figures of the finished run, as evaluated from its stored samples."""
        kinds = self._trial.key_kinds() if self._trial is not None else ()
        stored = [(kind, self._final[kind.name]) for kind in kinds if kind.name in self._final]
        return [Figure(kind.title, format_metric(metric), kind.description) for kind, metric in stored]

    def _rate_figures(self, channel: LiveChannel, figures: ChannelFigures) -> list[Figure]:
        unit = rate_unit(channel.unit)
        rate = rounded_rate(figures.rate) if self._status is None else None
        now = self.tr("{0} in the last second").format(channel.title)
        mean = self.tr(
            "{0}, divided by the time from the first message to the last. A warm-up is counted here, but not in the "
            "figures at the end of the run."
        ).format(channel.title)
        return [
            Figure(self.tr("Rate now"), format_figure(rate, unit), now),
            Figure(self.tr("Mean, first to last"), format_figure(rounded_rate(figures.mean_rate), unit), mean),
        ]

    def _latency_figures(self, channel: LiveChannel, figures: ChannelFigures) -> list[Figure]:
        about = self.tr("{0}: all since T0, within 1.1 %").format(channel.title)
        values = {"mean": figures.mean, **{name: figures.quantiles.get(name) for name in ("p50", "p99")}}
        captions = {"mean": self.tr("Latency mean"), "p50": self.tr("Latency p50"), "p99": self.tr("Latency p99")}
        return [Figure(captions[name], format_figure(value, "ns"), about) for name, value in values.items()]

    # Building

    def _build(self) -> None:
        self._title = plain_label("", self)
        self._note = plain_label("", self)
        self._note.setProperty("muted", True)
        self._note.setWordWrap(True)
        self.off_box = QCheckBox(self.tr("No live plot"), self)
        self.off_box.setToolTip(self.tr("Ask the run for no live figures at all, so that it measures undisturbed"))
        self.off_box.setChecked(not self._bridge.live_plots)
        self.off_box.toggled.connect(lambda off: self._bridge.set_live_plots(not off))
        self._bridge.live_plots_switched.connect(self._switched)
        self._strip = FigureTable(self._theme, self)
        waiting = self.tr("No figures yet")
        self._tabs = QTabWidget(self)
        self._plots = PlotGrid(page_parent(self._tabs), low_width=180)
        new_plot = partial(TimePlot, theme=self._theme, empty_text=waiting, parent=self._plots.widget())
        self.rate_plot = new_plot(self.tr("Throughput"), "")
        self.latency_plot = new_plot(self.tr("Latency"), "ns")
        self.cpu_plot = new_plot(self.tr("CPU, 100 % = one core"), "%")
        self.memory_plot = new_plot(self.tr("Resident memory"), "B")
        for plot in (self.rate_plot, self.latency_plot, self.cpu_plot, self.memory_plot):
            self._plots.add(plot.accessibleName(), plot)
        self.role_plots = RolePlots(self._plots, self._theme, waiting)
        self.role_table = RoleTable(self._theme, page_parent(self._tabs))
        self._tabs.setAccessibleName(self.tr("Plots and roles"))
        self._tabs.setDocumentMode(True)
        self._tabs.addTab(self._plots, self.tr("Plots"))
        self._tabs.addTab(self.role_table, self.tr("Roles"))
        self._tabs.tabBar().hide()
        self._tabs.currentChanged.connect(self._schedule)
        self.command_button = CommandButton(self._bridge, self._theme, lambda: self.role_table.selected, self)
        self._side = QWidget(self)
        self._head = QHBoxLayout()
        self._head.addWidget(self._title, 1)
        self._head.addWidget(self.command_button)
        self._head.addWidget(self.off_box)
        self._column = QVBoxLayout(self._side)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._column.addLayout(self._head)
        self._column.addWidget(self._strip)
        self._column.addWidget(self._note)
        self._halves = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._halves.setContentsMargins(12, 8, 12, 8)
        self._halves.setSpacing(8)
        self._halves.addWidget(self._side)
        self._halves.addWidget(self._tabs, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the figures next to the plots where the view is low, above them where it is high."""
        super().resizeEvent(event)
        low = event.size().height() < LOW_HEIGHT and event.size().width() > 2 * event.size().height()
        if low == self._low:
            return
        self._low = low
        directions = QBoxLayout.Direction
        self._halves.setDirection(directions.LeftToRight if low else directions.TopToBottom)
        self._side.setMaximumWidth(SIDE_WIDTH if low else QWIDGETSIZE_MAX)
        self._side.setMinimumWidth(SIDE_WIDTH if low else 0)
        self._note.setVisible(not low)
        self._title.setWordWrap(low)
        self._title.setFont(self._theme.font(FontRole.STRONG if low else FontRole.HEADING))
        if low:
            self._column.addWidget(self.command_button)
            self._column.addWidget(self.off_box)
            self._column.addStretch(1)
        else:
            self._column.takeAt(self._column.count() - 1)
            self._head.addWidget(self.command_button)
            self._head.addWidget(self.off_box)

    def _apply_theme(self) -> None:
        self._title.setFont(self._theme.font(FontRole.STRONG if self._low else FontRole.HEADING))
        self._note.setFont(self._theme.font(FontRole.CAPTION))


def _stored_metrics(path: Path, run_id: int) -> tuple[int, Mapping[str, Metric]]:
    """The run's id and unlabelled metrics. Raises StoreError."""
    with Reader(path) as reader:
        return run_id, {metric.name: metric for metric in reader.run(run_id).metrics if not metric.labels}


def _curve(title: str, curve: GrowingCurve, zero_ns: int) -> PlotCurve:
    return PlotCurve(title, *curve.points(zero_ns))
