"""What one transaction may do to a key store: each change of a key's status comes with the event that says so."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, Integer, bindparam, cast, func, select, update

from labconsole.processes import Owner, is_alive
from labconsole.store.rows import Prepared
from labconsole_keypool.store import key_schema as schema
from labconsole_keypool.store.key_links import Chain, KeyEvent, ids_as_text
from labconsole_keypool.store.key_records import KeyStatus

_STATE = schema.key_state.c
_HELD = (_STATE.status == KeyStatus.IN_USE, _STATE.owner == bindparam("claimant"))
_IDS = select(func.json_each(bindparam("ids")).table_valued("value").c.value)
_WRAPPERS = select(func.json_each(bindparam("wrappers")).table_valued("value").c.value)
_MOMENTS = func.json_each(bindparam("moments")).table_valued("key", "value")
_OLDEST_NEW = (
    select(_STATE.id)
    .where(schema.NEW, _STATE.kind == bindparam("of_kind"), _STATE.wrapper.in_(_WRAPPERS))
    .order_by(_STATE.id)
    .limit(bindparam("most"))
)
_CLAIM = Prepared(
    update(schema.key_state)
    .where(_STATE.id.in_(_OLDEST_NEW))
    .values(status=KeyStatus.IN_USE, owner=bindparam("claimant"))
    .returning(_STATE.id)
)
_USE = Prepared(
    update(schema.key_state)
    .where(_STATE.id == cast(_MOMENTS.c.key, Integer), *_HELD)
    .values(status=KeyStatus.USED, used=_MOMENTS.c.value)
)
_INVALIDATE = Prepared(update(schema.key_state).where(_STATE.id.in_(_IDS)).values(status=KeyStatus.INVALID))
_ERASE = Prepared(update(schema.key).where(schema.key.c.id.in_(_IDS)).values(private=None))
_HOLDINGS = Prepared(select(_STATE.id).where(*_HELD))


class Changes:
    """The changes of one transaction, by one claimant; `chain` gets the rows that are added."""

    def __init__(self, connection: Connection, chain: Chain, claimant: int) -> None:
        self.connection = connection
        self.chain = chain
        self._claimant = claimant

    def claim(self, kind: str, wrappers: Iterable[str], count: int) -> list[int]:
        """Give the claimant up to `count` of the oldest new keys; returns their ids, ascending."""
        wanted = {"of_kind": kind, "wrappers": json.dumps(list(wrappers)), "most": count, "claimant": self._claimant}
        ids = sorted(number for (number,) in _CLAIM(self.connection, wanted))
        self.log(KeyEvent.CLAIMED, ids)
        return ids

    def use(self, ids: Sequence[int], moments: Mapping[int | None, int]) -> bool:
        """Keys that the claimant holds are used, each at its moment or else now; False if it does not hold them all."""
        at = self.log(KeyEvent.USED, ids)
        used = json.dumps({number: moments.get(number, at) for number in ids})
        held = _USE(self.connection, {"moments": used, "claimant": self._claimant}).rowcount
        self._erase(ids)
        return held == len(ids)

    def invalidate(self, ids: Sequence[int], reason: str) -> None:
        """These keys will not be used."""
        if not ids:
            return
        _INVALIDATE(self.connection, {"ids": json.dumps(list(ids))})
        self._erase(ids)
        self.log(KeyEvent.INVALID, ids, reason=reason)

    def held_by(self, claimant: int) -> list[int]:
        """The ids of the keys that a claimant holds."""
        return [number for (number,) in _HOLDINGS(self.connection, {"claimant": claimant})]

    def new_keys(self, kind: str | None) -> list[int]:
        """The ids of the new keys (of one kind)."""
        wanted = select(_STATE.id).where(schema.NEW)
        return list(self.connection.execute(wanted if kind is None else wanted.where(_STATE.kind == kind)).scalars())

    def release(self, claimant: int, reason: str) -> None:
        """What a claimant holds becomes invalid; its wrapper keys are free for others."""
        self.invalidate(self.held_by(claimant), reason)
        wrappers = schema.wrapper_key
        self.connection.execute(update(wrappers).where(wrappers.c.owner == claimant).values(owner=None))

    def dead(self) -> list[int]:
        """Claimants that hold keys or wrapper keys though their processes have ended."""
        claimant, wrapper_owner = schema.claimant.c, schema.wrapper_key.c.owner
        holders = select(_STATE.owner).where(_STATE.status == KeyStatus.IN_USE)
        either = holders.union(select(wrapper_owner).where(wrapper_owner.is_not(None)))
        wanted = select(claimant.id, claimant.pid, claimant.started, claimant.boot_id).where(claimant.id.in_(either))
        return [number for number, *owner in self.connection.execute(wanted).all() if not is_alive(Owner(*owner))]

    def log(self, event: KeyEvent, ids: Sequence[int], *, reason: str = "", wrapper: str | None = None) -> int:
        """Append an event, unless it is about nothing; returns its moment."""
        at = time.time_ns()
        if ids or wrapper:
            row = {"event": event, "at": at, "claimant": self._claimant, "keys": ids_as_text(ids)}
            self.chain.append(schema.event, [row | {"wrapper": wrapper, "reason": reason}])
        return at

    def _erase(self, ids: Sequence[int]) -> None:
        _ERASE(self.connection, {"ids": json.dumps(list(ids))})
