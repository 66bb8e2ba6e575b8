"""What a column has of a metric: which runs' figures count, and why none may be judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labconsole.analysis.caveats import too_few
from labconsole.analysis.columns import Column, RunGroup
from labconsole.analysis.offered_rate import too_high_in_round
from labconsole.store.records import RunRow
from labconsole.trial import OFFERED_RATE, Metric, MetricKind, Origin


@dataclass(frozen=True)
class Figures:
    """The figures of a column that count, one per run, or the one published.

    Where some runs may be judged, theirs alone count, and `left_out` is the number of the others. Where none may,
    `not_judged` is the reason. `offered` are the offered rates that matter to the metric.
    """

    metrics: tuple[Metric, ...] = ()
    not_judged: str = ""
    left_out: int = 0
    offered: frozenset[float] = frozenset()


def figures_of(column: Column, name: str, kind: MetricKind, columns: Sequence[Column]) -> Figures:
    """What `column`, one of `columns`, has of the metric `name`."""
    if not isinstance(column, RunGroup):
        figure = column.figures.get(name)
        if figure is None:
            return Figures()
        return Figures((Metric(name, figure.value, figure.unit, origin=Origin.PUBLISHED),))
    runs = [run for run in column.used if name in run.metrics]
    reasons = {run.id: "; ".join(_reasons(run, name, kind, columns)) for run in runs}
    judged = [run for run in runs if not reasons[run.id]]
    counting = judged or runs
    rates = (run.metrics[OFFERED_RATE].value for run in counting if kind.at_rate and OFFERED_RATE in run.metrics)
    return Figures(
        tuple(run.metrics[name] for run in counting),
        "" if judged else _together(list(reasons.values())),
        len(runs) - len(counting),
        frozenset(rates),
    )


def _reasons(run: RunRow, name: str, kind: MetricKind, columns: Sequence[Column]) -> Iterator[str]:
    """Why this run's figure may not be judged, in a few words each."""
    metric = run.metrics[name]
    if metric.not_judged:
        yield metric.not_judged
        return
    if kind.quantile is not None and (few := too_few(metric.samples, kind.quantile)):
        yield few
    if kind.at_rate and (high := too_high_in_round(run, columns)):
        yield high


def _together(reasons: Sequence[str]) -> str:
    """The reason of the first run, and how many others have another one."""
    if not reasons:
        return ""
    others = sum(reason != reasons[0] for reason in reasons)
    return f"{reasons[0]} (and {others} more {'run' if others == 1 else 'runs'})" if others else reasons[0]
