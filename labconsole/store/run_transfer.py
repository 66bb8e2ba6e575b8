"""The rows of a run as they leave one database and enter another, and of one that is made of stored runs.

They are all that its evidence covers, tags and notes. Rows are plain mappings of column names to texts and numbers,
bytes in hexadecimal; ids are left out, since each database gives its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, LargeBinary, Table, insert, select

from labconsole.clock import wall_now
from labconsole.model.metrics import Evaluation
from labconsole.store import chunks as column_chunks
from labconsole.store import schema
from labconsole.store.encoding import sha256_hex, time_to_text, to_json
from labconsole.store.errors import StoreError
from labconsole.store.evidence.sealing import seal
from labconsole.store.records import RunStatus, StoredRole
from labconsole.store.rows import inserted
from labconsole.store.run_store import (
    EventRecord,
    SampleChunk,
    Store,
    add_role,
    append_chunks,
    event_rows,
    insert_evaluation,
)
from labconsole.store.samples import StoredChunk

_OF_A_RUN = (
    schema.series,
    schema.event,
    schema.metric,
    schema.verdict,
    schema.artefact,
    schema.role,
    schema.role_file,
    schema.attachment,
    schema.evidence,
    schema.tag,
    schema.note,
)
_LEFT_OUT = frozenset(
    (
        *("id", "run_id", "scenario_id", "campaign_id", "owner_pid", "owner_started", "owner_boot", "content"),
        *("parameters_sha256", "profile_sha256"),  # follow from the text in the same row
    )
)


def described_run(connection: Connection, run_id: int) -> dict[str, Any]:
    """An existing run: its rows by table (`run` is one row), and those of its `scenario` and `campaign`."""
    run, scenario, campaign = schema.run, schema.scenario, schema.campaign
    joined = run.join(scenario).join(campaign)
    described: dict[str, Any] = {}
    for table in (run, scenario, campaign):
        row = connection.execute(select(*_columns(table)).select_from(joined).where(run.c.id == run_id)).one()
        described[table.name] = _as_text(table, row)
    for table in _OF_A_RUN:
        rows = connection.execute(
            select(*_columns(table)).where(table.c.run_id == run_id).order_by(*_columns(table)[:2])
        )
        described[table.name] = [_as_text(table, row) for row in rows]
    return described


def known_uuids(connection: Connection, uuids: Iterable[str]) -> set[str]:
    """Those of these runs that are in the database."""
    stored = schema.run.c.uuid
    return {uuid for uuid in uuids if connection.execute(select(stored).where(stored == uuid)).first()}


def place_campaign(
    connection: Connection,
    campaign: Mapping[str, Any],
    scenarios: Mapping[int, Mapping[str, Any]],
    runs: Sequence[tuple[int, int]],
) -> dict[int, int]:
    """The ids of the scenarios for imported runs, by their position in `scenarios`, inserted if they are missing.

    `runs` are (position of the scenario, repeat). They join an existing campaign that is equal in every column and has
    none of these repeats; otherwise a new campaign is inserted.
    """
    same = [schema.campaign.c[name] == value for name, value in campaign.items()]
    for campaign_id in connection.execute(select(schema.campaign.c.id).where(*same)).scalars().all():
        present = _scenarios(connection, campaign_id)
        fits = all(present[position][1] == row for position, row in scenarios.items() if position in present)
        if fits and not any(_position_is_used(connection, present, position, repeat) for position, repeat in runs):
            break
    else:
        values = {**campaign, "profile_sha256": sha256_hex(campaign["profile_text"])}
        campaign_id = inserted(connection, schema.campaign, values)
        present = {}
    placed = {position: scenario_id for position, (scenario_id, _) in present.items()}
    for position, row in scenarios.items():
        if position not in placed:
            values = {**row, "campaign_id": campaign_id, "parameters_sha256": sha256_hex(row["parameters"])}
            placed[position] = inserted(connection, schema.scenario, values)
    return placed


def insert_run(
    connection: Connection, scenario_id: int, described: Mapping[str, Any], content: Callable[[str], bytes]
) -> int:
    """Insert a run but its chunks; `content` gives an artefact's. Returns its id."""
    run_id = inserted(connection, schema.run, {**described["run"], "scenario_id": scenario_id})
    for table in _OF_A_RUN:
        rows = [_from_text(table, row) | {"run_id": run_id} for row in described[table.name]]
        if table is schema.artefact:
            rows = [row | {"content": content(row["name"])} for row in rows]
        if rows:
            connection.execute(insert(table), rows)
    return run_id


def insert_chunks(connection: Connection, run_id: int, name: str, role: str, chunks: Iterable[StoredChunk]) -> None:
    """Insert the chunks of a series of a run that was inserted before."""
    series = schema.series.c
    wanted = select(series.id).where(series.run_id == run_id, series.name == name, series.role == role)
    series_id = connection.execute(wanted).scalar_one()
    statement = insert(schema.chunk)
    for chunk in chunks:
        values = {"seq": chunk.seq, "rows": chunk.rows, "sha256": chunk.sha256, "payload": chunk.payload}
        connection.execute(statement, {"series_id": series_id, **values})


def insert_attachment_chunks(
    connection: Connection, run_id: int, role: str, name: str, chunks: Iterable[StoredChunk]
) -> None:
    """Insert the chunks of an attachment of a run that was inserted before."""
    stored = schema.attachment.c
    wanted = select(stored.id).where(stored.run_id == run_id, stored.role == role, stored.name == name)
    attachment_id = connection.execute(wanted).scalar_one()
    statement = insert(schema.attachment_chunk)
    for chunk in chunks:
        values = {"seq": chunk.seq, "size": chunk.rows, "sha256": chunk.sha256, "payload": chunk.payload}
        connection.execute(statement, {"attachment_id": attachment_id, **values})


def _columns(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if column.name not in _LEFT_OUT]


def _as_text(table: Table, row: Iterable[Any]) -> dict[str, Any]:
    """A row of `_columns` by their names."""
    return {
        column.name: value.hex() if isinstance(value, bytes) else value
        for column, value in zip(_columns(table), row, strict=True)
    }


def _from_text(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: bytes.fromhex(value) if isinstance(table.c[name].type, LargeBinary) and value is not None else value
        for name, value in row.items()
    }


def _scenarios(connection: Connection, campaign_id: int) -> dict[int, tuple[int, dict[str, Any]]]:
    """(id, row) of each scenario of a campaign by its position."""
    stored = schema.scenario
    rows = connection.execute(select(stored.c.id, *_columns(stored)).where(stored.c.campaign_id == campaign_id))
    return {row.position: (row.id, _as_text(stored, row[1:])) for row in rows}


def _position_is_used(
    connection: Connection, present: Mapping[int, tuple[int, Any]], position: int, repeat: int
) -> bool:
    if position not in present:
        return False
    run = schema.run.c
    same = select(run.id).where(run.scenario_id == present[position][0], run.repeat == repeat)
    return connection.execute(same).first() is not None


@dataclass(frozen=True)
class MergedRun:
    """All that is stored of a merged run; its `uuid` follows from those it was made of, so that it exists once."""

    uuid: str
    kind: str
    name: str
    title: str
    parameters: Mapping[str, Any]
    seed: int
    started: datetime
    ended: datetime
    provenance: Mapping[str, Any]
    warnings: Sequence[str]
    definitions: int
    roles: Sequence[StoredRole]
    events: Sequence[EventRecord]
    chunks: Iterable[SampleChunk]
    artefacts: Sequence[tuple[str, str, bytes]]
    """Name, media type, content."""
    evaluation: Evaluation


def add_merged_run(store: Store, merged: MergedRun) -> tuple[int, bool]:
    """Store a merged run; returns its number, and whether it is new. Raises StoreError, with nothing written."""
    parameters, created = to_json(merged.parameters), time_to_text(wall_now())
    profile = f"# {merged.title}\n"
    campaign = {
        "name": merged.name,
        "title": merged.title,
        "profile_text": profile,
        "profile_sha256": sha256_hex(profile),
        "order_seed": merged.seed,
        "sites": "[]",
        "created": created,
    }
    scenario = {
        "position": 0,
        "name": merged.name,
        "kind": merged.kind,
        "parameters": parameters,
        "parameters_sha256": sha256_hex(parameters),
        "thresholds": "{}",
    }
    run = {
        "uuid": merged.uuid,
        "repeat": 1,
        "position": 0,
        "status": RunStatus.FINISHED,
        "seed": merged.seed,
        "created": created,
        "started": time_to_text(merged.started),
        "ended": time_to_text(merged.ended),
        "provenance": to_json(merged.provenance),
        "warnings": to_json(list(merged.warnings)),
        "definitions": merged.definitions,
    }
    with store.writer.transaction(durable=True) as connection:
        known = connection.execute(select(schema.run.c.id).where(schema.run.c.uuid == merged.uuid)).scalar()
        if known is not None:
            return int(known), False
        campaign_id = inserted(connection, schema.campaign, campaign)
        scenario_id = inserted(connection, schema.scenario, {**scenario, "campaign_id": campaign_id})
        run_id = inserted(connection, schema.run, {**run, "scenario_id": scenario_id})
        row = connection.execute(select(schema.run).where(schema.run.c.id == run_id)).one()
        for role in merged.roles:
            add_role(connection, run_id, role)
        for chunk in merged.chunks:
            try:
                payload = column_chunks.encode(chunk.series.columns, chunk.rows, chunk.columns)
            except column_chunks.ChunkError as error:
                raise StoreError(f"Samples of the merged run do not fit their series: {error}.") from error
            append_chunks(connection, row, [chunk], [payload])
        if merged.events:
            connection.execute(insert(schema.event), event_rows(run_id, merged.events))
        for name, media_type, content in merged.artefacts:
            sha256 = hashlib.sha256(content).digest()
            values = {"run_id": run_id, "name": name, "media_type": media_type, "sha256": sha256, "content": content}
            connection.execute(insert(schema.artefact), values)
        insert_evaluation(connection, run_id, merged.evaluation)
        seal(connection, [run_id])
        return run_id, True
