"""The figures of the device benchmark: operations per second and latency, with the size of the key as a label."""

from __future__ import annotations

from labconsole.model.trial import Direction, MetricKind
from labconsole_keypool.measuring.device_benchmark_samples import RSAOperation

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
