"""Pairs of columns that findings and answers are about, each with the lines of the table in which it is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from labconsole.analysis.comparison import Comparison, MetricLine, compare
from labconsole.analysis.contrasts import Pair, contrasts
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
