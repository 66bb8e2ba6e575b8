"""Files and pasted text that are looked into: read in the background, their passwords asked for, nothing taken in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cryptography import x509
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QDialog, QWidget

from labconsole.security.secrets import Secret, SecretRequest, SecretSource
from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.parsing import ContentKind, Pkcs12, Readable, kind_of, read, read_file
from labconsole_certificates.describing.description import Description
from labconsole_certificates.describing.pki_objects import describe
from labconsole_certificates.panel.desk import Desk
from labconsole_ui.widgets.secret_dialog import SecretDialog

_WITHOUT_KEY = (x509.Certificate, x509.CertificateSigningRequest, x509.CertificateRevocationList)


@dataclass(frozen=True)
class Looked:
    """One thing in a file; private keys are described by what is public of them, and not kept."""

    name: str
    """Of the file, or what was pasted."""
    path: Path | None
    data: bytes
    """Of the whole file."""
    kind: ContentKind
    description: Description
    certificate: x509.Certificate | None
    """The certificate that it is, or that a PKCS#12 is about."""
    has_key: bool

    @property
    def is_authority(self) -> bool:
        """Whether its certificate is that of a CA (RFC 5280, 4.2.1.9)."""
        return self.certificate is not None and is_ca(self.certificate)


class Files(QObject):
    """`looked` carries a list of `Looked`: all that is in one file."""

    looked = Signal(list)

    def __init__(self, desk: Desk, page: QWidget) -> None:
        super().__init__(page)
        self._desk = desk
        self._page = page

    def look_into(self, paths: Sequence[Path]) -> None:
        """Read these files, one after another."""
        for path in paths:
            self._desk.look(partial(read_file, path, path.name), partial(self._begin, path.name, path))

    def look_at_data(self, data: bytes) -> None:
        """Read what was pasted."""
        self._begin(self.tr("The pasted text"), None, data)

    def _begin(self, name: str, path: Path | None, data: bytes) -> None:
        if not kind_of(data).has_password:
            self._read(name, path, data, None)
            return
        request = SecretRequest(f"look:{name}", self.tr("the file {name}").format(name=name), SecretSource())
        dialog = SecretDialog(self._page.window(), [request], self.tr("It is used once, to look into the file."))
        dialog.finished.connect(partial(self._answered, dialog, request.key, name, path, data))
        dialog.open()

    def _answered(self, dialog: SecretDialog, key: str, name: str, path: Path | None, data: bytes, result: int) -> None:
        entered = dialog.take()
        if result == QDialog.DialogCode.Accepted:
            self._read(name, path, data, entered[key])

    def _read(self, name: str, path: Path | None, data: bytes, password: Secret | None) -> None:
        self._desk.look(partial(_looked, name, path, data, password), self.looked.emit)


def _looked(name: str, path: Path | None, data: bytes, password: Secret | None) -> list[Looked]:
    """Raises BadInput."""
    kind = kind_of(data)
    found = []
    for thing in read(data, password, name):
        certificate = _certificate_in(thing)
        has_key = not isinstance(thing, _WITHOUT_KEY) and not (isinstance(thing, Pkcs12) and thing.key is None)
        found.append(Looked(name, path, data, kind, describe(thing), certificate, has_key))
    return found


def _certificate_in(thing: Readable) -> x509.Certificate | None:
    if isinstance(thing, Pkcs12):
        return thing.certificate
    return thing if isinstance(thing, x509.Certificate) else None
