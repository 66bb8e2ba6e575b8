"""The base classes of all private keys in tokens, and the digests that they sign: free of python-pkcs11.

The keys of `private_keys` belong to the process that has loaded the module, those of `remote_private_key` to its child.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn, Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.utils import Buffer

HASHES = MappingProxyType({"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()})
"""Hashes of digests that keys in tokens sign, by the name in `cryptography`."""


class _StaysInToken:
    """A private key that cannot be read."""

    def private_numbers(self) -> NoReturn:
        """Raises UnsupportedAlgorithm."""
        raise UnsupportedAlgorithm("The private key never leaves its token.")

    def private_bytes(self, encoding: object, format: object, encryption_algorithm: object) -> NoReturn:
        """Raises UnsupportedAlgorithm."""
        raise UnsupportedAlgorithm("The private key never leaves its token.")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class RSAPrivateKeyInToken(_StaysInToken, rsa.RSAPrivateKey):
    """An RSA key in a token, without `sign`."""

    def __init__(self, public_key: rsa.RSAPublicKey) -> None:
        self._public_key = public_key

    def public_key(self) -> rsa.RSAPublicKey:
        """The public key, outside the token."""
        return self._public_key

    @property
    def key_size(self) -> int:
        """Bits of the modulus."""
        return self._public_key.key_size

    def decrypt(self, ciphertext: bytes, padding: padding.AsymmetricPadding) -> NoReturn:
        """Raises UnsupportedAlgorithm."""
        raise UnsupportedAlgorithm("The key in the token signs only: it does not decrypt.")


class ECPrivateKeyInToken(_StaysInToken, ec.EllipticCurvePrivateKey):
    """An EC key in a token, without `sign`."""

    def __init__(self, public_key: ec.EllipticCurvePublicKey) -> None:
        self._public_key = public_key

    def public_key(self) -> ec.EllipticCurvePublicKey:
        """The public key, outside the token."""
        return self._public_key

    @property
    def curve(self) -> ec.EllipticCurve:
        """The curve."""
        return self._public_key.curve

    @property
    def key_size(self) -> int:
        """Bits of the curve's order."""
        return self._public_key.key_size

    def exchange(self, algorithm: ec.ECDH, peer_public_key: ec.EllipticCurvePublicKey) -> NoReturn:
        """Raises UnsupportedAlgorithm."""
        raise UnsupportedAlgorithm("The key in the token signs only: it agrees on no secret.")


@dataclass(frozen=True)
class RSAScheme:
    """How an RSA key signs a digest: PKCS #1 v1.5 if `salt_length` is None, else PSS with that many bytes of salt."""

    hash_name: str
    salt_length: int | None


def digest_of(
    data: Buffer, algorithm: utils.Prehashed | hashes.HashAlgorithm | utils.NoDigestInfo
) -> tuple[bytes, hashes.HashAlgorithm]:
    """The digest of `data`, or `data` itself if it is one already, and its hash.

    Raises:
        UnsupportedAlgorithm: the hash is not named.
        ValueError: the digest has a length that is not its hash's.
    """
    if isinstance(algorithm, utils.Prehashed):
        digest = bytes(memoryview(data))
        if len(digest) != algorithm.digest_size:
            raise ValueError(f"The digest has {len(digest)} bytes, its hash makes {algorithm.digest_size}.")
        return digest, algorithm._algorithm
    if isinstance(algorithm, utils.NoDigestInfo):
        raise UnsupportedAlgorithm("A key in a token signs a digest whose hash is named.")
    hasher = hashes.Hash(algorithm)
    hasher.update(data)
    return hasher.finalize(), algorithm


def ecdsa_digest(
    data: Buffer, signature_algorithm: ec.EllipticCurveSignatureAlgorithm
) -> tuple[bytes, hashes.HashAlgorithm]:
    """As `digest_of`, for ECDSA. Raises UnsupportedAlgorithm too: another scheme, or deterministic ECDSA."""
    if not isinstance(signature_algorithm, ec.ECDSA) or signature_algorithm.deterministic_signing:
        raise UnsupportedAlgorithm("An EC key in a token signs with ECDSA and a random number of the token's.")
    return digest_of(data, signature_algorithm.algorithm)


def rsa_scheme(
    scheme: padding.AsymmetricPadding, hashed_with: hashes.HashAlgorithm, public_key: rsa.RSAPublicKey
) -> RSAScheme:
    """How a digest of the hash `hashed_with` is to be signed.

    Raises:
        UnsupportedAlgorithm: another padding, hash or mask, or PSS.AUTO, which has no meaning for signing.
        ValueError: the salt does not fit.
    """
    name = hashed_with.name
    if name not in HASHES:
        raise UnsupportedAlgorithm(f"An RSA key in a token signs with SHA-256, 384 or 512, not with {name}.")
    if isinstance(scheme, padding.PKCS1v15):
        return RSAScheme(name, None)
    if isinstance(scheme, padding.PSS) and scheme.mgf._algorithm.name == name:
        return RSAScheme(name, _salt_length(scheme, hashed_with, public_key))
    raise UnsupportedAlgorithm("An RSA key in a token signs with PKCS #1 v1.5, or PSS whose mask has the same hash.")


def _salt_length(scheme: padding.PSS, hashed_with: hashes.HashAlgorithm, public_key: rsa.RSAPublicKey) -> int:
    """Bytes of salt (RFC 8017, 9.1)."""
    longest = padding.calculate_max_pss_salt_length(public_key, hashed_with)
    asked = scheme._salt_length
    if asked is padding.PSS.DIGEST_LENGTH:
        return hashed_with.digest_size
    if asked is padding.PSS.MAX_LENGTH:
        return longest
    if not isinstance(asked, int):
        raise UnsupportedAlgorithm("PSS.AUTO finds the salt of a signature: to sign, say how long it is to be.")
    if asked > longest:
        raise ValueError(f"A salt of {asked} bytes is too long for this key and hash: {longest} at most.")
    return asked
