"""Proves trust by a real mutual TLS handshake over a loopback socket: both ends in this process, each in a thread."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


@dataclass(frozen=True)
class TlsEnd:
    """One end: its certificate, the intermediates above it, its key, and what it trusts.

    `pins` are SHA-256 fingerprints (hex) of end certificates that are accepted without any CA while they are valid.
    """

    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...]
    key: PrivateKeyTypes
    roots: tuple[x509.Certificate, ...]
    crls: tuple[x509.CertificateRevocationList, ...] = ()
    pins: Collection[str] = ()


@dataclass(frozen=True)
class Handshake:
    """What came of a handshake. `protocol`, `cipher` and `group` are empty where it did not come to that.

    `client_said` and `server_said`: one sentence each: why that end accepted or refused the other.
    """

    ok: bool
    protocol: str
    cipher: str
    group: str
    duration_ns: int
    client_said: str
    server_said: str


def shake_hands(client: TlsEnd, server: TlsEnd, server_name: str | None = None) -> Handshake:
    """Have `client` connect to `server` by TLS with certificates both ways.

    `server_name` (DNS name or IP address) must be among the names of the server's certificate; None: any name will do.
    What is wrong with certificates, trust or revocation is a result, not an exception.

    Raises:
        BadInput: a key does not belong to its certificate, or TLS cannot use it (a token key).
    """
    raise NotImplementedError
