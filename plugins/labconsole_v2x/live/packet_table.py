"""The exported table of packets: each CAM sent with its reception at each receiver, as Fig. 2.3 maps both logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Column, DerivedTable, Event, Samples, Series
from labconsole_v2x.live.joined_packets import load_joined
from labconsole_v2x.live.live_parameters import LiveParameters

_PART = 50_000
PACKETS = Series(
    "packets",
    "Each CAM sent, with its reception: times since T0",
    (
        Column("station", "u2", "", "Number of the sending station"),
        Column("identity", "i8", "", "generationTime (ITS time, us); of an unsecured packet a hash"),
        Column("due_ns", "i8", "ns", "Due"),
        Column("sent_ns", "i8", "ns", "Sent"),
        Column("receiver", "i4", "", "Number of the receiving station; -1: no receiver read it"),
        Column("received_ns", "i8", "ns", "Read from the socket; -1: not read"),
        Column("done_ns", "i8", "ns", "Processed; -1: not read"),
        Column("latency_ns", "i8", "ns", "From due to processed; -1: not accepted"),
        Column("size", "u2", "B", "Size of the GeoNetworking packet"),
        Column("reason", "i2", "", "0 accepted, else the reason of the rejection by number; -1: not read"),
    ),
)


def packet_tables(parameters: LiveParameters, samples: Samples, events: Sequence[Event]) -> tuple[DerivedTable, ...]:
    """The table; none before T0."""
    packets = load_joined(parameters, samples, events)
    if packets is None:
        return ()
    rows = np.flatnonzero(packets.of_received >= 0)
    never = np.setdiff1d(np.arange(len(packets.sent["source"])), packets.of_received[rows])
    sent = np.concatenate((packets.of_received[rows], never))
    order = np.argsort(packets.sent["due_ns"][sent], kind="stable")
    of_sent = sent[order]
    of_received = np.concatenate((rows, np.full(len(never), -1)))[order]

    def received(name: str, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        values = packets.received[name].astype(np.int64)
        return np.where(chosen >= 0, values[chosen], -1) if len(values) else np.full(len(chosen), -1)

    def parts() -> Iterator[Mapping[str, NDArray[Any]]]:
        for start in range(0, len(of_sent), _PART):
            own, theirs = of_sent[start : start + _PART], of_received[start : start + _PART]
            zero, due = packets.begin_ns, packets.sent["due_ns"][own]
            done, reason = received("done_ns", theirs), received("reason", theirs)
            yield {
                "station": packets.sent["station"][own],
                "identity": packets.sent["identity"][own],
                "due_ns": due - zero,
                "sent_ns": packets.sent["sent_ns"][own] - zero,
                "receiver": received("receiver", theirs),
                "received_ns": np.where(theirs >= 0, received("received_ns", theirs) - zero, -1),
                "done_ns": np.where(theirs >= 0, done - zero, -1),
                "latency_ns": np.where(reason == 0, done - due, -1),
                "size": packets.sent["size"][own],
                "reason": reason,
            }

    return (DerivedTable(PACKETS, len(of_sent), parts),)
