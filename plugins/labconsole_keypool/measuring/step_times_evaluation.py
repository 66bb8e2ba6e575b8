"""The figures, distributions and curves of a step, computed from the recorded operations alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labconsole.model.trial import Curve, Direction, Distribution, Evaluation, Metric, MetricKind, Origin, Samples
from labconsole_keypool.measuring.step_times_parameters import (
    MAIN,
    OPERATIONS,
    Step,
    StepOperation,
    StepTimesParameters,
)
from labconsole_keypool.measuring.timed_operations import (
    Operations,
    duration_curve,
    durations_ns,
    in_declared_order,
    read_operations,
    select,
)

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


_KINDS = {kind.name: kind for kind in METRICS}
_QUANTILES = tuple((kind.name, kind.quantile) for kind in METRICS if kind.quantile is not None)
_ENOUGH = 20
"""Operations behind a percentile: with fewer, a percentile is not meaningful."""
_CONCURRENT = {Step.SIGN_WHILE_UNWRAPPING: (StepOperation.UNWRAP,)}
"""Operations that run at the same time as a step and do not count as its time."""


def evaluate(parameters: StepTimesParameters, samples: Samples) -> Evaluation:
    """All figures of a run; without an operation of the step there are none."""
    origin = Origin.EMULATED if parameters.timing else Origin.MEASURED
    labels: dict[str, str] = {}
    metrics = []
    for name, value, count in _figures(parameters.step, read_operations(samples, OPERATIONS)):
        kind = _KINDS[name]
        metrics.append(Metric(name, float(value), kind.unit, kind.direction, count, labels, origin))
    return in_declared_order(metrics, METRICS)


def distributions(parameters: StepTimesParameters, samples: Samples) -> tuple[Distribution, ...]:
    """The times of single operations behind mean and percentiles, ms."""
    main = _of(read_operations(samples, OPERATIONS), MAIN[parameters.step])
    return (Distribution("One operation", "ms", durations_ns(main) / 1e6),) if len(main["keys"]) else ()


def curves(parameters: StepTimesParameters, samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
    """The duration of each operation at its end, a line for each kind of operation."""
    recorded = read_operations(samples, OPERATIONS)
    return tuple(
        duration_curve(operation.name.capitalize(), "One operation", found, begin_ns)
        for operation in StepOperation
        if len((found := _of(recorded, operation))["keys"]) > 1
    )


def _figures(step: Step, rows: Operations) -> Iterator[tuple[str, float, int]]:
    """(metric, value, number of samples behind it)."""
    main = _of(rows, MAIN[step])
    keys = int(main["keys"].sum())
    if not keys:
        return
    own = ~np.isin(rows["operation"], _CONCURRENT.get(step, ()))
    total_ms = (rows["finished"][own].max() - rows["started"][own].min()) / 1e6
    yield "keys", keys, keys
    yield "total_time", total_ms, keys
    yield "time_per_key", total_ms / keys, keys
    yield "throughput", keys / total_ms * 1e3, keys
    times_ms = durations_ns(main) / 1e6
    yield "latency_mean", times_ms.mean(), len(times_ms)
    for name, fraction in _QUANTILES if len(times_ms) >= _ENOUGH else ():
        yield name, float(np.quantile(times_ms, fraction, method="inverted_cdf")), len(times_ms)
    yield "latency_peak", times_ms.max(), len(times_ms)
    yield "latency_range", times_ms.max() - times_ms.min(), len(times_ms)
    yield from _parts(step, rows, keys)


def _parts(step: Step, rows: Operations, keys: int) -> Iterator[tuple[str, float, int]]:
    """The shares of the operations of a step that has several, and the keys unwrapped while requests were signed."""
    ms = {operation: float(durations_ns(_of(rows, operation)).sum()) / 1e6 for operation in StepOperation}
    if step is Step.WRAP_AND_SAVE:
        yield "generation_per_key", ms[StepOperation.GENERATE] / keys, keys
        yield "wrap_and_save_per_key", (ms[StepOperation.WRAP] + ms[StepOperation.SAVE]) / keys, keys
    if step is Step.LOAD_AND_UNWRAP:
        yield "load_time", ms[StepOperation.LOAD], keys
        yield "initialisation_time", ms[StepOperation.INITIALISE], 1
        yield "unwrap_time", ms[StepOperation.UNWRAP], keys
        yield "unwrap_per_key", ms[StepOperation.UNWRAP] / keys, keys
    if step is Step.SIGN_WHILE_UNWRAPPING:
        unwrapped = len(_of(rows, StepOperation.UNWRAP)["keys"])
        yield "unwrapped", unwrapped, unwrapped
        if unwrapped:
            yield "unwrap_per_key", ms[StepOperation.UNWRAP] / unwrapped, unwrapped


def _of(operations: Operations, operation: StepOperation) -> Operations:
    return select(operations, operations["operation"] == operation)
