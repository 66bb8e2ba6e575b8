"""Loads keys from the key store into the token while others are used: claims a batch, unwraps them one by one."""

from __future__ import annotations

import threading
from collections import deque

from labconsole.clock import now_ns
from labconsole.model.trial import Level
from labconsole.security.token.errors import KeyMissingError, TamperedKeyError, TokenError, TokenFullError
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import KeyOrigin, Refill
from labconsole_keypool.device.emulation import Device, DeviceOperation
from labconsole_keypool.device.signature_writer import Reports
from labconsole_keypool.device.signing_sessions import LoadedKey, SigningSession, SigningSessions
from labconsole_keypool.series import KEYS_CLAIMED_CHANNEL, KEYS_LOADED_CHANNEL
from labconsole_keypool.store.key_records import ClaimedKey
from labconsole_keypool.store.key_store import KeyStore


class HeldWrappers:
    """The wrapper keys for one kind of keys. Used by one thread at a time."""

    def __init__(self, store: KeyStore, session: SigningSession, kind: KeyKind, reports: Reports) -> None:
        self.serials: list[str] = []
        self._store = store
        self._session = session
        self._kind = kind
        self._reports = reports
        self._missing: set[str] = set()

    def refresh(self) -> None:
        """Search the token for wrapper keys of the store that were not found in it before.

        A missing one is reported once, and searched again the next time, since it may have been transferred meanwhile.
        Raises TokenError, StoreError.
        """
        for wrapper in self._store.wrappers():
            if wrapper.kind is not self._kind or not wrapper.pairs or wrapper.serial in self.serials:
                continue
            try:
                self._session.wrapper(wrapper.serial, wrapper.mechanism)
            except KeyMissingError as error:
                self._report_once(wrapper.serial, str(error))
            else:
                self.serials.append(wrapper.serial)

    def _report_once(self, serial: str, sentence: str) -> None:
        if serial not in self._missing:
            self._missing.add(serial)
            self._reports.event("wrapper missing", f"{sentence} Its keys stay in the store.", Level.WARNING)


_EMPTY_STORE_RETRY_S = 0.25
"""An empty store is read again after this time: a generator may have added keys."""


class Refiller:
    """The supply of keys in the token: `take` returns one, a thread of the refiller loads new ones.

    `Refill` defines when a refill begins and when its keys can be used; each loads a batch. Keys that were claimed and
    are left at the end become invalid: they are never given back.
    """

    def __init__(
        self,
        store: KeyStore,
        sessions: SigningSessions,
        device: Device,
        reports: Reports,
        *,
        kind: KeyKind,
        batch: int,
        low_water: int,
        refill: Refill,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._device = device
        self._reports = reports
        self._kind = kind
        self._batch = batch
        self._parallel = refill is Refill.PARALLEL
        self._low_water = max(1, low_water) if self._parallel else 1
        self._wrappers = HeldWrappers(store, sessions[0], kind, reports)
        self._claimed: deque[ClaimedKey] = deque()
        lock = threading.Lock()
        self._came = threading.Condition(lock)
        self._wanted = threading.Condition(lock)
        self._thread: threading.Thread | None = None
        self._ended = False
        self._paused = False
        self._dry = False
        """The store has no key for this token."""
        self._fault: Exception | None = None

    def load(self, count: int, origin: KeyOrigin = KeyOrigin.POOL) -> int:
        """Claim and unwrap `count` keys; returns how many were loaded, fewer at the end of the pool; of one thread.

        Raises:
            TokenFullError: the token does not hold so many.
            TokenError: the token is gone.
            StoreError: the store is locked, damaged or full.
        """
        started_ns = ended_ns = now_ns()
        ready: list[tuple[SigningSession, LoadedKey]] = []
        loaded = 0
        while loaded < count and not self._ended:
            claimed = self._next_claimed(count - loaded)
            if claimed is None:
                break
            session = self._sessions.next()
            try:
                with self._device.busy(DeviceOperation.UNWRAP, ended_ns if loaded else None) as ends_ns:
                    key = self._unwrap(session, claimed, origin)
                    worked_ns = now_ns()
            except TokenFullError:
                self._claimed.appendleft(claimed)
                if not self._device.in_ram:
                    raise
                break
            ended_ns = max(ends_ns, worked_ns)
            if key is not None:
                loaded += 1
                ready.append((session, key))
                if self._parallel:
                    self._put(ready)
        self._put(ready)
        if loaded:
            self._reports.refill(started_ns, ended_ns, loaded)
        return loaded

    def take(self, number: int) -> LoadedKey | None:
        """A key for the session `number`; waits while one may come. None: the request must generate its own.

        Raises:
            TokenError: the token is gone.
            StoreError: the store cannot be used.
        """
        with self._came:
            while (key := self._sessions.take(number)) is None and self._fault is None and self._may_come():
                self._wanted.notify()
                self._came.wait()
            if key is None and self._fault is not None:
                raise self._fault
            if len(self._sessions) < self._low_water:
                self._wanted.notify()
            return key

    def start(self) -> None:
        """Begin to refill."""
        self._thread = threading.Thread(target=self._work, name="refill")
        self._thread.start()

    def pause(self, paused: bool) -> None:
        """Load nothing while `paused` and there are keys: the processor is needed for signing."""
        with self._wanted:
            self._paused = paused
            self._wanted.notify()

    def close(self) -> None:
        """End the refill, and destroy the keys that are left. Raises TokenError."""
        with self._wanted:
            self._ended = True
            self._wanted.notify_all()
            self._came.notify_all()
        if self._thread is not None:
            self._thread.join()
        while (key := self._sessions.take(0)) is not None:
            discard(key, self._device)

    def _work(self) -> None:
        try:
            while True:
                with self._wanted:
                    self._wanted.wait_for(lambda: self._ended or self._is_due())
                    if self._ended:
                        return
                loaded = self.load(min(self._batch, self._device.room))
                with self._wanted:
                    self._dry = not loaded and not self._claimed
                    self._came.notify_all()
                    if self._dry:
                        self._wanted.wait_for(lambda: self._ended, _EMPTY_STORE_RETRY_S)
                    elif not loaded:  # the token is full until a key is used
                        self._wanted.wait(_EMPTY_STORE_RETRY_S)
        except Exception as error:  # noqa: BLE001 - of a thread: raised by `take`
            with self._wanted:
                self._fault = error
                self._came.notify_all()

    def _is_due(self) -> bool:
        there = len(self._sessions)
        return there < self._low_water and not (self._paused and there)

    def _may_come(self) -> bool:
        return self._thread is not None and not self._dry and not self._ended

    def _next_claimed(self, count: int) -> ClaimedKey | None:
        """A key that is claimed and not unwrapped yet; up to `count` are claimed at once if there is none."""
        if not self._claimed and not self._claim(count):
            self._wrappers.refresh()
            self._claim(count)
        return self._claimed.popleft() if self._claimed else None

    def _claim(self, count: int) -> bool:
        """Claim up to `count` keys for this token; returns whether there was any."""
        if not self._wrappers.serials:
            return False
        claimed = self._store.claim(self._kind, self._wrappers.serials, count)
        self._reports.count(KEYS_CLAIMED_CHANNEL.name, len(claimed))
        self._claimed.extend(claimed)
        if claimed:
            with self._came:
                self._dry = False  # at once: requests wait for keys that are being unwrapped
        return bool(claimed)

    def _unwrap(self, session: SigningSession, claimed: ClaimedKey, origin: KeyOrigin) -> LoadedKey | None:
        """The key in the token; None if it was changed, and is invalid now."""
        if origin is not KeyOrigin.TOKEN_STORE:
            self._device.take_room()
        try:
            key = session.unwrap(claimed, origin)
        except TokenError as error:
            if origin is not KeyOrigin.TOKEN_STORE:
                self._device.give_room()
            if not isinstance(error, TamperedKeyError):
                raise
            self._store.invalid([claimed.id], "changed in the store, or wrapped by another key")
            self._reports.event("key refused", f"Key {claimed.id} became invalid. {error}", Level.WARNING)
            return None
        self._reports.count(KEYS_LOADED_CHANNEL.name, 1)
        return key

    def _put(self, ready: list[tuple[SigningSession, LoadedKey]]) -> None:
        """Let the keys be taken; the list is empty afterwards."""
        with self._came:
            for session, key in ready:
                session.keys.append(key)
            ready.clear()
            self._came.notify_all()


def discard(key: LoadedKey, device: Device) -> None:
    """Destroy a private key in the token, whose RAM then has room for another. Raises TokenError."""
    key.destroy()
    if key.origin in (KeyOrigin.TOKEN_RAM, KeyOrigin.POOL):
        device.give_room()
