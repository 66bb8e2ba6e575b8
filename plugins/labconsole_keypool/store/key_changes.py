"""What one transaction may do to a key store: each change of a key's status comes with the event that tells of it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence

from labconsole.processes import Owner, is_alive
from labconsole_keypool.store.key_links import Chain, KeyEvent, ids_as_text
from labconsole_keypool.store.key_records import KeyStatus


class Changes:
    """The changes of one transaction, by one claimant; `chain` takes the rows that are added."""

    def __init__(self, raw: sqlite3.Connection, chain: Chain, claimant: int) -> None:
        self.raw = raw
        self.chain = chain
        self._claimant = claimant

    def claim(self, kind: str, wrappers: Iterable[str], count: int) -> list[int]:
        """Give the claimant up to `count` of the oldest new keys; returns their ids, ascending."""
        found = self.raw.execute(
            f"SELECT id FROM key_state WHERE status = {KeyStatus.NEW:d} AND kind = ? "
            "AND wrapper IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?",
            (kind, json.dumps(list(wrappers)), count),
        )
        ids = [number for (number,) in found.fetchall()]
        self.raw.execute(
            "UPDATE key_state SET status = ?, owner = ? WHERE id IN (SELECT value FROM json_each(?))",
            (KeyStatus.IN_USE, self._claimant, json.dumps(ids)),
        )
        self.tell(KeyEvent.CLAIMED, ids)
        return ids

    def use(self, ids: Sequence[int], moments: Mapping[int | None, int]) -> bool:
        """Keys that the claimant holds are used, each at its moment or else now; False if it does not hold them all."""
        at = self.tell(KeyEvent.USED, ids)
        held = 0
        for number in ids:
            held += self.raw.execute(
                "UPDATE key_state SET status = ?, used = ? WHERE id = ? AND status = ? AND owner = ?",
                (KeyStatus.USED, moments.get(number, at), number, KeyStatus.IN_USE, self._claimant),
            ).rowcount
        self._erase(ids)
        return held == len(ids)

    def invalidate(self, ids: Sequence[int], reason: str) -> None:
        """These keys will not be used."""
        self.raw.execute(
            "UPDATE key_state SET status = ? WHERE id IN (SELECT value FROM json_each(?))",
            (KeyStatus.INVALID, json.dumps(list(ids))),
        )
        self._erase(ids)
        self.tell(KeyEvent.INVALID, ids, reason=reason)

    def held_by(self, claimant: int) -> list[int]:
        """The ids of the keys that a claimant holds."""
        return self._ids("status = ? AND owner = ?", (KeyStatus.IN_USE, claimant))

    def new_keys(self, kind: str | None) -> list[int]:
        """The ids of the new keys (of one kind)."""
        return self._ids("status = ? AND kind = coalesce(?, kind)", (KeyStatus.NEW, kind))

    def release(self, claimant: int, reason: str) -> None:
        """What a claimant holds becomes invalid; its wrapper keys are free for others."""
        self.invalidate(self.held_by(claimant), reason)
        self.raw.execute("UPDATE wrapper_key SET owner = NULL WHERE owner = ?", (claimant,))

    def dead(self) -> list[int]:
        """Claimants that hold keys or wrapper keys though their processes have ended."""
        rows = self.raw.execute(
            "SELECT id, pid, started, boot_id FROM claimant WHERE id IN (SELECT owner FROM key_state WHERE status = ? "
            "UNION SELECT owner FROM wrapper_key WHERE owner IS NOT NULL)",
            (KeyStatus.IN_USE,),
        ).fetchall()
        return [number for number, *identity in rows if not is_alive(Owner(*identity))]

    def tell(self, event: KeyEvent, ids: Sequence[int], *, reason: str = "", wrapper: str | None = None) -> int:
        """Append an event, if there is anything to tell; returns its moment."""
        at = time.time_ns()
        if ids or wrapper:
            self.chain.append("event", [(event, at, self._claimant, ids_as_text(ids), wrapper, reason)])
        return at

    def _erase(self, ids: Sequence[int]) -> None:
        self.raw.execute(
            "UPDATE key SET private = NULL WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
        )

    def _ids(self, condition: str, values: Sequence[object]) -> list[int]:
        found = self.raw.execute(f"SELECT id FROM key_state WHERE {condition}", values)
        return [number for (number,) in found.fetchall()]
