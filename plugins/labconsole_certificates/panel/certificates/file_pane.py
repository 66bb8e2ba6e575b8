"""Inspects files in the detail pane, one object after another, and imports them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cryptography import x509
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QDialog, QDialogButtonBox, QFileDialog, QVBoxLayout, QWidget

from labconsole.model.operation import Result
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import Secret, SecretRequest, SecretSource
from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.names import short_name
from labconsole.security.x509.parsing import ContentKind, Pkcs12, Readable, kind_of, read, read_file
from labconsole_certificates.describing.description import Description
from labconsole_certificates.describing.pki_objects import describe
from labconsole_certificates.operations.certificate_import import Import
from labconsole_certificates.operations.export_formats import as_der, as_pem, chain_as_pem
from labconsole_certificates.panel.certificates.authority_forms import AuthorityForms
from labconsole_certificates.panel.certificates.detail_pane import DetailPane
from labconsole_certificates.panel.certificates.selection_details import SelectionDetails
from labconsole_certificates.panel.drop_area import FILES
from labconsole_certificates.panel.export_bar import ExportItem
from labconsole_certificates.panel.tab import TabWork
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.secret_dialog import SecretDialog

_WIDTH = 440


class StateQuestion(QDialog):
    """`answered` carries the name of a State, empty for none."""

    answered = Signal(str)

    def __init__(self, title: str, states: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Import"))
        self.setMinimumWidth(_WIDTH)
        heading = plain_label(title, self)
        heading.setWordWrap(True)
        label = plain_label(self.tr("&State that is certified:"), self)
        self.box = QComboBox(self)
        self.box.setEditable(True)
        self.box.addItems(["", *states])
        self.box.setAccessibleName(self.tr("State that is certified"))
        line = self.box.lineEdit()
        if line is not None:
            line.setPlaceholderText(self.tr("No known State"))
        label.setBuddy(self.box)
        note = plain_label(
            self.tr(
                "A name that is new adds that State. To take a certificate in is not to trust it: that is decided in "
                "the tab Trust."
            ),
            self,
        )
        note.setWordWrap(True)
        note.setProperty("muted", True)
        self.buttons = QDialogButtonBox(self)
        self.take_in_button = self.buttons.addButton(self.tr("Import"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        self.buttons.accepted.connect(self._accept)
        self.buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        for widget in (heading, label, self.box, note, self.buttons):
            column.addWidget(widget)

    def _accept(self) -> None:
        self.answered.emit(self.box.currentText().strip())
        self.accept()


_WITHOUT_KEY = (x509.Certificate, x509.CertificateSigningRequest, x509.CertificateRevocationList)


@dataclass(frozen=True)
class InspectedObject:
    """One object in a file; of private keys only the public part is described, and nothing is kept."""

    name: str
    """Name of the file, or of the pasted text."""
    path: Path | None
    data: bytes
    """Content of the whole file."""
    kind: ContentKind
    description: Description
    certificate: x509.Certificate | None
    """The certificate, also that of a PKCS#12."""
    has_key: bool

    @property
    def is_authority(self) -> bool:
        """Whether its certificate is that of a CA (RFC 5280, 4.2.1.9)."""
        return self.certificate is not None and is_ca(self.certificate)


class FileInspector(QObject):
    """`inspected` carries a list of `InspectedObject`: the content of one file."""

    inspected = Signal(list)

    def __init__(self, tab_work: TabWork, page: QWidget) -> None:
        super().__init__(page)
        self._tab_work = tab_work
        self._page = page

    def inspect_files(self, paths: Sequence[Path]) -> None:
        """Read these files, one after another."""
        for path in paths:
            self._tab_work.submit(partial(read_file, path, path.name), partial(self._begin, path.name, path))

    def inspect_data(self, data: bytes) -> None:
        """Read pasted text."""
        self._begin(self.tr("The pasted text"), None, data)

    def _begin(self, name: str, path: Path | None, data: bytes) -> None:
        if not kind_of(data).has_password:
            self._read(name, path, data, None)
            return
        request = SecretRequest(f"inspect:{name}", self.tr("the file {name}").format(name=name), SecretSource())
        dialog = SecretDialog(self._page.window(), [request], self.tr("It is used once, to read the file."))
        dialog.finished.connect(partial(self._answered, dialog, request.key, name, path, data))
        dialog.open()

    def _answered(self, dialog: SecretDialog, key: str, name: str, path: Path | None, data: bytes, result: int) -> None:
        entered = dialog.pop_secrets()
        if result == QDialog.DialogCode.Accepted:
            self._read(name, path, data, entered[key])

    def _read(self, name: str, path: Path | None, data: bytes, password: Secret | None) -> None:
        self._tab_work.submit(partial(_inspected, name, path, data, password), self.inspected.emit)


def _inspected(name: str, path: Path | None, data: bytes, password: Secret | None) -> list[InspectedObject]:
    """Raises BadInput."""
    kind = kind_of(data)
    objects = []
    for found in read(data, password, name):
        certificate = _certificate_in(found)
        has_key = not isinstance(found, _WITHOUT_KEY) and not (isinstance(found, Pkcs12) and found.key is None)
        objects.append(InspectedObject(name, path, data, kind, describe(found), certificate, has_key))
    return objects


def _certificate_in(found: Readable) -> x509.Certificate | None:
    if isinstance(found, Pkcs12):
        return found.certificate
    return found if isinstance(found, x509.Certificate) else None


class FilePane(QObject):
    """Shows the content of a file in `pane`; `opened` reports that, `closed` its end."""

    opened = Signal()
    closed = Signal()
    imported = Signal(int)
    """Carries the id of the first imported certificate."""

    def __init__(self, tab_work: TabWork, pane: DetailPane, forms: AuthorityForms, page: QWidget) -> None:
        super().__init__(page)
        self._tab_work = tab_work
        self._pane = pane
        self._forms = forms
        self._page = page
        self._snapshot: Snapshot | None = None
        self._objects: list[InspectedObject] = []
        self._place = 0
        self._more = False
        """Whether the next file is added to those that are shown: files that were dropped together."""
        self.files = FileInspector(tab_work, page)
        self.files.inspected.connect(self._inspected)
        pane.turned.connect(self._turn)
        pane.import_file.connect(self.import_file)
        pane.closed.connect(self.close)

    @property
    def open(self) -> bool:
        """Whether a file is shown."""
        return bool(self._objects)

    @property
    def shown_object(self) -> InspectedObject | None:
        """The object that is shown."""
        return self._objects[self._place] if self._objects else None

    def refresh(self, snapshot: Snapshot) -> None:
        """Use this snapshot."""
        self._snapshot = snapshot
        if self._objects:
            self._show()

    def close(self) -> None:
        """Show the tree's selection again."""
        if self._objects:
            self._objects = []
            self.closed.emit()

    def inspect_files(self, paths: Sequence[Path]) -> None:
        """Show the content of these files, together."""
        self._more = False
        self.files.inspect_files(paths)

    def inspect_data(self, data: bytes) -> None:
        """Show pasted text."""
        self._more = False
        self.files.inspect_data(data)

    def choose(self) -> None:
        """Ask for files, and show their content."""
        kinds = self.tr("{known};;All files (*)").format(known=FILES)
        names, _ = QFileDialog.getOpenFileNames(self._page, self.tr("Inspect files"), str(Path.home()), kinds)
        if names:
            self.inspect_files([Path(name) for name in names])

    def paste(self) -> None:
        """Show the content of the clipboard: files, or text."""
        content = QGuiApplication.clipboard().mimeData()
        paths = [Path(url.toLocalFile()) for url in content.urls() if url.isLocalFile()]
        if paths:
            self.inspect_files(paths)
        elif content.text().strip():
            self.inspect_data(content.text().encode())

    def import_file(self) -> None:
        """Import what is shown: certificates and CRLs at once, keys and CSRs by their own dialogs."""
        found = self.shown_object
        if found is None or self._snapshot is None:
            return
        if found.has_key:
            self._import_key(found)
        elif found.kind is ContentKind.CSR and found.path is not None:
            self.close()
            self._tab_work.services.show_tab("requests").take([found.path])
        elif found.kind is ContentKind.CRL:
            self._tab_work.perform_on(Import(), found.data, {}, self._crl_imported)
        else:
            self._import_certificates(found, self._snapshot)

    def _import_certificates(self, found: InspectedObject, snapshot: Snapshot) -> None:
        certificates = self._certificates()
        title = self.tr("{count} certificates of {name}").format(count=len(certificates), name=found.name)
        if len(certificates) == 1:
            title = short_name(certificates[0])
        dialog = StateQuestion(title, [state.name for state in snapshot.states], self._page)
        dialog.answered.connect(partial(self._import_for_state, chain_as_pem(certificates)))
        dialog.open()

    def _import_for_state(self, data: bytes, name: str) -> None:
        self._tab_work.perform_on(Import(), data, {"state": name, "add_state": True}, self._taken)

    def _import_key(self, found: InspectedObject) -> None:
        """With a key a CA becomes an own one, an end certificate an identity; both dialogs ask for key storage."""
        if found.certificate is None:
            certificate_file = next(
                (each.path for each in self._objects if each.is_authority and not each.has_key), None
            )
            self._forms.import_authority(file=certificate_file, key_file=found.path)
        elif found.is_authority:
            self._forms.import_authority(file=found.path)
        else:
            self._forms.import_pkcs12(found.path)

    def _crl_imported(self, result: Result) -> None:
        self._tab_work.good(self.tr("CRL {number} was imported.").format(number=result.data["crl"]))
        self.close()

    def _taken(self, result: Result) -> None:
        found = result.data["certificates"]
        self._tab_work.good(self.tr("Imported: {0}.").format(", ".join(one["certificate"] for one in found)))
        self.close()
        self.imported.emit(found[0]["id"])

    def _inspected(self, objects: list[InspectedObject]) -> None:
        if not self._more:
            self._objects, self._place = [], 0
        self._more = True
        self._objects.extend(objects)
        self._show()
        self.opened.emit()

    def _turn(self, step: int) -> None:
        self._place = max(0, min(len(self._objects) - 1, self._place + step))
        self._show()

    def _show(self) -> None:
        found = self._objects[self._place]
        export_item = None
        if found.certificate is not None:
            forms = {"pem": as_pem(found.certificate), "der": as_der(found.certificate)}
            export_item = ExportItem(short_name(found.certificate), self.tr("certificate"), forms)
        shown = SelectionDetails((), found.description.title, found.description, export_item)
        can = self._can_import(found)
        self._pane.show_file(shown, self._hint(found), self._place, len(self._objects), can_take_in=can)

    def _can_import(self, found: InspectedObject) -> bool:
        """Dialogs that ask for more read the file again."""
        if found.has_key or found.kind is ContentKind.CSR:
            return found.path is not None
        return found.kind is ContentKind.CRL or found.certificate is not None

    def _hint(self, found: InspectedObject) -> str:
        said = self.tr("{name}: only shown, nothing was changed.").format(name=found.name)
        if len(self._objects) > 1:
            of = self.tr("{name}, {place} of {count}: only shown, nothing was changed.")
            said = of.format(name=found.name, place=self._place + 1, count=len(self._objects))
        if found.certificate is not None and self._snapshot is not None:
            known = fingerprint(found.certificate) in self._snapshot.certificate_by_sha256
            said += " " + (self.tr("It is in the database already.") if known else self.tr("It is new here."))
        if found.kind is ContentKind.CSR and found.path is None:
            said += " " + self.tr("Paste it in the tab Requests to decide about it.")
        return said

    def _certificates(self) -> list[x509.Certificate]:
        return [found.certificate for found in self._objects if found.certificate is not None and not found.has_key]
