"""What the linked rows of a key store tell of each key, and whether its state says the same."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from labconsole_keypool.store.key_links import KeyEvent, ids_of_text
from labconsole_keypool.store.key_records import KeyStatus
from labconsole_keypool.store.key_schema import LINKED
from labconsole_keypool.store.store_findings import Fault, Finding


@dataclass(slots=True)
class _Told:
    """A key as the chain tells of it."""

    kind: str
    wrapper: str
    sha256: bytes
    status: KeyStatus = KeyStatus.NEW
    owner: int | None = None
    used: int | None = None


class History:
    """Takes the rows of the chain in their order, then compares with what changes in the store."""

    def __init__(self) -> None:
        self._keys: dict[int, _Told] = {}
        self._wrappers: dict[str, int | None] = {}
        self._just_used: set[int] = set()
        """By the row before, or by those before the signatures that came with them."""
        self._findings: list[Finding] = []

    def tell(self, number: int, table: str, values: tuple[Any, ...]) -> None:
        """A row of the chain: its number, and the values of `LINKED[table]`."""
        row = dict(zip(LINKED[table], values, strict=True))
        if table != "signature":
            self._just_used = set()
        if table == "key":
            self._keys[number] = _Told(row["kind"], row["wrapper"], row["private_sha256"])
        elif table == "wrapper_key":
            self._wrappers[row["serial"]] = None
        elif table == "event":
            self._event(number, row)
        elif table == "signature" and row["key"] in self._just_used:
            self._keys[row["key"]].used = row["got_key"]

    def _event(self, number: int, row: dict[str, Any]) -> None:
        if row["event"] == KeyEvent.WRAPPER_DESTROYED:
            self._wrappers[row["wrapper"]] = row["at"]
            return
        try:
            ids = ids_of_text(row["keys"], before=number)
        except ValueError as error:
            self._findings.append(Finding(Fault.STATUS, number, f"Event {number} names no keys: {error}."))
            return
        known = [key for key in ids if key in self._keys]
        for key in known:
            self._take(number, self._keys[key], row)
        if row["event"] == KeyEvent.USED:
            self._just_used = set(known)

    def _take(self, number: int, key: _Told, row: dict[str, Any]) -> None:
        event, before = row["event"], key.status
        if event == KeyEvent.CLAIMED and before is KeyStatus.NEW:
            key.status, key.owner = KeyStatus.IN_USE, row["claimant"]
        elif event == KeyEvent.USED and before is KeyStatus.IN_USE and key.owner == row["claimant"]:
            key.status, key.used = KeyStatus.USED, row["at"]
        elif event == KeyEvent.INVALID and before in (KeyStatus.NEW, KeyStatus.IN_USE):
            key.status = KeyStatus.INVALID
        else:
            self._findings.append(
                Finding(Fault.STATUS, number, f"Event {number} tells of a key what cannot be: it was {_said(before)}.")
            )

    def wrong_states(self, raw: sqlite3.Connection) -> Iterator[Finding]:
        """What keys and wrapper keys are said to be, other than the chain tells."""
        yield from self._findings
        states = {
            number: rest
            for number, *rest in raw.execute("SELECT id, kind, wrapper, status, owner, used FROM key_state")
        }
        for number, private in raw.execute("SELECT id, private FROM key ORDER BY id"):
            if number in self._keys:
                yield from _wrong_state(number, self._keys[number], states.pop(number, None))
                yield from _wrong_blob(number, self._keys[number], private)
        for number in states.keys() - self._keys.keys():
            yield Finding(Fault.INSERTED, number, f"There is a state of key {number}, and no such key.")
        yield from self._wrong_wrappers(raw)

    def _wrong_wrappers(self, raw: sqlite3.Connection) -> Iterator[Finding]:
        pairs = Counter(key.wrapper for key in self._keys.values())
        for number, serial, said, destroyed in raw.execute("SELECT id, serial, pairs, destroyed FROM wrapper_key"):
            if said != pairs[serial]:
                message = (
                    f"The wrapper key {serial} is said to have wrapped {said} key pairs: {pairs[serial]} are stored."
                )
                yield Finding(Fault.STATUS, number, message)
            if destroyed != self._wrappers.get(serial):
                message = f"When the wrapper key {serial} was destroyed is not what its event tells."
                yield Finding(Fault.STATUS, number, message)


def _wrong_state(number: int, told: _Told, state: list[Any] | None) -> Iterator[Finding]:
    if state is None:
        yield Finding(Fault.REMOVED, number, f"Key {number} has no state: it was removed.")
        return
    kind, wrapper, status, owner, used = state
    if status != told.status:
        yield Finding(
            Fault.STATUS, number, f"Key {number} is said to be {_said(status)}: its events tell {_said(told.status)}."
        )
    elif owner != told.owner or (kind, wrapper) != (told.kind, told.wrapper):
        yield Finding(Fault.STATUS, number, f"Who has claimed key {number}, or its kind, is not what the chain tells.")
    if used != told.used:
        yield Finding(Fault.CHANGED, number, f"The time at which key {number} was used was changed.")


def _wrong_blob(number: int, told: _Told, private: bytes | None) -> Iterator[Finding]:
    if told.status in (KeyStatus.NEW, KeyStatus.IN_USE):
        if private is None:
            yield Finding(Fault.BLOB, number, f"The wrapped private key of key {number} is gone.")
        elif hashlib.sha256(private).digest() != told.sha256:
            yield Finding(
                Fault.BLOB, number, f"The wrapped private key of key {number} is not the one that was stored."
            )
    elif private is not None:
        yield Finding(
            Fault.BLOB, number, f"Key {number} is {_said(told.status)}, and its wrapped private key is there."
        )


def _said(status: int) -> str:
    return KeyStatus(status).name.lower().replace("_", " ") if status in list(KeyStatus) else f"status {status}"
