"""The figures and verdicts of a run, live or simulated, computed from stored samples alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Direction, Distribution, Evaluation, Event, Metric, MetricKind, Origin, Samples
from labconsole_keypool.choices import KeyOrigin
from labconsole_keypool.results.recorded_run import RecordedRun, Table, load_recorded_run
from labconsole_keypool.results.verdicts import NORMAL_MS, PEAK_MS, Part, live_verdicts, parts, service_level
from labconsole_keypool.service.keypool_parameters import KeypoolParameters

_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL

METRICS: tuple[MetricKind, ...] = (
    MetricKind(
        "latency_peak",
        "Latency, largest",
        "ms",
        _LOWER,
        "From the arrival of a request until it is signed; the largest of all that were signed.",
    ),
    MetricKind(
        "latency_mean",
        "Mean latency",
        "ms",
        _LOWER,
        "From the arrival of a request until it is signed; mean over all that were signed. Dropped requests have none.",
    ),
    MetricKind("latency_p50", "Latency p50", "ms", _LOWER, "Half of the requests have this latency or less.", 0.5),
    MetricKind("latency_p95", "Latency p95", "ms", _LOWER, "95 % of the requests have this latency or less.", 0.95),
    MetricKind("latency_p99", "Latency p99", "ms", _LOWER, "99 % of the requests have this latency or less.", 0.99),
    MetricKind(
        "queue_length",
        "Queue length at the end of arrivals",
        "requests",
        _LOWER,
        "Requests that wait just after the last one has arrived; those being signed are not counted. The source's Q.",
    ),
    MetricKind(
        "queue_length_peak",
        "Queue length, largest",
        "requests",
        _LOWER,
        "Most requests that waited at a time; those being signed are not counted.",
    ),
    MetricKind("dropped", "Dropped", "requests", _LOWER, "Requests that found the queue full and were refused."),
    MetricKind(
        "first_dropped",
        "First dropped request",
        "",
        _HIGHER,
        "Number of the first request that was dropped, counted from 1; left out where none was.",
    ),
    MetricKind(
        "service_level",
        "Within the service level",
        "%",
        _HIGHER,
        "Share of all requests that were signed within 300 ms in normal hours and within 3,000 ms at peak; dropped and "
        "failed ones were not.",
    ),
    MetricKind(
        "share_within_300",
        "Within 300 ms",
        "%",
        _HIGHER,
        "Share of all requests that were signed within 300 ms of their arrival; dropped ones were not.",
    ),
    MetricKind(
        "share_within_3000",
        "Within 3,000 ms",
        "%",
        _HIGHER,
        "Share of all requests that were signed within 3,000 ms of their arrival; dropped ones were not.",
    ),
    MetricKind(
        "throughput",
        "Throughput",
        "requests/s",
        _HIGHER,
        "Requests signed, over the time from the first arrival until the last one is signed.",
    ),
    MetricKind(
        "recovery_time",
        "Recovery time",
        "s",
        _LOWER,
        "From the last moment at which the queue was at its longest until it is empty again; left out where nothing "
        "ever waited, and where it is not empty again before the last request has arrived.",
    ),
    MetricKind(
        "wait_mean",
        "Mean wait",
        "ms",
        _LOWER,
        "From the arrival of a request until a signing thread takes it out of the queue; mean over all signed.",
    ),
    MetricKind(
        "wait_peak",
        "Wait, longest",
        "ms",
        _LOWER,
        "From the arrival of a request until a signing thread takes it out of the queue; the longest of all signed.",
    ),
    MetricKind(
        "key_preparation_mean",
        "Key preparation (KP), mean",
        "ms",
        _LOWER,
        "From taking a request out of the queue until its key pair is ready in the token; mean over all signed.",
    ),
    MetricKind(
        "got_key",
        "Signed with keys",
        "requests",
        _NEUTRAL,
        "By source: requests whose key came from the token's RAM, from its store, from the pool outside, or was "
        "generated for them: Appendix B's A, B, C and D.",
    ),
    MetricKind("requests", "Requests", "requests", _NEUTRAL, "Requests that arrived, dropped ones too."),
    MetricKind("processed", "Signed", "requests", _NEUTRAL, "Requests that were signed."),
    MetricKind(
        "failed",
        "Failed",
        "requests",
        _LOWER,
        "Requests that were answered with a fault, as a SignRequest that asks for what there is not; of live runs.",
    ),
    MetricKind(
        "got_key_mean",
        "Time to get a key",
        "ms",
        _LOWER,
        "By source: from taking a request out of the queue until its key pair is ready in the token; mean over those "
        "with a key of that source.",
    ),
    MetricKind(
        "sign_mean",
        "Signing (Si), mean",
        "ms",
        _LOWER,
        "From having the key until the token has signed; mean over all signed. Of live runs, as the three after it.",
    ),
    MetricKind("sign_p50", "Signing p50", "ms", _LOWER, "Half of the requests were signed in this time or less.", 0.5),
    MetricKind("sign_p95", "Signing p95", "ms", _LOWER, "95 % of the requests were signed in this time or less.", 0.95),
    MetricKind("sign_p99", "Signing p99", "ms", _LOWER, "99 % of the requests were signed in this time or less.", 0.99),
    MetricKind(
        "unwrap_mean",
        "Loading a key (KP), mean",
        "ms",
        _LOWER,
        "Time of all refills, over the keys that they loaded from the pool and unwrapped.",
    ),
    MetricKind(
        "keys_generated",
        "Keys generated for the pool",
        "keys",
        _NEUTRAL,
        "Key pairs that the generators made, wrapped and stored, before and while requests came.",
    ),
    MetricKind(
        "key_generation_mean",
        "Generating a key (KG), mean",
        "ms",
        _LOWER,
        "From beginning to generate a key pair for the pool until it is there; mean over all.",
    ),
    MetricKind("wrap_mean", "Wrapping a key, mean", "ms", _LOWER, "Time to wrap a private key; mean over all."),
)


_KINDS = {kind.name: kind for kind in METRICS}
_LATENCIES = tuple((kind.name, kind.quantile) for kind in METRICS if kind.quantile and "latency" in kind.name)
_SIGNATURES = tuple((kind.name, kind.quantile) for kind in METRICS if kind.quantile and "sign" in kind.name)


def evaluate(parameters: KeypoolParameters, samples: Samples, events: Sequence[Event] = ()) -> Evaluation:
    """All figures of a run; those of latency are left out where no request was signed."""
    recorded = load_recorded_run(parameters, samples, events)
    judged = parts(recorded, parameters.base_rate)
    metrics = (
        *_in_time(judged),
        *_latency(recorded),
        *_queue(recorded),
        *_drops(recorded),
        *_service(recorded),
        *_keys(recorded),
        *_supply(_of_the_device(recorded, parameters)),
    )
    order = list(_KINDS)
    live = parameters.origin is not Origin.SIMULATED
    if live:
        metrics = (*metrics, *_live(recorded), *_generation(_of_the_device(recorded, parameters)))
    return Evaluation(
        tuple(
            replace(metric, origin=parameters.origin)
            for metric in sorted(metrics, key=lambda metric: order.index(metric.name))
        ),
        (*service_level(judged, parameters.base_rate), *(live_verdicts(recorded, events) if live else ())),
    )


def distributions(
    parameters: KeypoolParameters, samples: Samples, events: Sequence[Event] = ()
) -> tuple[Distribution, ...]:
    """The latencies and waits behind the means and percentiles, ms; of a live run, the signatures as well."""
    recorded = load_recorded_run(parameters, samples, events)
    if not len(recorded.latencies):
        return ()
    shown = (Distribution("Latency", "ms", recorded.latencies / 1e6), Distribution("Wait", "ms", recorded.waits / 1e6))
    if parameters.origin is Origin.SIMULATED:
        return shown
    return (*shown, Distribution("Signing", "ms", _signatures_ms(recorded)))


def _of_the_device(recorded: RecordedRun, parameters: KeypoolParameters) -> RecordedRun:
    """Without what was done before T0, where a device is emulated: until then the token is as fast as it is."""
    if parameters.origin is not Origin.EMULATED:
        return recorded

    def from_t0(table: Table) -> Table:
        return {name: values[table["started"] >= 0] for name, values in table.items()}

    return replace(recorded, refills=from_t0(recorded.refills), generated=from_t0(recorded.generated))


def _metric(name: str, value: float, samples: int, **labels: str) -> Metric:
    """A figure with the unit and direction of its kind."""
    kind = _KINDS[name]
    return Metric(name, float(value), kind.unit, kind.direction, samples, labels)


def _quantile(values: NDArray[np.float64], fraction: float) -> float:
    return float(np.quantile(values, fraction, method="inverted_cdf"))


def _latency(recorded: RecordedRun) -> Iterator[Metric]:
    latencies_ms, waits_ms = recorded.latencies / 1e6, recorded.waits / 1e6
    count = len(latencies_ms)
    if not count:
        return
    yield _metric("latency_peak", latencies_ms.max(), count)
    yield _metric("latency_mean", latencies_ms.mean(), count)
    for name, fraction in _LATENCIES:
        yield _metric(name, _quantile(latencies_ms, fraction), count)
    yield _metric("wait_mean", waits_ms.mean(), count)
    yield _metric("wait_peak", waits_ms.max(), count)


def _queue(recorded: RecordedRun) -> Iterator[Metric]:
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


def _drops(recorded: RecordedRun) -> Iterator[Metric]:
    total = len(recorded.arrivals)
    if not total:
        return
    numbers = recorded.drops["request"]
    yield _metric("dropped", len(numbers), total)
    if len(numbers):
        yield _metric("first_dropped", numbers.min(), total)


def _service(recorded: RecordedRun) -> Iterator[Metric]:
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


def _in_time(judged: tuple[Part, ...]) -> Iterator[Metric]:
    total = sum(part.requests for part in judged)
    if total:
        yield _metric("service_level", sum(part.within for part in judged) / total * 100, total)


def _keys(recorded: RecordedRun) -> Iterator[Metric]:
    sources = recorded.requests["key_source"]
    if not len(sources):
        return
    preparations_ms = (recorded.requests["got_key"] - recorded.requests["started"]) / 1e6
    yield _metric("key_preparation_mean", preparations_ms.mean(), len(sources))
    for origin in KeyOrigin:
        of_it = sources == origin
        count = int(np.count_nonzero(of_it))
        if count:
            yield _metric("got_key", count, len(sources), source=SOURCE_NAMES[origin])
            yield _metric("got_key_mean", preparations_ms[of_it].mean(), count, source=SOURCE_NAMES[origin])


def _supply(recorded: RecordedRun) -> Iterator[Metric]:
    refills = recorded.refills
    keys = int(refills["keys"].sum())
    if keys:
        yield _metric("unwrap_mean", (refills["finished"] - refills["started"]).sum() / keys / 1e6, keys)


def _live(recorded: RecordedRun) -> Iterator[Metric]:
    """Metrics of live runs only: times of the token's own operations, and failures."""
    if len(recorded.arrivals):
        yield _metric("failed", len(recorded.failures["request"]), len(recorded.arrivals))
    signatures_ms = _signatures_ms(recorded)
    count = len(signatures_ms)
    if count:
        yield _metric("sign_mean", signatures_ms.mean(), count)
        for name, fraction in _SIGNATURES:
            yield _metric(name, _quantile(signatures_ms, fraction), count)
    generated = len(recorded.generated["stored"])
    yield _metric("keys_generated", generated, generated)


def _generation(recorded: RecordedRun) -> Iterator[Metric]:
    made = recorded.generated
    count = len(made["stored"])
    if count:
        yield _metric("key_generation_mean", (made["generated"] - made["started"]).mean() / 1e6, count)
        yield _metric("wrap_mean", (made["wrapped"] - made["generated"]).mean() / 1e6, count)


def _signatures_ms(recorded: RecordedRun) -> NDArray[np.float64]:
    """From having the key until signed, of each request of a live run."""
    return np.asarray((recorded.requests["signed"] - recorded.requests["got_key"]) / 1e6)


SOURCE_NAMES = {
    KeyOrigin.TOKEN_RAM: "token RAM",
    KeyOrigin.TOKEN_STORE: "token store",
    KeyOrigin.POOL: "pool",
    KeyOrigin.GENERATED: "generated",
}
"""Appendix B's A, B, C and D, as labels of metrics."""
