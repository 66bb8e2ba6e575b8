"""Describes whatever comes through the gate."""

from __future__ import annotations

from datetime import UTC, datetime

from cryptography import x509

from labconsole.security.x509.cms import SignedMessage
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.names import name_as_text, short_name, shown
from labconsole.security.x509.parsing import Pkcs12, Readable
from labconsole_certificates.describing.certificates import describe_certificate
from labconsole_certificates.describing.crls import describe_crl
from labconsole_certificates.describing.description import Description, Row, Section
from labconsole_certificates.describing.requests import describe_csr
from labconsole_certificates.describing.rows import fingerprint_row, key_section, key_title, moment

Describable = Readable | SignedMessage

_MOST_CARRIED = 20


def describe(thing: Describable, at: datetime | None = None) -> Description:
    """All that there is to see in `thing` at time `at` (aware; default: now); of private keys only what is public."""
    moment_of_look = datetime.now(UTC) if at is None else at
    match thing:
        case x509.Certificate():
            return describe_certificate(thing, moment_of_look)
        case x509.CertificateSigningRequest():
            return describe_csr(thing)
        case x509.CertificateRevocationList():
            return describe_crl(thing, moment_of_look)
        case Pkcs12():
            return _describe_pkcs12(thing, moment_of_look)
        case SignedMessage():
            return _describe_signed(thing)
        case _:
            return _describe_key(thing)


def _describe_key(key: PrivateKey) -> Description:
    public_key = key.public_key()
    return Description(f"Private key {key_title(public_key)}", (key_section(public_key),))


def _describe_pkcs12(file: Pkcs12, at: datetime) -> Description:
    rows = [
        Row("Friendly name", shown(file.friendly_name) or "none"),
        Row("Private key", "none" if file.key is None else key_title(file.key.public_key())),
    ]
    if file.key is not None and file.certificate is not None:
        fits = file.key.public_key() == file.certificate.public_key()
        rows.append(
            Row("Key and certificate", "belong together" if fits else "do not belong together", warning=not fits)
        )
    own = () if file.certificate is None else describe_certificate(file.certificate, at).sections
    title = file.friendly_name if file.certificate is None else short_name(file.certificate)
    return Description(
        f"PKCS#12 file {shown(title)}".rstrip(),
        (Section("PKCS#12", tuple(rows)), *_carried(file.chain), *own),
    )


def _describe_signed(message: SignedMessage) -> Description:
    """What a CMS message says of itself, which is not verified here."""
    said = "not said" if message.signing_time is None else moment(message.signing_time)
    rows = (
        Row("Signer", name_as_text(message.signer.subject)),
        Row("Signing time, as the signer says", said),
        Row("Signature algorithm", message.signature_algorithm),
        Row("Content", f"{len(message.content):,} bytes"),
    )
    return Description(
        f"Signed message of {short_name(message.signer)}",
        (Section("CMS SignedData", rows), *_carried(message.certificates)),
    )


def _carried(certificates: tuple[x509.Certificate, ...]) -> tuple[Section, ...]:
    """Certificates that come along, each in a few rows; of more than 20 the rest is counted."""
    sections = tuple(
        Section(
            f"Certificate {number}: {short_name(certificate)}",
            (
                fingerprint_row(certificate),
                Row("Subject", name_as_text(certificate.subject)),
                Row("Issuer", name_as_text(certificate.issuer)),
                Row("Valid until", moment(certificate.not_valid_after_utc)),
            ),
        )
        for number, certificate in enumerate(certificates[:_MOST_CARRIED], 1)
    )
    further = len(certificates) - _MOST_CARRIED
    if further <= 0:
        return sections
    return (*sections, Section("Further certificates", (Row("Number", f"{further:,} (not shown)"),)))
