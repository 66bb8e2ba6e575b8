"""Curves over time of a run: throughput at both ends, percentiles of latency or time in queue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Curve, Event, Samples
from labconsole_amqp.choices import Loop, Mode
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import queue_depths
from labconsole_amqp.trial.joining import load_joined
from labconsole_amqp.trial.latency import latencies_ns, measures
from labconsole_amqp.trial.soak_evaluation import queue_title, soak_curves
from labconsole_amqp.trial.soak_windows import SoakWindows
from labconsole_amqp.trial.sweep_evaluation import sweep_curves

_INTERVALS = 200
_SHORTEST_S = 0.1


def curves(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
    """Throughput at sender and receiver, and p50 and p99 of the run's `measures`, per interval.

    t = 0 is T0; on a console that plays one end and may have waited for the other, the first message.
    """
    if parameters.loop is Loop.SOAK:
        windows = SoakWindows.read(parameters, samples, events)
        return () if windows is None else tuple(soak_curves(parameters, windows, samples, events))
    joined = load_joined(parameters, samples)
    sent_ns, received_ns = joined.sent["sent_ns"], joined.received["received_ns"]
    begins = [event.data["begin_ns"] for event in events if event.name == "T0" and parameters.mode is Mode.BOTH]
    present = [times for times in (sent_ns, received_ns) if len(times)]
    if not present:
        return ()
    zero_ns = begins[0] if begins else int(min(times[0] for times in present))
    end_s = max(_SHORTEST_S, (max(int(times[-1]) for times in present) - zero_ns) / 1e9)
    # The last interval ends with the last message: a longer one would show a drop of the rate.
    edges = np.linspace(0.0, end_s, min(_INTERVALS, int(end_s / _SHORTEST_S)) + 1)
    width_s = edges[1]
    middles = edges[:-1] + width_s / 2
    lines = []
    for title, times in (("Sent", sent_ns), ("Received", received_ns)):
        if len(times):
            counts, _ = np.histogram((times - zero_ns) / 1e9, edges)
            lines.append(Curve(title, "Throughput", "msg/s", middles, counts / width_s))
    for measure in measures(parameters):
        times, latencies = latencies_ns(parameters, joined, events, measure.phase)
        t_s, quantiles = _quantiles((times - zero_ns) / 1e9, latencies / 1e6, edges, (0.5, 0.99))
        if len(t_s):
            lines += [
                Curve(title, measure.title, "ms", t_s, values)
                for title, values in zip(("p50", "p99"), quantiles, strict=True)
            ]
    for address, at_ns, messages in queue_depths(samples, parameters.addresses):
        during = at_ns >= zero_ns
        t_s = (at_ns[during] - zero_ns) / 1e9
        lines.append(
            Curve(queue_title(parameters, address), "Queue depth", "msg", t_s, messages[during].astype(np.float64))
        )
    if parameters.loop is Loop.SWEEP:
        lines += sweep_curves(parameters, joined, events, zero_ns)
    return tuple(lines)


def _quantiles(
    t_s: NDArray[Any], values: NDArray[Any], edges: NDArray[np.float64], fractions: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The middles of intervals with values, and a row of their quantiles for each fraction.

    `t_s` is ascending and ends with the last edge, or before.
    """
    cuts = np.append(np.searchsorted(t_s, edges[:-1]), len(t_s))
    filled = [index for index in range(len(edges) - 1) if cuts[index + 1] > cuts[index]]
    middles = np.array([(edges[index] + edges[index + 1]) / 2 for index in filled], np.float64)
    quantiles = [_percentiles(values[cuts[index] : cuts[index + 1]], fractions) for index in filled]
    return middles, np.array(quantiles, np.float64).reshape(-1, len(fractions)).T


def _percentiles(values: NDArray[Any], fractions: Sequence[float]) -> NDArray[Any]:
    """The percentiles as in the metrics (`numpy.quantile`, `inverted_cdf`), which is slower than sorting."""
    ordered = np.sort(values)
    return ordered[[max(0, math.ceil(fraction * len(ordered)) - 1) for fraction in fractions]]
