"""The trial `v2x.benchmark`: conducts the measurements in rounds, on one core and on several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from labconsole.clock import now_ns
from labconsole.model.parameters import Parameters
from labconsole.model.trial import (
    Curve,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    RoleHandle,
    RoleSpec,
    RunContext,
    Samples,
    Series,
    Trial,
)
from labconsole.security.secrets import SecretRequest
from labconsole.security.token.named_tokens import find_configuration, pin_requests
from labconsole_v2x.benchmark import benchmark_evaluation as evaluation
from labconsole_v2x.benchmark.benchmark_evaluation import METRICS
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.benchmark.benchmark_series import (
    DONE_CHANNEL,
    EXECUTIONS,
    MEASURE_COMMAND,
    OF_PACKETS,
    ON_SEVERAL_CORES,
    OPENSSL_S,
    OPERATIONS_CHANNEL,
    VERSIONS_EVENT,
    How,
    Measured,
)
from labconsole_v2x.security.backends import Backend

_ROLE = "labconsole_v2x.benchmark.benchmark_role:BenchmarkRole"
_LEAD_NS = 20_000_000
_READY_S = 120.0
_STEP_S = 120.0
"""Longest time for one measurement beyond its own: cold verification on a slow token."""

_START_S, _STEP_OVERHEAD_S = 3.0, 0.15

Step = tuple[How, Measured | None]
"""A measurement of a round; None is `openssl speed`."""


class BenchmarkTrial(Trial[BenchmarkParameters]):
    """Times signing and verifying: raw, whole packets, on one core and on several."""

    kind: ClassVar[str] = "v2x.benchmark"
    title: ClassVar[str] = "V2X benchmark"
    description: ClassVar[str] = (
        "How many packets a second does this computer sign and verify? Raw signatures and whole packets, next to "
        "openssl speed in the same run and to the source's Table 3.2."
    )
    parameters: ClassVar[type[Parameters]] = BenchmarkParameters
    series: ClassVar[tuple[Series, ...]] = (EXECUTIONS,)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("verify_rate", "sign_rate", "verify_ratio_to_openssl")
    finding_metrics: ClassVar[tuple[str, ...]] = ("verify_rate", "sign_rate")
    live: ClassVar[tuple[LiveChannel, ...]] = (DONE_CHANNEL, OPERATIONS_CHANNEL)

    def secrets(self, parameters: BenchmarkParameters) -> tuple[SecretRequest, ...]:
        return pin_requests(parameters.token) if parameters.backend is Backend.TOKEN else ()

    def run(self, parameters: BenchmarkParameters, context: RunContext) -> None:
        specs = [_spec(parameters, number) for number in range(parameters.parallel)]
        roles = [context.start(spec) for spec in specs]
        found = [role.ready(_READY_S) for role in roles]
        if context.stop_requested:
            return
        own, program = found[0]["cryptography_openssl"], found[0]["openssl"]
        context.event(
            VERSIONS_EVENT,
            f"cryptography with {own}; the program openssl: {program or 'not there'}.",
            cryptography_openssl=own,
            openssl=program,
        )
        begin_ns = now_ns() + _LEAD_NS + context.lead_ns
        for role in roles:
            role.begin(begin_ns)
        steps = list(_steps(parameters))
        total = parameters.rounds * sum(parameters.parallel if _in_all(step) else 1 for step in steps)
        context.expect(total, DONE_CHANNEL.name, begin_ns)
        context.event("T0", f"T0: {parameters.rounds} rounds of {len(steps)} measurements.", begin_ns=begin_ns)
        for number in range(parameters.rounds):
            for step in steps:
                if context.stop_requested:
                    return
                _measure(parameters, roles if _in_all(step) else roles[:1], step, number)
        for role in roles:
            role.command({"name": "end"})
        context.wait(roles, stall_s=_STEP_S, reason="The benchmark does not come to its end: read the log.")

    def evaluate(self, parameters: BenchmarkParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(samples)

    def curves(self, parameters: BenchmarkParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        begin_ns = next((event.data["begin_ns"] for event in events if event.name == "T0"), None)
        return () if begin_ns is None else evaluation.curves(samples, begin_ns)

    def distributions(
        self, parameters: BenchmarkParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        return evaluation.distributions(samples)

    def contrast(self, reference: BenchmarkParameters, other: BenchmarkParameters) -> str:
        one, two = reference.model_dump(mode="json"), other.model_dump(mode="json")
        unlike = [name for name in one if one[name] != two[name] and name != "token"]
        if unlike != ["backend"] or reference.backend is not Backend.OPENSSL:
            return ""
        return {Backend.AWS_LC: "AWS-LC against OpenSSL", Backend.TOKEN: "Token against software"}[other.backend]

    def warnings(self, parameters: BenchmarkParameters) -> tuple[str, ...]:
        warnings = []
        if parameters.backend is Backend.TOKEN:
            warnings.append("Each process opens the token for itself: one device shared by all may be slower.")
        if parameters.parallel > (os.cpu_count() or 1):
            warnings.append(f"More processes ({parameters.parallel}) than cores ({os.cpu_count()}).")
        return tuple(warnings)


def _spec(parameters: BenchmarkParameters, number: int) -> RoleSpec:
    uses_token = parameters.backend is Backend.TOKEN
    configuration = find_configuration(parameters.token) if uses_token else None
    settings: dict[str, Any] = {
        "backend": parameters.backend.value,
        "curve": parameters.curve.curve.name,
        "token": parameters.token,
        "configuration": None if configuration is None else configuration.model_dump(mode="json"),
    }
    secrets = () if configuration is None else (configuration.pin_request(parameters.token),)
    return RoleSpec(f"benchmark-{number}", _ROLE, settings, secrets)


def _steps(parameters: BenchmarkParameters) -> Iterator[Step]:
    """The measurements of a round: those that are compared follow each other."""
    if parameters.openssl:
        yield How.ONE, None
    for operation in OF_PACKETS:
        yield How.ONE, operation
    if parameters.parallel == 1:
        return
    if parameters.openssl and os.name != "nt":  # where openssl has no -multi
        yield How.PROCESSES, None
    for operation in ON_SEVERAL_CORES:
        yield How.PROCESSES, operation
        yield How.THREADS, operation


def expected_seconds(parameters: BenchmarkParameters) -> float:
    """About how long a run takes."""
    each = [
        2 * OPENSSL_S if operation is None else parameters.seconds + _STEP_OVERHEAD_S
        for _, operation in _steps(parameters)
    ]
    return _START_S + parameters.rounds * sum(each)


def _in_all(step: Step) -> bool:
    """Whether a measurement is done by all processes; the first one does the others."""
    how, operation = step
    return how is How.PROCESSES and operation is not None


def _measure(parameters: BenchmarkParameters, roles: Sequence[RoleHandle], step: Step, number: int) -> None:
    how, operation = step
    command = {
        "name": MEASURE_COMMAND,
        "operation": operation,
        "how": how,
        "round": number,
        "parallel": parameters.parallel,
        "seconds": parameters.seconds,
        "executions": parameters.least_executions,
        "at_ns": now_ns() + _LEAD_NS,
    }
    for role in roles:
        role.command(command)
    for role in roles:
        role.report(parameters.seconds + _STEP_S)
