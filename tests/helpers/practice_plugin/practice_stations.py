"""A trial of the practice plugin with live values by role and with commands: stations that send and hear each other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from labconsole.clock import now_ns
from labconsole.model.metrics import Direction, Evaluation, Metric, MetricKind
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.role import Role
from labconsole.model.series import Event, LiveChannel, LiveKind, Series
from labconsole.model.trial import RoleHandle, RoleSpec, RunContext, Samples, Trial
from labconsole.model.trial_command import TrialCommand

FAULTS = (
    *("none", "undeclared gauge", "undeclared state", "gauge as total", "large state", "odd state"),
    *("first ends", "deaf trial"),
)
CHANGED = "rate changed"
"""Event of a station that has taken a command."""


class StationParameters(Parameters):
    """How many stations, for how long, and how to go wrong."""

    stations: int = parameter("Stations", "Number of stations", default=3, ge=1, le=20)
    duration: float = parameter("Duration", "Of the run", default=1.0, ge=0, unit="s")
    rate: float = parameter("Rate", "Messages a second of each station", default=100.0, gt=0, le=1000)
    fault: Literal[FAULTS] = parameter("Fault", "What goes wrong", default="none")  # type: ignore[valid-type]


class RateParameters(Parameters):
    """Parameters of the command that changes a station's rate."""

    rate: float = parameter("Rate", "From now on", default=10.0, gt=0, le=1000, unit="msg/s")


class NoteParameters(Parameters):
    """Parameters of the command that adds a note."""

    text: str = parameter("Text", "What the note says", default="", max_length=40)

    @field_validator("text")
    @classmethod
    def _not_odd(cls, text: str) -> str:
        if text == "odd":
            raise TypeError("an odd note")
        return text


class StationRole(Role):
    """Sends at a rate that a command may change, and reports its rate, its count and whom it hears."""

    def run(self) -> dict[str, Any]:
        context, settings = self.context, self.context.settings
        rate, sent, fault = float(settings["rate"]), 0, settings["fault"]
        begin_ns = last_ns = now_ns()
        due = 0.0
        while not context.stop_requested and now_ns() - begin_ns < settings["duration"] * 1e9:
            while (command := context.take_command()) is not None:
                rate = command["parameters"]["rate"]
                context.event(CHANGED, f"The rate is {rate:g} msg/s.", command=command)
            now = now_ns()
            due, last_ns = due + rate * (now - last_ns) / 1e9, now
            step = int(due) - sent
            if step > 0:
                context.count("sent", step)
                sent += step
            context.gauge("rate", rate)
            context.state("heard", {"hears": settings["others"], "heard_count": len(settings["others"]), "sent": sent})
            self._misbehave(fault)
            context.tick()
            time.sleep(0.01)
        return {"sent": sent}

    def _misbehave(self, fault: str) -> None:
        match fault:
            case "undeclared gauge":
                self.context.gauge("secret gauge", 1.0)
            case "undeclared state":
                self.context.state("secret state", {})
            case "gauge as total":
                self.context.gauge("sent", 1.0)
            case "large state":
                self.context.state("heard", {"hears": ["station" * 10] * 100})
            case "odd state":
                self.context.state("heard", {"hears": {1, 2}})


class StationTrial(Trial[StationParameters]):
    """Stations on one table."""

    kind: ClassVar[str] = "practice.stations"
    on_hosts: ClassVar[bool] = True
    title: ClassVar[str] = "Stations"
    description: ClassVar[str] = "Do stations hear each other?"
    parameters: ClassVar[type[Parameters]] = StationParameters
    series: ClassVar[tuple[Series, ...]] = ()
    metrics: ClassVar[tuple[MetricKind, ...]] = (
        MetricKind("changes", "Changes", "", Direction.NEUTRAL, "Changes of a station's rate."),
    )
    live: ClassVar[tuple[LiveChannel, ...]] = (
        LiveChannel("sent", "Sent", "msg", by_role=True),
        LiveChannel("rate", "Rate", "msg/s", kind=LiveKind.GAUGE),
        LiveChannel("heard", "Heard", "", kind=LiveKind.STATE),
    )
    commands: ClassVar[tuple[TrialCommand, ...]] = (
        TrialCommand("set_rate", "Set rate", "Changes the rate of one station.", RateParameters, ("station-*",)),
        TrialCommand("note", "Add note", "Adds a note to the events of the run.", NoteParameters),
        TrialCommand("stop", "Stop all stations", "Ends the run early."),
    )

    def run(self, parameters: StationParameters, context: RunContext) -> None:
        roles = [context.start(role) for role in _stations(parameters)]
        for role in roles:
            role.ready()
        begin_ns = now_ns()
        for role in roles:
            role.begin(begin_ns)
        context.expect(0, "sent", begin_ns)
        if parameters.fault == "deaf trial":
            time.sleep(1.0)

        def on_command(command: dict[str, Any]) -> None:
            _obey(command, roles, context)

        context.wait(roles, stall_s=60, reason="No station sent for a minute.", on_command=on_command)

    def evaluate(self, parameters: StationParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return Evaluation((Metric("changes", sum(event.name == CHANGED for event in events), ""),))


def _stations(parameters: StationParameters) -> Iterator[RoleSpec]:
    names = [f"station-{number}" for number in range(parameters.stations)]
    for index, name in enumerate(names):
        duration = 0.0 if parameters.fault == "first ends" and index == 0 else parameters.duration
        others = [other for other in names if other != name]
        settings = {"rate": parameters.rate, "fault": parameters.fault, "duration": duration, "others": others}
        yield RoleSpec(name, "practice_stations:StationRole", settings)


def _obey(command: dict[str, Any], roles: Sequence[RoleHandle], context: RunContext) -> None:
    if command["name"] == "stop":
        for role in roles:
            role.stop()
    else:
        context.event("noted", command["parameters"]["text"])
