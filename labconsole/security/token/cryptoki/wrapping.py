"""Wraps private keys of a token with an AES key that stays in it, and unwraps them for signing only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from pkcs11 import Attribute, GCMParams, Key, KeyType, Mechanism, MechanismFlag, ObjectClass, SecretKey, Session
from pkcs11.constants import DEFAULT
from pkcs11.exceptions import (
    DataInvalid,
    DataLenRange,
    DeviceError,
    DeviceRemoved,
    EncryptedDataInvalid,
    EncryptedDataLenRange,
    FunctionFailed,
    GeneralError,
    PKCS11Error,
    TemplateIncomplete,
    WrappedKeyInvalid,
    WrappedKeyLenRange,
)
from pkcs11.types import UnwrapMixin, WrapMixin

from labconsole.security.token.cryptoki.key_pairs import KeyPair, SigningKey, key_type, signing_key
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.errors import KeyMissingError, TamperedKeyError, TokenError
from labconsole.security.token.mechanisms import AES_GCM, KeyKind, WrapMechanism

NOT_THIS_KEY = (
    DataInvalid,
    DataLenRange,
    DeviceError,
    EncryptedDataInvalid,
    EncryptedDataLenRange,
    FunctionFailed,
    GeneralError,
    TemplateIncomplete,
    WrappedKeyInvalid,
    WrappedKeyLenRange,
)
"""Errors of modules for a wrapped key that fails its integrity check, or is not of the requested type."""

GCM_NONCE_BYTES = 12

WRAPPER_USES = MechanismFlag.WRAP | MechanismFlag.UNWRAP
WRAPPER_TEMPLATE = {Attribute.PRIVATE: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: True}
"""Attributes of a wrapper key: it wraps and unwraps, cannot be read, and leaves its token wrapped only."""

_UNWRAPPED = {
    Attribute.PRIVATE: True,
    Attribute.SENSITIVE: True,
    Attribute.EXTRACTABLE: False,
    Attribute.DECRYPT: False,
    Attribute.UNWRAP: False,
    # python-pkcs11 adds these three, which private keys do not have: SoftHSM refuses them.
    Attribute.ENCRYPT: DEFAULT,
    Attribute.WRAP: DEFAULT,
    Attribute.VERIFY: DEFAULT,
}


class WrappingKey(SecretKey, WrapMixin, UnwrapMixin):
    """The type of python-pkcs11 for an AES key that may wrap and unwrap."""


def pkcs11_mechanism(number: int) -> Mechanism:
    """The mechanism of that number for python-pkcs11, which lacks vendor-defined ones."""
    try:
        return Mechanism(number)
    except ValueError:
        vendor = int.__new__(Mechanism, number)
        vendor._name_, vendor._value_ = f"0x{number:X}", number
        return vendor


def wrap_with(key: WrappingKey, wrapped: Key, mechanism: WrapMechanism, nonce: bytes | None = None) -> bytes:
    """The wrapped key; with AES-GCM, its nonce comes first, a random one if none is given.

    Raises PKCS11Error.
    """
    if mechanism != AES_GCM:
        return key.wrap_key(wrapped, mechanism=pkcs11_mechanism(mechanism))
    nonce = nonce or os.urandom(GCM_NONCE_BYTES)
    parameter = cast(bytes, GCMParams(nonce))  # as python-pkcs11 takes it, but its annotations do not say
    return nonce + key.wrap_key(wrapped, mechanism=Mechanism.AES_GCM, mechanism_param=parameter)


def _unpacked(wrapped: bytes, mechanism: WrapMechanism) -> tuple[bytes | None, bytes]:
    """The mechanism's parameter, and the encrypted key. Raises WrappedKeyLenRange."""
    if mechanism != AES_GCM:
        return None, wrapped
    if len(wrapped) <= GCM_NONCE_BYTES:
        raise WrappedKeyLenRange
    return cast(bytes, GCMParams(wrapped[:GCM_NONCE_BYTES])), wrapped[GCM_NONCE_BYTES:]


@dataclass(frozen=True)
class Wrapper:
    """An AES-256 key in the token, used through one session; `serial` is its label (CKA_LABEL)."""

    key: WrappingKey
    serial: str
    mechanism: WrapMechanism

    def wrap(self, pair: KeyPair) -> bytes:
        """The private key, encrypted (PKCS#11 v2.40: C_WrapKey).

        It contains a PKCS #8 PrivateKeyInfo, padded as the mechanism does: 80 bytes for P-256, 1232 for RSA-2048.

        Raises:
            TokenError: the key is not extractable, or the token cannot wrap it.
            MechanismMissingError: the token has no such mechanism.
        """
        with translated_errors("wrap a private key", self._token):
            return wrap_with(self.key, pair.private_handle, self.mechanism)

    def unwrap(self, wrapped: bytes, kind: KeyKind, *, stored: bool = False) -> SigningKey:
        """The private key, in the token again: it signs, is sensitive and never extractable (C_UnwrapKey).

        `stored` makes a token object, which outlives the session and costs an fsync; else a session object.
        Any key wrapped by this wrapper unwraps: only a signature verified with the public key shows which key it is.

        Raises:
            TamperedKeyError: it was changed or cut, was wrapped by another wrapper, or is not a key of this kind.
            TokenError: the token is full or gone.
        """
        with translated_errors("unwrap a private key", self._token), self._recognised(kind):
            parameter, encrypted = _unpacked(wrapped, self.mechanism)
            unwrapped = self.key.unwrap_key(
                ObjectClass.PRIVATE_KEY,
                key_type(kind),
                encrypted,
                mechanism=pkcs11_mechanism(self.mechanism),
                mechanism_param=parameter,
                store=stored,
                capabilities=MechanismFlag.SIGN,
                template=_UNWRAPPED,
            )
        return signing_key(unwrapped, kind)

    def in_session(self, session: Session) -> Wrapper:
        """The same key through another session, for another thread. Raises TokenError as `find_wrapper`."""
        return find_wrapper(session, self.serial, self.mechanism)

    def destroy(self) -> None:
        """Destroy it in its token: keys wrapped by it are lost, unless another token has it too. Raises TokenError."""
        with translated_errors(f"destroy the wrapper key {self.serial}", self._token):
            self.key.destroy()

    @property
    def _token(self) -> str:
        return self.key.session.token.label

    def _token_is_there(self) -> bool:
        """Whether the device answers: a missing one reports the same general errors as a changed key."""
        token = self.key.session.token
        try:
            return bool(token.slot.get_token().serial == token.serial)
        except PKCS11Error:
            return False

    @contextmanager
    def _recognised(self, kind: KeyKind) -> Iterator[None]:
        try:
            yield
        except NOT_THIS_KEY as error:
            if not self._token_is_there():
                raise DeviceRemoved from error
            raise TamperedKeyError(
                f"The token {self._token} cannot unwrap a private key with {self.serial}: "
                f"it was changed, was wrapped by another key, or is not a {kind} key. Do not use it."
            ) from error


def make_wrapper(session: Session, serial: str, mechanism: WrapMechanism, *, stored: bool = True) -> Wrapper:
    """A new AES-256 key in the token that wraps and unwraps and does nothing else.

    It is a token object, found by every process of the token, sensitive, and extractable so that a transport key can
    copy it to another token. One that is not `stored` is found by this process only, and lost with its session.

    Raises:
        TokenError: one with that serial exists; the token is full, write-protected or gone.
    """
    with translated_errors(f"generate the wrapper key {serial}", session.token.label):
        if _keys(session, serial):
            raise TokenError(
                f"The token {session.token.label} has a wrapper key {serial} already: take another serial."
            )
        key = session.generate_key(
            KeyType.AES,
            256,
            label=serial,
            store=stored,
            capabilities=WRAPPER_USES,
            template=WRAPPER_TEMPLATE,
        )
    return Wrapper(cast(WrappingKey, key), serial, mechanism)


def find_wrapper(session: Session, serial: str, mechanism: WrapMechanism) -> Wrapper:
    """The wrapper key with that serial. Takes 0.1 s in a token with 20,000 objects: keep the result.

    Raises:
        KeyMissingError: it is not in this token.
        TokenError: two have that serial.
    """
    with translated_errors(f"find the wrapper key {serial}", session.token.label):
        found = _keys(session, serial)
    if not found:
        raise KeyMissingError(
            f"The token {session.token.label} has no wrapper key {serial}: "
            "load it from its shares, or use the token that it was generated in."
        )
    if len(found) > 1:
        raise TokenError(
            f"The token {session.token.label} has {len(found)} wrapper keys {serial}: destroy those that are not meant."
        )
    return Wrapper(found[0], serial, mechanism)


def _keys(session: Session, serial: str) -> list[WrappingKey]:
    sought = {Attribute.CLASS: ObjectClass.SECRET_KEY, Attribute.KEY_TYPE: KeyType.AES, Attribute.LABEL: serial}
    return cast(list[WrappingKey], list(session.get_objects(sought)))
