"""Describes certificates, CRLs, CSRs, private keys, PKCS#12 and CMS files: each as titled rows."""

from __future__ import annotations

from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from labconsole.security.x509.certificate_profiles import TEXTS
from labconsole.security.x509.cms import SignedMessage
from labconsole.security.x509.csrs import CsrJudgement, judge_csr
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.names import name_as_text, short_name, shown
from labconsole.security.x509.parsing import Pkcs12, Readable
from labconsole_certificates.describing.description import (
    Description,
    Row,
    Section,
    fingerprint_row,
    first_lines,
    hex_lines,
    key_section,
    key_title,
    moment,
    name_section,
    serial_text,
    signature_row,
)
from labconsole_certificates.describing.extension_rows import extensions_section
from labconsole_certificates.describing.oid_names import REASONS


def describe_certificate(certificate: x509.Certificate, at: datetime) -> Description:
    """The description of a certificate; expired at `at` (aware) or not. Trust is not part of it."""
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
    except (ValueError, TypeError, UnsupportedAlgorithm):  # unsupported algorithm
        return (Row("Signed by itself", "cannot be determined: its algorithm is not known", warning=True),)
    return (Row("Signed by itself", "yes, verified"),)


def describe_crl(crl: x509.CertificateRevocationList, at: datetime) -> Description:
    """The description of a CRL, with the first 150 entries; out of date at `at` (aware) or not."""
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


_EXTENSION_REQUEST = x509.ObjectIdentifier("1.2.840.113549.1.9.14")
_CHALLENGE_PASSWORD = x509.ObjectIdentifier("1.2.840.113549.1.9.7")


def describe_csr(csr: x509.CertificateSigningRequest) -> Description:
    """The description of a CSR, with its requests and problems. A challenge password in it is not shown."""
    judgement = judge_csr(csr)
    return Description(
        f"Certificate signing request {short_name(csr)}",
        (
            Section("Fingerprint", (fingerprint_row(csr),)),
            name_section("Subject", csr.subject),
            _request_section(csr, judgement),
            extensions_section(csr.extensions, "Requested extensions"),
            key_section(csr.public_key()),
            Section("Signature", (Row("Signature", hex_lines(csr.signature), fixed_width=True),)),
        ),
    )


def _request_section(csr: x509.CertificateSigningRequest, judgement: CsrJudgement) -> Section:
    proven = judgement.proof_of_possession
    rows = [
        Row("Proof of possession", "verified" if proven else "the signature is wrong", warning=not proven),
        Row("Asks for", "unknown" if judgement.profile is None else TEXTS[judgement.profile].title),
        Row("Asks for CA rights", "yes" if judgement.asks_for_ca else "no", warning=judgement.asks_for_ca),
        signature_row(csr.signature_algorithm_oid),
        *(Row("Against it", problem, warning=True) for problem in judgement.problems),
        *(_attribute_row(attribute) for attribute in csr.attributes if attribute.oid != _EXTENSION_REQUEST),
    ]
    return Section("Request", tuple(rows))


def _attribute_row(attribute: x509.Attribute) -> Row:
    if attribute.oid == _CHALLENGE_PASSWORD:
        return Row("Challenge password", "there is one (not shown, not used)", warning=True)
    return Row(f"Attribute {attribute.oid.dotted_string}", hex_lines(attribute.value), fixed_width=True)


Describable = Readable | SignedMessage

_MOST_CERTIFICATES = 20


def describe(thing: Describable, at: datetime | None = None) -> Description:
    """The description of `thing` at time `at` (aware; default: now); of private keys only the public part."""
    inspected_at = datetime.now(UTC) if at is None else at
    match thing:
        case x509.Certificate():
            return describe_certificate(thing, inspected_at)
        case x509.CertificateSigningRequest():
            return describe_csr(thing)
        case x509.CertificateRevocationList():
            return describe_crl(thing, inspected_at)
        case Pkcs12():
            return _describe_pkcs12(thing, inspected_at)
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
        (Section("PKCS#12", tuple(rows)), *_certificate_sections(file.chain), *own),
    )


def _describe_signed(message: SignedMessage) -> Description:
    """The description of a CMS message, whose signature is not verified here."""
    said = "not said" if message.signing_time is None else moment(message.signing_time)
    rows = (
        Row("Signer", name_as_text(message.signer.subject)),
        Row("Signing time, as the signer says", said),
        Row("Signature algorithm", message.signature_algorithm),
        Row("Content", f"{len(message.content):,} bytes"),
    )
    return Description(
        f"Signed message of {short_name(message.signer)}",
        (Section("CMS SignedData", rows), *_certificate_sections(message.certificates)),
    )


def _certificate_sections(certificates: tuple[x509.Certificate, ...]) -> tuple[Section, ...]:
    """The certificates of a file, each in a few rows; of more than 20 the rest is counted."""
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
        for number, certificate in enumerate(certificates[:_MOST_CERTIFICATES], 1)
    )
    further = len(certificates) - _MOST_CERTIFICATES
    if further <= 0:
        return sections
    return (*sections, Section("Further certificates", (Row("Number", f"{further:,} (not shown)"),)))
