"""Packets as Wireshark shows them: a list, the tree of the selected one, and its octets with the field highlighted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from labconsole.errors import UserError
from labconsole.safe_text import shown
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label
from labconsole_v2x.inspection.field_tree import Node, innermost
from labconsole_v2x.inspection.packet_rows import MOST_PACKETS, PacketTable
from labconsole_v2x.inspection.verdicts import PacketRow, Verdict
from labconsole_v2x.panel.field_tree_view import FieldEntries, FieldTreeView
from labconsole_v2x.panel.hex_view import HexView
from labconsole_v2x.panel.packet_list import PacketList
from labconsole_v2x.stations.capture import CapturedPacket, CaptureError, read_capture

_FILTER_MS = 200
"""A filter that is being typed is applied after this pause."""
_READ_AT_ONCE = 512
"""Packets of a file that are read together: the neighbours of a selected one come without reading again."""
_PARTS = (300, 260)
"""Heights of the list and of the packet, px."""


class _Source(Protocol):
    """Where packets come from; called on the thread of the view's jobs."""

    fault: str
    """Why not all packets could be read; known once they were loaded."""

    def load(self) -> PacketTable:
        """The rows of all packets."""

    def packet(self, number: int) -> CapturedPacket | None:
        """The packet with a number from 1 on."""


class _File:
    """A capture, read again for each selected packet: it may be larger than the memory."""

    def __init__(self, path: Path, rows: Path | None) -> None:
        self.fault = ""
        self._path = path
        self._rows = rows
        self._first, self._near = 0, list[CapturedPacket]()

    def load(self) -> PacketTable:
        if self._rows is not None:
            return PacketTable.read(self._rows)
        return _unjudged(self._packets())

    def packet(self, number: int) -> CapturedPacket | None:
        place = number - 1
        if not 0 <= place - self._first < len(self._near):
            self._first = max(0, place - _READ_AT_ONCE // 2)
            self._near = list(islice(self._packets(), self._first, self._first + _READ_AT_ONCE))
        found = self._near[place - self._first : place - self._first + 1]
        return found[0] if found else None

    def _packets(self) -> Iterator[CapturedPacket]:
        """The packets up to a fault of the file. Raises CaptureError: there is none."""
        any_read = False
        try:
            for packet in read_capture(self._path):
                any_read = True
                yield packet
        except CaptureError as error:
            if not any_read:
                raise
            self.fault = str(error)


class _Sequence:
    """Packets in memory."""

    fault = ""

    def __init__(self, packets: Sequence[CapturedPacket], rows: Iterable[PacketRow] | None) -> None:
        self._packets = packets
        self._rows = rows

    def load(self) -> PacketTable:
        return _unjudged(self._packets) if self._rows is None else PacketTable.of(islice(self._rows, MOST_PACKETS))

    def packet(self, number: int) -> CapturedPacket | None:
        return self._packets[number - 1] if number <= len(self._packets) else None


class PacketView(QWidget):
    """Shows packets of a capture file, or those of a sequence, with their verdicts where there are any.

    All reading is done on a thread; `list`, `tree` and `octets` are its three parts.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None, packets: PacketList | None = None) -> None:
        """`packets`: the list, where a page has built it in a turn of its own."""
        super().__init__(parent)
        self._background = Background(self)
        self._source: _Source | None = None
        self._wanted = -1
        self._nodes: tuple[Node, ...] = ()
        self._filtering = QTimer(self)
        self._filtering.setSingleShot(True)
        self._filtering.setInterval(_FILTER_MS)
        self._filtering.timeout.connect(self._apply_filter)
        self.list = packets or PacketList(theme, self)
        self.tree = FieldTreeView(theme, self)
        self.octets = HexView(theme, self)
        self.list.chosen.connect(self._show_packet)
        self.tree.chosen.connect(self._mark)
        self.octets.chosen.connect(self._select_field)
        self.notice = plain_label("", self)
        self.notice.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.notice.setWordWrap(True)
        self.notice.setProperty("muted", True)
        self.verdict = plain_label("", self)
        self.verdict.setWordWrap(True)
        self.verdict.setAccessibleName(self.tr("Verdict"))
        self.verdict.setFont(theme.font(FontRole.STRONG))
        self.verdict.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        packet = QSplitter(Qt.Orientation.Horizontal, self)
        packet.setChildrenCollapsible(False)
        packet.addWidget(self.tree)
        packet.addWidget(self.octets)
        packet.setStretchFactor(0, 1)
        below = QWidget(self)
        column = QVBoxLayout(below)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.verdict)
        column.addWidget(packet, 1)
        parts = QSplitter(Qt.Orientation.Vertical, self)
        parts.setChildrenCollapsible(False)
        parts.addWidget(self.list)
        parts.addWidget(below)
        parts.setSizes(list(_PARTS))
        content = QWidget(self)
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(8)
        self.fault = plain_label("", self)
        self.fault.setWordWrap(True)
        self.fault.setProperty("tone", "warning")
        column.addLayout(self._filter_line())
        column.addWidget(self.fault)
        column.addWidget(parts, 1)
        self._content = content
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.notice)
        self._stack.addWidget(content)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._stack)
        self.clear()

    def show_capture(self, path: Path, rows: Path | None = None) -> None:
        """Show the packets of a capture file, with the verdicts of a `PacketTable` in the file `rows`."""
        self._show(_File(path, rows))

    def show_packets(self, packets: Sequence[CapturedPacket], rows: Iterable[PacketRow] | None = None) -> None:
        """Show packets in memory, with the rows of their inspection; without them, verdicts are not shown.

        The `number` of a row is the place of its packet in `packets`, from 1 on.
        """
        self._show(_Sequence(packets, rows))

    def clear(self) -> None:
        """Show no packets."""
        self._source = None
        self._say(self.tr("No packets"))

    def set_filter(self, text: str) -> None:
        """Show only the packets that a filter finds: words, "phrases" and ="whole cells"."""
        self.filter_line.setText(text)
        self._apply_filter()

    def _filter_line(self) -> QHBoxLayout:
        self.filter_line = QLineEdit(self)
        self.filter_line.setClearButtonEnabled(True)
        self.filter_line.setAccessibleName(self.tr("Filter"))
        self.filter_line.setPlaceholderText(self.tr("Filter by message, source, signer, verdict, reason or number"))
        self.filter_line.setToolTip(
            self.tr('All words must occur. In quotes, words are a phrase: "not valid". ="CAM" is the whole of a cell.')
        )
        self.filter_line.textEdited.connect(lambda _text: self._filtering.start())
        self.filter_line.textChanged.connect(lambda text: self._filtering.start() if not text else None)
        self.filter_line.returnPressed.connect(self._apply_filter)
        find = QAction(self.tr("Filter packets"), self)
        find.setShortcut(QKeySequence.StandardKey.Find)
        find.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.triggered.connect(lambda _checked: self.filter_line.setFocus())
        self.addAction(find)
        self.count = plain_label("", self)
        self.count.setProperty("muted", True)
        line = QHBoxLayout()
        line.setSpacing(10)
        line.addWidget(self.filter_line, 1)
        line.addWidget(self.count)
        return line

    # All packets

    def _show(self, source: _Source) -> None:
        self._source = source
        self.filter_line.clear()
        self._filtering.stop()
        self._say(self.tr("Reading packets ..."))
        self._background.submit(partial(_load, source), partial(self._loaded, source), partial(self._failed, source))

    def _loaded(self, source: _Source, table: PacketTable) -> None:
        if source is not self._source:
            return
        if not len(table):
            self._say(self.tr("There are no GeoNetworking packets in it."))
            return
        self._stack.setCurrentWidget(self._content)
        self._show_nothing()
        self.fault.setText(source.fault)
        self.fault.setVisible(bool(source.fault))
        self.list.show_table(table, self.filter_line.text())
        self._show_count()

    def _failed(self, source: _Source, sentence: str) -> None:
        if source is self._source:
            self._say(sentence)

    def _say(self, text: str) -> None:
        self._wanted = -1
        self.notice.setText(text)
        self._stack.setCurrentWidget(self.notice)

    def _apply_filter(self) -> None:
        self._filtering.stop()
        self.list.set_filter(self.filter_line.text())
        self._show_count()

    def _show_count(self) -> None:
        total = len(self.list.table)
        text = self.tr("{count} packets") if total < MOST_PACKETS else self.tr("the first {count} packets")
        text = text.format(count=f"{total:,}")
        if self.list.shown < total:
            text = self.tr("{shown} of {all}").format(shown=f"{self.list.shown:,}", all=text)
        self.count.setText(text)

    # One packet

    def _show_packet(self, index: int) -> None:
        """Read and show a packet; of several that are chosen while one is read, the last is."""
        if index == self._wanted or self._source is None:
            return
        self._wanted = index
        if index < 0:
            self._show_nothing()
            self.verdict.setText(self.tr("No packet matches the filter."))
            self.verdict.show()
            return
        row = self.list.table.row(index)
        self._background.submit(
            partial(self._read, self._source, index, row), partial(self._packet_read, index, row), self._packet_failed
        )

    def _read(self, source: _Source, index: int, row: PacketRow) -> tuple[bytes, FieldEntries] | None:
        if index != self._wanted:
            return None
        packet = source.packet(row.number)
        if packet is None or packet.time_ns != row.time_ns:
            raise UserError("The capture has changed since it was read: inspect it again.")
        return packet.octets, _entries(packet)

    def _packet_read(self, index: int, row: PacketRow, read: tuple[bytes, FieldEntries] | None) -> None:
        if read is None or index != self._wanted:
            return
        octets, entries = read
        self._nodes = entries.nodes
        self.octets.show_octets(octets)
        self.tree.show_entries(entries)
        self.verdict.setText(verdict_text(row))
        self.verdict.setVisible(row.verdict is not Verdict.NOT_JUDGED)

    def _packet_failed(self, sentence: str) -> None:
        self._show_nothing()
        self.verdict.setText(sentence)
        self.verdict.show()

    def _show_nothing(self) -> None:
        self._nodes = ()
        self.octets.show_octets(b"")
        self.tree.show_entries(FieldEntries())
        self.verdict.clear()

    def _mark(self, node: Node) -> None:
        self.octets.mark(node.start, node.end)

    def _select_field(self, octet: int) -> None:
        path = innermost(self._nodes, octet)
        if path:
            self.tree.select(path)
            self._mark(path[-1])


def _load(source: _Source) -> PacketTable:
    """The rows of all packets, and what their trees need: while a thread computes, painting a list takes long."""
    from labconsole_v2x.messages.asn1_modules import compiled, value_names  # imported late, and here: that takes 0.1 s

    compiled(1)
    value_names()
    return source.load()


def _unjudged(packets: Iterable[CapturedPacket]) -> PacketTable:
    from labconsole_v2x.inspection.inspector import unjudged_rows  # imported late, for the same reason

    return PacketTable.of(islice(unjudged_rows(packets), MOST_PACKETS))


def _entries(packet: CapturedPacket) -> FieldEntries:
    from labconsole_v2x.inspection.dissection import dissect  # imported late, for the same reason

    return FieldEntries(dissect(packet))


def verdict_text(row: PacketRow) -> str:
    """The verdict on a packet with all of its findings, in a sentence."""
    checks = row.checks
    reason = f" ({shown(row.reason)})" if row.reason else ""
    if not row.signer:
        return f"Packet {row.number:,}: {row.verdict}{reason}"
    root = f" up to {shown(row.root)}" if row.root else ""
    return (
        f"Packet {row.number:,}: {row.verdict}{reason}. Signature {checks.signature}, chain {checks.chain}{root}, "
        f"profile {checks.profile}, time {checks.time}."
    )
