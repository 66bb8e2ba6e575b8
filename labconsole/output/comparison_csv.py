"""A comparison as a table for `comparison.csv`: a row for each metric and column; where verdicts are published, also a
row for each verdict and column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labconsole.analysis.comparison import Cell, Change, Column, Comparison, MetricLine, RunGroup, counterpart
from labconsole.analysis.published_figures import PublishedColumn
from labconsole.analysis.verdict_lines import VerdictCell
from labconsole.model.series import Origin
from labconsole.output.export_file import write_table

_VERDICT = ("verdict", "result", "reason", "result agrees with published")
COLUMNS = (
    *("metric", "title", "unit", "direction", "scenario", "runs", "run numbers", "origin", "value"),
    *("95 % interval low", "95 % interval high", "baseline", "difference [%]", "ratio", "ratio low", "ratio high"),
    *("p (Holm)", "judgement", "note", "remark", "published reference", "interval holds published"),
    *("ours / published", "ours / published low", "ours / published high", "not judged"),
    *_VERDICT,
    *("ours", "clock uncertainty"),
)


def write_comparison(comparison: Comparison, path: Path) -> Path:
    """Write a comparison to `path`, and return that. Raises ExportError."""
    return write_table(path, COLUMNS, _rows(comparison))


def _rows(comparison: Comparison) -> Iterator[Sequence[Any]]:
    """Rows under `COLUMNS`; a missing value is an empty cell. A column without the metric has no row."""
    baseline = comparison.columns[comparison.baseline].title
    ours = [_title_of_ours(comparison, index) for index in range(len(comparison.columns))]
    for line in comparison.metrics:
        for column, cell, our in zip(comparison.columns, line.cells, ours, strict=True):
            if cell.value is not None:
                row = _row(line, column, cell, baseline)
                yield (*row, *("",) * len(_VERDICT), our, cell.uncertainty or "")
    published = any(isinstance(column, PublishedColumn) and column.verdicts for column in comparison.columns)
    for verdict in comparison.verdicts if published else ():
        for column, result, our in zip(comparison.columns, verdict.cells, ours, strict=True):
            if result.result:
                yield _verdict_row(verdict.name, column, result, our)


def _row(line: MetricLine, column: Column, cell: Cell, baseline: str) -> Sequence[Any]:
    low, high = (cell.interval.low, cell.interval.high) if cell.interval is not None else ("", "")
    return (
        *(line.name, line.kind.title, line.kind.unit, str(line.kind.direction), column.title),
        *_source(line, column, cell),
        *(cell.value, low, high, baseline),
        *_change(cell),
        line.remark,
        "" if isinstance(column, RunGroup) else column.figures[line.name].reference,
        _yes_or_no(cell.holds),
        *_ours(cell.ours),
        cell.not_judged,
    )


def _title_of_ours(comparison: Comparison, index: int) -> str:
    """The title of our column at the left of a published one of its scenario: it may be there once for each trial."""
    ours = counterpart(comparison.columns, index)
    return "" if ours is None else comparison.columns[ours].title


def _verdict_row(name: str, column: Column, cell: VerdictCell, ours: str) -> Sequence[Any]:
    """A row with the cells of `_VERDICT`, and those on the column."""
    runs, origin = "", str(Origin.PUBLISHED)
    if isinstance(column, RunGroup):
        runs, origin = " ".join(str(run.id) for run in column.used), " ".join(sorted(column.origins))
    printed = {
        "scenario": column.title,
        "runs": cell.runs,
        "run numbers": runs,
        "origin": origin,
        "published reference": cell.reference,
        "verdict": name,
        "result": cell.text,
        "reason": cell.reason,
        "result agrees with published": _yes_or_no(cell.agrees),
        "ours": ours,
    }
    return [printed.get(heading, "") for heading in COLUMNS]


def _yes_or_no(answer: bool | None) -> str:
    return "" if answer is None else ("yes" if answer else "no")


def _ours(change: Change | None) -> Sequence[Any]:
    """The ratio of our value of a scenario to the published figure, with its interval."""
    if change is None or change.ratio is None:
        return ("",) * 3
    low, high = (change.interval.low, change.interval.high) if change.interval is not None else ("", "")
    return change.ratio, low, high


def _source(line: MetricLine, column: Column, cell: Cell) -> Sequence[Any]:
    """Number of runs, their numbers in the database, and where the figure comes from."""
    if not isinstance(column, RunGroup):
        return 0, "", str(Origin.PUBLISHED)
    runs = [run for run in column.used if line.name in run.metrics]
    return cell.runs, " ".join(str(run.id) for run in runs), " ".join(sorted(cell.origins))


def _change(cell: Cell) -> Sequence[Any]:
    """Difference, ratio with its interval, p, judgement, note."""
    change = cell.change
    if change is None:
        return ("",) * 7
    low, high = (change.interval.low, change.interval.high) if change.interval is not None else ("", "")
    return (
        "" if math.isnan(change.percent) else change.percent,
        "" if change.ratio is None else change.ratio,
        *(low, high),
        "" if change.p is None else change.p,
        str(change.judgement),
        change.note,
    )
