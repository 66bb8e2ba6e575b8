"""What an OCSP responder says of a CA's serial numbers, as the certificate database has it at the moment."""

from __future__ import annotations

from collections.abc import Mapping

from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.x509.crls import Revoked
from labconsole.security.x509.ocsp import NotRevoked


class StatusBook:
    """The certificates that `authority`'s key signed, by serial number; read anew whenever the database has changed."""

    def __init__(self, reader: PkiReader, authority: CertificateRecord) -> None:
        self._reader = reader
        self._authority = authority
        self._version: int | None = None
        self._statuses: Mapping[int, NotRevoked | Revoked] = {}

    def status_of(self, serial: int) -> NotRevoked | Revoked:
        """Whether the certificate with this serial number is good, revoked, or unknown. Raises StoreError."""
        version = self._reader.data_version()
        if version != self._version:
            self._statuses = self._read()
            self._version = version
        return self._statuses.get(serial, NotRevoked.UNKNOWN)

    def _read(self) -> Mapping[int, NotRevoked | Revoked]:
        snapshot = self._reader.snapshot()
        key = self._authority.certificate.public_key()
        return {
            record.certificate.serial_number: NotRevoked.GOOD
            if record.revoked is None
            else Revoked(record.certificate.serial_number, record.revoked.at, record.revoked.reason)
            for record in snapshot.certificates
            if any(issuer.certificate.public_key() == key for issuer in snapshot.issuers_of(record))
        }
