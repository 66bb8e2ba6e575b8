"""The model of a shaped link: when octets that enter one direction come out at its other end. No sockets, no waiting.

TCP as it is on such a link, in its main effects: segments with their headers take the link's time one after the other,
acknowledgements take that of the other direction, a lost segment holds up all behind it (RFC 9293, RFC 6298), and no
more than a window is on its way.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random

SEGMENT_OCTETS = 1448
"""Payload of a full segment: 1,500 octets of IP less headers of 52."""
HEADER_OCTETS = 52
"""IPv4 (20) and TCP (20) with time stamps (12): of each segment, and of an acknowledgement, which has no payload."""
_SEGMENTS_PER_ACK = 2
_BURST_NS = 1_000_000
"""So much of the link's time may be used later than it was free: a wake-up that is late costs no rate."""
_TIMEOUT_NS = 200_000_000
"""The least time until a lost segment is sent again where nothing follows it that shows the loss (Linux)."""
_FOLLOWING = 3
"""Segments behind a lost one that show its loss to the sender (RFC 5681, 3.2)."""
_LONGEST_PIECE_NS = 500_000
"""Segments that leave within such a time are computed as one piece: fast links need no computation a segment."""


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """A link between two sites: rates in bit/s of IP packets, times in ns, each way; `loss` of segments, 0 to 1.

    `window`: octets that a connection may have on their way in one direction, as the receive window of TCP.
    """

    rate_up: float
    rate_down: float
    delay_ns: int = 0
    jitter_ns: int = 0
    loss: float = 0.0
    window: int = 65_536

    @property
    def rtt_ns(self) -> int:
        """The round-trip time of an empty link without jitter."""
        return 2 * self.delay_ns


class OneWayLink:
    """One direction of a link, which all connections share: a queue that is emptied at a rate, then a delay."""

    def __init__(self, rate: float, settings: LinkSettings, random: Random) -> None:
        self._ns_per_octet = 8e9 / rate
        self._settings = settings
        self._random = random
        self._free_ns = 0.0
        self.octets = 0
        """Octets that have taken the link's time, headers included."""

    @property
    def piece(self) -> int:
        """Payload that is computed at once: a segment, or more on a fast link."""
        segments = int(_LONGEST_PIECE_NS / self._ns_per_octet / (SEGMENT_OCTETS + HEADER_OCTETS))
        return SEGMENT_OCTETS * max(1, segments)

    def send(self, payload: int, now_ns: int) -> int:
        """When `payload` octets that are offered now come out, without regard to those before them."""
        segments = -(-payload // SEGMENT_OCTETS)
        # While others wait in front, the last segment is filled by what follows.
        headers = payload / SEGMENT_OCTETS if self._free_ns > now_ns else segments
        out_ns = self._leave(payload + headers * HEADER_OCTETS, now_ns) + self._settings.delay_ns
        if self._settings.jitter_ns:
            out_ns += self._random.uniform(0, self._settings.jitter_ns)
        for _ in range(segments if self._settings.loss else 0):
            while self._random.random() < self._settings.loss:
                shown_ns = _FOLLOWING * (SEGMENT_OCTETS + HEADER_OCTETS) * self._ns_per_octet
                again_ns = out_ns + self._settings.rtt_ns + min(shown_ns, _TIMEOUT_NS)
                self._leave(min(payload, SEGMENT_OCTETS) + HEADER_OCTETS, now_ns)  # it takes the link's time again
                out_ns = max(out_ns, again_ns)
        return round(out_ns)

    def acknowledge(self, segments: float, now_ns: int) -> None:
        """Let acknowledgements of so many segments of the other direction take this one's time."""
        self._leave(segments / _SEGMENTS_PER_ACK * HEADER_OCTETS, now_ns)

    def _leave(self, octets: float, now_ns: int) -> float:
        """When the last of these octets has left the queue."""
        self._free_ns = max(self._free_ns, now_ns - _BURST_NS) + octets * self._ns_per_octet
        self.octets += round(octets)
        return max(self._free_ns, now_ns)


class Flow:
    """The octets of one connection in one direction: in their order, and no more than the window on their way."""

    def __init__(self, link: OneWayLink, back: OneWayLink, settings: LinkSettings, open_ns: int) -> None:
        """`open_ns`: when the handshake is over; what comes earlier waits for it."""
        self._link, self._back, self._settings = link, back, settings
        self._open_ns = open_ns
        self._last_ns = 0
        self._arriving: deque[tuple[int, bytes]] = deque()
        self._unacknowledged: deque[tuple[int, int]] = deque()
        self._on_their_way = 0

    def room(self, now_ns: int) -> int:
        """Octets that the window accepts now: a segment or more, so that no small ones are sent (RFC 9293, 3.8.6.2)."""
        while self._unacknowledged and self._unacknowledged[0][0] <= now_ns:
            self._on_their_way -= self._unacknowledged.popleft()[1]
        room = self._settings.window - self._on_their_way
        return room if room >= SEGMENT_OCTETS or not self._on_their_way else 0

    def offer(self, octets: bytes, now_ns: int) -> None:
        """Send octets, of which there are at most `room`."""
        piece = self._link.piece
        begin_ns = max(now_ns, self._open_ns)
        for at in range(0, len(octets), piece):
            part = octets[at : at + piece]
            self._last_ns = max(self._last_ns, self._link.send(len(part), begin_ns))
            self._arriving.append((self._last_ns, part))
        self._on_their_way += len(octets)

    def due_ns(self) -> int | None:
        """When the next octets come out, None where none are on their way."""
        return self._arriving[0][0] if self._arriving else None

    def opens_ns(self) -> int | None:
        """When an acknowledgement comes next, None where none is awaited."""
        return self._unacknowledged[0][0] if self._unacknowledged else None

    def arrived(self, now_ns: int) -> bytes:
        """The next octets that have come out, empty where there are none; `delivered` follows."""
        return self._arriving[0][1] if self._arriving and self._arriving[0][0] <= now_ns else b""

    def delivered(self, count: int, now_ns: int) -> None:
        """Take note that `count` octets of those that came out were read; the rest stays."""
        at_ns, part = self._arriving.popleft()
        if count < len(part):
            self._arriving.appendleft((at_ns, part[count:]))
        if not count:
            return
        self._back.acknowledge(count / SEGMENT_OCTETS, now_ns)
        self._unacknowledged.append((now_ns + self._settings.delay_ns, count))
