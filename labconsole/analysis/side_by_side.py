"""Runs side by side: repeats of a scenario grouped into columns, metrics and differing parameters as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from labconsole.analysis.parameters import describe_parameters
from labconsole.store.records import RunRow, RunStatus
from labconsole.trial import Direction, Metric, MetricKind, Trial

ENOUGH_REPEATS = 5
"""Below so many repeats a difference is said to rest on few runs."""


@dataclass(frozen=True)
class RunGroup:
    """One column: the repeats of one scenario in one campaign (or a single run). `used` are those in the means."""

    title: str
    runs: tuple[RunRow, ...]
    used: tuple[RunRow, ...]

    @property
    def repeats(self) -> int:
        """Number of runs behind the column's figures."""
        return len(self.used)


@dataclass(frozen=True)
class Cell:
    """A metric in one column: mean over `runs` runs, and its difference from the baseline in % of the baseline."""

    value: float | None
    runs: int
    difference: float | None


@dataclass(frozen=True)
class MetricLine:
    """A metric in all columns; `remark` says what a reader of this line must know."""

    kind: MetricKind
    cells: tuple[Cell, ...]
    remark: str


@dataclass(frozen=True)
class ParameterLine:
    """A parameter in all columns, as text."""

    name: str
    title: str
    unit: str
    texts: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the columns have different values."""
        return len(set(self.texts)) > 1


@dataclass(frozen=True)
class Table:
    """The comparison: columns, the baseline's index among them, lines, and notes on the whole."""

    columns: tuple[RunGroup, ...]
    baseline: int
    parameters: tuple[ParameterLine, ...]
    metrics: tuple[MetricLine, ...]
    notes: tuple[str, ...]


def group_repeats(runs: Sequence[RunRow]) -> tuple[RunGroup, ...]:
    """Runs of the same scenario of the same campaign as one column each, in the order in which they are given.

    A mean takes finished runs only; a group without any takes what it has.
    """
    groups: dict[tuple[int, str, str, str], list[RunRow]] = {}
    for run in runs:
        key = (run.campaign_id, run.scenario, run.kind, repr(sorted(run.parameters.items())))
        groups.setdefault(key, []).append(run)
    return _titled(list(groups.values()))


def single_runs(runs: Sequence[RunRow]) -> tuple[RunGroup, ...]:
    """Every run as a column of its own."""
    return _titled([[run] for run in runs])


def side_by_side(runs: Sequence[RunRow], trial: Trial[Any] | None, *, baseline: int = 0, grouped: bool = True) -> Table:
    """Compare `runs`; `trial` describes parameters and metrics (None: a trial that is not installed).

    Runs of different kinds show the metrics they share. Raises ValueError without runs or with a `baseline` that is
    no column.
    """
    columns = group_repeats(runs) if grouped else single_runs(runs)
    if not 0 <= baseline < len(columns):
        raise ValueError(f"column {baseline} cannot be the baseline of {len(columns)} columns")
    names = _metric_names(columns, trial)
    return Table(
        columns,
        baseline,
        _parameters(columns, trial),
        tuple(_metric_line(name, columns, baseline, trial) for name in names),
        tuple(_notes(columns)),
    )


def _titled(groups: list[list[RunRow]]) -> tuple[RunGroup, ...]:
    """Groups with titles that tell them apart: the scenario, then the campaign, then the run."""

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


def _metric_names(columns: tuple[RunGroup, ...], trial: Trial[Any] | None) -> list[str]:
    present = [set().union(*(run.metrics for run in column.used)) for column in columns]
    mixed = len({run.kind for column in columns for run in column.runs}) > 1
    names: set[str] = set.intersection(*present) if mixed else set.union(*present)
    known = [kind.name for kind in trial.metrics if kind.name in names] if trial is not None else []
    return known + sorted(names.difference(known))


def _metric_line(name: str, columns: tuple[RunGroup, ...], baseline: int, trial: Trial[Any] | None) -> MetricLine:
    figures: list[list[Metric]] = [
        [run.metrics[name] for run in column.used if name in run.metrics] for column in columns
    ]
    means = [fmean(metric.value for metric in metrics) if metrics else None for metrics in figures]
    reference = means[baseline]
    cells = tuple(
        Cell(mean, len(metrics), None if index == baseline else _difference(mean, reference))
        for index, (mean, metrics) in enumerate(zip(means, figures, strict=True))
    )
    every = [metric for metrics in figures for metric in metrics]
    remarks = []
    if min((len(metrics) for metrics in figures if metrics), default=0) < ENOUGH_REPEATS:
        remarks.append(f"fewer than {ENOUGH_REPEATS} repeats")
    origins = sorted({metric.origin.value for metric in every})
    if len(origins) > 1:
        remarks.append(f"different origins: {', '.join(origins)}")
    units = sorted({metric.unit for metric in every})
    if len(units) > 1:
        remarks.append(f"different units: {', '.join(units)}")
        cells = tuple(Cell(cell.value, cell.runs, None) for cell in cells)
    return MetricLine(_kind(name, every[0], trial), cells, "; ".join(remarks))


def _difference(value: float | None, reference: float | None) -> float | None:
    if value is None or reference is None or reference == 0:
        return None
    return (value - reference) / abs(reference) * 100


def _kind(name: str, example: Metric, trial: Trial[Any] | None) -> MetricKind:
    if trial is not None:
        for kind in trial.metrics:
            if kind.name == name:
                return MetricKind(name, kind.title, example.unit, kind.direction, kind.description)
    return MetricKind(name, name.replace("_", " "), example.unit, Direction(example.direction), "")


def _parameters(columns: tuple[RunGroup, ...], trial: Trial[Any] | None) -> tuple[ParameterLine, ...]:
    described = [
        {
            value.name: value
            for value in describe_parameters(
                column.runs[0].parameters,
                trial.parameters if trial is not None and trial.kind == column.runs[0].kind else None,
            )
        }
        for column in columns
    ]
    order = dict.fromkeys(name for values in described for name in values)
    lines = []
    for name in order:
        example = next(values[name] for values in described if name in values)
        texts = tuple(values[name].text if name in values else "–" for values in described)
        lines.append(ParameterLine(name, example.title, example.unit, texts))
    return tuple(lines)


def _notes(columns: tuple[RunGroup, ...]) -> list[str]:
    notes = []
    if len({run.kind for column in columns for run in column.runs}) > 1:
        notes.append("Runs of different trials: only the metrics they share are shown.")
    for column in columns:
        left_out = [run for run in column.runs if run not in column.used]
        notes += [f"Run {run.id} ({run.status.value}) is left out of the means of {column.title}." for run in left_out]
        if column.used[0].status is not RunStatus.FINISHED:
            for run in column.used:
                notes.append(f"Run {run.id} is {run.status.value}: its figures cover what was sampled until then.")
    return notes
