"""Which wrapper keys of the store a token holds, and which of them are what the store takes them for."""

from __future__ import annotations

from labconsole.security.token.errors import KeyMissingError
from labconsole.security.token.opening import Token
from labconsole.security.token.terms import KeyKind
from labconsole.trial import Level
from labconsole_keypool.key_store import KeyStore
from labconsole_keypool.lanes import Lane
from labconsole_keypool.reports import Reports

_TRIES = 3
"""Keys in a row that a wrapper key from another token may fail at before it is set aside."""


class HeldWrappers:
    """The wrapper keys for one kind of keys. Used by one thread at a time.

    A name is no proof: a wrapper key that this token did not make itself is tried with one key before whole batches of
    keys are claimed under it, so that a mistaken one does not spoil them.
    """

    def __init__(self, token: Token, store: KeyStore, lane: Lane, kind: KeyKind, reports: Reports) -> None:
        self._token = token
        self._store = store
        self._lane = lane
        self._kind = kind
        self._reports = reports
        self._missing: set[str] = set()
        self._failures: dict[str, int] = {}
        self._trusted: list[str] = []

    def look(self) -> None:
        """Look for wrapper keys that the store knows and this token was not seen to hold.

        One that is missing is told once; it is looked for again the next time, since it may have been carried here.
        Raises TokenError, StoreError.
        """
        for wrapper in self._store.wrappers():
            if wrapper.kind is not self._kind or wrapper.serial in self._failures or not wrapper.pairs:
                continue
            if wrapper.serial in self._trusted:
                continue
            try:
                self._lane.wrapper(wrapper.serial, wrapper.mechanism)
            except KeyMissingError as error:
                self._tell_once(wrapper.serial, str(error))
            else:
                if wrapper.token == self._token.identity.serial:
                    self._trusted.append(wrapper.serial)
                else:
                    self._failures[wrapper.serial] = 0

    @property
    def trusted(self) -> tuple[str, ...]:
        """Serials under which batches may be claimed."""
        return tuple(self._trusted)

    @property
    def untried(self) -> tuple[str, ...]:
        """Serials under which one key may be claimed, to see."""
        return tuple(serial for serial, failures in self._failures.items() if failures < _TRIES)

    def tried(self, serial: str, unwrapped: bool) -> None:
        """A key claimed under this wrapper key was unwrapped, or could not be."""
        if serial not in self._failures:
            return
        if unwrapped:
            del self._failures[serial]
            self._trusted.append(serial)
            return
        self._failures[serial] += 1
        if self._failures[serial] == _TRIES:
            self._reports.event(
                "wrapper set aside",
                f"The wrapper key {serial} in the token {self._token.name} unwraps none of the keys that the store has "
                "under it: it is another key of the same name. Load the right one from its shares.",
                Level.WARNING,
            )

    def _tell_once(self, serial: str, sentence: str) -> None:
        if serial not in self._missing:
            self._missing.add(serial)
            self._reports.event("wrapper missing", f"{sentence} Its keys stay in the store.", Level.WARNING)
