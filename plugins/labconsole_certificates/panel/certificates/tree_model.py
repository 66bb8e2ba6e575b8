"""The Qt model of the tree of authorities: filters without a proxy, and drags certificates as files and text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QItemSelection,
    QItemSelectionRange,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTemporaryDir,
    QUrl,
)

from labconsole_certificates.operations.export_formats import as_pem
from labconsole_certificates.panel.certificates.tree_nodes import Node
from labconsole_certificates.panel.export_bar import ExportItem
from labconsole_ui.tables.record_table import Field, cell_values_by_role
from labconsole_ui.theme.theme import Theme

Index = QModelIndex | QPersistentModelIndex
_CHOSEN = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
_DRAGGED = _CHOSEN | Qt.ItemFlag.ItemIsDragEnabled


@dataclass
class _Line:
    """A visible line: its node, its position, and the lines below."""

    node: Node
    row: int
    above: _Line | None
    number: int
    below: list[_Line]


class TreeModel(QAbstractItemModel):
    """Lines of `Node`; an index carries the number of its line."""

    def __init__(self, fields: Sequence[Field[Node]], theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._fields = list(fields)
        self._answers = [cell_values_by_role(field, theme) for field in fields]
        self._nodes: tuple[Node, ...] = ()
        self._words: list[str] = []
        self._lines: list[_Line] = []
        self._top: list[_Line] = []
        self._by_key: dict[str, _Line] = {}
        self._files = QTemporaryDir()
        theme.changed.connect(self._repaint)

    @property
    def shown(self) -> int:
        """Number of certificates, collapsed or not."""
        return sum(line.node.record is not None for line in self._lines)

    @property
    def filtered(self) -> bool:
        """Whether a filter hides lines."""
        return bool(self._words)

    def set_nodes(self, nodes: tuple[Node, ...]) -> None:
        """Replace the nodes."""
        self._nodes = nodes
        self._lay_out()

    def set_filter(self, text: str) -> None:
        """Show lines that contain all words, those above them, and all below a matching State or CA."""
        self._words = text.casefold().split()
        self._lay_out()

    def node(self, index: Index) -> Node:
        """The node of a line."""
        return self._lines[index.internalId()].node

    def index_of(self, key: str) -> QModelIndex:
        """The line of the node `key`; an invalid index if it is not shown."""
        line = self._by_key.get(key)
        return QModelIndex() if line is None else self.createIndex(line.row, 0, line.number)

    def nodes(self, span: QItemSelectionRange) -> list[Node]:
        """The nodes of a range of lines below the same one."""
        above = span.parent()
        lines = self._lines[above.internalId()].below if above.isValid() else self._top
        return [line.node for line in lines[span.top() : span.bottom() + 1]]

    def selection_of(self, keys: Collection[str]) -> QItemSelection:
        """The visible lines of these nodes, in few ranges: Qt compares each with each."""
        selection, chosen = QItemSelection(), {line.number for key in keys if (line := self._by_key.get(key))}
        for lines in (self._top, *(line.below for line in self._lines if line.below)):
            begun: _Line | None = None
            for line, following in zip_longest(lines, lines[1:]):
                begun = begun or line if line.number in chosen else None
                if begun is not None and (following is None or following.number not in chosen):
                    last = self.createIndex(line.row, len(self._fields) - 1, line.number)
                    selection.append(QItemSelectionRange(self.createIndex(begun.row, 0, begun.number), last))
        return selection

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008 - Qt's signature
        lines = self._lines[parent.internalId()].below if parent.isValid() else self._top
        if not (0 <= row < len(lines) and 0 <= column < len(self._fields)):
            return QModelIndex()
        return self.createIndex(row, column, lines[row].number)

    def parent(self, index: Index = QModelIndex()) -> Any:  # noqa: B008 - Qt's signature
        if not index.isValid():
            return QModelIndex()
        above = self._lines[index.internalId()].above
        return QModelIndex() if above is None else self.createIndex(above.row, 0, above.number)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        if not parent.isValid():
            return len(self._top)
        return len(self._lines[parent.internalId()].below) if parent.column() == 0 else 0

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return len(self._fields)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._fields[section].title
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        answer = self._answers[index.column()].get(role)
        return None if answer is None else answer(self._lines[index.internalId()].node)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Certificates can be dragged."""
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        return _DRAGGED if self._lines[index.internalId()].node.record is not None else _CHOSEN

    def supportedDragActions(self) -> Qt.DropAction:  # noqa: N802 - Qt names it
        return Qt.DropAction.CopyAction

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        """The certificates as PEM: each as a file, and all as text."""
        data = QMimeData()
        nodes = {index.internalId(): self.node(index) for index in indexes}.values()
        records = [(node, node.record) for node in nodes if node.record is not None]
        urls = []
        for node, record in records:
            name = ExportItem(node.title, "").file_name("pem")
            path = Path(self._files.filePath(name))
            if path.exists():
                path = path.with_name(f"{path.stem}-{record.sha256[:8]}.pem")
            path.write_bytes(as_pem(record.certificate))
            urls.append(QUrl.fromLocalFile(str(path)))
        data.setUrls(urls)
        data.setText("".join(as_pem(record.certificate).decode("ascii") for _, record in records))
        return data

    def _lay_out(self) -> None:
        self.beginResetModel()
        self._lines, self._by_key = [], {}
        self._top = self._lines_of(self._nodes, None, _wanted(self._words))
        self.endResetModel()

    def _lines_of(self, nodes: Sequence[Node], above: _Line | None, wanted: Callable[[Node], bool]) -> list[_Line]:
        found: list[_Line] = []
        for node in nodes:
            fits = wanted(node)
            if not fits and not _any_below(node, wanted):
                continue
            line = _Line(node, len(found), above, len(self._lines), [])
            self._lines.append(line)
            self._by_key[node.key] = line
            line.below = self._lines_of(node.children, line, _everything if fits else wanted)
            found.append(line)
        return found

    def _repaint(self) -> None:
        self.layoutChanged.emit()


def _wanted(words: Sequence[str]) -> Callable[[Node], bool]:
    return lambda node: node.fits(words)


def _everything(_node: Node) -> bool:
    return True


def _any_below(node: Node, wanted: Callable[[Node], bool]) -> bool:
    return any(wanted(child) or _any_below(child, wanted) for child in node.children)
