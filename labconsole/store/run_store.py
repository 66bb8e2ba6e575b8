"""The writing side of the store: records of consoles and workers for the run database."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray
from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from labconsole.model.metrics import Evaluation
from labconsole.model.series import FILE_NAME, Event, Series
from labconsole.processes import Owner
from labconsole.store import chunks as column_chunks
from labconsole.store import schema
from labconsole.store.attachments import AttachmentPiece, append_piece
from labconsole.store.encoding import sha256_hex, time_to_text, to_json, to_shown_json, to_stored_text
from labconsole.store.errors import StoreError
from labconsole.store.evidence_sealing import seal
from labconsole.store.reader import EVENTS, METRICS, VERDICTS, Reader
from labconsole.store.records import LIVE, LiveRun, NewCampaign, RunStatus, StoredFile, StoredRole
from labconsole.store.rows import Prepared, Rows, inserted, inserting, updating
from labconsole.store.run_database import RUN_DATABASE
from labconsole.store.writer import Writer

_SERIES = Prepared(select(schema.series).where(schema.series.c.run_id == bindparam("of_run")))
_CHUNK = ("series_id", "seq", "rows", "sha256", "payload")
_GROWN = ("chunks", "rows", "link")
"""Columns of a series that change with each chunk."""
_ROLES = Rows(StoredRole, schema.role)
_FILES = Rows(StoredFile, schema.role_file)
ARTEFACT_LIMIT = 1_000_000
"""The most bytes of an artefact."""


@dataclass(frozen=True)
class SampleChunk:
    """`rows` rows that `role` recorded of `series`; `seq` counts the chunks of that series from 0."""

    role: str
    series: Series
    seq: int
    rows: int
    columns: Mapping[str, NDArray[Any]]


class RunInProgressError(StoreError):
    """Another process conducts a run of this database: two at a time would disturb each other's figures."""


@dataclass(frozen=True)
class EventRecord:
    """An event of a role: `seq` counts the events of `role` from 0."""

    role: str
    seq: int
    event: Event


class Store:
    """Writes runs. Every method is one transaction and raises StoreError, with nothing written."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    @classmethod
    def open(cls, path: Path, *, lock_timeout_s: float = 30.0) -> Store:
        """Open the database, created or migrated (with a backup next to it) where needed. Raises StoreError."""
        return cls(Writer(path, RUN_DATABASE, lock_timeout_s))

    @property
    def path(self) -> Path:
        """The database file."""
        return self.writer.path

    def close(self) -> None:
        """Release the database; a second call does nothing."""
        self.writer.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add_campaign(self, campaign: NewCampaign, owner: Owner, created: datetime) -> list[int]:
        """Store a campaign, its scenarios, and a queued run for each entry of its order; returns the runs' ids."""
        with self.writer.transaction(durable=True) as connection:
            described = {
                "name": campaign.name,
                "title": campaign.title,
                "profile_text": campaign.profile_text,
                "profile_sha256": sha256_hex(campaign.profile_text),
                "order_seed": campaign.order_seed,
                "sites": to_json([dict(site) for site in campaign.sites]),
                "created": time_to_text(created),
            }
            campaign_id = inserted(connection, schema.campaign, described)
            scenarios = []
            for position, scenario in enumerate(campaign.scenarios):
                parameters = to_json(scenario.parameters)
                values = {
                    "campaign_id": campaign_id,
                    "position": position,
                    "name": scenario.name,
                    "kind": scenario.kind,
                    "parameters": parameters,
                    "parameters_sha256": sha256_hex(parameters),
                    "thresholds": to_json({name: dict(limits) for name, limits in scenario.thresholds.items()}),
                    "placement": to_json(scenario.placement),
                }
                scenarios.append(inserted(connection, schema.scenario, values))
            return [
                _add_run(connection, scenarios[index], repeat, position, campaign.order_seed, owner, created)
                for position, (index, repeat) in enumerate(campaign.order)
            ]

    def add_repeat(self, run_id: int, owner: Owner, created: datetime) -> int:
        """Store another queued run of the same scenario, last in its campaign; returns its id."""
        run, scenario, campaign = schema.run.c, schema.scenario.c, schema.campaign.c
        siblings = schema.run.alias().c
        with self.writer.transaction(durable=True) as connection:
            self._existing(connection, run_id)
            row = connection.execute(
                select(scenario.id, scenario.campaign_id, campaign.order_seed)
                .select_from(schema.run.join(schema.scenario).join(schema.campaign))
                .where(run.id == run_id)
            ).one()
            repeat = connection.execute(select(func.max(run.repeat)).where(run.scenario_id == row.id)).scalar_one()
            position = connection.execute(
                select(func.max(siblings.position)).where(
                    siblings.scenario_id.in_(select(scenario.id).where(scenario.campaign_id == row.campaign_id))
                )
            ).scalar_one()
            return _add_run(connection, row.id, repeat + 1, position + 1, row.order_seed, owner, created)

    def run_started(
        self,
        run_id: int,
        owner: Owner,
        provenance: Mapping[str, Any],
        warnings: Sequence[str],
        started: datetime,
        *,
        definitions: int = 1,
        is_alive: Callable[[Owner], bool] = lambda _owner: False,
    ) -> None:
        """Start a queued run in the process `owner`, which alone writes it from now on.

        `definitions` is the version of its trial's metric definitions. Raises RunInProgressError, with nothing changed,
        while another run is in progress in a process that `is_alive`.
        """
        run = schema.run.c
        running = select(run.id, run.owner_pid, run.owner_started, run.owner_boot).where(
            run.status == RunStatus.RUNNING, run.id != run_id
        )
        with self.writer.transaction(durable=True) as connection:
            for other, *columns in connection.execute(running):
                if is_alive(Owner(*columns)):
                    raise RunInProgressError(f"Run {other} is in progress in this database: run {run_id} waits for it.")
            self._change_status(
                connection,
                run_id,
                (RunStatus.QUEUED,),
                status=RunStatus.RUNNING,
                started=time_to_text(started),
                provenance=to_json(provenance),
                warnings=to_json(list(warnings)),
                definitions=definitions,
                **_owner_columns(owner),
            )

    def run_ended(self, run_id: int, status: RunStatus, reason: str, ended: datetime) -> None:
        """End a queued or running run; `reason` is one sentence unless it finished."""
        with self.writer.transaction(durable=True) as connection:
            self._change_status(connection, run_id, LIVE, status=status, reason=reason, ended=time_to_text(ended))
            seal(connection, [run_id])

    def mark_ended(
        self, run_ids: Sequence[int], before: RunStatus, status: RunStatus, reason: str, ended: datetime
    ) -> int:
        """End those of these runs whose status is still `before`, so that one of two consoles does it; returns how
        many.

        For runs that have no process: it never began, or its owner is proven dead.
        """
        standing = select(schema.run.c.id).where(schema.run.c.id == bindparam("run_id"), schema.run.c.status == before)
        ending = update(schema.run).where(schema.run.c.id == bindparam("run_id"))
        with self.writer.transaction(durable=True) as connection:
            ids = [number for number in run_ids if connection.execute(standing, {"run_id": number}).first()]
            if ids:
                values = ending.values(status=status, reason=reason, ended=time_to_text(ended))
                connection.execute(values, [{"run_id": number} for number in ids])
                seal(connection, ids)
            return len(ids)

    def amend_provenance(self, run_id: int, warnings: Sequence[str] = (), **found: Any) -> None:
        """Add facts that became known during a run to its provenance (plain JSON), and new ones to its warnings."""
        with self.writer.transaction(durable=True) as connection:
            run = self._existing(connection, run_id)
            every = dict.fromkeys([*json.loads(run.warnings), *warnings])
            values = {"provenance": to_json(json.loads(run.provenance) | found), "warnings": to_json(list(every))}
            connection.execute(update(schema.run).where(schema.run.c.id == run_id).values(values))
            _seal_again(connection, run)

    def live_runs(self) -> list[LiveRun]:
        """The runs that are queued or running, in the order of their ids; waits for no lock."""
        with Reader(self.path) as reader:
            return reader.live_runs()

    def append(
        self,
        run_id: int,
        chunks: Sequence[SampleChunk],
        events: Sequence[EventRecord] = (),
        roles: Sequence[StoredRole] = (),
        pieces: Sequence[AttachmentPiece] = (),
    ) -> None:
        """Store chunks, events, roles and pieces of attachments in one transaction; those already there are skipped, a
        gap is refused."""
        packed = [column_chunks.pack(piece.content) for piece in pieces]
        try:
            payloads = [column_chunks.encode(chunk.series.columns, chunk.rows, chunk.columns) for chunk in chunks]
        except column_chunks.ChunkError as error:
            raise StoreError(f"Samples of run {run_id} do not fit their series: {error}.") from error
        with self.writer.transaction() as connection:
            run = self._existing(connection, run_id)
            append_chunks(connection, run, chunks, payloads)
            for piece, payload in zip(pieces, packed, strict=True):
                append_piece(connection, run, piece, payload)
            if events:
                key = [schema.event.c.run_id, schema.event.c.role, schema.event.c.seq]
                statement = upsert(schema.event).on_conflict_do_nothing(index_elements=key)
                connection.execute(statement, event_rows(run_id, events))
            for role in roles:
                add_role(connection, run_id, role)
            _seal_again(connection, run)

    def add_artefact(self, run_id: int, name: str, media_type: str, content: bytes) -> None:
        """Keep a small file with a live run, `ARTEFACT_LIMIT` bytes at most, under a name of its own."""
        if not FILE_NAME.fullmatch(name):
            raise StoreError(f"{name!r} cannot name an artefact: use letters, digits and . _ - (100 at most).")
        if len(content) > ARTEFACT_LIMIT:
            raise StoreError(f"Artefact {name} has {len(content):,} bytes: {ARTEFACT_LIMIT:,} is the most to be kept.")
        sha256 = hashlib.sha256(content).digest()
        values = {"run_id": run_id, "name": name, "media_type": media_type, "sha256": sha256, "content": content}
        key = [schema.artefact.c.run_id, schema.artefact.c.name]
        with self.writer.transaction() as connection:
            run = self._existing(connection, run_id)
            if run.status not in LIVE:
                raise StoreError(f"Run {run_id} is {run.status} already: artefact {name} comes too late.")
            statement = upsert(schema.artefact).values(values).on_conflict_do_nothing(index_elements=key)
            if not connection.execute(statement).rowcount:
                raise StoreError(f"Run {run_id} has an artefact {name} already: give each a name of its own.")

    def replace_evaluation(self, run_id: int, evaluation: Evaluation) -> None:
        """Store metrics and verdicts of a run in place of those it had; its samples, too, survive a power cut then."""
        with self.writer.transaction(durable=True) as connection:
            run = self._existing(connection, run_id)
            for table in (schema.metric, schema.verdict):
                connection.execute(delete(table).where(table.c.run_id == run_id))
            insert_evaluation(connection, run_id, evaluation)
            _seal_again(connection, run)

    def require_runs(self, connection: Connection, run_ids: Sequence[int]) -> dict[int, RunStatus]:
        """The status of each of these runs, inside a transaction. Raises StoreError if one is not there."""
        return {run_id: RunStatus(self._existing(connection, run_id).status) for run_id in run_ids}

    def _existing(self, connection: Connection, run_id: int) -> Row[Any]:
        row = connection.execute(select(schema.run).where(schema.run.c.id == run_id)).first()
        if row is None:
            raise StoreError(f"There is no run {run_id} in {self.path}.")
        return row

    def _change_status(self, connection: Connection, run_id: int, before: Sequence[RunStatus], **values: Any) -> None:
        row = self._existing(connection, run_id)
        if row.status not in before:
            raise StoreError(f"Run {run_id} is {row.status} already and cannot become {values['status']}.")
        connection.execute(update(schema.run).where(schema.run.c.id == run_id).values(**values))


def insert_evaluation(connection: Connection, run_id: int, evaluation: Evaluation) -> None:
    """Insert metrics and verdicts of a run that has none."""
    metrics = METRICS.rows(evaluation.metrics, run_id=run_id, position=[*range(len(evaluation.metrics))])
    verdicts = VERDICTS.rows(
        evaluation.verdicts,
        run_id=run_id,
        position=[*range(len(evaluation.verdicts))],
        evidence=[to_shown_json(verdict.evidence) for verdict in evaluation.verdicts],
    )
    for table, rows in ((schema.metric, metrics), (schema.verdict, verdicts)):
        if rows:
            connection.execute(insert(table), rows)


def append_chunks(
    connection: Connection, run: Row[Any], chunks: Sequence[SampleChunk], payloads: Sequence[bytes]
) -> None:
    """Store chunks, each with its payload, unless they are there. Raises StoreError when one before it is missing."""
    names = schema.series.c.keys()
    stored = [dict(zip(names, row, strict=True)) for row in _SERIES(connection, {"of_run": run.id})]
    new: list[dict[str, Any]] = []
    for chunk, payload in zip(chunks, payloads, strict=True):
        series = _series(connection, run, chunk.role, chunk.series, stored)
        if chunk.seq < series["chunks"]:
            continue
        if chunk.seq > series["chunks"]:
            raise StoreError(
                f"Samples of run {run.id} are missing: chunk {chunk.seq} of {chunk.series.name} from {chunk.role} "
                f"came after {series['chunks']} chunks."
            )
        link = column_chunks.next_link(series["link"], chunk.seq, chunk.rows, payload)
        row = (series["id"], chunk.seq, chunk.rows, link, payload)
        new.append(dict(zip(_CHUNK, row, strict=True)))
        series |= {"chunks": chunk.seq + 1, "rows": series["rows"] + chunk.rows, "link": link}
    if new:
        inserting(schema.chunk, _CHUNK).each(connection, new)
        grown = {row["series_id"] for row in new}
        updating(schema.series, _GROWN).each(
            connection,
            ({"of_row": row["id"], **{name: row[name] for name in _GROWN}} for row in stored if row["id"] in grown),
        )


def _series(
    connection: Connection, run: Row[Any], role: str, series: Series, stored: list[dict[str, Any]]
) -> dict[str, Any]:
    """The row of a series among those `stored` of the run, inserted if it is missing. Its columns are the same in every
    role."""
    described = to_json([[column.name, column.dtype, column.unit, column.title] for column in series.columns])
    of_name = [row for row in stored if row["name"] == series.name]
    if any(row["columns"] != described for row in of_name):
        raise StoreError(f"Series {series.name} of run {run.id} has other columns in role {role} than before.")
    for row in of_name:
        if row["role"] == role:
            return row
    values = {
        "run_id": run.id,
        "role": role,
        "name": series.name,
        "title": series.title,
        "origin": series.origin,
        "columns": described,
        "chunks": 0,
        "rows": 0,
        "link": column_chunks.first_link(run.uuid, role, series.name, series.columns),
    }
    stored.append(values | {"id": inserted(connection, schema.series, values)})
    return stored[-1]


def run_seed(order_seed: int, position: int) -> int:
    """The seed of the run at `position` of a campaign, 32 bits: repeats differ, a campaign's are reproducible."""
    return int.from_bytes(hashlib.sha256(f"{order_seed}:{position}".encode()).digest()[:4], "big")


def _add_run(
    connection: Connection,
    scenario_id: int,
    repeat: int,
    position: int,
    order_seed: int,
    owner: Owner,
    created: datetime,
) -> int:
    values = {
        "uuid": str(uuid.uuid4()),
        "scenario_id": scenario_id,
        "repeat": repeat,
        "position": position,
        "status": RunStatus.QUEUED,
        "seed": run_seed(order_seed, position),
        "created": time_to_text(created),
        **_owner_columns(owner),
    }
    return inserted(connection, schema.run, values)


def add_role(connection: Connection, run_id: int, role: StoredRole) -> None:
    """Store a role that was started with its files, unless it is there already."""
    connection.execute(upsert(schema.role).on_conflict_do_nothing(), _ROLES.rows([role], run_id=run_id))
    if role.files:
        files = _FILES.rows(role.files, run_id=run_id, role=role.name)
        connection.execute(upsert(schema.role_file).on_conflict_do_nothing(), files)


def _seal_again(connection: Connection, run: Row[Any]) -> None:
    """Seal a run again that had ended and was changed (by the recovery of samples, say)."""
    if run.status not in LIVE:
        seal(connection, [run.id])


def _owner_columns(owner: Owner) -> dict[str, Any]:
    return {"owner_pid": owner.pid, "owner_started": owner.started, "owner_boot": owner.boot_id}


def event_rows(run_id: int, records: Sequence[EventRecord]) -> list[dict[str, Any]]:
    """Rows of events."""
    return EVENTS.rows(
        [replace(record.event, message=to_stored_text(record.event.message)) for record in records],
        run_id=run_id,
        role=[record.role for record in records],
        seq=[record.seq for record in records],
        data=[to_shown_json(record.event.data) for record in records],
    )
