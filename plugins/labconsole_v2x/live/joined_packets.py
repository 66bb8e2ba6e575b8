"""The packets of a live run: what senders and receivers recorded, joined by (sender, identity)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Event, Samples, Series
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.series import QUEUE, QUIET_NS, RECEIVED, SENT, STATIONS

Table = dict[str, NDArray[Any]]
PAIR_CAM = (1 << 40) - 1
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class JoinedPackets:
    """The CAMs of the sending stations, and the rows of all receivers."""

    begin_ns: int
    """T0."""
    from_ns: int
    until_ns: int
    """What was due from then until then counts: the duration, or less in a run that was ended before."""
    stations: Table
    sent: Table
    """What those stations sent that are no attackers, in order of due times."""
    received: Table
    """In order of their `done_ns`."""
    attacks: Table
    """What attackers sent, in order of due times."""
    sender: NDArray[np.int64]
    """For each received row the instance that has sent it, whatever its identity then was: equal numbers are one."""
    of_received: NDArray[np.int64]
    """For each received row its row in `sent`; -1 for none: another station's, the receiver's own, or unreadable."""
    receivers: int
    """How many stations should have received each CAM."""

    def counts(self, times_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these times are in the time that counts."""
        return np.asarray((times_ns >= self.from_ns) & (times_ns < self.until_ns))

    @property
    def counted_sent(self) -> NDArray[np.bool_]:
        """The sent rows that count."""
        return self.counts(self.sent["due_ns"])

    def pairs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """A number of receiver and CAM for each of these received rows: `PAIR_CAM` of it is the row in `sent`."""
        return np.asarray(self.received["receiver"][rows].astype(np.int64) << 40 | self.of_received[rows])

    @property
    def seconds(self) -> float:
        """The length of the time that counts."""
        return (self.until_ns - self.from_ns) / 1e9


def load_joined(parameters: LiveParameters, samples: Samples, events: Sequence[Event]) -> JoinedPackets | None:
    """Read and join the samples of a run; None before T0."""
    begins = [event.data["begin_ns"] for event in events if event.name == "T0"]
    if not begins:
        return None
    stations = _all(samples, STATIONS)
    all_sent = _ordered(_all(samples, SENT), "due_ns")
    sent = _chosen(all_sent, (all_sent["station"] > 0) & (all_sent["station"] <= parameters.senders))
    attacks = _chosen(all_sent, all_sent["station"] > parameters.senders)
    received = _ordered(_all(samples, RECEIVED), "done_ns")
    from_ns = begins[0] + round(parameters.warm_up * 1e9)
    read_until = [int(samples.table(QUEUE.name, role)["t_ns"].max()) - QUIET_NS for role in samples.roles(QUEUE.name)]
    until_ns = max(from_ns, min([from_ns + round(parameters.duration * 1e9), *read_until]))
    return JoinedPackets(
        begins[0],
        from_ns,
        until_ns,
        stations,
        sent,
        received,
        attacks,
        _senders(stations, received["source"]),
        _join(sent, received),
        parameters.receptions_a_message,
    )


def _all(samples: Samples, series: Series) -> Table:
    tables = [samples.table(series.name, role) for role in samples.roles(series.name)]
    if not tables:
        return {column.name: np.empty(0, column.numpy_type) for column in series.columns}
    # Columns that are newer than a stored run are 0 in it.
    return {
        column.name: np.concatenate(
            [
                table.get(column.name, np.zeros(len(table[series.columns[0].name]), column.numpy_type))
                for table in tables
            ]
        )
        for column in series.columns
    }


def _ordered(table: Table, by: str) -> Table:
    order = np.argsort(table[by], kind="stable")
    return {name: column[order] for name, column in table.items()}


def _chosen(table: Table, rows: NDArray[np.bool_]) -> Table:
    return {name: column[rows] for name, column in table.items()}


def _keys(table: Table) -> NDArray[np.uint64]:
    """Sender and identity mixed to 64 bits; whether two rows are really the same is compared afterwards."""
    return np.asarray(table["source"].astype(np.uint64) * _MIX ^ table["identity"].astype(np.uint64))


def _senders(stations: Table, sources: NDArray[np.int64]) -> NDArray[np.int64]:
    """Station and instance of each MAC address as a number; that of another run stays as it is, which is greater."""
    if not len(stations["source"]):
        return sources
    order = np.argsort(stations["source"], kind="stable")
    known = stations["source"][order]
    found = order[np.minimum(np.searchsorted(known, sources), len(known) - 1)]
    instances = stations["station"].astype(np.int64) << 16 | stations["instance"]
    return np.where(stations["source"][found] == sources, instances[found], sources)


def _join(sent: Table, received: Table) -> NDArray[np.int64]:
    if not len(sent["source"]):
        return np.full(len(received["source"]), -1, np.int64)
    keys, wanted = _keys(sent), _keys(received)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = order[place]
    same = (sent["source"][found] == received["source"]) & (sent["identity"][found] == received["identity"])
    return np.where(same, found, -1)
