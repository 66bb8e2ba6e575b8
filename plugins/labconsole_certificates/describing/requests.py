"""Describes a certificate signing request."""

from __future__ import annotations

from cryptography import x509

from labconsole.security.x509.certificate_profiles import TEXTS
from labconsole.security.x509.csrs import CsrJudgement, judge_csr
from labconsole.security.x509.names import short_name
from labconsole_certificates.describing.description import Description, Row, Section
from labconsole_certificates.describing.extension_rows import extensions_section
from labconsole_certificates.describing.rows import (
    fingerprint_row,
    hex_lines,
    key_section,
    name_section,
    signature_row,
)

_EXTENSION_REQUEST = x509.ObjectIdentifier("1.2.840.113549.1.9.14")
_CHALLENGE_PASSWORD = x509.ObjectIdentifier("1.2.840.113549.1.9.7")


def describe_csr(csr: x509.CertificateSigningRequest) -> Description:
    """All that a CSR says and asks for, and what speaks against it. A challenge password in it is not shown."""
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
