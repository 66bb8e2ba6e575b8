"""The model of a shaped link: when octets that enter one direction come out. No sockets, no waiting.

TCP as it is on such a link, in its main effects: segments with their headers take the link's time one after the other,
acknowledgements take that of the other direction, a lost segment holds up all behind it (RFC 9293, RFC 6298), and no
more than a window is on its way.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from random import Random

SEGMENT_OCTETS = 1448
"""Payload of a full segment: 1,500 octets of IP less headers of 52."""
HEADER_OCTETS = 52
"""IPv4 (20) and TCP (20) with time stamps (12): of each segment, and of an acknowledgement, which has no payload."""
_SEGMENTS_PER_ACK = 2
_LATE_NS = 1_000_000
"""A link that has been free for less counts as never free: a wake-up that is late costs no rate."""
_FOLLOWING = 3
"""Segments behind a lost one that show its loss to the sender (RFC 5681, 3.2)."""
_PROBE_OCTETS = 131_072
"""What waits in front of a link besides the window while it is calibrated."""
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

    @property
    def lone_rtt_ns(self) -> float:
        """The round-trip time of an exchange of one octet on an empty link: packets take their own time, too."""
        return self.rtt_ns + (HEADER_OCTETS + 1) * 8e9 * (1 / self.rate_up + 1 / self.rate_down)

    @property
    def settling_s(self) -> float:
        """How long what is on its way at the end of a calibration takes, and its round trips, s."""
        waiting = self.window + _PROBE_OCTETS
        by_rate = waiting * 8 / self.rate_up + waiting * 8 / self.rate_down
        return by_rate + 20 * (self.rtt_ns + self.jitter_ns) / 1e9

    @property
    def for_calibration(self) -> LinkSettings:
        """The link without loss and with a window that does not bound it: what it carries by its rate and delay."""
        fastest = max(self.rate_up, self.rate_down)
        carried = round(fastest * (self.rtt_ns + self.jitter_ns) / 8e9)
        return replace(self, loss=0.0, window=max(self.window, 2 * carried))


class OneWayLink:
    """One direction of a link, which all connections share: a queue that is emptied at a rate, then a delay."""

    def __init__(self, rate: float, settings: LinkSettings, random: Random) -> None:
        self._ns_per_octet = 8e9 / rate
        self._settings = settings
        self._random = random
        self._free_ns = 0.0
        self.octets = 0
        """Octets that have taken the link's time, headers included."""
        segments = int(_LONGEST_PIECE_NS / self._ns_per_octet / (SEGMENT_OCTETS + HEADER_OCTETS))
        self.piece = SEGMENT_OCTETS * max(1, segments)
        """Payload that is computed at once: a segment, or more on a fast link."""

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
                again_ns = out_ns + self._settings.rtt_ns + shown_ns
                self._leave(min(payload, SEGMENT_OCTETS) + HEADER_OCTETS, now_ns)  # it takes the link's time again
                out_ns = max(out_ns, again_ns)
        return round(out_ns)

    def acknowledge(self, segments: int, now_ns: int) -> int:
        """When the acknowledgement of so many segments of the other direction comes out; it takes this one's time."""
        return round(self._leave(segments / _SEGMENTS_PER_ACK * HEADER_OCTETS, now_ns)) + self._settings.delay_ns

    def _leave(self, octets: float, now_ns: int) -> float:
        """When the last of these octets has left the queue."""
        begin_ns = self._free_ns if self._free_ns > now_ns - _LATE_NS else now_ns
        self._free_ns = begin_ns + octets * self._ns_per_octet
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
        self._read_of_part = 0
        self._end_ns: int | None = None

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
        """When the next octets come out, or the end; None where nothing is on its way."""
        return self._arriving[0][0] if self._arriving else self._end_ns

    def end(self, now_ns: int) -> None:
        """Send the end of the connection behind all octets."""
        self._end_ns = max(self._last_ns, now_ns + self._settings.delay_ns)

    def is_over(self, now_ns: int) -> bool:
        """Whether the end has come out."""
        return not self._arriving and self._end_ns is not None and self._end_ns <= now_ns

    def discard(self) -> None:
        """Drop what is on its way: its reader is gone."""
        self._arriving.clear()
        self._end_ns = None

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
            self._read_of_part += count
            return
        whole, self._read_of_part = self._read_of_part + count, 0
        acknowledged_ns = self._back.acknowledge(-(-whole // SEGMENT_OCTETS), now_ns)
        self._unacknowledged.append((acknowledged_ns, whole))
