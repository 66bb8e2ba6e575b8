"""How each type of key signs in CMS: digest, signature algorithm, padding."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asn1crypto import algos
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, mldsa, padding, rsa

from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.key_types import PrivateKey

_HASHES: Mapping[str, hashes.HashAlgorithm] = {
    "sha256": hashes.SHA256(),
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
}
_ML_DSA: Mapping[str, type] = {
    "2.16.840.1.101.3.4.3.17": mldsa.MLDSA44PublicKey,
    "2.16.840.1.101.3.4.3.18": mldsa.MLDSA65PublicKey,
    "2.16.840.1.101.3.4.3.19": mldsa.MLDSA87PublicKey,
}
"""RFC 9882, 3; asn1crypto has no names for them, but pyHanko gives it some."""


@dataclass(frozen=True)
class SignatureAlgorithm:
    """One way to sign: `name` as asn1crypto knows it (or an OID), `arguments` for `cryptography`'s sign and verify."""

    name: str
    digest_name: str
    arguments: tuple[Any, ...]
    title: str

    def identifier(self) -> algos.SignedDigestAlgorithm:
        """As it stands in a signer information."""
        return algos.SignedDigestAlgorithm({"algorithm": self.name})

    def digest(self, content: bytes) -> bytes:
        """The message digest of `content`."""
        return hashlib.new(self.digest_name, content).digest()

    def sign(self, key: PrivateKey, data: bytes) -> bytes:
        """The signature of `data`."""
        make: Callable[..., bytes] = key.sign
        return make(data, *self.arguments)

    def verified(self, public_key: Any, signature: bytes, data: bytes) -> bool:
        """Whether `signature` is that of `data` by `public_key`, which is of this algorithm's type."""
        try:
            public_key.verify(signature, data, *self.arguments)
        except InvalidSignature:
            return False
        return True


def algorithm_for(public_key: object) -> SignatureAlgorithm:
    """How one signs with such a key here. Raises BadInput: one does not."""
    match public_key:
        case rsa.RSAPublicKey():
            return _rsa("rsassa_pkcs1v15", "sha256")
        case ec.EllipticCurvePublicKey():
            return _ecdsa("sha384" if public_key.curve.key_size > 256 else "sha256")
        case ed25519.Ed25519PublicKey():
            return _ed25519("sha512")
    for oid, kind in _ML_DSA.items():
        if isinstance(public_key, kind):
            return _ml_dsa(oid, "sha512")
    raise BadInput("This type of key signs no files here: use RSA, ECDSA, Ed25519 or ML-DSA.")


def algorithm_named(
    identifier: algos.SignedDigestAlgorithm, digest_name: str, public_key: object
) -> SignatureAlgorithm:
    """How `identifier` and `public_key` say that it was signed. Raises BadInput: unknown, weak, or not of that key."""
    name, oid = identifier["algorithm"].native, identifier["algorithm"].dotted
    if digest_name in _HASHES:
        match public_key:
            case rsa.RSAPublicKey() if name in ("rsassa_pkcs1v15", f"{digest_name}_rsa"):
                return _rsa(name, digest_name)
            case ec.EllipticCurvePublicKey() if name == f"{digest_name}_ecdsa":
                return _ecdsa(digest_name)
            case ed25519.Ed25519PublicKey() if name == "ed25519":
                return _ed25519(digest_name)
        if oid in _ML_DSA and isinstance(public_key, _ML_DSA[oid]):
            return _ml_dsa(oid, digest_name)
    raise BadInput(f"The signed file is signed by {name} with {digest_name}, which is not accepted: ask for another.")


def _rsa(name: str, digest_name: str) -> SignatureAlgorithm:
    return SignatureAlgorithm(
        name, digest_name, (padding.PKCS1v15(), _HASHES[digest_name]), f"RSA with {_words(digest_name)}"
    )


def _ecdsa(digest_name: str) -> SignatureAlgorithm:
    return SignatureAlgorithm(
        f"{digest_name}_ecdsa", digest_name, (ec.ECDSA(_HASHES[digest_name]),), f"ECDSA with {_words(digest_name)}"
    )


def _ed25519(digest_name: str) -> SignatureAlgorithm:
    return SignatureAlgorithm("ed25519", digest_name, (), "Ed25519")


def _ml_dsa(oid: str, digest_name: str) -> SignatureAlgorithm:
    return SignatureAlgorithm(oid, digest_name, (), f"ML-DSA-{_ML_DSA[oid].__name__[5:7]}")


def _words(digest_name: str) -> str:
    return f"SHA-{digest_name[3:]}"
