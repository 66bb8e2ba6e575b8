"""The tab of certificates: the tree of authorities at the left, all about what is chosen at the right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from cryptography import x509
from PySide6.QtCore import QMimeData, Qt, QTimer
from PySide6.QtGui import QAction, QGuiApplication, QHideEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from labconsole.security.pki.records import CertificateRecord, State
from labconsole_certificates.panel.certificates.authority_forms import AuthorityForms
from labconsole_certificates.panel.certificates.certificate_sight import (
    Shown,
    certificate_shown,
    several_shown,
    state_shown,
    two_shown,
)
from labconsole_certificates.panel.certificates.changing import CertificateActions
from labconsole_certificates.panel.certificates.detail_pane import DetailPane
from labconsole_certificates.panel.certificates.file_pane import FilePane
from labconsole_certificates.panel.certificates.first_start import FirstStart
from labconsole_certificates.panel.certificates.tree_nodes import Node, nodes_of
from labconsole_certificates.panel.certificates.tree_view import TreeView
from labconsole_certificates.panel.desk import Desk
from labconsole_certificates.panel.tab import Sight, Tab, TabServices
from labconsole_ui.plain_text import plain_label

_SPLIT_KEY = "certificates/split"
_COLUMNS_KEY = "certificates/columns"
_TREE_WIDTH, _DETAIL_WIDTH = 600, 440
"""At first, as a ratio."""
_TYPED_MS = 150
"""The tree is filtered when no letter came for so long."""


class CertificatesView(Tab):
    """Tree, filter, detail; files that are looked into; the dialogs of one's own CAs."""

    key: ClassVar[str] = "certificates"
    icon: ClassVar[str] = "certificate"

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        theme = services.page.theme
        self._sight: Sight | None = None
        self._wanted = 0
        self._pinned: x509.Certificate | None = None
        self._to_select: int | None = None
        self._desk = Desk(services, self)
        self.tree = TreeView(theme, self)
        self.detail = DetailPane(theme, self)
        self.forms = AuthorityForms(self._desk, self._chosen_state, self)
        self.file_pane = FilePane(self._desk, self.detail, self.forms, self)
        self.actions_of_one = CertificateActions(self._desk, self.chosen, self)
        self.first_start = FirstStart(theme, self)
        self.search = QLineEdit(self)
        self.search.setPlaceholderText(self.tr("Find: name, State, purpose, status, key, fingerprint"))
        self.search.setAccessibleName(self.tr("Filter the certificates"))
        self.search.setClearButtonEnabled(True)
        self.removed_button = QPushButton(self.tr("Remo&ved"), self)
        self.removed_button.setCheckable(True)
        self.removed_button.setToolTip(self.tr("Show removed certificates too: they can be restored"))
        self.new_button = QPushButton(self.tr("&New CA"), self)
        self.new_button.setMenu(self.forms.menu)
        theme.bind_icon(self.new_button, "authority")
        self.count = plain_label("", self)
        self.count.setProperty("muted", True)
        self._typed = QTimer(self)
        self._typed.setSingleShot(True)
        self._typed.setInterval(_TYPED_MS)
        self._arrange()
        self._connect()

    def refresh(self, sight: Sight) -> None:
        """Build the tree anew, in the background."""
        self._sight = sight
        empty = not sight.snapshot.states and not sight.snapshot.certificates
        self.forms.refresh(sight.snapshot)
        self.file_pane.refresh(sight.snapshot)
        self.stack.setCurrentWidget(self.first_start if empty and not self.file_pane.open else self.split)
        self._desk.look(partial(nodes_of, sight, removed=self.removed_button.isChecked()), self._show_nodes)

    def take(self, paths: Sequence[Path]) -> None:
        """Look into files that were dropped."""
        self.file_pane.look_into(paths)

    def select(self, certificate: int) -> None:
        """Choose the certificate of this id, as soon as it is in the tree."""
        self.search.clear()
        self._filter()
        self._to_select = certificate
        self._select_wanted()

    def chosen(self) -> CertificateRecord | None:
        """The one certificate that is selected."""
        nodes = self.tree.selected_nodes()
        return nodes[0].record if len(nodes) == 1 else None

    def _chosen_state(self) -> State | None:
        """The State that is selected, or that the selected certificate is of."""
        nodes = self.tree.selected_nodes()
        return nodes[0].state if len(nodes) == 1 else None

    def hideEvent(self, event: QHideEvent) -> None:
        """Remember how wide everything is."""
        super().hideEvent(event)
        self.services.page.state.keep(_SPLIT_KEY, self.split.saveState())
        self.services.page.state.keep(_COLUMNS_KEY, self.tree.header().saveState())

    # The tree

    def _show_nodes(self, nodes: tuple[Node, ...]) -> None:
        self.tree.show_nodes(nodes)
        self._count_shown()
        self._select_wanted()

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
        if self.detail.shown is None and not self.file_pane.open:
            self._show_detail()

    def _toggle_removed(self) -> None:
        if self._sight is not None:
            self.refresh(self._sight)

    # The detail

    def _rebuilt(self) -> None:
        """What was selected is so again, and may be gone or changed; a file that is looked into stays in front."""
        if not self.file_pane.open:
            self._show_detail()

    def _show_detail(self) -> None:
        sight = self._sight
        if sight is None:
            return
        nodes = self.tree.selected_nodes()
        self.file_pane.close()
        self.actions_of_one.follow(self.chosen(), sight.snapshot)
        work = _shown(nodes, self._pinned, sight)
        self._wanted += 1
        if work is None:
            self.detail.show_nothing(self.tr("Choose a State or certificate at the left; two to compare them."))
        else:
            self._desk.look(work, partial(self._show, self._wanted))

    def _show(self, number: int, shown: Shown) -> None:
        if number == self._wanted and not self.file_pane.open:
            pinned = self._pinned is not None and shown.record is not None and shown.record.certificate == self._pinned
            self.detail.show_thing(shown, hint=self._next_beside() if pinned else "", pinned=pinned)

    def _pin(self, on: bool) -> None:
        """The next certificate that is chosen stands beside this one, which may be that of a file."""
        looked, record = self.file_pane.thing, self.chosen()
        shown = looked.certificate if looked is not None else record.certificate if record is not None else None
        self._pinned = shown if on else None
        if looked is None:
            self._show_detail()
        elif on:
            self.detail.say(self._next_beside())

    def _next_beside(self) -> str:
        return self.tr("Choose another certificate in the tree: it is shown beside this one.")

    # Pasting

    def _paste(self) -> None:
        self._take_content(QGuiApplication.clipboard().mimeData())

    def _take_content(self, content: QMimeData) -> None:
        paths = [Path(url.toLocalFile()) for url in content.urls() if url.isLocalFile()]
        if paths:
            self.take(paths)
        elif content.hasText() and content.text().strip():
            self.file_pane.look_at_text(content.text())

    def _copy(self) -> None:
        indexes = self.tree.selectionModel().selectedRows()
        if indexes:
            QGuiApplication.clipboard().setText(self.tree.tree.mimeData(indexes).text())

    # Putting together

    def _connect(self) -> None:
        self.search.textChanged.connect(lambda _text: self._typed.start())
        self.search.returnPressed.connect(self.tree.setFocus)
        self._key(self.search, self.tr("Go to the tree"), QKeySequence(Qt.Key.Key_Down), self.tree.setFocus)
        self._typed.timeout.connect(self._filter)
        self.removed_button.toggled.connect(lambda _on: self._toggle_removed())
        self.tree.chosen.connect(self._show_detail)
        self.tree.rebuilt.connect(self._rebuilt)
        self.tree.opened.connect(self.detail.view.setFocus)
        self.detail.compared.connect(self._pin)
        self.detail.set_actions(self.actions_of_one.all)
        self.detail.hand_out.handed.connect(self._desk.good)
        self.detail.hand_out.failed.connect(self._desk.bad)
        self.file_pane.opened.connect(lambda: self.stack.setCurrentWidget(self.split))
        self.file_pane.closed.connect(self._file_closed)
        self.file_pane.taken.connect(self.select)
        self.first_start.create_wanted.connect(self.forms.create_state)
        self.first_start.import_wanted.connect(lambda: self.forms.import_authority())
        self.first_start.drop_box.files.connect(self.take)
        self.first_start.drop_box.pasted.connect(
            lambda data: self.file_pane.look_at_text(data.decode("utf-8", "replace"))
        )
        copy = self._key(self.tree, self.tr("Copy as PEM"), QKeySequence.StandardKey.Copy, self._copy)
        self.tree.addActions([copy, *self.actions_of_one.all])
        self._key(self, self.tr("Paste"), QKeySequence.StandardKey.Paste, self._paste)
        self._key(self, self.tr("Find"), QKeySequence.StandardKey.Find, self.search.setFocus)
        self._key(self, self.tr("Read again"), QKeySequence.StandardKey.Refresh, self.services.read_again)

    def _file_closed(self) -> None:
        if self._sight is not None:
            empty = not self._sight.snapshot.states and not self._sight.snapshot.certificates
            self.stack.setCurrentWidget(self.first_start if empty else self.split)
            self._show_detail()

    def _key(
        self, where: QWidget, text: str, key: QKeySequence | QKeySequence.StandardKey, work: Callable[[], object]
    ) -> QAction:
        action = QAction(text, where)
        action.setShortcut(key)
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(lambda _checked=False: work())
        where.addAction(action)
        return action

    def _arrange(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(8)
        for widget in (self.new_button, self.search, self.removed_button):
            bar.addWidget(widget, 1 if widget is self.search else 0)
        left = QWidget(self)
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(bar)
        column.addWidget(self.tree, 1)
        column.addWidget(self.count)
        self.split = QSplitter(Qt.Orientation.Horizontal, self)
        self.split.setChildrenCollapsible(False)
        self.split.addWidget(left)
        self.split.addWidget(self.detail)
        self.split.setStretchFactor(0, 3)
        self.split.setStretchFactor(1, 2)
        self.split.setSizes([_TREE_WIDTH, _DETAIL_WIDTH])
        self.stack = QStackedWidget(self)
        self.stack.addWidget(self.split)
        self.stack.addWidget(self.first_start)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(12, 10, 12, 10)
        outer.addWidget(self.stack)
        self.split.restoreState(self.services.page.state.blob(_SPLIT_KEY))
        self.tree.header().restoreState(self.services.page.state.blob(_COLUMNS_KEY))
        self.setFocusProxy(self.search)


def _shown(nodes: Sequence[Node], pinned: x509.Certificate | None, sight: Sight) -> Callable[[], Shown] | None:
    """How to get what is to be shown for these lines; None where there is nothing."""
    records = tuple(node.record for node in nodes if node.record is not None)
    if len(nodes) == 1 and nodes[0].state is not None and not records:
        return partial(state_shown, nodes[0].state, sight)
    if len(records) == 2:
        return partial(two_shown, records[0].certificate, records[1].certificate, records)
    if len(records) == 1:
        if pinned is not None and pinned != records[0].certificate:
            return partial(two_shown, pinned, records[0].certificate, records)
        return partial(certificate_shown, records[0], sight)
    return partial(several_shown, records) if records else None
