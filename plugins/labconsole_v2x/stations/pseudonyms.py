"""Pseudonyms of a station: a pool of authorization tickets with their keys, within the limits of a policy.

Times are ITS time in s. A pseudonym is one ticket; what a station sends under it is in `identity_change`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random, SystemRandom
from threading import Lock
from typing import NamedTuple

from labconsole.errors import UserError
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.denm import Denm
from labconsole_v2x.security.encoding import compressed
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.profiles import SspBit, has_ssp_bit, is_known_ssp, needed_ssp_bits
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Certificate, Curve, Validity

WEEK_S = 7 * 24 * 3600
_MINUTE_S = 60


@dataclass(frozen=True)
class PseudonymPolicy:
    """Limits of a station's tickets: by default those of the EU C-ITS certificate policy, release 1.1 (2018)."""

    lifetime_s: int = WEEK_S
    """A ticket is valid for so long at most (7.2.1)."""
    most_valid: int = 100
    """So many tickets are valid at the same time at most; release 3.0 (2024) allows 200."""
    preload_s: int = 13 * WEEK_S
    """A ticket begins at most so far ahead: three months (7.2.1), in whole weeks."""
    curves: frozenset[Curve] = frozenset({Curve.P256, Curve.BRAINPOOL_P256R1})
    """Curves of tickets' keys: those of 256 bits."""
    low_water: int = 20
    """A pool with fewer fresh tickets that are valid now is to be refilled; not of the policy."""


@dataclass(frozen=True)
class Pseudonym:
    """An authorization ticket, and the key that signs under it, in software or in a token."""

    ticket: Certificate
    key: SigningKey = field(repr=False)

    def is_valid(self, now_s: int) -> bool:
        """Whether the ticket is valid at a time."""
        return self.ticket.validity.start_s <= now_s < self.ticket.validity.end_s

    def permits(self, need: Need) -> bool:
        """Whether the ticket permits a message."""
        return any(
            one.psid == need.psid and is_known_ssp(one) and all(has_ssp_bit(one, bit) for bit in need.bits)
            for one in self.ticket.permissions
        )


class Need(NamedTuple):
    """What a message needs of a ticket: an ITS-AID, and bits of its SSP (None: one that no ticket has)."""

    psid: int = CAM_PSID
    bits: tuple[SspBit | None, ...] = ()

    @classmethod
    def of(cls, message: Cam | Denm) -> Need:
        """What this message needs."""
        return cls(CAM_PSID if isinstance(message, Cam) else DENM_PSID, tuple(needed_ssp_bits(message).values()))


PLAIN_CAM = Need()
"""What a CAM without special containers needs."""


class Permitted(StrEnum):
    """Which ticket of a pool permits a message."""

    CURRENT = "the current ticket"
    ANOTHER = "another ticket"
    NONE = "no ticket"


class RefusedTicketError(UserError):
    """A ticket that the policy does not allow in the pool."""


class NoTicketError(UserError):
    """No ticket of the pool permits what is asked for."""


Authorize = Callable[[int, Validity], Iterable[Pseudonym]]
"""Gets so many tickets with this validity, each with a new key; fewer where it cannot. May raise UserError."""


class PseudonymPool:
    """The tickets of a station, one of them in use; any thread may call its methods."""

    def __init__(self, policy: PseudonymPolicy | None = None, random: Random | None = None) -> None:
        """`random` chooses among fresh tickets: a seeded one makes the choice repeatable."""
        self.policy = policy or PseudonymPolicy()
        self._random = random or SystemRandom()
        self._pseudonyms: dict[bytes, Pseudonym] = {}
        self._used: dict[bytes, None] = {}
        """HashedId8 of tickets that were in use, the one longest ago first."""
        self._current: Pseudonym | None = None
        self._turn = Lock()

    @property
    def current(self) -> Pseudonym | None:
        """The pseudonym in use; None before the first one."""
        return self._current

    def __len__(self) -> int:
        """Return the number of tickets, those for later included."""
        return len(self._pseudonyms)

    def add(self, pseudonym: Pseudonym, now_s: int) -> None:
        """Add a ticket. Raises `RefusedTicketError`."""
        with self._turn:
            reason = self._refusal(pseudonym, now_s)
            if reason:
                raise RefusedTicketError(
                    f"The pool refuses ticket {pseudonym.ticket.hashed_id8.hex()}, as {reason}: request another one."
                )
            self._pseudonyms[pseudonym.ticket.hashed_id8] = pseudonym

    def _refusal(self, pseudonym: Pseudonym, now_s: int) -> str:
        """Why a ticket may not be in the pool; empty where it may."""
        ticket, policy = pseudonym.ticket, self.policy
        validity = ticket.validity
        if ticket.hashed_id8 in self._pseudonyms:
            return "it is in the pool already"
        if compressed(ticket.verification_key) != pseudonym.key.public_key:
            return "the key is not that of the ticket"
        if ticket.verification_key.curve not in policy.curves:
            return f"the policy does not allow keys on {ticket.verification_key.curve.title}"
        if validity.end_s <= now_s:
            return "it has expired"
        if validity.end_s - validity.start_s > policy.lifetime_s:
            return f"it is valid for longer than {_days(policy.lifetime_s)}"
        if validity.start_s > now_s + policy.preload_s:
            return f"it begins later than {_days(policy.preload_s)} from now"
        if self._most_valid(validity) >= policy.most_valid:
            return f"{policy.most_valid} tickets are valid at the same time already"
        return ""

    def _most_valid(self, during: Validity) -> int:
        """How many tickets are valid at the same time at most in a period."""
        changes = []
        for one in self._pseudonyms.values():
            start_s, end_s = one.ticket.validity.start_s, one.ticket.validity.end_s
            if start_s < during.end_s and end_s > during.start_s:
                changes += [(max(start_s, during.start_s), 1), (end_s, -1)]
        valid = most = 0
        for _, change in sorted(changes):  # at one time, those that end come first
            valid += change
            most = max(most, valid)
        return most

    def _drop_expired(self, now_s: int) -> None:
        for hashed_id8 in [name for name, one in self._pseudonyms.items() if one.ticket.validity.end_s <= now_s]:
            del self._pseudonyms[hashed_id8]
            self._used.pop(hashed_id8, None)

    # Choice

    def valid(self, now_s: int) -> list[Pseudonym]:
        """The tickets that are valid now; expired ones are dropped."""
        with self._turn:
            return self._valid(now_s)

    def fresh(self, now_s: int) -> int:
        """How many tickets are valid now that were never in use."""
        with self._turn:
            return len(self._fresh(self._valid(now_s)))

    def permitted(self, need: Need, now_s: int) -> Permitted:
        """Which ticket permits a message: the current one, another one, or none."""
        with self._turn:
            able = [one for one in self._valid(now_s) if one.permits(need)]
        if not able:
            return Permitted.NONE
        return Permitted.CURRENT if self._current in able else Permitted.ANOTHER

    def change(self, now_s: int, need: Need = PLAIN_CAM) -> Pseudonym:
        """Take another ticket that permits `need` into use: a fresh one, else the one whose use was longest ago.

        Raises `NoTicketError`: none but the current one is valid and permits it.
        """
        with self._turn:
            able = [one for one in self._valid(now_s) if one.permits(need) and one is not self._current]
            if not able:
                raise NoTicketError(
                    f"No further ticket is valid that permits this message (ITS-AID {need.psid}): refill the pool."
                )
            fresh, order = self._fresh(able), list(self._used)
            taken = self._random.choice(fresh) if fresh else min(able, key=lambda one: order.index(_name(one)))
            self._used.pop(_name(taken), None)
            self._used[_name(taken)] = None
            self._current = taken
            return taken

    def _valid(self, now_s: int) -> list[Pseudonym]:
        self._drop_expired(now_s)
        return [one for one in self._pseudonyms.values() if one.is_valid(now_s)]

    def _fresh(self, pseudonyms: Sequence[Pseudonym]) -> list[Pseudonym]:
        return [one for one in pseudonyms if _name(one) not in self._used]

    # Refill

    def is_low(self, now_s: int) -> bool:
        """Whether fewer fresh tickets are valid now than the low-water mark."""
        return self.fresh(now_s) < self.policy.low_water

    def shortages(self, now_s: int) -> list[tuple[Validity, int]]:
        """How many tickets are missing in each period until the end of the preload time.

        Periods are multiples of a ticket's lifetime: the tickets of all stations then begin at the same times. Those
        for the present period begin now, at a whole minute: a week in whole seconds cannot be encoded.
        """
        life_s, until_s = self.policy.lifetime_s, now_s + self.policy.preload_s
        begin_s = now_s // _MINUTE_S * _MINUTE_S
        periods = [
            Validity(max(begin_s, start_s), start_s + life_s)
            for start_s in range(now_s // life_s * life_s, until_s + 1, life_s)
        ]
        with self._turn:
            self._drop_expired(now_s)
            wanted = [(period, self.policy.most_valid - self._most_valid(period)) for period in periods]
        return [(period, count) for period, count in wanted if count > 0]

    def missing(self, now_s: int) -> int:
        """How many tickets are to be requested so that the pool is full for the preload time."""
        return sum(count for _, count in self.shortages(now_s))

    def refill(self, authorize: Authorize, now_s: int) -> int:
        """Request the missing tickets, those that are needed first before; how many were added.

        Raises UserError: a request failed, or a ticket is not within the policy. Tickets before it are kept.
        """
        added = 0
        for period, count in self.shortages(now_s):
            for pseudonym in authorize(count, period):
                self.add(pseudonym, now_s)
                added += 1
        return added


def _name(pseudonym: Pseudonym) -> bytes:
    return pseudonym.ticket.hashed_id8


def _days(seconds: int) -> str:
    return f"{seconds / 86_400:g} days"
