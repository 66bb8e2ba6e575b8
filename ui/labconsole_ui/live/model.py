"""What live frames say: cumulative figures since T0, and curves over the last second before each frame. No Qt."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.histogram import BINS_PER_OCTAVE
from labconsole.engine.protocol import ChannelFrame, LiveFrame
from labconsole.trial import LiveChannel

WINDOW_NS = 1_000_000_000
"""Rates and percentiles of a curve cover this span: roles report ten times a second, so shorter ones would flicker."""
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


class GrowingCurve:
    """Points over time that are appended for as long as a run goes on; `t_ns` is the clock's."""

    def __init__(self) -> None:
        self._t = np.empty(256, np.int64)
        self._values = np.empty(256, np.float64)
        self._length = 0

    def append(self, t_ns: int, value: float) -> None:
        """Add a point; NaN makes a gap."""
        if self._length == len(self._t):
            self._t = np.concatenate((self._t, np.empty_like(self._t)))
            self._values = np.concatenate((self._values, np.empty_like(self._values)))
        self._t[self._length], self._values[self._length] = t_ns, value
        self._length += 1

    def points(self, zero_ns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds since `zero_ns`, and values."""
        return (self._t[: self._length] - zero_ns) / 1e9, self._values[: self._length]


@dataclass(frozen=True)
class ChannelFigures:
    """A channel since T0. `rate` covers the last second; `mean_rate` is the count less one over the time from the first
    to the last that was counted, as a throughput is defined (both counts per second).

    `minimum`, `maximum`, `mean` and the `quantiles` by name are in ns, for channels with observations; mean and
    quantiles come from the log histogram and are within 1.1 %.
    """

    count: int
    rate: float | None
    mean_rate: float | None
    minimum: int | None
    maximum: int | None
    mean: float | None
    quantiles: Mapping[str, float]


class LiveRun:
    """The frames of one run, taken one by one; any may be missing."""

    def __init__(self, channels: Sequence[LiveChannel]) -> None:
        self._declared = {channel.name: channel for channel in channels}
        self._recent: deque[LiveFrame] = deque()
        self._first_ns: int | None = None
        self.latest: LiveFrame | None = None
        self.rates: dict[str, GrowingCurve] = {}
        self.latencies: dict[str, dict[str, GrowingCurve]] = {}
        self.cpu: dict[str, GrowingCurve] = {}
        self.memory: dict[str, GrowingCurve] = {}

    @property
    def zero_ns(self) -> int:
        """T0, or the first frame while roles still prepare."""
        if self.latest is not None and self.latest.begin_ns is not None:
            return self.latest.begin_ns
        return self._first_ns or 0

    def channel(self, name: str) -> LiveChannel:
        """The description of a channel; one that the trial does not declare goes by its name."""
        return self._declared.get(name) or LiveChannel(name, name.replace("_", " "), "")

    def observed(self, name: str) -> bool:
        """Whether the channel carries observations in ns, not only counts."""
        if name in self._declared:
            return self._declared[name].unit == "ns"
        return self.latest is not None and bool(self.latest.channels[name].histogram.bins)

    def names(self, *, observed: bool) -> list[str]:
        """The channels with observations, or those with counts only, in the trial's order."""
        present = self.latest.channels if self.latest is not None else {}
        order = [name for name in self._declared if name in present]
        order += [name for name in present if name not in self._declared]
        return [name for name in order if self.observed(name) == observed]

    def shown(self, *, observed: bool) -> list[str]:
        """Those of `names` that the general live view shows."""
        return [name for name in self.names(observed=observed) if self.channel(name).shown]

    def take(self, frame: LiveFrame) -> None:
        """Take the next frame; one that is not newer than the last is dropped."""
        if self.latest is not None and frame.t_ns <= self.latest.t_ns:
            return
        self._first_ns = self._first_ns if self._first_ns is not None else frame.t_ns
        self.latest = frame
        for name, usage in frame.usage.items():
            self.cpu.setdefault(name, GrowingCurve()).append(frame.t_ns, usage.cpu)
            self.memory.setdefault(name, GrowingCurve()).append(frame.t_ns, usage.rss)
        for curves in (self.cpu, self.memory):
            for name in curves.keys() - frame.usage.keys():
                curves[name].append(frame.t_ns, float("nan"))
        if frame.begin_ns is None:
            return
        earlier = self._window_begin(frame)
        self._recent.append(frame)
        if earlier is not None:
            self._extend(frame, earlier)

    @property
    def progress(self) -> str | None:
        """The channel that shows the progress, None before its first count."""
        if self.latest is None or self.latest.progress not in self.latest.channels:
            return None
        return self.latest.progress

    def figures(self, name: str) -> ChannelFigures:
        """The figures of a channel at the latest frame. Raises KeyError for a channel that nobody reported."""
        if self.latest is None:
            raise KeyError(name)
        frame = self.latest.channels[name]
        quantiles = {label: frame.histogram.quantile(fraction) for label, fraction in QUANTILES}
        return ChannelFigures(
            frame.count,
            self._rate(name),
            _mean_rate(frame),
            frame.minimum,
            frame.maximum,
            _histogram_mean(frame.histogram.bins),
            {label: value for label, value in quantiles.items() if value is not None},
        )

    def _window_begin(self, frame: LiveFrame) -> LiveFrame | None:
        """The newest frame that is at least a second older than `frame`, or the oldest there is; drops older ones."""
        while len(self._recent) > 1 and self._recent[1].t_ns <= frame.t_ns - WINDOW_NS:
            self._recent.popleft()
        return self._recent[0] if self._recent else None

    def _rate(self, name: str) -> float | None:
        if self.latest is None or not self._recent or self._recent[0] is self.latest:
            return None
        return _rate(self.latest, self._recent[0], name)

    def _extend(self, frame: LiveFrame, earlier: LiveFrame) -> None:
        for name, channel in frame.channels.items():
            if not self.observed(name):
                self.rates.setdefault(name, GrowingCurve()).append(frame.t_ns, _rate(frame, earlier, name))
                continue
            before = earlier.channels.get(name)
            interval = channel.histogram if before is None else channel.histogram.minus(before.histogram)
            curves = self.latencies.setdefault(name, {label: GrowingCurve() for label, _ in QUANTILES})
            for label, fraction in QUANTILES:
                value = interval.quantile(fraction)
                curves[label].append(frame.t_ns, float("nan") if value is None else value)


def _mean_rate(frame: ChannelFrame) -> float | None:
    if frame.first_ns is None or frame.last_ns is None or frame.last_ns <= frame.first_ns:
        return None
    return (frame.count - 1) / ((frame.last_ns - frame.first_ns) / 1e9)


def _rate(frame: LiveFrame, earlier: LiveFrame, name: str) -> float:
    before = earlier.channels[name].count if name in earlier.channels else 0
    return (frame.channels[name].count - before) / ((frame.t_ns - earlier.t_ns) / 1e9)


def _histogram_mean(bins: Mapping[int, int]) -> float | None:
    if not bins:
        return None
    indices = np.fromiter(bins.keys(), np.float64, len(bins))
    counts = np.fromiter(bins.values(), np.float64, len(bins))
    return float(np.average(2.0 ** ((indices + 0.5) / BINS_PER_OCTAVE), weights=counts))
