"""`labconsole compare`: runs side by side, with each other and with published figures."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from labconsole.analysis.answers import Answer, answers
from labconsole.analysis.comparison import (
    Cell,
    Change,
    Column,
    Comparison,
    RunGroup,
    column_of_run,
    compare,
    group_repeats,
    single_runs,
)
from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.findings import findings
from labconsole.analysis.published_figures import published_column, published_columns
from labconsole.cli.comparison_table import print_answers, print_comparison, print_parameters
from labconsole.cli.database import chosen_runs, open_database
from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.terminal import output
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Trial
from labconsole.output.comparison_csv import write_comparison


def compare_runs(arguments: argparse.Namespace) -> int:
    """Compare the runs against the baseline: one that is published, or not among them, becomes the first column."""
    plugins = Plugins.discover()
    baseline: int | str | None = arguments.baseline
    published = {column.name: column for name in arguments.published for column in published_columns(plugins, name)}
    against = {baseline: published_column(plugins, baseline)} if isinstance(baseline, str) else {}
    with open_database(arguments.db) as reader:
        run_ids = chosen_runs(reader, arguments.run, campaign=arguments.campaign)
        if isinstance(baseline, int) and baseline not in run_ids:
            run_ids = (baseline, *run_ids)
        runs = reader.comparable(run_ids)
        verdicts = reader.verdicts(run_ids)
    groups = single_runs(runs) if arguments.each else group_repeats(runs)
    columns: tuple[Column, ...] = (
        *against.values(),
        *groups,
        *(column for column in published.values() if column.name not in against),
    )
    index = column_of_run(groups, baseline) if isinstance(baseline, int) else 0
    trial = plugins.installed(columns[index].kind)
    further = plugins.all_installed(column.kind for column in columns)
    comparison = compare(columns, trial, baseline=index, verdicts=verdicts, further=further)
    answered = answers(comparison, trial, verdicts)
    if arguments.csv is not None:
        write_comparison(comparison, arguments.csv)
    if arguments.json:
        print(json.dumps(comparison_as_json(comparison, trial, answered), ensure_ascii=False))
        return FINISHED
    console = output(bounded=True)
    print_answers(console, answered)
    print_parameters(console, comparison)
    print_comparison(console, comparison, trial, "" if arguments.all else "--all")
    if arguments.csv is not None:
        console.print(f"The comparison is in {arguments.csv}", soft_wrap=True)
    return FINISHED


def comparison_as_json(
    comparison: Comparison, trial: Trial[Any] | None, answered: Sequence[Answer] = ()
) -> dict[str, Any]:
    """A comparison as `compare --json` prints it, with its answers: cells are in the order of the columns."""
    return {
        "answers": [_answer(answer) for answer in answered],
        "columns": [_column(column) for column in comparison.columns],
        "baseline": comparison.baseline,
        "parameters": [
            {
                "name": line.name,
                "title": line.title,
                "unit": line.unit,
                "values": list(line.texts),
                "differs": line.differs,
            }
            for line in comparison.parameters
        ],
        "metrics": [
            {
                "name": line.name,
                "title": line.kind.title,
                "unit": line.kind.unit,
                "direction": line.kind.direction,
                "remark": line.remark,
                "cells": [_cell(cell) for cell in line.cells],
            }
            for line in comparison.metrics
        ],
        "verdicts": [
            {"name": line.name, "cells": [asdict(cell) if cell.result else None for cell in line.cells]}
            for line in comparison.verdicts
        ],
        "findings": [
            {"sentence": finding.sentence, "judged": finding.judged} for finding in findings(comparison, trial)
        ],
        "notes": list(comparison.notes),
        "origins": comparison.origins,
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "question": answer.question,
        "sentence": answer.sentence,
        "number": answer.number,
        "judgement": answer.judgement,
        "reason": answer.reason,
        "small_print": answer.small_print,
        "scenarios": [
            {"title": bar.title, "value": bar.value, "interval": _interval(bar.interval)} for bar in answer.bars
        ],
    }


def _column(column: Column) -> dict[str, Any]:
    if isinstance(column, RunGroup):
        return {
            "title": column.title,
            "kind": column.kind,
            "runs": [run.id for run in column.runs],
            "used": [run.id for run in column.used],
        }
    return {"title": column.title, "kind": column.kind, "published": column.name, "reference": column.reference}


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "value": cell.value,
        "runs": cell.runs,
        "interval": _interval(cell.interval),
        "change": None if cell.change is None else _change(cell.change),
        "holds": cell.holds,
        "ours": None if cell.ours is None else _change(cell.ours),
        "not_judged": cell.not_judged,
        "uncertainty": cell.uncertainty,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "percent": None if math.isnan(change.percent) else change.percent,
        "ratio": change.ratio,
        "interval": _interval(change.interval),
        "p": change.p,
        "judgement": change.judgement,
        "note": change.note,
    }


def _interval(interval: Interval | None) -> Sequence[float] | None:
    return None if interval is None else (interval.low, interval.high)
