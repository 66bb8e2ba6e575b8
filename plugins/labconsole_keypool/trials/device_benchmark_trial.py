"""The trial `keypool.device-benchmark`: what a device does with RSA keys of each size, as in Appendix C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from labconsole.model.trial import (
    Curve,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    Samples,
    Series,
)
from labconsole_keypool.measuring import device_benchmark_evaluation as evaluation
from labconsole_keypool.measuring.device_benchmark_evaluation import METRICS
from labconsole_keypool.measuring.device_benchmark_parameters import (
    DONE_CHANNEL,
    OPERATIONS,
    OPERATIONS_CHANNEL,
    DeviceBenchmarkParameters,
    KeySize,
    RSAOperation,
)
from labconsole_keypool.measuring.timed_operations import TIME_CHANNEL
from labconsole_keypool.trials.contrast import difference
from labconsole_keypool.trials.timed_trial import Measurement, TimedTrial

_LONGEST_S = {KeySize.BITS_1024: 60.0, KeySize.BITS_2048: 300.0, KeySize.BITS_4096: 900.0, KeySize.BITS_8192: 7200.0}
"""Longest time for a key pair of that size on a slow machine."""


class DeviceBenchmarkTrial(TimedTrial[DeviceBenchmarkParameters]):
    """Time a token's RSA operations: sign, verify, hash and sign, key generation, encrypt, decrypt."""

    kind: ClassVar[str] = "keypool.device-benchmark"
    title: ClassVar[str] = "HSM benchmark"
    description: ClassVar[str] = (
        "How many signatures, key pairs and decryptions does a device make in a second, by the size of its keys? "
        "Next to the maker's own report on the source's HSM (Appendix C)."
    )
    parameters: ClassVar[type[Parameters]] = DeviceBenchmarkParameters
    series: ClassVar[tuple[Series, ...]] = (OPERATIONS,)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean", "key_pairs")
    finding_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean")
    live: ClassVar[tuple[LiveChannel, ...]] = (OPERATIONS_CHANNEL, TIME_CHANNEL, DONE_CHANNEL)

    def measurement(self, parameters: DeviceBenchmarkParameters) -> Measurement:
        sizes = ", ".join(f"{bits:,}" for bits in parameters.sizes)
        return Measurement(
            "labconsole_keypool.measuring.device_benchmark_role:DeviceBenchmarkRole",
            f"RSA keys of {sizes} bits, {parameters.threads} threads",
            len(parameters.sizes) * len(RSAOperation),
            DONE_CHANNEL,
            stall_s=_LONGEST_S[parameters.largest] + parameters.seconds,
            advice="take a smaller largest key",
        )

    def evaluate(self, parameters: DeviceBenchmarkParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(samples)

    def curves_from(self, parameters: DeviceBenchmarkParameters, samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
        return evaluation.curves(samples, begin_ns)

    def distributions(
        self, parameters: DeviceBenchmarkParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        return evaluation.distributions(samples)

    def contrast(self, reference: DeviceBenchmarkParameters, other: DeviceBenchmarkParameters) -> str:
        if reference.threads > other.threads:
            return ""
        return difference(reference, other, {"largest", "seconds", "key_seconds"})

    def warnings(self, parameters: DeviceBenchmarkParameters) -> tuple[str, ...]:
        return (
            "A key pair takes a random time to generate: its rate says little before some hundred were made.",
            "Latency includes the wait for other threads; one thread alone shows how fast the token itself is.",
        )
