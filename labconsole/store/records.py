"""Records of the store as plain dataclasses: campaigns, scenarios, runs, notes, tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from labconsole.clock import wall_time
from labconsole.model.metrics import Metric, Verdict
from labconsole.model.placement import Placement
from labconsole.model.series import Event
from labconsole.processes import Owner


class RunStatus(StrEnum):
    """The status of a run. The last five are final."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def final(self) -> bool:
        """Whether the run will no longer change."""
        return self not in LIVE


LIVE = (RunStatus.QUEUED, RunStatus.RUNNING)
"""The status of a run that has not ended."""


@dataclass(frozen=True)
class LiveRun:
    """A run that is queued or running, and the process that owns it."""

    id: int
    uuid: str
    status: RunStatus
    owner: Owner


@dataclass(frozen=True)
class NewScenario:
    """A scenario to be stored: trial kind, canonical parameters (plain JSON), and the hosts of its roles."""

    name: str
    kind: str
    parameters: Mapping[str, Any]
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    placement: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON of a `labconsole.model.placement.Placement` with all values; {}: all roles stay on this computer."""


@dataclass(frozen=True)
class NewCampaign:
    """A campaign to be stored: its profile's text, its scenarios, and the order in which their repeats run.

    `order` holds (index of scenario, repeat counted from 1) pairs; `sites` is the profile's resource table.
    """

    name: str
    title: str
    profile_text: str
    order_seed: int
    scenarios: tuple[NewScenario, ...]
    order: tuple[tuple[int, int], ...]
    sites: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class RunRow:
    """One run as the history shows it. Times are UTC; `metrics` holds unlabelled metrics by name
    (with labels too where `Reader.comparable` read it)."""

    id: int
    uuid: str
    campaign_id: int
    campaign: str
    profile: str
    scenario: str
    kind: str
    parameters: Mapping[str, Any]
    repeat: int
    position: int
    status: RunStatus
    reason: str
    seed: int
    created: datetime
    started: datetime | None
    ended: datetime | None
    owner: Owner | None
    tags: tuple[str, ...]
    note: str
    trashed: bool
    metrics: Mapping[str, Metric]
    warnings: tuple[str, ...] = ()
    """Caveats for a reader of the figures, by the trial before the run: one sentence each."""
    pinned: bool = False
    """Whether it is the baseline of its kind of trial."""
    definitions: int = 1
    """Version of the metric definitions by which it is evaluated (`labconsole.model.trial.Trial.definitions`)."""
    failed_checks: tuple[str, ...] = ()
    """The reasons of its failed integrity verdicts, one sentence each: its figures prove nothing."""
    placement: Mapping[str, Any] = field(default_factory=dict)
    """That of its scenario (`NewScenario.placement`)."""

    @property
    def hosts(self) -> str:
        """The hosts that its scenario asks for, in words; empty where all roles stay on this computer."""
        return str(Placement.of_stored(self.placement) or "")

    @property
    def duration_s(self) -> float | None:
        """Seconds between start and end, if both are known."""
        if self.started is None or self.ended is None:
            return None
        return (self.ended - self.started).total_seconds()


@dataclass(frozen=True)
class StoredSeries:
    """A series of one role in one run: its columns' dtypes and units, rows, and where the figures come from."""

    name: str
    role: str
    title: str
    origin: str
    rows: int
    columns: tuple[tuple[str, str, str], ...]
    """(name, dtype, unit) of each column."""


@dataclass(frozen=True)
class StoredArtefact:
    """A small file kept with a run; `size` is in bytes, `sha256` in hexadecimal."""

    name: str
    media_type: str
    size: int
    sha256: str


@dataclass(frozen=True)
class StoredFile:
    """A file that travelled with a run: `key` is the name by which its role asks for it, `name` is without
    directories."""

    key: str
    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class StoredRole:
    """A role that a run started: on which host, by which clock (`labconsole.clock.clock_domain`), with which files."""

    name: str
    host: str
    clock_domain: str
    files: tuple[StoredFile, ...] = ()


@dataclass(frozen=True)
class StoredAttachment:
    """A file of any size that `role` wrote while it ran; `size` is in bytes, `sha256` in hexadecimal."""

    role: str
    name: str
    media_type: str
    size: int
    sha256: str | None
    """None for a file that was cut: its role or the run ended before it was complete."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of a run: the digest over all of it, in hexadecimal (`labconsole.store.evidence`), and when.

    A run of a database of an older version was sealed when that was migrated, not when it ended.
    """

    digest: str
    sealed: datetime


@dataclass(frozen=True)
class RunDetail:
    """Everything of one run but its samples."""

    row: RunRow
    provenance: Mapping[str, Any]
    thresholds: Mapping[str, Mapping[str, float]]
    sites: tuple[Mapping[str, str], ...]
    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...]
    events: tuple[Event, ...]
    series: tuple[StoredSeries, ...]
    roles: tuple[StoredRole, ...] = ()
    """By name; none of a run that was written before version 5 of the database."""

    @property
    def placement(self) -> Mapping[str, Any]:
        """The hosts that its scenario asks for (`NewScenario.placement`): plain JSON, {} where it asks for none."""
        return self.row.placement

    @property
    def surroundings(self) -> dict[str, Any]:
        """The provenance, with the roles by host and clock domain, and the files that they read."""
        hosts = ((role.host, f"clock {role.clock_domain}", role.name) for role in self.roles)
        files = (
            (file.name, f"{file.size:,} B, SHA-256 {file.sha256}", role.name)
            for role in self.roles
            for file in role.files
        )
        found = {"roles": _roles_by_name(hosts), "files": _roles_by_name(files)}
        return {**self.provenance, **{what: names for what, names in found.items() if names}}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats for a reader of the figures, one sentence each."""
        return self.row.warnings

    def wall_time(self, event: Event) -> datetime | None:
        """The time of an event of this run, UTC; None where the offset of its clock is unknown."""
        offset_ns = self.provenance.get("wall_offset_ns")
        return None if offset_ns is None else wall_time(event.t_ns, int(offset_ns))


def _roles_by_name(entries: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """For each name the roles that have it, with their detail in brackets; `entries` are name, detail and role."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, detail, role in entries:
        found.setdefault(name, {}).setdefault(detail, []).append(role)
    return {
        name: "; ".join(f"{', '.join(dict.fromkeys(roles))} ({detail})" for detail, roles in details.items())
        for name, details in found.items()
    }
