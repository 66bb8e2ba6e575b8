"""The window's page of certificates: tabs over one snapshot of the database, dialogs of actions, dropped files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from labconsole import paths
from labconsole.clock import wall_now
from labconsole.errors import BadInput
from labconsole.model.field_spec import FieldSpec
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.parsing import ContentKind, kind_of, read_file
from labconsole_certificates.panel.audit_view import AuditView
from labconsole_certificates.panel.certificates.certificates_view import CertificatesView
from labconsole_certificates.panel.exchange.exchange_view import ExchangeView
from labconsole_certificates.panel.requests.requests_view import RequestsView
from labconsole_certificates.panel.revocation.revocation_view import RevocationView
from labconsole_certificates.panel.rotation.rotation_view import RotationView
from labconsole_certificates.panel.snapshot_watch import SnapshotWatch
from labconsole_certificates.panel.tab import DatabaseReading, Tab, TabServices
from labconsole_certificates.panel.trust.trust_view import TrustView
from labconsole_ui.form.editors import Editor
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.form.token_editor import TokenEditor
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.plugin_page import PageContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import PageBuilder
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.message_bar import Message, Tone

_BUNDLES = "trust"
"""Endings of bundles, which the trust tab compares with their State; other files are shown by the first tab."""
_ELSE = "certificates"


class DroppedFileRouter(QObject):
    """Sorts dropped files: `sorted` carries them by the keys of tabs, `refused` a sentence on an unreadable one."""

    sorted = Signal(dict)
    refused = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._background = Background(self)

    def sort(self, paths: Sequence[Path]) -> None:
        """Inspect each file, in the background."""
        self._background.submit(partial(_sorted, tuple(paths)), self._report, self.refused.emit)

    def _report(self, found: tuple[dict[str, list[Path]], list[str]]) -> None:
        by_tab, refused = found
        for sentence in refused:
            self.refused.emit(sentence)
        if by_tab:
            self.sorted.emit(by_tab)


def _sorted(paths: Sequence[Path]) -> tuple[dict[str, list[Path]], list[str]]:
    by_tab: dict[str, list[Path]] = {}
    refused = []
    for path in paths:
        try:
            kind = kind_of(read_file(path))
        except BadInput as error:
            refused.append(str(error))
            continue
        by_tab.setdefault(_BUNDLES if kind is ContentKind.CMS else _ELSE, []).append(path)
    return by_tab, refused


_TAB_KEY = "certificates/tab"


class CertificatesPage(QWidget):
    """The page. Tabs are built when they first come to the front, and follow the database while they are visible.

    It opens as an empty frame; the tabs are there when `building` is complete.
    """

    refreshed = Signal()
    """The tab in front is current."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._reading: DatabaseReading | None = None
        self._shown: dict[str, DatabaseReading] = {}
        self._built: dict[str, Tab] = {}
        self._classes: dict[str, type[Tab]] = {}
        self.services = TabServices(
            page=context,
            directory=paths.pki_dir(),
            open_action=self._open_action,
            show_tab=self.show_tab,
            show_certificate=self._show_certificate,
            read_again=self._read_again,
        )
        self.watch = SnapshotWatch(self.services.directory, self)
        self.watch.seen.connect(self._seen)
        self.watch.failed.connect(self._say_unread)
        self._sorting = DroppedFileRouter(self)
        self._sorting.sorted.connect(self._route_files)
        self._sorting.refused.connect(self._say_bad)
        self.building = PageBuilder(self, self.pieces())

    def pieces(self) -> Iterator[None]:
        """Build the empty tabs, then the one in front."""
        self.tabs = QTabWidget(self)
        self.tabs.setDocumentMode(True)
        self.tabs.setIconSize(QSize(16, 16))
        self.tabs.setAccessibleName(self.tr("Certificates"))
        self.tabs.tabBar().setAccessibleName(self.tr("Certificates"))
        self.tabs.tabBar().setExpanding(False)
        for made, title in self._tabs():
            self._classes[made.key] = made
            holder = QWidget()
            holder.setObjectName(made.key)
            set_chapter(holder, made.chapter)
            QVBoxLayout(holder).setContentsMargins(0, 0, 0, 0)
            self.tabs.addTab(holder, title)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.tabs)
        kept = self._context.state.text(_TAB_KEY)
        self.tabs.setCurrentIndex(max(0, list(self._classes).index(kept) if kept in self._classes else 0))
        self.tabs.currentChanged.connect(self._tab_changed)
        yield
        self._context.theme.changed.connect(self._paint_icons)
        self._paint_icons()
        yield
        self._build_current()
        self._refresh_current()

    def _tabs(self) -> tuple[tuple[type[Tab], str], ...]:
        """All tabs from left to right, with their titles."""
        return (
            (CertificatesView, self.tr("Certificates")),
            (RequestsView, self.tr("Requests")),
            (ExchangeView, self.tr("Exchange")),
            (TrustView, self.tr("Trust")),
            (RotationView, self.tr("Rotation")),
            (RevocationView, self.tr("Revocation")),
            (AuditView, self.tr("Audit")),
        )

    def open_files(self, files: Sequence[Path]) -> None:
        """Show the contents of these files in the tabs for them; nothing is changed by that."""
        self._sorting.sort(files)

    def show_tab(self, key: str) -> Tab:
        """Bring a tab to the front, completely built. Raises KeyError: there is no tab with this key."""
        self.building.finish()
        self.tabs.setCurrentIndex(list(self._classes).index(key) if key in self._classes else _unknown(key))
        self._built[key].building.finish()
        return self._built[key]

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the database while the page is visible."""
        super().showEvent(event)
        self.watch.set_active(True)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.watch.set_active(False)

    # Requests of the tabs

    def _open_action(
        self, name: str, values: Mapping[str, Any], editors: Mapping[str, EditorFactory] | None = None
    ) -> OperationDialog:
        action = self._context.plugins.operation(name)
        with_tokens: dict[str, EditorFactory] = {"token": self._token_editor, **(editors or {})}
        dialog = OperationDialog(self.window(), action, self._context.theme, values, with_tokens)
        dialog.ended.connect(lambda _end: self._read_again())
        dialog.open()
        return dialog

    def _token_editor(self, spec: FieldSpec, parent: QWidget) -> Editor:
        return TokenEditor(spec, parent, self.tr("None: an encrypted file"))

    def _show_certificate(self, certificate: int) -> None:
        tab = self.show_tab(CertificatesView.key)
        if isinstance(tab, CertificatesView):
            tab.select(certificate)

    def _read_again(self) -> None:
        self.watch.read_again()

    # Display

    def _seen(self, reading: DatabaseReading | None) -> None:
        self._reading = reading or DatabaseReading(Snapshot(), {}, wall_now())
        self.building.when_complete(self._refresh_current)

    def _tab_changed(self) -> None:
        self._build_current()
        self._context.state.set(_TAB_KEY, self._current_key)
        self._refresh_current()

    @property
    def _current_key(self) -> str:
        holder = self.tabs.currentWidget()
        return holder.objectName() if holder is not None else ""

    def _build_current(self) -> None:
        key, holder = self._current_key, self.tabs.currentWidget()
        if key in self._built or holder is None:
            return
        tab = self._built[key] = self._classes[key](self.services, holder)
        tab.building.on_failure = self.building.on_failure
        layout = holder.layout()
        if layout is not None:
            layout.addWidget(tab)
        self.tabs.setFocusProxy(tab)

    def _refresh_current(self) -> None:
        tab = self._built.get(self._current_key)
        if tab is not None:
            tab.building.when_complete(partial(self._refresh, tab.key))

    def _refresh(self, key: str) -> None:
        if self._reading is not None and self._shown.get(key) is not self._reading:
            self._shown[key] = self._reading
            self._built[key].refresh(self._reading)
            self.refreshed.emit()

    def _paint_icons(self) -> None:
        for index, made in enumerate(self._classes.values()):
            self.tabs.setTabIcon(index, self._context.theme.icon(made.icon, "muted"))

    # Dropped files

    def _route_files(self, by_tab: dict[str, list[Path]]) -> None:
        for key, files in by_tab.items():
            self.show_tab(key).take(files)

    def _say_unread(self, sentence: str) -> None:
        self._context.show_message(Message(Tone.BAD, sentence))

    def _say_bad(self, sentence: str) -> None:
        self._context.show_message(Message(Tone.BAD, sentence))


def _unknown(key: str) -> int:
    raise KeyError(key)
