"""The tree of a packet's fields: expanded parts that stay so from packet to packet, and copies as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeView, QWidget

from labconsole.safe_text import shown
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_tooltip
from labconsole_v2x.inspection.field_tree import Node, as_text

Index = QModelIndex | QPersistentModelIndex
_COLLAPSED_AT_FIRST = frozenset(
    (
        *("Ethernet", "gnAddress", "positionConfidenceEllipse", "Certificate", "signature", "rSig", "publicKey"),
        *("pathHistory", "traces", "mediaDependentData"),
    )
)
_MOST_EXPANDED = 2000
"""Of a tree with more fields, only the parts on top are expanded at first."""


class _Entry(NamedTuple):
    """A node with the entry of its parent (-1 on top), its row there, and the entries of its children."""

    node: Node
    parent: int
    row: int
    children: range
    path: tuple[str, ...]


class FieldEntries:
    """The nodes of a tree by number; may be created on another thread than the window's."""

    def __init__(self, nodes: Sequence[Node] = ()) -> None:
        self.nodes = tuple(nodes)
        self.all: list[_Entry] = []
        waiting: list[tuple[Node, int, int, tuple[str, ...]]] = [
            (node, -1, row, (node.name,)) for row, node in enumerate(nodes)
        ]
        while waiting:
            below = []
            first = len(self.all) + len(waiting)
            for node, parent, row, path in waiting:
                number = len(self.all)
                self.all.append(_Entry(node, parent, row, range(first, first + len(node.children)), path))
                first += len(node.children)
                below += [(child, number, at, (*path, child.name)) for at, child in enumerate(node.children)]
            waiting = below

    def find(self, path: Sequence[Node]) -> int:
        """The entry of the last node of a path from the top."""
        number, choice = -1, range(len(self.nodes))
        for node in path:
            number = next(each for each in choice if self.all[each].node is node)
            choice = self.all[number].children
        return number


class _FieldModel(QAbstractItemModel):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.entries = FieldEntries()

    def show_entries(self, entries: FieldEntries) -> None:
        self.beginResetModel()
        self.entries = entries
        self.endResetModel()

    def index_of(self, number: int, column: int = 0) -> QModelIndex:
        return self.createIndex(self.entries.all[number].row, column, number) if number >= 0 else QModelIndex()

    def entry(self, index: Index) -> _Entry:
        return self.entries.all[index.internalId()]

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008 - Qt's signature
        children = self.entry(parent).children if parent.isValid() else range(len(self.entries.nodes))
        return self.createIndex(row, column, children[row]) if 0 <= row < len(children) else QModelIndex()

    def parent(self, index: Index = QModelIndex()) -> Any:  # noqa: B008 - Qt's signature
        return self.index_of(self.entry(index).parent) if index.isValid() else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        if not parent.isValid():
            return len(self.entries.nodes)
        return len(self.entry(parent).children)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 1

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        node = self.entry(index).node
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            text = shown(f"{node.name}: {node.value}" if node.value else node.name)
            octets = self.tr("{count} octets from {start} on").format(count=node.end - node.start, start=node.start)
            return text if role == Qt.ItemDataRole.DisplayRole else plain_tooltip(f"{text}\n{octets}")
        if role == Qt.ItemDataRole.ForegroundRole and node.fault:
            return self._theme.colour("bad")
        return None


class FieldTreeView(QTreeView):
    """`chosen` carries the node that was selected by a click or a key."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._expanded: dict[tuple[str, ...], bool] = {}
        """What the operator expanded or collapsed, by the names on the way to it."""
        self._arranging = False
        self._selected: tuple[str, ...] = ()
        """The names on the way to the field that was selected, in this packet or one before."""
        self._fields = _FieldModel(theme, self)
        self.setModel(self._fields)
        self.setAccessibleName(self.tr("Fields of the packet"))
        self.setFont(theme.font(FontRole.TABLE))
        self.setUniformRowHeights(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setIndentation(14)
        self.setStyleSheet(
            "QTreeView::item { padding: 2px 4px; }"
            "QAbstractScrollArea::corner { border: none; background: transparent; }"
        )
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)  # it never covers the selected field
        self.setHeaderHidden(True)
        self.header().setStretchLastSection(False)  # long values scroll
        self.header().setResizeContentsPrecision(0)  # measures the visible ones
        self.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.expanded.connect(lambda index: self._note(index, expanded=True))
        self.collapsed.connect(lambda index: self._note(index, expanded=False))
        self.selectionModel().currentChanged.connect(self._current_changed)
        self._add_action(self.tr("Copy field"), self.copy_field, QKeySequence.StandardKey.Copy)
        self._add_action(self.tr("Copy tree as text"), self.copy_tree)
        self._add_action(self.tr("Expand all"), self.expandAll)
        self._add_action(self.tr("Collapse all"), self.collapseAll)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def show_entries(self, entries: FieldEntries) -> None:
        """Show another packet's tree, with the same parts expanded and the same field selected."""
        index = self.currentIndex()
        if index.isValid():
            self._selected = self._fields.entry(index).path
        self._arranging = True
        self._fields.show_entries(entries)
        for number in self._to_expand(entries):
            self.expand(self._fields.index_of(number))
        same = next((number for number, entry in enumerate(entries.all) if entry.path == self._selected), -1)
        if same >= 0:
            self._go_to(self._fields.index_of(same))
        self._arranging = False

    @property
    def current(self) -> Node | None:
        """The selected node."""
        index = self.currentIndex()
        return self._fields.entry(index).node if index.isValid() else None

    def select(self, path: Sequence[Node]) -> None:
        """Select the last node of a path from the top, and make it visible."""
        index = self._fields.index_of(self._fields.entries.find(path))
        if index.isValid():
            self._arranging = True  # the way to it is not the operator's choice
            self._go_to(index)
            self._arranging = False

    def _go_to(self, index: QModelIndex) -> None:
        self.setCurrentIndex(index)
        across = self.horizontalScrollBar().value()
        self.scrollTo(index)
        self.horizontalScrollBar().setValue(across)  # the names stay in view

    def copy_field(self) -> None:
        """Copy the selected field and its parts as text, or the whole tree without a selection."""
        self._copy(self._fields.entries.nodes if self.current is None else (self.current,))

    def copy_tree(self) -> None:
        """Copy the whole tree as text."""
        self._copy(self._fields.entries.nodes)

    def _copy(self, nodes: tuple[Node, ...]) -> None:
        QGuiApplication.clipboard().setText(as_text(nodes) + "\n")

    def _add_action(self, text: str, do: Any, shortcut: QKeySequence.StandardKey | None = None) -> None:
        action = QAction(text, self)
        if shortcut is not None:
            action.setShortcut(shortcut)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(lambda _checked: do())
        self.addAction(action)

    def _to_expand(self, entries: FieldEntries) -> Iterable[int]:
        many = len(entries.all) > _MOST_EXPANDED
        for number, entry in enumerate(entries.all):
            if many and len(entry.path) > 2:
                return
            at_first = entry.path[-1] not in _COLLAPSED_AT_FIRST
            if entry.children and self._expanded.get(entry.path, at_first):
                yield number

    def _note(self, index: QModelIndex, *, expanded: bool) -> None:
        if not self._arranging:
            self._expanded[self._fields.entry(index).path] = expanded

    def _current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self.chosen.emit(self._fields.entry(current).node)
