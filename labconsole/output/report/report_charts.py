"""The charts of a report, from the runs' figures and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labconsole.analysis.answers import Answer
from labconsole.analysis.caveats import ENOUGH_BEYOND
from labconsole.analysis.change import Judgement
from labconsole.analysis.columns import title_with_origin
from labconsole.analysis.comparison import MetricLine, RunGroup
from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.distributions import load_distributions
from labconsole.analysis.number_format import format_figure, readable
from labconsole.analysis.run_curves import load_curves
from labconsole.errors import UserError
from labconsole.model.metrics import Direction
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Curve, Distribution
from labconsole.output.charts import NARROW, WIDE, Bar, Line, answer_chart, bar_charts, line_chart, percentile_chart
from labconsole.output.report.document import Block, Callout, Card, Figure, Gallery, Paragraph, Tone
from labconsole.output.report.report_data import ReportData
from labconsole.output.report.run_details import run_span
from labconsole.store.reader import Reader

MOST_LINES = 6
"""Lines in one chart; more cannot be distinguished in grey."""
_MOST_METRICS = 4
"""Key figures that are drawn as bars."""
_MOST_PERCENTILES = 1
"""Distributions that are drawn, those that a trial names first; the window has all."""
_TONES = {Judgement.BETTER: Tone.GOOD, Judgement.WORSE: Tone.BAD}
_TIME = "seconds since the work began (T0)"
_VIRTUAL_TIME = "seconds of virtual time since T0"
_OF_THE_COMPUTER = ("Resident memory", "CPU, 100 % = one core")
"""Groups of curves that a comparison leaves to the reports of its runs."""

Progress = Callable[[str], None]
"""Called with the next step, in a few words."""


@dataclass(frozen=True)
class _Drawn:
    """A curve, under the label and in the style that it has in its chart."""

    style: int
    label: str
    curve: Curve


def answer_cards(answers: Sequence[Answer]) -> tuple[Card, ...]:
    """The answers of a comparison as cards for the title page."""
    return tuple(
        Card(
            answer.question,
            answer.number,
            answer.sentence,
            _TONES.get(answer.judgement, Tone.PLAIN) if answer.judged else Tone.MUTED,
            answer_chart(answer) if answer.bars else "",
            "; ".join(f"{bar.title}: {bar.text}" for bar in answer.bars),
            answer.footnote,
        )
        for answer in answers
    )


def bar_figures(material: ReportData) -> Iterator[Block]:
    """The key figures of all columns as bars, published points hollow; nothing for a single column."""
    comparison = material.with_published
    if len(comparison.columns) < 2:
        return
    tails = [
        line
        for line in comparison.metrics
        if line.kind.quantile == 0.99 and line.kind.direction is not Direction.NEUTRAL
    ]
    shown_lines = dict.fromkeys((*comparison.key_lines, *tails))
    lines = [line for line in shown_lines if any(cell.value and not cell.not_judged for cell in line.cells)]
    # The titles of published columns name their table: they need the whole width.
    narrow = comparison is material.measured
    width = NARROW if narrow else WIDE
    figures = tuple(figure for line in lines[:_MOST_METRICS] for figure in _bars(material, line, width))
    yield from (Gallery(figures),) if narrow and figures else figures


def sample_figures(material: ReportData, reader: Reader, plugins: Plugins, progress: Progress) -> Iterator[Block]:
    """Lines over time, all of a single run, otherwise of one run of each column; percentiles of all runs of a column.

    A run whose samples cannot be drawn is named with the reason.
    """
    groups = [group for group in material.groups if group.used][:MOST_LINES]
    titles = [title_with_origin(group) for group in groups]
    curves: dict[str, tuple[Curve, ...]] = dict.fromkeys(titles, ())
    samples: dict[str, list[Distribution]] = {title: [] for title in titles}
    faults = []
    for title, group in zip(titles, groups, strict=True):
        run_id = group.used[0].id
        progress(f"Reading the samples of {group.title}")
        try:
            curves[title] = load_curves(reader, run_id, plugins)
            found = load_distributions(reader, [run.id for run in group.used], plugins)
            samples[title] = [one for one in found if len(one.values) > ENOUGH_BEYOND]
        except UserError as error:
            faults.append(str(error))
    if faults:
        yield Callout("Not drawn", tuple(faults))
    alone = len(material.groups) == 1
    over_time = _run_lines(next(iter(curves.values()), ())) if alone else _column_lines(curves)
    if figures := tuple(over_time):
        yield Paragraph(f"Lines over time are of {_runs_shown(groups, len(material.groups))}.", leads=True)
        yield Gallery(figures)
    yield from _percentiles(samples, pooled=any(group.repeats > 1 for group in groups))


def _bars(material: ReportData, line: MetricLine, width: float) -> Iterator[Figure]:
    comparison = material.with_published
    bars, words, scale = [], [], line.scale
    for index, (column, cell) in enumerate(zip(comparison.columns, line.cells, strict=True)):
        if cell.value is None:
            continue
        published = not isinstance(column, RunGroup)
        label = title_with_origin(column)
        interval = cell.interval
        if interval is not None:
            interval = Interval(interval.low * scale.factor, interval.high * scale.factor)
        bars.append(Bar(label, cell.value * scale.factor, interval, index == comparison.baseline, published))
        words.append(f"{label} {scale.figure(cell.value, cell.uncertainty)}")
    remark = f" ({line.remark})" if line.remark else ""
    charts = bar_charts(line.kind.title, scale.unit, bars, width)
    for number, chart in enumerate(charts, 1):
        place = f", {number} of {len(charts)}" if len(charts) > 1 else ""
        yield Figure(
            chart,
            f"Bar chart of {line.kind.title}{place}: {'; '.join(words)}",
            f"{line.kind.title}{', with 95 % intervals' if any(bar.interval for bar in bars) else ''}{place}{remark}",
        )


def _runs_shown(groups: Sequence[RunGroup], everything: int) -> str:
    """Which runs the lines are of, in words."""
    runs = run_span([group.used[0].id for group in groups])
    if everything == 1:
        return runs
    first = f", the first {len(groups)} of {everything}" if len(groups) < everything else ""
    return f"one run of each column{first}: {runs}"


def _run_lines(curves: Sequence[Curve]) -> Iterator[Figure]:
    """One chart for each group of a run's curves."""
    for name in dict.fromkeys(curve.group for curve in curves):
        of_group = [curve for curve in curves if curve.group == name and len(curve.t_s)]
        if of_group:
            yield _lines(name, [_Drawn(style, one.title, one) for style, one in enumerate(of_group[:MOST_LINES])])


def _column_lines(curves: Mapping[str, Sequence[Curve]]) -> Iterator[Figure]:
    """One chart for each curve that several columns have, with a line for each of them."""
    names = dict.fromkeys((curve.group, curve.title) for drawn in curves.values() for curve in drawn)
    for group, title in names:
        of_name = [
            _Drawn(style, column, curve)
            for style, (column, drawn) in enumerate(curves.items())
            for curve in drawn
            if (curve.group, curve.title) == (group, title) and len(curve.t_s)
        ]
        if len(of_name) > 1 and group not in _OF_THE_COMPUTER:
            yield _lines(f"{group}: {title}", of_name)


def _lines(title: str, drawn: Sequence[_Drawn]) -> Figure:
    largest = max(float(np.abs(one.curve.values).max()) for one in drawn)
    scaled, unit = readable(largest, drawn[0].curve.unit)
    factor = scaled / largest if largest else 1.0
    lines = [Line(one.style, one.label, one.curve.t_s, one.curve.values * factor) for one in drawn]
    ends = max(float(one.curve.t_s[-1]) for one in drawn)
    virtual = all(one.curve.virtual for one in drawn)
    time = "virtual time" if virtual else "time"
    return Figure(
        line_chart(title, _VIRTUAL_TIME if virtual else _TIME, unit, lines),
        f"Lines over {ends:.1f} seconds of {time}: {title}, {unit}, of {', '.join(one.label for one in drawn)}",
        f"{title} over {time}{', simulated' if virtual else ''}",
    )


def _percentiles(samples: Mapping[str, Sequence[Distribution]], *, pooled: bool) -> Iterator[Figure]:
    titles = dict.fromkeys((one.title, one.unit) for found in samples.values() for one in found)
    for title, unit in list(titles)[:_MOST_PERCENTILES]:
        of_title = [
            (style, label, one.values)
            for style, (label, found) in enumerate(samples.items())
            for one in found
            if (one.title, one.unit) == (title, unit)
        ]
        counts = ", ".join(f"{label}: {len(values):,}" for _, label, values in of_title)
        medians = ", ".join(f"{label} {format_figure(float(np.median(values)), unit)}" for _, label, values in of_title)
        yield Figure(
            percentile_chart(title, unit, of_title),
            f"Percentiles of {title} on logarithmic axes; medians: {medians}",
            f"{title}: percentiles up to p99.9, as far as {ENOUGH_BEYOND} values lie beyond "
            f"(values{', of all runs pooled' if pooled else ''}: {counts})",
        )
