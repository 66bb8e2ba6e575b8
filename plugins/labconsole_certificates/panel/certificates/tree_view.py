"""The tree of authorities: its columns, expanded and selected lines, keys and menu."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QByteArray, QItemSelectionModel, QModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeView, QWidget

from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole_certificates.panel.certificates.tree_model import TreeModel
from labconsole_certificates.panel.certificates.tree_nodes import Node
from labconsole_certificates.panel.export_bar import drag_mime_data
from labconsole_certificates.panel.labels import STATUS_STYLES, day
from labconsole_ui.tables.record_table import Field, cut_to
from labconsole_ui.theme.theme import FontRole, Theme

_UNFOLDED_AT_MOST = 250
"""Up to this number of lines a filter expands them all."""
_UNFOLDED_AT_FIRST = 100
_FIRST_STATES = 3
_WIDTHS = ((220, 300), (162, 170), (100, 110), (84, 140), (120, 150), (90, 120))
"""Least and largest width of all columns but the last, px: collapsed lines are not measured at first."""
_VISIBLE_LINES = 4
"""Number of columns visible without scrolling: all that identify the certificate, and its status."""
_MARGIN_PX = 6
_MEASURED_LINES = 60


class TreeView(QTreeView):
    """`chosen` is emitted when other lines are selected, `rebuilt` when the tree is a new one.

    `opened` is emitted by Enter or a double click, `dragged` when lines were dropped elsewhere.
    """

    chosen = Signal()
    rebuilt = Signal()
    opened = Signal()
    dragged = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.tree = TreeModel(self._columns(theme), theme, self)
        self._unfolded: set[str] | None = None
        self._restoring = False
        self._columns_restored = False
        self.setModel(self.tree)
        self.setAccessibleName(self.tr("Authorities and certificates"))
        self.setFont(theme.font(FontRole.TABLE))
        self.setUniformRowHeights(True)
        self.setAlternatingRowColors(True)
        self.setIconSize(QSize(18, 18))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setDragEnabled(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragOnly)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setStyleSheet("QTreeView::item { padding: 3px 4px; }")
        header = self.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setSectionsMovable(True)
        header.setFirstSectionMovable(False)
        header.setResizeContentsPrecision(_MEASURED_LINES)
        self.selectionModel().selectionChanged.connect(self._selection_changed)
        self.doubleClicked.connect(lambda _index: self.opened.emit())

    def startDrag(self, supportedActions: Qt.DropAction) -> None:  # noqa: N802, N803 - Qt names them
        if drag_mime_data(self, self.tree.mimeData(self.selectionModel().selectedRows())):
            self.dragged.emit()

    def show_nodes(self, nodes: tuple[Node, ...]) -> None:
        """Show this tree with the same lines expanded and selected as before."""
        first = self._unfolded is None
        self._keep(lambda: self.tree.set_nodes(nodes))
        if first and nodes:
            self._unfolded = set()
            self._unfold_first()
            if not self._columns_restored:
                self._fit_columns()

    def set_filter(self, text: str) -> None:
        """Show only lines that match."""
        self._keep(lambda: self.tree.set_filter(text))
        if self.tree.filtered and self.tree.shown <= _UNFOLDED_AT_MOST:
            self.expandAll()

    def selected_nodes(self) -> list[Node]:
        """The selected lines; by ranges, since reading them one by one is slow."""
        selection = self.selectionModel().selection()
        return [node for place in range(selection.size()) for node in self.tree.nodes(selection.at(place))]

    def selected_one(self) -> Node | None:
        """The selected line, if it is the only one."""
        selection = self.selectionModel().selection()
        alone = selection.size() == 1 and selection.at(0).height() == 1
        return self.tree.nodes(selection.at(0))[0] if alone else None

    def select(self, key: str) -> bool:
        """Select one line and scroll to it; False if it is not shown."""
        index = self.tree.index_of(key)
        if index.isValid():
            self.setCurrentIndex(index)
            self.scrollTo(index)
        return index.isValid()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.opened.emit()
        else:
            super().keyPressEvent(event)

    def restore_columns(self, state: QByteArray) -> None:
        """Restore widths and order; without stored ones, the columns fit the first tree."""
        self._columns_restored = self.header().restoreState(state)

    def _unfold_first(self) -> None:
        """Expand all States if there are few certificates, else the first ones."""
        if self.tree.shown <= _UNFOLDED_AT_FIRST:
            self.expandAll()
            return
        for row in range(min(_FIRST_STATES, self.tree.rowCount())):
            self.expand(self.tree.index(row, 0))

    def _fit_columns(self) -> None:
        wanted = []
        for column, (least, largest) in enumerate(_WIDTHS):
            self.resizeColumnToContents(column)
            wanted.append(max(least, min(largest, self.columnWidth(column) + _MARGIN_PX)))
        wanted[:_VISIBLE_LINES] = cut_to(wanted[:_VISIBLE_LINES], self.viewport().width())
        for column, width in enumerate(wanted):
            self.setColumnWidth(column, width)

    def _keep(self, change: Callable[[], None]) -> None:
        if not self.tree.filtered:
            self._unfolded = set(self._unfolded_keys()) if self.tree.rowCount() else self._unfolded
        selected = [node.key for node in self.selected_nodes()]
        current = self.currentIndex()
        current_key = self.tree.node(current).key if current.isValid() else ""
        self._restoring = True
        change()
        for key in self._unfolded or ():
            index = self.tree.index_of(key)
            if index.isValid():
                self.setExpanded(index, True)
        flags = QItemSelectionModel.SelectionFlag
        self.setAutoScroll(False)  # it would expand the lines above the current one
        self.selectionModel().setCurrentIndex(self.tree.index_of(current_key), flags.NoUpdate)
        self.setAutoScroll(True)
        self.selectionModel().select(self.tree.selection_of(selected), flags.Select)
        self._restoring = False
        self.rebuilt.emit()

    def _unfolded_keys(self, parent: QModelIndex = QModelIndex()) -> Iterator[str]:  # noqa: B008 - the root
        for row in range(self.tree.rowCount(parent)):
            index = self.tree.index(row, 0, parent)
            if self.tree.rowCount(index) and self.isExpanded(index):
                yield self.tree.node(index).key
                yield from self._unfolded_keys(index)

    def _selection_changed(self) -> None:
        if not self._restoring:
            self.chosen.emit()

    def _columns(self, theme: Theme) -> list[Field[Node]]:
        return [
            Field(self.tr("Name"), _title, icon=_icon, strong=lambda node: node.record is None, tooltip=_cause),
            Field(self.tr("Status"), lambda node: node.status_text, tone=_tone, icon=_status_icon, tooltip=_cause),
            Field(self.tr("Valid until"), lambda node: day(node.until) if node.until is not None else ""),
            Field(self.tr("For"), lambda node: node.holder),
            Field(self.tr("Purpose"), lambda node: node.purpose),
            Field(self.tr("Key"), lambda node: node.key_type),
            Field(self.tr("SHA-256"), lambda node: node.fingerprint),
        ]


def _title(node: Node) -> str:
    return node.title


def _cause(node: Node) -> str:
    return node.cause


def _icon(node: Node) -> tuple[str, str]:
    if node.record is None:
        return "state", "link" if node.local else "muted"
    name = "authority" if node.record.profile in AUTHORITIES else "certificate"
    return name, "link" if node.local else "muted"


def _tone(node: Node) -> str | None:
    if node.record is None:
        return "muted"
    return STATUS_STYLES[node.status][1] if node.status is not None else "muted"


def _status_icon(node: Node) -> tuple[str, str] | None:
    return STATUS_STYLES[node.status] if node.status is not None else None
