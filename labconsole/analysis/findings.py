"""Findings in words, drawn from the intervals of a comparison, each with the figures it rests on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labconsole.analysis.caveats import link_bound, link_share
from labconsole.analysis.change import ONE_RUN, Change, Judgement
from labconsole.analysis.comparison import Comparison, MetricLine, RunGroup, compare, counterpart
from labconsole.analysis.contrasts import Pair, contrasts
from labconsole.analysis.intervals import Interval
from labconsole.analysis.published import PublishedColumn
from labconsole.trial import Direction, MetricKind, Trial

KEY_METRICS = ("throughput", "latency_mean")
"""The metrics on which findings are drawn; of a trial that has none of them, its first ones that have a direction."""

_OTHERWISE = 3
_DECIMALS = 6
_FACTOR_FROM = 1.5
"""From this factor on a change is told as a factor, below in %."""


@dataclass(frozen=True)
class Finding:
    """A sentence with the figures it rests on in it.

    "TLS against plain: no significant difference in throughput (ratio 0.98, 95 % interval 0.94–1.03, 5 runs each)".
    `judged` is whether it is a judgement by an interval (`Judgement`), and not only told.
    """

    sentence: str
    judged: bool


def findings(comparison: Comparison, trial: Trial[Any] | None) -> tuple[Finding, ...]:
    """Sentences on the key figures of the pairs that the trial calls a fair contrast (or each column and the baseline),
    on columns that are link-bound, and on how the published figures lie to the measured ones."""
    return (*_changes(comparison, trial), *_link_bound(comparison), *_published(comparison, trial))


def key_metrics(comparison: Comparison, trial: Trial[Any] | None) -> tuple[MetricLine, ...]:
    """The lines of the comparison on which findings are drawn."""
    lines = {line.name: line for line in comparison.metrics}
    named = [lines[name] for name in KEY_METRICS if name in lines]
    if named:
        return tuple(named)
    known = [lines[kind.name] for kind in trial.metrics if kind.name in lines] if trial is not None else lines.values()
    return tuple(line for line in known if line.kind.direction is not Direction.NEUTRAL)[:_OTHERWISE]


def _changes(comparison: Comparison, trial: Trial[Any] | None) -> Iterator[Finding]:
    """What a table would say of each pair if its reference were the baseline: view and sentence cannot disagree."""
    names = [line.name for line in key_metrics(comparison, trial)]
    pairs = contrasts(comparison.columns, comparison.baseline, trial)
    tables: dict[int, Mapping[str, MetricLine]] = {}
    often = Counter(pair.words for pair in pairs)
    for pair in pairs:
        if pair.reference not in tables:
            table = comparison
            if pair.reference != comparison.baseline:
                table = compare(comparison.columns, trial, baseline=pair.reference)
            tables[pair.reference] = {line.name: line for line in table.metrics}
        words = pair.words
        if often[words] > 1:
            words = f"{comparison.columns[pair.other].title}: {words}"
        for name in names:
            line = tables[pair.reference][name]
            doubts = dict.fromkeys(line.cells[index].not_judged for index in (pair.reference, pair.other))
            if reason := "; ".join(filter(None, doubts)):
                yield Finding(f"{words}: {_in_sentence(line.kind)} is not judged: {reason}", False)
                continue
            change = line.cells[pair.other].change
            if change is not None and change.ratio is not None:
                yield _sentence(words, line, pair, change, change.ratio)


def _sentence(words: str, line: MetricLine, pair: Pair, change: Change, ratio: float) -> Finding:
    metric, interval = _in_sentence(line.kind), change.interval
    judged = change.judgement is not Judgement.NOT_JUDGED
    runs = _runs(line.cells[pair.reference].runs, line.cells[pair.other].runs)
    behind = []
    if ratio == 1:
        said = f"{metric} is the same"
    elif interval is not None and (change.judgement is Judgement.NO_CHANGE or interval.holds(1.0)):
        said = f"no significant difference in {metric}" if judged else f"no difference shown in {metric}"
        behind = [f"ratio {_rounded([ratio], ratio, interval)}", f"95 % interval {_span(ratio, interval)}"]
    else:
        size = _Size.of(ratio, interval)
        said = f"{metric} is {'higher' if ratio > 1 else 'lower'} by {size}"
        behind = [] if size.interval is None else [f"95 % interval {_span(size.value, size.interval)}{size.unit}"]
    if interval is None:
        others = [note for note in change.notes if note != ONE_RUN]
        return Finding(f"{words}: {said} ({'; '.join([f'{runs}: no interval', *others])})", judged)
    behind.append(runs)
    if change.note:
        behind.append(change.note if judged else f"not judged: {change.note}")
    return Finding(f"{words}: {said} ({', '.join(behind)})", judged)


@dataclass(frozen=True)
class _Size:
    """How large a change is, up or down: a factor where it is a large one (no unit), otherwise a percentage."""

    value: float
    interval: Interval | None
    unit: str

    @classmethod
    def of(cls, ratio: float, interval: Interval | None) -> _Size:
        """The size of a change to `ratio`, whose interval (if any) lies on one side of 1."""
        ends = (interval.low, interval.high) if interval is not None else ()
        factor = max(ratio, 1 / ratio)
        if factor >= _FACTOR_FROM:
            scaled = sorted(end if ratio > 1 else 1 / end for end in ends)
            return cls(factor, Interval(*scaled) if scaled else None, "")
        scaled = sorted(abs(end - 1) * 100 for end in ends)
        return cls(abs(ratio - 1) * 100, Interval(*scaled) if scaled else None, " %")

    def __str__(self) -> str:
        rounded = _rounded([self.value], self.value, self.interval)
        return f"{rounded}{self.unit}" if self.unit else f"a factor {rounded}"


def _link_bound(comparison: Comparison) -> Iterator[Finding]:
    for column in comparison.columns:
        bound = list(filter(link_bound, column.used)) if isinstance(column, RunGroup) else []
        if bound:
            yield Finding(f"{column.title} is link-bound: {link_share(bound)}", False)


def _published(comparison: Comparison, trial: Trial[Any] | None) -> Iterator[Finding]:
    """The key figures that lie outside of what was measured, and how many of all lie inside."""
    told = {line.name for line in key_metrics(comparison, trial)}
    inside = of = 0
    for index, column in enumerate(comparison.columns):
        measured = counterpart(comparison.columns, column) if isinstance(column, PublishedColumn) else None
        if not isinstance(column, PublishedColumn) or measured is None:
            continue
        for line in comparison.metrics:
            holds = line.cells[index].holds
            cell = line.cells[comparison.columns.index(measured)]
            if holds is None or cell.interval is None or cell.value is None:
                continue
            of += 1
            inside += holds
            if not holds and line.name in told:
                said = f"the published {_in_sentence(line.kind)} of {column.figures[line.name].printed} lies outside"
                span = f"{_span(cell.value, cell.interval)} {line.kind.unit}"
                behind = f"{_count(cell.runs)}; {column.title}"
                yield Finding(f"{measured.title}: {said} the measured interval {span} ({behind})", True)
    if of:
        yield Finding(f"The intervals measured for the same scenarios hold {inside} of {of} published figures", True)


def _in_sentence(kind: MetricKind) -> str:
    """A metric's title within a sentence; an abbreviation stays as it is."""
    title = kind.title
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _count(runs: int) -> str:
    return f"{runs} {'run' if runs == 1 else 'runs'}"


def _runs(reference: int, other: int) -> str:
    """Numbers of runs in words; a published side has none."""
    if not reference or not other:
        return f"{_count(reference or other)} against a published figure"
    if reference == other:
        return "one run each" if reference == 1 else f"{reference} runs each"
    return f"{reference} and {_count(other)}"


def _span(centre: float, interval: Interval) -> str:
    return _rounded([interval.low, interval.high], centre, interval)


def _rounded(values: Sequence[float], centre: float, interval: Interval | None) -> str:
    """Figures around `centre`, as precise as its interval is wide, but two digits of the centre at least."""
    half = (interval.high - interval.low) / 2 if interval is not None else 0.0
    decimals = max(_decimals(half) if half else 0, _decimals(centre / 10) if centre else 0)
    return "–".join(f"{value:,.{decimals}f}" if round(value, decimals) else f"{value:.1g}" for value in values)


def _decimals(value: float) -> int:
    """Decimals that show the first digit of `value`."""
    return min(max(0, -math.floor(math.log10(abs(value)))), _DECIMALS)
