"""Splits files into pieces, PEM blocks or DER, and reads each: certificates, CSRs, CRLs, private keys, PKCS#12."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from asn1crypto import algos, cms, keys, pem, pkcs12
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key, pkcs7

from labconsole.errors import BadInput
from labconsole.security.secret_value import Secret
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.pkcs12_opening import Pkcs12, open_in_child, passphrase_matters, signing_key
from labconsole.security.x509.strict_parsing import parsed_strictly, refused
from labconsole.security.x509.work_factor import refuse_costly_key

MAX_BYTES = 4 * 1024 * 1024
"""The longest file that is read."""

_BOUNDARY = re.compile(rb"-----(BEGIN|END) ([A-Z0-9 ]{1,64})-----")
_DER_SEQUENCE = 0x30


class ContentKind(StrEnum):
    """The kind of a file's content; of several objects in one file the first."""

    CERTIFICATE = "certificate"
    CSR = "csr"
    CRL = "crl"
    PRIVATE_KEY = "private-key"
    ENCRYPTED_PRIVATE_KEY = "encrypted-private-key"
    PKCS12 = "pkcs12"
    CMS = "cms"
    """CMS SignedData (RFC 5652): a trust bundle, or certificates in a .p7b file."""
    UNKNOWN = "unknown"

    @property
    def has_password(self) -> bool:
        """Whether such content opens with a password or passphrase only."""
        return self in (ContentKind.PKCS12, ContentKind.ENCRYPTED_PRIVATE_KEY)


_LABELS = {
    b"CERTIFICATE": ContentKind.CERTIFICATE,
    b"X509 CERTIFICATE": ContentKind.CERTIFICATE,
    b"CERTIFICATE REQUEST": ContentKind.CSR,
    b"NEW CERTIFICATE REQUEST": ContentKind.CSR,
    b"X509 CRL": ContentKind.CRL,
    b"PRIVATE KEY": ContentKind.PRIVATE_KEY,
    b"RSA PRIVATE KEY": ContentKind.PRIVATE_KEY,
    b"EC PRIVATE KEY": ContentKind.PRIVATE_KEY,
    b"DSA PRIVATE KEY": ContentKind.PRIVATE_KEY,
    b"ENCRYPTED PRIVATE KEY": ContentKind.ENCRYPTED_PRIVATE_KEY,
    b"CMS": ContentKind.CMS,
    b"PKCS7": ContentKind.CMS,
}
"""Labels of RFC 7468, and others that OpenSSL has written."""

ENCRYPTED_HEADER = b"Proc-Type: 4,ENCRYPTED"
"""RFC 1421, as in OpenSSL's old key files."""


@dataclass(frozen=True)
class Piece:
    """One thing in a file: a PEM block with its boundaries, or DER."""

    kind: ContentKind
    is_pem: bool
    data: bytes


def pieces(data: bytes, what: str) -> tuple[Piece, ...]:
    """The pieces of `data`, in its order, at least one; `what` begins the sentence.

    Raises:
        BadInput: empty, longer than MAX_BYTES, or cut off.
    """
    if not data.strip():
        raise BadInput(f"{what} is empty: ask for it again.")
    if len(data) > MAX_BYTES:
        raise BadInput(f"{what} is longer than {MAX_BYTES // 1024**2} MiB: name the right file.")
    if _BOUNDARY.search(data) is None:
        _refuse_cut_der(data, what)
        return (Piece(_der_kind(data), False, data),)
    return tuple(_pem_pieces(data, what))


def _pem_pieces(data: bytes, what: str) -> list[Piece]:
    found = []
    boundaries = iter(_BOUNDARY.finditer(data))
    for begin in boundaries:
        end = next(boundaries, None)
        if end is None or (begin[1], end[1]) != (b"BEGIN", b"END") or begin[2] != end[2]:
            raise BadInput(f"{what} is damaged, a BEGIN line and its END line do not meet: ask for it again.")
        block = b"\n".join(line.strip() for line in data[begin.start() : end.end()].splitlines()) + b"\n"
        kind = _LABELS.get(begin[2].strip(), ContentKind.UNKNOWN)
        if kind is ContentKind.PRIVATE_KEY and ENCRYPTED_HEADER in block:
            kind = ContentKind.ENCRYPTED_PRIVATE_KEY
        found.append(Piece(kind, True, block))
    return found


def _refuse_cut_der(data: bytes, what: str) -> None:
    """Raises BadInput if the outer length (X.690, 8.1.3) exceeds the data."""
    if data[0] != _DER_SEQUENCE or len(data) < 2:
        return
    count = data[1] & 0x7F if data[1] & 0x80 else 0
    length = int.from_bytes(data[2 : 2 + count], "big") if count else data[1]
    if count <= 4 and 2 + count + length > len(data) and data[1] != 0x80:
        raise BadInput(f"{what} is cut off, {2 + count + length - len(data)} bytes are missing: ask for it again.")


def _der_kind(data: bytes) -> ContentKind:
    return next((kind for kind, load in _DER_LOADERS if _loads(load, data)), ContentKind.UNKNOWN)


def _loads(load: Callable[[bytes], object], data: bytes) -> bool:
    try:
        load(data)
    except UnsupportedAlgorithm:
        return True
    except (ValueError, TypeError, x509.InvalidVersion):
        return False
    return True


def _load_private_key(data: bytes) -> None:
    load_der_private_key(data, None)


def _load_encrypted_key(data: bytes) -> None:
    if keys.EncryptedPrivateKeyInfo.load(data, strict=True)["encryption_algorithm"]["algorithm"].native not in _PBE:
        raise ValueError("no password-based encryption")


def _load_pkcs12(data: bytes) -> None:
    if pkcs12.Pfx.load(data)["version"].native != "v3":
        raise ValueError("another version")


def _load_cms(data: bytes) -> None:
    if cms.ContentInfo.load(data)["content_type"].native != "signed_data":
        raise ValueError("another content")


_PBE = frozenset({"pbes2", *(name for name in algos.EncryptionAlgorithmId._map.values() if name.startswith("pkcs12_"))})
_DER_LOADERS: tuple[tuple[ContentKind, Callable[[bytes], object]], ...] = (
    (ContentKind.CERTIFICATE, x509.load_der_x509_certificate),
    (ContentKind.CSR, x509.load_der_x509_csr),
    (ContentKind.CRL, x509.load_der_x509_crl),
    (ContentKind.PKCS12, _load_pkcs12),
    (ContentKind.CMS, _load_cms),
    (ContentKind.PRIVATE_KEY, _load_private_key),
    (ContentKind.ENCRYPTED_PRIVATE_KEY, _load_encrypted_key),
)


def certificates_in(piece: Piece, what: str) -> Iterator[x509.Certificate]:
    """The certificates of a piece of kind CERTIFICATE or CMS; of others an empty tuple. Raises BadInput."""
    if piece.kind is ContentKind.CERTIFICATE:
        load = x509.load_pem_x509_certificate if piece.is_pem else x509.load_der_x509_certificate
        with refused(what, "a certificate"):
            certificate = load(piece.data)
        yield parsed_strictly(certificate, what)
    elif piece.kind is ContentKind.CMS:
        with refused(what, "a CMS message"):
            certificates = pkcs7.load_der_pkcs7_certificates(_der(piece))
        for each in certificates:
            yield parsed_strictly(each, what)


def csr_in(piece: Piece, what: str) -> x509.CertificateSigningRequest:
    """The CSR of a piece. Raises BadInput."""
    load = x509.load_pem_x509_csr if piece.is_pem else x509.load_der_x509_csr
    with refused(what, "a certificate signing request"):
        csr = load(piece.data)
    return parsed_strictly(csr, what)


def crl_in(piece: Piece, what: str) -> x509.CertificateRevocationList:
    """The CRL of a piece. Raises BadInput."""
    load = x509.load_pem_x509_crl if piece.is_pem else x509.load_der_x509_crl
    with refused(what, "a revocation list"):
        crl = load(piece.data)
    return parsed_strictly(crl, what)


def private_key_in(piece: Piece, password: Secret | None, what: str, *, own: bool = False) -> PrivateKey:
    """The private key of a piece; a password for an unencrypted one is ignored. Raises BadInput.

    `own`: the key is the operator's, so that an RSA key need only work: it signs once (1 ms) in place of tests of its
    primes (RSA-2048 50 ms, RSA-4096 0.4 s).
    """
    encrypted = piece.kind is ContentKind.ENCRYPTED_PRIVATE_KEY
    if not encrypted:
        password = None
    elif password is None or not password.reveal():
        raise BadInput(f"{what} is encrypted: give its passphrase.")
    else:
        _refuse_costly(piece, what)
    load = load_pem_private_key if piece.is_pem else load_der_private_key
    with refused(what, "a private key"), passphrase_matters(encrypted, what):
        # The revealed passphrase is in no variable, which a crash report might show.
        found = load(
            piece.data, None if password is None else password.reveal().encode(), unsafe_skip_rsa_key_validation=own
        )
        if own and isinstance(found, rsa.RSAPrivateKey):
            _prove(found)
        return signing_key(found, what)


def _prove(key: rsa.RSAPrivateKey) -> None:
    """Raises ValueError: the public key verifies no signature of the private one."""
    try:
        key.public_key().verify(key.sign(b"", PKCS1v15(), SHA256()), b"", PKCS1v15(), SHA256())
    except InvalidSignature as error:
        raise ValueError("the numbers of the key do not belong together") from error


def pkcs12_in(piece: Piece, password: Secret | None, what: str) -> Pkcs12:
    """The content of the PKCS#12 file of a piece, opened in a process of its own (0.3 s). Raises BadInput."""
    return open_in_child(piece.data, password, what)


def _refuse_costly(piece: Piece, what: str) -> None:
    if ENCRYPTED_HEADER not in piece.data:  # OpenSSL's old key files take one round
        refuse_costly_key(_der(piece), what)


def _der(piece: Piece) -> bytes:
    """DER of `piece`; empty if its PEM is malformed (its reader reports that)."""
    if not piece.is_pem:
        return piece.data
    try:
        return bytes(pem.unarmor(piece.data)[2])
    except ValueError:
        return b""
