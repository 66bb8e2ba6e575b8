"""Keys and signatures that are too weak to be believed, wherever in a path they are."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

SMALLEST_CURVE_BITS = 224
"""As strong as RSA of 2,048 bits (NIST SP 800-57, 5.6.1.1)."""

_SMALLEST_RSA_BITS = 2048
_BROKEN = (hashes.MD5, hashes.SHA1)
"""Two certificates can be made that have one signature."""


def weak_key(certificate: x509.Certificate) -> str:
    """Why the key of `certificate` is too weak, or nothing."""
    match certificate.public_key():
        case rsa.RSAPublicKey() as key if key.key_size < _SMALLEST_RSA_BITS:
            return f"its RSA key has {key.key_size} bits, and {_SMALLEST_RSA_BITS} is the least"
        case ec.EllipticCurvePublicKey() as key if key.key_size < SMALLEST_CURVE_BITS:
            return f"its ECDSA key has {key.key_size} bits, and {SMALLEST_CURVE_BITS} is the least"
        case dsa.DSAPublicKey():
            return "its key is for DSA, which is withdrawn (FIPS 186-5)"
    return ""


def weakness(path: Sequence[x509.Certificate]) -> str:
    """Why a key or a signature in `path` is too weak, or nothing.

    The last one is trusted itself: whoever signed it does not matter.
    """
    for certificate in path[:-1]:
        if isinstance(certificate.signature_hash_algorithm, _BROKEN):
            return f"it is signed with {certificate.signature_hash_algorithm.name.upper()}, which can be forged"
    return next(filter(None, map(weak_key, path)), "")
