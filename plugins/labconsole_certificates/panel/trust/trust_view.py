"""The trust tab: the State x State matrix with a click to the cause, and the bundles by which trust is exchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from labconsole.errors import BadInput
from labconsole.model.operation import Result
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509 import parsing
from labconsole.security.x509.parsing import ContentKind
from labconsole_certificates.operations.certificate_import import Import
from labconsole_certificates.panel.drop_area import DropArea
from labconsole_certificates.panel.exchange.exchange_view import ExchangeView
from labconsole_certificates.panel.form_editors import one_name_of
from labconsole_certificates.panel.tab import DatabaseReading, Tab, TabServices, TabWork
from labconsole_certificates.panel.trust.bundle_dialog import BundleDialog
from labconsole_certificates.panel.trust.fingerprint_widgets import FingerprintDialog
from labconsole_certificates.panel.trust.matrix_cells import (
    CauseCard,
    ShownMatrix,
    cell_style,
    shown_matrix,
    status_label,
)
from labconsole_certificates.panel.trust.matrix_grid import TrustGrid
from labconsole_certificates.panel.trust.trust_dialog import TrustDialog, can_be_trusted
from labconsole_certificates.trust.bundle_inspection import BundleInspection, inspect_bundle
from labconsole_certificates.trust.roots_and_pins import WithdrawTrust
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import IconLabel
from labconsole_ui.widgets.layouts import FlowLayout
from labconsole_ui.widgets.message_bar import Message, Tone


class TrustView(Tab):
    """The tab with the matrix, its causes, and trust bundles."""

    key: ClassVar[str] = "trust"
    chapter: ClassVar[str] = "how-to/exchange-trust.md"
    icon: ClassVar[str] = "trust"

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self._tab_work = TabWork(services, self)
        self._snapshot: Snapshot | None = None
        self._shown: ShownMatrix | None = None
        theme = services.page.theme
        self.drop_box = DropArea(
            theme, self.tr("Drop another State's trust bundle, root or self-signed certificate"), self
        )
        self.drop_box.files.connect(self.take)
        self.drop_box.pasted.connect(self._take_data)
        self.make_button = self._button(self.tr("&Create bundle …"), self.make_bundle)
        self.trust_button = self._button(self.tr("&Trust …"), self.trust)
        self.read_button = self._button(self.tr("Read &out …"), self.show_fingerprints)
        self.grid = TrustGrid(theme, self)
        self.grid.chosen.connect(self._chosen)
        self.cause = CauseCard(theme, self)
        self.cause.certificate_wanted.connect(services.show_certificate)
        self.cause.exchange_wanted.connect(self._show_exchange)
        self.cause.withdrawal_wanted.connect(self._withdraw)
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.drop_box, 1)
        for button in (self.make_button, self.trust_button, self.read_button):
            top.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(8)
        column.addLayout(top)
        column.addWidget(_legend(theme, self))
        column.addWidget(self.grid, 1)
        column.addWidget(self.cause)

    def refresh(self, reading: DatabaseReading) -> None:
        """Show the current matrix."""
        self._snapshot = reading.snapshot
        own = any(state.local for state in reading.snapshot.states)
        for button in (self.make_button, self.trust_button, self.read_button):
            button.setEnabled(own)
        self._tab_work.submit(partial(shown_matrix, reading.snapshot, reading.at), self._show)

    def take(self, paths: Sequence[Path]) -> None:
        """Inspect bundles and certificates, one after another."""
        for path in paths:
            self._tab_work.read(path, self._take_data)

    def known(self, certificate: int) -> bool:
        """Whether the certificate with this id can be chosen here by now."""
        return self._snapshot is not None and certificate in self._snapshot.certificate_by_id

    def make_bundle(self) -> OperationDialog:
        """Sign a bundle of a State of this console, for its peers."""
        names = [state.name for state in self._snapshot.states if state.local] if self._snapshot is not None else []
        name = next(iter(names), "")
        file = Path.home() / f"{name}-{date.today().isoformat()}.bundle"
        return self.services.open_action(
            "certificates.make-bundle", {"state": name, "file": str(file)}, {"state": one_name_of(names)}
        )

    def trust(self) -> TrustDialog | None:
        """Trust a known root or self-signed certificate."""
        return None if self._snapshot is None else self._ask_trust(can_be_trusted(self._snapshot))

    def show_fingerprints(self) -> FingerprintDialog | None:
        """Show the fingerprints of the own roots."""
        if self._snapshot is None:
            return None
        dialog = FingerprintDialog(self.services.page.theme, self._snapshot, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()
        return dialog

    def _take_data(self, data: bytes) -> None:
        self._tab_work.submit(partial(_inspect, data), partial(self._arrived, data))

    def _arrived(self, data: bytes, inspection: BundleInspection | None) -> None:
        """Offer a bundle for import; certificates are imported, then trust in them is asked for."""
        if self._snapshot is None:
            return
        if inspection is None:
            self._tab_work.perform_on(Import(), data, {}, self._read_imported)
            return
        dialog = BundleDialog(self._tab_work, self._snapshot, inspection, data, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.imported.connect(self._tab_work.good)
        dialog.open()

    def _read_imported(self, result: Result) -> None:
        """Read the database with them: it is shown later."""
        imported = [each["sha256"] for each in result.data["certificates"]]
        self._tab_work.submit(partial(_read, self.services.directory), partial(self._certificates_imported, imported))

    def _certificates_imported(self, imported: Sequence[str], snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        records = [snapshot.certificate_by_sha256[sha256] for sha256 in imported]
        fit = [record for record in records if record.self_signed]
        if fit:
            self._ask_trust(fit)
        else:
            self._tab_work.good(
                self.tr("The certificates are in this database now; this does not make any State trust them.")
            )

    def _ask_trust(self, certificates: Sequence[CertificateRecord], truster: str = "") -> TrustDialog:
        assert self._snapshot is not None
        dialog = TrustDialog(self._tab_work, self._snapshot, certificates, self, truster)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()
        return dialog

    def _show(self, shown: ShownMatrix) -> None:
        self._shown = shown
        self.grid.show_matrix(shown.names, shown.grid)
        current = self.grid.current
        self._chosen(*(current or (-1, -1)))

    def _chosen(self, row: int, column: int) -> None:
        cell = None if self._shown is None else self._shown.cells.get((row, column))
        if self._shown is not None and not self._shown.cells:
            self.cause.show_none()
        elif self._shown is None or cell is None:
            self.cause.show_cell(None, "", "")
        else:
            truster, trusted = self._shown.names[row], self._shown.names[column]
            self.cause.show_cell(cell, truster, trusted, can_withdraw=bool(self._trust_in(truster, trusted)))

    def _trust_in(self, truster: str, trusted: str) -> list[CertificateRecord]:
        """The roots and pinned certificates of another State that one of this console trusts."""
        if self._snapshot is None:
            return []
        ids = {state.name: state.id for state in self._snapshot.states if state.local or state.name == trusted}
        certificates = self._snapshot.certificate_by_id
        return [
            certificates[row.certificate]
            for row in self._snapshot.trust
            if row.withdrawn is None
            and row.state == ids.get(truster)
            and certificates[row.certificate].state == ids.get(trusted)
        ]

    def _withdraw(self, truster: str, trusted: str) -> None:
        """Withdraw trust at once; the message offers to trust again, by the fingerprint as at first."""
        certificates = self._trust_in(truster, trusted)
        said = self.tr("{truster} trusts {trusted} no longer: its connections are refused from now on.")
        message = Message(
            Tone.WARNING,
            said.format(truster=truster, trusted=trusted),
            remedy=(self.tr("Trust it again …"), partial(self._trust_again, truster, certificates)),
        )
        self._withdraw_each(truster, certificates, message)

    def _withdraw_each(self, truster: str, certificates: Sequence[CertificateRecord], message: Message) -> None:
        """Withdraw trust in one after another, then show the message."""
        if not certificates:
            self.services.page.show_message(message)
            return
        first, *others = certificates
        self._tab_work.perform(
            WithdrawTrust(),
            {"state": truster, "certificate": first.sha256},
            lambda _result: self._withdraw_each(truster, others, message),
        )

    def _trust_again(self, truster: str, certificates: Sequence[CertificateRecord]) -> None:
        self._ask_trust(certificates, truster)

    def _show_exchange(self, truster: str, trusted: str) -> None:
        tab = self.services.show_tab(ExchangeView.key)
        assert isinstance(tab, ExchangeView)
        tab.show_pair(truster, trusted)

    def _button(self, text: str, clicked: Callable[[], object]) -> QPushButton:
        button = QPushButton(text, self)
        button.clicked.connect(lambda _checked: clicked())
        return button


def _read(directory: Path) -> Snapshot:
    with PkiReader.open(directory) as reader:
        return reader.snapshot()


def _inspect(data: bytes) -> BundleInspection | None:
    """The bundle, None for certificates. Raises BadInput: it is neither."""
    kind = parsing.kind_of(data)
    if kind is ContentKind.CMS:
        return inspect_bundle(data)
    if kind is ContentKind.CERTIFICATE:
        return None
    raise BadInput("That is neither a trust bundle nor a certificate: ask the other State for its bundle.")


def _legend(theme: Theme, parent: QWidget) -> QWidget:
    """The legend of the marks."""
    legend = QWidget(parent)
    flow = FlowLayout(legend, spacing=14)
    for status, words in status_label().items():
        meaning, icon = cell_style(status)
        entry = QWidget(legend)
        line = QHBoxLayout(entry)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(5)
        line.addWidget(IconLabel(theme, icon, 14, meaning))
        label = QLabel(words, entry)
        label.setProperty("muted", True)
        line.addWidget(label)
        flow.addWidget(entry)
    return legend
