"""Which wrapper keys of the store a token holds: only keys under these are claimed for it."""

from __future__ import annotations

from labconsole.model.trial import Level
from labconsole.security.token.errors import KeyMissingError
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.device.reports import Reports
from labconsole_keypool.device.session_lanes import Lane
from labconsole_keypool.store.key_store import KeyStore


class HeldWrappers:
    """The wrapper keys for one kind of keys. Used by one thread at a time."""

    def __init__(self, store: KeyStore, lane: Lane, kind: KeyKind, reports: Reports) -> None:
        self.serials: list[str] = []
        self._store = store
        self._lane = lane
        self._kind = kind
        self._reports = reports
        self._missing: set[str] = set()

    def look(self) -> None:
        """Look for those that the store knows and this token was not seen to hold.

        One that is missing is told once; it is looked for again the next time, since it may have been carried here.
        Raises TokenError, StoreError.
        """
        for wrapper in self._store.wrappers():
            if wrapper.kind is not self._kind or not wrapper.pairs or wrapper.serial in self.serials:
                continue
            try:
                self._lane.wrapper(wrapper.serial, wrapper.mechanism)
            except KeyMissingError as error:
                self._tell_once(wrapper.serial, str(error))
            else:
                self.serials.append(wrapper.serial)

    def _tell_once(self, serial: str, sentence: str) -> None:
        if serial not in self._missing:
            self._missing.add(serial)
            self._reports.event("wrapper missing", f"{sentence} Its keys stay in the store.", Level.WARNING)
