"""The samples, events, roles and parameters of two ends as those of one run, all times by the sender's clock."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from labconsole.clock_comparison import COMPARED, HOST_COMPARED, HOST_JUMPED, ClockComparison
from labconsole.errors import UserError
from labconsole.model.series import EVENT_TIMES, MACHINE, RESOURCES, Event, Series
from labconsole.model.trial import Samples
from labconsole.model.validation_faults import fault_sentence
from labconsole.store.records import RunDetail, StoredRole
from labconsole.store.run_store import EventRecord, SampleChunk
from labconsole_amqp.choices import Mode
from labconsole_amqp.parameters import AmqpParameters, field_label
from labconsole_amqp.series import ACKNOWLEDGED, RECEIVED, SENT

_SERIES = {series.name: series for series in (SENT, ACKNOWLEDGED, RECEIVED, MACHINE, RESOURCES)}
_TIMES = {"received": ("received_ns",), MACHINE.name: ("t_ns",), RESOURCES.name: ("t_ns",)}
"""Columns of the receiver's samples with times of its clock."""
_SAME = (
    "test",
    "envelope",
    "message_sizes",
    "smallest_size",
    "largest_size",
    "median_size",
    "size_spread",
    "share_small",
    "share_fpl_tac",
    "share_fpl_fixm",
    "size_seed",
    "count",
    "warm_up",
    "loop",
    "rate",
    "senders",
    "settlement",
    "fields_in",
    "durable",
    "numbered",
)
"""Parameters that both ends of one trial must have alike."""


@dataclass(frozen=True)
class End:
    """One of the two runs."""

    detail: RunDetail
    samples: Samples
    parameters: AmqpParameters

    @property
    def name(self) -> str:
        """`sender` or `receiver`."""
        return self.parameters.mode.value

    @property
    def trial(self) -> str:
        """The id of its trial; empty without one."""
        found = [event.data["trial"] for event in self.detail.events if event.name == COMPARED]
        return found[0] if found else self.parameters.trial_id

    @cached_property
    def clocks(self) -> ClockComparison | None:
        """What it recorded of the clocks; the sender's console measures, and both record the same."""
        return ClockComparison.of_events(self.detail.events)

    def role(self, name: str) -> str:
        """The name of a role of this run in the merged one."""
        return name if name.startswith(f"{self.name}-") else f"{name}-{self.name}"


@dataclass(frozen=True)
class BothEnds:
    """`Samples` of both runs together. Raises UserError: they are not two ends of one trial."""

    sender: End
    receiver: End
    clocks: ClockComparison

    @classmethod
    def of(cls, one: End, other: End) -> BothEnds:
        """The two runs, in any order. Raises UserError."""
        ends = {end.parameters.mode: end for end in (one, other)}
        if ends.keys() != {Mode.SENDER, Mode.RECEIVER}:
            raise UserError(
                f"Run {one.detail.row.id} plays {one.name} and run {other.detail.row.id} {other.name}: choose one run "
                "of a console that plays the sender only, and one of a console that plays the receiver only."
            )
        sender, receiver = ends[Mode.SENDER], ends[Mode.RECEIVER]
        if not sender.trial or sender.trial != receiver.trial:
            raise UserError(
                f"The trial id is {sender.trial or 'missing'} at the sender and {receiver.trial or 'missing'} at the "
                f"receiver: these runs are not two ends of one trial. {field_label('compare_clocks')} gives both the "
                "same one."
            )
        for field in _SAME:
            values = getattr(sender.parameters, field), getattr(receiver.parameters, field)
            if values[0] != values[1]:
                raise UserError(
                    f"{field_label(field)} is {values[0]} at the sender and {values[1]} at the receiver: run both "
                    "consoles again with the same parameters."
                )
        clocks = sender.clocks
        if clocks is None:
            raise UserError(
                "The clocks of the two consoles were not compared, so that times of one say nothing about those of the "
                f"other: run both again with {field_label('compare_clocks')} and the clock queues."
            )
        if receiver.clocks is None or receiver.clocks.before != clocks.before:
            raise UserError(
                f"Runs {sender.detail.row.id} and {receiver.detail.row.id} have one trial id, but compared clocks "
                "in different sessions: they are not of one run of the trial. Import the bundle of the run that the "
                "other console made at the same time."
            )
        return cls(sender, receiver, clocks)

    @property
    def parameters(self) -> AmqpParameters:
        """The parameters of both ends: the sender's, with what concerns the receiver alone. Raises UserError."""
        values = self.sender.parameters.model_dump(mode="json")
        theirs = self.receiver.parameters.model_dump(mode="json")
        values |= {name: value for name, value in theirs.items() if name.startswith("receiver")}
        values |= {"mode": Mode.BOTH.value, "trial_id": self.sender.trial}
        try:
            return AmqpParameters.of_stored(values)
        except ValidationError as error:
            raise UserError(f"The two runs do not fit together: {fault_sentence(error, AmqpParameters)}") from error

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events of both, in order of time."""
        own = [replace(event, source=self.sender.role(event.source)) for event in self.sender.detail.events]
        theirs = [self._of_receiver(event) for event in self.receiver.detail.events]
        return tuple(sorted((*own, *theirs), key=lambda event: event.t_ns))

    def event_records(self) -> list[EventRecord]:
        """The events as rows."""
        return [EventRecord("merged", number, event) for number, event in enumerate(self.events)]

    def stored_roles(self) -> list[StoredRole]:
        """The roles of both, each with its host and clock."""
        ends = (self.sender, self.receiver)
        return [replace(role, name=end.role(role.name)) for end in ends for role in end.detail.roles]

    def chunks(self) -> Iterator[SampleChunk]:
        """Yield all samples. Raises UserError: another version has recorded them."""
        for end in (self.sender, self.receiver):
            for stored in end.detail.series:
                series = _declared(stored.name, [(name, dtype) for name, dtype, _ in stored.columns])
                role = end.role(stored.role)
                for number, part in enumerate(self.parts(stored.name, role)):
                    yield SampleChunk(role, series, number, len(part[series.columns[0].name]), part)

    # `Samples`

    @property
    def definitions(self) -> int:
        """Version of the metrics' definitions by which the merged run is evaluated: the later one."""
        return max(self.sender.samples.definitions, self.receiver.samples.definitions)

    def roles(self, series: str) -> list[str]:
        """As `Samples.roles`."""
        return sorted(self._places(series))

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        """As `Samples.table`."""
        end, name = self._places(series)[role]
        return self._corrected(end, series, end.samples.table(series, name))

    def parts(
        self, series: str, role: str, numbers: Collection[int] | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """As `Samples.parts`."""
        end, name = self._places(series)[role]
        return (self._corrected(end, series, part) for part in end.samples.parts(series, name, numbers))

    def _places(self, series: str) -> dict[str, tuple[End, str]]:
        ends = (self.sender, self.receiver)
        return {end.role(name): (end, name) for end in ends for name in end.samples.roles(series)}

    def _corrected(self, end: End, series: str, table: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if end is self.sender:
            return table
        return {**table, **{name: self.clocks.to_sender(table[name]) for name in _TIMES.get(series, ())}}

    def _of_receiver(self, event: Event) -> Event:
        data: Mapping[str, Any] = event.data
        data = {**data, **{name: self._at(data[name]) for name in EVENT_TIMES if name in data}}
        if event.name in (HOST_COMPARED, HOST_JUMPED):  # the sender's console may have a host of this name
            data = {**data, "host": f"{data['host']} of the receiver"}
        name = f"{event.name} of the receiver" if event.name == "T0" else event.name
        return replace(event, t_ns=self._at(event.t_ns), source=self.receiver.role(event.source), name=name, data=data)

    def _at(self, receiver_ns: int) -> int:
        return int(self.clocks.to_sender(np.array([receiver_ns], np.int64))[0])


def _declared(name: str, columns: Sequence[tuple[str, str]]) -> Series:
    series = _SERIES.get(name)
    if series is None or [(column.name, column.dtype) for column in series.columns] != list(columns):
        raise UserError(
            f"The samples {name} were recorded by another version of the console: bring both consoles to the same "
            "version, and run the trial again."
        )
    return series
