"""The radio channel of simulated stations: medium access of IEEE 802.11 (EDCA) for broadcast at 6 Mbit/s in 10 MHz.

All stations hear each other. Broadcast frames are neither acknowledged nor repeated: those that begin in one slot
collide, and the receiver gets one of them at most, the strongest by far.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SLOT_S, SIFS_S = 13e-6, 32e-6
"""10 MHz channel spacing (IEEE 802.11-2020, table 17-21)."""
CAPTURE_DB = 4.0
"""A frame is received in spite of others of its slot if it is stronger than all of them together by so much.

As simulations of 802.11p with NS-2 have it for frames whose preambles overlap (Killat and Hartenstein, EURASIP Journal
on Wireless Communications and Networking 2009, 721301, table 1); no standard defines it.
"""


@dataclass(frozen=True)
class Radio:
    """How stations gain access to the medium, and how differently strong a receiver hears them."""

    aifsn: int
    cw_min: int
    spread_db: float = 0.0
    """Standard deviation of the power with which stations are received, normally distributed in dB."""

    @cached_property  # asked for several times for each packet
    def aifs_s(self) -> float:
        """The time for which the medium must be idle before slots count."""
        return SIFS_S + self.aifsn * SLOT_S


BEST_EFFORT = Radio(6, 15)
"""AC_BE of ITS-G5 (EN 302 663, annex B), in which CAMs are sent (DP2); all stations are equally strong."""


class Transmissions(NamedTuple):
    """The result for each frame, arrays of one length; times in s."""

    begun_s: NDArray[np.float64]
    """When a frame began on air; not a number for one that found no room at its sender."""
    collided: NDArray[np.bool_]
    """Which were lost by a collision."""


def shared_medium(
    station: NDArray[np.int64],
    ready_s: NDArray[np.float64],
    airtime_s: NDArray[np.float64],
    *,
    radio: Radio,
    room: int,
    random: np.random.Generator,
) -> Transmissions:
    """Let stations send frames that become ready at `ready_s` (ascending), each when it has won the medium.

    `room` is that of a station's transmit queue: frames that wait.
    """
    medium = SharedMedium(radio, room, random)
    medium.add(station.tolist(), ready_s.tolist(), airtime_s.tolist())
    medium.run()
    return medium.transmissions()


class IdealMedium:
    """A medium on which every frame begins when it is ready, in steps as `SharedMedium`."""

    def __init__(self) -> None:
        self._begun_s: list[float] = []
        self._ended_s: list[float] = []
        self._heard = 0

    def add(self, station: Sequence[int], ready_s: Sequence[float], airtime_s: Sequence[float]) -> None:
        """Add frames in order of the times at which they become ready."""
        self._begun_s.extend(ready_s)
        self._ended_s.extend(ready + airtime for ready, airtime in zip(ready_s, airtime_s, strict=True))

    def run(self, until_s: float = math.inf) -> list[tuple[float, float]]:
        """Begin and end of each frame that was added since the last step."""
        heard, self._heard = self._heard, len(self._begun_s)
        return list(zip(self._begun_s[heard:], self._ended_s[heard:], strict=True))

    def transmissions(self) -> Transmissions:
        """The result for each frame, in the order in which they were added."""
        return Transmissions(np.array(self._begun_s, np.float64), np.zeros(len(self._begun_s), np.bool_))


class SharedMedium:
    """The medium in steps: add frames, and let stations send until a time."""

    def __init__(self, radio: Radio, room: int, random: np.random.Generator) -> None:
        self._radio, self._room, self._random = radio, room, random
        self._aifs_s = radio.aifs_s
        self._power: dict[int, float] = {}
        """With which the receiver hears a station, in relation to the median."""
        self._station: list[int] = []
        self._ready_s: list[float] = []
        self._airtime_s: list[float] = []
        self._begun_s: list[float] = []
        self._collided: list[bool] = []
        self._backoffs: deque[int] = deque()
        self._next = 0
        """The first frame that is not ready yet."""
        self._queues: dict[int, deque[int]] = {}
        self._contending: list[tuple[int, int]] = []
        """Heap of (slot in which a station will send, station); slots count on through busy times."""
        self._slot = 0
        """Slots that have passed when the medium last became busy."""
        self._idle_s = -1.0
        """When the medium last became idle."""

    def add(self, station: Sequence[int], ready_s: Sequence[float], airtime_s: Sequence[float]) -> None:
        """Add frames in order of the times at which they become ready, none before the end of the last step."""
        self._station.extend(station)
        self._ready_s.extend(ready_s)
        self._airtime_s.extend(airtime_s)
        self._begun_s.extend([math.nan] * len(station))
        self._collided.extend([False] * len(station))
        self._backoffs.extend(self._random.integers(0, self._radio.cw_min + 1, 2 * len(station) + 1).tolist())

    def run(self, until_s: float = math.inf) -> list[tuple[float, float]]:
        """Send the frames that begin before `until_s`; returns begin and end of each busy time, in order."""
        busy: list[tuple[float, float]] = []
        contending, queues, airtime_s = self._contending, self._queues, self._airtime_s
        while True:
            if self._next < len(self._ready_s):
                self._admit()
            if not contending or (begin_s := self._begin_s(contending[0][0])) >= until_s:
                return busy
            slot, sender = heapq.heappop(contending)
            if contending and contending[0][0] == slot:
                senders = [sender, *self._senders(slot)]
                frames = [queues[each].popleft() for each in senders]
                received = self._received(senders)
                for each, frame in zip(senders, frames, strict=True):
                    self._begun_s[frame], self._collided[frame] = begin_s, each != received
                end_s = begin_s + max(airtime_s[frame] for frame in frames)
            else:  # nearly always
                senders, frame = [sender], queues[sender].popleft()
                self._begun_s[frame], end_s = begin_s, begin_s + airtime_s[frame]
            self._slot, self._idle_s = slot, end_s
            busy.append((begin_s, end_s))
            for each in senders:
                if queues[each]:
                    self._contend(each, self._backoffs.popleft())

    def transmissions(self) -> Transmissions:
        """The result for each frame, in the order in which they were added."""
        return Transmissions(np.array(self._begun_s, np.float64), np.array(self._collided, np.bool_))

    def _begin_s(self, slot: int) -> float:
        return self._idle_s + self._aifs_s + (slot - self._slot) * SLOT_S

    def _admit(self) -> None:
        """Let frames contend that become ready before the next one is sent."""
        contending, queues, all_ready_s = self._contending, self._queues, self._ready_s
        idle_s = self._begin_s(self._slot)
        for frame in range(self._next, len(all_ready_s)):
            ready_s = all_ready_s[frame]
            if contending and ready_s >= self._begin_s(contending[0][0]):
                self._next = frame
                return
            sender = self._station[frame]
            queue = queues.get(sender)
            if queue is None:
                queue = queues[sender] = deque()
            if len(queue) < self._room:
                queue.append(frame)
                if len(queue) == 1:
                    # On an idle medium a frame is sent at once, in the slot that begins next.
                    slots = -(-(ready_s - idle_s) // SLOT_S) if ready_s >= idle_s else self._backoffs.popleft()
                    self._contend(sender, int(slots))
        self._next = len(all_ready_s)

    def _contend(self, sender: int, slots: int) -> None:
        heapq.heappush(self._contending, (self._slot + slots, sender))

    def _received(self, senders: list[int]) -> int | None:
        """The sender whose frame is received of those that begin in one slot."""
        if len(senders) == 1:
            return senders[0]
        if not self._radio.spread_db:
            return None
        strength = {sender: self._strength(sender) for sender in senders}
        strongest = max(senders, key=strength.__getitem__)
        interference = sum(strength.values()) - strength[strongest]
        return strongest if strength[strongest] >= 10 ** (CAPTURE_DB / 10) * interference else None

    def _strength(self, sender: int) -> float:
        if sender not in self._power:
            self._power[sender] = 10 ** (self._random.normal(0, self._radio.spread_db) / 10)
        return self._power[sender]

    def _senders(self, slot: int) -> list[int]:
        senders = []
        while self._contending and self._contending[0][0] == slot:
            senders.append(heapq.heappop(self._contending)[1])
        return senders
