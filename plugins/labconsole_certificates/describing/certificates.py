"""Describes a certificate."""

from __future__ import annotations

from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from labconsole.security.x509.names import short_name
from labconsole_certificates.describing.description import Description, Row, Section
from labconsole_certificates.describing.extension_rows import extensions_section
from labconsole_certificates.describing.rows import (
    fingerprint_row,
    hex_lines,
    key_section,
    moment,
    name_section,
    serial_text,
    signature_row,
)


def describe_certificate(certificate: x509.Certificate, at: datetime) -> Description:
    """All that a certificate says; `at` (aware) tells whether it has expired. Not whether it is trusted."""
    general = Section(
        "Certificate",
        (
            _valid_from(certificate, at),
            _valid_until(certificate, at),
            _serial(certificate.serial_number),
            Row("Version", str(certificate.version.value + 1), warning=certificate.version is not x509.Version.v3),
            signature_row(certificate.signature_algorithm_oid),
            *_signed_by_itself(certificate),
        ),
    )
    return Description(
        f"Certificate {short_name(certificate)}",
        (
            Section("Fingerprint", (fingerprint_row(certificate),)),
            name_section("Subject", certificate.subject),
            name_section("Issuer", certificate.issuer),
            general,
            extensions_section(certificate.extensions),
            key_section(certificate.public_key()),
            Section("Signature", (Row("Signature", hex_lines(certificate.signature), fixed_width=True),)),
        ),
    )


def _serial(serial: int) -> Row:
    """RFC 5280, 4.1.2.2: positive."""
    return Row("Serial number", serial_text(serial), fixed_width=True, warning=serial <= 0)


def _valid_from(certificate: x509.Certificate, at: datetime) -> Row:
    begins = certificate.not_valid_before_utc
    early = at < begins
    return Row("Valid from", f"{moment(begins)}: not yet valid" if early else moment(begins), warning=early)


def _valid_until(certificate: x509.Certificate, at: datetime) -> Row:
    ends = certificate.not_valid_after_utc
    late = at > ends
    return Row("Valid until", f"{moment(ends)}: expired" if late else moment(ends), warning=late)


def _signed_by_itself(certificate: x509.Certificate) -> tuple[Row, ...]:
    """A row for a certificate whose issuer is its subject; none for others."""
    if certificate.issuer != certificate.subject:
        return ()
    try:
        certificate.verify_directly_issued_by(certificate)
    except InvalidSignature:
        return (Row("Signed by itself", "no: another key of this name has signed it"),)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # of an algorithm that is not verified here
        return (Row("Signed by itself", "cannot be determined: its algorithm is not known", warning=True),)
    return (Row("Signed by itself", "yes, verified"),)
