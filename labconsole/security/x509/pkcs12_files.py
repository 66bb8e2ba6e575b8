"""Writes PKCS #12 files (RFC 7292): a private key with certificate and chain under one password, strongly encrypted."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import PrivateFormat, pkcs12

from labconsole.security.secrets import Secret
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.key_types import PrivateKey

_KEYS = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)
_ROUNDS = 600_000


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
    if not password.reveal():
        raise BadInput("A PKCS #12 file without a password protects nothing: give one.")
    if not isinstance(key, _KEYS):
        raise BadInput("PKCS #12 files cannot hold ML-DSA keys yet: let the other side make its key and send a CSR.")
    if certificate.public_key() != key.public_key():
        raise BadInput("The private key is not that of the certificate: choose the two that belong together.")
    encryption = (
        PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(_ROUNDS)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(password.reveal().encode())
    )
    try:
        return pkcs12.serialize_key_and_certificates(
            friendly_name.encode() or None, key, certificate, chain or None, encryption
        )
    except UnsupportedAlgorithm as error:
        raise BadInput("The private key lies in a token, which it never leaves: hand over a CSR instead.") from error
