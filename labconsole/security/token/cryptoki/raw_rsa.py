"""Raw RSA operations of a key pair in a token, as device benchmarks time them: no digest and no object is created."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import cast

from pkcs11 import Attribute, KeyType, Mechanism, MechanismFlag, ObjectClass, PrivateKey, PublicKey, Session
from pkcs11.types import DecryptMixin, EncryptMixin, SignMixin, VerifyMixin

from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.errors import TokenError

_USES = MechanismFlag.SIGN | MechanismFlag.VERIFY | MechanismFlag.ENCRYPT | MechanismFlag.DECRYPT
_ID_BYTES = 16


class RawPublicKey(PublicKey, VerifyMixin, EncryptMixin):
    """The type of python-pkcs11 for a public key with every use."""


class RawPrivateKey(PrivateKey, SignMixin, DecryptMixin):
    """The type of python-pkcs11 for a private key with every use."""


@dataclass(frozen=True)
class RawRSAPair:
    """An RSA key pair of session objects for signing and encryption (PKCS#11 v2.40 current, 2.1), of one session.

    All methods raise TokenError: the token is gone, refuses, or has no such mechanism.
    """

    public: RawPublicKey
    private: RawPrivateKey
    id: bytes

    def sign(self, data: bytes) -> bytes:
        """The signature of `data` itself, at most 11 bytes shorter than the key (CKM_RSA_PKCS)."""
        with translated_errors("sign", self._token):
            return self.private.sign(data, mechanism=Mechanism.RSA_PKCS)

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Whether `signature` is that of `data`, checked in the token (CKM_RSA_PKCS)."""
        with translated_errors("verify a signature", self._token):
            return bool(self.public.verify(data, signature, mechanism=Mechanism.RSA_PKCS))

    def hash_and_sign(self, data: bytes) -> bytes:
        """The signature of the SHA-256 digest of `data`, which the token computes (CKM_SHA256_RSA_PKCS)."""
        with translated_errors("hash and sign", self._token):
            return self.private.sign(data, mechanism=Mechanism.SHA256_RSA_PKCS)

    def encrypt(self, data: bytes) -> bytes:
        """`data`, at most 11 bytes shorter than the key, encrypted in the token (CKM_RSA_PKCS)."""
        with translated_errors("encrypt", self._token):
            return cast(bytes, self.public.encrypt(data, mechanism=Mechanism.RSA_PKCS))

    def decrypt(self, encrypted: bytes) -> bytes:
        """The decrypted data (CKM_RSA_PKCS)."""
        with translated_errors("decrypt", self._token):
            return cast(bytes, self.private.decrypt(encrypted, mechanism=Mechanism.RSA_PKCS))

    def in_session(self, session: Session) -> RawRSAPair:
        """The same pair through another session of the token, for another thread. Raises TokenError: it is gone."""
        with translated_errors("find a key pair", self._token):
            public = cast(RawPublicKey, _only(session, ObjectClass.PUBLIC_KEY, self.id))
            return RawRSAPair(public, cast(RawPrivateKey, _only(session, ObjectClass.PRIVATE_KEY, self.id)), self.id)

    def destroy(self) -> None:
        """Remove both keys from the token."""
        with translated_errors("destroy a key pair", self._token):
            self.private.destroy()
            self.public.destroy()

    @property
    def _token(self) -> str:
        return self.private.session.token.label


def generate_rsa(session: Session, bits: int) -> RawRSAPair:
    """A new RSA key pair of `bits` (C_GenerateKeyPair), for the time of the session.

    Takes 0.03 s (1024 bits) to some minutes (8192), at random, and cannot be interrupted.

    Raises:
        TokenError: the token makes no keys of that size, is full or gone.
    """
    key_id = secrets.token_bytes(_ID_BYTES)
    private = {Attribute.PRIVATE: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}
    with translated_errors(f"generate an RSA key pair of {bits} bits", session.token.label):
        public, handle = session.generate_keypair(
            KeyType.RSA, bits, id=key_id, store=False, capabilities=_USES, private_template=private
        )
    return RawRSAPair(cast(RawPublicKey, public), cast(RawPrivateKey, handle), key_id)


def _only(session: Session, object_class: ObjectClass, key_id: bytes) -> object:
    found = list(session.get_objects({Attribute.CLASS: object_class, Attribute.ID: key_id}))
    if len(found) != 1:
        raise TokenError(f"The token {session.token.label} has lost a key pair that was generated for a benchmark.")
    return found[0]
