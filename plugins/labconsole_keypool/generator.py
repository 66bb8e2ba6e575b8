"""Makes key pairs in a token, wraps the private keys, and adds them to the key store in small durable batches."""

from __future__ import annotations

from collections.abc import Callable

from labconsole.security.token.opening import Token
from labconsole.security.token.terms import KeyKind
from labconsole_keypool.emulation import Device
from labconsole_keypool.key_store import KeyStore


class Generator:
    """Makes keys of one kind in one token for one key store; of one thread, with a session of its own."""

    def __init__(self, token: Token, store: KeyStore, device: Device, kind: KeyKind, keys_per_wrapper: int) -> None:
        raise NotImplementedError

    def ensure_wrapper(self) -> str:
        """The serial of a wrapper key with room in this token, made if there is none. Raises TokenError, StoreError."""
        raise NotImplementedError

    def make(self, count: int, stop: Callable[[], bool], progress: Callable[[int], None]) -> int:
        """Make `count` key pairs, or fewer when `stop` says so (asked before each); returns how many are in the store.

        `progress` is told after each batch how many are stored by now. Raises TokenError, StoreError: those made
        before are in the store.
        """
        raise NotImplementedError
