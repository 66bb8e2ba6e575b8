"""Joins a run block by block, so that memory stays flat however many messages it has.

A block holds the messages whose key lies in one range: their sequence if numbered, otherwise the stamp in them.
Every arrival of a message has its key, so a block is joined as the whole run would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Samples, Series
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import RECEIVED, SENT
from labconsole_amqp.trial.joining import TIME_COLUMNS, Joined, Table, gathered, join
from labconsole_amqp.wire.envelope import SEQUENCE_MASK

ROWS = 100_000
"""Messages in a block, as far as their keys tell them apart."""

Key = Callable[[Table], NDArray[Any]]


class SentBlocks:
    """A run's messages sent, in order of their keys, each with its arrivals."""

    def __init__(self, parameters: AmqpParameters, samples: Samples) -> None:
        self._parameters = parameters
        numbered = parameters.numbered
        self._sent = _Keyed(samples, SENT, _sequence_sent if numbered else _stamp)
        self._received = _Keyed(samples, RECEIVED, _sequence_received if numbered else _stamp)
        self.rows = self._sent.rows

    def __iter__(self) -> Iterator[Joined]:
        for low, high in self._sent.ranges():
            yield join(self._parameters, self._sent.table(low, high), self._received.table(low, high))


class ReceivedBlocks:
    """All messages received, in order of time, joined with nothing: those of a console that only receives."""

    def __init__(self, parameters: AmqpParameters, samples: Samples) -> None:
        self._parameters = parameters
        self._received = _Keyed(samples, RECEIVED, _time_received)
        self.rows = self._received.rows

    def __iter__(self) -> Iterator[Joined]:
        nothing = gathered(SENT, ())
        for low, high in self._received.ranges():
            yield join(self._parameters, nothing, self._received.table(low, high))


def _sequence_sent(table: Table) -> NDArray[Any]:
    return table["seq"]


def _sequence_received(table: Table) -> NDArray[Any]:
    return table["number"] & SEQUENCE_MASK


def _time_received(table: Table) -> NDArray[Any]:
    return table[TIME_COLUMNS[RECEIVED.name]]


def _stamp(table: Table) -> NDArray[Any]:
    return table["stamp_ms"]


class _Keyed:
    """One series of all its roles, read by ranges of a key: for each stored part its range is known."""

    def __init__(self, samples: Samples, series: Series, key: Key) -> None:
        self._samples = samples
        self._series = series
        self._key = key
        self._spans = {role: self._spans_of(role) for role in samples.roles(series.name)}
        self.rows = sum(int(spans[:, 2].sum()) for spans in self._spans.values())

    def ranges(self) -> Iterator[tuple[int, int]]:
        """(lowest, highest) key of each block: together they hold every row once."""
        spans = np.concatenate([*self._spans.values(), np.empty((0, 3), np.int64)])
        spans = spans[spans[:, 2] > 0]
        if not len(spans):
            return
        low, end, rows = int(spans[:, 0].min()), int(spans[:, 1].max()), 0
        for _, last, count in spans[np.argsort(spans[:, 1], kind="stable")].tolist():
            rows += count
            if last >= low and (rows >= ROWS or last == end):
                yield low, last
                low, rows = last + 1, 0

    def table(self, low: int, high: int) -> Table:
        """The rows of all roles whose key lies in [low, high], in order of time, with a column `role`."""
        return gathered(self._series, self._parts(low, high))

    def _spans_of(self, role: str) -> NDArray[np.int64]:
        """(lowest key, highest key, rows) of each part; a part without rows has the range of none."""
        spans = []
        for part in self._samples.parts(self._series.name, role):
            keys = self._key(part)
            spans.append((keys.min(), keys.max(), len(keys)) if len(keys) else (0, -1, 0))
        return np.array(spans, np.int64).reshape(-1, 3)

    def _parts(self, low: int, high: int) -> Iterator[tuple[str, Table]]:
        for role, spans in self._spans.items():
            numbers = np.flatnonzero((spans[:, 0] <= high) & (spans[:, 1] >= low) & (spans[:, 2] > 0)).tolist()
            for part in self._samples.parts(self._series.name, role, numbers):
                keys = self._key(part)
                inside = (keys >= low) & (keys <= high)
                yield role, {name: column[inside] for name, column in part.items()}
