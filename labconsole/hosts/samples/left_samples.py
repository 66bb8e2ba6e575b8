"""Finds what runs have left on hosts: brings it, stores it and evaluates its run again, or removes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from labconsole.clock_comparison import AFTER, host_offsets
from labconsole.engine.recorder import Recorder, spool_directory
from labconsole.engine.run_end import WorkerRun, finalize_run
from labconsole.engine.spool import SpoolWriter
from labconsole.errors import UserError
from labconsole.hosts.clock_events import comparable, comparisons
from labconsole.hosts.cluster import Cluster
from labconsole.hosts.samples.collected import collected_folder
from labconsole.hosts.samples.collecting import bring
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole.store.run_store import Store


@dataclass(frozen=True)
class Collected:
    """What one host had of one run, in bytes."""

    run: int
    host: str
    size: int


@dataclass(frozen=True)
class LeftSamples:
    """What was collected; `unknown` are uuids of ended runs that this database does not have."""

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
            rows = {row.uuid: row for row in reader.runs(include_trashed=True)}
        described = _described(cluster, warnings)
        finishing = {uuid: host for host, answer in described.items() for uuid in answer["finishing"]}
        for host, answer in described.items():
            unknown |= set(answer["held"]) - set(answer["running"]) - set(rows)
            for uuid in [uuid for uuid in answer["held"] if uuid in rows]:
                try:
                    run = _ended(store, rows[uuid], finishing.get(uuid))
                    if run is not None:
                        say(f"Run {run.id}: samples of {host} are brought.")
                        collected.append(_collected(cluster, run, host))
                        warnings += [f"Run {run.id}: {found}" for found in _new_warnings(run)]
                except UserError as error:  # the other runs are collected
                    warnings.append(str(error))
    if unknown:
        warnings.append(
            f"Hosts have samples of runs that are not in this database: {', '.join(sorted(unknown))}. Name theirs with "
            "--db, or remove them for good by `labconsole hosts discard`."
        )
    return LeftSamples(tuple(collected), tuple(sorted(unknown)), tuple(warnings))


def discard(cluster: Cluster, database: Path, runs: Collection[str]) -> list[tuple[str, str]]:
    """Remove what these runs, named by uuid, have left on hosts; returns each removed run with its host.

    Raises UserError, before anything is removed: a run is in the database or in progress, or a host does not answer.
    """
    with Store.open(database), Reader(database) as reader:
        known = {row.uuid: row.id for row in reader.runs(include_trashed=True)}
    for uuid in runs:
        if uuid in known:
            raise UserError(f"Run {known[uuid]} of this database is {uuid}: collect its samples.")
    described = {host: cluster.described(host) for host in sorted(cluster.addresses())}
    for host, answer in described.items():
        if running := sorted(set(runs) & set(answer["running"])):
            raise UserError(f"Roles of {', '.join(running)} run on {host}: wait until they have ended.")
    left = [(uuid, host) for uuid in runs for host, answer in described.items() if uuid in answer["held"]]
    for uuid, host in left:
        cluster.call(host, "forget", uuid)
    return left


@contextmanager
def _collecting_alone(database: Path) -> Iterator[None]:
    """No other process collects for this database in the block. Raises UserError."""
    try:
        with FileLock(database.with_name(f"{database.name}.collecting.lock"), timeout=0):
            yield
    except Timeout as error:
        raise UserError(f"Another process collects samples for {database}: wait for it to finish.") from error


def _described(cluster: Cluster, warnings: list[str]) -> dict[str, Mapping[str, Any]]:
    """What each host describes (`HostActor.describe`); `warnings` get those that do not answer."""
    found: dict[str, Mapping[str, Any]] = {}
    for host in sorted(cluster.addresses()):
        try:
            found[host] = cluster.described(host)
        except UserError as error:
            warnings.append(str(error))
    return found


def _ended(store: Store, row: RunRow, works_on: str | None) -> WorkerRun | None:
    """A run that has ended; None: it is in progress, and collects by itself.

    Raises UserError: it was imported, some of it is still to be stored, or its roles finish their work, on the host
    `works_on`.
    """
    run_id = row.id
    if row.owner is None:  # the hosts would remove what the database needs that ran it
        raise UserError(f"Run {run_id} was imported: collect its samples for the database that ran it, with --db.")
    with Reader(store.path) as reader:
        run = WorkerRun(store, reader.task(run_id), collecting=True)
    if not run.task.status.final:
        return None
    if works_on is not None:
        raise UserError(
            f"Run {run_id}: its roles finish their work on {works_on}. Collect its samples once they have ended."
        )
    if spool_directory(store.path, run.task.uuid).exists():  # its clock comparisons may be in there
        raise UserError(f"Run {run_id} is still being stored: collect its samples once that has finished.")
    return run


def _collected(cluster: Cluster, run: WorkerRun, host: str) -> Collected:
    """Collect what a host has of a run. Raises UserError."""
    row = run.task
    size = bring(cluster, host, row.uuid, collected_folder(run.spool, host))
    if run.task.placement.get("lost_console") == "finish":
        _compare_clock(cluster, run, host)
    finalize_run(run, Recorder(run.store, run.id, run.spool), row.status, row.reason)
    cluster.call(host, "forget", row.uuid)
    return Collected(run.id, host, size)


def _new_warnings(run: WorkerRun) -> list[str]:
    """The warnings that a run has since it was read: damaged samples, clocks that jumped."""
    with Reader(run.store.path) as reader:
        return [one for one in reader.task(run.id).warnings if one not in run.task.warnings]


def _compare_clock(cluster: Cluster, run: WorkerRun, host: str) -> None:
    """Record the offset of a host's clock: its roles worked on after the last comparison of the run."""
    there = cluster.host(host)
    with Reader(run.store.path) as reader:
        events = reader.events(run.id)
    if any(comparable(event, there) for event in events):
        path = run.spool / f"clock-{host}.spool"
        path.unlink(missing_ok=True)
        run.spool.mkdir(parents=True, exist_ok=True)  # its host may have had no samples
        spool = SpoolWriter(path)
        for event in comparisons(there, AFTER, there.offset, host_offsets(events)[host][-1]):
            spool.event(event)
        spool.close()
