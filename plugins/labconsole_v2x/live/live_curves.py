"""Curves over time of a live run: rates, latency, loss, queue, rejections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Curve, Event, Samples
from labconsole_v2x.live.joined_packets import PAIR_CAM, JoinedPackets, load_joined
from labconsole_v2x.live.live_metrics import quantile
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.series import QUEUE
from labconsole_v2x.stations.receiving import REASONS

ATTACKERS_SENT = "Attackers, sent"
_INTERVALS = 200
_SHORTEST_S = 0.25


def curves(parameters: LiveParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
    """All curves, from T0 on, the warm-up included."""
    packets = load_joined(parameters, samples, events)
    if packets is None or packets.until_ns == packets.begin_ns or not len(packets.sent["due_ns"]):
        return ()
    total_s = (packets.until_ns - packets.begin_ns) / 1e9
    edges = interval_edges(total_s)
    return (
        *_rates(packets, edges),
        *_latency(packets, edges),
        *_loss(packets, edges),
        *_rejections(packets, edges),
        *_queues(packets, samples),
    )


def interval_edges(total_s: float) -> NDArray[np.float64]:
    """The bounds of the intervals over which curves count and average, s."""
    return np.linspace(0.0, total_s, max(1, min(_INTERVALS, int(total_s / _SHORTEST_S))) + 1)


def counts(t_s: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many of these times are in each interval."""
    return np.histogram(t_s, edges)[0].astype(np.float64)


def middles(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The times at which the intervals are shown."""
    return np.asarray((edges[:-1] + edges[1:]) / 2)


def latency_curves(
    t_s: NDArray[np.float64], values_ms: NDArray[np.float64], edges: NDArray[np.float64]
) -> Iterator[Curve]:
    """Median and p99 of latencies at these times, which ascend; nothing for an interval without any."""
    bounds = np.searchsorted(t_s, edges)
    filled = np.flatnonzero(np.diff(bounds) > 0)
    for title, fraction in (("p50", 0.5), ("p99", 0.99)):
        quantiles = [quantile(values_ms[bounds[i] : bounds[i + 1]], fraction) for i in filled]
        yield Curve(title, "Latency", "ms", middles(edges)[filled], np.array(quantiles))


def loss_curve(expected: NDArray[np.float64], accepted: NDArray[np.float64], edges: NDArray[np.float64]) -> Curve:
    """The loss in each interval in which packets were expected."""
    filled = expected > 0
    return Curve("Loss", "Packet loss", "%", middles(edges)[filled], 100 * (1 - accepted[filled] / expected[filled]))


def _since(packets: JoinedPackets, times_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray((times_ns - packets.begin_ns) / 1e9)


def _rates(packets: JoinedPackets, edges: NDArray[np.float64]) -> Iterator[Curve]:
    received, width_s = packets.received, edges[1]
    fresh, accepted = received["waited"] == 0, received["reason"] == 0
    shown = {
        "Sent": packets.sent["sent_ns"],
        "Received": received["received_ns"][fresh],
        "Accepted": received["done_ns"][accepted],
    }
    if len(packets.attacks["sent_ns"]):
        shown[ATTACKERS_SENT] = packets.attacks["sent_ns"]
    for title, times in shown.items():
        yield Curve(title, "Rate", "msg/s", middles(edges), counts(_since(packets, times), edges) / width_s)


def _latency(packets: JoinedPackets, edges: NDArray[np.float64]) -> Iterator[Curve]:
    rows = np.flatnonzero((packets.of_received >= 0) & (packets.received["reason"] == 0))
    done = packets.received["done_ns"][rows]
    values = (done - packets.sent["due_ns"][packets.of_received[rows]]) / 1e6
    yield from latency_curves(_since(packets, done), values, edges)


def _loss(packets: JoinedPackets, edges: NDArray[np.float64]) -> Iterator[Curve]:
    """By the time at which packets were due."""
    rows = np.flatnonzero((packets.of_received >= 0) & (packets.received["reason"] == 0))
    accepted = np.unique(packets.pairs(rows))
    due_s = _since(packets, packets.sent["due_ns"])
    expected = counts(due_s, edges) * packets.receivers
    yield loss_curve(expected, counts(due_s[accepted & PAIR_CAM], edges), edges)


def _rejections(packets: JoinedPackets, edges: NDArray[np.float64]) -> Iterator[Curve]:
    received = packets.received
    for number in np.unique(received["reason"][received["reason"] > 0]).tolist():
        times = _since(packets, received["done_ns"][received["reason"] == number])
        rate = counts(times, edges) / edges[1]
        yield Curve(REASONS[number].capitalize(), "Rejected", "msg/s", middles(edges), rate)


def _queues(packets: JoinedPackets, samples: Samples) -> Iterator[Curve]:
    for role in samples.roles(QUEUE.name):
        table = samples.table(QUEUE.name, role)
        yield Curve(role, "Receiver queue", "packets", _since(packets, table["t_ns"]), table["length"].astype(float))
