"""The tab of certificates: the tree of authorities at the left, details of the selection at the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from cryptography import x509
from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QKeySequence
from PySide6.QtWidgets import QSplitter, QStackedWidget, QVBoxLayout, QWidget

from labconsole_certificates.panel.certificates.authority_forms import AuthorityForms
from labconsole_certificates.panel.certificates.certificate_actions import CertificateActions
from labconsole_certificates.panel.certificates.detail_pane import DetailPane
from labconsole_certificates.panel.certificates.file_pane import FilePane
from labconsole_certificates.panel.certificates.first_start import FirstStart
from labconsole_certificates.panel.certificates.selection_details import SelectionDetails, selection_details
from labconsole_certificates.panel.certificates.tree_browser import TreeBrowser, add_key
from labconsole_certificates.panel.certificates.tree_nodes import nodes_of
from labconsole_certificates.panel.tab import DatabaseReading, Tab, TabServices, TabWork

_SPLIT_KEY = "certificates/split"
_COLUMNS_KEY = "certificates/columns"
_TREE_WIDTH, _DETAIL_WIDTH = 600, 440
"""Initial ratio of the two sides."""


class CertificatesView(Tab):
    """Tree, filter, details; inspected files; the dialogs for own CAs."""

    key: ClassVar[str] = "certificates"
    chapter: ClassVar[str] = "reference/certificates-page.md#certificates"
    icon: ClassVar[str] = "certificate"

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self._reading: DatabaseReading | None = None
        self._wanted = 0
        self._pinned: x509.Certificate | None = None
        self._tab_work = TabWork(services, self)

    def pieces(self) -> Iterator[None]:
        """Build tree, details, and the first-start page."""
        theme = self.services.page.theme
        self.browser = TreeBrowser(theme, self)
        self.tree = self.browser.tree
        yield
        self.detail = DetailPane(theme, self)
        yield
        self.forms = AuthorityForms(self._tab_work, self.browser.state, self)
        self.file_pane = FilePane(self._tab_work, self.detail, self.forms, self)
        self.actions_of_one = CertificateActions(self._tab_work, self.browser.certificate, self)
        yield
        self.first_start = FirstStart(theme, self)
        yield
        self._arrange()
        self._connect()

    def refresh(self, reading: DatabaseReading) -> None:
        """Build the tree again, in the background."""
        self._reading = reading
        self.forms.refresh(reading.snapshot)
        self.file_pane.refresh(reading.snapshot)
        self._choose_side()
        self._tab_work.submit(partial(nodes_of, reading, removed=self.browser.removed), self.browser.show_nodes)

    def take(self, paths: Sequence[Path]) -> None:
        """Inspect files that were dropped."""
        self.file_pane.inspect_files(paths)

    def select(self, certificate: int) -> None:
        """Choose the certificate of this id, as soon as it is in the tree."""
        self.browser.select(certificate)

    def hideEvent(self, event: QHideEvent) -> None:
        """Store the widths."""
        super().hideEvent(event)
        if not self.building.complete:
            return
        self.services.page.state.set(_SPLIT_KEY, self.split.saveState())
        self.services.page.state.set(_COLUMNS_KEY, self.tree.header().saveState())

    def _choose_side(self) -> None:
        """Without States the first-start page is shown, unless a file is inspected."""
        snapshot = self._reading.snapshot if self._reading is not None else None
        empty = snapshot is not None and not snapshot.states and not snapshot.certificates
        self.stack.setCurrentWidget(self.first_start if empty and not self.file_pane.open else self.split)

    def _toggle_removed(self) -> None:
        if self._reading is not None:
            self.refresh(self._reading)

    # Details

    def _chosen(self) -> None:
        """Another selection in the tree closes an inspected file."""
        if self.file_pane.open:
            self.file_pane.close()
        else:
            self._show_detail()

    def _rebuilt(self) -> None:
        """Restore the selection, which may be gone or changed; an inspected file stays in front."""
        if not self.file_pane.open:
            self._show_detail()

    def _file_closed(self) -> None:
        self._choose_side()
        self._show_detail()

    def _show_detail(self) -> None:
        if self._reading is None:
            return
        self.actions_of_one.follow(self.browser.certificate(), self._reading.snapshot)
        work = selection_details(self.tree.selected_nodes(), self._pinned, self._reading)
        self._wanted += 1
        if work is None:
            self.detail.show_nothing(
                self.tr(
                    "Choose a State or certificate at the left; two to compare them. To inspect a file, drop it "
                    "anywhere on the window: PEM, DER, PKCS#12, a CSR, CRL or trust bundle."
                )
            )
        else:
            self._tab_work.submit(work, partial(self._show, self._wanted))

    def _show(self, number: int, shown: SelectionDetails) -> None:
        if number == self._wanted and not self.file_pane.open:
            pinned = self._pinned is not None and shown.record is not None and shown.record.certificate == self._pinned
            self.detail.show_object(shown, hint=self._next_compared() if pinned else "", pinned=pinned)

    def _pin(self, on: bool) -> None:
        """Compare this one, which may be that of a file, with the next certificate that is chosen."""
        inspected, record = self.file_pane.shown_object, self.browser.certificate()
        shown = inspected.certificate if inspected is not None else record.certificate if record is not None else None
        self._pinned = shown if on else None
        if inspected is None:
            self._show_detail()
        elif on:
            self.detail.say(self._next_compared())

    def _next_compared(self) -> str:
        return self.tr("Choose another certificate in the tree: it is shown next to this one.")

    def _exported(self, how: str) -> None:
        """Record the export of an object of the database in the audit list; an inspected file was never in it."""
        nodes = () if self.file_pane.open else self.tree.selected_nodes()
        records = [node.record for node in nodes if node.record is not None]
        if records:
            self._tab_work.note_export(records, lambda _done: self._tab_work.good(how))
        else:
            self._tab_work.good(how)

    # Layout

    def _connect(self) -> None:
        self.browser.removed_toggled.connect(self._toggle_removed)
        self.browser.set_new_menu(self.forms.menu)
        self.browser.open_button.clicked.connect(lambda _checked: self.file_pane.choose())
        self.tree.addActions(self.actions_of_one.all)
        self.tree.chosen.connect(self._chosen)
        self.tree.rebuilt.connect(self._rebuilt)
        self.tree.opened.connect(self.detail.view.setFocus)
        self.detail.compared.connect(self._pin)
        self.detail.set_actions(self.actions_of_one.all)
        self.detail.export_bar.exported.connect(self._exported)
        self.browser.copied.connect(self._exported)
        self.tree.dragged.connect(lambda: self._exported(self.tr("What is selected was dragged out.")))
        self.detail.export_bar.failed.connect(self._tab_work.bad)
        self.file_pane.opened.connect(self._choose_side)
        self.file_pane.closed.connect(self._file_closed)
        self.file_pane.imported.connect(self.select)
        self.first_start.create_wanted.connect(self.forms.create_state)
        self.first_start.import_wanted.connect(lambda: self.forms.import_authority())
        self.first_start.drop_box.files.connect(self.take)
        self.first_start.drop_box.pasted.connect(self.file_pane.inspect_data)
        keys = QKeySequence.StandardKey
        for key, text, work in (
            (keys.Paste, self.tr("Paste"), self.file_pane.paste),
            (keys.Find, self.tr("Find"), self.browser.search.setFocus),
            (keys.Refresh, self.tr("Read again"), self.services.read_again),
        ):
            add_key(self, text, QKeySequence(key), work)

    def _arrange(self) -> None:
        self.stack = QStackedWidget(self)
        self.split = QSplitter(Qt.Orientation.Horizontal, self.stack)
        self.split.setChildrenCollapsible(False)
        self.split.setHandleWidth(12)
        self.split.addWidget(self.browser)
        self.split.addWidget(self.detail)
        self.split.setStretchFactor(0, 3)
        self.split.setStretchFactor(1, 2)
        self.split.setSizes([_TREE_WIDTH, _DETAIL_WIDTH])
        self.stack.addWidget(self.split)
        self.stack.addWidget(self.first_start)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(12, 10, 12, 10)
        outer.addWidget(self.stack)
        self.split.restoreState(self.services.page.state.blob(_SPLIT_KEY))
        self.tree.restore_columns(self.services.page.state.blob(_COLUMNS_KEY))
        self.setFocusProxy(self.browser)
