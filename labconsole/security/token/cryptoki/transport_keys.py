"""Copies wrapper keys between tokens: wrapped by a transport key that is in a token for moments and never stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass, Session

from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.cryptoki.wrapping import (
    NOT_THIS_KEY,
    WRAPPER_TEMPLATE,
    WRAPPER_USES,
    Wrapper,
    WrappingKey,
    find_wrapper,
)
from labconsole.security.token.errors import KeyMissingError, TamperedKeyError, TokenError
from labconsole.security.token.mechanisms import WrapMechanism

_IMPORTED = {
    Attribute.CLASS: ObjectClass.SECRET_KEY,
    Attribute.KEY_TYPE: KeyType.AES,
    Attribute.TOKEN: False,
    Attribute.PRIVATE: True,
    Attribute.SENSITIVE: True,
    Attribute.EXTRACTABLE: False,
    Attribute.WRAP: True,
    Attribute.UNWRAP: True,
    Attribute.ENCRYPT: False,
    Attribute.DECRYPT: False,
}


@dataclass(frozen=True)
class TransportKey:
    """An AES-256 key that wraps wrapper keys with CKM_AES_KEY_WRAP: 32 bytes are RFC 3394's 40 with every module."""

    key: WrappingKey

    def wrap(self, wrapper: Wrapper) -> bytes:
        """The wrapper key, encrypted: always the same bytes for the same two keys.

        Raises:
            TokenError: the wrapper key is not extractable, or the token cannot wrap it.
        """
        with translated_errors(f"wrap the wrapper key {wrapper.serial}", self._token):
            return self.key.wrap_key(wrapper.key, mechanism=Mechanism.AES_KEY_WRAP)

    def unwrap(self, wrapped: bytes, serial: str, mechanism: WrapMechanism, *, stored: bool) -> Wrapper:
        """The wrapper key in the token, as `make_wrapper` creates it: stored if `stored`, else in the session.

        Raises:
            TamperedKeyError: it was changed, or was wrapped by another transport key.
            TokenError: the token is full, write-protected or gone.
        """
        with translated_errors(f"load the wrapper key {serial}", self._token):
            try:
                key = self.key.unwrap_key(
                    ObjectClass.SECRET_KEY,
                    KeyType.AES,
                    wrapped,
                    label=serial,
                    mechanism=Mechanism.AES_KEY_WRAP,
                    store=stored,
                    capabilities=WRAPPER_USES,
                    template=WRAPPER_TEMPLATE,
                )
            except NOT_THIS_KEY as error:
                raise TamperedKeyError(
                    f"The token {self._token} cannot load the wrapper key {serial}: it was changed on its way, or is of"
                    " another set of shares."
                ) from error
        return Wrapper(cast(WrappingKey, key), serial, mechanism)

    def holds(self, wrapped: bytes, serial: str, mechanism: WrapMechanism) -> bool:
        """Whether the wrapped wrapper key is in the token already, with this serial.

        Raises:
            TokenError: the token has another key, or several, with that serial.
        """
        try:
            there = find_wrapper(self.key.session, serial, mechanism)
        except KeyMissingError:
            return False
        if self.wrap(there) != wrapped:
            raise TokenError(
                f"The token {self._token} has another wrapper key {serial} than the carried one: destroy it, or leave"
                " the carried one where it is."
            )
        return True

    @property
    def _token(self) -> str:
        return self.key.session.token.label


@contextmanager
def transport_key(session: Session, value: bytes) -> Iterator[TransportKey]:
    """The 32 bytes `value` as a session object that is destroyed at the end of the block.

    Raises:
        TokenError: the token accepts no foreign key, is full or gone.
    """
    with translated_errors("take the transport key", session.token.label):
        key = session.create_object({**_IMPORTED, Attribute.VALUE: value})
    try:
        yield TransportKey(cast(WrappingKey, key))
    finally:
        with translated_errors("destroy the transport key", session.token.label):
            key.destroy()
