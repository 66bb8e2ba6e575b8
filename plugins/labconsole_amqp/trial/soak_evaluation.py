"""The figures of a soak: latencies of all its messages, and what drifts, by how much an hour; verdicts and curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.caveats import busy, busy_spans, too_few
from labconsole.analysis.confidence_intervals import Trend, trend
from labconsole.analysis.number_format import format_duration, format_figure
from labconsole.clock_comparison import clocks_doubt
from labconsole.model.series import RESOURCES
from labconsole.model.trial import OFFERED_RATE, Curve, Distribution, Event, Metric, Samples, Verdict
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import queue_depths
from labconsole_amqp.trial.latency import (
    MAX_SENDER_LATENESS_MS,
    MIN_ACHIEVED_RATE,
    QUANTILES,
    clock_uncertainty_ns,
    connections_changed,
)
from labconsole_amqp.trial.metrics import metric
from labconsole_amqp.trial.soak_windows import FEWEST_MESSAGES, SHORTEST_S, SoakWindows

_WARM_UP: Final = 0.1
_WARM_UP_S: Final = 180.0
"""Share of the windows that are left out of trends, and the least time: buffers and caches fill up."""
_FEWEST_USED: Final = 15
"""Windows that a trend needs after the warm-up to be judged."""
_MOST_BUSY: Final = 1 / 3
"""Share of the windows that may be left out since other processes kept the computer busy."""
_MEGABYTE = 1e6
_ROUNDING: Final = 1e-9
_SHOWN_VALUES = 200_000
"""The most values of a distribution."""


class _Quantity(NamedTuple):
    """A figure whose drift is judged: its change over the run matters from a share of its level and a least one on."""

    metric: str
    verdict: str
    subject: str
    """The beginning of the verdict's sentence, which continues with `title`, or the process."""
    title: str = ""
    share: float = 0.05
    least: float = 0.0
    worse: int = 1
    """The direction that fails: 1 grows, -1 falls."""


_P50 = _Quantity("latency_p50_drift", "no drift of latency", "Latency", "p50")
_P99 = _Quantity("latency_p99_drift", "no drift of latency", "Latency", "p99")
_THROUGHPUT = _Quantity("throughput_drift", "no drift of throughput", "The rate received", share=0.01, worse=-1)
_MEMORY = _Quantity("memory_drift", "no drift of memory", "Memory of", share=0.0, least=1.0)
_CPU = _Quantity("cpu_per_message_drift", "no drift of CPU time per message", "CPU time of")
_QUEUE = _Quantity("queue_depth_drift", "no drift of the queue's depth", "The depth", least=10.0)


@dataclass(frozen=True)
class Drift:
    """How a figure changed over a soak, or that of a process or queue (`role`): its trend an hour, over `hours`."""

    quantity: _Quantity
    role: str
    trend: Trend
    hours: float
    points: int

    @property
    def moves(self) -> int:
        """1: it grows, -1: it falls; 0: no change that is certain and matters."""
        change, quantity = abs(self.trend.slope) * self.hours, self.quantity
        if not self.trend.certain or change < max(quantity.share * abs(self.trend.middle), quantity.least):
            return 0
        return 1 if self.trend.slope > 0 else -1

    @property
    def fails(self) -> bool:
        """Whether it moves to the worse."""
        return self.moves == self.quantity.worse

    def text(self, unit: str) -> str:
        """The trend in words, with its interval: "p99 grows by 0.3 ms/h (0.2 to 0.4)"."""
        of = "of " if self.role and self.quantity is _QUEUE else ""
        name, (low, high) = f"{of}{self.role}" or self.quantity.title, _interval(self.trend)
        slope = f"{_short(self.trend.slope)} {unit}"
        if not low and not high:
            change = "stays the same"
        elif self.moves > 0:
            change = f"grows by {slope} ({_short(low)} to {_short(high)})"
        elif self.moves < 0:
            change = f"falls by {slope.lstrip('-')} ({_short(-high)} to {_short(-low)})"
        else:
            verb = "hardly changes" if self.trend.certain else "shows no certain drift"
            change = f"{verb} ({slope}, {_short(low)} to {_short(high)})"
        return f"{name} {change}" if name else change


@dataclass(frozen=True)
class Soak:
    """What was found in a soak: its windows, its drifts, and why none of these is judged, or empty."""

    windows: SoakWindows
    drifts: tuple[Drift, ...]
    not_judged: str


def find_drifts(parameters: AmqpParameters, windows: SoakWindows, samples: Samples, events: Sequence[Event]) -> Soak:
    """The drifts of a soak, and why they are not judged."""
    edges = windows.edges_ns.tolist()
    reasons = busy_spans(samples, list(pairwise(edges)))
    used = np.array([not reason for reason in reasons])
    warm_up = min(max(_WARM_UP * len(used), _WARM_UP_S / windows.width_s), len(used) / 2)
    used[: round(warm_up)] = False
    disturbed, too_short = sum(map(bool, reasons)), _too_short(windows)
    doubts = [too_short, connections_changed(events)]
    if disturbed > _MOST_BUSY * len(reasons) or (not too_short and np.count_nonzero(used) < _FEWEST_USED):
        doubts.append(f"the computer was busy in {disturbed} of {len(reasons)} parts of the run")
    return Soak(windows, tuple(_drifts(parameters, windows, samples, used)), "; ".join(filter(None, doubts)))


def latency_metrics(
    parameters: AmqpParameters, windows: SoakWindows, samples: Samples, events: Sequence[Event]
) -> Iterator[Metric]:
    """The offered rate, and latencies of all messages that count."""
    count, rate = windows.latency.count, parameters.rate * parameters.senders
    if not count:
        return
    due = sum(span.count for span in windows.sending.values())
    edges = windows.edges_ns.tolist()
    median = windows.all_latencies.quantile(0.5)
    clocks = clocks_doubt(events, median) if median is not None else ""
    disturbed = busy(samples, edges[0], edges[-1]), connections_changed(events), clocks
    not_judged = "; ".join(filter(None, (*_reasons_not_judged(parameters, windows, due), *disturbed)))
    uncertainty = clock_uncertainty_ns(events) / 1e6
    yield metric(OFFERED_RATE, rate, due)
    yield metric("latency_mean", windows.latency_sum_ns / count / 1e6, count, not_judged, uncertainty)
    yield metric("latency_min", windows.latency.first_ns / 1e6, count, not_judged, uncertainty)
    histogram = windows.all_latencies
    for name, quantile in QUANTILES.items():
        value = histogram.quantile(quantile)
        if name.startswith("latency") and value is not None:
            few = too_few(count, quantile)
            yield metric(name, value / 1e6, count, "; ".join(filter(None, [not_judged, few])), uncertainty)
    yield metric("latency_max", windows.latency.last_ns / 1e6, count, not_judged, uncertainty)


def drift_metrics(soak: Soak) -> Iterator[Metric]:
    """Each drift; of processes the largest, too, for a threshold."""
    for name in dict.fromkeys(drift.quantity.metric for drift in soak.drifts):
        own = [drift for drift in soak.drifts if drift.quantity.metric == name]
        largest = max(own, key=lambda drift: drift.trend.slope)
        yield metric(name, largest.trend.slope, largest.points, soak.not_judged)
        for drift in own:
            if drift.role:
                label = {"queue" if drift.quantity is _QUEUE else "role": drift.role}
                yield metric(name, drift.trend.slope, drift.points, soak.not_judged, **label)


def soak_verdicts(parameters: AmqpParameters, soak: Soak) -> Iterator[Verdict]:
    """Whether the rate was kept, and what stays level."""
    yield _rate_verdict(parameters, soak.windows)
    if not soak.drifts:  # too few parts of the run are left
        for quantity in (_P50, _THROUGHPUT, _MEMORY, _CPU):
            yield Verdict(quantity.verdict, "unknown", f"Not judged: {soak.not_judged}.")
    for name in dict.fromkeys(drift.quantity.verdict for drift in soak.drifts):
        own = [drift for drift in soak.drifts if drift.quantity.verdict == name]
        evidence = {
            f"{drift.quantity.metric}{f' ({drift.role})' if drift.role else ''}": {
                "per_hour": drift.trend.slope,
                "interval": _interval(drift.trend),
                "level": drift.trend.middle,
                "points": drift.points,
            }
            for drift in own
        }
        worst_first = sorted(own, key=lambda drift: (not drift.fails, not drift.moves))
        text = "; ".join(drift.text(metric(drift.quantity.metric, 0.0, 0).unit) for drift in worst_first)
        if soak.not_judged:
            yield Verdict(name, "unknown", f"Not judged: {soak.not_judged}.", evidence)
        else:
            result = "fail" if any(drift.fails for drift in own) else "pass"
            brackets = " In brackets: 95 % intervals." if "(" in text else ""
            yield Verdict(name, result, f"{own[0].quantity.subject} {text}.{brackets}", evidence)


def soak_curves(
    parameters: AmqpParameters, windows: SoakWindows, samples: Samples, events: Sequence[Event]
) -> Iterator[Curve]:
    """The figures whose trends are taken, a point for each window, and the trends of latency where they are judged."""
    soak, times = find_drifts(parameters, windows, samples, events), windows.middles_s
    rate = parameters.rate * parameters.senders
    yield Curve("Offered", "Throughput", "msg/s", times, np.full(len(times), rate))
    yield Curve("Received", "Throughput", "msg/s", times, windows.arrived / windows.width_s)
    for title, fraction, quantity in (("p50", 0.5, _P50), ("p99", 0.99, _P99)):
        values = windows.quantiles_ms(fraction)
        there = ~np.isnan(values)
        yield Curve(title, "Latency", "ms", times[there], values[there])
        for drift in soak.drifts:
            if drift.quantity is quantity and not soak.not_judged:
                ends = times[[0, -1]]
                line = drift.trend.begin + drift.trend.slope * ends / 3600
                yield Curve(f"Trend of {title}", "Latency", "ms", ends, line)
    for group, unit, figures in (
        ("CPU time per message", "us", _cpu_per_message_us(windows, samples)),
        (
            "Queue depth",
            "msg",
            {queue_title(parameters, queue): one for queue, one in _queue_depths(parameters, windows, samples).items()},
        ),
    ):
        for role, values in figures.items():
            there = ~np.isnan(values)
            yield Curve(role, group, unit, times[there], values[there])


def queue_title(parameters: AmqpParameters, address: str) -> str:
    """What a queue is called in a chart of depths."""
    return f"In {address}" if len(parameters.addresses) > 1 else "In the queue"


def soak_distributions(windows: SoakWindows) -> tuple[Distribution, ...]:
    """Latencies in ms, each to within 0.07 %; of many, as many as are worth drawing, at equal distances in rank."""
    histogram = windows.all_latencies
    if not histogram.count:
        return ()
    return (Distribution("Latency", "ms", histogram.spread(_SHOWN_VALUES) / 1e6),)


def _interval(found: Trend) -> tuple[float, float]:
    """The ends of the interval, without traces of how figures were added up."""
    low, high = found.interval.low, found.interval.high
    slack = _ROUNDING * max(abs(low), abs(high), abs(found.middle))
    return (low if abs(low) > slack else 0.0), (high if abs(high) > slack else 0.0)


def _short(value: float) -> str:
    """`value` with three significant digits."""
    return f"{float(f'{value:.3g}'):,.9g}"


def _too_short(windows: SoakWindows) -> str:
    """Why a run is too short for its drift, or empty."""
    parts, width_s = len(windows.arrived), windows.width_s
    left_s = parts * width_s - max(_WARM_UP_S, _WARM_UP * parts * width_s)
    enough = width_s >= SHORTEST_S and windows.sent.count >= parts * FEWEST_MESSAGES
    if enough and left_s >= _FEWEST_USED * width_s:
        return ""
    return (
        f"the run is too short: after {_WARM_UP_S / 60:g} minutes of warm-up a drift needs {_FEWEST_USED} parts of "
        f"{SHORTEST_S:g} s and {FEWEST_MESSAGES:,} messages"
    )


def _drifts(
    parameters: AmqpParameters, windows: SoakWindows, samples: Samples, used: NDArray[np.bool_]
) -> Iterator[Drift]:
    """The drifts of all figures that have enough windows, those of each process one after the other."""
    hours = windows.middles_s / 3600

    def drift(quantity: _Quantity, values: NDArray[np.float64], role: str = "") -> Iterator[Drift]:
        there = used & ~np.isnan(values)
        found = trend(hours[there], values[there])
        if found is not None:
            span_h = float(np.ptp(hours[there])) + windows.width_s / 3600
            yield Drift(quantity, role, found, span_h, int(np.count_nonzero(there)))

    yield from drift(_P50, windows.quantiles_ms(0.5))
    yield from drift(_P99, windows.quantiles_ms(0.99))
    yield from drift(_THROUGHPUT, windows.arrived / windows.width_s)
    for queue, depths in _queue_depths(parameters, windows, samples).items():
        yield from drift(_QUEUE, depths, queue if len(parameters.addresses) > 1 else "")
    for role in samples.roles(RESOURCES.name):
        readings = samples.table(RESOURCES.name, role)
        yield from drift(_MEMORY, windows.means(readings["t_ns"], readings["rss"] / _MEGABYTE), role)
    for role, values in _cpu_per_message_us(windows, samples).items():
        yield from drift(_CPU, values, role)


def _cpu_per_message_us(windows: SoakWindows, samples: Samples) -> Mapping[str, NDArray[np.float64]]:
    """CPU time of each process in each window, over the messages that arrived in it, us."""
    per_s = windows.arrived / windows.width_s
    per_s[per_s == 0] = np.nan
    found = {}
    for role in samples.roles(RESOURCES.name):
        readings = samples.table(RESOURCES.name, role)
        found[role] = windows.means(readings["t_ns"], readings["cpu"]) / 100 * 1e6 / per_s
    return found


def _queue_depths(
    parameters: AmqpParameters, windows: SoakWindows, samples: Samples
) -> Mapping[str, NDArray[np.float64]]:
    """The mean depth of each of the embedded broker's queues in each window."""
    depths = queue_depths(samples, parameters.addresses)
    return {address: windows.means(at_ns, messages) for address, at_ns, messages in depths}


def _reasons_not_judged(parameters: AmqpParameters, windows: SoakWindows, due: int) -> Iterator[str]:
    """Yield reasons why latencies are not those of the link, a short clause each."""
    if (missing := due - windows.latency.count) > 0:
        yield f"messages were lost or refused ({missing:,} of {due:,})"
    achieved = [(span.count - 1) / span.seconds / parameters.rate for span in windows.sending.values() if span.seconds]
    if achieved and min(achieved) < MIN_ACHIEVED_RATE:
        yield f"the offered rate was not achieved ({min(achieved):.0%} of it)"
    late_ms = (windows.lateness.quantile(0.99) or 0.0) / 1e6
    if late_ms > MAX_SENDER_LATENESS_MS:
        yield f"the sender was late (p99 {late_ms:.3g} ms)"


def _rate_verdict(parameters: AmqpParameters, windows: SoakWindows) -> Verdict:
    """Whether messages arrived at the rate at which they were due."""
    if not any(span.count for span in windows.sending.values()):
        reason = f"Not judged: the run ended within its warm-up of {parameters.warm_up:,} messages."
        return Verdict("the rate was kept", "unknown", reason)
    rate, rates = parameters.rate * parameters.senders, windows.arrived / windows.width_s
    share = float(rates.mean()) / rate
    lowest = int(np.argmin(rates))
    reason = (
        f"{share:.1%} of {format_figure(rate, 'msg/s')} arrived; the lowest rate was "
        f"{format_figure(float(rates[lowest]), 'msg/s')}, {format_duration(float(windows.middles_s[lowest]))} after T0."
    )
    evidence: dict[str, Any] = {"share": share, "lowest": float(rates[lowest])}
    return Verdict("the rate was kept", "pass" if share >= MIN_ACHIEVED_RATE else "fail", reason, evidence)
