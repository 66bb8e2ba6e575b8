"""A private key in a token as `cryptography` knows private keys: CSRs, certificates, CRLs and CMS are built with it."""

from __future__ import annotations

from typing import Any, NoReturn, Self, cast

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.utils import Buffer
from pkcs11 import MGF, Attribute, Mechanism, ObjectClass, PublicKey, Session

from labconsole.security.token.errors import KeyMissingError, TokenError
from labconsole.security.token.explaining import explained
from labconsole.security.token.key_pairs import SigningKey, public_key_of

_DIGEST_INFO = {
    "sha256": bytes.fromhex("3031300d060960864801650304020105000420"),
    "sha384": bytes.fromhex("3041300d060960864801650304020205000430"),
    "sha512": bytes.fromhex("3051300d060960864801650304020305000440"),
}
"""What stands before the digest in PKCS #1 v1.5 (RFC 8017, 9.2, note 1)."""

_PSS = {
    "sha256": (Mechanism.SHA256, MGF.SHA256),
    "sha384": (Mechanism.SHA384, MGF.SHA384),
    "sha512": (Mechanism.SHA512, MGF.SHA512),
}


class _StaysInToken:
    """What all keys in a token have in common: they are destroyed there, and cannot be read."""

    handle: SigningKey

    def destroy(self) -> None:
        """Remove the private key from the token. Raises TokenError."""
        with explained("destroy a private key", self.handle.session.token.label):
            self.handle.destroy()

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


class TokenRSAPrivateKey(_StaysInToken, rsa.RSAPrivateKey):
    """An RSA key that never leaves its token."""

    def __init__(self, handle: SigningKey, public_key: rsa.RSAPublicKey) -> None:
        self.handle = handle
        self._public_key = public_key

    def sign(
        self,
        data: bytes,
        padding: padding.AsymmetricPadding,
        algorithm: utils.Prehashed | hashes.HashAlgorithm | utils.NoDigestInfo,
    ) -> bytes:
        """PKCS #1 v1.5 or PSS (RFC 8017, 8.2 and 8.1) with SHA-256, 384 or 512; the digest is made outside.

        Raises:
            UnsupportedAlgorithm: another padding, hash or mask, or PSS.AUTO, which says nothing to a signer.
            ValueError: the digest or the salt has a length that does not fit.
            TokenError: the token is gone or refuses.
        """
        digest, hashed_with = _digest(data, algorithm)
        return _sign(self.handle, *_rsa_mechanism(padding, hashed_with, digest, self._public_key))

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


class TokenECPrivateKey(_StaysInToken, ec.EllipticCurvePrivateKey):
    """An EC key that never leaves its token."""

    def __init__(self, handle: SigningKey, public_key: ec.EllipticCurvePublicKey) -> None:
        self.handle = handle
        self._public_key = public_key

    def sign(self, data: Buffer, signature_algorithm: ec.EllipticCurveSignatureAlgorithm) -> bytes:
        """ECDSA (FIPS 186-4, 6), as a DER sequence of r and s; the digest is made outside.

        Raises:
            UnsupportedAlgorithm: another scheme, or deterministic signatures.
            ValueError: the digest has a length that is not its hash's.
            TokenError: the token is gone or refuses.
        """
        if not isinstance(signature_algorithm, ec.ECDSA) or signature_algorithm.deterministic_signing:
            raise UnsupportedAlgorithm("An EC key in a token signs with ECDSA and a random number of the token's.")
        digest, _ = _digest(data, signature_algorithm.algorithm)
        raw = _sign(self.handle, digest, Mechanism.ECDSA)
        half = len(raw) // 2
        return utils.encode_dss_signature(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"))

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


PrivateKey = TokenRSAPrivateKey | TokenECPrivateKey


def private_key(handle: SigningKey, public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> PrivateKey:
    """The private key at `handle`, whose public key is `public_key`: nothing but a verified signature shows that."""
    if isinstance(public_key, rsa.RSAPublicKey):
        return TokenRSAPrivateKey(handle, public_key)
    return TokenECPrivateKey(handle, public_key)


def find_private_key(session: Session, label: str) -> PrivateKey:
    """The private key in the token whose label (CKA_LABEL) is `label`; its public key lies beside it.

    Raises:
        KeyMissingError: there is none, or one without its public key.
        TokenError: there is more than one.
    """
    with explained(f"find the key {label}", session.token.label):
        handle = cast(SigningKey, _only(session, ObjectClass.PRIVATE_KEY, label))
        public = cast(PublicKey, _only(session, ObjectClass.PUBLIC_KEY, label))
        return private_key(handle, public_key_of(public))


def _only(session: Session, object_class: ObjectClass, label: str) -> object:
    found = list(session.get_objects({Attribute.CLASS: object_class, Attribute.LABEL: label}))
    if len(found) == 1:
        return found[0]
    what = "private" if object_class is ObjectClass.PRIVATE_KEY else "public"
    raise (TokenError if found else KeyMissingError)(
        f"The token {session.token.label} has {len(found) or 'no'} {what} keys labelled {label}, where one is needed: "
        "name another label, or make the key pair."
    )


def _sign(handle: SigningKey, data: bytes, mechanism: Mechanism, parameter: object = None) -> bytes:
    with explained("sign", handle.session.token.label):
        return handle.sign(data, mechanism=mechanism, mechanism_param=parameter)


def _digest(
    data: Buffer, algorithm: utils.Prehashed | hashes.HashAlgorithm | utils.NoDigestInfo
) -> tuple[bytes, hashes.HashAlgorithm]:
    """The digest of `data`, or `data` where it is one already, and the hash that made it."""
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


def _rsa_mechanism(
    scheme: padding.AsymmetricPadding, hashed_with: hashes.HashAlgorithm, digest: bytes, public_key: rsa.RSAPublicKey
) -> tuple[bytes, Mechanism, object]:
    """What the token is to sign, by which mechanism, and that one's parameter (PKCS#11 v2.40 current, 2.1)."""
    name = hashed_with.name
    if name not in _DIGEST_INFO:
        raise UnsupportedAlgorithm(f"An RSA key in a token signs with SHA-256, 384 or 512, not with {name}.")
    if isinstance(scheme, padding.PKCS1v15):
        return _DIGEST_INFO[name] + digest, Mechanism.RSA_PKCS, None
    if isinstance(scheme, padding.PSS) and scheme.mgf._algorithm.name == name:
        return digest, Mechanism.RSA_PKCS_PSS, (*_PSS[name], _salt_length(scheme, hashed_with, public_key))
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
