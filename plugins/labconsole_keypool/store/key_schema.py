"""The tables of a key store (the source's Tables 3-1 and 3-2, and the events of keys), as a kind of file of its own.

The rows of all tables but `head` and `key_state` are numbered by one sequence, and each is linked to the one before
(`labconsole_keypool.store.key_links`). Times are Unix time in ns.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import (
    REAL,
    CheckConstraint,
    Column,
    Computed,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

from labconsole.store.database_file import DatabaseKind

metadata = MetaData()
NEW = text("status = 0")
"""Of `key_state`: a literal, so that SQLite finds new keys by their index."""


def _linked() -> tuple[Column[int], Column[bytes]]:
    return Column("id", Integer, primary_key=True), Column("link", LargeBinary, nullable=False)


def _claimant(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, Integer, ForeignKey("claimant.id"), nullable=nullable)


head = Table(
    "head",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True),
    Column("rows", Integer, nullable=False, comment="number of the last row"),
    Column("link", LargeBinary, nullable=False, comment="of the last row"),
    sqlite_strict=True,
)

claimant = Table(
    "claimant",
    metadata,
    *_linked(),
    Column("pid", Integer, nullable=False),
    Column("started", REAL, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("run", Text, nullable=False, comment="uuid of the run that it works for; empty for an action"),
    Column("since", Integer, nullable=False),
    sqlite_strict=True,
)

wrapper_key = Table(
    "wrapper_key",
    metadata,
    *_linked(),
    Column("serial", Text, nullable=False, unique=True, comment="its label in the token"),
    Column("token", Text, nullable=False, comment="serial number"),
    Column("kind", Text, nullable=False, comment="of the keys that it wraps"),
    Column("mechanism", Integer, nullable=False, comment="CK_MECHANISM_TYPE"),
    Column("made", Integer, nullable=False),
    Column("limit_keys", Integer, nullable=False),
    Column("pairs", Integer, nullable=False, server_default="0", comment="how many it has wrapped"),
    _claimant("owner", nullable=True),
    Column("destroyed", Integer),
    CheckConstraint("pairs <= limit_keys", name="room"),
    sqlite_strict=True,
)

key = Table(
    "key",
    metadata,
    *_linked(),
    Column("kind", Text, nullable=False),
    Column("private", LargeBinary, comment="wrapped; erased once it is used or invalid"),
    Column("private_sha256", LargeBinary, nullable=False),
    Column("public", LargeBinary, nullable=False, comment="SubjectPublicKeyInfo, DER"),
    Column("wrapper", Text, ForeignKey("wrapper_key.serial"), nullable=False),
    Column("mechanism", Integer, nullable=False, comment="CK_MECHANISM_TYPE"),
    Column("generate_start", Integer, nullable=False),
    Column("generate_end", Integer, nullable=False),
    Column("generate_duration", Integer, nullable=False, comment="ns, of the monotonic clock"),
    Column("stored", Integer, nullable=False),
    sqlite_strict=True,
)

key_state = Table(  # what changes of a key: a claim that rewrote its blobs as well would take three times as long
    "key_state",
    metadata,
    Column("id", Integer, ForeignKey("key.id"), primary_key=True),
    Column("kind", Text, nullable=False, comment="the key's"),
    Column("wrapper", Text, nullable=False, comment="the key's"),
    Column(
        "status", Integer, nullable=False, server_default="0", comment="labconsole_keypool.store.key_records.KeyStatus"
    ),
    Column("owner", Integer, comment="claimant that has claimed it, as the event of that tells"),
    Column("used", Integer),
    Index("key_new", "kind", "id", "wrapper", sqlite_where=NEW),
    sqlite_strict=True,
)

event = Table(
    "event",
    metadata,
    *_linked(),
    Column("event", Integer, nullable=False, comment="labconsole_keypool.store.key_links.KeyEvent"),
    Column("at", Integer, nullable=False),
    _claimant("claimant"),
    Column("keys", Text, nullable=False, comment="ids, as in 17-191,195"),
    Column("wrapper", Text, ForeignKey("wrapper_key.serial"), comment="that was destroyed"),
    Column("reason", Text, nullable=False),
    sqlite_strict=True,
)

signature = Table(
    "signature",
    metadata,
    *_linked(),
    Column("run", Text, nullable=False),
    Column("request", Integer, nullable=False),
    Column("to_be_signed", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("certificate", LargeBinary, nullable=False, comment="X.509, DER"),
    Column("received", Integer, nullable=False),
    Column("started", Integer, nullable=False),
    Column("got_key", Integer, nullable=False),
    Column("finished", Integer, nullable=False),
    Column("pre_generated", Integer, nullable=False, comment="1: the key pair was made before the request came"),
    Column("key", Integer, ForeignKey("key.id"), comment="if it was stored"),
    Column("status", Integer, nullable=False, comment="labconsole_keypool.store.key_records.SignatureStatus"),
    Column("waiting", Integer, Computed("started - received", persisted=False)),
    Column("process", Integer, Computed("finished - started", persisted=False)),
    Column("date", Text, Computed("date(received / 1000000000, 'unixepoch')", persisted=False)),
    Index("signature_key", "key", unique=True, sqlite_where=Column("key").is_not(None)),
    sqlite_strict=True,
)

_CHANGING = {"wrapper_key": {"pairs", "owner", "destroyed"}, "key": {"private"}}

LINKED: Mapping[str, tuple[str, ...]] = {
    table.name: tuple(
        column.name
        for column in table.columns
        if column.name not in {"id", "link"} | _CHANGING.get(table.name, set()) and column.computed is None
    )
    for table in (claimant, wrapper_key, key, event, signature)
}
"""By table: the columns whose values a row's link covers, besides its number. They never change."""

KEY_STORE = DatabaseKind(
    noun="key store",
    first="fill the pool first",
    application_id=0x4C434B53,  # "LCKS"
    version=1,
    metadata=metadata,
    page_size=8192,
    secure_delete=True,
)
