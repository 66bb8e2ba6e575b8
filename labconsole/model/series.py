"""Records of a run: series, attachments, events, live channels. Light, because the process of each role imports it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray


class Origin(StrEnum):
    """The source of a figure; a comparison says so where it mixes several."""

    MEASURED = "measured"
    EMULATED = "emulated"
    SIMULATED = "simulated"
    CALCULATED = "calculated"
    PUBLISHED = "published"


class Level(StrEnum):
    """How much an event matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


BYTES = "bytes"
"""The dtype of a column whose values are bytes of any length (a packet, say), 1 MiB in a row at most."""


@dataclass(frozen=True)
class Column:
    """One column of a series: numpy dtype string (`"i8"`, `"u4"`, `"u1"`, `"f8"`) or `BYTES`, and unit (`""` for plain
    numbers). `by_clock`: its values are times of the clock of the role's host (`clock.now_ns`); `since_epoch`: they
    are times since the Unix epoch."""

    name: str
    dtype: str
    unit: str
    title: str
    by_clock: bool = False
    since_epoch: bool = False

    @property
    def numpy_type(self) -> np.dtype[Any]:
        """The dtype of this column's arrays: little-endian, or `object` where each value is a `bytes`."""
        return numpy_type(self.dtype)


def numpy_type(dtype: str) -> np.dtype[Any]:
    """The dtype of the arrays of a column with this `Column.dtype`."""
    return np.dtype(object) if dtype == BYTES else np.dtype(dtype).newbyteorder("<")


@dataclass(frozen=True)
class Series:
    """A table of samples that roles record, one row per message, request or reading."""

    name: str
    title: str
    columns: tuple[Column, ...]
    origin: Origin = Origin.MEASURED


MACHINE = Series(
    "machine",
    "CPU time of the computer and of the run, all cores together, since the first reading",
    (
        Column("t_ns", "i8", "ns", "Time", by_clock=True),
        Column("all_ns", "i8", "ns", "Time of all cores, busy or idle"),
        Column("busy_ns", "i8", "ns", "Time that cores were busy"),
        Column("own_ns", "i8", "ns", "CPU time of the run: its roles, its worker, and the console that started it"),
        Column("steal_ns", "i8", "ns", "Time that a hypervisor gave to others; 0 where it is not known"),
    ),
)
"""The computer during a run: recorded by the worker of each run, ten times a second, and by each host with roles, whose
role is `MACHINE_OF_HOST` with its name."""
MACHINE_OF_HOST = "host-"

RESOURCES = Series(
    "resources",
    "CPU and memory of each process",
    (
        Column("t_ns", "i8", "ns", "Time", by_clock=True),
        Column("cpu", "f4", "%", "CPU (100 % = one core)"),
        Column("rss", "i8", "B", "Resident memory"),
    ),
)
"""Each process of a run: recorded by the worker of each run."""

SURROUNDINGS: Final = frozenset({MACHINE.name, RESOURCES.name})
"""The series that no role of a trial records itself."""

FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""A valid name of an artefact or an attachment: it becomes the name of a file in exports and bundles."""


class Attachment(Protocol):
    """A file of any size that a run keeps, written from its start to its end, from any thread.

    What was written goes to disk in blocks of 1 MiB, or four times a second in a role that calls `tick`: a kill costs
    at most the last block. The file is complete once it is closed; left by an exception, or never closed, it is kept
    and marked as cut. `write` and `close` raise UserError when the disk is full, which cuts it too.
    """

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append bytes, and return their number. Raises ValueError once it is closed."""

    def close(self) -> None:
        """Complete the file; a second call does nothing."""

    def __enter__(self) -> Self:
        """The attachment itself, which is closed when the block is left without an exception."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it, or leave it cut after an exception."""


class LiveKind(StrEnum):
    """How the live view gets the values of a channel."""

    TOTAL = "total"
    """Counts, or observations where the unit is ns: added up over the roles."""
    GAUGE = "gauge"
    """A number of each role (`RoleContext.gauge`): the newest one replaces those before."""
    STATE = "state"
    """A small JSON object of each role (`RoleContext.state`): the newest one replaces those before."""


@dataclass(frozen=True)
class LiveChannel:
    """What roles report while they run: a counted quantity (`counter`), observations in ns (`latency`), or the newest
    value of each role, as `kind` says.

    The live view shows all that are `shown`; the others are there for the trial's own panel. A total `by_role` also
    has the count of each role.
    """

    name: str
    title: str
    unit: str
    shown: bool = True
    kind: LiveKind = LiveKind.TOTAL
    by_role: bool = False

    @property
    def has_roles(self) -> bool:
        """Whether live frames carry a value of each role."""
        return self.by_role or self.kind is not LiveKind.TOTAL


TIME_PROGRESS = LiveChannel("elapsed", "Time", "s", shown=False)
"""Progress of a run that time limits: whole seconds since T0, counted by one role. It has no rate worth showing."""


EVENT_TIMES = ("begin_ns", "end_ns")
"""Keys in the data of events whose values are times of the run's clock, and stay so where clocks are corrected."""


@dataclass(frozen=True)
class Event:
    """Something that happened in a run at `t_ns` (`clock.now_ns`); `message` is one sentence."""

    t_ns: int
    source: str
    level: Level
    name: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


REMEDY = "remedy"
"""Name of the event with a remedy, of a run that cannot start.

Its data: `title`, the text of a button ("Drain the queue and run again"), and `parameters`, the values of parameters to
change; the window offers to queue the scenario again with them.
"""

LENGTH = np.dtype("<u4")
"""The dtype of a stored length."""


def byte_lengths(values: list[Any]) -> NDArray[np.uint32]:
    """The lengths of these values."""
    return np.fromiter(map(len, values), LENGTH, len(values))


def split_byte_values(raw: bytes, position: int, lengths: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
    """The values of these lengths in `raw` from `position` on, as an array of `bytes`, and where they end.

    Raises ValueError unless all of them are there.
    """
    ends = (position + np.cumsum(lengths, dtype=np.int64)).tolist()
    begins = [position, *ends]
    if begins[-1] > len(raw):
        raise ValueError(f"values of {begins[-1] - position} bytes are declared, {len(raw) - position} are there")
    values = np.empty(len(lengths), object)
    values[:] = [raw[begin:end] for begin, end in zip(begins, ends, strict=False)]
    return values, begins[-1]
