"""Raw AES in a token: a key that stays in it, and blocks enciphered with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pkcs11 import Attribute, KeyType, Mechanism, MechanismFlag, SecretKey, Session
from pkcs11.types import EncryptMixin

from labconsole.security.token.cryptoki.module_errors import translated_errors

_BLOCK = 16


class _SecretHandle(SecretKey, EncryptMixin):
    """The type of python-pkcs11 for an AES key that may encrypt."""


@dataclass(frozen=True)
class RawAESKey:
    """An AES key of a session object, lost with its session."""

    handle: _SecretHandle

    def encipher(self, blocks: bytes) -> bytes:
        """Whole blocks of 16 octets, each enciphered by itself (CKM_AES_ECB). Raises TokenError."""
        with translated_errors("encrypt", self.handle.session.token.label):
            return cast(bytes, self.handle.encrypt(blocks, mechanism=Mechanism.AES_ECB))

    def last_chained(self, blocks: bytes) -> bytes:
        """The last of whole blocks, chained from a block of zeros on (CKM_AES_CBC): a CBC-MAC. Raises TokenError."""
        with translated_errors("encrypt", self.handle.session.token.label):
            chained = self.handle.encrypt(blocks, mechanism=Mechanism.AES_CBC, mechanism_param=bytes(_BLOCK))
            return cast(bytes, chained)[-_BLOCK:]


def generate_aes(session: Session, bits: int = 128) -> RawAESKey:
    """A new AES key for the time of the session; it cannot be extracted.

    Raises TokenError: the token generates no such keys, is full or gone.
    """
    template = {Attribute.PRIVATE: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}
    with translated_errors("generate an AES key", session.token.label):
        handle = session.generate_key(
            KeyType.AES, bits, store=False, capabilities=MechanismFlag.ENCRYPT, template=template
        )
        return RawAESKey(cast(_SecretHandle, handle))
