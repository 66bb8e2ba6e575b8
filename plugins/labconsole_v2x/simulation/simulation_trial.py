"""The trial `v2x.simulation`: stations, attackers, radio channel and a receiver's stack on a virtual clock."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import ClassVar

from labconsole.clock import now_ns
from labconsole.errors import UserError
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
    Trial,
)
from labconsole_v2x.attacks.attack_fields import attack_contrast, attack_questions
from labconsole_v2x.choices import Attack
from labconsole_v2x.messages.geonetworking import LARGEST_SDU
from labconsole_v2x.simulation import simulation_evaluation
from labconsole_v2x.simulation.medium import CAPTURE_DB
from labconsole_v2x.simulation.packet_series import PACKETS, SIMULATED_CHANNEL
from labconsole_v2x.simulation.simulation_metrics import METRICS
from labconsole_v2x.simulation.simulation_parameters import MediumChoice, SimulationParameters
from labconsole_v2x.simulation.stack_timing import STACK_TIMINGS
from labconsole_v2x.stations.channel import LONGEST_US, airtime_us
from labconsole_v2x.stations.sending import SecurityMode

_ROLE = "labconsole_v2x.simulation.simulator_role:SimulatorRole"
_STALL_S = 600.0
"""Nothing is counted while it computes."""


class SimulationTrial(Trial[SimulationParameters]):
    """Let stations and attackers send to a receiver whose stack takes the times of a timing profile."""

    kind: ClassVar[str] = "v2x.simulation"
    title: ClassVar[str] = "V2X, simulated"
    description: ClassVar[str] = (
        "What does an attacker cost? Stations, attackers, the 802.11p channel and a receiver's stack on a virtual "
        "clock, with the times of a real testbed: a minute takes less than a second."
    )
    parameters: ClassVar[type[Parameters]] = SimulationParameters
    series: ClassVar[tuple[Series, ...]] = (PACKETS,)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("packet_loss", "latency_mean", "benign_share", "neighbours_served")
    finding_metrics: ClassVar[tuple[str, ...]] = ("packet_loss", "latency_mean")
    live: ClassVar[tuple[LiveChannel, ...]] = (SIMULATED_CHANNEL,)

    def run(self, parameters: SimulationParameters, context: RunContext) -> None:
        timing = parameters.stack_timing()
        described = timing.model_dump(mode="json")
        settings = {"parameters": parameters.model_dump(mode="json"), "timing": described, "seed": context.seed}
        simulator = context.start(RoleSpec("simulator", _ROLE, settings))
        simulator.ready()
        sentence = f"Timing profile {parameters.timing}: {timing.title} ({timing.reference})."
        context.event("timing", sentence, **described)
        if parameters.medium is MediumChoice.EDCA:
            sentence = f"EDCA: AIFSN {parameters.aifsn}, CWmin {parameters.cw_min}, 6 Mbit/s in 10 MHz."
            if parameters.power_spread:
                sentence += (
                    f" Stations are received with powers that spread by {parameters.power_spread:g} dB; of frames that "
                    f"collide, one that is stronger by {CAPTURE_DB:g} dB is received."
                )
            context.event("medium", sentence, **asdict(parameters.radio()))
        begin_ns = now_ns()
        simulator.begin(begin_ns)
        context.event("T0", "T0, of a virtual clock.", begin_ns=begin_ns)
        context.wait([simulator], stall_s=_STALL_S, reason="The simulator does not come to its end: read the log.")

    def evaluate(self, parameters: SimulationParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return simulation_evaluation.evaluate(parameters, samples)

    def curves(self, parameters: SimulationParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        return simulation_evaluation.curves(parameters, samples)

    def distributions(
        self, parameters: SimulationParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        return simulation_evaluation.distributions(parameters, samples)

    def contrast(self, reference: SimulationParameters, other: SimulationParameters) -> str:
        return attack_contrast(reference, other)

    def questions(self, reference: SimulationParameters, other: SimulationParameters) -> tuple[Question, ...]:
        return attack_questions(reference, other)

    def warnings(self, parameters: SimulationParameters) -> tuple[str, ...]:
        return tuple(_warnings(parameters))


def _warnings(parameters: SimulationParameters) -> Iterator[str]:
    yield (
        f"Simulated with the timing profile {parameters.timing}: nothing was sent, and no real time passed. Times are "
        "those of a virtual clock."
    )
    with suppress(UserError):  # the run says what is wrong with the profile
        if fitted_to := STACK_TIMINGS.load(parameters.timing).fitted_to:
            yield (
                f"The timing profile was fitted to the published columns {', '.join(fitted_to)}: that the simulation "
                "agrees with these is not evidence, with the others it is."
            )
    largest = max(parameters.size_digest, parameters.size_certificate)
    if largest > LARGEST_SDU and parameters.security is not SecurityMode.NONE:
        yield (
            f"Packets of {largest:,} B do not fit GeoNetworking, which carries {LARGEST_SDU:,} B: each is simulated as "
            "one frame, which no station could send."
        )
    longest_us = airtime_us(largest)
    if parameters.dcc and longest_us > LONGEST_US and parameters.security is not SecurityMode.NONE:
        yield (
            f"Packets are on air for up to {longest_us / 1e3:.1f} ms: the intervals of DCC are those of packets of at "
            f"most {LONGEST_US / 1e3:g} ms."
        )
    if parameters.receiver_cores > (own := os.cpu_count() or 1):
        yield f"The receiver has {parameters.receiver_cores} cores, this computer {own}: no run here confirms it."
    if parameters.attack is Attack.IMPLAUSIBLE_CONTENT:
        yield (
            "A-CON-01: no content is simulated. Each packet of an attacker takes the time of a benign one, and counts "
            "as rejected; how many are detected is a figure of live runs."
        )
    if parameters.medium is MediumChoice.IDEAL:
        yield "The medium is ideal: no packet waits for another one, and none collides."
    if parameters.security is SecurityMode.NONE:
        yield "Packets have no security header: every one that is heard is accepted."
