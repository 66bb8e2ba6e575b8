"""What a wrap mechanism makes of known values under a known key: modules differ, whatever its number says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import (
    InvalidUnwrap,
    aes_key_unwrap,
    aes_key_wrap,
    aes_key_wrap_with_padding,
)
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass, SecretKey, Session
from pkcs11.exceptions import PKCS11Error

from labconsole.security.token.cryptoki.key_pairs import SigningKey
from labconsole.security.token.cryptoki.wrapping import WrappingKey, wrap_with
from labconsole.security.token.mechanisms import WrapBehaviour, WrapMechanism

_KEY = bytes(range(32))
_VALUES = (bytes.fromhex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"), bytes(range(20)))
"""Key and value of RFC 3394, 4.6; the second value is no multiple of 8 bytes, which shows how a module pads."""

_NONCE = bytes(range(100, 112))

_DER_HEAD = 4
"""Bytes before the contents of a sequence of 256 to 65,535 bytes: tag, length of the length, length (X.690, 8.1.3)."""


def _zero_padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 8)


def _pkcs7_padded(value: bytes) -> bytes:
    """PKCS #7 padding to blocks of 8 bytes (RFC 5652, 6.3): 1 to 8 bytes, each of them their number."""
    number = 8 - len(value) % 8
    return value + bytes([number]) * number


_FORMS: Mapping[WrapBehaviour, Callable[[bytes], bytes]] = {
    WrapBehaviour.RFC5649: lambda value: aes_key_wrap_with_padding(_KEY, value),
    WrapBehaviour.RFC5649_ZERO_PADDED: lambda value: aes_key_wrap_with_padding(_KEY, _zero_padded(value)),
    WrapBehaviour.RFC3394_ZERO_PADDED: lambda value: aes_key_wrap(_KEY, _zero_padded(value)),
    WrapBehaviour.RFC3394_PKCS7: lambda value: aes_key_wrap(_KEY, _pkcs7_padded(value)),
    WrapBehaviour.AES_GCM: lambda value: _NONCE + AESGCM(_KEY).encrypt(_NONCE, value, None),
}
"""What each behaviour makes of a value of any length; RFC 3394 itself takes multiples of 8 bytes alone."""


@dataclass(frozen=True)
class KnownObjects:
    """The known key and the known values, as session objects of a token."""

    key: WrappingKey
    values: tuple[SecretKey, ...]

    def behaviour(self, mechanism: WrapMechanism) -> WrapBehaviour:
        """How `mechanism` wraps them (PKCS#11 v2.40, 5.13: C_WrapKey), told from the bytes."""
        seen = tuple(self._wrapped(mechanism, value) for value in self.values)
        if seen == (aes_key_wrap(_KEY, _VALUES[0]), None):
            return WrapBehaviour.RFC3394
        forms = (behaviour for behaviour, form in _FORMS.items() if seen == tuple(map(form, _VALUES)))
        return next(forms, WrapBehaviour.UNKNOWN)

    def needs_padding(self, rsa_key: SigningKey) -> bool:
        """Whether the key's PKCS #8 form is no multiple of 8 bytes: of RSA-2048 keys one in four is, by chance.

        A module that does not pad wraps such a key with CKM_AES_KEY_WRAP, and refuses the next one.
        """
        try:
            plain = aes_key_unwrap(_KEY, self.key.wrap_key(rsa_key, mechanism=Mechanism.AES_KEY_WRAP))
        except (PKCS11Error, InvalidUnwrap):
            return True
        return (_DER_HEAD + int.from_bytes(plain[2:_DER_HEAD], "big")) % 8 != 0

    def _wrapped(self, mechanism: WrapMechanism, value: SecretKey) -> bytes | None:
        try:
            return wrap_with(self.key, value, mechanism, nonce=_NONCE)
        except PKCS11Error:
            return None


def import_known(session: Session, made: ExitStack) -> KnownObjects | None:
    """Put key and values into the token as session objects; `made` destroys them. None if the module takes none."""
    common = {Attribute.CLASS: ObjectClass.SECRET_KEY, Attribute.TOKEN: False, Attribute.PRIVATE: True}
    uses = {Attribute.WRAP: True, Attribute.UNWRAP: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}
    secret = {**common, Attribute.KEY_TYPE: KeyType.GENERIC_SECRET, Attribute.EXTRACTABLE: True}
    objects = []
    try:
        for template in (
            {**common, **uses, Attribute.KEY_TYPE: KeyType.AES, Attribute.VALUE: _KEY},
            *({**secret, Attribute.VALUE: value} for value in _VALUES),
        ):
            objects.append(session.create_object(template))
            made.callback(objects[-1].destroy)
    except PKCS11Error:
        return None
    key, *values = objects
    return KnownObjects(cast(WrappingKey, key), tuple(cast(SecretKey, value) for value in values))
