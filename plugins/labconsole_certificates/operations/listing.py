"""Lists of the database: its certificates with their status, and its audit list."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

from labconsole.model.operation import Result, TextTable
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.certificate_status import all_statuses
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import Origin
from labconsole.security.x509.fingerprints import short_fingerprint
from labconsole.security.x509.names import brief_name, short_name
from labconsole_certificates.operations.pki_operation import PkiReport
from labconsole_certificates.revocation.crl_renewal import due_crls

_CERTIFICATE_KEYS = ("state", "subject", "issuer", "profile", "until", "key", "status")
"""Keys of the rows' cells after the fingerprint."""


class ListCertificatesParameters(Parameters):
    """Which certificates are listed."""

    text: str = parameter("Text", "Only those that contain this text", default="", positional=True, empty="All")
    with_removed: bool = parameter("With removed ones", "Also those that were removed", default=False, option="--all")


class ListCertificates(PkiReport[ListCertificatesParameters]):
    """Lists the certificates."""

    name: ClassVar[str] = "certificates.list"
    title: ClassVar[str] = "Certificates"
    description: ClassVar[str] = "Lists the certificates with their status, and the CRLs that are due."
    parameters: ClassVar[type[Parameters]] = ListCertificatesParameters

    def read(self, parameters: ListCertificatesParameters, reader: PkiReader) -> Result:
        snapshot, at = reader.snapshot(), datetime.now(UTC)
        statuses = all_statuses(snapshot, at)
        rows, found = [], []
        for record in snapshot.certificates:
            cells = (
                "" if record.state is None else snapshot.state_by_id[record.state].name,
                brief_name(record.certificate.subject),
                short_name(record.certificate.issuer),
                "link" if record.origin is Origin.LINK else str(record.profile or ""),
                f"{record.certificate.not_valid_after_utc:%Y-%m-%d}",
                "" if record.key is None else "here",
                "removed" if record.removed else str(statuses[record.id].kind),
            )
            row = (short_fingerprint(record.sha256), *cells)
            wanted = parameters.text.casefold() in " ".join(row).casefold()
            if wanted and (parameters.with_removed or record.removed is None):
                rows.append(row)
                found.append({"sha256": record.sha256, **dict(zip(_CERTIFICATE_KEYS, cells, strict=True))})
        table = TextTable(("SHA-256", "State", "Subject", "Issuer", "Profile", "Until", "Key", "Status"), tuple(rows))
        crls = [crl.sentence() for crl in due_crls(snapshot, at)]
        return Result((table, *crls), {"certificates": found, "crls": crls})


class AuditParameters(Parameters):
    """The number of entries to show."""

    limit: int = parameter("Entries", "Only the newest N", default=50)


class Audit(PkiReport[AuditParameters]):
    """Lists the audit entries, the newest first."""

    name: ClassVar[str] = "certificates.audit"
    title: ClassVar[str] = "Audit list"
    description: ClassVar[str] = "Lists who did what, and when, the newest first."
    parameters: ClassVar[type[Parameters]] = AuditParameters

    def read(self, parameters: AuditParameters, reader: PkiReader) -> Result:
        rows, found = [], []
        for entry in reader.audit(parameters.limit):
            when = f"{entry.at:%Y-%m-%d %H:%M:%S}"
            rows.append(
                (when, entry.who, entry.what, entry.subject, short_fingerprint(entry.fingerprint), entry.detail)
            )
            found.append(
                {
                    "at": entry.at.isoformat(),
                    "who": entry.who,
                    "what": entry.what,
                    "subject": entry.subject,
                    "sha256": entry.fingerprint,
                    "detail": entry.detail,
                }
            )
        table = TextTable(("When (UTC)", "Who", "What", "On", "SHA-256", "Detail"), tuple(rows))
        return Result((table,), {"entries": found})
