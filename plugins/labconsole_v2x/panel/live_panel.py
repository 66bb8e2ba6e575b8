"""The page of the live trial: the stations of the run in progress, its scenario, and the packets that it captured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTemporaryDir, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QTabBar, QVBoxLayout, QWidget

from labconsole.engine.queue import QueueState
from labconsole.errors import UserError
from labconsole.model.trial import Parameters
from labconsole.store.records import RunStatus
from labconsole_ui.form.token_editor import TokenEditor
from labconsole_ui.panels.trial_panel import Fact, PanelContext, TrialPanel
from labconsole_ui.runtime.background import Background
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.message_bar import Message, Tone
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.panel.glance_card import GlanceCard
from labconsole_v2x.panel.live_facts import live_facts
from labconsole_v2x.panel.live_monitor import LiveMonitor
from labconsole_v2x.panel.live_plots import LivePlots
from labconsole_v2x.panel.packet_list import PacketList
from labconsole_v2x.panel.packet_view import PacketView
from labconsole_v2x.panel.run_capture import RunCapture, write_run_capture
from labconsole_v2x.panel.station_map import StationMap
from labconsole_v2x.panel.station_table import StationTable

STATIONS, SCENARIO, PACKETS = range(3)
_MAP_HEIGHT = 390
_PACKETS_HEIGHT = 440
_READ_AGAIN_MS = 1000
"""Until packets of the run in progress are in the database."""


def make_live_panel(context: PanelContext) -> LivePanel:
    """The factory that the manifest names."""
    return LivePanel(context)


class LivePanel(TrialPanel):
    """The usual panel on one of three tabs; the first shows the run in progress, the third its packets."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context, {"token": TokenEditor})
        set_chapter(self, "how-to/run-v2x-stations.md")

    def pieces(self) -> Iterator[None]:
        """Build the page."""
        self.monitor = LiveMonitor(self.context, self)
        self._background = Background(self)
        self._files = QTemporaryDir()
        self._read_run: int | None = None
        """The run whose packets are shown or awaited."""
        self._reading_again = QTimer(self)
        self._reading_again.setSingleShot(True)
        self._reading_again.setInterval(_READ_AGAIN_MS)
        self._reading_again.timeout.connect(self._read_packets)
        self.context.bridge.items_changed.connect(self._follow_queue)
        self.context.bridge.finished.connect(self._finished)
        yield from super().pieces()
        self.monitor.began.connect(self._began)
        self.monitor.drawn.connect(self._draw)
        self.monitor.ended.connect(lambda _run_id: self.stations.allow(running=False))
        self.monitor.benchmarked.connect(self._form_validated)
        self.monitor.benchmarked.connect(self._draw)
        self.run_bar.problem_clicked.connect(lambda: self.tabs.setCurrentIndex(SCENARIO))
        if self.isVisible():
            self.monitor.read_benchmark()

    def facts(self, parameters: Parameters) -> list[Fact]:
        """The load of these parameters, and whether this computer carries it."""
        assert isinstance(parameters, LiveParameters)
        return live_facts(parameters, self.monitor.speed(parameters))

    def showEvent(self, event: QShowEvent) -> None:
        """Read the newest benchmark."""
        super().showEvent(event)
        if self.building.complete:
            self.monitor.read_benchmark()

    def use_parameters(self, values: Mapping[str, Any]) -> None:
        """Fill the form, and show it."""
        super().use_parameters(values)
        self.building.when_complete(lambda: self.tabs.setCurrentIndex(SCENARIO))

    # The run in progress

    def _began(self) -> None:
        self.map.clear()
        self.plots.begin()
        self.stations.allow(running=True)

    def _draw(self) -> None:
        monitor = self.monitor
        glance = monitor.glance()
        self.glance.show_glance(glance)
        self.map.show_board(monitor.board)
        self.stations.show_board(monitor.board)
        self.stations.allow(running=monitor.running)
        if monitor.live is not None and monitor.running:
            self.plots.draw(monitor.live, monitor.board, glance.loss)

    def _switch(self, number: int, on: bool) -> None:
        try:
            self.monitor.switch(number, on=on)
        except UserError as error:
            self.context.show_message(Message(Tone.BAD, str(error)))

    # The packets

    def load_packets(self) -> None:
        """Read the packets that the newest run has captured until now."""
        self._say_packets(self.tr("Reading the capture"))
        self._read_packets()

    def _running_run(self) -> int | None:
        """The run of this trial that is in progress; without one the newest that has begun is meant."""
        items = (item for item in self.context.bridge.queue.items if item.kind == self.context.trial.kind)
        return next((item.run_id for item in items if item.state is QueueState.RUNNING), None)

    def _follow_queue(self) -> None:
        """Turn to the packets of a run that has just begun, whether or not it sends live values."""
        if self._shows_packets and self._running_run() not in (None, self._read_run):
            self.load_packets()

    def _finished(self, run_id: int, _status: RunStatus) -> None:
        if self._shows_packets and run_id == self._read_run:
            self.load_packets()

    @property
    def _shows_packets(self) -> bool:
        return self.building.complete and self.tabs.currentIndex() == PACKETS

    def _read_packets(self) -> None:
        if not self._shows_packets:
            return
        self._read_run = self._running_run()
        path, folder = self.context.bridge.queue.store.path, Path(self._files.path())
        write = partial(write_run_capture, path, self._read_run, self.context.trial.kind, folder)
        self._background.submit(write, self._show_packets, self._say_unreadable)

    def _say_unreadable(self, sentence: str) -> None:
        """Say why the packets could not be read, and try again: the disk may be busy."""
        self._say_packets(sentence)
        self._reading_again.start()

    def _show_packets(self, capture: RunCapture) -> None:
        self._reading_again.stop()
        self._read_run = capture.run_id
        self.open_run_button.setEnabled(capture.path is not None)
        if capture.path is None:
            self.packets.clear()
            self._say_packets(self._why_no_packets(capture))
            if capture.awaited:
                self._reading_again.start()
            return
        text = self.tr("What the receiver of run {0} has read; the run has it as a file, with the root's certificate.")
        self._say_packets(text.format(capture.run_id))
        self.packets.show_capture(capture.path)

    def _why_no_packets(self, capture: RunCapture) -> str:
        if capture.run_id is None:
            return self.tr("No run of this trial is in the database yet.")
        if capture.awaited:
            text = self.tr("Run {0} has stored no packets yet: they appear here as soon as it has.")
        else:
            text = self.tr(
                "Run {0} has no packets: the capture was switched off in the scenario, nothing was received, or the "
                "run did not begin."
            )
        return text.format(capture.run_id)

    def _open_run(self) -> None:
        if self._read_run is not None:
            self.context.open_run(self._read_run)

    def _say_packets(self, text: str) -> None:
        self.packets_label.setText(text)

    # Building

    def _fill(self, column: QVBoxLayout) -> Iterator[None]:
        page = column.parentWidget()
        yield from self._add_heading(column)
        self.tabs = QTabBar(page)
        self.tabs.setExpanding(False)
        self.tabs.setAccessibleName(self.tr("Parts of the page"))
        for text in (self.tr("Stations"), self.tr("Scenario"), self.tr("Packets")):
            self.tabs.addTab(text)
        column.addWidget(self.tabs)
        self._parts = tuple(QWidget(page) for _tab in range(self.tabs.count()))
        live, scenario, packets = (_column(part) for part in self._parts)
        for part in self._parts:
            column.addWidget(part)
        self.tabs.currentChanged.connect(self._show_part)
        self._show_part(STATIONS)
        yield
        yield from self._add_stations(live)
        yield from self._add_form(scenario)
        yield from self._add_packets(packets)

    def _add_stations(self, column: QVBoxLayout) -> Iterator[None]:
        theme, page = self.context.theme, self._parts[STATIONS]
        self.glance = GlanceCard(theme, page)
        column.addWidget(self.glance)
        yield
        self.map = StationMap(theme, page)
        self.map.setFixedHeight(_MAP_HEIGHT)
        yield
        self.stations = StationTable(theme, page)
        self.stations.setFixedHeight(_MAP_HEIGHT)
        self.stations.switched.connect(self._switch)
        self.stations.selected.connect(self.map.select)
        self.map.selected.connect(self.stations.select)
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(self.map, 1)
        line.addWidget(self.stations, 1)
        column.addLayout(line)
        yield
        self.plots = LivePlots(theme, page)
        column.addWidget(self.plots)
        yield from self.plots.pieces()

    def _add_packets(self, column: QVBoxLayout) -> Iterator[None]:
        page = self._parts[PACKETS]
        self.packets_label: QLabel = plain_label("", page)
        self.packets_label.setProperty("muted", True)
        reload = QPushButton(self.tr("Read a&gain"), page)
        reload.setToolTip(self.tr("Read what the run has captured until now"))
        reload.clicked.connect(lambda _checked: self.load_packets())
        line = QHBoxLayout()
        line.addWidget(self.packets_label, 1)
        self.open_run_button = QPushButton(self.tr("Open ru&n"), page)
        self.open_run_button.setToolTip(self.tr("Its artefacts: the capture and certificates, to save"))
        self.open_run_button.setEnabled(False)
        self.open_run_button.clicked.connect(self._open_run)
        line.addWidget(self.open_run_button)
        line.addWidget(reload)
        column.addLayout(line)
        yield
        packets = PacketList(self.context.theme, page)
        yield
        self.packets = PacketView(self.context.theme, page, packets)
        self.packets.setMinimumHeight(_PACKETS_HEIGHT)
        column.addWidget(self.packets)
        yield

    def _show_part(self, shown: int) -> None:
        for number, part in enumerate(self._parts):
            part.setVisible(number == shown)
        if shown == PACKETS:
            self.building.when_complete(self.load_packets)


def _column(part: QWidget) -> QVBoxLayout:
    """A column for a part of the page."""
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    return column
