"""The result of an inspection in the window: summary, findings, stations, certificates, packets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QStackedWidget, QTabWidget, QVBoxLayout, QWidget

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.model.operation import TextTable
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label
from labconsole_ui.widgets.layouts import FlowLayout
from labconsole_v2x.inspection.inspection_report import (
    issuers_text,
    messages_text,
    station_ids_text,
    time_text,
    tone_of,
)
from labconsole_v2x.inspection.packet_rows import finding_filter
from labconsole_v2x.inspection.verdicts import ChainState, Verdict
from labconsole_v2x.panel.packet_list import PacketList
from labconsole_v2x.panel.packet_view import PacketView

_WIDEST_COLUMN = 900
_HEADINGS = 3
"""The title and the headings of a table are as high as so many of its rows."""
_SHARED_ROWS = 12
"""The two tables share the height by their rows, up to so many."""
_DATE, _MS = 10, 23
"""Characters of a time as RFC 3339 has it: of its date, and up to its ms."""

Row = Mapping[str, Any]
"""A station, finding or chain of the operation's data."""


class InspectionResult(QWidget):
    """Shows one result at a time, or a sentence in its place."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._one_day = True

    def pieces(self) -> Iterator[None]:
        """Build it, one part at a time."""
        theme = self._theme
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self._result_head(theme))
        yield
        self.stations = _table(self.tr("Stations"), self._station_fields(), theme, self)
        yield
        self.findings = _table(self.tr("Findings"), self._finding_fields(), theme, self)
        yield
        self.tables = QSplitter(Qt.Orientation.Vertical, self)
        self.tables.setChildrenCollapsible(False)
        self._findings_part = _part(self.tr("Findings"), self.findings, theme)
        self.tables.addWidget(self._findings_part)
        self.tables.addWidget(_part(self.tr("Stations"), self.stations, theme))
        self.findings.activated.connect(self._show_packets_of)
        self.findings.setToolTip(self.tr("Double-click a finding to see its packets"))
        yield
        self.chains = _table(self.tr("Certificates"), self._chain_fields(), theme, self)
        yield
        packets = PacketList(theme, self)
        yield
        self.packets = PacketView(theme, self, packets)
        yield
        self.tabs = QTabWidget(self)
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(_padded(self.tables), self.tr("Findings and stations"))
        self.tabs.addTab(_padded(self.chains), self.tr("Certificates"))
        self.tabs.addTab(self.packets, self.tr("Packets"))
        self.empty = plain_label("", self)
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setProperty("muted", True)
        self.body = QStackedWidget(self)
        self.body.addWidget(self.empty)
        self.body.addWidget(self.tabs)
        column.addWidget(self.body, 1)

    def show_nothing(self, text: str) -> None:
        """Show this text, and no result."""
        self.head.hide()
        self.empty.setText(text)
        self.body.setCurrentWidget(self.empty)
        self.packets.clear()

    def show_end(self, end: OperationEnd, capture: Path, rows: Path) -> None:
        """Show how an inspection ended; `rows` is the file with the rows of the capture's packets."""
        data = end.result.data if end.result is not None else {}
        self.show_nothing(self.tr("There are no GeoNetworking packets in it.") if data else "")
        self.head.show()
        self._show_head(end, data)
        if data.get("packets"):
            self._show_tables(data)
            self.packets.show_capture(capture, rows)

    def _show_packets_of(self, index: QModelIndex) -> None:
        """Show the packets of a finding."""
        if isinstance(model := self.findings.model(), RecordModel):
            row: Row = model.record(index.row())
            self.packets.set_filter(finding_filter(row["verdict"], row["reason"]))
            self.tabs.setCurrentWidget(self.packets)

    def _show_tables(self, data: Mapping[str, Any]) -> None:
        findings, stations, chains = data["findings"], data["stations"], data["chains"]
        self.tabs.setTabText(self.tabs.indexOf(self.packets), self.tr("Packets ({0:,})").format(data["packets"]))
        self.body.setCurrentWidget(self.tabs)
        self._findings_part.setVisible(bool(findings))
        times = [row[key] for row in stations for key in ("first_ns", "last_ns") if row[key]] or [0]
        self._one_day = time_text(min(times))[:_DATE] == time_text(max(times))[:_DATE]
        for table, rows in ((self.findings, findings), (self.stations, stations), (self.chains, chains)):
            if isinstance(model := table.model(), RecordModel):
                model.set_records(rows)
            table.fit_columns(_WIDEST_COLUMN)
        rows_px = self.stations.verticalHeader().defaultSectionSize()
        self.tables.setSizes([rows_px * (_HEADINGS + min(len(rows), _SHARED_ROWS)) for rows in (findings, stations)])

    def _show_head(self, end: OperationEnd, data: Mapping[str, Any]) -> None:
        parts = end.result.parts if data and end.result is not None else ()
        texts = [part for part in parts[:1] if not isinstance(part, TextTable)]
        self.sentence.setText("\n".join(texts) or end.sentence)
        warnings = () if end.result is None else end.result.warnings
        self.warnings.setText("\n".join(warnings))
        self.warnings.setVisible(bool(warnings))
        if not data:
            cancelled = end.outcome is Outcome.CANCELLED
            self._icon.show_icon(*(("cancelled", "muted") if cancelled else ("error", "bad")))
        else:
            good = not warnings and set(data["verdicts"]) == {Verdict.VALID}
            self._icon.show_icon(*(("good", "good") if good else ("warning", "warning")))
        self._show_verdicts(data)

    def _show_verdicts(self, data: Mapping[str, Any]) -> None:
        layout = self.verdicts.layout()
        while layout is not None and (item := layout.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        counts: Mapping[str, int] = data.get("verdicts", {})
        for verdict, count in counts.items():
            label = plain_label(f"{verdict}: {count:,} ({count / data['packets']:.1%})", self.verdicts)
            tone = tone_of(Verdict(verdict))
            label.setProperty("muted" if tone == "muted" else "tone", True if tone == "muted" else str(tone))
            if layout is not None:
                layout.addWidget(label)
        self.verdicts.setVisible(bool(counts))

    def _result_head(self, theme: Theme) -> QWidget:
        self.head = QWidget(self)
        self._icon = IconLabel(theme, "good", 20, "good")
        self.sentence = plain_label("", self.head)
        self.sentence.setWordWrap(True)
        self.sentence.setFont(theme.font(FontRole.STRONG))
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.sentence.setAccessibleName(self.tr("Summary"))
        self.warnings = plain_label("", self.head)
        self.warnings.setWordWrap(True)
        self.warnings.setProperty("tone", "warning")
        self.verdicts = QWidget(self.head)
        FlowLayout(self.verdicts, 12)
        texts = QVBoxLayout()
        texts.setSpacing(4)
        for widget in (self.sentence, self.warnings, self.verdicts):
            texts.addWidget(widget)
        line = QHBoxLayout(self.head)
        line.setContentsMargins(0, 6, 0, 0)
        line.setSpacing(10)
        line.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(texts, 1)
        return self.head

    def _station_fields(self) -> list[Field[Row]]:
        return [
            Field(self.tr("GN address"), lambda row: row["address"]),
            Field(
                self.tr("Station ID"), lambda row: station_ids_text(row["station_ids"]), lambda row: row["station_ids"]
            ),
            _count(self.tr("Packets"), "packets"),
            Field(self.tr("Messages"), lambda row: messages_text(row["messages"])),
            Field(self.tr("Tickets"), lambda row: f"{len(row['tickets']):,}", lambda row: len(row["tickets"]), True),
            Field(self.tr("Signature valid"), lambda row: f"{_valid_share(row):.1%}", _valid_share, True),
            self._time_field(self.tr("First (UTC)"), "first_ns"),
            self._time_field(self.tr("Last (UTC)"), "last_ns"),
        ]

    def _time_field(self, title: str, key: str) -> Field[Row]:
        """A time to the ms, with its date where stations were heard on more than one; the tooltip has all of it."""
        return Field(
            title,
            lambda row: time_text(row[key] or 0)[_DATE + 1 if self._one_day else 0 : _MS].replace("T", " "),
            lambda row: row[key],
            tooltip=lambda row: time_text(row[key] or 0),
        )

    def _finding_fields(self) -> list[Field[Row]]:
        return [
            Field(self.tr("Verdict"), lambda row: row["verdict"], tone=lambda row: tone_of(Verdict(row["verdict"]))),
            _count(self.tr("Packets"), "packets"),
            _count(self.tr("First packet"), "first_packet"),
            Field(self.tr("Reason"), lambda row: row["reason"]),
        ]

    def _chain_fields(self) -> list[Field[Row]]:
        tones = {ChainState.COMPLETE: "good", ChainState.INCOMPLETE: "warning"}
        return [
            Field(self.tr("Tickets issued by"), lambda row: issuers_text(row["issuers"])),
            Field(self.tr("Chain"), lambda row: row["state"], tone=lambda row: tones.get(row["state"], "bad")),
            _count(self.tr("Tickets"), "tickets"),
            _count(self.tr("Packets"), "packets"),
            Field(self.tr("Reason"), lambda row: row["reason"]),
        ]


def _table(name: str, fields: Sequence[Field[Row]], theme: Theme, parent: QWidget) -> DataTable:
    table = DataTable(name, theme, parent, fit_width=True)
    table.setModel(RecordModel(fields, theme, table))
    table.setSortingEnabled(True)
    table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    return table


def _padded(widget: QWidget) -> QWidget:
    """A widget below the bar of its tab."""
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 8, 0, 0)
    column.addWidget(widget)
    return page


def _part(title: str, table: DataTable, theme: Theme) -> QWidget:
    part = QWidget()
    head = plain_label(title, part)
    head.setFont(theme.font(FontRole.STRONG))
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(6)
    column.addWidget(head)
    column.addWidget(table, 1)
    return part


def _count(title: str, key: str) -> Field[Row]:
    return Field(title, lambda row: f"{row[key]:,}", lambda row: row[key], right=True)


def _valid_share(row: Row) -> float:
    share: float = row["valid_signatures"] / row["packets"]
    return share
