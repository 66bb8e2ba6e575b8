"""Operations that were timed, one row each: their series, and what figures and curves take from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Column, Curve, Evaluation, LiveChannel, Metric, MetricKind, Samples, Series

THREAD = Column("thread", "u2", "", "Number of the thread, from 1")
TIME_CHANNEL = LiveChannel("operation", "One operation", "ns")

Operations = dict[str, NDArray[np.int64]]
"""Columns of a series of operations, by name, of equal lengths."""


def operation_series(codes: str, *columns: Column) -> Series:
    """The series `operations` of a trial: its `codes` of operations, its own columns, then start and end in ns."""
    return Series(
        "operations",
        "Operations that were timed, one row each",
        (
            Column("operation", "u1", "", codes),
            *columns,
            Column("started", "i8", "ns", "Began"),
            Column("finished", "i8", "ns", "Ended"),
        ),
    )


def read_operations(samples: Samples, series: Series) -> Operations:
    """The stored operations of all roles; empty columns where none recorded any."""
    tables = [samples.table(series.name, role) for role in samples.roles(series.name)]
    return {
        column.name: np.concatenate([np.empty(0, np.int64), *(table[column.name].astype(np.int64) for table in tables)])
        for column in series.columns
    }


def select(operations: Operations, chosen: NDArray[np.bool_]) -> Operations:
    """The rows of which `chosen` is true."""
    return {name: values[chosen] for name, values in operations.items()}


def durations_ns(operations: Operations) -> NDArray[np.int64]:
    """The duration of each operation, ns."""
    return operations["finished"] - operations["started"]


def duration_curve(title: str, group: str, operations: Operations, begin_ns: int) -> Curve:
    """The duration of each operation in ms at its end, in s since `begin_ns`: warm-up and disturbances show in it."""
    order = np.argsort(operations["finished"], kind="stable")
    return Curve(
        title,
        group,
        "ms",
        (operations["finished"][order] - begin_ns) / 1e9,
        durations_ns(operations)[order] / 1e6,
    )


def in_declared_order(metrics: Iterable[Metric], kinds: Sequence[MetricKind]) -> Evaluation:
    """The metrics in the order of `kinds`, those of one kind as given."""
    order = [kind.name for kind in kinds]
    return Evaluation(tuple(sorted(metrics, key=lambda metric: order.index(metric.name))))
