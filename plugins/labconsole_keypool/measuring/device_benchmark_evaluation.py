"""The rows of Appendix C with distributions and curves, computed from the recorded operations alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labconsole.model.trial import Curve, Direction, Distribution, Evaluation, Metric, MetricKind, Samples
from labconsole_keypool.measuring.device_benchmark_parameters import OPERATIONS, RSAOperation
from labconsole_keypool.measuring.timed_operations import (
    Operations,
    duration_curve,
    durations_ns,
    in_declared_order,
    read_operations,
    select,
)

_WHAT = {
    RSAOperation.SIGN: "16 bytes signed as they are (CKM_RSA_PKCS)",
    RSAOperation.VERIFY: "the signature of 16 bytes verified in the token (CKM_RSA_PKCS)",
    RSAOperation.HASH_AND_SIGN: "1,024 bytes hashed with SHA-256 and signed in the token (CKM_SHA256_RSA_PKCS)",
    RSAOperation.KEY_GENERATION: "a key pair generated as session objects, by one thread",
    RSAOperation.ENCRYPT: "16 bytes encrypted in the token (CKM_RSA_PKCS)",
    RSAOperation.DECRYPT: "16 bytes decrypted (CKM_RSA_PKCS)",
}


def _kinds(operation: RSAOperation) -> tuple[MetricKind, MetricKind]:
    what, name = _WHAT[operation], operation.name.lower()
    return (
        MetricKind(
            f"{name}_rate",
            f"{operation.title}, rate",
            "ops/s",
            Direction.HIGHER,
            f"Operations of all threads over the time from the first one's beginning to the last one's end: {what}.",
        ),
        MetricKind(
            f"{name}_latency",
            f"{operation.title}, latency",
            "ms",
            Direction.LOWER,
            f"From the beginning to the end of one operation, waiting for the token included; the mean: {what}.",
        ),
    )


METRICS: tuple[MetricKind, ...] = (
    MetricKind(
        "throughput",
        "Signatures, RSA-2048",
        "ops/s",
        Direction.HIGHER,
        "The rate of signing with keys of 2048 bits, which are the source's: a device in one figure.",
    ),
    MetricKind(
        "latency_mean",
        "Signature, RSA-2048",
        "ms",
        Direction.LOWER,
        "The latency of signing with keys of 2048 bits, waiting for the token included.",
    ),
    MetricKind(
        "key_pairs",
        "Key pairs, RSA-2048",
        "ops/s",
        Direction.HIGHER,
        "The rate of generating key pairs of 2048 bits, by one thread.",
    ),
    *(kind for operation in RSAOperation for kind in _kinds(operation)),
    MetricKind(
        "capacity",
        "Capacity",
        "keys",
        Direction.HIGHER,
        "Keys of a kind that the device holds, as its manufacturer states. No run fills a token to measure it: only "
        "the source has it.",
    ),
)


_KINDS = {kind.name: kind for kind in METRICS}

_USUAL_BITS = 2048
_HEADLINES = {"sign_rate": "throughput", "sign_latency": "latency_mean", "key_generation_rate": "key_pairs"}
"""Headline figures of a device, by the metric that each repeats."""


def evaluate(samples: Samples) -> Evaluation:
    """Rate and latency of each operation with each size; none for what was not done."""
    return in_declared_order((metric for group in _groups(samples) for metric in _metrics(*group)), METRICS)


def distributions(samples: Samples) -> tuple[Distribution, ...]:
    """The times behind each latency, ms."""
    return tuple(
        Distribution(f"{operation.title}, {bits} bit", "ms", durations_ns(operations) / 1e6)
        for operation, bits, operations in _groups(samples)
        if len(operations["bits"]) > 1
    )


def curves(samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
    """The duration of each operation at its end: a plot for each operation, a line for each size."""
    return tuple(
        duration_curve(f"{bits} bit", operation.title, operations, begin_ns)
        for operation, bits, operations in _groups(samples)
        if len(operations["bits"]) > 1
    )


def _groups(samples: Samples) -> Iterator[tuple[RSAOperation, int, Operations]]:
    """The recorded operations by kind and size of key in bits, in the order of Appendix C."""
    recorded = read_operations(samples, OPERATIONS)
    for operation in RSAOperation:
        for bits in np.unique(recorded["bits"][recorded["operation"] == operation]).tolist():
            chosen = (recorded["operation"] == operation) & (recorded["bits"] == bits)
            yield operation, bits, select(recorded, chosen)


def _metrics(operation: RSAOperation, bits: int, operations: Operations) -> Iterator[Metric]:
    count = len(operations["bits"])
    span_s = (int(operations["finished"].max()) - int(operations["started"].min())) / 1e9
    for name, value in (("rate", count / span_s), ("latency", float((durations_ns(operations) / 1e6).mean()))):
        kind = _KINDS[f"{operation.name.lower()}_{name}"]
        yield Metric(kind.name, value, kind.unit, kind.direction, count, {"bits": str(bits)})
        if bits == _USUAL_BITS and (headline := _HEADLINES.get(kind.name)) is not None:
            yield Metric(headline, value, kind.unit, kind.direction, count)
