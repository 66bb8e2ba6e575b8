"""What a command works on: the database, migrated and with runs that died taken in, and the runs that were named."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from labconsole.engine.queue import RunQueue
from labconsole.output.report.report_request import whole_campaign
from labconsole.paths import database_path
from labconsole.store.opening import may_be_written
from labconsole.store.reader import Reader


def open_database(named: Path | None) -> Reader:
    """Open the database that was `named`, or the operator's own.

    Runs that died are recovered before, where it may be written. Raises StoreError, also if there is none.
    """
    database = named or database_path()
    if not database.exists():
        Reader(database).close()  # refuses with the sentence that says so: nobody wants a new one here
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
