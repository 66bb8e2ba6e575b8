"""The figures of a metric in a column: which runs count, and the reasons why none may be judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from labconsole.analysis.caveats import too_few
from labconsole.analysis.columns import Column, RunGroup
from labconsole.analysis.number_format import format_figure
from labconsole.model.metrics import FULL_SPEED, OFFERED_RATE, Metric, MetricKind
from labconsole.model.series import Origin
from labconsole.store.records import RunRow

LARGEST_SHARE: Final = 0.25
"""Offered rate over full speed: at half of it, queues were already growing."""


def offered_rate_too_high(offered: float, full_speed: float | None, unit: str) -> str:
    """Why the rate is too high for a full speed, in a few words; empty where it is not, or that is not known."""
    if full_speed is None or offered <= LARGEST_SHARE * full_speed:
        return ""
    return f"{format_figure(offered, unit)} is over a quarter of full speed ({format_figure(full_speed, unit)})"


def offered_rate_too_high_in_round(run: RunRow, columns: Sequence[Column]) -> str:
    """Why the rate that `run` was offered is too high for the slowest run of its round, offered the same; or empty.

    A round are the runs of one campaign with the same number of repeat. Of a column that has none in the round (it was
    repeated, say), all count. A full speed that is not judged does not limit the rate: that of an open loop, which was
    offered no more, or of a busy computer.
    """
    if OFFERED_RATE not in run.metrics:
        return ""
    offered = run.metrics[OFFERED_RATE]
    speeds = [peer.metrics[FULL_SPEED].value for peer in _peers(run, columns)]
    return offered_rate_too_high(offered.value, min(speeds, default=None), offered.unit)


def _peers(run: RunRow, columns: Sequence[Column]) -> Iterator[RunRow]:
    offered = run.metrics[OFFERED_RATE].value
    for column in columns:
        if isinstance(column, RunGroup) and column.kind == run.kind:
            rated = [other for other in column.used if OFFERED_RATE in other.metrics and _speed_known(other)]
            alike = [other for other in rated if other.metrics[OFFERED_RATE].value == offered]
            in_round = [other for other in alike if (other.campaign_id, other.repeat) == (run.campaign_id, run.repeat)]
            yield from in_round or alike


def _speed_known(run: RunRow) -> bool:
    return FULL_SPEED in run.metrics and not run.metrics[FULL_SPEED].not_judged


SEPARATOR: Final = "; "
"""Between several reasons in one text."""
_FIGURES = re.compile(r"\d[\d.,]*")
_DETAILS = re.compile(r"( \([^()]*\))?( in \d+ of \d+ runs)?$")


@dataclass(frozen=True)
class ColumnFigures:
    """The figures of a column that count, one per run, or the one published.

    Where some runs may be judged, theirs alone count, and `left_out` is the number of the others. Where none may,
    `not_judged` has the reasons. `offered` are the offered rates that matter to the metric.
    """

    metrics: tuple[Metric, ...] = ()
    not_judged: str = ""
    left_out: int = 0
    offered: frozenset[float] = frozenset()
    doubts: tuple[str, ...] = ()
    """The different reasons in short, where no run may be judged."""


def column_figures(column: Column, name: str, kind: MetricKind, columns: Sequence[Column]) -> ColumnFigures:
    """The figures of the metric `name` in `column`, one of `columns`."""
    if not isinstance(column, RunGroup):
        figure = column.figures.get(name)
        if figure is None:
            return ColumnFigures()
        return ColumnFigures((Metric(name, figure.value, figure.unit, origin=Origin.PUBLISHED),))
    runs = [run for run in column.used if name in run.metrics]
    reasons = {run.id: SEPARATOR.join(_reasons(run, name, kind, columns)) for run in runs}
    judged = [run for run in runs if not reasons[run.id]]
    counting = judged or runs
    rates = (run.metrics[OFFERED_RATE].value for run in counting if kind.at_rate and OFFERED_RATE in run.metrics)
    return ColumnFigures(
        tuple(run.metrics[name] for run in counting),
        "" if judged else _together(list(reasons.values())),
        len(runs) - len(counting),
        frozenset(rates),
        () if judged else short_reasons(reasons.values()),
    )


def _reasons(run: RunRow, name: str, kind: MetricKind, columns: Sequence[Column]) -> Iterator[str]:
    """Why this run's figure may not be judged, in a few words each."""
    metric = run.metrics[name]
    if metric.not_judged:
        yield metric.not_judged
        return
    if kind.quantile is not None and (few := too_few(metric.samples, kind.quantile)):
        yield few
    if kind.at_rate and (high := offered_rate_too_high_in_round(run, columns)):
        yield high


def short_reasons(reasons: Iterable[str]) -> tuple[str, ...]:
    """What is different among `reasons`, each once: without its figures and its number of runs where these differ."""
    parts = (part for reason in reasons for part in reason.split(SEPARATOR))
    return tuple(
        alike[0] if len(set(alike)) == 1 else _DETAILS.sub("", alike[0])
        for alike in _by_text_without_figures(parts).values()
    )


def most_frequent(reasons: Iterable[str], most: int) -> tuple[str, ...]:
    """The same without any figures, of many reasons the `most` frequent ones, and how many others there are."""
    parts = (part for reason in reasons for part in reason.split(SEPARATOR))
    found = sorted(_by_text_without_figures(parts).values(), key=len, reverse=True)
    rest = (f"{len(found) - most} other reasons",) if len(found) > most + 1 else ()
    return (*(_DETAILS.sub("", alike[0]) for alike in (found[:most] if rest else found)), *rest)


def _by_text_without_figures(reasons: Iterable[str]) -> dict[str, list[str]]:
    """Reasons, grouped by their text without figures."""
    alike: dict[str, list[str]] = {}
    for reason in reasons:
        alike.setdefault(_text_without_figures(reason), []).append(reason)
    return alike


def _text_without_figures(reason: str) -> str:
    return _FIGURES.sub("#", _DETAILS.sub("", reason))


def _together(reasons: Sequence[str]) -> str:
    """The reasons of all runs, the most frequent first, and for how many of them each holds where not for all."""
    having = {
        shown: sum(
            _text_without_figures(shown) in map(_text_without_figures, reason.split(SEPARATOR)) for reason in reasons
        )
        for shown in short_reasons(reasons)
    }
    return SEPARATOR.join(
        shown if having[shown] == len(reasons) else f"{shown} in {having[shown]} of {len(reasons)} runs"
        for shown in sorted(having, key=lambda shown: -having[shown])
    )
