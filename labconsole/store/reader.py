"""The reading side of the store: runs, their details and samples, without ever holding a transaction between calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from statistics import median
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, and_, bindparam, func, select

from labconsole.model.metrics import Direction, Metric, Verdict, VerdictKind
from labconsole.model.placement import checked_placement
from labconsole.model.series import Event
from labconsole.store import schema
from labconsole.store.encoding import time_from_text
from labconsole.store.errors import DamagedDatabaseError, StoreError
from labconsole.store.records import (
    LIVE,
    Evidence,
    RunDetail,
    RunRow,
    RunStatus,
    StoredArtefact,
    StoredFile,
    StoredRole,
    StoredSeries,
)
from labconsole.store.rows import Rows
from labconsole.store.run_reader import RunReader
from labconsole.store.samples import series_columns

METRICS = Rows(Metric, schema.metric)
VERDICTS = Rows(Verdict, schema.verdict)
EVENTS = Rows(Event, schema.event)
_OWNER = (schema.run.c.owner_pid, schema.run.c.owner_started, schema.run.c.owner_boot)
_ARTEFACTS = Rows(StoredArtefact, schema.artefact, size=func.length(schema.artefact.c.content))
_EVIDENCE = Rows(Evidence, schema.evidence)
_RUNS = Rows(
    RunRow,
    schema.run,
    schema.run.join(schema.scenario).join(schema.campaign).outerjoin(schema.note).outerjoin(schema.trash),
    campaign_id=schema.scenario.c.campaign_id,
    campaign=schema.campaign.c.title,
    profile=schema.campaign.c.name,
    scenario=schema.scenario.c.name,
    kind=schema.scenario.c.kind,
    parameters=schema.scenario.c.parameters,
    placement=schema.scenario.c.placement,
    owner=_OWNER,
    note=func.coalesce(schema.note.c.text, ""),
    trashed=schema.trash.c.run_id.is_not(None),
    pinned=schema.run.c.id.in_(select(schema.baseline.c.run_id)),
)
_RECENT_RUNS = 5

_LATENCY, _QUEUE_TIME = "latency_", "queue_time_"
"""A closed loop's latencies had the first name by definitions 1; stored names stay, the second one is shown."""


class UnlabelledMetrics(Mapping[str, Metric]):
    """The unlabelled metrics of one run by name, made when first asked for: a long list of runs shows few of them."""

    def __init__(self, rows: Sequence[Row[Any]], closed_loop: bool) -> None:
        self._rows = rows
        self._closed_loop = closed_loop

    @cached_property
    def _by_name(self) -> dict[str, Metric]:
        try:
            found = METRICS.records(self._rows)
            return {one.name: one for one in (map(_with_current_name, found) if self._closed_loop else found)}
        except ValueError as error:
            raise StoreError(
                f"Metrics of run {self._rows[0].run_id} are damaged ({error}): do not use them."
            ) from error

    def __getitem__(self, name: str) -> Metric:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(self._by_name)


class Reader(RunReader):
    """A read-only connection; threads may use it one at a time. Every method raises StoreError."""

    def runs(
        self,
        *,
        include_trashed: bool = False,
        campaign_id: int | None = None,
        kind: str | None = None,
        metrics: Collection[str] | None = None,
        limit: int | None = None,
    ) -> list[RunRow]:
        """All runs, or those of one campaign or one kind of trial, newest first; the newest `limit` if that is given.

        With `metrics` they carry only those of these names: a long list with few figures is read several times as fast.
        """
        wanted = _RUNS.select.order_by(schema.run.c.id.desc())
        if campaign_id is not None:
            wanted = wanted.where(schema.scenario.c.campaign_id == campaign_id)
        if kind is not None:
            wanted = wanted.where(schema.scenario.c.kind == kind)
        if not include_trashed:
            wanted = wanted.where(schema.trash.c.run_id.is_(None))
        wanted = wanted.limit(limit)
        narrow = campaign_id is not None or kind is not None or limit is not None
        with self.snapshot() as connection:
            return _records(connection, wanted, narrow=narrow, names=metrics)

    def of_parameter(self, kind: str, name: str, value: str) -> list[RunRow]:
        """The runs of one kind of trial whose parameter `name` is this text, newest first, those in the trash too."""
        scenario = schema.scenario.c
        found = func.json_extract(scenario.parameters, f"$.{name}")
        wanted = _RUNS.select.where(scenario.kind == kind, found == value).order_by(schema.run.c.id.desc())
        with self.snapshot() as connection:
            return _records(connection, wanted, narrow=True)

    def comparable(self, run_ids: Sequence[int]) -> list[RunRow]:
        """These runs in this order, with all their metrics: those with labels as `cpu_per_message{role=sender}`.

        Raises StoreError for a run that is not there.
        """
        with self.snapshot() as connection:
            known = {
                row.id: row
                for row in _records(connection, _RUNS.select.where(schema.run.c.id.in_(run_ids)), narrow=True)
            }
            missing = [str(run_id) for run_id in run_ids if run_id not in known]
            if missing:
                raise StoreError(
                    f"There is no run {', '.join(missing)} in {self.path}: see the history for those there are."
                )
            return [
                replace(row, metrics=_labelled(_metrics(connection, row))) for row in map(known.__getitem__, run_ids)
            ]

    def verdicts(self, run_ids: Sequence[int]) -> dict[int, tuple[Verdict, ...]]:
        """The verdicts of these runs, by run; those of a run that is not there are none."""
        with self.snapshot() as connection:
            return {run_id: tuple(VERDICTS.find(connection, "position", run_id=run_id)) for run_id in run_ids}

    def statuses(self, run_ids: Collection[int]) -> dict[int, RunStatus]:
        """The status of each of these runs that is there."""
        run = schema.run.c
        with self.snapshot() as connection:
            rows = connection.execute(select(run.id, run.status).where(run.id.in_(run_ids))).all() if run_ids else []
        return {number: RunStatus(status) for number, status in rows}

    def live_rows(self) -> list[RunRow]:
        """The runs that are queued or running as rows without metrics, in the order of their ids."""
        wanted = _RUNS.select.where(schema.run.c.status.in_(LIVE)).order_by(schema.run.c.id)
        with self.snapshot() as connection:
            return _records(connection, wanted, narrow=True, names=())

    def expected_s(self, campaign_id: int) -> dict[str, float]:
        """How long a run of each scenario of a campaign takes, s, by the scenario's name: the median of the newest five
        runs of any campaign that finished with the same trial, parameters and hosts. Others are left out."""
        wanted, same, run = schema.scenario.alias(), schema.scenario.alias(), schema.run
        alike = and_(*(same.c[name] == wanted.c[name] for name in ("kind", "parameters_sha256", "placement")))
        statement = (
            select(wanted.c.name, run.c.started, run.c.ended)
            .select_from(wanted.join(same, alike).join(run, run.c.scenario_id == same.c.id))
            .where(wanted.c.campaign_id == campaign_id, run.c.status == RunStatus.FINISHED)
            .order_by(wanted.c.name, run.c.id.desc())
        )
        with self.snapshot() as connection:
            rows = connection.execute(statement).all()
        return {
            name: median(
                (time_from_text(ended) - time_from_text(started)).total_seconds()
                for _, started, ended in islice(group, _RECENT_RUNS)
            )
            for name, group in groupby(rows, itemgetter(0))
        }

    def run(self, run_id: int) -> RunDetail:
        """Everything of one run but its samples. Raises StoreError if there is no such run."""
        with self.snapshot() as connection:
            rows = _one_record(connection, run_id)
            if not rows:
                raise StoreError(f"There is no run {run_id} in {self.path}.")
            extra = connection.execute(_extras(), {"of_run": run_id}).one()
            series = _of_run(connection, schema.series, run_id, "name", "role")
            roles = _of_run(connection, schema.role, run_id, "name")
            files = _of_run(connection, schema.role_file, run_id, "role", "key")
            return RunDetail(
                rows[0],
                json.loads(extra.provenance),
                json.loads(extra.thresholds),
                tuple(json.loads(extra.sites)),
                _metrics(connection, rows[0]),
                tuple(VERDICTS.find(connection, "position", run_id=run_id)),
                tuple(EVENTS.find(connection, "t_ns", "role", "seq", run_id=run_id)),
                tuple(map(_series, series)),
                _roles(roles, files),
            )

    def artefacts(self, run_id: int) -> list[StoredArtefact]:
        """The artefacts of a run by name, without their contents; none for a run that is not there."""
        with self.snapshot() as connection:
            return _ARTEFACTS.find(connection, run_id=run_id)

    def artefact(self, run_id: int, name: str) -> bytes:
        """The content of one artefact. Raises StoreError if it is not there, or does not fit its hash."""
        stored = schema.artefact.c
        statement = select(stored.content, stored.sha256).where(stored.run_id == run_id, stored.name == name)
        with self.snapshot() as connection:
            row = connection.execute(statement).first()
        if row is None:
            raise StoreError(f"Run {run_id} has no artefact {name}.")
        if hashlib.sha256(row.content).digest() != row.sha256:
            raise StoreError(f"Artefact {name} of run {run_id} is damaged (its hash is wrong): do not use it.")
        return bytes(row.content)

    def evidence(self, run_id: int) -> Evidence | None:
        """The evidence of a run; None for one that is not there or has not ended."""
        with self.snapshot() as connection:
            return next(iter(_EVIDENCE.find(connection, run_id=run_id)), None)

    def baselines(self) -> dict[str, int]:
        """The pinned baseline of each kind of trial that has one, unless it is in the trash: kind -> run id."""
        baseline, trash = schema.baseline, schema.trash
        kept = select(baseline.c.kind, baseline.c.run_id).where(baseline.c.run_id.not_in(select(trash.c.run_id)))
        with self.snapshot() as connection:
            rows = connection.execute(kept.order_by(baseline.c.kind)).all()
        return {row.kind: row.run_id for row in rows}

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A read transaction, for the store's own modules: short, and never over a turn of an event loop."""
        with self.transaction() as connection:
            try:
                yield connection
            except ValueError as error:  # JSON, a time or a name that is invalid: SQLite does not check our texts
                raise DamagedDatabaseError(self.path, error) from error


def _records(
    connection: Connection, wanted: Select[Any], *, narrow: bool, names: Collection[str] | None = None
) -> list[RunRow]:
    """Runs with their tags, unlabelled metrics (of these `names`) and failed checks, in four statements; `narrow` when
    they are few of all."""
    tagged, figures, failed = _tags(), _unlabelled(), _failed_checks()
    if names is not None:
        figures = figures.where(schema.metric.c.name.in_({*names, *map(_first_name, names)}))
    if narrow:
        ids = wanted.with_only_columns(schema.run.c.id, maintain_column_froms=True)
        tagged = tagged.where(schema.tag.c.run_id.in_(ids))
        figures = figures.where(schema.metric.c.run_id.in_(ids))
        failed = failed.where(schema.verdict.c.run_id.in_(ids))
    return _assembled(*(connection.execute(statement).all() for statement in (wanted, tagged, figures, failed)))


def _one_record(connection: Connection, run_id: int) -> list[RunRow]:
    """The run, nothing if it is not there; by prepared statements, which take longer to build than to run."""
    return _assembled(*(connection.execute(one, {"of_run": run_id}).all() for one in _one_record_statements()))


@cache
def _one_record_statements() -> tuple[Select[Any], ...]:
    made = (
        (_RUNS.select, schema.run.c.id),
        (_tags(), schema.tag.c.run_id),
        (_unlabelled(), schema.metric.c.run_id),
        (_failed_checks(), schema.verdict.c.run_id),
    )
    return tuple(statement.where(of == bindparam("of_run")) for statement, of in made)


@cache
def _extras() -> Select[Any]:
    run, scenario, campaign = schema.run, schema.scenario, schema.campaign
    return (
        select(run.c.provenance, scenario.c.thresholds, campaign.c.sites)
        .select_from(run.join(scenario).join(campaign))
        .where(run.c.id == bindparam("of_run"))
    )


def _tags() -> Select[Any]:
    tag = schema.tag.c
    return select(tag.run_id, tag.name).order_by(tag.run_id, tag.name)


def _unlabelled() -> Select[Any]:
    metric = schema.metric.c
    wanted = METRICS.select.add_columns(metric.run_id).where(metric.labels == "{}")
    return wanted.order_by(metric.run_id, metric.position)


def _failed_checks() -> Select[Any]:
    verdict = schema.verdict.c
    return (
        select(verdict.run_id, verdict.reason)
        .where(verdict.kind == VerdictKind.INTEGRITY, verdict.result == "fail")
        .order_by(verdict.run_id, verdict.position)
    )


def _assembled(
    rows: Sequence[Row[Any]],
    tagged: Sequence[Row[Any]],
    figures: Sequence[Row[Any]],
    failed: Sequence[Row[Any]],
) -> list[RunRow]:
    tags, metrics, checks = _by_run(tagged), _by_run(figures), _by_run(failed)
    parse = cache(json.loads)
    for placement in {row.placement for row in rows}:
        checked_placement(placement)
    return _RUNS.records(
        rows,
        tags=[tuple(one.name for one in tags.get(row.id, ())) for row in rows],
        metrics=[
            UnlabelledMetrics(metrics.get(row.id, ()), _in_closed_loop(row.definitions, parse(row.parameters)))
            for row in rows
        ],
        failed_checks=[tuple(one.reason for one in checks.get(row.id, ())) for row in rows],
    )


def _by_run(rows: Sequence[Row[Any]]) -> dict[int, list[Row[Any]]]:
    """Rows sorted by `run_id`, as one list for each run."""
    return {run_id: list(group) for run_id, group in groupby(rows, attrgetter("run_id"))}


def _of_run(connection: Connection, table: Table, run_id: int, *order: str) -> list[Row[Any]]:
    return list(connection.execute(_of_run_statement(table, order), {"of_run": run_id}).all())


@cache
def _of_run_statement(table: Table, order: tuple[str, ...]) -> Select[Any]:
    return select(table).where(table.c.run_id == bindparam("of_run")).order_by(*(table.c[name] for name in order))


def _in_closed_loop(definitions: int, parameters: Mapping[str, Any]) -> bool:
    """Whether a run has latencies that its trial today calls time in queue, and does not judge."""
    return definitions == 1 and parameters.get("loop") == "closed"


def _with_current_name(metric: Metric) -> Metric:
    """A latency of a closed loop under the name that it has since definitions 2; any other figure as it is."""
    if not metric.name.startswith(_LATENCY):
        return metric
    name = f"{_QUEUE_TIME}{metric.name.removeprefix(_LATENCY)}"
    return replace(metric, name=name, direction=Direction.NEUTRAL)


def _first_name(name: str) -> str:
    """The name that a figure had with definitions 1, in a closed loop."""
    return f"{_LATENCY}{name.removeprefix(_QUEUE_TIME)}" if name.startswith(_QUEUE_TIME) else name


def _labelled(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Metrics by name, labels in braces behind it."""
    found = {}
    for metric in metrics:
        labels = ",".join(f"{name}={value}" for name, value in sorted(metric.labels.items()))
        found[f"{metric.name}{{{labels}}}" if labels else metric.name] = metric
    return found


def _metrics(connection: Connection, run: RunRow) -> tuple[Metric, ...]:
    """All metrics of a run, by the names of today."""
    found = METRICS.find(connection, "position", run_id=run.id)
    for metric in found:
        if metric.fault:
            raise ValueError(f"run {run.id}: {metric.fault}")
    return tuple(map(_with_current_name, found) if _in_closed_loop(run.definitions, run.parameters) else found)


def _roles(roles: Sequence[Row[Any]], files: Sequence[Row[Any]]) -> tuple[StoredRole, ...]:
    """Roles with their files, both sorted by the role's name."""
    of_role = {
        name: tuple(StoredFile(file.key, file.name, file.size, file.sha256.hex()) for file in group)
        for name, group in groupby(files, lambda file: file.role)
    }
    return tuple(StoredRole(row.name, row.host, row.clock_domain, of_role.get(row.name, ())) for row in roles)


def _series(row: Row[Any]) -> StoredSeries:
    columns = tuple((column.name, column.dtype, column.unit) for column in series_columns(row.columns))
    return StoredSeries(row.name, row.role, row.title, row.origin, row.rows, columns)
