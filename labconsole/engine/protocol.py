"""The JSON lines between supervisor and worker, and between worker and role; live frames as records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labconsole.model.series import Event, Level

BINS_PER_OCTAVE = 32
"""A bin spans a factor of 2^(1/32) = 2.2 %; its geometric middle is at most 1.1 % away from any value in it."""


class MessageChannel(Protocol):
    """The way of messages to the process that started this one."""

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; of live frames, only the newest must arrive."""


class WorkerChannel(MessageChannel, Protocol):
    """The way from a worker to the console that started it, and back."""

    def listen(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        """Give each message of the console to `on_message`, on another thread."""


class LogHistogram:
    """Counts of positive values by logarithmic bin. Values below 1 count as 1.

    Live values have bins of 1 / `BINS_PER_OCTAVE`; histograms are added to others with as many bins.
    """

    def __init__(self, bins: Mapping[int, int] | None = None, per_octave: int = BINS_PER_OCTAVE) -> None:
        self.bins: dict[int, int] = dict(bins or {})
        self._per_octave = per_octave

    def add(self, values: NDArray[Any]) -> None:
        """Count `values`, an array of numbers of any length."""
        if not len(values):
            return
        indices = np.floor(np.log2(np.maximum(values, 1)) * self._per_octave).astype(np.int64)
        counts = np.bincount(indices)
        filled = counts.nonzero()[0]
        bins = self.bins
        for index, count in zip(filled.tolist(), counts[filled].tolist(), strict=True):
            bins[index] = bins.get(index, 0) + count

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self.bins.values())

    def minus(self, earlier: LogHistogram) -> LogHistogram:
        """The difference from `earlier`, an earlier state of this histogram."""
        difference = {index: count - earlier.bins.get(index, 0) for index, count in self.bins.items()}
        return LogHistogram({index: count for index, count in difference.items() if count > 0}, self._per_octave)

    def plus(self, *others: LogHistogram) -> LogHistogram:
        """All histograms together."""
        total = dict(self.bins)
        for other in others:
            for index, count in other.bins.items():
                total[index] = total.get(index, 0) + count
        return LogHistogram(total, self._per_octave)

    def quantile(self, fraction: float) -> float | None:
        """The value that `fraction` (0-1) of all values do not exceed, or None without values."""
        total = self.count
        return self.at_rank(max(1, int(np.ceil(fraction * total)))) if total else None

    def at_rank(self, rank: int) -> float:
        """The value of this rank (1 to `count`) in rising order."""
        remaining = rank
        for index in sorted(self.bins):
            remaining -= self.bins[index]
            if remaining <= 0:
                return float(2.0 ** ((index + 0.5) / self._per_octave))
        raise AssertionError("the counts of the bins add up to the total")

    def spread(self, most: int) -> NDArray[np.float64]:
        """The values, in rising order; of more than `most`, so many at equal distances in rank."""
        indices = sorted(self.bins)
        ends = np.cumsum([self.bins[index] for index in indices])
        total = int(ends[-1]) if len(ends) else 0
        shown = min(total, most)
        ranks = (np.arange(shown) * 2 + 1) * total // (2 * shown) if shown else np.empty(0, np.int64)
        middles = 2.0 ** ((np.array(indices, np.float64) + 0.5) / self._per_octave)
        return middles[np.searchsorted(ends, ranks, "right")]


LIVE = "live"
"""The type of live frames, which alone may be dropped."""


@dataclass(frozen=True)
class ChannelFrame:
    """A live channel since T0: `count` of all, and for observations `minimum`/`maximum` in ns and their histogram.

    `first_ns` and `last_ns` (`clock.now_ns`) are the times of the first and the last that was counted.
    """

    count: int = 0
    minimum: int | None = None
    maximum: int | None = None
    histogram: LogHistogram = field(default_factory=LogHistogram)
    first_ns: int | None = None
    last_ns: int | None = None

    def plus(self, *others: ChannelFrame) -> ChannelFrame:
        """All channels together, as roles that report the same channel."""
        every = (self, *others)
        return ChannelFrame(
            sum(frame.count for frame in every),
            lower(*(frame.minimum for frame in every)),
            higher(*(frame.maximum for frame in every)),
            self.histogram.plus(*(frame.histogram for frame in others)),
            lower(*(frame.first_ns for frame in every)),
            higher(*(frame.last_ns for frame in every)),
        )

    def to_json(self) -> list[Any]:
        """Compact form: [count, minimum, maximum, [bin, count, bin, count, ...], first_ns, last_ns]."""
        flat = [number for pair in sorted(self.histogram.bins.items()) for number in pair]
        return [self.count, self.minimum, self.maximum, flat, self.first_ns, self.last_ns]

    @classmethod
    def from_json(cls, data: list[Any]) -> ChannelFrame:
        """The inverse of `to_json`."""
        count, minimum, maximum, flat, first_ns, last_ns = data
        histogram = LogHistogram(dict(zip(flat[::2], flat[1::2], strict=True)))
        return cls(count, minimum, maximum, histogram, first_ns, last_ns)


def lower(*numbers: int | None) -> int | None:
    """The lowest of some numbers, any of which may be missing."""
    return min((number for number in numbers if number is not None), default=None)


def higher(*numbers: int | None) -> int | None:
    """The highest of some numbers, any of which may be missing."""
    return max((number for number in numbers if number is not None), default=None)


@dataclass(frozen=True)
class Usage:
    """Resources of one process: CPU in % of one core over the last interval, resident memory in bytes."""

    cpu: float
    rss: int


@dataclass(frozen=True)
class RoleValues:
    """Values of each role, by channel and then by role: counts since T0, and the newest gauges and states.

    States are JSON texts, so that frames which are dropped cost little: `state` reads one.
    """

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    gauges: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def state(self, channel: str, role: str) -> dict[str, Any]:
        """A role's newest state, empty before its first."""
        text = self.states.get(channel, {}).get(role)
        values: dict[str, Any] = json.loads(text) if text else {}
        return values

    @property
    def roles(self) -> set[str]:
        """Names of all roles with a value."""
        return {role for part in (self.counts, self.gauges, self.states) for roles in part.values() for role in roles}


@dataclass(frozen=True)
class LiveFrame:
    """The state of a run at `t_ns` (`clock.now_ns`): cumulative, so that any frame may be dropped.

    `begin_ns` is T0 (None while roles prepare); `done` of `total` (0: unknown) is the progress, counted on channel
    `progress` (empty before the trial has named one). `by_role` has what the trial declares by role.
    """

    t_ns: int
    begin_ns: int | None
    done: int
    total: int
    channels: Mapping[str, ChannelFrame]
    usage: Mapping[str, Usage]
    progress: str = ""
    by_role: RoleValues = field(default_factory=RoleValues)

    def to_json(self) -> dict[str, Any]:
        """The plain form of the protocol."""
        frame = {
            "t": LIVE,
            "t_ns": self.t_ns,
            "begin_ns": self.begin_ns,
            "done": self.done,
            "total": self.total,
            "channels": {name: channel.to_json() for name, channel in self.channels.items()},
            "usage": {name: [usage.cpu, usage.rss] for name, usage in self.usage.items()},
            "progress": self.progress,
        }
        values = self.by_role
        if values.counts or values.gauges or values.states:
            frame["by_role"] = [values.counts, values.gauges, values.states]
        return frame

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LiveFrame:
        """The inverse of `to_json`."""
        return cls(
            data["t_ns"],
            data["begin_ns"],
            data["done"],
            data["total"],
            {name: ChannelFrame.from_json(channel) for name, channel in data["channels"].items()},
            {name: Usage(*usage) for name, usage in data["usage"].items()},
            data["progress"],
            RoleValues(*data.get("by_role", ())),
        )


def event_to_json(event: Event) -> dict[str, Any]:
    """The plain form of an event."""
    return asdict(event)


def event_from_json(data: Mapping[str, Any]) -> Event:
    """The inverse of `event_to_json`."""
    return Event(data["t_ns"], data["source"], Level(data["level"]), data["name"], data["message"], data["data"])


def encode_line(message: Mapping[str, Any]) -> bytes:
    """One message as one line of JSON."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False, default=str).encode() + b"\n"


def decode_line(line: bytes) -> dict[str, Any] | None:
    """The message of a line; None for a line cut off by a kill, or of another writer."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and "t" in message else None
