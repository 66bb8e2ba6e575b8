"""Columns of a comparison: repeats of a scenario, single runs, or published figures; each with a title of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labconsole.analysis.change import count, origin_words
from labconsole.analysis.published_figures import PublishedColumn
from labconsole.model.series import Origin
from labconsole.store.records import RunRow, RunStatus


@dataclass(frozen=True)
class RunGroup:
    """The repeats of one scenario on the same hosts in one campaign, or a single run.

    `used` are those that the figures take: the finished ones, or all where none is.
    """

    title: str
    runs: tuple[RunRow, ...]
    used: tuple[RunRow, ...]

    @property
    def repeats(self) -> int:
        """Number of runs behind the column's figures."""
        return len(self.used)

    @property
    def origins(self) -> frozenset[Origin]:
        """The origins of the column's figures; none where its runs have no figures."""
        return frozenset(metric.origin for run in self.used for metric in run.metrics.values())

    def origins_of(self, metrics: Collection[str]) -> frozenset[Origin]:
        """The origins of those of its figures that are of these metrics."""
        return frozenset(run.metrics[name].origin for run in self.used for name in metrics if name in run.metrics)

    @property
    def measured(self) -> bool:
        """Whether the column has no figures of another origin, which its heads and plots then name."""
        return self.origins <= {Origin.MEASURED}

    @property
    def run_count(self) -> str:
        """`1 run`, `5 runs`, `5 simulated runs`."""
        return count(self.repeats, self.origins)

    @property
    def kind(self) -> str:
        """Kind of the runs' trial."""
        return self.runs[0].kind

    @property
    def kinds(self) -> tuple[str, ...]:
        """The one kind of its runs; a published column may be of several trials."""
        return (self.kind,)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The scenario's parameters, as stored."""
        return self.runs[0].parameters

    @property
    def hosts(self) -> str:
        """The hosts that the scenario asks for, in words; empty where all roles stay on the console's computer."""
        return self.runs[0].hosts


Column = RunGroup | PublishedColumn


def group_repeats(runs: Sequence[RunRow]) -> tuple[RunGroup, ...]:
    """Runs of the same scenario of the same campaign, on the same hosts, as one column each, in the given order."""
    groups: dict[tuple[int, str, str, str, str], list[RunRow]] = {}
    for run in runs:
        parameters, placement = (repr(sorted(values.items())) for values in (run.parameters, run.placement))
        key = (run.campaign_id, run.scenario, run.kind, parameters, placement)
        groups.setdefault(key, []).append(run)
    return _titled(list(groups.values()))


def share_a_trial(columns: Sequence[Column]) -> bool:
    """Whether there is a trial that describes all of the columns; so it is without columns."""
    kinds = [set(column.kinds) for column in columns]
    return not kinds or bool(set.intersection(*kinds))


def single_runs(runs: Sequence[RunRow]) -> tuple[RunGroup, ...]:
    """Every run as a column of its own."""
    return _titled([[run] for run in runs])


def column_of_run(groups: Sequence[RunGroup], run_id: int) -> int:
    """Index of the column that has this run. Raises ValueError where none has it."""
    for index, group in enumerate(groups):
        if any(run.id == run_id for run in group.runs):
            return index
    raise ValueError(f"run {run_id} is in no column")


def counterparts(columns: Sequence[Column], published: PublishedColumn) -> tuple[RunGroup, ...]:
    """Our columns of the scenario of a `published` one: of each trial the one with most runs, in their order."""
    fitting: dict[str, RunGroup] = {}
    for column in columns:
        if (
            isinstance(column, RunGroup)
            and column.kind in published.kinds
            and published.fits(column.parameters)
            and (column.kind not in fitting or column.repeats > fitting[column.kind].repeats)
        ):
            fitting[column.kind] = column
    return tuple(column for column in columns if isinstance(column, RunGroup) and column in fitting.values())


def counterpart(columns: Sequence[Column], index: int) -> int | None:
    """The column of ours at the right of which the published column `index` is shown; None where it is of no scenario
    of ours, or is not a published one."""
    column = columns[index]
    if not isinstance(column, PublishedColumn):
        return None
    left = next((place for place in reversed(range(index)) if isinstance(columns[place], RunGroup)), None)
    return left if left is not None and columns[left] in counterparts(columns, column) else None


def title_with_origin(column: Column) -> str:
    """The title in plots, where no head is above it: "Published: Test 1", "A-SIG-01, simulated"."""
    if not isinstance(column, RunGroup):
        return f"Published: {column.title}"
    return column.title if column.measured else f"{column.title}, {origin_words(column.origins)}"


def has_figures(column: Column) -> bool:
    """Whether the column has any figures: not where only verdicts are published."""
    return isinstance(column, RunGroup) or bool(column.figures)


def published_next_to_measured(columns: Sequence[Column], baseline: int) -> tuple[tuple[Column, ...], int]:
    """The columns with each published one directly right of each of its `counterparts`, and the baseline's index in
    them. A published column of a live and of a simulated one is there twice; columns in this order stay as they are."""
    places: list[tuple[int, bool, int]] = []
    for index, column in enumerate(columns):
        if not isinstance(column, PublishedColumn):
            places.append((index, False, index))
        elif columns.index(column) == index:
            ours = [columns.index(group) for group in counterparts(columns, column)]
            places += [(place, True, index) for place in ours] or [(index, False, index)]
    order = [index for *_, index in sorted(places)]
    return tuple(columns[index] for index in order), order.index(columns.index(columns[baseline]))


def _titled(groups: list[list[RunRow]]) -> tuple[RunGroup, ...]:
    """Groups with titles that differ: by scenario, then also campaign, then also run."""

    def ambiguous(titles: list[str]) -> list[bool]:
        counts = Counter(titles)
        return [counts[title] > 1 for title in titles]

    titles = [runs[0].scenario for runs in groups]
    campaigns = [runs[0].campaign for runs in groups]
    if len(set(campaigns)) > 1:
        again = ambiguous(titles)
        titles = [f"{t} · {c}" if twice else t for t, c, twice in zip(titles, campaigns, again, strict=True)]
    again = ambiguous(titles)
    titles = [f"{t} · run {runs[0].id}" if twice else t for t, runs, twice in zip(titles, groups, again, strict=True)]
    return tuple(RunGroup(title, tuple(runs), _used(runs)) for title, runs in zip(titles, groups, strict=True))


def _used(runs: list[RunRow]) -> tuple[RunRow, ...]:
    finished = tuple(run for run in runs if run.status is RunStatus.FINISHED)
    return finished or tuple(runs)
