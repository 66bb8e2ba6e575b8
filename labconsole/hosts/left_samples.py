"""Finds what runs of a database have left on hosts, brings it, stores it with its run, and evaluates that again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from labconsole.engine.recorder import Recorder, spool_directory
from labconsole.engine.run_end import WorkerRun, finalize_run
from labconsole.errors import UserError
from labconsole.hosts.cluster import Cluster
from labconsole.hosts.collected import collected_folder
from labconsole.hosts.collecting import bring
from labconsole.store.reader import Reader
from labconsole.store.run_store import Store


@dataclass(frozen=True)
class Collected:
    """What one host had of one run, in bytes."""

    run: int
    host: str
    size: int


@dataclass(frozen=True)
class LeftSamples:
    """What was collected; `unknown` are uuids of runs that another database has."""

    collected: tuple[Collected, ...]
    unknown: tuple[str, ...]
    warnings: tuple[str, ...]


def collect_left(cluster: Cluster, database: Path, say: Callable[[str], None]) -> LeftSamples:
    """Collect from all hosts; `say` gets a sentence on each step.

    Raises UserError: the database cannot be written, or another process collects for it.
    """
    collected: list[Collected] = []
    unknown: set[str] = set()
    warnings: list[str] = []
    with _collecting_alone(database), Store.open(database) as store:
        with Reader(database) as reader:
            known = {row.uuid: row.id for row in reader.runs(include_trashed=True)}
        for host in sorted(cluster.addresses()):
            try:
                held = cluster.call(host, "describe")["held"]
                unknown |= set(held) - set(known)
                for uuid in [uuid for uuid in held if uuid in known]:
                    say(f"Run {known[uuid]}: samples of {host} are brought.")
                    collected += _collected(cluster, store, known[uuid], host)
            except UserError as error:  # the other hosts are asked
                warnings.append(str(error))
    if unknown:
        warnings.append(
            f"Hosts have samples of {len(unknown)} runs that are not in this database: name theirs with --db."
        )
    return LeftSamples(tuple(collected), tuple(sorted(unknown)), tuple(warnings))


@contextmanager
def _collecting_alone(database: Path) -> Iterator[None]:
    """No other process collects for this database in the block. Raises UserError."""
    try:
        with FileLock(database.with_name(f"{database.name}.collecting.lock"), timeout=0):
            yield
    except Timeout as error:
        raise UserError(f"Another process collects samples for {database}: wait for it to finish.") from error


def _collected(cluster: Cluster, store: Store, run_id: int, host: str) -> list[Collected]:
    """Collect what a host has of a run that has ended. Raises UserError."""
    with Reader(store.path) as reader:
        run = WorkerRun(store, reader.run(run_id), collecting=True)
    row = run.detail.row
    if not row.status.final:
        return []  # it is in progress, and collects by itself
    if spool_directory(store.path, row.uuid).exists():  # its clock comparisons may be in there
        raise UserError(f"Run {run_id} is still being stored: collect its samples once that has finished.")
    size = bring(cluster, host, row.uuid, collected_folder(run.spool, host))
    finalize_run(run, Recorder(store, run_id, run.spool), row.status, row.reason)
    cluster.call(host, "forget", row.uuid)
    return [Collected(run_id, host, size)]
