"""Keys and signatures that look like real ones, for tests of the key store; no token is needed to store them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.store.key_records import NewKey, SignatureRow, SignatureStatus, WrapperKey
from labconsole_keypool.store.key_store import KeyStore

TOKEN = "0123456789abcdef"
KIND = KeyKind.P_256
NOON = 1_795_176_000_000_000_000
"""20 Nov 2026, 12:00 UTC, Unix time in ns."""


def new_wrapper(store: KeyStore, limit_keys: int = 1000) -> WrapperKey:
    """A wrapper key of the token, without the token."""
    return store.new_wrapper(TOKEN, KIND, WrapMechanism.KEY_WRAP_PAD, limit_keys)


def new_keys(wrapper: WrapperKey, count: int, first: int = 0) -> list[NewKey]:
    """Key pairs number `first` and so on; blobs follow from wrapper and number."""
    return [
        NewKey(
            wrapper.kind,
            private_of(wrapper.serial, number),
            hashlib.sha256(b"public" + private_of(wrapper.serial, number)).digest(),
            wrapper.serial,
            wrapper.mechanism,
            NOON + number,
            NOON + number + 300_000,
            300_000,
        )
        for number in range(first, first + count)
    ]


def private_of(serial: str, number: int) -> bytes:
    """In place of the wrapped private key."""
    return b"wrapped" + hashlib.sha256(f"{serial} {number}".encode()).digest() * 2


def signatures(ids: Sequence[int], run: str = "run", first: int = 0) -> list[SignatureRow]:
    """A signed request for each key."""
    return [
        SignatureRow(
            run=run,
            request=first + index,
            to_be_signed=b"digest %d" % index,
            signature=b"signature %d" % index,
            certificate=b"certificate %d" % index,
            received=NOON + 1_000 * index,
            started=NOON + 1_000 * index + 10,
            got_key=NOON + 1_000 * index + 20,
            finished=NOON + 1_000 * index + 400,
            pre_generated=True,
            key=key,
            status=SignatureStatus.SIGNED,
        )
        for index, key in enumerate(ids)
    ]
