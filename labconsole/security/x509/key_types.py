"""The types of key pairs that certificates are issued for, and the hash for each to sign with."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, mldsa, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

PrivateKey = (
    rsa.RSAPrivateKey
    | ec.EllipticCurvePrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
    | mldsa.MLDSA44PrivateKey
    | mldsa.MLDSA65PrivateKey
    | mldsa.MLDSA87PrivateKey
)
"""A private key that signs certificates, requests and CRLs: in a file, or in a token."""

PublicKey = (
    rsa.RSAPublicKey
    | ec.EllipticCurvePublicKey
    | ed25519.Ed25519PublicKey
    | ed448.Ed448PublicKey
    | mldsa.MLDSA44PublicKey
    | mldsa.MLDSA65PublicKey
    | mldsa.MLDSA87PublicKey
)
"""A public key that a certificate is issued for."""

SMALLEST_RSA_BITS = 2048
"""NIST SP 800-131A; shorter keys get no certificate."""


class KeyType(StrEnum):
    """Types of key pairs; ML-DSA is FIPS 204, in certificates RFC 9881."""

    RSA_2048 = "rsa-2048"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"
    P_256 = "p-256"
    P_384 = "p-384"
    ED25519 = "ed25519"
    ML_DSA_44 = "ml-dsa-44"
    ML_DSA_65 = "ml-dsa-65"
    ML_DSA_87 = "ml-dsa-87"


TITLES = MappingProxyType(
    {
        KeyType.RSA_2048: "RSA-2048",
        KeyType.RSA_3072: "RSA-3072",
        KeyType.RSA_4096: "RSA-4096",
        KeyType.P_256: "ECDSA P-256",
        KeyType.P_384: "ECDSA P-384",
        KeyType.ED25519: "Ed25519",
        KeyType.ML_DSA_44: "ML-DSA-44",
        KeyType.ML_DSA_65: "ML-DSA-65",
        KeyType.ML_DSA_87: "ML-DSA-87",
    }
)
"""Titles for the operator."""

_RSA = {2048: KeyType.RSA_2048, 3072: KeyType.RSA_3072, 4096: KeyType.RSA_4096}
_CURVES = {"secp256r1": KeyType.P_256, "secp384r1": KeyType.P_384}
_STRONG_CURVES = frozenset({*_CURVES, "secp521r1"})


def generate(type: KeyType) -> PrivateKey:
    """A new private key. RSA takes long: 2048 bits 0.1 s, 4096 bits a second or more; all others are immediate."""
    match type:
        case KeyType.RSA_2048 | KeyType.RSA_3072 | KeyType.RSA_4096:
            return rsa.generate_private_key(public_exponent=65537, key_size=int(type.removeprefix("rsa-")))
        case KeyType.P_256:
            return ec.generate_private_key(ec.SECP256R1())
        case KeyType.P_384:
            return ec.generate_private_key(ec.SECP384R1())
        case KeyType.ED25519:
            return ed25519.Ed25519PrivateKey.generate()
        case KeyType.ML_DSA_44:
            return mldsa.MLDSA44PrivateKey.generate()
        case KeyType.ML_DSA_65:
            return mldsa.MLDSA65PrivateKey.generate()
        case KeyType.ML_DSA_87:
            return mldsa.MLDSA87PrivateKey.generate()


def type_of(public_key: PublicKeyTypes) -> KeyType | None:
    """The type of a key, or None if the console makes none of that type (RSA-1024, P-521, DSA...)."""
    match public_key:
        case rsa.RSAPublicKey():
            return _RSA.get(public_key.key_size)
        case ec.EllipticCurvePublicKey():
            return _CURVES.get(public_key.curve.name)
        case ed25519.Ed25519PublicKey():
            return KeyType.ED25519
        case mldsa.MLDSA44PublicKey():
            return KeyType.ML_DSA_44
        case mldsa.MLDSA65PublicKey():
            return KeyType.ML_DSA_65
        case mldsa.MLDSA87PublicKey():
            return KeyType.ML_DSA_87
        case _:
            return None


def problem_of(public_key: PublicKeyTypes) -> str:
    """Why no certificate should be issued for a weak or uncommon key (a sentence); else empty."""
    match public_key:
        case rsa.RSAPublicKey() if public_key.key_size < SMALLEST_RSA_BITS:
            return (
                f"The key is RSA-{public_key.key_size}, which is too short: ask for {SMALLEST_RSA_BITS} bits or more."
            )
        case ec.EllipticCurvePublicKey() if public_key.curve.name not in _STRONG_CURVES:
            return f"The key is on the curve {public_key.curve.name}, which is not used here: ask for P-256 or P-384."
        case _ if not isinstance(public_key, PublicKey):
            return "The key is of a kind that gets no certificate here: ask for RSA, ECDSA P-256, Ed25519 or ML-DSA."
        case _:
            return ""


def signing_hash(key: PrivateKey) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    """The hash for signing with a private key, as strong as the key (SP 800-57); None where the scheme has its own."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        bits = key.curve.key_size
        return hashes.SHA256() if bits <= 256 else hashes.SHA384() if bits <= 384 else hashes.SHA512()
    if isinstance(key, rsa.RSAPrivateKey):
        return hashes.SHA256() if key.key_size <= 3072 else hashes.SHA384()
    return None
