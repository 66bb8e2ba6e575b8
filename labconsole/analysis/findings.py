"""Findings in words, drawn from the intervals of a comparison, each with the figures it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labconsole.analysis.caveats import link_bound, link_share
from labconsole.analysis.change import (
    ONE_RUN,
    Change,
    Judgement,
    Size,
    count,
    origin_words,
    rounded,
    span,
    title_in_sentence,
)
from labconsole.analysis.column_figures import SEPARATOR, most_frequent, short_reasons
from labconsole.analysis.columns import counterpart
from labconsole.analysis.comparison import Cell, Comparison, MetricLine, RunGroup, compare
from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.contrasts import Pair, contrasts
from labconsole.analysis.number_format import format_number
from labconsole.analysis.published_figures import PublishedColumn
from labconsole.model.trial import Trial


def pair_lines(comparison: Comparison, trial: Trial[Any] | None) -> Iterator[tuple[Pair, Mapping[str, MetricLine]]]:
    """Each pair with the lines, by name, that a table has whose baseline is the pair's reference: a sentence cannot
    disagree with the table."""
    tables: dict[int, Mapping[str, MetricLine]] = {}
    for pair in contrasts(comparison.columns, comparison.baseline, trial):
        if pair.reference not in tables:
            table = comparison
            if pair.reference != comparison.baseline:
                table = compare(comparison.columns, trial, baseline=pair.reference)
            tables[pair.reference] = {line.name: line for line in table.metrics}
        yield pair, tables[pair.reference]


_MOST_REASONS = 4
"""Reasons that are named in the sentence on all that is not judged."""


@dataclass(frozen=True)
class Finding:
    """A sentence with the figures it rests on in it.

    "TLS against plain: no significant difference in throughput (ratio 0.98, 95 % interval 0.94–1.03, 5 runs each)".
    `judged` is whether it is a judgement by an interval (`Judgement`), and not only a statement; `reasons` are why a
    figure is not judged. One that is `bare` has only the reasons.
    """

    sentence: str
    judged: bool
    reasons: tuple[str, ...] = ()
    bare: bool = False


def findings(comparison: Comparison, trial: Trial[Any] | None) -> tuple[Finding, ...]:
    """Sentences on the key figures of the pairs that the trial calls a fair contrast (or each column and the baseline),
    on columns that are link-bound, and on the published figures inside and outside of our intervals."""
    return (*_changes(comparison, trial), *_link_bound(comparison), *_published(comparison, trial))


def unjudged(comparison: Comparison, found: Sequence[Finding]) -> str:
    """How many metrics, and of the findings `found`, are not judged, and why: one sentence, or nothing."""
    metrics = [line for line in comparison.metrics if line.unjudged]
    differences = [finding for finding in found if finding.reasons]
    withheld = [cell.not_judged for line in metrics for cell in line.cells if cell.not_judged]
    reasons = most_frequent([*withheld, *(one for finding in differences for one in finding.reasons)], _MOST_REASONS)
    counted = [
        f"{len(those)} {name if len(those) == 1 else f'{name}s'}"
        for those, name in ((metrics, "metric"), (differences, "finding"))
        if those
    ]
    return f"Not judged: {' and '.join(counted)} ({', '.join(reasons)})." if counted else ""


def _changes(comparison: Comparison, trial: Trial[Any] | None) -> Iterator[Finding]:
    """Of each pair, the key figures for which one way is better."""
    names = [line.name for line in comparison.key_lines]
    pairs = list(pair_lines(comparison, trial))
    often = Counter(pair.title for pair, _ in pairs)
    for pair, lines in pairs:
        title = pair.title
        if often[title] > 1:
            title = f"{comparison.columns[pair.other].title}: {title}"
        for name in names:
            line = lines[name]
            doubts = short_reasons(
                filter(None, (line.cells[index].not_judged for index in (pair.reference, pair.other)))
            )
            if doubts:
                reason = SEPARATOR.join(doubts)
                yield Finding(
                    f"{title}: {title_in_sentence(line.kind)} is not judged: {reason}", False, doubts, bare=True
                )
                continue
            change = line.cells[pair.other].change
            if change is not None and change.ratio is not None:
                yield _sentence(title, line, pair, change, change.ratio)


def _sentence(title: str, line: MetricLine, pair: Pair, change: Change, ratio: float) -> Finding:
    metric, interval = title_in_sentence(line.kind), change.interval
    judged = change.judgement is not Judgement.NOT_JUDGED
    runs = run_count_text(line.cells[pair.reference], line.cells[pair.other])
    behind = []
    if ratio == 1:
        said = f"{metric} is the same"
    elif interval is not None and (change.judgement is Judgement.NO_CHANGE or interval.holds(1.0)):
        said = f"no significant difference in {metric}" if judged else f"no difference shown in {metric}"
        behind = [f"ratio {rounded([ratio], ratio, interval)}", f"95 % interval {span(ratio, interval)}"]
    else:
        size = Size.of(ratio, interval)
        said = f"{metric} is {'higher' if ratio > 1 else 'lower'} by {size}"
        behind = [] if size.interval is None else [f"95 % interval {span(size.value, size.interval)}{size.unit}"]
    if interval is None:
        others = [note for note in change.notes if note != ONE_RUN]
        sentence = f"{title}: {said} ({'; '.join([f'{runs}: no interval', *others])})"
        return Finding(sentence, judged, () if judged else change.notes)
    behind.append(runs)
    if change.note:
        behind.append(change.note if judged else f"not judged: {change.note}")
    return Finding(f"{title}: {said} ({', '.join(behind)})", judged, () if judged else change.notes)


def run_count_text(reference: Cell, other: Cell) -> str:
    """Numbers of runs in words, with their origins where they did not measure; a published side has none."""
    if not reference.runs or not other.runs:
        ours = reference if reference.runs else other
        return f"{count(ours.runs, ours.origins)} against a published figure"
    if reference.origins != other.origins:
        return f"{count(reference.runs, reference.origins)} and {count(other.runs, other.origins)}"
    counted = count(other.runs, other.origins)
    if reference.runs == other.runs:
        return f"{counted.replace('1', 'one', 1) if other.runs == 1 else counted} each"
    return f"{reference.runs} and {counted}"


def _link_bound(comparison: Comparison) -> Iterator[Finding]:
    for column in comparison.columns:
        bound = list(filter(link_bound, column.used)) if isinstance(column, RunGroup) else []
        if bound:
            yield Finding(f"{column.title} is link-bound: {link_share(bound)}", False)


def _published(comparison: Comparison, trial: Trial[Any] | None) -> Iterator[Finding]:
    """The published key figures outside of our intervals, and how many of all are inside."""
    key_names = {line.name for line in comparison.key_lines}
    inside = of = 0
    for index, column in enumerate(comparison.columns):
        measured = counterpart(comparison.columns, index)
        if not isinstance(column, PublishedColumn) or measured is None:
            continue
        for line in comparison.metrics:
            holds = line.cells[index].holds
            cell = line.cells[measured]
            if holds is None or cell.interval is None or cell.value is None:
                continue
            of += 1
            inside += holds
            if not holds and line.name in key_names:
                said = f"the published {title_in_sentence(line.kind)} of {column.figures[line.name].printed} is"
                ours = _not_held(cell.value, cell.interval, line.kind.unit, origin_words(cell.origins))
                behind = f"{count(cell.runs)}; {column.title}"
                yield Finding(f"{comparison.columns[measured].title}: {said} {ours} ({behind})", True)
    if of:
        ours = f"The intervals {comparison.origin_of_ours()} for the same scenarios"
        yield Finding(f"{ours} hold {inside} of {of} published figures", True)


def _not_held(value: float, interval: Interval, unit: str, origin: str) -> str:
    """How a published figure is not in our interval, which is one value where all runs have the same."""
    if interval.low == interval.high:
        return f"not the {origin} value {format_number(value)} {unit}"
    return f"outside the {origin} interval {span(value, interval)} {unit}"
