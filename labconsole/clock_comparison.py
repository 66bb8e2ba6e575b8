"""The offset between the clocks of two consoles: from exchanged messages, and the correction of times by it.

Each exchange has four times, as in NTP: the sender's console sends at t1, the receiver's gets it at t2 and answers at
t3, and the answer arrives at t4. The exchange with the shortest round trip counts (minimum-RTT filter): its offset is
((t2 - t1) + (t3 - t4)) / 2, and whatever the way there and back share of the round trip, it is wrong by half of the
round trip at most. Of a console and one of its hosts, the console takes the sender's part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from labconsole.model.series import Event

COMPARED = "clocks compared"
"""Event: the offset was measured; data: `Offset` as a mapping, with `phase` (`BEFORE` or `AFTER`), and `checks`."""
HOST_COMPARED = "host clock compared"
"""Event: the offset of a host's clock from the console's; data as above, with `host`, `clock_domain`, and the phase
`DURING` as well."""
HOST_JUMPED = "host clock jumped"
"""Event: the offset of a host's clock changed by more than drift explains; data: `host`, `jump_ns`."""
BEFORE, DURING, AFTER = "before", "during", "after"
MAX_CLOCK_UNCERTAINTY: Final = 0.10
"""Share of the median latency above which the uncertainty of a clock offset leaves it open."""
MAX_DRIFT_PPM: Final = 200
"""What two clocks may drift apart, parts per million: quartz has 100 at most. One that changes more has jumped."""

_UNCHANGED, _SHORTER = 20, 0.9
"""After how many exchanges, none of which shortens the shortest round trip to this share, `is_settled` holds."""


@dataclass(frozen=True)
class Exchange:
    """One exchange: t1, t4 by the clock of the sender's console, t2, t3 by that of the receiver's, ns."""

    t1: int
    t2: int
    t3: int
    t4: int

    @property
    def round_trip_ns(self) -> int:
        """The time on the way, there and back, through the broker."""
        return (self.t4 - self.t1) - (self.t3 - self.t2)

    @property
    def is_possible(self) -> bool:
        """Whether the answer was sent after the question had come, and neither came before it was sent."""
        return self.t3 >= self.t2 and self.round_trip_ns >= 0


@dataclass(frozen=True)
class Offset:
    """The receiver's clock less the sender's at one moment, all in ns.

    `sender_ns` and `receiver_ns` are that moment by each clock, the wall offsets what to add to it for Unix time.
    """

    offset_ns: int
    uncertainty_ns: int
    sender_ns: int
    receiver_ns: int
    sender_wall_offset_ns: int
    receiver_wall_offset_ns: int
    exchanges: int

    @property
    def wall_ns(self) -> int:
        """The receiver's wall clock less the sender's."""
        return self.offset_ns + self.receiver_wall_offset_ns - self.sender_wall_offset_ns

    def to_json(self) -> dict[str, int]:
        """The plain form, for events and messages."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`; further keys are left out. Raises KeyError, TypeError and ValueError."""
        return cls(**{name: int(data[name]) for name in cls.__dataclass_fields__})


def best_offset(
    exchanges: Sequence[Exchange], sender_wall_offset_ns: int, receiver_wall_offset_ns: int
) -> Offset | None:
    """The offset by the exchange with the shortest round trip, ± half of it (1 ns at least).

    Exchanges that are not possible are left out; None where all are.
    """
    possible = [one for one in exchanges if one.is_possible]
    if not possible:
        return None
    best = min(possible, key=lambda one: one.round_trip_ns)
    offset_ns = ((best.t2 - best.t1) + (best.t3 - best.t4)) // 2
    middle_ns = (best.t1 + best.t4) // 2
    return Offset(
        offset_ns,
        max(1, (best.round_trip_ns + 1) // 2),
        middle_ns,
        middle_ns + offset_ns,
        sender_wall_offset_ns,
        receiver_wall_offset_ns,
        len(possible),
    )


def is_settled(exchanges: Sequence[Exchange]) -> bool:
    """Whether the last 20 exchanges have shortened the shortest round trip by less than a tenth.

    More of them would hardly make the offset more certain.
    """
    round_trips_ns = [one.round_trip_ns for one in exchanges]
    if len(round_trips_ns) <= _UNCHANGED:
        return False
    return min(round_trips_ns[:-_UNCHANGED]) * _SHORTER < min(round_trips_ns)


def host_offsets(events: Sequence[Event]) -> dict[str, list[Offset]]:
    """The offsets of the hosts of a run, by host, in the order in which they were measured."""
    found: dict[str, list[Offset]] = {}
    for event in events:
        if event.name == HOST_COMPARED:
            found.setdefault(str(event.data["host"]), []).append(Offset.from_json(event.data))
    return {host: sorted(offsets, key=lambda one: one.sender_ns) for host, offsets in found.items()}


def host_uncertainties_ns(events: Sequence[Event]) -> dict[str, int]:
    """The largest uncertainty of the clock of each host with roles, by host."""
    return {host: max(one.uncertainty_ns for one in offsets) for host, offsets in host_offsets(events).items()}


def jump_ns(before: Offset, after: Offset) -> int:
    """By how much an offset changed where uncertainties and drift do not explain it; 0 where they do.

    The host was suspended, or its clock was set: the times in between cannot be interpolated.
    """
    change_ns = after.offset_ns - before.offset_ns
    drift_ns = (after.sender_ns - before.sender_ns) * MAX_DRIFT_PPM // 1_000_000
    return change_ns if abs(change_ns) > before.uncertainty_ns + after.uncertainty_ns + drift_ns else 0


def between_hosts_ns(events: Sequence[Event]) -> int:
    """The uncertainty of times between any two hosts of a run, by the console's clock; 0 without other hosts.

    The console, which may be one of them, has none.
    """
    return together_ns(host_uncertainties_ns(events).values())


def together_ns(uncertainties_ns: Iterable[int]) -> int:
    """The uncertainty of times between any two hosts: the sum of the two largest of all."""
    return sum(sorted(uncertainties_ns)[-2:])


def jump_doubt(events: Sequence[Event]) -> str:
    """Which hosts of a run had a clock that jumped, a short clause; empty: none."""
    jumped = sorted({str(event.data["host"]) for event in events if event.name == HOST_JUMPED})
    return f"the clock of {', '.join(jumped)} jumped during the run" if jumped else ""


def clocks_doubt(events: Sequence[Event], median_ns: float, consoles_ns: int = 0) -> str:
    """Why the clocks of a run leave a latency with this median open, a short clause; empty: they do not.

    `consoles_ns` is the uncertainty between the clocks of its two consoles.
    """
    if jumped := jump_doubt(events):
        return jumped
    uncertainty_ns = between_hosts_ns(events) + consoles_ns
    if uncertainty_ns > MAX_CLOCK_UNCERTAINTY * median_ns:
        figures = f"± {uncertainty_ns / 1e6:.3g} ms, median {median_ns / 1e6:.3g} ms"
        return f"the clock offset is uncertain by more than {MAX_CLOCK_UNCERTAINTY:.0%} of the latency ({figures})"
    return ""


@dataclass(frozen=True)
class ClockComparison:
    """The offsets that a run measured before and after its messages; `after` is None where it was not possible."""

    before: Offset
    after: Offset | None

    @classmethod
    def of_events(cls, events: Sequence[Event]) -> Self | None:
        """What the events of a run say; None where the clocks were not compared before the run."""
        found = {event.data["phase"]: Offset.from_json(event.data) for event in events if event.name == COMPARED}
        return cls(found[BEFORE], found.get(AFTER)) if BEFORE in found else None

    @property
    def uncertainty_ns(self) -> int:
        """The larger uncertainty of both; between them the offset is taken to change evenly."""
        return max(one.uncertainty_ns for one in (self.before, self.after) if one is not None)

    def to_sender(self, receiver_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the receiver's clock by the sender's, the offset linear between before and after."""
        since_ns = receiver_ns - self.before.receiver_ns
        drift = np.zeros(len(receiver_ns), np.int64)
        if self.after is not None and self.after.receiver_ns > self.before.receiver_ns:
            change = self.after.offset_ns - self.before.offset_ns
            drift = np.rint(since_ns * (change / (self.after.receiver_ns - self.before.receiver_ns))).astype(np.int64)
        return np.asarray(receiver_ns - self.before.offset_ns - drift, np.int64)
