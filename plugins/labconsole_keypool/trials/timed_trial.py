"""The base of the trials in which one role times operations on one token: PIN, role, T0, curves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from labconsole.clock import now_ns
from labconsole.model.trial import Curve, Event, LiveChannel, RoleSpec, RunContext, Samples, Trial
from labconsole.security.secrets import SecretRequest
from labconsole.security.token.named_tokens import find_configuration, pin_requests
from labconsole_keypool.measuring.device_benchmark_parameters import DeviceBenchmarkParameters
from labconsole_keypool.measuring.step_times_parameters import StepTimesParameters

_LEAD_NS = 20_000_000

P = TypeVar("P", StepTimesParameters, DeviceBenchmarkParameters)


@dataclass(frozen=True)
class Measurement:
    """The measurement of a run: `role` is a `package.module:Class`, `load` a text for T0, `total` the end of `done`.

    The role may prepare for `ready_s`. A run in which no operation ends for `stall_s` fails, with `advice`.
    """

    role: str
    load: str
    total: int
    done: LiveChannel
    stall_s: float
    advice: str
    ready_s: float = 30.0


class TimedTrial(Trial[P]):
    """One role opens the token `parameters.token` and times operations; the curves begin at T0."""

    @abstractmethod
    def measurement(self, parameters: P) -> Measurement:
        """The measurement of a run with these parameters."""

    @abstractmethod
    def curves_from(self, parameters: P, samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
        """Lines over the time since `begin_ns`."""

    def secrets(self, parameters: P) -> tuple[SecretRequest, ...]:
        return pin_requests(parameters.token)

    def run(self, parameters: P, context: RunContext) -> None:
        measurement, token = self.measurement(parameters), parameters.token
        configuration = find_configuration(token)
        settings = {
            "parameters": parameters.model_dump(mode="json"),
            "configuration": configuration.model_dump(mode="json"),
        }
        role = context.start(RoleSpec("token", measurement.role, settings, (configuration.pin_request(token),)))
        ready = role.ready(measurement.ready_s)
        if context.stop_requested:
            return
        wrapped = f", keys wrapped by {ready['mechanism']}" if ready.get("mechanism") else ""
        context.event("token", f"Token {token}: {ready['identity']}{wrapped}.", **ready)
        begin_ns = now_ns() + _LEAD_NS
        role.begin(begin_ns)
        context.expect(measurement.total, measurement.done.name, begin_ns)
        context.event("T0", f"T0: {measurement.load}.", begin_ns=begin_ns)
        context.wait(
            [role],
            stall_s=measurement.stall_s,
            reason=f"The token {token} ended no operation for {measurement.stall_s:g} s: {measurement.advice}.",
        )

    def curves(self, parameters: P, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        begin_ns = next((event.data["begin_ns"] for event in events if event.name == "T0"), None)
        return self.curves_from(parameters, samples, begin_ns) if begin_ns is not None else ()
