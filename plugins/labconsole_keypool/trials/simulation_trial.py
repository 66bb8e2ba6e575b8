"""The trial `keypool.simulation`: the signing service of the source on a virtual clock, in a second."""

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
    Question,
    RoleSpec,
    RunContext,
    Samples,
    Series,
    ServiceLevel,
    Trial,
)
from labconsole.profiles.timing_profile import load_timing
from labconsole_keypool.choices import KeySource
from labconsole_keypool.results import curves, evaluation
from labconsole_keypool.results.evaluation import METRICS
from labconsole_keypool.results.verdicts import SERVICE_LEVEL
from labconsole_keypool.series import (
    DROPPED_CHANNEL,
    DROPS,
    LATENCY_CHANNEL,
    QUEUE,
    REFILLS,
    REQUESTS,
    SIMULATED_CHANNEL,
)
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_keypool.trials import contrast

_STALL_S = 120.0
"""Nothing is counted while it computes: two million requests take some seconds."""


class SimulationTrial(Trial[SimulationParameters]):
    """Let signing requests arrive at a service with one slow HSM, with and without a pool of keys made before."""

    kind: ClassVar[str] = "keypool.simulation"
    title: ClassVar[str] = "Key pool, simulated"
    description: ClassVar[str] = (
        "Can a slow HSM carry a peak load if keys are made ahead of time? Computed on a virtual clock from the times "
        "of a device: an hour of requests takes a second."
    )
    parameters: ClassVar[type[Parameters]] = SimulationParameters
    series: ClassVar[tuple[Series, ...]] = (REQUESTS, DROPS, QUEUE, REFILLS)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean", "latency_p99", "dropped")
    finding_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean")
    live: ClassVar[tuple[LiveChannel, ...]] = (SIMULATED_CHANNEL, DROPPED_CHANNEL, LATENCY_CHANNEL)
    service_level: ClassVar[ServiceLevel | None] = SERVICE_LEVEL

    def run(self, parameters: SimulationParameters, context: RunContext) -> None:
        simulator = context.start(simulator_spec(parameters, context.seed))
        requests = simulator.ready()["requests"]
        model, profile = parameters.service_model(), load_timing(parameters.timing)
        context.event(
            "timing",
            f"Timing profile {parameters.timing}: {model.sign_ms:g} ms to sign, {model.key_generation_ms:g} ms to "
            f"generate a key pair, {model.unwrap_ms:g} ms to unwrap one.",
            timing=parameters.timing,
            sign_ms=model.sign_ms,
            key_generation_ms=model.key_generation_ms,
            unwrap_ms=model.unwrap_ms,
            references={
                "sign": profile.sign[parameters.sign].reference,
                "sign_by_threads": profile.sign_by_threads.reference,
                "key_generation": profile.key_generation.reference,
                "unwrap": profile.unwrap.reference,
            },
        )
        begin_ns = now_ns()
        simulator.begin(begin_ns)
        context.expect(requests, SIMULATED_CHANNEL.name, begin_ns)
        context.event("T0", f"T0: {requests:,} requests, on a virtual clock.", begin_ns=begin_ns)
        context.wait([simulator], stall_s=_STALL_S, reason="The simulator does not come to its end: see the log.")

    def evaluate(self, parameters: SimulationParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(parameters, samples)

    def curves(self, parameters: SimulationParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        return curves.curves(parameters, samples)

    def distributions(
        self, parameters: SimulationParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        return evaluation.distributions(parameters, samples)

    def contrast(self, reference: SimulationParameters, other: SimulationParameters) -> str:
        return contrast.contrast_label(reference, other)

    def questions(self, reference: SimulationParameters, other: SimulationParameters) -> tuple[Question, ...]:
        return contrast.questions(reference, other)

    def comparable(self, reference: SimulationParameters, other: SimulationParameters) -> bool:
        return contrast.same_load(reference, other)

    def warnings(self, parameters: SimulationParameters) -> tuple[str, ...]:
        warnings = [
            f"Simulated with the timing profile {parameters.timing}: no token was used, and no real time passed. Times "
            "are those of a virtual clock."
        ]
        if parameters.keys is KeySource.POOL and not (
            parameters.keys_at_start or parameters.store_keys or parameters.pool_keys
        ):
            warnings.append("The pool is empty: every request generates its key pair, as without a pool.")
        return tuple(warnings)


def simulator_spec(parameters: SimulationParameters, seed: int) -> RoleSpec:
    """The one role of a simulation."""
    settings = {"parameters": parameters.model_dump(mode="json"), "seed": seed}
    target = "labconsole_keypool.simulation.simulator_role:SimulatorRole"
    return RoleSpec("simulator", target, settings, files=parameters.arrival_files)
