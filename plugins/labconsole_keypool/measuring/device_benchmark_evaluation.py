"""From the recorded operations to the rows of Appendix C: pure, and the same whenever it is called."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Curve, Direction, Distribution, Evaluation, Metric, MetricKind, Samples
from labconsole_keypool.measuring.device_benchmark_parameters import OPERATIONS, RSAOperation

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
        "Keys of a kind that the device holds, as its maker says. No run fills a token to see: only the source has it.",
    ),
)


_KINDS = {kind.name: kind for kind in METRICS}

_USUAL_BITS = 2048
_HEADLINES = {"sign_rate": "throughput", "sign_latency": "latency_mean", "key_generation_rate": "key_pairs"}
"""Figures that stand for the device where there is room for a few."""

Rows = dict[str, NDArray[np.int64]]


def evaluate(samples: Samples) -> Evaluation:
    """Rate and latency of each operation with each size; none for what was not done."""
    order = list(_KINDS)
    metrics = (metric for group in _groups(samples) for metric in _metrics(*group))
    return Evaluation(tuple(sorted(metrics, key=lambda metric: order.index(metric.name))))


def distributions(samples: Samples) -> tuple[Distribution, ...]:
    """The times behind each latency, ms."""
    return tuple(
        Distribution(f"{operation.title}, {bits} bit", "ms", _times_ms(rows))
        for operation, bits, rows in _groups(samples)
        if len(rows["bits"]) > 1
    )


def curves(samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
    """The time of each operation at its end, a plot for each operation and a line for each size."""
    return tuple(
        Curve(
            f"{bits} bit",
            operation.title,
            "ms",
            (rows["finished"][order] - begin_ns) / 1e9,
            _times_ms(rows)[order],
        )
        for operation, bits, rows in _groups(samples)
        if len(rows["bits"]) > 1
        for order in [np.argsort(rows["finished"], kind="stable")]
    )


def _groups(samples: Samples) -> Iterator[tuple[RSAOperation, int, Rows]]:
    """What was done, in the order of Appendix C."""
    tables = [samples.table(OPERATIONS.name, role) for role in samples.roles(OPERATIONS.name)]
    rows = {
        column.name: np.concatenate([np.empty(0, np.int64), *(table[column.name].astype(np.int64) for table in tables)])
        for column in OPERATIONS.columns
    }
    for operation in RSAOperation:
        for bits in np.unique(rows["bits"][rows["operation"] == operation]).tolist():
            chosen = (rows["operation"] == operation) & (rows["bits"] == bits)
            yield operation, bits, {name: values[chosen] for name, values in rows.items()}


def _metrics(operation: RSAOperation, bits: int, rows: Rows) -> Iterator[Metric]:
    count = len(rows["bits"])
    span_s = (int(rows["finished"].max()) - int(rows["started"].min())) / 1e9
    for name, value in (("rate", count / span_s), ("latency", float(_times_ms(rows).mean()))):
        kind = _KINDS[f"{operation.name.lower()}_{name}"]
        yield Metric(kind.name, value, kind.unit, kind.direction, count, {"bits": str(bits)})
        if bits == _USUAL_BITS and (headline := _HEADLINES.get(kind.name)) is not None:
            yield Metric(headline, value, kind.unit, kind.direction, count)


def _times_ms(rows: Rows) -> NDArray[np.float64]:
    return (rows["finished"] - rows["started"]) / 1e6
