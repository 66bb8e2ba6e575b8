"""The left side of the tab: the tree with its filter, the switch for removed ones, and the count."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QPushButton, QVBoxLayout, QWidget

from labconsole.security.pki.records import CertificateRecord, State
from labconsole_certificates.panel.certificates.tree_nodes import Node
from labconsole_certificates.panel.certificates.tree_view import TreeView
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label

_TYPED_MS = 150
"""Delay between the last key and the filter."""


class TreeBrowser(QWidget):
    """`removed_toggled` is emitted by the switch for removed certificates; `tree` reports the selection."""

    removed_toggled = Signal()
    copied = Signal(str)
    """Carries a message that the selection was copied."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._to_select: int | None = None
        self.tree = TreeView(theme, self)
        self.search = QLineEdit(self)
        self.search.setPlaceholderText(self.tr("Find: name, State, status …"))
        self.search.setToolTip(self.tr("Words of name, State, purpose, status, key or fingerprint"))
        self.search.setAccessibleName(self.tr("Filter the certificates"))
        self.search.setClearButtonEnabled(True)
        self.removed_button = QPushButton(self.tr("Remove&d"), self)
        self.removed_button.setCheckable(True)
        self.removed_button.setToolTip(self.tr("Show removed certificates too: they can be restored"))
        self.new_button = QPushButton(self.tr("&New CA"), self)
        theme.bind_icon(self.new_button, "authority")
        self.open_button = QPushButton(self.tr("&Open file …"), self)
        self.open_button.setToolTip(self.tr("Inspect a file, and import what is in it if you like"))
        theme.bind_icon(self.open_button, "import")
        self.count = plain_label("", self)
        self.count.setProperty("muted", True)
        self._typed = QTimer(self)
        self._typed.setSingleShot(True)
        self._typed.setInterval(_TYPED_MS)
        self._typed.timeout.connect(self._filter)
        self.search.textChanged.connect(lambda _text: self._typed.start())
        self.search.returnPressed.connect(self.tree.setFocus)
        self.removed_button.toggled.connect(lambda _on: self.removed_toggled.emit())
        add_key(self.search, self.tr("Go to the tree"), QKeySequence(Qt.Key.Key_Down), self.tree.setFocus)
        add_key(self.tree, self.tr("Copy as PEM"), QKeySequence(QKeySequence.StandardKey.Copy), self._copy)
        self._arrange()

    @property
    def removed(self) -> bool:
        """Whether removed certificates are shown."""
        return self.removed_button.isChecked()

    def set_new_menu(self, menu: QMenu) -> None:
        """The menu of the button for new CAs."""
        self.new_button.setMenu(menu)

    def show_nodes(self, nodes: tuple[Node, ...]) -> None:
        """Show this tree."""
        self.tree.show_nodes(nodes)
        self._count_shown()
        self._select_wanted()

    def select(self, certificate: int) -> None:
        """Choose the certificate of this id, as soon as it is in the tree; clears the filter."""
        self.search.clear()
        self._filter()
        self._to_select = certificate
        self._select_wanted()

    def certificate(self) -> CertificateRecord | None:
        """The selected certificate, if it is the only one."""
        node = self.tree.selected_one()
        return node.record if node is not None else None

    def state(self) -> State | None:
        """The selected State, or that of the selected certificate."""
        node = self.tree.selected_one()
        return node.state if node is not None else None

    def _select_wanted(self) -> None:
        if self._to_select is not None and self.tree.select(f"certificate:{self._to_select}"):
            self._to_select = None

    def _filter(self) -> None:
        self._typed.stop()
        self.tree.set_filter(self.search.text())
        self._count_shown()

    def _count_shown(self) -> None:
        shown = self.tree.tree.shown
        said = self.tr("{0} certificate") if shown == 1 else self.tr("{0} certificates")
        if self.tree.tree.filtered:
            said = self.tr("{0} found")
        self.count.setText(said.format(shown))

    def _copy(self) -> None:
        indexes = self.tree.selectionModel().selectedRows()
        if indexes:
            QGuiApplication.clipboard().setText(self.tree.tree.mimeData(indexes).text())
            self.copied.emit(self.tr("What is selected was copied as PEM."))

    def _arrange(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(8)
        bar.addWidget(self.new_button)
        bar.addWidget(self.open_button)
        bar.addWidget(self.search, 1)
        bar.addWidget(self.removed_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(bar)
        column.addWidget(self.tree, 1)
        column.addWidget(self.count)
        self.setFocusProxy(self.search)


def add_key(where: QWidget, text: str, key: QKeySequence, work: Callable[[], object]) -> None:
    """Bind `key` to `work` while the focus is in `where`; a menu of its actions shows it too."""
    action = QAction(text, where)
    action.setShortcut(key)
    action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
    action.triggered.connect(lambda _checked=False: work())
    where.addAction(action)
