"""The database of a command, migrated and with dead runs recovered, and the runs that were named."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.cli.terminal import output
from labconsole.engine.queue import RunQueue
from labconsole.model.operation import HomePath
from labconsole.model.parameters import parameter
from labconsole.output.report.report_request import whole_campaign
from labconsole.paths import database_path
from labconsole.store.backup_files import backups_of
from labconsole.store.backups import restored_copy
from labconsole.store.database_file import may_be_written
from labconsole.store.errors import StoreError
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader

RunDatabase = Annotated[
    HomePath | None,
    parameter(
        "Run database",
        "Which run database is read; not given: that of your data directory",
        empty="That of your data directory",
    ),
]
"""The field of an operation that reads runs."""


def open_database(named: Path | None) -> Reader:
    """Open the database that was `named`, or the operator's own.

    Runs that died are recovered before, where it may be written. Raises StoreError, also if there is none.
    """
    database = named or database_path()
    if not database.exists():
        Reader(database).close()  # raises the error for a missing database: a new one would be of no use here
    if not may_be_written(database):
        return Reader(database)
    wakeup = threading.Event()
    queue = RunQueue(database, wake=wakeup.set)
    try:
        queue.recover()
        while queue.busy:
            queue.pump()
            wakeup.wait(0.25)
            wakeup.clear()
    finally:
        queue.close()
    return Reader(database)


def chosen_runs(reader: Reader, named: Sequence[int], *, campaign: bool) -> tuple[int, ...]:
    """The runs that were named, each once, or all of their campaign. Raises StoreError and UserError."""
    return whole_campaign(reader, named) if campaign else tuple(dict.fromkeys(named))


def verify_runs(arguments: argparse.Namespace) -> int:
    """Check runs against their evidence and print their digests; exit code 1 if one has changed since it was sealed."""
    console, faulty = output(), False
    with open_database(arguments.db) as reader:
        for run_id in arguments.run:
            verification = verify(reader, run_id)
            if verification.ok and verification.sealed is not None:
                console.print(f"Run {run_id}: ok, sealed {verification.sealed:%Y-%m-%d %H:%M:%S} UTC")
                console.print(f"SHA-256 {verification.digest_now}")
            else:
                faulty = True
                console.print(f"Run {run_id}: not verified", style="red")
                for fault in verification.faults:
                    console.print(fault)
    return FAILED if faulty else FINISHED


def restore(arguments: argparse.Namespace) -> int:
    """Copy the newest backup under a new name next to the database, and print how to continue with it. Raises
    StoreError."""
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
