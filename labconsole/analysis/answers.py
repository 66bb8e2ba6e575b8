"""Answers: one plain sentence and one large number for each question that a comparison answers.

Window, terminal, report and JSON show the same answers. The questions are those of the trial (`Trial.questions`,
`Trial.service_level`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from labconsole.analysis.change import (
    ONE_RUN,
    WRITTEN_AS_FACTOR_FROM,
    Change,
    Judgement,
    Size,
    count,
    span,
)
from labconsole.analysis.column_figures import SEPARATOR, most_frequent
from labconsole.analysis.columns import Column, RunGroup, title_with_origin
from labconsole.analysis.comparison import Cell, Comparison, MetricLine
from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.contrasts import contrasts, parameters_of
from labconsole.analysis.findings import pair_lines, run_count_text
from labconsole.analysis.number_format import NO_FIGURE, format_difference, format_factor, row_scale
from labconsole.analysis.verdict_lines import Verdicts
from labconsole.model.metrics import Direction, Question, ServiceLevel
from labconsole.model.trial import Trial

_ONE_OF_BELOW = 0.1
"""A smaller share is written as one of so many, a larger one as so many of 100."""

_ABOUT_ZERO = 10.0
"""Up to this difference in %, one that is not significant is written as about zero."""
_MOST_REASONS = 2
"""The most reasons against a judgement on a card."""
_Item = TypeVar("_Item", bound=tuple[Any, ...])


@dataclass(frozen=True)
class AnswerBar:
    """One scenario of an answer's chart: `interval` is in the unit of `value`, `text` has a readable one."""

    title: str
    value: float
    interval: Interval | None
    text: str


@dataclass(frozen=True)
class Answer:
    """The answer of a comparison to one question.

    `number` is shown large, `bars` in a small chart from zero on. `reason` is why the answer is not judged; `judgement`
    is its direction. `small_print` has interval and number of runs.
    """

    question: str
    sentence: str
    number: str
    judgement: Judgement
    bars: tuple[AnswerBar, ...]
    small_print: str
    reason: str = ""

    @property
    def judged(self) -> bool:
        """Whether the answer rests on enough runs, by its interval; otherwise it is shown in grey."""
        return self.judgement is not Judgement.NOT_JUDGED

    @property
    def footnote(self) -> str:
        """Small print, and the reason why the answer is not judged."""
        small_print = self.small_print[:1].upper() + self.small_print[1:]
        if self.reason == ONE_RUN:
            return f"{small_print}: not judged"
        return ". ".join(part for part in (small_print, f"Not judged: {self.reason}" if self.reason else "") if part)


def answers(comparison: Comparison, trial: Trial[Any] | None, verdicts: Verdicts | None = None) -> tuple[Answer, ...]:
    """The answers of a comparison, those on a service level first; `verdicts` of its runs are needed for these only.

    Each of several steps of protection is compared with the one before it.
    """
    if trial is None:
        return ()
    kept = () if trial.service_level is None else tuple(_kept(comparison, trial.service_level, verdicts or {}))
    return (*kept, *_ranked(comparison, trial), *_of_pairs(comparison, trial))


def pending(columns: Sequence[RunGroup], trial: Trial[Any] | None) -> tuple[Answer, ...]:
    """The questions that `columns` will answer once their runs have ended, each as an answer without any figure."""
    if trial is None or not columns:
        return ()
    models = [parameters_of(column, trial) for column in columns]
    asked: list[tuple[str, str]] = []
    for pair in {pair.other: pair for pair in contrasts(columns, 0, trial)}.values():
        reference, other = models[pair.reference], models[pair.other]
        if reference is not None and other is not None:
            asked += [(question.metric, question.title) for question in trial.questions(reference, other)]
    return tuple(Answer(title, "", NO_FIGURE, Judgement.NOT_JUDGED, (), "No run yet") for _, title in _by_metric(asked))


def _of_pairs(comparison: Comparison, trial: Trial[Any]) -> Iterator[Answer]:
    models = [parameters_of(column, trial) for column in comparison.columns]
    found: list[tuple[str, Answer, str]] = []
    for pair, lines in {pair.other: (pair, lines) for pair, lines in pair_lines(comparison, trial)}.values():
        reference, other = models[pair.reference], models[pair.other]
        if reference is None or other is None:
            continue
        columns = (comparison.columns[pair.reference], comparison.columns[pair.other])
        for question in trial.questions(reference, other):
            line = lines.get(question.metric)
            if line is not None and line.kind.direction is not Direction.NEUTRAL:
                answer = _answer(question, line, columns, (line.cells[pair.reference], line.cells[pair.other]))
                found += [(question.metric, answer, columns[1].title)] if answer is not None else []
    often = Counter(answer.question for _, answer, _ in found)
    for _, answer, title in _by_metric(found):
        yield replace(answer, question=f"{answer.question} {title}") if often[answer.question] > 1 else answer


_FEWEST_RANKED = 3
"""Of two columns, the question of their pair says more."""


def _ranked(comparison: Comparison, trial: Trial[Any]) -> Iterator[Answer]:
    """What all columns answer together, in one chart."""
    columns = comparison.columns
    models = [model for column in columns if (model := parameters_of(column, trial)) is not None]
    ranking = trial.ranking(models) if models else None
    line = next((line for line in comparison.metrics if ranking and line.kind.name == ranking.metric), None)
    if ranking is None or line is None:
        return
    ranked = [(column, cell) for column, cell in zip(columns, line.cells, strict=True) if cell.value is not None]
    if len(ranked) < _FEWEST_RANKED:
        return
    bars = tuple(_bar(column, cell, cell.value, line.kind.unit) for column, cell in ranked if cell.value is not None)
    most, least = max(bars, key=lambda bar: bar.value), min(bars, key=lambda bar: bar.value)
    sentence = f"{ranking.subject}: from {most.text} ({most.title}) to {least.text} ({least.title})"
    withheld = [cell.not_judged for _, cell in ranked if cell.not_judged]
    reasons = withheld or ([ONE_RUN] if any(bar.interval is None for bar in bars) else [])
    judgement = Judgement.NOT_JUDGED if reasons else Judgement.NO_CHANGE
    number = f"{format_factor(most.value / least.value, 2)} ×" if least.value else NO_FIGURE
    reason = SEPARATOR.join(most_frequent(reasons, _MOST_REASONS))
    runs = count(sum(cell.runs for _, cell in ranked), {origin for _, cell in ranked for origin in cell.origins})
    yield Answer(ranking.title, sentence, number, judgement, bars, runs, reason)


def _by_metric(items: Sequence[_Item]) -> list[_Item]:
    """All of one metric, which comes first, next to each other: throughput of each step, then latency of each step."""
    metrics = list(dict.fromkeys(one[0] for one in items))
    return sorted(items, key=lambda one: metrics.index(one[0]))


def _answer(
    question: Question, line: MetricLine, columns: tuple[Column, Column], cells: tuple[Cell, Cell]
) -> Answer | None:
    reference, other = cells
    change = other.change
    if change is None or change.ratio is None or reference.value is None or other.value is None:
        return None
    bars = tuple(
        _bar(column, cell, cell.value, line.kind.unit)
        for column, cell in zip(columns, cells, strict=True)
        if cell.value is not None
    )
    said = _share if question.left_of else _times
    sentence, number = said(question, change.judgement, change.ratio, bars)
    withheld = [cell.not_judged for cell in cells if cell.not_judged]
    judgement = Judgement.NOT_JUDGED if withheld else change.judgement
    reasons = withheld or list(change.notes) if judgement is Judgement.NOT_JUDGED else []
    reason = SEPARATOR.join(most_frequent(reasons, _MOST_REASONS))
    return Answer(question.title, sentence, number, judgement, bars, _small_print(change, change.ratio, cells), reason)


def _share(question: Question, judgement: Judgement, ratio: float, bars: Sequence[AnswerBar]) -> tuple[str, str]:
    """ "Signing leaves 1 of 50 messages a second", "1 of 50"."""
    if judgement is Judgement.NO_CHANGE:
        return f"{question.subject} makes no significant difference in {question.left_of}", _about_the_same(ratio)
    if ratio > 1:
        if ratio >= WRITTEN_AS_FACTOR_FROM:
            times = format_factor(ratio, 2)
            return f"{question.subject} gives {times} times the {question.left_of}", f"{times} ×"
        size = format_difference((ratio - 1) * 100)
        return f"{question.subject} gives {size.removeprefix('+')} more {question.left_of}", size
    share = f"1 of {format_factor(1 / ratio, 2)}" if ratio < _ONE_OF_BELOW else f"{ratio * 100:.0f} of 100"
    return f"{question.subject} leaves {share} {question.left_of}", share


def _times(question: Question, judgement: Judgement, ratio: float, bars: Sequence[AnswerBar]) -> tuple[str, str]:
    """ "With a key pool 7.5 ms, without 40.6 s: 5,400 times", "5,400 ×"."""
    without, with_it = (bar.text for bar in bars)
    both = f"{question.subject} {with_it}, {question.without} {without}"
    factor = max(ratio, 1 / ratio)
    percent = format_difference((ratio - 1) * 100)
    if judgement is Judgement.NO_CHANGE:
        return f"{both}: no significant difference", _about_the_same(ratio)
    if factor >= WRITTEN_AS_FACTOR_FROM:
        times = format_factor(factor, 2)
        return f"{both}: {times} times", f"{times} ×"
    return f"{both}: {percent.lstrip('+-')} {'more' if ratio > 1 else 'less'}", percent


def _about_the_same(ratio: float) -> str:
    """The number for no significant difference: a large one that is not significant is unclear, and not about zero."""
    percent = (ratio - 1) * 100
    return f"≈ {format_difference(percent)}" if abs(percent) <= _ABOUT_ZERO else "unclear"


def _small_print(change: Change, ratio: float, cells: tuple[Cell, Cell]) -> str:
    runs = run_count_text(*cells)
    interval = change.interval
    if interval is None or interval.low == interval.high:
        return runs
    if interval.holds(1.0):
        return f"95 % interval of the ratio {span(ratio, interval)}, {runs}"
    size = Size.of(ratio, interval)
    assert size.interval is not None
    what = "of the factor " if not size.unit else ""
    return f"95 % interval {what}{span(size.value, size.interval)}{size.unit}, {runs}"


def _bar(column: Column, cell: Cell, value: float, unit: str) -> AnswerBar:
    """A bar with its `value` for a sentence, in two or three digits: `7.5 ms`, `40.6 ± 0.12 s`, `1,006 msg/s`."""
    scale = row_scale((value,), unit)
    shown = value * scale.factor
    digits = f"{shown:,.0f}" if abs(shown) >= 99.95 else f"{shown:.1f}" if abs(shown) >= 1 else f"{shown:.2g}"
    text = f"{digits}{scale.within(cell.uncertainty)} {scale.unit}".strip()
    return AnswerBar(title_with_origin(column), value, cell.interval, text)


def _kept(comparison: Comparison, level: ServiceLevel, verdicts: Verdicts) -> Iterator[Answer]:
    """Whether each column kept its service level: in one answer for all of them."""
    columns = [column for column in comparison.columns if isinstance(column, RunGroup)]
    judged = [(column, kept) for column in columns if (kept := _Kept.of(column, level, verdicts)) is not None]
    if not judged:
        return
    missed = [column for column, kept in judged if kept.missed]
    sentence = ". ".join(f"{column.title}: {kept.title}" for column, kept in judged)
    judgement = (
        Judgement.WORSE if len(missed) == len(judged) else Judgement.BETTER if not missed else Judgement.NO_CHANGE
    )
    number = f"{len(judged) - len(missed)} of {len(judged)} kept" if len(judged) > 1 else "missed" if missed else "kept"
    bars = tuple(
        AnswerBar(title_with_origin(column), kept.share, None, f"{kept.share:.0f} %") for column, kept in judged
    )
    runs = count(sum(kept.runs for _, kept in judged), {origin for column, _ in judged for origin in column.origins})
    yield Answer(level.title, sentence, number, judgement, bars, runs)


@dataclass(frozen=True)
class _Kept:
    """How a column kept its service level: requests in time of all requests (by the verdicts' evidence)."""

    runs: int
    missed: int
    within: int
    requests: int

    @classmethod
    def of(cls, column: RunGroup, level: ServiceLevel, verdicts: Verdicts) -> _Kept | None:
        """None where no run of the column has a verdict that passed or failed."""
        found = [
            [one for one in verdicts.get(run.id, ()) if one.name in level.verdicts and one.result != "unknown"]
            for run in column.used
        ]
        ruled = [of_run for of_run in found if of_run]
        if not ruled:
            return None
        evidence = [one.evidence for of_run in ruled for one in of_run]
        return cls(
            len(ruled),
            sum(any(one.result == "fail" for one in of_run) for of_run in ruled),
            sum(int(one.get("within", 0)) for one in evidence),
            sum(int(one.get("requests", 0)) for one in evidence),
        )

    @property
    def share(self) -> float:
        """Requests in time, in %."""
        return self.within / self.requests * 100 if self.requests else float(not self.missed) * 100

    @property
    def title(self) -> str:
        """ "kept, 60 of 60 requests in time", "missed in 2 of 5 runs, ..."."""
        said = "kept" if not self.missed else "missed"
        if self.missed and self.runs > 1:
            said += f" in {self.missed} of {self.runs} runs"
        return f"{said}, {self.within:,} of {self.requests:,} requests in time" if self.requests else said
