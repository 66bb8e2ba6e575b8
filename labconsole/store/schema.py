"""The tables of the run database, as of `VERSION`; `labconsole.store.run_database` brings older ones to it."""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from labconsole.store.backup_files import APPLICATION_ID as APPLICATION_ID
from labconsole.store.backup_files import VERSION as VERSION

metadata = MetaData()


def _run_key(*, primary_key: bool = False) -> Column[int]:
    key = ForeignKey("run.id", ondelete="CASCADE")
    return Column("run_id", Integer, key, nullable=False, primary_key=primary_key)


campaign = Table(
    "campaign",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("profile_text", Text, nullable=False),
    Column("profile_sha256", Text, nullable=False),
    Column("order_seed", Integer, nullable=False),
    Column("sites", Text, nullable=False, comment="JSON list: the profile's resource table"),
    Column("created", Text, nullable=False, comment="ISO 8601 UTC"),
    sqlite_strict=True,
)

scenario = Table(
    "scenario",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("campaign_id", Integer, ForeignKey("campaign.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("parameters", Text, nullable=False, comment="canonical JSON"),
    Column("parameters_sha256", Text, nullable=False),
    Column("thresholds", Text, nullable=False, comment="JSON"),
    Column("placement", Text, nullable=False, server_default="{}", comment="JSON: the hosts of roles"),
    UniqueConstraint("campaign_id", "position"),
    sqlite_strict=True,
)

run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", Text, nullable=False, unique=True),
    Column("scenario_id", Integer, ForeignKey("scenario.id", ondelete="CASCADE"), nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("position", Integer, nullable=False, comment="in its campaign, from 0"),
    Column("status", Text, nullable=False),
    Column("reason", Text, nullable=False, server_default=""),
    Column("seed", Integer, nullable=False),
    Column("created", Text, nullable=False),
    Column("started", Text),
    Column("ended", Text),
    Column("owner_pid", Integer),
    Column("owner_started", REAL),
    Column("owner_boot", Text),
    Column("provenance", Text, nullable=False, server_default="{}", comment="JSON"),
    Column("warnings", Text, nullable=False, server_default="[]", comment="JSON list of sentences"),
    Column("definitions", Integer, nullable=False, server_default=text("1"), comment="of the metrics"),
    UniqueConstraint("scenario_id", "repeat"),
    CheckConstraint(
        "status IN ('queued','running','finished','failed','cancelled','interrupted')", name="status_known"
    ),
    Index("run_live", "status", sqlite_where=Column("status", Text).in_(("queued", "running"))),
    sqlite_strict=True,
    sqlite_autoincrement=True,  # the number of a purged run is never given to another one
)

series = Table(
    "series",
    metadata,
    Column("id", Integer, primary_key=True),
    _run_key(),
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("columns", Text, nullable=False, comment="JSON list of [name, dtype, unit, title]"),
    Column("chunks", Integer, nullable=False, comment="number of chunks"),
    Column("rows", Integer, nullable=False, comment="in all chunks"),
    Column("link", LargeBinary, nullable=False, comment="hash of the last chunk; before the first, of the identity"),
    UniqueConstraint("run_id", "name", "role"),
    sqlite_strict=True,
)

chunk = Table(
    "chunk",
    metadata,
    Column("series_id", Integer, ForeignKey("series.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("rows", Integer, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    sqlite_strict=True,
)

event = Table(
    "event",
    metadata,
    _run_key(primary_key=True),
    Column("role", Text, primary_key=True, comment="whose spool it came in"),
    Column("seq", Integer, primary_key=True),
    Column("t_ns", Integer, nullable=False, comment="labconsole.clock.now_ns"),
    Column("source", Text, nullable=False),
    Column("level", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("data", Text, nullable=False, comment="JSON"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

metric = Table(
    "metric",
    metadata,
    _run_key(primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("value", REAL, nullable=False),
    Column("unit", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("labels", Text, nullable=False, comment="canonical JSON"),
    Column("samples", Integer, nullable=False),
    Column("not_judged", Text, nullable=False, server_default="", comment="the reason; empty: it is judged"),
    Column("uncertainty", REAL, nullable=False, server_default=text("0"), comment="of clocks; 0: one clock"),
    UniqueConstraint("run_id", "name", "labels"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

verdict = Table(
    "verdict",
    metadata,
    _run_key(primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", Text, nullable=False, comment="JSON"),
    Column("kind", Text, nullable=False, server_default="finding", comment="integrity or finding"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

note = Table(
    "note",
    metadata,
    _run_key(primary_key=True),
    Column("text", Text, nullable=False),
    Column("changed", Text, nullable=False),
    sqlite_strict=True,
)

tag = Table(
    "tag",
    metadata,
    _run_key(primary_key=True),
    Column("name", Text, primary_key=True),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

trash = Table(
    "trash",
    metadata,
    _run_key(primary_key=True),
    Column("trashed", Text, nullable=False),
    sqlite_strict=True,
)

artefact = Table(
    "artefact",
    metadata,
    _run_key(primary_key=True),
    Column("name", Text, primary_key=True),
    Column("media_type", Text, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    sqlite_strict=True,
)

role = Table(
    "role",
    metadata,
    _run_key(primary_key=True),
    Column("name", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("clock_domain", Text, nullable=False, comment="labconsole.clock.clock_domain"),
    sqlite_strict=True,
)

role_file = Table(
    "role_file",
    metadata,
    _run_key(primary_key=True),
    Column("role", Text, primary_key=True),
    Column("key", Text, primary_key=True, comment="what the role asks for it by"),
    Column("name", Text, nullable=False, comment="without directories"),
    Column("size", Integer, nullable=False, comment="bytes"),
    Column("sha256", LargeBinary, nullable=False),
    sqlite_strict=True,
)

attachment = Table(
    "attachment",
    metadata,
    Column("id", Integer, primary_key=True),
    _run_key(),
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("chunks", Integer, nullable=False, comment="number of chunks"),
    Column("size", Integer, nullable=False, comment="bytes in all chunks"),
    Column("link", LargeBinary, nullable=False, comment="hash of the last chunk; before the first, of the identity"),
    Column("sha256", LargeBinary, comment="of all bytes; NULL: it was cut before its end"),
    UniqueConstraint("run_id", "role", "name"),
    sqlite_strict=True,
)

attachment_chunk = Table(
    "attachment_chunk",
    metadata,
    Column("attachment_id", Integer, ForeignKey("attachment.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("size", Integer, nullable=False, comment="in bytes, as they were written"),
    Column("sha256", LargeBinary, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    sqlite_strict=True,
)

evidence = Table(
    "evidence",
    metadata,
    _run_key(primary_key=True),
    Column("digest", LargeBinary, nullable=False, comment="`store.evidence`: 32 bytes over all of the run"),
    Column("sealed", Text, nullable=False, comment="when; for runs of older versions, when they were migrated"),
    sqlite_strict=True,
)

baseline = Table(
    "baseline",
    metadata,
    Column("kind", Text, primary_key=True, comment="of trial: the run that others of it are compared with"),
    _run_key(),
    sqlite_strict=True,
)
