"""Describes a certificate revocation list."""

from __future__ import annotations

from datetime import datetime

from cryptography import x509

from labconsole.security.x509.names import short_name
from labconsole_certificates.describing.description import Description, Row, Section
from labconsole_certificates.describing.extension_rows import extensions_section
from labconsole_certificates.describing.oid_names import REASONS
from labconsole_certificates.describing.rows import (
    fingerprint_row,
    first_lines,
    hex_lines,
    moment,
    name_section,
    serial_text,
    signature_row,
)


def describe_crl(crl: x509.CertificateRevocationList, at: datetime) -> Description:
    """All that a CRL says, of those revoked the first 150; `at` (aware) tells whether it is out of date."""
    ends = crl.next_update_utc
    late = ends is not None and at > ends
    until = "not said" if ends is None else moment(ends)
    general = Section(
        "Revocation list",
        (
            Row("Issued", moment(crl.last_update_utc)),
            Row("Next one by", f"{until}: out of date" if late else until, warning=late or ends is None),
            Row("Revoked certificates", f"{len(crl):,}"),
            signature_row(crl.signature_algorithm_oid),
        ),
    )
    return Description(
        f"Revocation list of {short_name(crl.issuer)}",
        (
            Section("Fingerprint", (fingerprint_row(crl),)),
            name_section("Issuer", crl.issuer),
            general,
            extensions_section(crl.extensions),
            _revoked_section(crl),
            Section("Signature", (Row("Signature", hex_lines(crl.signature), fixed_width=True),)),
        ),
    )


def _revoked_section(crl: x509.CertificateRevocationList) -> Section:
    lines = (f"{serial_text(each.serial_number)}  {_revocation(each)}" for each in crl)
    return Section("Revoked", (Row("Serial numbers", first_lines(lines) or "none", fixed_width=True),))


def _revocation(revoked: x509.RevokedCertificate) -> str:
    reasons = [
        REASONS[extension.value.reason]
        for extension in revoked.extensions
        if isinstance(extension.value, x509.CRLReason)
    ]
    return ", ".join([moment(revoked.revocation_date_utc), *reasons])
