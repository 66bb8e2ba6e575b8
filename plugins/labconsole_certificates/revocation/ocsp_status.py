"""What an OCSP responder says of a CA's serial numbers, as the certificate database has it at the moment."""

from __future__ import annotations

from collections.abc import Mapping

from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.crls import Revoked
from labconsole_certificates.revocation.ocsp_answers import NotRevoked


class StatusBook:
    """The certificates that `authority`'s key signed, by serial number; read anew whenever the database has changed."""

    def __init__(self, reader: PkiReader, authority: CertificateRecord) -> None:
        self._reader = reader
        self._authority = authority
        self._seen: Snapshot | None = None
        self._statuses: Mapping[int, NotRevoked | Revoked] = {}

    def status_of(self, serial: int) -> NotRevoked | Revoked:
        """Whether the certificate with this serial number is good, revoked, or unknown. Raises StoreError."""
        snapshot = self._reader.snapshot()  # the same one while nobody changes the database
        if snapshot is not self._seen:
            self._statuses, self._seen = self._read(snapshot), snapshot
        return self._statuses.get(serial, NotRevoked.UNKNOWN)

    def _read(self, snapshot: Snapshot) -> Mapping[int, NotRevoked | Revoked]:
        key = self._authority.certificate.public_key()
        return {
            record.certificate.serial_number: NotRevoked.GOOD
            if record.revoked is None
            else Revoked(record.certificate.serial_number, record.revoked.at, record.revoked.reason)
            for record in snapshot.certificates
            if any(issuer.certificate.public_key() == key for issuer in snapshot.issuers_of(record))
        }
