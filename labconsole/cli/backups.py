"""`labconsole restore`: a new database from the newest backup of a damaged one."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.terminal import output
from labconsole.paths import database_path
from labconsole.store.backup_files import backups_of
from labconsole.store.backups import restored_copy
from labconsole.store.errors import StoreError


def restore(arguments: argparse.Namespace) -> int:
    """Copy the newest backup beside the database under a new name, and say how to go on with it. Raises StoreError."""
    database: Path = arguments.db or database_path()
    backups = backups_of(database)
    if not backups:
        raise StoreError(f"There is no backup next to {database}: continue with another database (--db).")
    restored = restored_copy(database, backups[0])
    output().print(
        f"{restored} holds what was there on {backups[0].saved:%Y-%m-%d %H:%M} UTC (runs: {backups[0].runs}). "
        f"Continue with --db {restored}; {database} stays as it is.",
        soft_wrap=True,
    )
    return FINISHED
