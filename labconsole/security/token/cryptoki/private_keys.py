"""A private key in a token as a `cryptography` private key, to sign CSRs, certificates, CRLs and CMS."""

from __future__ import annotations

from typing import cast

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.utils import Buffer
from pkcs11 import MGF, Attribute, Mechanism, ObjectClass, PublicKey, Session

from labconsole.security.token.cryptoki.key_pairs import SigningKey, public_key_of
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.errors import KeyMissingError, TokenError
from labconsole.security.token.private_key_types import (
    ECPrivateKeyInToken,
    RSAPrivateKeyInToken,
    digest_of,
    ecdsa_digest,
    rsa_scheme,
)

_DIGEST_INFO = {
    "sha256": bytes.fromhex("3031300d060960864801650304020105000420"),
    "sha384": bytes.fromhex("3041300d060960864801650304020205000430"),
    "sha512": bytes.fromhex("3051300d060960864801650304020305000440"),
}
"""DigestInfo prefixes of PKCS #1 v1.5 (RFC 8017, 9.2, note 1)."""

_PSS = {
    "sha256": (Mechanism.SHA256, MGF.SHA256),
    "sha384": (Mechanism.SHA384, MGF.SHA384),
    "sha512": (Mechanism.SHA512, MGF.SHA512),
}


class _Destroyed:
    """A mixin of keys of this process: they can be destroyed in the token."""

    handle: SigningKey

    def destroy(self) -> None:
        """Remove the private key from the token. Raises TokenError."""
        with translated_errors("destroy a private key", self.handle.session.token.label):
            self.handle.destroy()


class TokenRSAPrivateKey(_Destroyed, RSAPrivateKeyInToken):
    """An RSA key that never leaves its token."""

    def __init__(self, handle: SigningKey, public_key: rsa.RSAPublicKey) -> None:
        super().__init__(public_key)
        self.handle = handle

    def sign(
        self,
        data: bytes,
        padding: padding.AsymmetricPadding,
        algorithm: utils.Prehashed | hashes.HashAlgorithm | utils.NoDigestInfo,
    ) -> bytes:
        """PKCS #1 v1.5 or PSS (RFC 8017, 8.2 and 8.1) with SHA-256, 384 or 512; the digest is computed outside.

        Raises:
            UnsupportedAlgorithm: another padding, hash or mask, or PSS.AUTO, which has no meaning for signing.
            ValueError: the digest or the salt has a length that does not fit.
            TokenError: the token is gone or refuses.
        """
        digest, hashed_with = digest_of(data, algorithm)
        scheme = rsa_scheme(padding, hashed_with, self.public_key())
        if scheme.salt_length is None:
            return _sign(self.handle, _DIGEST_INFO[scheme.hash_name] + digest, Mechanism.RSA_PKCS)
        return _sign(self.handle, digest, Mechanism.RSA_PKCS_PSS, (*_PSS[scheme.hash_name], scheme.salt_length))


class TokenECPrivateKey(_Destroyed, ECPrivateKeyInToken):
    """An EC key that never leaves its token."""

    def __init__(self, handle: SigningKey, public_key: ec.EllipticCurvePublicKey) -> None:
        super().__init__(public_key)
        self.handle = handle

    def sign(self, data: Buffer, signature_algorithm: ec.EllipticCurveSignatureAlgorithm) -> bytes:
        """ECDSA (FIPS 186-4, 6), as a DER sequence of r and s; the digest is computed outside.

        Raises:
            UnsupportedAlgorithm: another scheme, or deterministic signatures.
            ValueError: the digest has a length that is not its hash's.
            TokenError: the token is gone or refuses.
        """
        digest, _ = ecdsa_digest(data, signature_algorithm)
        raw = _sign(self.handle, digest, Mechanism.ECDSA)
        half = len(raw) // 2
        return utils.encode_dss_signature(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"))


PrivateKey = TokenRSAPrivateKey | TokenECPrivateKey


def private_key(handle: SigningKey, public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> PrivateKey:
    """The private key at `handle`, with the public key `public_key`: only a verified signature proves the pair."""
    if isinstance(public_key, rsa.RSAPublicKey):
        return TokenRSAPrivateKey(handle, public_key)
    return TokenECPrivateKey(handle, public_key)


def find_private_key(session: Session, label: str) -> PrivateKey:
    """The private key in the token whose label (CKA_LABEL) is `label`; its public key is stored with it.

    Raises:
        KeyMissingError: there is none, or one without its public key.
        TokenError: there is more than one.
    """
    with translated_errors(f"find the key {label}", session.token.label):
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
        "name another label, or generate the key pair."
    )


def _sign(handle: SigningKey, data: bytes, mechanism: Mechanism, parameter: object = None) -> bytes:
    with translated_errors("sign", handle.session.token.label):
        return handle.sign(data, mechanism=mechanism, mechanism_param=parameter)
