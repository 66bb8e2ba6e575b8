"""The formats of exported files: PEM, DER, chains, and PKCS #12 (RFC 7292), strongly encrypted."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from hashlib import sha256

from asn1crypto.pkcs12 import Pfx
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, pkcs12

from labconsole.errors import BadInput
from labconsole.security.secrets import Secret
from labconsole.security.x509.issuing import check_key_pair
from labconsole.security.x509.key_types import PrivateKey

Exportable = x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList


def as_pem(thing: Exportable) -> bytes:
    """PEM (RFC 7468), ASCII, lines end with a newline."""
    return thing.public_bytes(Encoding.PEM)


def as_der(thing: Exportable) -> bytes:
    """DER (X.690)."""
    return thing.public_bytes(Encoding.DER)


def chain_as_pem(certificates: Sequence[x509.Certificate]) -> bytes:
    """Certificates in PEM, one after the other, the end certificate first, as TLS and AMQP libraries read them."""
    return b"".join(map(as_pem, certificates))


_KEYS = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)
_ROUNDS = 600_000
_BLOCK = 64  # octets


def write_pkcs12(
    key: PrivateKey,
    certificate: x509.Certificate,
    chain: Sequence[x509.Certificate],
    friendly_name: str,
    password: Secret,
) -> bytes:
    """The DER of a PKCS #12 file: PBES2 with AES-256-CBC, HMAC-SHA-256, 600,000 rounds each (0.5 s).

    Raises:
        BadInput: the password is empty, the key is not that of the certificate, is in a token, or is ML-DSA,
            which PKCS #12 files cannot hold yet.
    """
    if not password.reveal():
        raise BadInput("A PKCS #12 file without a password protects nothing: give one.")
    if not isinstance(key, _KEYS):
        raise BadInput("PKCS #12 files cannot hold ML-DSA keys yet: let the other side make its key and send a CSR.")
    check_key_pair(certificate, key)
    encryption = (
        PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(_ROUNDS)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(password.reveal().encode())
    )
    try:
        written = pkcs12.serialize_key_and_certificates(
            friendly_name.encode() or None, key, certificate, chain or None, encryption
        )
    except UnsupportedAlgorithm as error:
        raise BadInput("The private key is in a token, which it never leaves: send a CSR instead.") from error
    return _with_slow_mac(written, password)


def _with_slow_mac(written: bytes, password: Secret) -> bytes:
    """The same file with 600,000 rounds for its integrity check, too, for which the library uses 2,048."""
    file = Pfx.load(written)
    mac = file["mac_data"]
    key = _mac_key(password, mac["mac_salt"].native)
    mac["iterations"] = _ROUNDS
    mac["mac"]["digest"] = hmac.digest(key, file["auth_safe"]["content"].native, "sha256")
    dumped: bytes = file.dump()
    return dumped


def _mac_key(password: Secret, salt: bytes) -> bytes:
    """The key of the integrity check with SHA-256 (RFC 7292, B.2: id 3, blocks of 64 octets, one block of output)."""
    secret = password.reveal().encode("utf-16-be") + b"\0\0"
    key = b"\x03" * _BLOCK + _filled(salt) + _filled(secret)
    for _ in range(_ROUNDS):
        key = sha256(key).digest()
    return key


def _filled(part: bytes) -> bytes:
    """`part` repeated until it fills whole blocks."""
    size = -(-len(part) // _BLOCK) * _BLOCK
    return (part * size)[:size]
