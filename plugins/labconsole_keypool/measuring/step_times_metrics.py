"""The figures of the step times and their exact definitions."""

from __future__ import annotations

from labconsole.model.trial import Direction, MetricKind

_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL
_ONE = (
    "One operation is a key pair generated or unwrapped, a batch saved or loaded, a signature; of generating, wrapping "
    "and saving it is a key pair wrapped"
)
_FEW = "Left out with fewer than 20 operations."


def _ms(name: str, title: str, description: str, quantile: float | None = None) -> MetricKind:
    return MetricKind(name, title, "ms", _LOWER, description, quantile)


METRICS: tuple[MetricKind, ...] = (
    _ms(
        "time_per_key",
        "Time per key pair",
        "Total time over the number of key pairs; of a signing step, per request, whatever the number of threads.",
    ),
    _ms("total_time", "Total time", "From the beginning of the step's first operation until the end of its last."),
    MetricKind("throughput", "Key pairs per second", "keys/s", _HIGHER, "Number of key pairs over the total time."),
    _ms("latency_mean", "One operation, mean", f"{_ONE}: the mean of their own times."),
    _ms("latency_p50", "One operation, p50", f"{_ONE}: half of them take this long or less. {_FEW}", 0.5),
    _ms("latency_p95", "One operation, p95", f"{_ONE}: 95 % of them take this long or less. {_FEW}", 0.95),
    _ms("latency_p99", "One operation, p99", f"{_ONE}: 99 % of them take this long or less. {_FEW}", 0.99),
    _ms("latency_peak", "One operation, longest", f"{_ONE}: the longest of them."),
    _ms(
        "latency_range",
        "Variance (range)",
        "The longest operation less the shortest: what the source prints as 0 ~ 20 and calls variance.",
    ),
    _ms("generation_per_key", "Key generation per key", "Time in which keys were generated, over their number."),
    _ms(
        "wrap_and_save_per_key",
        "Wrap and save per key",
        "Time in which keys were wrapped and saved, without their generation, over their number.",
    ),
    _ms("load_time", "Load", "Time in which wrapped keys were loaded from the storage."),
    _ms(
        "initialisation_time",
        "Cipher initialization",
        "Opening a session, and finding the wrapper key in it, before the first key is unwrapped; of an emulated "
        "device its connection's set-up too.",
    ),
    _ms("unwrap_time", "Unwrap private keys", "Time in which private keys were unwrapped."),
    _ms(
        "unwrap_per_key", "Unwrap time per private key", "Time in which private keys were unwrapped, over their number."
    ),
    MetricKind(
        "keys", "Key pairs", "keys", _NEUTRAL, "Key pairs that went through the step; requests that were signed."
    ),
    MetricKind(
        "unwrapped", "Unwrapped alongside", "keys", _NEUTRAL, "Keys that were unwrapped while requests were signed."
    ),
)
