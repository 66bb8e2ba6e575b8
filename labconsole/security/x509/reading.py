"""Reads one piece of a file: certificates, a CSR, a CRL, a private key or a PKCS#12 file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from asn1crypto import pem
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key, pkcs7
from cryptography.hazmat.primitives.serialization import pkcs12 as pkcs12_format

from labconsole.security.secrets import Secret
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.content import ContentKind, Piece
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.thorough import FAULTS, refused, thoroughly
from labconsole.security.x509.work_factor import refuse_costly_key, refuse_costly_pkcs12


@dataclass(frozen=True)
class Pkcs12:
    """What a PKCS#12 file (RFC 7292) holds. `chain` are the further certificates, in the file's order."""

    key: PrivateKey | None
    certificate: x509.Certificate | None
    chain: tuple[x509.Certificate, ...]
    friendly_name: str


def certificates_in(piece: Piece, what: str) -> Iterator[x509.Certificate]:
    """The certificates of a piece of kind CERTIFICATE or CMS; of others none. Raises BadInput."""
    if piece.kind is ContentKind.CERTIFICATE:
        load = x509.load_pem_x509_certificate if piece.is_pem else x509.load_der_x509_certificate
        with refused(what, "a certificate"):
            certificate = load(piece.data)
        yield thoroughly(certificate, what)
    elif piece.kind is ContentKind.CMS:
        with refused(what, "a CMS message"):
            certificates = pkcs7.load_der_pkcs7_certificates(_der(piece))
        for each in certificates:
            yield thoroughly(each, what)


def csr_in(piece: Piece, what: str) -> x509.CertificateSigningRequest:
    """The CSR of a piece. Raises BadInput."""
    load = x509.load_pem_x509_csr if piece.is_pem else x509.load_der_x509_csr
    with refused(what, "a certificate signing request"):
        csr = load(piece.data)
    return thoroughly(csr, what)


def crl_in(piece: Piece, what: str) -> x509.CertificateRevocationList:
    """The CRL of a piece. Raises BadInput."""
    load = x509.load_pem_x509_crl if piece.is_pem else x509.load_der_x509_crl
    with refused(what, "a revocation list"):
        crl = load(piece.data)
    return thoroughly(crl, what)


def private_key_in(piece: Piece, password: Secret | None, what: str) -> PrivateKey:
    """The private key of a piece; a password for one that is not encrypted is left aside. Raises BadInput."""
    encrypted = piece.kind is ContentKind.ENCRYPTED_PRIVATE_KEY
    if not encrypted:
        password = None
    elif password is None or not password.reveal():
        raise BadInput(f"{what} is encrypted: give its passphrase.")
    else:
        refuse_costly_key(_der(piece), what)
    load = load_pem_private_key if piece.is_pem else load_der_private_key
    with refused(what, "a private key"), _passphrase_matters(encrypted, what):
        return _signing_key(load(piece.data, None if password is None else password.reveal().encode()), what)


def pkcs12_in(piece: Piece, password: Secret | None, what: str) -> Pkcs12:
    """What the PKCS#12 file of a piece holds. Raises BadInput."""
    refuse_costly_pkcs12(piece.data, what)
    with refused(what, "a PKCS#12 file"), _passphrase_matters(True, what):
        loaded = pkcs12_format.load_pkcs12(piece.data, None if password is None else password.reveal().encode())
    certificates = [each for each in (loaded.cert, *loaded.additional_certs) if each is not None]
    for each in certificates:
        thoroughly(each.certificate, what)
    if loaded.key is None and not certificates:
        raise BadInput(f"{what} is a PKCS#12 file with nothing in it: ask for it again.")
    name = next((each.friendly_name for each in certificates if each.friendly_name), b"")
    return Pkcs12(
        key=None if loaded.key is None else _signing_key(loaded.key, what),
        certificate=None if loaded.cert is None else loaded.cert.certificate,
        chain=tuple(each.certificate for each in loaded.additional_certs),
        friendly_name=name.decode(errors="replace"),
    )


def _signing_key(key: object, what: str) -> PrivateKey:
    if not isinstance(key, PrivateKey):
        raise BadInput(
            f"{what} holds a private key of a kind that signs no certificate: use RSA, ECDSA, Ed25519 or ML-DSA."
        )
    return key


@contextmanager
def _passphrase_matters(matters: bool, what: str) -> Iterator[None]:
    """Say of what does not open, and `matters`, that the passphrase may be wrong. Raises BadInput."""
    try:
        yield
    except FAULTS as error:
        if not matters:
            raise
        raise BadInput(f"{what} does not open: the passphrase is wrong or missing, or it is damaged.") from error


def _der(piece: Piece) -> bytes:
    """DER of `piece`; empty of PEM that is none (its reader says so)."""
    if not piece.is_pem:
        return piece.data
    try:
        return bytes(pem.unarmor(piece.data)[2])
    except ValueError:
        return b""
