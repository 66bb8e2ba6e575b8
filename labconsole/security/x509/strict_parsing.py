"""Parses completely what `cryptography` parses lazily and what OpenSSL judges, so that no later step meets a fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import crypto

from labconsole.errors import BadInput

Parsed = TypeVar("Parsed", x509.Certificate, x509.CertificateSigningRequest, x509.CertificateRevocationList)

FAULTS = (
    ValueError,
    TypeError,
    OverflowError,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
    crypto.Error,
)
"""Exceptions of `cryptography` and pyOpenSSL for input that violates its standard."""

_LONGEST = 100 * 1024
"""Bytes of a certificate or CSR: OpenSSL accepts no longer chain in TLS (SSL_CTX_set_max_cert_list)."""

_NUMBER_BITS = 160


@contextmanager
def refused(what: str, kind: str) -> Iterator[None]:
    """Turn exceptions of the libraries into BadInput: `what` begins the sentence, `kind` is "a certificate"."""
    try:
        yield
    except UnsupportedAlgorithm as error:
        raise BadInput(
            f"{what} holds {kind} with an algorithm that is not supported: ask for RSA, ECDSA, Ed25519 or ML-DSA."
        ) from error
    except FAULTS as error:
        raise BadInput(f"{what} holds {kind} that is damaged or not as its standard says: ask for it again.") from error


def parsed_strictly(thing: Parsed, what: str) -> Parsed:
    """`thing`, after every part was parsed: names, times, public key, extensions, revoked certificates.

    Raises:
        BadInput: a part is faulty, or has an unknown algorithm; a certificate or CSR has over 100 KiB.
    """
    if not isinstance(thing, x509.CertificateRevocationList):
        _refuse_huge(thing, what)
    match thing:
        case x509.Certificate():
            with refused(what, "a certificate"):
                _check_certificate(thing)
        case x509.CertificateSigningRequest():
            with refused(what, "a certificate signing request"):
                _check_csr(thing)
        case x509.CertificateRevocationList():
            with refused(what, "a revocation list"):
                _check_crl(thing)
    return thing


def _refuse_huge(thing: x509.Certificate | x509.CertificateSigningRequest, what: str) -> None:
    length = len(thing.public_bytes(Encoding.DER))
    if length > _LONGEST:
        kind = "certificate" if isinstance(thing, x509.Certificate) else "certificate signing request"
        raise BadInput(
            f"{what} holds a {kind} of {length // 1024:,} KiB, far longer than any in use: ask what is in it."
        )


def _check_certificate(certificate: x509.Certificate) -> None:
    _ = certificate.version, certificate.serial_number, certificate.subject, certificate.issuer
    _ = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    _ = certificate.signature_hash_algorithm, certificate.signature_algorithm_parameters
    _check_extensions(certificate.extensions)
    certificate.public_key()
    crypto.X509.from_cryptography(certificate)


def _check_csr(csr: x509.CertificateSigningRequest) -> None:
    _ = csr.subject, csr.attributes, csr.signature_hash_algorithm, csr.signature_algorithm_parameters
    _check_extensions(csr.extensions)
    csr.public_key()
    _ = csr.is_signature_valid


def _check_crl(crl: x509.CertificateRevocationList) -> None:
    _ = crl.issuer, crl.last_update_utc, crl.signature_hash_algorithm, crl.signature_algorithm_parameters
    if crl.next_update_utc is None:
        raise ValueError("no nextUpdate (RFC 5280, 5.1.2.5)")
    _check_extensions(crl.extensions)
    for extension in crl.extensions:
        if isinstance(extension.value, x509.CRLNumber | x509.DeltaCRLIndicator):
            _refuse_long_number(extension.value.crl_number)
    for revoked in crl:
        _ = revoked.serial_number, revoked.revocation_date_utc
        _check_extensions(revoked.extensions)
    crypto.X509Store().add_crl(crl)


def _refuse_long_number(number: int) -> None:
    if number.bit_length() > _NUMBER_BITS:
        raise ValueError("a CRL number of more than 20 octets (RFC 5280, 5.2.3)")


def _check_extensions(extensions: x509.Extensions) -> None:
    for extension in extensions:
        _ = extension.oid, extension.critical, extension.value
