"""The figures of the signing service and their exact definitions, with the source's names where it has some."""

from __future__ import annotations

from labconsole.model.trial import Direction, MetricKind

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
