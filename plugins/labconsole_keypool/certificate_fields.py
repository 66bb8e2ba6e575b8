"""What a sign request asks to stand in the signer's certificate, as X.509 fields."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography import x509

from labconsole_keypool.sign_request import SignRequest


@dataclass(frozen=True, slots=True)
class CertificateFields:
    """Subject and extensions (each with whether it is critical) that go into one certificate beside the CA's own."""

    subject: x509.Name
    extensions: tuple[tuple[x509.ExtensionType, bool], ...] = ()


def fields_of(request: SignRequest) -> CertificateFields:
    """The fields that `request` asks for.

    Subject (rdn), SubjectAlternativeName (san), SubjectDirectoryAttributes (sda; RFC 5280, 4.2.1.8), qcStatements for
    QC and QC/SSCD (ETSI EN 319 412-5, 4.2.1 and 4.2.2), and the authentication context (RFC 7773).

    Raises:
        SignRequestError: an attribute has no place in a certificate, or a value that its type does not take.
    """
    raise NotImplementedError


def plain_fields(number: int) -> CertificateFields:
    """The fields for request `number` of random digests: a name, and no extension."""
    raise NotImplementedError
