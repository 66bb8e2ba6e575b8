"""The exported table of messages: one row for each, sent and received joined, with its latency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Column, DerivedTable, Event, Origin, Samples, Series
from labconsole_amqp.choices import MessageSizes, Mode
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import RECEIVED, SENT
from labconsole_amqp.trial.joining import TIME_COLUMNS, JoinedSamples, Table, join_samples, merged_by_time
from labconsole_amqp.trial.latency import latencies_from_stamps_ns, latency_start_column
from labconsole_amqp.wire.envelope import SENDER_SHIFT, SEQUENCE_MASK

BLOCK_ROWS = 100_000
"""Messages in a block; more where they have the same key."""

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1

Key = Callable[[Table], NDArray[Any]]


class SentBlocks:
    """Blocks of a run's messages sent, in order of their keys, joined with their arrivals.

    A block has all rows of a range of keys (sequence or stamp), so that memory stays flat for any number of messages.
    """

    def __init__(self, parameters: AmqpParameters, samples: Samples) -> None:
        self._parameters = parameters
        numbered = parameters.numbered
        self._sent = _Keyed(samples, SENT, _sequence_sent if numbered else _stamp)
        self._received = _Keyed(samples, RECEIVED, _sequence_received if numbered else _stamp)
        self.rows = self._sent.rows

    def __iter__(self) -> Iterator[JoinedSamples]:
        for low, high in self._sent.ranges():
            yield join_samples(self._parameters, self._sent.table(low, high), self._received.table(low, high))

    @property
    def most_of_a_sender(self) -> int:
        """Messages of the sender that sent most."""
        return max(self._sent.rows_by_role.values(), default=0)

    def strays(self) -> JoinedSamples:
        """The messages received that are in no block: their keys are outside of those of all messages sent."""
        low, high = self._sent.limits()
        tables = [self._received.table(*limits) for limits in ((_LOWEST, low - 1), (high + 1, _HIGHEST))]
        received = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        return join_samples(self._parameters, merged_by_time(SENT, ()), received)


class ReceivedBlocks:
    """Blocks of a run's messages received, in order of time, for a console that only receives."""

    def __init__(self, parameters: AmqpParameters, samples: Samples) -> None:
        self._parameters = parameters
        self._received = _Keyed(samples, RECEIVED, _time_received)
        self.rows = self._received.rows

    def __iter__(self) -> Iterator[JoinedSamples]:
        nothing = merged_by_time(SENT, ())
        for low, high in self._received.ranges():
            yield join_samples(self._parameters, nothing, self._received.table(low, high))


def _sequence_sent(table: Table) -> NDArray[Any]:
    return table["seq"]


def _sequence_received(table: Table) -> NDArray[Any]:
    return table["number"] & SEQUENCE_MASK


def _time_received(table: Table) -> NDArray[Any]:
    return table[TIME_COLUMNS[RECEIVED.name]]


def _stamp(table: Table) -> NDArray[Any]:
    return table["stamp_ms"]


class _Keyed:
    """One series of all its roles, read by ranges of a key; the range of each stored part is read first."""

    def __init__(self, samples: Samples, series: Series, key: Key) -> None:
        self._samples = samples
        self._series = series
        self._key = key
        self._spans = {role: self._spans_of(role) for role in samples.roles(series.name)}
        self.rows_by_role = {role: int(spans[:, 2].sum()) for role, spans in self._spans.items()}
        self.rows = sum(self.rows_by_role.values())

    def limits(self) -> tuple[int, int]:
        """(lowest, highest) key of all rows; without rows the lowest is above the highest."""
        spans = self._filled()
        return (int(spans[:, 0].min()), int(spans[:, 1].max())) if len(spans) else (0, -1)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """(lowest, highest) key of each block; each row is in exactly one."""
        spans = self._filled()
        (low, end), rows = self.limits(), 0
        for _, last, count in spans[np.argsort(spans[:, 1], kind="stable")].tolist():
            rows += count
            if last >= low and (rows >= BLOCK_ROWS or last == end):
                yield low, last
                low, rows = last + 1, 0

    def table(self, low: int, high: int) -> Table:
        """The rows of all roles with a key in [low, high], in order of time, with a column `role`."""
        return merged_by_time(self._series, self._parts(low, high))

    def _filled(self) -> NDArray[np.int64]:
        """The spans of all parts that have rows."""
        spans = np.concatenate([*self._spans.values(), np.empty((0, 3), np.int64)])
        return spans[spans[:, 2] > 0]

    def _spans_of(self, role: str) -> NDArray[np.int64]:
        """(lowest key, highest key, rows) of each part; a part without rows has an empty range."""
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


MESSAGES = Series(
    "messages",
    "Messages, from sender to receiver",
    (
        Column("sender", "i8", "", "Index of the sender, as in its role's name"),
        Column("sequence", "i8", "", "Sequence of that sender, from 0, warm-up included"),
        Column("intended_ns", "i8", "ns", "Intended send time"),
        Column("sent_ns", "i8", "ns", "Handed to the link"),
        Column("received_ns", "i8", "ns", "Read out of the link; -1 if it did not come"),
        Column("latency_ns", "i8", "ns", "As the metrics take it; -1 if it did not come"),
        Column("outcome", "i1", "", "0 is good, otherwise the place in OUTCOMES; -1 if it did not come"),
        Column("phase", "u1", "", "Phase in which it was due, as in the samples sent; 0 without phases"),
    ),
    Origin.CALCULATED,
)
_SIZE = Column("size", "i4", "B", "Encoded size as sent; on a console that only receives, as received")
_SIZED_MESSAGES = replace(MESSAGES, columns=(*MESSAGES.columns, _SIZE))
"""The table of a run whose messages have drawn sizes."""


def message_tables(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> tuple[DerivedTable, ...]:
    """The table of messages sent, in order of sending (of sequence, with numbers); none without messages.

    On a console that only receives it has the messages received, in that order: sender and sequence are those in the
    message's number, times of sending are unknown (-1), and the latency is from the stamp.
    """
    series = MESSAGES if parameters.message_sizes is MessageSizes.PAYLOAD else _SIZED_MESSAGES
    if parameters.mode is Mode.RECEIVER:
        received = ReceivedBlocks(parameters, samples)
        table = DerivedTable(
            series, received.rows, lambda: (_received(parameters, block, events) for block in received)
        )
    else:
        sent = SentBlocks(parameters, samples)
        table = DerivedTable(series, sent.rows, lambda: (_sent(parameters, block) for block in sent))
    return (table,) if table.rows else ()


def _sent(parameters: AmqpParameters, joined: JoinedSamples) -> Table:
    sent, received = joined.sent, joined.received
    count = len(sent["seq"])
    place = joined.of_received[joined.matched]
    received_ns, latency_ns = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    outcome = np.full(count, -1, np.int8)
    received_ns[place] = received["received_ns"][joined.matched]
    latency_ns[place] = received_ns[place] - sent[latency_start_column(parameters)][place]
    outcome[place] = received["outcome"][joined.matched]
    return {
        "sender": sent["role"],
        "sequence": sent["seq"],
        "intended_ns": sent["intended_ns"],
        "sent_ns": sent["sent_ns"],
        "received_ns": received_ns,
        "latency_ns": latency_ns,
        "outcome": outcome,
        "phase": sent.get("phase", np.zeros(count, np.uint8)),
        **_sizes(parameters, sent),
    }


def _received(parameters: AmqpParameters, joined: JoinedSamples, events: Sequence[Event]) -> Table:
    received = joined.received
    numbers = received["number"]
    unknown = np.full(len(numbers), -1, np.int64)
    return {
        "sender": np.where(numbers < 0, -1, (numbers >> SENDER_SHIFT) - 1),
        "sequence": np.where(numbers < 0, -1, numbers & SEQUENCE_MASK),
        "intended_ns": unknown,
        "sent_ns": unknown,
        "received_ns": received["received_ns"],
        "latency_ns": latencies_from_stamps_ns(joined, events),
        "outcome": received["outcome"].astype(np.int8),
        "phase": np.zeros(len(numbers), np.uint8),
        **_sizes(parameters, received),
    }


def _sizes(parameters: AmqpParameters, table: Table) -> Table:
    return {} if parameters.message_sizes is MessageSizes.PAYLOAD else {"size": table["size"]}
