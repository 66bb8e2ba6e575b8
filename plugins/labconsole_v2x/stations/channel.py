"""The radio channel: airtime of packets (IEEE 802.11, ITS-G5), channel busy ratio, and congestion control (DCC).

Stations of this console have no radio: these figures say what their packets would take of a channel at 6 Mbit/s.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import NamedTuple

_HEADERS = 26 + 8 + 4
"""Octets around a packet: QoS data header, LLC and SNAP, and check sum (EN 302 663, 4.3)."""
_PREAMBLE_US = 40
"""Preamble and SIGNAL field at 10 MHz (IEEE 802.11, 17.3)."""
_SYMBOL_US = 8
_BITS_A_SYMBOL = 48
"""6 Mbit/s: QPSK, rate 1/2."""
_SERVICE_AND_TAIL = 16 + 6


def octets_on_air(packet: int) -> int:
    """The octets of the 802.11 frame of a GeoNetworking packet with so many octets."""
    return packet + _HEADERS


def airtime_us(packet: int) -> int:
    """The time in us that a GeoNetworking packet with so many octets takes at 6 Mbit/s."""
    bits = _SERVICE_AND_TAIL + 8 * octets_on_air(packet)
    return _PREAMBLE_US + _SYMBOL_US * -(-bits // _BITS_A_SYMBOL)


class ChannelLoad:
    """The channel busy ratio (CBR) of the packets that a station hears, its own included.

    Measured over 100 ms and averaged with the 100 ms before (TS 102 687 v1.2.1, 4.2); over the time since the ratio was
    read before, where that is longer.
    """

    INTERVAL_NS = 100_000_000

    def __init__(self) -> None:
        self._begin_ns: int | None = None
        self._airtime_us = 0
        self._measured: deque[float] = deque([0.0, 0.0], maxlen=2)
        self._turn = Lock()

    def add(self, packet: int) -> None:
        """Count a packet with so many octets; any thread may do so."""
        taken_us = airtime_us(packet)
        with self._turn:
            self._airtime_us += taken_us

    def ratio(self, now_ns: int) -> float:
        """The ratio as of the last whole interval, from 0 to 1."""
        with self._turn:
            self._begin_ns = self._begin_ns or now_ns
            passed = (now_ns - self._begin_ns) // self.INTERVAL_NS
            if passed > 0:
                self._begin_ns += passed * self.INTERVAL_NS
                busy = min(1.0, self._airtime_us * 1000 / (passed * self.INTERVAL_NS))
                self._measured.extend([busy] * min(passed, 2))
                self._airtime_us = 0
            return sum(self._measured) / 2


class DccState(NamedTuple):
    """A state of the reactive approach: the CBR from which on it applies, and the least time between two packets."""

    name: str
    from_ratio: float
    off_ms: int


DCC_STATES = (
    DccState("relaxed", 0.0, 100),
    DccState("active 1", 0.30, 200),
    DccState("active 2", 0.40, 400),
    DccState("active 3", 0.50, 500),
    DccState("restrictive", 0.60, 1000),
)
"""TS 102 687 v1.2.1, table A.1: packets of at most 1 ms, as CAMs with certificate are."""
LONGEST_US = 1000
"""Airtime of the longest packets for which that table is."""


class ReactiveDcc:
    """Decentralised congestion control by states: one step up or down each 100 ms (TS 102 687, 5.3)."""

    def __init__(self) -> None:
        self._level = 0
        self._next_ns = 0

    def state(self, ratio: float, now_ns: int) -> DccState:
        """The state at this channel busy ratio."""
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + ChannelLoad.INTERVAL_NS
            wanted = max(level for level, state in enumerate(DCC_STATES) if ratio >= state.from_ratio)
            self._level += (wanted > self._level) - (wanted < self._level)
        return DCC_STATES[self._level]
