"""A third party's plugin for the tests of the engine: roles that count, and that misbehave in every way we know."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.metrics import Direction, Evaluation, Metric, MetricKind, Verdict, VerdictKind
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.plugin import OperationEntry, Plugin
from labconsole.model.role import Role
from labconsole.model.series import Column, Event, Level, LiveChannel, Series
from labconsole.model.trial import RoleSpec, RunContext, Samples, Trial
from labconsole.model.trial_command import TrialCommand

plugin = Plugin(
    name="practice",
    title="Practice",
    description="Counts, and misbehaves when asked to.",
    trials={
        "practice.counting": "practice_trial:CountingTrial",
        "practice.files": "practice_files_trial:FilesTrial",
        "practice.keyed": "practice_trial:KeyedTrial",
        "practice.lost": "practice_lost_trial:LostTrial",
        "practice.stations": "practice_stations:StationTrial",
        "practice.attaching": "practice_attaching_trial:AttachingTrial",
    },
    operations={"practice.tally": OperationEntry("practice_operation:Tally")},
    published=("practice_source:book",),
)

COUNTED = Series(
    "counted",
    "Numbers counted",
    (Column("number", "i8", "msg", "Number"), Column("t_ns", "i8", "ns", "Time", by_clock=True)),
)
FAULTS = (
    *("none", "refuse", "fault", "exit", "prints", "deaf", "stall", "fork", "close fault", "slow prepare"),
    *(
        "trial fault",
        "evaluate fault",
        "evaluate slowly",
        "disturbed",
        "commands",
        "talkative",
        "die at the end",
        "same artefact",
        "miscount",
        "missing metric",
        "undeclared metric",
        "undeclared channel",
        "undeclared progress",
    ),
)


class CountingParameters(Parameters):
    """What to count, and how to go wrong."""

    count: int = parameter("Count", "Numbers that each role counts", default=1000, ge=1, le=100_000_000)
    rate: float = parameter("Rate", "Numbers per second, 0 for as fast as possible", default=0.0, ge=0)
    roles: int = parameter("Roles", "Number of roles", default=1, ge=1, le=8)
    patience: float = parameter("Patience", "Seconds without a count", default=20.0, gt=0)
    fault: Literal[FAULTS] = parameter("Fault", "What goes wrong", default="none")  # type: ignore[valid-type]
    word: str = parameter("Word", "Any text", default="")


class StopParameters(Parameters):
    """Parameters of the command that stops one of many."""

    station: str = parameter("Station", "Which one", default="")


class CounterRole(Role):
    """Counts random numbers of the run's seed."""

    def prepare(self) -> dict[str, Any]:
        settings = self.context.settings
        self._fault: str = settings["fault"]
        self._writer = self.context.series(COUNTED)
        self.context.event("process", "This role's process.", pid=os.getpid(), group=os.getpgid(0))
        if self._fault == "slow prepare":
            time.sleep(60)
        return {"pid": os.getpid()}

    def run(self) -> dict[str, Any]:
        settings = self.context.settings
        numbers = random.Random(settings["seed"])
        total, rate, done = settings["count"], settings["rate"], 0
        start_ns = now_ns()
        while done < total and (not self.context.stop_requested or self._fault == "deaf"):
            due = total if not rate else min(total, int((now_ns() - start_ns) * rate / 1e9))
            step = min(due - done, 500)
            if step > 0:
                self._writer.extend(number=[numbers.getrandbits(31) for _ in range(step)], t_ns=np.full(step, now_ns()))
                self.context.count("counted", step)
                if self._fault == "undeclared channel":
                    self.context.count("secretly counted", step)
                self.context.observe("lateness", np.full(step, 1_000_000 + done))
                done += step
            self.context.tick()
            self._misbehave(done >= total // 2)
            if rate:
                time.sleep(0.005)
        return {"done": done}

    def close(self) -> None:
        if self._fault == "close fault":
            raise ValueError("cannot be closed")

    def _misbehave(self, halfway: bool) -> None:
        if self._fault == "talkative":
            print("word " * 20)
        if not halfway:
            return
        match self._fault:
            case "refuse":
                raise UserError("The counter refuses to continue: ask it nicely.")
            case "fault":
                raise ValueError("three is not a number")
            case "exit":
                os._exit(7)
            case "prints":
                print("a stray line of a role")
                self._fault = "none"
            case "stall":
                while not self.context.stop_requested:
                    self.context.tick()
                    time.sleep(0.01)
            case "fork":
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                self.context.event("process", "A child of this role.", pid=child.pid)
                self._fault = "none"


class CountingTrial(Trial[CountingParameters]):
    """Counts in roles."""

    kind: ClassVar[str] = "practice.counting"
    title: ClassVar[str] = "Counting"
    description: ClassVar[str] = "How fast can one count?"
    parameters: ClassVar[type[Parameters]] = CountingParameters
    on_hosts: ClassVar[bool] = True
    series: ClassVar[tuple[Series, ...]] = (COUNTED,)
    metrics: ClassVar[tuple[MetricKind, ...]] = (
        MetricKind("counted", "Counted", "", Direction.HIGHER, "Numbers that all roles counted."),
        MetricKind("checksum", "Checksum", "", Direction.NEUTRAL, "Their sum modulo 1,000,003."),
    )
    live: ClassVar[tuple[LiveChannel, ...]] = (
        LiveChannel("counted", "Counted", ""),
        LiveChannel("lateness", "Lateness", "ns"),
    )
    commands: ClassVar[tuple[TrialCommand, ...]] = (
        TrialCommand("stop", "Stop", "Is recorded, and nothing else.", StopParameters),
    )

    def run(self, parameters: CountingParameters, context: RunContext) -> None:
        context.event("process", "The worker's process.", pid=os.getpid(), group=os.getpgid(0))
        context.artefact("word.txt", "text/plain", parameters.word.encode())
        if parameters.fault == "same artefact":
            context.artefact("word.txt", "text/plain", b"again")
        if parameters.fault == "trial fault":
            raise ValueError("the trial is wrong")
        roles = [context.start(role) for role in self._roles(parameters, context.seed)]
        for role in roles:
            role.ready()
        begin_ns = now_ns() + 10_000_000
        for role in roles:
            role.begin(begin_ns)
        progress = "secretly counted" if parameters.fault == "undeclared progress" else "counted"
        context.expect(parameters.count * parameters.roles, progress, begin_ns)
        context.event("T0", "The counters begin.", begin_ns=begin_ns)
        if parameters.fault == "commands":
            while (command := context.take_command()) is None and not context.stop_requested:
                time.sleep(0.01)
            context.event("took", f"Took {command}.", Level.WARNING, command=command)
        if parameters.fault == "talkative":
            for index in range(400):
                context.event("talk", f"Word {index}.", index=index)
                time.sleep(0.005)
        context.wait(roles, stall_s=parameters.patience, reason="No counter counts: wake the counters up.")
        if parameters.fault == "prints":  # once the line of the role is whole
            print("a stray line of the trial")
            os.write(1, b"half a line on descriptor 1")
            context.event("after", "Said after half a line.")
        if parameters.fault == "die at the end":
            os._exit(9)

    def evaluate(self, parameters: CountingParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        if parameters.fault == "evaluate fault":
            raise ValueError("cannot be evaluated")
        if parameters.fault == "evaluate slowly":
            time.sleep(2)
        numbers = [samples.table("counted", role)["number"] for role in samples.roles("counted")]
        total = sum(len(part) for part in numbers)
        checksum = int(sum(int(part.sum()) for part in numbers)) % 1_000_003
        whole = total == parameters.count * parameters.roles and parameters.fault != "miscount"
        verdict = Verdict("all counted", "pass" if whole else "fail", f"{total} numbers.", kind=VerdictKind.INTEGRITY)
        disturbed = "a door slammed" if parameters.fault == "disturbed" else ""
        counted = Metric("counted", total, "", samples=total, not_judged=disturbed)
        summed = Metric("sum" if parameters.fault == "undeclared metric" else "checksum", checksum, "")
        metrics = (counted,) if parameters.fault == "missing metric" else (counted, summed)
        return Evaluation(metrics, (verdict,), disturbed)

    def warnings(self, parameters: CountingParameters) -> tuple[str, ...]:
        return ("Counting is not measuring.",)

    @staticmethod
    def _roles(parameters: CountingParameters, seed: int) -> tuple[RoleSpec, ...]:
        settings = {"count": parameters.count, "rate": parameters.rate, "fault": parameters.fault}
        return tuple(
            RoleSpec(f"counter-{index}", "practice_trial:CounterRole", {**settings, "seed": seed + index})
            for index in range(parameters.roles)
        )


class KeyedTrial(CountingTrial):
    """Counts, and says which of its metrics is the key one."""

    kind: ClassVar[str] = "practice.keyed"
    title: ClassVar[str] = "Counting by checksum"
    key_metrics: ClassVar[tuple[str, ...]] = ("checksum",)
