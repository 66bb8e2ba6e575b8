"""What a role records: series of samples, events, live channels. Its process imports this, not all of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Origin(StrEnum):
    """How a figure came about; never mixed up in one comparison without saying so."""

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


@dataclass(frozen=True)
class Column:
    """One column of a series: numpy dtype string (`"i8"`, `"u4"`, `"u1"`, `"f8"`) and unit (`""` for plain numbers)."""

    name: str
    dtype: str
    unit: str
    title: str


@dataclass(frozen=True)
class Series:
    """A table of samples that roles record, one row per message, request or reading."""

    name: str
    title: str
    columns: tuple[Column, ...]
    origin: Origin = Origin.MEASURED


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


@dataclass(frozen=True)
class Event:
    """Something that happened in a run at `t_ns` (`clock.now_ns`), said in one sentence."""

    t_ns: int
    source: str
    level: Level
    name: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)
