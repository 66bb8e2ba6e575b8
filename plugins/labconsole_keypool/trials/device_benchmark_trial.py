"""The trial `keypool.device-benchmark`: what a device does with RSA keys of each size, as in Appendix C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from labconsole.clock import now_ns
from labconsole.model.trial import (
    Curve,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    RoleSpec,
    RunContext,
    Samples,
    Series,
    Trial,
)
from labconsole.security.secrets import SecretRequest
from labconsole.security.token.configuration import is_lab
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.measuring import device_benchmark_evaluation as evaluation
from labconsole_keypool.measuring.device_benchmark_evaluation import METRICS
from labconsole_keypool.measuring.device_benchmark_parameters import (
    DONE_CHANNEL,
    OPERATIONS,
    OPERATIONS_CHANNEL,
    TIME_CHANNEL,
    DeviceBenchmarkParameters,
    KeySize,
    RSAOperation,
)
from labconsole_keypool.trials.contrast import difference

_LONGEST_S = {KeySize.BITS_1024: 60.0, KeySize.BITS_2048: 300.0, KeySize.BITS_4096: 900.0, KeySize.BITS_8192: 7200.0}
"""How long a key pair of that size may take by bad luck on a slow machine."""
_LEAD_NS = 20_000_000


class DeviceBenchmarkTrial(Trial[DeviceBenchmarkParameters]):
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

    def secrets(self, parameters: DeviceBenchmarkParameters) -> tuple[SecretRequest, ...]:
        if is_lab(parameters.token):
            return ()
        return (find_configuration(parameters.token).pin_request(parameters.token),)

    def run(self, parameters: DeviceBenchmarkParameters, context: RunContext) -> None:
        configuration = find_configuration(parameters.token)
        settings = {
            "parameters": parameters.model_dump(mode="json"),
            "configuration": configuration.model_dump(mode="json"),
        }
        target = "labconsole_keypool.measuring.device_benchmark_role:DeviceBenchmarkRole"
        pin = configuration.pin_request(parameters.token).key
        role = context.start(RoleSpec("token", target, settings, (pin,)))
        ready = role.ready()
        context.event("token", f"Token {parameters.token}: {ready['identity']}.", **ready)
        begin_ns = now_ns() + _LEAD_NS
        role.begin(begin_ns)
        context.expect(len(parameters.sizes) * len(RSAOperation), DONE_CHANNEL.name, begin_ns)
        sizes = ", ".join(f"{bits:,}" for bits in parameters.sizes)
        context.event("T0", f"T0: RSA keys of {sizes} bits, {parameters.threads} threads.", begin_ns=begin_ns)
        longest_s = _LONGEST_S[parameters.largest] + parameters.seconds
        context.wait(
            [role],
            stall_s=longest_s,
            reason=f"The token {parameters.token} ended no operation for {longest_s:g} s: take a smaller largest key.",
        )

    def evaluate(self, parameters: DeviceBenchmarkParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(samples)

    def curves(
        self, parameters: DeviceBenchmarkParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Curve, ...]:
        begin_ns = next((event.data["begin_ns"] for event in events if event.name == "T0"), None)
        return evaluation.curves(samples, begin_ns) if begin_ns is not None else ()

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
            "Latency includes the wait for other threads; one thread alone tells how fast the token itself is.",
        )
