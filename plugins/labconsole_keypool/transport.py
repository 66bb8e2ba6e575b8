"""Carries wrapper keys out of one token and into another, under a transport key that exists only as shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from labconsole.security.token.opening import Token
from labconsole.security.token.terms import KeyKind, WrapMechanism
from labconsole_keypool.sharing import Share


class NamedWrapper(Protocol):
    """A wrapper key by its name in the token, as the key store's WrapperKey and the token layer's Wrapper are."""

    @property
    def serial(self) -> str: ...
    @property
    def mechanism(self) -> WrapMechanism: ...


class StoredKey(Protocol):
    """A wrapped key of the store, as its ClaimedKey is."""

    @property
    def kind(self) -> KeyKind: ...
    @property
    def private(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class CarriedWrapper:
    """One wrapper key, wrapped by the transport key (RFC 3394: 40 bytes)."""

    serial: str
    mechanism: WrapMechanism
    wrapped: bytes


@dataclass(frozen=True, slots=True)
class CarriedWrappers:
    """Wrapper keys on their way between tokens. Holds no secret without the shares of `set_id`."""

    set_id: bytes
    key_check: bytes
    token: str
    """Serial number of the token that they were made in."""
    wrappers: tuple[CarriedWrapper, ...]


def export_wrappers(
    token: Token, wrappers: Iterable[NamedWrapper], shares: int = 3, threshold: int = 2
) -> tuple[CarriedWrappers, tuple[Share, ...]]:
    """Wrap wrapper keys by a new transport key, which is split and then destroyed.

    Raises:
        ShareError: another number of shares than `sharing.split` takes.
        TokenError: a wrapper key is not in the token, or does not leave it.
    """
    raise NotImplementedError


def load_wrappers(
    token: Token, carried: CarriedWrappers, shares: Sequence[Share], proof: Mapping[str, StoredKey] | None = None
) -> tuple[str, ...]:
    """Put carried wrapper keys into `token` for good, all of them or none; returns the serials that were new to it.

    Args:
        token: Where they go; one that is there already stays.
        carried: What `export_wrappers` gave.
        shares: Enough of its shares.
        proof: A stored key of a wrapper, by the wrapper's serial: it must unwrap before anything stays in the token.

    Raises:
        ShareError: the shares are not enough, or not of this set.
        TamperedKeyError: a carried key was changed, or does not unwrap its stored key.
        TokenError: the token is full or gone.
    """
    raise NotImplementedError
