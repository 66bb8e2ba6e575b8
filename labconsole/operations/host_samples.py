"""Samples that were left on hosts, since a host, the scheduler or a console was lost in mid-run: they are collected."""

from __future__ import annotations

from typing import Any, ClassVar

from labconsole.analysis.number_format import format_figure
from labconsole.cli.database import RunDatabase
from labconsole.hosts.installed import require_dask
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import Parameters
from labconsole.operations.hosts import SchedulerAddress, scheduler_field
from labconsole.paths import database_path


class CollectParameters(Parameters):
    """Whose hosts are asked, and where the runs are."""

    scheduler: SchedulerAddress = scheduler_field()
    db: RunDatabase = None


class CollectSamples(Operation[CollectParameters]):
    """Brings what runs of a database have left on hosts."""

    name: ClassVar[str] = "hosts.collect"
    title: ClassVar[str] = "Collect samples from hosts"
    description: ClassVar[str] = (
        "Brings the samples that runs have left on hosts, where a host, the scheduler or the console was lost in "
        "mid-run, stores them with their runs, and evaluates these again. A run keeps its status. The hosts forget "
        "what is stored."
    )
    parameters: ClassVar[type[Parameters]] = CollectParameters
    isolated: ClassVar[bool] = True
    writes: ClassVar[tuple[str, ...]] = ("runs",)

    def run(self, parameters: CollectParameters, context: OperationContext) -> Result:
        require_dask()
        from labconsole.hosts.cluster import Cluster
        from labconsole.hosts.cluster_certificates import console_files
        from labconsole.hosts.cluster_tls import Member
        from labconsole.hosts.left_samples import collect_left

        database = parameters.db or database_path()
        with Cluster(parameters.scheduler, Member.of_console(console_files())) as cluster:
            found = collect_left(cluster, database, lambda sentence: context.say(sentence))
        collected: list[dict[str, Any]] = [
            {"run": one.run, "host": one.host, "bytes": one.size} for one in found.collected
        ]
        sentences = [
            f"Run {one.run}: {format_figure(one.size, 'B')} from {one.host} are stored." for one in found.collected
        ]
        return Result(
            tuple(sentences) or ("No run of this database has left samples on a host.",),
            {"collected": collected, "unknown": list(found.unknown)},
            found.warnings,
        )
