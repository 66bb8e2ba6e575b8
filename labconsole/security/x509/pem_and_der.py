"""Reads one piece of a file: certificates, a CSR, a CRL, a private key or a PKCS#12 file."""

from __future__ import annotations

from collections.abc import Iterator

from asn1crypto import pem
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key, pkcs7

from labconsole.security.secrets import Secret
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.content import ENCRYPTED_HEADER, ContentKind, Piece
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.pkcs12_opening import Pkcs12, open_in_child, passphrase_matters, signing_key
from labconsole.security.x509.strict_parsing import refused, thoroughly
from labconsole.security.x509.work_factor import refuse_costly_key


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
        _refuse_costly(piece, what)
    load = load_pem_private_key if piece.is_pem else load_der_private_key
    with refused(what, "a private key"), passphrase_matters(encrypted, what):
        return signing_key(load(piece.data, None if password is None else password.reveal().encode()), what)


def pkcs12_in(piece: Piece, password: Secret | None, what: str) -> Pkcs12:
    """The content of the PKCS#12 file of a piece, opened in a process of its own (0.3 s). Raises BadInput."""
    return open_in_child(piece.data, password, what)


def _refuse_costly(piece: Piece, what: str) -> None:
    if ENCRYPTED_HEADER not in piece.data:  # OpenSSL's old key files take one round
        refuse_costly_key(_der(piece), what)


def _der(piece: Piece) -> bytes:
    """DER of `piece`; empty of PEM that is none (its reader says so)."""
    if not piece.is_pem:
        return piece.data
    try:
        return bytes(pem.unarmor(piece.data)[2])
    except ValueError:
        return b""
