"""The kinds of SQLite files of the console: run databases, and files of plugins."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, MetaData


def _always(raw: sqlite3.Connection, path: Path) -> None:
    """A file that may be migrated at any time."""


def _no_further_step(connection: Connection) -> None:
    """A migration that ends with its last step."""


@dataclass(frozen=True)
class DatabaseKind:
    """A kind of file, its tables, and how older ones become new ones (`labconsole.store.opening`)."""

    noun: str
    """Its name in sentences: "database", as in "There is no database ..."."""
    first: str
    """How to create one: "run a trial first"."""
    application_id: int
    """`PRAGMA application_id`: 4 bytes that no other kind has."""
    version: int
    """`PRAGMA user_version` of these tables."""
    metadata: MetaData
    migrations: Mapping[int, Callable[[Connection], None]] = field(default_factory=dict)
    """Step N brings a file of version N-1 to version N."""
    may_migrate: Callable[[sqlite3.Connection, Path], None] = _always
    """Raises StoreError while an old file cannot be migrated."""
    after_migration: Callable[[Connection], None] = _no_further_step
    page_size: int = 4096
    """In bytes; of new files."""
    secure_delete: bool = False
    """Whether deleted content is overwritten with zeros."""
