"""The stations of the run in progress, put together from the parts that roles report. No Qt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from labconsole.engine.protocol import LiveFrame
from labconsole_v2x.live.series import REASONS_CHANNEL, STATIONS_CHANNEL


@dataclass(frozen=True)
class StationState:
    """A station as it was last reported: `heard` are the numbers of the stations that it has heard; None: it does not
    receive."""

    number: int
    east_m: float = 0.0
    north_m: float = 0.0
    sent: int = 0
    on: bool = True
    heard: frozenset[int] | None = None

    @property
    def roadside(self) -> bool:
        """Whether it is the roadside station."""
        return self.number == 0


class StationBoard:
    """Keeps the newest state of each station, and the rejections by reason."""

    def __init__(self) -> None:
        self.stations: dict[int, StationState] = {}
        self.reasons: Counter[str] = Counter()
        self._switched: dict[int, bool] = {}
        self._receivers: set[int] = set()
        self._heard_by: Counter[int] | None = None

    def take(self, frame: LiveFrame) -> None:
        """Enter what a live frame reports; any frame may be missing."""
        by_role = frame.by_role
        for role in by_role.states.get(STATIONS_CHANNEL.name, {}):
            for state in _stations(by_role.state(STATIONS_CHANNEL.name, role)):
                if self._switched.get(state.number) is state.on:
                    del self._switched[state.number]
                self.stations[state.number] = replace(state, on=self._switched.get(state.number, state.on))
                if state.heard is not None:
                    self._receivers.add(state.number)
                self._heard_by = None
        reasons: Counter[str] = Counter()
        for role in by_role.states.get(REASONS_CHANNEL.name, {}):
            reasons.update(by_role.state(REASONS_CHANNEL.name, role))
        self.reasons = reasons or self.reasons

    def switch(self, number: int, *, on: bool) -> None:
        """Show a station as the operator has just set it, until it is reported."""
        if number in self.stations:
            self._switched[number] = on
            self.stations[number] = replace(self.stations[number], on=on)

    def heard_by(self, number: int) -> int | None:
        """How many stations hear this one; None where no other station receives."""
        return None if self._receivers <= {number} else self._counts[number]

    @property
    def pairs(self) -> int:
        """How many pairs of receiver and heard station there are."""
        return self._counts.total()

    @property
    def _counts(self) -> Counter[int]:
        """Of each station, how many hear it."""
        if self._heard_by is None:
            self._heard_by = Counter(chain.from_iterable(state.heard or () for state in self.stations.values()))
        return self._heard_by


def _stations(part: Mapping[str, Any]) -> Iterator[StationState]:
    """The stations of one report; none before the first one."""
    if not part:
        return
    masks = part["heard"] or [None] * len(part["on"])
    for place, state in enumerate(zip(part["east"], part["north"], part["sent"], part["on"], masks, strict=True)):
        east, north, sent, on, mask = state
        yield StationState(part["first"] + place, east, north, sent, bool(on), _numbers(mask))


def _numbers(mask: str | None) -> frozenset[int] | None:
    """The numbers of the bits that are set in a hexadecimal number."""
    if mask is None:
        return None
    bits = int(mask, 16)
    return frozenset(number for number in range(bits.bit_length()) if bits >> number & 1)
