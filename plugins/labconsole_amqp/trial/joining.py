"""Joins the samples of senders and receivers: which received message is which sent one.

Messages with a number are joined by (sender, sequence). The source's envelope has none: its messages are joined by
their stamp (`sent_time`, ms) and their rank among those with the same stamp, which is exact as long as the queue keeps
the order of sending (a queue with one sender and one receiver does).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Samples, Series
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import RECEIVED, SENT
from labconsole_amqp.wire.envelope import SENDER_SHIFT, message_number

Table = dict[str, NDArray[Any]]

TIME_COLUMNS = {SENT.name: "sent_ns", RECEIVED.name: "received_ns"}
"""The column of each series with the time of a message."""


@dataclass(frozen=True)
class JoinedSamples:
    """Senders' and receivers' samples of one run, joined.

    `sent` and `received` are all rows of all roles, in order of time, with a column `role` (the role's index).
    `of_received` gives for each received row the index of its row in `sent`, -1 if no sender of this run sent it.
    Of several arrivals of one message all but one are `duplicates`: kept is the first good one, else the first.
    """

    sent: Table
    received: Table
    of_received: NDArray[np.int64]
    duplicates: NDArray[np.bool_]

    @property
    def matched(self) -> NDArray[np.bool_]:
        """Which received rows are the one arrival of a message that was sent."""
        return (self.of_received >= 0) & ~self.duplicates

    def of_senders(self, senders: Collection[int]) -> JoinedSamples:
        """The arrivals of numbered messages of these senders, with all sent rows."""
        own = np.isin((self.received["number"] >> SENDER_SHIFT) - 1, list(senders))
        received = {name: column[own] for name, column in self.received.items()}
        return JoinedSamples(self.sent, received, self.of_received[own], self.duplicates[own])

    @property
    def good(self) -> NDArray[np.bool_]:
        """Which received rows the receiver accepted."""
        return np.asarray(self.received["outcome"] == 0)


def load_joined(parameters: AmqpParameters, samples: Samples) -> JoinedSamples:
    """Read both ends' samples and join them."""
    tables = (
        merged_by_time(series, ((role, samples.table(series.name, role)) for role in samples.roles(series.name)))
        for series in (SENT, RECEIVED)
    )
    return join_samples(parameters, *tables)


def join_samples(parameters: AmqpParameters, sent: Table, received: Table) -> JoinedSamples:
    """Join the samples of both ends, each `merged_by_time` from its roles."""
    refused = received["outcome"] != 0
    if parameters.numbered:
        sent_numbers = message_number(0, 0) + (sent["role"] << SENDER_SHIFT) + sent["seq"]
        index = _index_of_keys(sent_numbers, received["number"])
    else:
        index = _match_by_stamp(sent["stamp_ms"], received["stamp_ms"], refused)
    return JoinedSamples(sent, received, index, _duplicate_arrivals(index, refused, len(sent["seq"])))


def merged_by_time(series: Series, parts: Iterable[tuple[str, Table]]) -> Table:
    """The rows of all roles, given with their names, in order of time; a column `role` has the role's index."""
    time_column = TIME_COLUMNS[series.name]
    tables = [
        {**table, "role": np.broadcast_to(np.int64(role.rpartition("-")[2]), len(table[time_column]))}
        for role, table in parts
    ]
    if not tables:
        nothing: Table = {column.name: np.empty(0, np.dtype(column.dtype)) for column in series.columns}
        return {**nothing, "role": np.empty(0, np.int64)}
    columns = tables[0]
    if len(tables) > 1:
        columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    times = columns[time_column]
    if np.all(times[1:] >= times[:-1]):
        return columns
    order = np.argsort(times, kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _duplicate_arrivals(index: NDArray[np.int64], refused: NDArray[np.bool_], sent: int) -> NDArray[np.bool_]:
    """Which arrivals are duplicates: all of a message but its first good one, else its first.

    `index` gives for each arrival the message among those `sent`, -1 for none.
    """
    if len(index) == sent and not refused.any() and np.array_equal(index, np.arange(sent)):
        return np.zeros(sent, np.bool_)  # each came once
    worst_first = np.argsort(refused, kind="stable")[::-1]
    kept = np.full(sent + 1, -1, np.int64)
    kept[index[worst_first]] = worst_first  # the last of several is kept
    return np.asarray((index >= 0) & (kept[index] != np.arange(len(index))))


def _index_of_keys(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each wanted key its place in `keys` (unique, in any order), -1 if it is missing."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    if np.array_equal(keys, wanted):
        return np.arange(len(keys))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    place = np.minimum(np.searchsorted(ordered, wanted), len(keys) - 1)
    return np.where(ordered[place] == wanted, order[place], -1)


def _match_by_stamp(
    sent: NDArray[np.int64], received: NDArray[np.int64], refused: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The place in `sent` of each received message, by stamp and rank among equal stamps, -1 for none.

    Good messages rank before refused ones. Where more messages have a stamp than were sent with it, those beyond are
    matched to the last of them.
    """
    if not len(sent):
        return np.full(len(received), -1, np.int64)
    if np.array_equal(sent, received) and np.all(sent[1:] >= sent[:-1]) and not refused.any():
        return np.arange(len(sent))  # no message lost, none twice, and the order kept
    order = np.argsort(sent, kind="stable")
    stamps, starts, counts = np.unique(sent[order], return_index=True, return_counts=True)
    group = np.minimum(np.searchsorted(stamps, received), len(stamps) - 1)
    rank = np.minimum(_ranks(received, refused), counts[group] - 1)
    return np.where(stamps[group] == received, order[starts[group] + rank], -1)


def _ranks(stamps: NDArray[np.int64], refused: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rank of each row among those with the same stamp: good ones in order of time, then refused ones."""
    order = np.lexsort((refused, stamps))
    ordered = stamps[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.empty(0, np.int64)
    ranks = np.empty(len(stamps), np.int64)
    ranks[order] = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    return ranks
