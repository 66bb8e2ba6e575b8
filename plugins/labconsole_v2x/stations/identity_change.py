"""When a station changes its identity: on request, at start-up, periodically, and not while it is locked.

Times are those of `labconsole.clock.now_ns`. `ChangeSchedule` decides; the thread that sends changes the identity
between two packets, so that none has identifiers of both.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from itertools import count
from random import Random
from threading import Lock
from typing import Protocol

from labconsole.errors import UserError
from labconsole_v2x.security.verification import its_now
from labconsole_v2x.stations.pseudonyms import PLAIN_CAM, Need, NoTicketError, Pseudonym, PseudonymPool
from labconsole_v2x.stations.sending import ALL_LAYERS, Layer

LONGEST_LOCK_S = 255
"""SN-ID-LOCK has its duration in one octet (TS 102 723-8 v1.1.1, 5.2.9)."""
_SECOND_NS = 1_000_000_000


class ChangeSchedule:
    """When changes are due; any thread may request, lock and unlock, the sender's asks `is_due`."""

    def __init__(
        self,
        *,
        at_start: bool = False,
        interval_s: float | None = None,
        jitter: float = 0.0,
        random: Random | None = None,
    ) -> None:
        """Periodically where there is an interval; each is up to a share of `jitter` shorter or longer."""
        if not 0 <= jitter < 1 or (interval_s is not None and interval_s <= 0):
            raise ValueError("intervals are over 0, and jitter is a share of them from 0 to under 1")
        self._wanted = at_start
        self._interval_s = interval_s
        self._jitter = jitter
        self._random = random or Random()
        self._next_ns: int | None = None
        self._locks: dict[int, int] = {}
        """When each lock ends, by its handle."""
        self._handles = count(1)
        self._turn = Lock()

    def begin(self, now_ns: int) -> None:
        """Let the first interval begin."""
        with self._turn:
            self._plan(now_ns)

    def request(self, now_ns: int) -> bool:
        """Request a change (SN-IDCHANGE-TRIGGER); False where it waits for the end of a lock."""
        with self._turn:
            self._wanted = True
            return not self._is_locked(now_ns)

    def lock(self, seconds: int, now_ns: int) -> int:
        """Allow no change for so long (SN-ID-LOCK); the handle to end it before. Raises UserError."""
        if not 1 <= seconds <= LONGEST_LOCK_S:
            raise UserError(f"An identity cannot be locked for {seconds} s: choose 1 to {LONGEST_LOCK_S} s.")
        with self._turn:
            handle = next(self._handles)
            self._locks[handle] = now_ns + seconds * _SECOND_NS
            return handle

    def unlock(self, handle: int) -> None:
        """End a lock (SN-ID-UNLOCK); one that has ended is not an error. Others stay."""
        with self._turn:
            self._locks.pop(handle, None)

    def is_locked(self, now_ns: int) -> bool:
        """Whether a lock allows no change now."""
        with self._turn:
            return self._is_locked(now_ns)

    def is_due(self, now_ns: int) -> bool:
        """Whether a change is to be done now. One that is due during a lock is due at its end."""
        with self._turn:
            if self._next_ns is not None and now_ns >= self._next_ns:
                self._wanted = True
            return self._wanted and not self._is_locked(now_ns)

    def done(self, now_ns: int) -> None:
        """Note a change: the next interval begins."""
        with self._turn:
            self._wanted = False
            self._plan(now_ns)

    def _plan(self, now_ns: int) -> None:
        if self._interval_s is not None:
            share = 1 + self._random.uniform(-self._jitter, self._jitter)
            self._next_ns = now_ns + round(self._interval_s * share * _SECOND_NS)

    def _is_locked(self, now_ns: int) -> bool:
        self._locks = {handle: end_ns for handle, end_ns in self._locks.items() if now_ns < end_ns}
        return bool(self._locks)


class IdentitySender(Protocol):
    """A sender whose identity can be changed: `CamSender`."""

    def change_identity(self, pseudonym: Pseudonym | None = None, layers: Set[Layer] = ALL_LAYERS) -> None:
        """Send under another identity from the next packet on."""


@dataclass
class IdentityChanger:
    """Changes the identity of a sender when it is due, in the thread that sends."""

    sender: IdentitySender
    schedule: ChangeSchedule
    pool: PseudonymPool
    need: Need = PLAIN_CAM
    """What the station sends: other tickets are not taken."""
    layers: Set[Layer] = ALL_LAYERS
    clock: Callable[[], int] = its_now
    """ITS time in us."""
    notify: Callable[[int], None] = lambda now_ns: None
    """Called after each change, in the thread that sends."""
    changes: int = 0
    failures: int = 0
    """Attempts without a further valid ticket: the identity stays."""

    def change_if_due(self, now_ns: int) -> bool:
        """Change the identity if it is due; whether it was changed. An expired ticket is changed during a lock, too."""
        now_s, current = self.clock() // 1_000_000, self.pool.current
        if not (self.schedule.is_due(now_ns) or (current is not None and not current.is_valid(now_s))):
            return False
        self.schedule.done(now_ns)
        try:
            pseudonym = self.pool.change(now_s, self.need)
        except NoTicketError:
            self.failures += 1
            return False
        self.sender.change_identity(pseudonym, self.layers)
        self.changes += 1
        self.notify(now_ns)
        return True
