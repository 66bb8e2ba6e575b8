"""Kinds of databases, and opening one: connections, readers, a new file, the check of its kind, migration with backup.

A database is never opened with `open()`: closing any descriptor of a file drops the locks that SQLite holds on it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from labconsole.clock import wall_now
from labconsole.store.backup_files import backups_of, migration_backup
from labconsole.store.errors import DamagedDatabaseError, MissingDatabaseError, StoreError, explained

if TYPE_CHECKING:
    # Imported where it is used: that takes half as long as all else of a worker, whose statements are plain SQL.
    from sqlalchemy import Connection, Engine, MetaData


def _always(raw: sqlite3.Connection, path: Path) -> None:
    """A file that may be migrated at any time."""


def _no_further_step(connection: Connection) -> None:
    """A migration that ends with its last step."""


@dataclass(frozen=True)
class DatabaseKind:
    """A kind of file, its tables, and how older ones become new ones."""

    noun: str
    """Its name in sentences: "database", as in "There is no database ..."."""
    first: str
    """How to create one: "run a trial first"."""
    application_id: int
    """`PRAGMA application_id`: 4 bytes that no other kind has."""
    version: int
    """`PRAGMA user_version` of these tables."""
    metadata: MetaData | Callable[[], MetaData]
    """Its tables, or what returns them: for files that some processes only write with plain SQL."""
    migrations: Mapping[int, Callable[[Connection], None]] = field(default_factory=dict)
    """Step N brings a file of version N-1 to version N."""
    may_migrate: Callable[[sqlite3.Connection, Path], None] = _always
    """Raises StoreError while an old file cannot be migrated."""
    after_migration: Callable[[Connection], None] = _no_further_step
    page_size: int = 4096
    """In bytes; of new files."""
    secure_delete: bool = False
    """Whether deleted content is overwritten with zeros."""


BUSY_TIMEOUT_S = 30.0
"""How long to wait for a program that locks the database."""

_COMPILED: dict[Any, Any] = {}
"""Statements that were compiled, for all connections: to compile one takes far longer than to run it."""


class _CopyConnection(sqlite3.Connection):
    """A connection to a copy in a temporary directory, which is removed with it."""

    directory: TemporaryDirectory[str]

    def close(self) -> None:
        super().close()
        self.directory.cleanup()


def connect(
    path: Path,
    mode: Literal["ro", "rw", "rwc", "ro&immutable=1"],
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    factory: type[sqlite3.Connection] = sqlite3.Connection,
) -> sqlite3.Connection:
    """A plain connection in autocommit mode. Raises sqlite3.Error."""
    raw = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
        factory=factory,
    )
    raw.execute("PRAGMA foreign_keys = ON")
    raw.execute("PRAGMA wal_autocheckpoint = 0")
    return raw


def core_connection(raw: sqlite3.Connection, begin: str) -> Connection:
    """SQLAlchemy Core on `raw`; its transactions start with the statement `begin`."""
    from sqlalchemy import Engine, StaticPool, event

    creator: Any = lambda: raw  # noqa: E731 - SQLAlchemy's type for it leaves sqlite3 out
    shared = _shared_engine()
    engine = Engine(StaticPool(creator, dialect=shared.dialect), shared.dialect, shared.url)
    engine.update_execution_options(compiled_cache=_COMPILED)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        raw.execute(begin)

    return engine.connect()


def driver(connection: Connection | sqlite3.Connection) -> sqlite3.Connection:
    """The connection of the driver, for plain SQL inside of a transaction of either."""
    if isinstance(connection, sqlite3.Connection):
        return connection
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


@contextmanager
def plain_transaction(raw: sqlite3.Connection, begin: str) -> Iterator[None]:
    """A transaction of plain SQL that starts with `begin`: committed, or rolled back if the block raises."""
    raw.execute(begin)
    try:
        yield
        raw.execute("COMMIT")
    except BaseException:
        if raw.in_transaction:  # SQLite ends it by itself where the disk is full, say
            raw.execute("ROLLBACK")
        raise


@cache
def _shared_engine() -> Engine:
    """Its dialect serves all connections, so that none asks SQLite again what it can do."""
    from sqlalchemy import create_engine

    engine = create_engine("sqlite://")
    engine.connect().close()
    return engine


def create_tables(raw: sqlite3.Connection, tables: MetaData) -> None:
    """Create all these tables with their indexes, in a database that has none of them."""
    for statement in _create_statements(tables):
        raw.execute(statement)


@cache
def _create_statements(tables: MetaData) -> tuple[str, ...]:
    """Compiled once a process, since this takes 10 ms for each new database, and to execute them 1 ms."""
    from sqlalchemy.schema import CreateIndex, CreateTable

    dialect = _shared_engine().dialect
    statements: list[str] = []
    for table in tables.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        indexes = sorted(table.indexes, key=lambda index: index.name or "")
        statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in indexes]
    return tuple(statements)


def connect_for_reading(path: Path, kind: DatabaseKind) -> sqlite3.Connection:
    """A plain read-only connection to a file of this kind and of this version.

    Raises MissingDatabaseError, StoreError (it is another file, an older or a newer one) and sqlite3.Error.
    """
    nothing = MissingDatabaseError(f"There is no {kind.noun} {path}: {kind.first}, or name another file.")
    if not path.exists():
        raise nothing
    raw = connect(path, "ro") if may_be_written(path) else _connect_without_writing(path)
    try:
        version = checked_version(raw, path, kind)
        if not version:
            raise nothing
        if version != kind.version:
            raise StoreError(f"{path} is of an older version ({version}): open it in the lab console to update it.")
    except BaseException:
        raw.close()
        raise
    return raw


def may_be_written(path: Path) -> bool:
    """Whether this process can write the database at `path` and SQLite's log next to it: not on read-only media."""
    return all(os.access(there, os.W_OK) for there in (path, path.absolute().parent))


def _connect_without_writing(path: Path) -> sqlite3.Connection:
    """Connect where nothing can be written next to the database: SQLite then needs help to read one in WAL mode.

    A log next to it may hold committed rows, which `immutable` would leave out: both are copied and read together.
    """
    raw = connect(path, "ro")
    try:
        _value(raw, "SELECT count(*) FROM sqlite_master")
        return raw  # its log and index are there: of another user's console, say
    except sqlite3.OperationalError:
        raw.close()
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return connect(path, "ro&immutable=1")
    directory = TemporaryDirectory(prefix="labconsole-")
    try:
        if shutil.disk_usage(directory.name).free < path.stat().st_size + log.stat().st_size:
            raise StoreError(
                f"{path} is on read-only media and its log must be read with it, but there is no room for a copy in "
                f"{directory.name}: free some space there."
            )
        copy = Path(shutil.copy(path, directory.name))
        shutil.copy(log, directory.name)
        connection = connect(copy, "ro", factory=_CopyConnection)
    except BaseException:
        directory.cleanup()
        raise
    assert isinstance(connection, _CopyConnection)
    connection.directory = directory
    return connection


def checked_version(raw: sqlite3.Connection, path: Path, kind: DatabaseKind) -> int:
    """The version of a file of this kind, 0 for an empty one. Raises StoreError for any other file."""
    application = _value(raw, "PRAGMA application_id")
    version = _value(raw, "PRAGMA user_version")
    empty = not application and not version and not _value(raw, "SELECT count(*) FROM sqlite_master")
    if application != kind.application_id and backups_of(path):
        raise DamagedDatabaseError(path, "it is empty" if empty else "it does not say that it is one of this console's")
    if empty:
        return 0
    if application != kind.application_id:
        raise StoreError(
            f"{path} is a file of another program, not a {kind.noun} of the lab console: choose another file. "
            "It was not changed."
        )
    if version > kind.version:
        raise StoreError(
            f"{path} was written by a newer lab console ({kind.noun} version {version}, this one reads up to "
            f"{kind.version}): update the console or choose another file. It was not changed."
        )
    return int(version)


class DatabaseReader:
    """A read-only connection; threads take turns. Every method raises StoreError."""

    def __init__(self, path: Path, kind: DatabaseKind) -> None:
        """Open a file of this kind and version. Raises MissingDatabaseError, StoreError: it is another file."""
        self.path = path
        self._noun = kind.noun
        self._turn = threading.RLock()
        with explained(path, kind.noun):
            self._raw = connect_for_reading(path, kind)

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        with self._turn:
            if "_connection" in self.__dict__:
                self._connection.close()
            self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def data_version(self) -> int:
        """A number that changes whenever another connection has written: cheap enough to poll."""
        with self._turn, explained(self.path, self._noun):
            return int(self._raw.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A read transaction, which sees one moment: short, and never over a turn of an event loop.

        One inside of another is part of it.
        """
        with self._turn, explained(self.path, self._noun):
            if self._connection.in_transaction():
                yield self._connection
            else:
                with self._connection.begin():
                    yield self._connection

    @contextmanager
    def plain_transaction(self) -> Iterator[sqlite3.Connection]:
        """The same for plain SQL; inside of it, no `transaction` may begin."""
        with self._turn, explained(self.path, self._noun):
            if self._raw.in_transaction:
                yield self._raw
            else:
                with plain_transaction(self._raw, "BEGIN"):
                    yield self._raw

    @cached_property
    def _connection(self) -> Connection:
        return core_connection(self._raw, "BEGIN")


def bring_up_to_date(path: Path, kind: DatabaseKind) -> None:
    """Create the file or migrate it, with a backup of the old one next to it. Call with the exclusive lock held.

    Raises StoreError: another program's or a newer file (left untouched), a damaged one, one that is missing while its
    backup exists, an old one that is in use.
    """
    version = 0
    if path.exists():
        with closing(connect(path, "ro")) as raw:
            version = checked_version(raw, path, kind)
    elif backups_of(path):  # a new database would soon be the backup
        raise DamagedDatabaseError(path, "it is missing")
    if version == kind.version:
        return
    if version:
        _back_up(path, version, kind)
    with closing(connect(path, "rwc")) as raw:
        raw.execute(f"PRAGMA page_size = {kind.page_size}")
        if raw.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{path} cannot be shared by two programs on this disk: choose one on a local disk.")
        raw.execute("PRAGMA foreign_keys = OFF")  # so that a migration can rebuild a table
        raw.execute("PRAGMA synchronous = FULL")
        if version:
            _migrate(raw, path, version, kind)
            return
        with plain_transaction(raw, "BEGIN IMMEDIATE"):  # SQLAlchemy would take twice as long
            create_tables(raw, kind.metadata() if callable(kind.metadata) else kind.metadata)
            raw.execute(f"PRAGMA application_id = {kind.application_id}")
            raw.execute(f"PRAGMA user_version = {kind.version}")


def _migrate(raw: sqlite3.Connection, path: Path, version: int, kind: DatabaseKind) -> None:
    """Bring a file of this version to that of `kind`, in one transaction."""
    with closing(core_connection(raw, "BEGIN IMMEDIATE")) as connection, connection.begin():
        for step in range(version + 1, kind.version + 1):
            kind.migrations[step](connection)
        kind.after_migration(connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {kind.version}")
        if connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise DamagedDatabaseError(path, "rows without their run")


def _back_up(path: Path, version: int, kind: DatabaseKind) -> None:
    """Copy an old database to `<name>.v<version>-backup-<time>`; a copy under that name is always complete."""
    with closing(connect(path, "ro")) as source:
        kind.may_migrate(source, path)
        copy_database(source, path, migration_backup(path, version, wall_now()))


def _value(raw: sqlite3.Connection, statement: str) -> Any:
    return raw.execute(statement).fetchone()[0]


_PAGES_AT_ONCE = 4096
_FREE_SPACE_KEPT = 64 * 1024 * 1024


def copy_database(source: sqlite3.Connection, path: Path, target: Path) -> None:
    """Copy the database `path`, which `source` is connected to, to `target`, as it is at this moment.

    Others may read and write it meanwhile; the copy is one file without a log next to it, with the rights of `path`.

    Raises:
        DamagedDatabaseError: SQLite finds the copy damaged, and so `path` is.
        StoreError: no room, or `target` cannot be written.
    """
    partial = target.with_name(f"{target.name}.partial")
    with explained(path):
        room = shutil.disk_usage(target.absolute().parent).free
        if room < path.stat().st_size + _FREE_SPACE_KEPT:
            raise StoreError(f"There is no room for a copy of {path} next to it ({room // 1_000_000:,} MB are free).")
        try:
            partial.unlink(missing_ok=True)
            partial.touch(0o600)
            with closing(sqlite3.connect(partial, isolation_level=None)) as copy:
                source.execute("BEGIN")  # one moment: later writes are not copied
                try:
                    source.backup(copy, pages=_PAGES_AT_ONCE)
                finally:
                    source.execute("ROLLBACK")
                copy.execute("PRAGMA journal_mode = DELETE")
                (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise DamagedDatabaseError(path, found)
            shutil.copymode(path, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
