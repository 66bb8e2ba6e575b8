"""Values of live frames: cumulative figures since T0, curves of rates and percentiles. No Qt."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labconsole.engine.protocol import BINS_PER_OCTAVE, ChannelFrame, LiveFrame
from labconsole.model.series import TIME_PROGRESS, LiveChannel, LiveKind
from labconsole_ui.views.live.growing_curves import GrowingCurve, RoleCurves

WINDOW_NS = 1_000_000_000
"""Rates and percentiles of a curve cover this span: roles report ten times a second, so shorter ones would flicker."""
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
MAX_PROCESSES = 40
"""Number of processes with a line each in the plots of resources."""
MAX_ROLES = 16
"""Number of roles with a line each in the plots of their values."""


@dataclass(frozen=True)
class ChannelFigures:
    """A channel since T0. `rate` and `mean_rate` are counts per second.

    `rate` covers the last second; `mean_rate` is the count less one over the time from the first to the last that
    was counted, as a throughput is defined.

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
    """The frames of one run, added one by one; any may be missing."""

    def __init__(self, channels: Sequence[LiveChannel]) -> None:
        self._declared = {channel.name: channel for channel in channels}
        self._recent: deque[LiveFrame] = deque()
        self._first_ns: int | None = None
        self.latest: LiveFrame | None = None
        self.rates: dict[str, GrowingCurve] = {}
        self.latencies: dict[str, dict[str, GrowingCurve]] = {}
        self.processors, self.memories = RoleCurves(MAX_PROCESSES), RoleCurves(MAX_PROCESSES)
        self.by_role = {channel.name: RoleCurves(MAX_ROLES) for channel in channels if _drawn_by_role(channel)}
        """Curves of the gauges, and of the rates of totals by role, by channel."""

    @property
    def zero_ns(self) -> int:
        """T0, or the first frame while roles still prepare."""
        if self.latest is not None and self.latest.begin_ns is not None:
            return self.latest.begin_ns
        return self._first_ns or 0

    @property
    def cpu(self) -> Mapping[str, GrowingCurve]:
        """CPU of the processes, in % of one core."""
        return self.processors.curves

    @property
    def memory(self) -> Mapping[str, GrowingCurve]:
        """Resident memory of the processes, in bytes."""
        return self.memories.curves

    @property
    def role_channels(self) -> list[LiveChannel]:
        """The shown channels of which frames carry a value of each role, in the trial's order."""
        return [channel for channel in self._declared.values() if channel.has_roles and channel.shown]

    def channel(self, name: str) -> LiveChannel:
        """The description of a channel; one that the trial does not declare has its name as title."""
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

    def add_frame(self, frame: LiveFrame) -> None:
        """Add the next frame; one that is not newer than the last is dropped."""
        if self.latest is not None and frame.t_ns <= self.latest.t_ns:
            return
        self._first_ns = self._first_ns if self._first_ns is not None else frame.t_ns
        self.latest = frame
        self.processors.append(frame.t_ns, {name: usage.cpu for name, usage in frame.usage.items()})
        self.memories.append(frame.t_ns, {name: usage.rss for name, usage in frame.usage.items()})
        for name, gauges in frame.by_role.gauges.items():
            if name in self.by_role:
                self.by_role[name].append(frame.t_ns, gauges)
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

    @property
    def leading(self) -> str | None:
        """The channel of which the rate is shown: that of the progress, or the first one if that is time."""
        if self.progress != TIME_PROGRESS.name:
            return self.progress
        return next(iter(self.shown(observed=False)), None)

    def figures(self, name: str) -> ChannelFigures:
        """The figures of a channel at the latest frame. Raises KeyError for a channel without reports."""
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

    def role_rates(self, name: str) -> dict[str, float]:
        """Counts per second of each role in the last second, on a channel that the trial declares by role."""
        if self.latest is None or not self._recent or self._recent[0] is self.latest:
            return {}
        return _role_rates(self.latest, self._recent[0], name)

    def _window_begin(self, frame: LiveFrame) -> LiveFrame | None:
        """The newest frame a second older than `frame`, or the oldest; older ones are dropped."""
        while len(self._recent) > 1 and self._recent[1].t_ns <= frame.t_ns - WINDOW_NS:
            self._recent.popleft()
        return self._recent[0] if self._recent else None

    def _rate(self, name: str) -> float | None:
        if self.latest is None or not self._recent or self._recent[0] is self.latest:
            return None
        return _rate(self.latest, self._recent[0], name)

    def _extend(self, frame: LiveFrame, earlier: LiveFrame) -> None:
        for name in frame.by_role.counts:
            if name in self.by_role:
                self.by_role[name].append(frame.t_ns, _role_rates(frame, earlier, name))
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


def rate_unit(unit: str) -> str:
    """The unit of counts in `unit` per second: `msg` gives `msg/s`, and observations in ns `1/s`."""
    return f"{unit}/s" if unit not in ("", "ns") else "1/s"


def rounded_rate(rate: float | None) -> float | None:
    """A rate without digits that change with every frame."""
    return None if rate is None else round(rate, 0 if rate >= 100 else 1)


def _mean_rate(frame: ChannelFrame) -> float | None:
    if frame.first_ns is None or frame.last_ns is None or frame.last_ns <= frame.first_ns:
        return None
    return (frame.count - 1) / ((frame.last_ns - frame.first_ns) / 1e9)


def _rate(frame: LiveFrame, earlier: LiveFrame, name: str) -> float:
    before = earlier.channels[name].count if name in earlier.channels else 0
    return (frame.channels[name].count - before) / ((frame.t_ns - earlier.t_ns) / 1e9)


def _role_rates(frame: LiveFrame, earlier: LiveFrame, name: str) -> dict[str, float]:
    before = earlier.by_role.counts.get(name, {})
    seconds = (frame.t_ns - earlier.t_ns) / 1e9
    return {role: (count - before.get(role, 0)) / seconds for role, count in frame.by_role.counts[name].items()}


def _drawn_by_role(channel: LiveChannel) -> bool:
    return channel.shown and (channel.by_role or channel.kind is LiveKind.GAUGE)


def _histogram_mean(bins: Mapping[int, int]) -> float | None:
    if not bins:
        return None
    indices = np.fromiter(bins.keys(), np.float64, len(bins))
    counts = np.fromiter(bins.values(), np.float64, len(bins))
    return float(np.average(2.0 ** ((indices + 0.5) / BINS_PER_OCTAVE), weights=counts))
