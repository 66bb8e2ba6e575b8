"""From stored samples to the figures and verdicts of a simulated run: pure, and the same whenever it is called."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labconsole.trial import Distribution, Evaluation, Metric, Origin, Samples
from labconsole_keypool.metrics import METRICS
from labconsole_keypool.recorded import Recorded, load
from labconsole_keypool.service_model import KeyOrigin
from labconsole_keypool.simulation_parameters import SimulationParameters
from labconsole_keypool.verdicts import NORMAL_MS, PEAK_MS, service_level

_KINDS = {kind.name: kind for kind in METRICS}
_QUANTILES = tuple((kind.name, kind.quantile) for kind in METRICS if kind.quantile is not None)


def evaluate(parameters: SimulationParameters, samples: Samples) -> Evaluation:
    """All figures of a run; those of latency are left out where no request was signed."""
    recorded = load(samples)
    metrics = (*_latency(recorded), *_queue(recorded), *_drops(recorded), *_service(recorded), *_keys(recorded))
    order = list(_KINDS)
    return Evaluation(
        tuple(sorted(metrics, key=lambda metric: order.index(metric.name))),
        tuple(service_level(recorded, parameters.base_rate)),
    )


def distributions(samples: Samples) -> tuple[Distribution, ...]:
    """The latencies and waits behind the means and percentiles, ms."""
    recorded = load(samples)
    if not len(recorded.latencies):
        return ()
    return (Distribution("Latency", "ms", recorded.latencies / 1e6), Distribution("Wait", "ms", recorded.waits / 1e6))


def _metric(name: str, value: float, samples: int, **labels: str) -> Metric:
    """A figure of this trial with the unit and direction of its kind."""
    kind = _KINDS[name]
    return Metric(name, float(value), kind.unit, kind.direction, samples, labels, Origin.SIMULATED)


def _latency(recorded: Recorded) -> Iterator[Metric]:
    latencies_ms, waits_ms = recorded.latencies / 1e6, recorded.waits / 1e6
    count = len(latencies_ms)
    if not count:
        return
    yield _metric("latency_peak", latencies_ms.max(), count)
    yield _metric("latency_mean", latencies_ms.mean(), count)
    for name, fraction in _QUANTILES:
        yield _metric(name, float(np.quantile(latencies_ms, fraction, method="inverted_cdf")), count)
    yield _metric("wait_mean", waits_ms.mean(), count)
    yield _metric("wait_peak", waits_ms.max(), count)


def _queue(recorded: Recorded) -> Iterator[Metric]:
    t, lengths, arrivals = recorded.queue["t"], recorded.queue["length"], recorded.arrivals
    if not len(arrivals):
        return
    # Afterwards it only gets shorter. A cancelled run may have fewer requests than queue: the rest is not theirs.
    changes = int(np.searchsorted(t, arrivals[-1], "right"))
    t, lengths = t[:changes], lengths[:changes]
    yield _metric("queue_length", lengths[-1] if changes else 0, len(arrivals))
    yield _metric("queue_length_peak", lengths.max(initial=0), len(arrivals))
    if lengths.max(initial=0) > 0:
        longest = int(np.flatnonzero(lengths == lengths.max())[-1])
        empty = t[longest:][lengths[longest:] == 0]
        if len(empty):
            yield _metric("recovery_time", (empty[0] - t[longest]) / 1e9, len(arrivals))


def _drops(recorded: Recorded) -> Iterator[Metric]:
    total = len(recorded.arrivals)
    if not total:
        return
    numbers = recorded.drops["request"]
    yield _metric("dropped", len(numbers), total)
    if len(numbers):
        yield _metric("first_dropped", numbers.min(), total)


def _service(recorded: Recorded) -> Iterator[Metric]:
    total, latencies_ms = len(recorded.arrivals), recorded.latencies / 1e6
    if not total:
        return
    yield _metric("requests", total, total)
    yield _metric("processed", len(latencies_ms), total)
    for name, limit_ms in (("share_within_300", NORMAL_MS), ("share_within_3000", PEAK_MS)):
        yield _metric(name, np.count_nonzero(latencies_ms <= limit_ms) / total * 100, total)
    if len(latencies_ms):
        span_s = (int(recorded.requests["finished"].max()) - int(recorded.arrivals[0])) / 1e9
        yield _metric("throughput", len(latencies_ms) / span_s, len(latencies_ms))


def _keys(recorded: Recorded) -> Iterator[Metric]:
    sources = recorded.requests["key_source"]
    if not len(sources):
        return
    preparations_ms = (recorded.requests["got_key"] - recorded.requests["started"]) / 1e6
    yield _metric("key_preparation_mean", preparations_ms.mean(), len(sources))
    for origin in KeyOrigin:
        count = int(np.count_nonzero(sources == origin))
        if count:
            yield _metric("got_key", count, len(sources), source=SOURCE_NAMES[origin])


SOURCE_NAMES = {
    KeyOrigin.TOKEN_RAM: "token RAM",
    KeyOrigin.TOKEN_STORE: "token store",
    KeyOrigin.POOL: "pool",
    KeyOrigin.GENERATED: "generated",
}
"""Appendix B's A, B, C and D, as labels of metrics say them."""
