"""Exports wrapper keys from an open token and loads them into one, under a transport key that exists only as shares."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TypeVar

from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.transport_keys import transport_key
from labconsole.security.token.cryptoki.wrapping import find_wrapper
from labconsole.security.token.errors import KeyMissingError
from labconsole_keypool.shares.exported_wrappers import ExportedWrapper, ExportedWrappers, NamedWrapper, StoredKey
from labconsole_keypool.shares.secret_sharing import KEY_BYTES, Share, ShareError, combine_shares, split_key

_Named = TypeVar("_Named", bound=NamedWrapper)


def held_by(token: Token, wrappers: Iterable[_Named]) -> list[_Named]:
    """The wrapper keys that are in `token`. Raises TokenError."""
    held = []
    with token.session() as session:
        for named in wrappers:
            with suppress(KeyMissingError):
                find_wrapper(session, named.serial, named.mechanism)
                held.append(named)
    return held


def export_wrappers(
    token: Token, wrappers: Iterable[NamedWrapper], shares: int = 3, threshold: int = 2
) -> tuple[ExportedWrappers, tuple[Share, ...]]:
    """Wrap wrapper keys by a new transport key, which is split and then destroyed.

    Raises:
        ShareError: another number of shares than `split_key` takes.
        TokenError: a wrapper key is not in the token, or does not leave it.
    """
    value = secrets.token_bytes(KEY_BYTES)
    made = split_key(value, threshold, shares)
    with token.session() as session, transport_key(session, value) as key:
        carried = tuple(
            ExportedWrapper(
                named.serial, named.mechanism, key.wrap(find_wrapper(session, named.serial, named.mechanism))
            )
            for named in wrappers
        )
    return ExportedWrappers(made[0].set_id, made[0].key_check, threshold, token.identity.serial, carried), made


def load_wrappers(
    token: Token, carried: ExportedWrappers, shares: Sequence[Share], proof: Mapping[str, StoredKey] | None = None
) -> tuple[str, ...]:
    """Put carried wrapper keys into `token` for good, all of them or none; returns the serials that were new to it.

    Args:
        token: The destination; a wrapper key that is in it already stays.
        carried: What `export_wrappers` gave.
        shares: Enough of its shares.
        proof: A stored key of a wrapper, by the wrapper's serial: it must unwrap before anything stays in the token.

    Raises:
        ShareError: the shares are not enough, or not of this set; the token was not touched.
        TamperedKeyError: a carried key was changed, or does not unwrap its stored key.
        TokenError: the token holds another key of that name, is full or gone.
    """
    value = combine_shares(shares)
    if (shares[0].set_id, shares[0].key_check) != (carried.set_id, carried.key_check):
        raise ShareError(
            f"The shares are of the set {shares[0].set_id.hex()}, the wrapper keys were carried with"
            f" {carried.set_id.hex()}: take the shares that were made with this file."
        )
    with token.session() as session, transport_key(session, value) as key:
        new = [one for one in carried.wrappers if not key.holds(one.wrapped, one.serial, one.mechanism)]
        for one in carried.wrappers:
            # As session objects: both keys are destroyed with the session.
            wrapper = key.unwrap(one.wrapped, one.serial, one.mechanism, stored=False)
            if (stored := (proof or {}).get(one.serial)) is not None:
                wrapper.unwrap(stored.private, stored.kind)
        with ExitStack() as undo:
            for one in new:
                undo.callback(key.unwrap(one.wrapped, one.serial, one.mechanism, stored=True).destroy)
            undo.pop_all()
    return tuple(one.serial for one in new)
