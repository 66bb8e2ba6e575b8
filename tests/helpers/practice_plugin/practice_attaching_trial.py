"""A trial that attaches files of any size and records packets, each of which follows from the seed."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.metrics import Direction, Evaluation, Metric, MetricKind
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.role import Role
from labconsole.model.series import BYTES, Column, Event, LiveChannel, Series
from labconsole.model.trial import RoleSpec, RunContext, Samples, Trial

CAPTURE, LOG = "capture.pcapng", "trial.log"
MEDIA_TYPE = "application/x-pcapng"
WRITE_BYTES = 65_536
PACKETS = Series(
    "packets", "Packets", (Column("t_ns", "i8", "ns", "Time"), Column("packet", BYTES, "", "Packet as it was sent"))
)
LINE = "One line of a log that compresses well.\n"


def written(seed: int, size: int) -> Iterator[bytes]:
    """What a role writes to its attachment: noise, which does not compress."""
    for number, first in enumerate(range(0, size, WRITE_BYTES)):
        yield random.Random(seed * 1_000_003 + number).randbytes(min(WRITE_BYTES, size - first))


def packets(seed: int, count: int) -> list[bytes]:
    """The packets that a role records: from none to 600 bytes, zeros at the end of some."""
    numbers = random.Random(seed)
    return [numbers.randbytes(numbers.randrange(0, 600)) + bytes(number % 3) for number in range(count)]


class AttachingParameters(Parameters):
    """How much to attach, and how to go wrong."""

    size: int = parameter("Size", "Bytes of each attachment", default=3_500_000, ge=0)
    packets: int = parameter("Packets", "Packets that each role records", default=5_000, ge=0)
    rate: int = parameter("Rate", "Bytes a second, 0 for as fast as possible", default=0, ge=0)
    roles: int = parameter("Roles", "Number of roles", default=1, ge=1, le=4)
    lines: int = parameter("Lines", "Lines of the run's own log", default=100_000, ge=0)
    fault: str = parameter("Fault", "What goes wrong, as the roles and the trial name it", default="")


class CaptureRole(Role):
    """Writes an attachment and records packets."""

    def prepare(self) -> dict[str, Any]:
        self.context.event("process", "This role's process.", pid=os.getpid())
        self._writer = self.context.series(PACKETS)
        return {}

    def run(self) -> dict[str, Any]:
        settings = self.context.settings
        size, rate, fault, done, start_ns = settings["size"], settings["rate"], settings["fault"], 0, now_ns()
        if fault == "bad name":
            self.context.attachment("../capture.pcapng", MEDIA_TYPE)
        with self.context.attachment(CAPTURE, MEDIA_TYPE) as file:
            for part in written(settings["seed"], size):
                file.write(part)
                done += len(part)
                self.context.count("written", len(part))
                self.context.tick()
                if fault and done > size // 2:
                    self._fail(fault)
                if self.context.stop_requested:
                    raise UserError("Stopped.")
                if rate:
                    time.sleep(max(0.0, done / rate - (now_ns() - start_ns) / 1e9))
        recorded = packets(settings["seed"], settings["packets"])
        for first in range(0, len(recorded), 100):
            part = recorded[first : first + 100]
            self._writer.extend(t_ns=range(first, first + len(part)), packet=part)
        return {}

    def _fail(self, fault: str) -> None:
        if fault == "same name":
            self.context.attachment(CAPTURE, MEDIA_TYPE)
        raise ValueError("the capture broke off")


class AttachingTrial(Trial[AttachingParameters]):
    """Attaches in roles, and a log of its own."""

    kind: ClassVar[str] = "practice.attaching"
    title: ClassVar[str] = "Attaching"
    description: ClassVar[str] = "How much can be kept?"
    parameters: ClassVar[type[Parameters]] = AttachingParameters
    series: ClassVar[tuple[Series, ...]] = (PACKETS,)
    metrics: ClassVar[tuple[MetricKind, ...]] = (
        MetricKind("packet_bytes", "Bytes", "B", Direction.HIGHER, "Bytes of all packets."),
    )
    live: ClassVar[tuple[LiveChannel, ...]] = (LiveChannel("written", "Written", "B"),)

    def run(self, parameters: AttachingParameters, context: RunContext) -> None:
        with context.attachment(LOG, "text/plain") as log:
            for _ in range(parameters.lines):
                log.write(LINE.encode())
            if parameters.fault == "trial error":
                raise ValueError("the log broke off")
        roles = [
            context.start(
                RoleSpec(
                    f"sniffer-{index}",
                    "practice_attaching_trial:CaptureRole",
                    {**parameters.model_dump(), "seed": context.seed + index},
                )
            )
            for index in range(parameters.roles)
        ]
        for role in roles:
            role.ready()
        begin_ns = now_ns()
        for role in roles:
            role.begin(begin_ns)
        context.expect(parameters.size * parameters.roles, "written", begin_ns)
        context.wait(roles, stall_s=60, reason="Nothing was written for 60 s.")

    def evaluate(self, parameters: AttachingParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        tables = [samples.table("packets", role) for role in samples.roles("packets")]
        total = sum(len(packet) for table in tables for packet in table["packet"])
        return Evaluation((Metric("packet_bytes", total, "B", Direction.HIGHER, len(tables)),))
