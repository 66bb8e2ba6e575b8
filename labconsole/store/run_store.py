"""The writing side of the store: records of consoles and workers for the run database."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from labconsole.model.metrics import Evaluation
from labconsole.model.series import FILE_NAME, Event, Series
from labconsole.processes import Owner
from labconsole.store import chunks as column_chunks
from labconsole.store import statements
from labconsole.store.attachments import AttachmentPiece, append_piece
from labconsole.store.database_file import driver
from labconsole.store.encoding import sha256_hex, time_to_text, to_json, to_shown_json, to_stored_text
from labconsole.store.errors import StoreError
from labconsole.store.evidence.sealing import seal
from labconsole.store.records import LIVE, LiveRun, NewCampaign, RunStatus, StoredRole
from labconsole.store.run_database import RUN_DATABASE
from labconsole.store.run_reader import RunReader
from labconsole.store.writer import Writer

if TYPE_CHECKING:
    from sqlalchemy import Connection

_RUN = "SELECT * FROM run WHERE id = ?"
_SERIES = "SELECT * FROM series WHERE run_id = ?"
_GROWN = ("chunks", "rows", "link")
"""Columns of a series that change with each chunk."""
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
        with self.writer.plain_transaction(durable=True) as connection:
            described = {
                "name": campaign.name,
                "title": campaign.title,
                "profile_text": campaign.profile_text,
                "profile_sha256": sha256_hex(campaign.profile_text),
                "order_seed": campaign.order_seed,
                "sites": to_json([dict(site) for site in campaign.sites]),
                "created": time_to_text(created),
            }
            campaign_id = statements.insert(connection, "campaign", described)
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
                scenarios.append(statements.insert(connection, "scenario", values))
            return [
                _add_run(connection, scenarios[index], repeat, position, campaign.order_seed, owner, created)
                for position, (index, repeat) in enumerate(campaign.order)
            ]

    def add_repeat(self, run_id: int, owner: Owner, created: datetime) -> int:
        """Store another queued run of the same scenario, last in its campaign; returns its id."""
        of_campaign = "SELECT id FROM scenario WHERE campaign_id = ?"
        with self.writer.plain_transaction(durable=True) as connection:
            scenario = self._existing(connection, run_id).scenario_id
            [(campaign, order_seed)] = connection.execute(
                "SELECT campaign.id, order_seed FROM scenario JOIN campaign ON campaign.id = campaign_id "
                "WHERE scenario.id = ?",
                (scenario,),
            )
            [(repeat,)] = connection.execute("SELECT max(repeat) FROM run WHERE scenario_id = ?", (scenario,))
            [(position,)] = connection.execute(
                f"SELECT max(position) FROM run WHERE scenario_id IN ({of_campaign})", (campaign,)
            )
            return _add_run(connection, scenario, repeat + 1, position + 1, order_seed, owner, created)

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
        running = "SELECT id, owner_pid, owner_started, owner_boot FROM run WHERE status = ? AND id <> ?"
        with self.writer.plain_transaction(durable=True) as connection:
            for other, *columns in connection.execute(running, (RunStatus.RUNNING, run_id)).fetchall():
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
        with self.writer.plain_transaction(durable=True) as connection:
            self._change_status(connection, run_id, LIVE, status=status, reason=reason, ended=time_to_text(ended))
            seal(connection, [run_id])

    def mark_ended(
        self, run_ids: Sequence[int], before: RunStatus, status: RunStatus, reason: str, ended: datetime
    ) -> int:
        """End those of these runs whose status is still `before`, so that one of two consoles does it; returns how
        many.

        For runs that have no process: it never began, or its owner is proven dead.
        """
        standing = "SELECT id FROM run WHERE id = ? AND status = ?"
        values = {"status": status, "reason": reason, "ended": time_to_text(ended)}
        with self.writer.plain_transaction(durable=True) as connection:
            ids = [number for number in run_ids if connection.execute(standing, (number, before)).fetchone()]
            for number in ids:
                statements.update(connection, "run", number, values)
            seal(connection, ids)
            return len(ids)

    def amend_provenance(self, run_id: int, warnings: Sequence[str] = (), **found: Any) -> None:
        """Add facts that became known during a run to its provenance (plain JSON), and new ones to its warnings."""
        with self.writer.plain_transaction(durable=True) as connection:
            run = self._existing(connection, run_id)
            every = dict.fromkeys([*json.loads(run.warnings), *warnings])
            values = {"provenance": to_json(json.loads(run.provenance) | found), "warnings": to_json(list(every))}
            statements.update(connection, "run", run_id, values)
            _seal_again(connection, run)

    def live_runs(self) -> list[LiveRun]:
        """The runs that are queued or running, in the order of their ids; waits for no lock."""
        with RunReader(self.path) as reader:
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
        with self.writer.plain_transaction() as connection:
            run = self._existing(connection, run_id)
            append_chunks(connection, run, chunks, payloads)
            for piece, payload in zip(pieces, packed, strict=True):
                append_piece(connection, run, piece, payload)
            statements.insert_each(
                connection, "event", event_rows(run_id, events), "ON CONFLICT (run_id, role, seq) DO NOTHING"
            )
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
        with self.writer.plain_transaction() as connection:
            run = self._existing(connection, run_id)
            if run.status not in LIVE:
                raise StoreError(f"Run {run_id} is {run.status} already: artefact {name} comes too late.")
            if not statements.insert_each(connection, "artefact", [values], "ON CONFLICT (run_id, name) DO NOTHING"):
                raise StoreError(f"Run {run_id} has an artefact {name} already: give each a name of its own.")

    def replace_evaluation(self, run_id: int, evaluation: Evaluation) -> None:
        """Store metrics and verdicts of a run in place of those it had; its samples, too, survive a power cut then."""
        with self.writer.plain_transaction(durable=True) as connection:
            run = self._existing(connection, run_id)
            for table in ("metric", "verdict"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
            insert_evaluation(connection, run_id, evaluation)
            _seal_again(connection, run)

    def require_runs(self, connection: Connection, run_ids: Sequence[int]) -> dict[int, RunStatus]:
        """The status of each of these runs, inside a transaction. Raises StoreError if one is not there."""
        return {run_id: RunStatus(self._existing(connection, run_id).status) for run_id in run_ids}

    def _existing(self, connection: Connection | sqlite3.Connection, run_id: int) -> SimpleNamespace:
        row = statements.first_record(driver(connection), _RUN, run_id)
        if row is None:
            raise StoreError(f"There is no run {run_id} in {self.path}.")
        return row

    def _change_status(
        self, connection: sqlite3.Connection, run_id: int, before: Sequence[RunStatus], **values: Any
    ) -> None:
        row = self._existing(connection, run_id)
        if row.status not in before:
            raise StoreError(f"Run {run_id} is {row.status} already and cannot become {values['status']}.")
        statements.update(connection, "run", run_id, values)


def insert_evaluation(connection: Connection | sqlite3.Connection, run_id: int, evaluation: Evaluation) -> None:
    """Insert metrics and verdicts of a run that has none."""
    metrics = [
        {
            "run_id": run_id,
            "position": position,
            "name": metric.name,
            "value": float(metric.value),  # of a trial, which may have it from numpy
            "unit": metric.unit,
            "direction": metric.direction,
            "origin": metric.origin,
            "labels": to_json(metric.labels),
            "samples": int(metric.samples),
            "not_judged": metric.not_judged,
            "uncertainty": float(metric.uncertainty),
        }
        for position, metric in enumerate(evaluation.metrics)
    ]
    verdicts = [
        {
            "run_id": run_id,
            "position": position,
            "name": verdict.name,
            "result": verdict.result,
            "reason": verdict.reason,
            "evidence": to_shown_json(verdict.evidence),
            "kind": verdict.kind,
        }
        for position, verdict in enumerate(evaluation.verdicts)
    ]
    statements.insert_each(driver(connection), "metric", metrics)
    statements.insert_each(driver(connection), "verdict", verdicts)


def append_chunks(
    connection: Connection | sqlite3.Connection,
    run: Any,
    chunks: Sequence[SampleChunk],
    payloads: Sequence[bytes],
) -> None:
    """Store chunks, each with its payload, unless they are there, of the `run` with its columns as attributes.

    Raises StoreError when one before it is missing.
    """
    raw = driver(connection)
    stored = [vars(row) for row in statements.records(raw, _SERIES, run.id)]
    new: list[dict[str, Any]] = []
    for chunk, payload in zip(chunks, payloads, strict=True):
        series = _series(raw, run, chunk.role, chunk.series, stored)
        if chunk.seq < series["chunks"]:
            continue
        if chunk.seq > series["chunks"]:
            raise StoreError(
                f"Samples of run {run.id} are missing: chunk {chunk.seq} of {chunk.series.name} from {chunk.role} "
                f"came after {series['chunks']} chunks."
            )
        link = column_chunks.next_link(series["link"], chunk.seq, chunk.rows, payload)
        row = {"series_id": series["id"], "seq": chunk.seq, "rows": chunk.rows, "sha256": link, "payload": payload}
        new.append(row)
        series |= {"chunks": chunk.seq + 1, "rows": series["rows"] + chunk.rows, "link": link}
    if new:
        statements.insert_each(raw, "chunk", new)
        grown = {row["series_id"] for row in new}
        for row in stored:
            if row["id"] in grown:
                statements.update(raw, "series", row["id"], {name: row[name] for name in _GROWN})


def _series(
    connection: sqlite3.Connection, run: Any, role: str, series: Series, stored: list[dict[str, Any]]
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
    stored.append(values | {"id": statements.insert(connection, "series", values)})
    return stored[-1]


def run_seed(order_seed: int, position: int) -> int:
    """The seed of the run at `position` of a campaign, 32 bits: repeats differ, a campaign's are reproducible."""
    return int.from_bytes(hashlib.sha256(f"{order_seed}:{position}".encode()).digest()[:4], "big")


def _add_run(
    connection: sqlite3.Connection,
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
    return statements.insert(connection, "run", values)


def add_role(connection: Connection | sqlite3.Connection, run_id: int, role: StoredRole) -> None:
    """Store a role that was started with its files, unless it is there already."""
    about = {"run_id": run_id, "name": role.name, "host": role.host, "clock_domain": role.clock_domain}
    files = [
        {
            "run_id": run_id,
            "role": role.name,
            "key": file.key,
            "name": file.name,
            "size": file.size,
            "sha256": bytes.fromhex(file.sha256),
        }
        for file in role.files
    ]
    for table, rows in (("role", [about]), ("role_file", files)):
        statements.insert_each(driver(connection), table, rows, "ON CONFLICT DO NOTHING")


def _seal_again(connection: sqlite3.Connection, run: SimpleNamespace) -> None:
    """Seal a run again that had ended and was changed (by the recovery of samples, say)."""
    if run.status not in LIVE:
        seal(connection, [run.id])


def _owner_columns(owner: Owner) -> dict[str, Any]:
    return {"owner_pid": owner.pid, "owner_started": owner.started, "owner_boot": owner.boot_id}


def event_rows(run_id: int, records: Sequence[EventRecord]) -> list[dict[str, Any]]:
    """Rows of events."""
    return [
        {
            "run_id": run_id,
            "role": record.role,
            "seq": record.seq,
            "t_ns": int(record.event.t_ns),
            "source": record.event.source,
            "level": record.event.level,
            "name": record.event.name,
            "message": to_stored_text(record.event.message),
            "data": to_shown_json(record.event.data),
        }
        for record in records
    ]
