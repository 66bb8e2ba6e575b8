"""Generates key pairs in a token, wraps the private keys, and adds them to the key store in small durable batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole.clock import now_ns, wall_offset_ns
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.mechanism_probes import mechanism_for
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.wrapping import Wrapper, find_wrapper, make_wrapper
from labconsole.security.token.errors import KeyMissingError, TokenError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.device.emulation import Device, DeviceOperation
from labconsole_keypool.store.key_records import NewKey, WrapperKey
from labconsole_keypool.store.key_store import KeyStore

_BATCH = 50
_BATCH_NS = 500_000_000
"""Keys are stored when so many wait, or the oldest has waited so long."""


@dataclass(frozen=True, slots=True)
class KeyTimes:
    """Times at which a key pair was begun, generated, wrapped and durably stored (`clock.now_ns`)."""

    started: int
    generated: int
    wrapped: int
    stored: int


class Generator:
    """Generates keys of one kind in one token for one key store; used by one thread, with its own session.

    Args:
        token: Open.
        store: Open; its wrapper key stays this generator's until it is closed.
        device: How fast the token is.
        kind: RSA-2048 takes 0.2 to 0.6 s each, P-256 0.3 ms.
        keys_per_wrapper: Key pairs that a new wrapper key wraps; then another one is made.
        on_generated: Called for each key pair when it is wrapped and waits to be stored.
        on_stored: Called for each batch.
    """

    def __init__(
        self,
        token: Token,
        store: KeyStore,
        device: Device,
        kind: KeyKind,
        keys_per_wrapper: int,
        *,
        on_generated: Callable[[], None] = lambda: None,
        on_stored: Callable[[Sequence[KeyTimes]], None] = lambda times: None,
    ) -> None:
        self._token = token
        self._store = store
        self._device = device
        self._kind = kind
        self._keys_per_wrapper = keys_per_wrapper
        self._on_generated = on_generated
        self._on_stored = on_stored
        self._session = token.session()
        self._offset_ns = wall_offset_ns()
        self._wrapper: Wrapper | None = None
        self._room = 0
        self._mechanism: WrapMechanism | None = None

    def ensure_wrapper(self) -> str:
        """The serial of a wrapper key with room in this token, made if there is none.

        Raises:
            MechanismMissingError: the token wraps no keys of this kind safely.
            TokenError: it is full, write-protected or gone.
            StoreError: the store cannot be used.
        """
        return self._with_room().serial

    def make(self, count: int, stop: Callable[[], bool], progress: Callable[[int], None]) -> int:
        """Make `count` key pairs, or fewer once `stop` (called before each) is true; returns how many were stored.

        `progress` is called after each batch with the number stored so far. Raises as `ensure_wrapper`: the keys
        counted by then stay in the store, of the others nothing is left.
        """
        stored = 0
        while stored < count and not stop():
            added = self._batch(min(_BATCH, count - stored), stop)
            stored += added
            progress(stored)
        return stored

    def _batch(self, most: int, stop: Callable[[], bool]) -> int:
        """Make up to `most` keys under one wrapper key, and store them together; returns how many."""
        wrapper = self._with_room()
        keys: list[NewKey] = []
        times: list[Callable[[int], KeyTimes]] = []
        begun_ns = now_ns()
        while len(keys) < min(most, self._room) and now_ns() - begun_ns < _BATCH_NS and not stop():
            key, made = self._key(wrapper)
            keys.append(key)
            times.append(made)
            self._on_generated()
        if keys:
            self._store.add(keys)
            self._room -= len(keys)
            stored_ns = now_ns()
            self._on_stored([made(stored_ns) for made in times])
        return len(keys)

    def _key(self, wrapper: Wrapper) -> tuple[NewKey, Callable[[int], KeyTimes]]:
        """A wrapped key pair, which is destroyed in the token, and its times but for the last."""
        started_ns = now_ns()
        with self._device.busy(DeviceOperation.GENERATE):
            pair = generate(self._session, self._kind, extractable=True)
        generated_ns = now_ns()
        try:
            with self._device.busy(DeviceOperation.WRAP):
                private = wrapper.wrap(pair)
        finally:
            pair.destroy()
        wrapped_ns = now_ns()
        key = NewKey(
            kind=self._kind,
            private=private,
            public=pair.public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            wrapper=wrapper.serial,
            mechanism=wrapper.mechanism,
            generate_start_ns=started_ns + self._offset_ns,
            generate_end_ns=generated_ns + self._offset_ns,
            generate_duration_ns=generated_ns - started_ns,
        )
        return key, partial(KeyTimes, started_ns, generated_ns, wrapped_ns)

    def _with_room(self) -> Wrapper:
        """The wrapper key, another one when it is full."""
        if self._wrapper is None or not self._room:
            self._wrapper, self._room = self._next_wrapper()
        return self._wrapper

    def _next_wrapper(self) -> tuple[Wrapper, int]:
        self._destroy_spent()
        row = self._store.wrapper_for(self._token.identity.serial, self._kind)
        if row is None:
            row = self._new_row()
        try:
            return find_wrapper(self._session, row.serial, row.mechanism), row.room
        except KeyMissingError:
            # Its maker was killed before it was made; or the token was initialised since, and what it has wrapped waits
            # for a load from shares.
            row = self._new_row() if row.pairs else row
            return make_wrapper(self._session, row.serial, row.mechanism), row.room

    def _new_row(self) -> WrapperKey:
        if self._mechanism is None:
            self._mechanism = mechanism_for(self._session, self._kind, self._token.wrap_mechanisms)
        serial = self._token.identity.serial
        return self._store.new_wrapper(serial, self._kind, self._mechanism, self._keys_per_wrapper)

    def _destroy_spent(self) -> None:
        """Destroy wrapper keys whose keys are all used: what copies of the store hold of these is gone with them."""
        for row in self._store.spent_wrappers(self._token.identity.serial):
            try:
                find_wrapper(self._session, row.serial, row.mechanism).destroy()
            except KeyMissingError:
                pass
            except TokenError:
                with suppress(KeyMissingError):  # another generator of this token was faster
                    find_wrapper(self._session, row.serial, row.mechanism)
                    raise
            self._store.wrapper_destroyed(row.serial)
