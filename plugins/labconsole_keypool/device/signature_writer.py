"""Writes the signature records into the key store, in batches by a thread of its own."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from labconsole.model.trial import Level
from labconsole.store.errors import StoreError
from labconsole_keypool.store.key_records import SignatureRow
from labconsole_keypool.store.key_store import KeyStore


class Reports(Protocol):
    """Receiver of the reports of the engine's threads; called by several at the same time."""

    def count(self, channel: str, amount: int) -> None:
        """Add to a live counter: `keys_claimed`, `keys_loaded`, `keys_used`."""

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        """Record an event; `message` is one sentence."""

    def refill(self, started_ns: int, finished_ns: int, keys: int) -> None:
        """Record a batch of `keys` that was loaded and unwrapped between these times (`clock.now_ns`)."""


_INTERVAL_S = 0.25
_BATCH = 100
_RETRY_S = 1.0


class SignatureWriter:
    """Queue of rows of the signature table, written every 250 ms, or when there are 100.

    Rows that the store does not take stay queued, which is reported once; the last try, in `close`, raises.
    """

    def __init__(self, store: KeyStore, reports: Reports) -> None:
        self._store = store
        self._reports = reports
        self._rows: list[SignatureRow] = []
        self._change = threading.Condition()
        self._ended = False
        self._reported = False
        self._thread = threading.Thread(target=self._work, name="record")
        self._thread.start()

    def add(self, row: SignatureRow) -> None:
        """Queue a row; returns at once."""
        with self._change:
            self._rows.append(row)
            if len(self._rows) == _BATCH:
                self._change.notify()

    def close(self) -> None:
        """Write what is left. Raises StoreError."""
        with self._change:
            self._ended = True
            self._change.notify()
        self._thread.join()
        self._write()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._ended or len(self._rows) >= _BATCH, _INTERVAL_S)
                if self._ended:
                    return
            try:
                self._write()
            except StoreError as error:
                if not self._reported:
                    self._reported = True
                    self._reports.event("record waits", f"{error} What was signed is written later.", Level.WARNING)
                with self._change:
                    self._change.wait_for(lambda: self._ended, _RETRY_S)

    def _write(self) -> None:
        with self._change:
            rows, self._rows = self._rows, []
        if not rows:
            return
        try:
            self._store.used([row.key for row in rows if row.key is not None], rows)
        except StoreError:
            with self._change:
                self._rows[:0] = rows
            raise
