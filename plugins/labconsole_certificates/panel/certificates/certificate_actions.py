"""The menu of a certificate: export with its key, name for trials, rotation, revocation, remove and restore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence, Qt
from PySide6.QtWidgets import QWidget

from labconsole.security.pki.records import CertificateRecord, FileKey
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.removal import Remove, Restore
from labconsole_certificates.panel.exchange.identity_naming import open_naming
from labconsole_certificates.panel.export_bar import ExportItem
from labconsole_certificates.panel.form_editors import fixed
from labconsole_certificates.panel.revocation.revocation_view import RevocationView
from labconsole_certificates.panel.rotation.rotation_view import RotationView
from labconsole_certificates.panel.tab import TabWork
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.widgets.message_bar import Message, Tone


class CertificateActions(QObject):
    """Actions on the chosen certificate."""

    def __init__(self, tab_work: TabWork, chosen: Callable[[], CertificateRecord | None], page: QWidget) -> None:
        super().__init__(page)
        self._tab_work = tab_work
        self._chosen = chosen
        self._page = page
        self._snapshot = Snapshot()
        self.export = self._action(self.tr("Export with its key (PKCS#12) …"), "export", self.export_pkcs12)
        self.name = self._action(self.tr("Name for trials …"), "tag", self.ask_name)
        self.rotate = self._action(self.tr("Rotate …"), "rotation", self.show_rotation)
        self.revoke = self._action(self.tr("Revoke …"), "revoked", self.show_revocation)
        self.remove = self._action(self.tr("Remove"), "trash", self.remove_it, QKeySequence.StandardKey.Delete)
        self.restore = self._action(self.tr("Restore"), "undo", self.restore_it)
        self.all = (self.export, self.name, self.rotate, self.revoke, self.remove, self.restore)

    def follow(self, record: CertificateRecord | None, snapshot: Snapshot) -> None:
        """Offer the actions that are possible for this certificate."""
        self._snapshot = snapshot
        key = snapshot.key_by_id.get(record.key) if record is not None and record.key is not None else None
        there = record is not None and record.removed is None
        ends = record is not None and record.profile not in AUTHORITIES
        self.export.setEnabled(there and key is not None and isinstance(key.place, FileKey))
        self.name.setEnabled(there and ends and key is not None)
        self.rotate.setEnabled(there and key is not None)
        self.revoke.setEnabled(
            there and record is not None and record.revoked is None and _issued_here(record, snapshot)
        )
        self.remove.setEnabled(there)
        self.restore.setVisible(record is not None and not there)
        self.remove.setVisible(not self.restore.isVisible())

    def export_pkcs12(self, record: CertificateRecord) -> None:
        """Write certificate, chain and private key to a file under a password that is asked for."""
        name = short_name(record.certificate)
        self._tab_work.services.open_action(
            "certificates.export-pkcs12",
            {"certificate": record.sha256, "file": str(Path.home() / ExportItem(name, "").file_name("p12"))},
            {"certificate": fixed(record.sha256, name)},
        )

    def ask_name(self, record: CertificateRecord) -> OperationDialog | None:
        """Ask for the name under which trials use it."""
        state = self._snapshot.state_by_id.get(record.state) if record.state is not None else None
        return None if state is None else open_naming(self._tab_work.services, self._snapshot, [state], record)

    def show_rotation(self, record: CertificateRecord) -> None:
        """Show it in the rotation tab."""
        tab = self._tab_work.services.show_tab(RotationView.key)
        if isinstance(tab, RotationView):
            tab.choose(record.id)

    def show_revocation(self, record: CertificateRecord) -> None:
        """Show it in the revocation tab."""
        tab = self._tab_work.services.show_tab(RevocationView.key)
        if isinstance(tab, RevocationView):
            tab.choose(record.id)

    def remove_it(self, record: CertificateRecord) -> None:
        """Hide it; the message offers to undo that."""
        name = short_name(record.certificate)
        said = Message(
            Tone.INFO,
            self.tr("{name} was removed: it is hidden, nothing is lost.").format(name=name),
            link=(self.tr("Undo"), lambda: self.restore_it(record)),
        )
        self._tab_work.perform(
            Remove(), {"certificate": record.sha256}, lambda _done: self._tab_work.services.page.show_message(said)
        )

    def restore_it(self, record: CertificateRecord) -> None:
        """Show it again."""
        name = short_name(record.certificate)
        self._tab_work.perform(
            Restore(),
            {"certificate": record.sha256},
            lambda _done: self._tab_work.good(self.tr("{name} is shown again.").format(name=name)),
        )

    def _action(
        self,
        text: str,
        icon: str,
        work: Callable[[CertificateRecord], object],
        key: QKeySequence.StandardKey | None = None,
    ) -> QAction:
        action = QAction(text, self)
        self._tab_work.theme.bind_icon(action, icon)
        if key is not None:
            action.setShortcut(key)
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)

        def do() -> None:
            record = self._chosen()
            if record is not None:
                work(record)

        action.triggered.connect(lambda _checked=False: do())
        return action


def _issued_here(record: CertificateRecord, snapshot: Snapshot) -> bool:
    """Whether a CA whose key is stored here has issued it, and can revoke it."""
    return any(issuer.key is not None and issuer.id != record.id for issuer in snapshot.issuers_of(record))
