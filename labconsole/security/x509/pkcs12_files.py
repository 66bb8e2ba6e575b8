"""Writes PKCS #12 files (RFC 7292): a private key with certificate and chain under one password, strongly encrypted."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509

from labconsole.security.secrets import Secret
from labconsole.security.x509.key_types import PrivateKey


def write_pkcs12(
    key: PrivateKey,
    certificate: x509.Certificate,
    chain: Sequence[x509.Certificate],
    friendly_name: str,
    password: Secret,
) -> bytes:
    """The DER of a PKCS #12 file: PBES2 with AES-256-CBC, HMAC-SHA-256, 600,000 rounds (0.2 s).

    Raises:
        BadInput: the password is empty, the key is not that of the certificate, lies in a token, or is ML-DSA,
            which PKCS #12 files cannot hold yet.
    """
    raise NotImplementedError
