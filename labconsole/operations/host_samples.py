"""Samples on hosts of a console: collect what runs left there, summarise it where it is, or discard it."""

from __future__ import annotations

from typing import Any, ClassVar

from labconsole.analysis.number_format import format_figure
from labconsole.cli.database import RunDatabase
from labconsole.errors import UserError
from labconsole.hosts.installed import require_dask
from labconsole.model.operation import Confirmation, Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
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
        from labconsole.hosts.samples.left_samples import collect_left

        database = parameters.db or database_path()
        with Cluster.of_console(parameters.scheduler) as cluster:
            found = collect_left(cluster, database, context.say)
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


class DiscardParameters(Parameters):
    """Which runs have samples on hosts that are not needed."""

    run: tuple[str, ...] = parameter(
        "Runs",
        "Uuids of the runs, as `labconsole hosts collect` reports them",
        default=(),
        positional=True,
        required=True,
        metavar="UUID",
    )
    scheduler: SchedulerAddress = scheduler_field()
    db: RunDatabase = None
    yes: bool = parameter("Yes", "Remove them without a question", default=False, terminal_only=True)


class DiscardSamples(Operation[DiscardParameters]):
    """Removes what runs have left on hosts that were deleted from their database."""

    name: ClassVar[str] = "hosts.discard"
    title: ClassVar[str] = "Discard samples on hosts"
    description: ClassVar[str] = (
        "Removes the samples of runs from all hosts for good, where the runs were deleted from their database. Those "
        "of runs that the database has are refused: collect them."
    )
    parameters: ClassVar[type[Parameters]] = DiscardParameters
    isolated: ClassVar[bool] = True

    def confirmation(self, parameters: DiscardParameters) -> Confirmation | None:
        listed = "\n".join(parameters.run)
        loss = f"{listed}\nThe samples of these runs, of whichever database, are removed from all hosts for good."
        return None if parameters.yes else Confirmation("yes", loss, "--yes")

    def run(self, parameters: DiscardParameters, context: OperationContext) -> Result:
        require_dask()
        from labconsole.hosts.cluster import Cluster
        from labconsole.hosts.samples.left_samples import discard

        if not parameters.run:
            raise UserError("Name the runs by the uuids that `labconsole hosts collect` reports.")
        with Cluster.of_console(parameters.scheduler) as cluster:
            removed = discard(cluster, parameters.db or database_path(), parameters.run)
        sentences = [f"The samples of {run} on {host} are removed." for run, host in removed]
        return Result(
            tuple(sentences) or ("No host has samples of these runs.",),
            {"removed": [{"run": run, "host": host} for run, host in removed]},
        )


class SummariseParameters(Parameters):
    """Which campaign is summarised, and which hosts are asked."""

    run: int | None = parameter(
        "Run",
        "Number of a run, whose campaign is summarised",
        default=None,
        positional=True,
        metavar="RUN",
        empty="The newest campaign",
        ge=1,
    )
    scheduler: SchedulerAddress = scheduler_field()
    db: RunDatabase = None


class SummariseSamples(Operation[SummariseParameters]):
    """Summarises the samples of a campaign host by host."""

    name: ClassVar[str] = "hosts.summarise"
    title: ClassVar[str] = "Summarise samples by host"
    description: ClassVar[str] = (
        "Gives mean, percentiles and extremes of what each host of a campaign recorded, and of all together: each host "
        "summarises the samples that it still has, and sends the summary alone. What is in the database is read from "
        "there. Measures are named as in exported tables: series, column; `a - b` is the time from b to a. Latency "
        "between hosts needs the samples of both: collect them for it."
    )
    parameters: ClassVar[type[Parameters]] = SummariseParameters
    isolated: ClassVar[bool] = True

    def run(self, parameters: SummariseParameters, context: OperationContext) -> Result:
        require_dask()
        from labconsole.hosts.samples.campaign_summary import campaign_summary
        from labconsole.hosts.samples.summary_result import summary_result

        database = parameters.db or database_path()
        return summary_result(campaign_summary(database, parameters.run, parameters.scheduler, context))
