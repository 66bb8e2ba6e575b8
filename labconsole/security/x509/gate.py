"""The gate: whatever comes from outside is read here, whole or not at all, and refused with one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, mldsa, rsa

from labconsole.security.secrets import Secret

MAX_BYTES = 4 * 1024 * 1024
"""The longest file that is read."""

PrivateKey = (
    rsa.RSAPrivateKey
    | ec.EllipticCurvePrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
    | mldsa.MLDSA44PrivateKey
    | mldsa.MLDSA65PrivateKey
    | mldsa.MLDSA87PrivateKey
)
"""Private keys that sign certificates; those in a token are RSA and EC ones."""


class ContentKind(StrEnum):
    """What a file holds; of several things in one file the first."""

    CERTIFICATE = "certificate"
    CSR = "csr"
    CRL = "crl"
    PRIVATE_KEY = "private-key"
    ENCRYPTED_PRIVATE_KEY = "encrypted-private-key"
    PKCS12 = "pkcs12"
    CMS = "cms"
    """CMS SignedData (RFC 5652): a trust bundle, or certificates in a .p7b file."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Pkcs12:
    """What a PKCS#12 file (RFC 7292) holds. `chain` are the further certificates, in the file's order."""

    key: PrivateKey | None
    certificate: x509.Certificate | None
    chain: tuple[x509.Certificate, ...]
    friendly_name: str


Readable = x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList | PrivateKey | Pkcs12
"""All that comes through the gate."""


def read_file(path: Path, what: str = "file") -> bytes:
    """The bytes of the file `path`, called `what` in messages. Raises BadInput: missing, unreadable, empty, too long."""
    raise NotImplementedError


def kind_of(data: bytes) -> ContentKind:
    """What PEM or DER `data` holds, without a password. Never raises; what is damaged is UNKNOWN, or what it was."""
    raise NotImplementedError


def read_certificates(data: bytes, what: str = "The file") -> tuple[x509.Certificate, ...]:
    """The certificates in PEM (one or more), DER (one) or PKCS#7 `data`, at least one, in the file's order.

    Names, extensions and public key of each are parsed here: using them later raises nothing.

    Raises:
        BadInput: too long, damaged, or something else than certificates; `what` begins the sentence.
    """
    raise NotImplementedError


def read_certificate(data: bytes, what: str = "The file") -> x509.Certificate:
    """The only certificate in `data`. Raises BadInput as `read_certificates`, and where there are several."""
    raise NotImplementedError


def read_csr(data: bytes, what: str = "The file") -> x509.CertificateSigningRequest:
    """The CSR (RFC 2986) in PEM or DER `data`; its self-signature is not checked here. Raises BadInput."""
    raise NotImplementedError


def read_crl(data: bytes, what: str = "The file") -> x509.CertificateRevocationList:
    """The CRL (RFC 5280, 5) in PEM or DER `data`, with nextUpdate; its signature is not checked. Raises BadInput."""
    raise NotImplementedError


def read_private_key(data: bytes, password: Secret | None = None, what: str = "The file") -> PrivateKey:
    """The private key in PEM or DER `data`: PKCS#8, PKCS#1 or SEC 1, encrypted or not.

    Raises:
        BadInput: damaged, of a kind that signs no certificate, or the password is missing or wrong.
    """
    raise NotImplementedError


def read_pkcs12(data: bytes, password: Secret | None = None, what: str = "The file") -> Pkcs12:
    """What the PKCS#12 `data` holds. Raises BadInput: damaged, empty, or the password is missing or wrong."""
    raise NotImplementedError


def read(data: bytes, password: Secret | None = None, what: str = "The file") -> tuple[Readable, ...]:
    """Everything in `data`, of whatever kind, in the file's order; at least one. Of CMS: its certificates.

    Raises:
        BadInput: too long, damaged, nothing known, or the password is missing or wrong.
    """
    raise NotImplementedError
