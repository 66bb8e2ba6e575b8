"""A trial of roles that read a file, which may be edited in mid-run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from practice_light_role import READINGS

from labconsole.clock import now_ns
from labconsole.model.metrics import Evaluation, MetricKind
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.series import Event, LiveChannel, Series
from labconsole.model.trial import RoleSpec, RunContext, Samples, Trial

READER = "practice_light_role:ReaderRole"


class FilesParameters(Parameters):
    """What the roles read."""

    note: str = parameter("Note", "A file", default="")
    edited: str = parameter("Edited", "What is written into the file in mid-run", default="")
    host: str = parameter("Host", "Where the roles are started; empty: here", default="")


class FilesTrial(Trial[FilesParameters]):
    """One role reads the file before it is edited, two more afterwards."""

    kind: ClassVar[str] = "practice.files"
    title: ClassVar[str] = "Reading"
    description: ClassVar[str] = "What does a role read?"
    parameters: ClassVar[type[Parameters]] = FilesParameters
    series: ClassVar[tuple[Series, ...]] = (READINGS,)
    metrics: ClassVar[tuple[MetricKind, ...]] = ()
    live: ClassVar[tuple[LiveChannel, ...]] = ()

    def run(self, parameters: FilesParameters, context: RunContext) -> None:
        files = {"note": Path(parameters.note)} if parameters.note else {}
        first, *others = (RoleSpec(f"reader-{index}", READER, {}, files=files) for index in range(3))
        started = [context.start(first, parameters.host or None)]
        started[0].ready()
        if parameters.edited:
            Path(parameters.note).write_text(parameters.edited)
        started += [context.start(role) for role in others]
        for role in started:
            role.ready()
            role.begin(now_ns())
        context.wait(started, stall_s=20, reason="The readers do not come to their end.")

    def evaluate(self, parameters: FilesParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return Evaluation(())
