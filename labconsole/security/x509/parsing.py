"""The strict parser: reads all foreign input, completely or not at all, and refuses it with one sentence."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cryptography import x509

from labconsole.errors import BadInput
from labconsole.security.secret_value import Secret
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.pem_and_der import (
    MAX_BYTES,
    ContentKind,
    Piece,
    certificates_in,
    crl_in,
    csr_in,
    pieces,
    pkcs12_in,
    private_key_in,
)
from labconsole.security.x509.pkcs12_opening import Pkcs12

__all__ = [
    "MAX_BYTES",
    "ContentKind",
    "Pkcs12",
    "PrivateKey",
    "Readable",
    "check_kind",
    "kind_of",
    "kinds_of",
    "read",
    "read_certificate",
    "read_certificates",
    "read_crl",
    "read_csr",
    "read_file",
    "read_pkcs12",
    "read_private_key",
]


Readable = x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList | PrivateKey | Pkcs12
"""All kinds of objects that the parser returns."""

_Parsed = TypeVar("_Parsed")

_KINDS = {
    ContentKind.CERTIFICATE: "a certificate",
    ContentKind.CSR: "a certificate signing request",
    ContentKind.CRL: "a revocation list",
    ContentKind.PRIVATE_KEY: "a private key",
    ContentKind.ENCRYPTED_PRIVATE_KEY: "a private key",
    ContentKind.PKCS12: "a PKCS#12 file",
    ContentKind.CMS: "a signed file (CMS)",
}


def read_file(path: Path, what: str = "file") -> bytes:
    """The bytes of the file `path`, called `what` in messages.

    Raises:
        BadInput: missing, not a file, unreadable, empty, or longer than MAX_BYTES.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would block
            raise BadInput(f"The {what} {path} is not a file: check the path.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise BadInput(f"The {what} {path} does not exist: check the path.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"The {what} {path} cannot be read ({reason}): check the path.") from error
    if not data:
        raise BadInput(f"The {what} {path} is empty: ask for it again.")
    if len(data) > MAX_BYTES:
        raise BadInput(f"The {what} {path} is longer than {MAX_BYTES // 1024**2} MiB: name the right file.")
    return data


def kind_of(data: bytes) -> ContentKind:
    """The kind of PEM or DER `data`, without a password. Never raises: incomplete or unknown input is UNKNOWN."""
    return next(iter(kinds_of(data)), ContentKind.UNKNOWN)


def kinds_of(data: bytes) -> tuple[ContentKind, ...]:
    """The kind of each known object in `data`, in its order. Never raises."""
    try:
        found = pieces(data, "The file")
    except BadInput:
        return ()
    return tuple(piece.kind for piece in found if piece.kind is not ContentKind.UNKNOWN)


def check_kind(data: bytes, wanted: ContentKind, what: str = "The file") -> None:
    """Check that `data` may be of kind `wanted`, before it is read.

    Raises:
        BadInput: empty, too long, cut off, or of another known kind; `what` begins the sentence.
    """
    found = pieces(data, what)
    if {piece.kind for piece in found} - {wanted, ContentKind.UNKNOWN}:
        raise _instead(found, what, wanted)


def read_certificates(data: bytes, what: str = "The file") -> tuple[x509.Certificate, ...]:
    """The certificates in PEM (one or more), DER (one) or PKCS#7 `data`, at least one, in the file's order.

    Names, extensions and public key of each are parsed here: using them later raises nothing.

    Raises:
        BadInput: too long, damaged, or something else than certificates; `what` begins the sentence.
    """
    found = pieces(data, what)
    certificates = [each for piece in found for each in certificates_in(piece, what)]
    if not certificates:
        raise _instead(found, what, ContentKind.CERTIFICATE)
    return tuple(certificates)


def read_certificate(data: bytes, what: str = "The file") -> x509.Certificate:
    """The only certificate in `data`. Raises BadInput as `read_certificates`, and where there are several."""
    return _only(read_certificates(data, what), what, "certificates")


def read_csr(data: bytes, what: str = "The file") -> x509.CertificateSigningRequest:
    """The CSR (RFC 2986) in PEM or DER `data`; its self-signature is not judged here. Raises BadInput."""
    return _only(_all_of(data, what, ContentKind.CSR, csr_in), what, "certificate signing requests")


def read_crls(data: bytes, what: str = "The file") -> list[x509.CertificateRevocationList]:
    """The CRLs (RFC 5280, 5) in PEM or DER `data`, at least one, with nextUpdate; signatures are not judged.

    Raises BadInput.
    """
    return _all_of(data, what, ContentKind.CRL, crl_in)


def read_crl(data: bytes, what: str = "The file") -> x509.CertificateRevocationList:
    """The only CRL in `data`. Raises BadInput as `read_crls`, and where there are several."""
    return _only(read_crls(data, what), what, "revocation lists")


def read_private_key(
    data: bytes, password: Secret | None = None, what: str = "The file", *, own: bool = False
) -> PrivateKey:
    """The private key in PEM or DER `data`: PKCS#8, PKCS#1 or SEC 1, encrypted or not; `own` as in `private_key_in`.

    Raises:
        BadInput: damaged, of a kind that signs no certificate, or the password is missing or wrong.
    """
    wanted = (ContentKind.PRIVATE_KEY, ContentKind.ENCRYPTED_PRIVATE_KEY)
    found = pieces(data, what)
    keys = [private_key_in(piece, password, what, own=own) for piece in found if piece.kind in wanted]
    if not keys:
        raise _instead(found, what, ContentKind.PRIVATE_KEY)
    return _only(keys, what, "private keys")


def read_pkcs12(data: bytes, password: Secret | None = None, what: str = "The file") -> Pkcs12:
    """What the PKCS#12 `data` holds. Raises BadInput: damaged, empty, or the password is missing or wrong."""
    found = pieces(data, what)
    if found[0].kind is not ContentKind.PKCS12:
        raise _instead(found, what, ContentKind.PKCS12)
    return pkcs12_in(found[0], password, what)


def read(data: bytes, password: Secret | None = None, what: str = "The file") -> tuple[Readable, ...]:
    """Every object in `data`, of any kind, in the file's order; at least one. Of CMS: its certificates.

    Raises:
        BadInput: too long, damaged, nothing known, or the password is missing or wrong.
    """
    found = pieces(data, what)
    objects: list[Readable] = []
    for piece in found:
        match piece.kind:
            case ContentKind.CERTIFICATE | ContentKind.CMS:
                objects += certificates_in(piece, what)
            case ContentKind.CSR:
                objects.append(csr_in(piece, what))
            case ContentKind.CRL:
                objects.append(crl_in(piece, what))
            case ContentKind.PRIVATE_KEY | ContentKind.ENCRYPTED_PRIVATE_KEY:
                objects.append(private_key_in(piece, password, what))
            case ContentKind.PKCS12:
                objects.append(pkcs12_in(piece, password, what))
    if not objects:
        raise BadInput(
            f"{what} has nothing that can be read, or is damaged: give a certificate, CSR, CRL, key or PKCS#12 file."
        )
    return tuple(objects)


def _all_of(data: bytes, what: str, kind: ContentKind, read_piece: Callable[[Piece, str], _Parsed]) -> list[_Parsed]:
    found = pieces(data, what)
    objects = [read_piece(piece, what) for piece in found if piece.kind is kind]
    if not objects:
        raise _instead(found, what, kind)
    return objects


def _only(objects: list[_Parsed] | tuple[_Parsed, ...], what: str, several: str) -> _Parsed:
    if len(objects) > 1:
        raise BadInput(f"{what} holds {len(objects)} {several}: give them one by one.")
    return objects[0]


def _instead(found: tuple[Piece, ...], what: str, wanted: ContentKind) -> BadInput:
    """The refusal that names the kind of the input instead of the expected one."""
    there = [piece.kind for piece in found if piece.kind in _KINDS]
    if not there:
        return BadInput(f"{what} holds no {_KINDS[wanted].split(' ', 1)[1]}, or is damaged: name the right file.")
    secret = " and keep this one secret" if _KINDS[there[0]] == "a private key" else ""
    return BadInput(f"{what} holds {_KINDS[there[0]]} and not {_KINDS[wanted]}: name the right file{secret}.")
