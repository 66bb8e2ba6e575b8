"""Summarises the samples of a campaign host by host: on the hosts where they are, else from the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.engine.recorder import COLLECTING, spool_directory
from labconsole.engine.run_end import load_trial
from labconsole.errors import UserError
from labconsole.hosts.cluster import Cluster
from labconsole.hosts.samples.collected import collected
from labconsole.hosts.samples.collecting import reading_s
from labconsole.hosts.samples.sample_summaries import Summaries, summaries_of_stored
from labconsole.model.operation import OperationContext
from labconsole.model.series import SURROUNDINGS
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail

Hosts = dict[str, Summaries]
"""Summaries by host."""


@dataclass(frozen=True)
class CampaignSummary:
    """The summaries of a campaign's runs, by scenario and host, and what they lack, one sentence each."""

    campaign: str
    scenarios: Mapping[str, Hosts]
    runs: Mapping[str, int]
    """How many runs each scenario has."""
    missing: tuple[str, ...]


def campaign_summary(
    database: Path, run_id: int | None, scheduler: str, context: OperationContext
) -> CampaignSummary | None:
    """The summaries of the campaign of a run; None for the run: of the newest campaign. None: it was cancelled.

    Raises UserError: there is no such run, or none of its campaign has ended.
    """
    with Reader(database) as reader:
        runs = _campaign_of(reader, run_id)
        scenarios: dict[str, Hosts] = {run.row.scenario: {} for run in runs}
        keeping = [(run, _hosts_that_keep(database, run)) for run in runs]
        kept = [(run, host) for run, hosts in keeping for host in hosts]
        stored = [(run, hosts) for run, hosts in keeping if _recorded(run)]
        steps = len(stored) + len(kept)
        for done, (run, hosts) in enumerate(stored, 1):
            if context.stop_requested:
                return None
            _add_stored(reader, run, hosts, scenarios[run.row.scenario])
            context.progress(done, steps)
    missing: list[str] = []
    if kept:
        with Cluster.of_console(scheduler) as cluster:
            for done, (run, host, answer) in enumerate(_asked(cluster, kept, context), len(stored) + 1):
                context.progress(done, steps)
                if isinstance(answer, str):
                    missing.append(answer)
                else:
                    scenarios[run.row.scenario].setdefault(host, Summaries()).merge(answer)
        if context.stop_requested:
            return None
    counts = Counter(run.row.scenario for run in runs)
    return CampaignSummary(runs[0].row.campaign, scenarios, counts, tuple(dict.fromkeys(missing)))


def _campaign_of(reader: Reader, run_id: int | None) -> list[RunDetail]:
    """The runs of a campaign that have ended. Raises UserError."""
    newest = reader.runs(limit=1)
    if run_id is None and not newest:
        raise UserError("There are no runs in this database yet: name the database with --db.")
    row = newest[0] if run_id is None else reader.run(run_id).row
    ended = [one for one in reader.runs(campaign_id=row.campaign_id) if one.status.final]
    if not ended:
        raise UserError(f"No run of the campaign {row.campaign} has ended: wait for one to finish.")
    return [reader.run(one.id) for one in reversed(ended)]


def _recorded(run: RunDetail) -> set[str]:
    """The roles of a run whose own samples are in the database."""
    return {series.role for series in run.series if series.name not in SURROUNDINGS}


def _hosts_that_keep(database: Path, run: RunDetail) -> list[str]:
    """The other hosts of a run that have its samples: those of which nothing, or only a part, is in the database."""
    of_roles = {role.name: role.host for role in run.roles}
    brought = {of_roles[series.role] for series in run.series if series.role in of_roles}
    spool = spool_directory(database, run.row.uuid)
    partly = {host for folder in (spool, spool.with_suffix(COLLECTING)) for host, _ in collected(folder)}
    return sorted(set(run.provenance.get("hosts", {})) - brought | partly)


def _add_stored(reader: Reader, run: RunDetail, keeping: Collection[str], hosts: Hosts) -> None:
    """Add the samples of a run to those of each host, but of those `keeping` samples. Raises UserError."""
    trial, _ = load_trial(run.row)
    for role in run.roles:
        if role.host not in keeping:
            found = summaries_of_stored(reader.samples(run.row.id), trial.series, role.name)
            hosts.setdefault(role.host, Summaries()).merge(found)


Answer = tuple[RunDetail, str, Summaries | str]
"""A run, a host, and the host's summaries of it or why there are none."""


def _asked(cluster: Cluster, kept: Sequence[tuple[RunDetail, str]], context: OperationContext) -> Iterator[Answer]:
    """What hosts answer, as it comes: all of them work at one time, each on one run after the other."""

    def summaries(described: Future[Any], host: str, uuid: str) -> Summaries | str:
        try:
            described.result()
            if context.stop_requested:
                return Summaries()
            found: Summaries = cluster.call(host, "summaries", uuid, timeout_s=reading_s(cluster, host, uuid))
        except UserError as error:
            return str(error)
        return found

    working: dict[Future[Summaries | str], tuple[RunDetail, str]] = {}
    with ExitStack() as closing:
        for host in {host for _, host in kept}:
            thread = ThreadPoolExecutor(1)
            closing.callback(thread.shutdown, cancel_futures=True)
            described = thread.submit(cluster.described, host)
            for run in [run for run, keeping in kept if keeping == host]:
                working[thread.submit(summaries, described, host, run.row.uuid)] = (run, host)
        for done in as_completed(working):
            yield (*working.pop(done), done.result())
