"""The stations as a list, with the buttons that stop and start single ones."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from labconsole.analysis.number_format import NO_FIGURE
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import Theme
from labconsole_v2x.panel.station_board import StationBoard, StationState


class StationTable(QWidget):
    """Emits `selected` with the current station (-1 for none), and `switched` with (number, on)."""

    selected = Signal(int)
    switched = Signal(int, bool)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._board = StationBoard()
        self.table = DataTable(self.tr("Stations"), theme, self, fit_width=True)
        self._model: RecordModel[StationState] = RecordModel(self._fields(), theme, self.table)
        self.table.setModel(self._model)
        self.table.setSortingEnabled(True)
        self.table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.table.selectionModel().selectionChanged.connect(lambda _on, _off: self._selection_changed())
        self.stop_button = QPushButton(self.tr("Sto&p sending"), self)
        theme.bind_icon(self.stop_button, "stop")
        self.stop_button.clicked.connect(lambda _checked: self._switch(on=False))
        self.start_button = QPushButton(self.tr("Star&t sending"), self)
        theme.bind_icon(self.start_button, "run")
        self.start_button.clicked.connect(lambda _checked: self._switch(on=True))
        shortcut = QShortcut(QKeySequence(" "), self.table)
        shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
        shortcut.activated.connect(self._toggle)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.stop_button)
        buttons.addWidget(self.start_button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.table, 1)
        column.addLayout(buttons)
        self.allow(running=False)

    def show_board(self, board: StationBoard) -> None:
        """Show the newest values; the selection stays."""
        self._board = board
        records = [board.stations[number] for number in sorted(board.stations)]
        first = self._model.total == 0
        self._model.update_records(records, lambda state: state.number, sort=False)
        if first and records:
            self.table.fit_columns(200)

    def allow(self, *, running: bool) -> None:
        """Enable the buttons while a run is in progress; outside one, no station is shown as sending."""
        self._running = running
        self._model.repaint()
        self._selection_changed()

    def select(self, number: int) -> None:
        """Select the row of a station."""
        rows = [row for row, state in enumerate(self._model.records()) if state.number == number]
        selection = self.table.selectionModel()
        if not rows:
            selection.clearSelection()
            return
        index = self._model.index(rows[0], 0)
        flags = QItemSelectionModel.SelectionFlag
        selection.setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
        self.table.scrollTo(index)

    @property
    def chosen(self) -> Sequence[StationState]:
        """The selected stations."""
        rows = {index.row() for index in self.table.selectionModel().selectedRows()}
        return [self._model.record(row) for row in sorted(rows) if row < self._model.rowCount()]

    def _selection_changed(self) -> None:
        senders = [state for state in self.chosen if not state.roadside]
        if self.stop_button.hasFocus() or self.start_button.hasFocus():
            self.table.setFocus()  # a disabled button would pass the focus on, and the page would follow it
        self.stop_button.setEnabled(self._running and any(state.on for state in senders))
        self.start_button.setEnabled(self._running and any(not state.on for state in senders))
        self.selected.emit(self.chosen[0].number if len(self.chosen) == 1 else -1)

    def _switch(self, *, on: bool) -> None:
        for state in self.chosen:
            if not state.roadside and state.on is not on:
                self.switched.emit(state.number, on)
        self._selection_changed()

    def _toggle(self) -> None:
        senders = [state for state in self.chosen if not state.roadside]
        if self._running and senders:
            self._switch(on=not senders[0].on)

    def _fields(self) -> list[Field[StationState]]:
        def name(state: StationState) -> str:
            return self.tr("Roadside station") if state.roadside else self.tr("Station {0}").format(state.number)

        def sending(state: StationState) -> str:
            if not state.on:
                return self.tr("stopped")
            return self.tr("sends") if self._running else self.tr("finished")

        def heard_by(state: StationState) -> str:
            count = self._board.heard_by(state.number)
            return NO_FIGURE if count is None else f"{count:,}"

        def heard(state: StationState) -> str:
            return NO_FIGURE if state.heard is None else f"{len(state.heard):,}"

        return [
            Field(self.tr("Station"), name, lambda state: state.number),
            Field(
                self.tr("State"),
                sending,
                tone=lambda state: None if state.on else "warning",
            ),
            Field(self.tr("Sent"), lambda state: f"{state.sent:,}", lambda state: state.sent, True),
            Field(
                self.tr("Heard by"),
                heard_by,
                lambda state: self._board.heard_by(state.number) or 0,
                True,
                header_tooltip=self.tr("Stations that have accepted a CAM of it in the last second"),
            ),
            Field(
                self.tr("Hears"),
                heard,
                lambda state: -1 if state.heard is None else len(state.heard),
                True,
                header_tooltip=self.tr("Stations whose CAMs it has accepted in the last second"),
            ),
        ]
