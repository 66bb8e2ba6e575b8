"""The page on which captures are inspected: dropped files, the dialog of the operation, and its kept result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.errors import UserError
from labconsole.model.operation import TextTable
from labconsole.safe_text import shown
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.plugin_page import PageContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import PageBuilder
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.file_drop_area import FileDropArea
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import IconLabel, plain_label, plain_tooltip
from labconsole_ui.widgets.layouts import FlowLayout
from labconsole_ui.widgets.message_bar import Message, Tone
from labconsole_v2x.inspection.capture_certificates import read_certificate
from labconsole_v2x.inspection.inspect_operation import InspectCapture, InspectParameters
from labconsole_v2x.inspection.inspection_report import messages_text, station_ids_text, time_text, tone_of
from labconsole_v2x.inspection.verdicts import Verdict
from labconsole_v2x.stations.capture import is_capture

_STATE_KEY = "v2x/inspection"
_WIDEST_COLUMN = 900
_WIDEST_NAME = 320
_HEADINGS = 3
"""The title and the headings of a table are as high as so many of its rows."""
_SHARED_ROWS = 12
"""The two tables share the height by their rows, up to so many."""
_CAPTURES = "pcap, pcapng, COER (*.pcap *.pcapng *.cap *.oer *.coer *.cert)"
_DATE, _MS = 10, 23
"""Characters of a time as RFC 3339 has it: of its date, and up to its ms."""

Row = Mapping[str, Any]
"""A station or finding of the operation's data."""


class SortedFiles(NamedTuple):
    """Files by the parameters of the operation that take them, and a sentence for each that none takes."""

    captures: list[Path]
    roots: list[Path]
    issuers: list[Path]
    refused: list[str]


def sort_files(paths: Sequence[Path]) -> SortedFiles:
    """Sort files by their contents: captures, certificates of root CAs, and other certificates."""
    found = SortedFiles([], [], [], [])
    for path in paths:
        try:
            with path.open("rb") as file:
                if is_capture(file.read(4)):
                    found.captures.append(path)
                    continue
            (found.roots if read_certificate(path).issuer is None else found.issuers).append(path)
        except OSError as error:
            found.refused.append(f"{shown(path.name)} cannot be read ({error.strerror or error}): choose another file.")
        except UserError:
            found.refused.append(
                f"{shown(path.name)} is neither a capture (pcap, pcapng) nor a certificate (COER): choose another file."
            )
    return found


class InspectionPage(QWidget):
    """Keeps the result of each capture that was inspected, until the page is closed."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        set_chapter(self, "how-to/inspect-a-capture.md")
        self._context = context
        self._background = Background(self)
        self._ends: dict[str, OperationEnd] = {}
        self._dialog: OperationDialog | None = None
        self._one_day = True
        kept = context.state.mapping(_STATE_KEY)
        self._roots, self._issuers = _texts(kept.get("root")), _texts(kept.get("issuer"))
        self._captures = _texts(kept.get("capture"))
        self.building = PageBuilder(self, self.pieces())

    def open_files(self, paths: Sequence[Path]) -> None:
        """Fill in captures and certificates; nothing is inspected by that alone."""
        self.building.finish()
        self._background.submit(partial(sort_files, tuple(paths)), self._fill_in, self._say_bad)

    def inspect(self) -> OperationDialog:
        """Open the dialog of the operation with these files."""
        self.building.finish()
        values: dict[str, Any] = {"root": self._roots, "issuer": self._issuers}
        if self._capture:
            values["capture"] = self._capture
        operation = self._context.plugins.operation(InspectCapture.name)
        self._dialog = OperationDialog(self.window(), operation, self._context.theme, values)
        self._dialog.ended.connect(self._ended)
        self._dialog.open()
        return self._dialog

    # Construction

    def pieces(self) -> Iterator[None]:
        """Build the files' part, then the empty result, then show what was kept."""
        theme = self._context.theme
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        title = plain_label(self.tr("Inspect captures"), self)
        title.setFont(theme.font(FontRole.TITLE))
        text = plain_label(
            self.tr(
                "Judges each GeoNetworking packet of a capture: its signature, certificate chain, security profile and "
                "time."
            ),
            self,
        )
        text.setWordWrap(True)
        text.setProperty("muted", True)
        column.addWidget(title)
        column.addWidget(text)
        yield
        self.drop_box = FileDropArea(
            theme,
            self.tr("Drop captures (pcap, pcapng) and certificates of root CAs or authorization authorities (COER)"),
            _CAPTURES,
            self,
        )
        self.drop_box.files.connect(self.open_files)
        column.addWidget(self.drop_box)
        yield
        column.addLayout(self._files_line())
        yield
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
        self.empty = plain_label("", self)
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setProperty("muted", True)
        self.body = QStackedWidget(self)
        self.body.addWidget(self.empty)
        self.body.addWidget(self.tables)
        column.addWidget(self.body, 1)
        self._add_captures(self._captures)
        self._show_certificates()
        self._show_capture()

    def _files_line(self) -> QHBoxLayout:
        self.capture_box = QComboBox(self)
        self.capture_box.setAccessibleName(self.tr("Capture"))
        self.capture_box.setPlaceholderText(self.tr("No capture yet"))
        self.capture_box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.capture_box.setMaximumWidth(_WIDEST_NAME)
        self.capture_box.currentIndexChanged.connect(lambda _index: self._show_capture())
        self.certificates = plain_label("", self)
        self.certificates.setProperty("muted", True)
        self.certificates.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)  # it shrinks first
        self.clear_button = QPushButton(self.tr("Clear certificates"), self)
        self.clear_button.clicked.connect(lambda _checked: self._clear_certificates())
        self.inspect_button = QPushButton(self.tr("&Inspect capture …"), self)
        self.inspect_button.setProperty("primary", True)
        self.inspect_button.clicked.connect(lambda _checked: self.inspect())
        line = QHBoxLayout()
        line.setSpacing(10)
        line.addWidget(self.capture_box)
        line.addWidget(self.certificates, 1)
        line.addWidget(self.clear_button)
        line.addWidget(self.inspect_button)
        return line

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
        FlowLayout(self.verdicts, 18)
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

    # The files

    @property
    def _capture(self) -> str:
        return self.capture_box.currentData() or ""

    def _fill_in(self, found: SortedFiles) -> None:
        for sentence in found.refused:
            self._say_bad(sentence)
        self._roots = _joined(self._roots, found.roots)
        self._issuers = _joined(self._issuers, found.issuers)
        self._show_certificates()
        self._add_captures(list(map(str, found.captures)))

    def _add_captures(self, paths: Sequence[str]) -> None:
        """Offer these captures, the first of them chosen."""
        for path in paths:
            if self.capture_box.findData(path) < 0:
                self.capture_box.addItem(shown(Path(path).name), path)
                self.capture_box.setItemData(
                    self.capture_box.count() - 1, plain_tooltip(path), Qt.ItemDataRole.ToolTipRole
                )
        if paths:
            self.capture_box.setCurrentIndex(self.capture_box.findData(paths[0]))
        self.capture_box.setEnabled(self.capture_box.count() > 0)

    def _clear_certificates(self) -> None:
        self._roots, self._issuers = [], []
        self._show_certificates()

    def _show_certificates(self) -> None:
        groups = ((self.tr("Roots: {names}"), self._roots), (self.tr("Authorities: {names}"), self._issuers))
        said = [text.format(names=", ".join(Path(path).name for path in paths)) for text, paths in groups if paths]
        self.certificates.setText("   ".join(said) or self.tr("No trusted root yet: every chain will be incomplete"))
        self.certificates.setToolTip(plain_tooltip("\n".join((*self._roots, *self._issuers))))
        self.clear_button.setVisible(bool(said))

    def _say_bad(self, sentence: str) -> None:
        self._context.show_message(Message(Tone.BAD, sentence))

    # The result

    def _ended(self, end: OperationEnd) -> None:
        """Keep the result, and the files that were entered in the dialog."""
        used = None if self._dialog is None else self._dialog.form.parameters
        if not isinstance(used, InspectParameters):
            return
        capture = str(used.capture)
        self._ends[capture] = end
        self._roots, self._issuers = list(map(str, used.root)), list(map(str, used.issuer))
        kept = {"capture": [capture], "root": self._roots, "issuer": self._issuers}
        self._context.state.set(_STATE_KEY, kept)
        self._show_certificates()
        self._add_captures([capture])
        self._show_capture()

    def _show_capture(self) -> None:
        """Show the result of the chosen capture, or what to do for one."""
        end = self._ends.get(self._capture)
        self.capture_box.setToolTip(plain_tooltip(self._capture))
        self.head.setVisible(end is not None)
        self.body.setCurrentWidget(self.empty)
        if end is None:
            self.empty.setText(
                self.tr("Not inspected yet.\nClick Inspect capture to judge its packets.")
                if self._capture
                else self.tr("No capture inspected yet.\nDrop one above: its stations and findings appear here.")
            )
            return
        data = end.result.data if end.result is not None else {}
        self._show_head(end, data)
        self.empty.setText(self.tr("There are no GeoNetworking packets in it.") if data else "")
        if data.get("packets"):
            self._show_tables(data["findings"], data["stations"])

    def _show_tables(self, findings: Sequence[Row], stations: Sequence[Row]) -> None:
        self.body.setCurrentWidget(self.tables)
        self._findings_part.setVisible(bool(findings))
        times = [row[key] for row in stations for key in ("first_ns", "last_ns") if row[key]] or [0]
        self._one_day = time_text(min(times))[:_DATE] == time_text(max(times))[:_DATE]
        for table, rows in ((self.findings, findings), (self.stations, stations)):
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


def _texts(value: object) -> list[str]:
    """The texts of a stored list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _joined(paths: Sequence[str], more: Sequence[Path]) -> list[str]:
    """All paths in their order, each once."""
    return list(dict.fromkeys((*paths, *map(str, more))))


def _table(name: str, fields: Sequence[Field[Row]], theme: Theme, parent: QWidget) -> DataTable:
    table = DataTable(name, theme, parent, fit_width=True)
    table.setModel(RecordModel(fields, theme, table))
    table.setSortingEnabled(True)
    table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    return table


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
