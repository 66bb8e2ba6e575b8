"""Times of a host's samples are brought to the console's clock by what its offset changed during the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from labconsole.clock_comparison import HOST_COMPARED, Offset
from labconsole.engine.spool import EventBlock, SampleBlock
from labconsole.hosts.samples.collected import HostClock
from labconsole.model.series import Column, Event, Level, Series

SERIES = Series(
    "passed",
    "What passed",
    (
        Column("t_ns", "i8", "ns", "Time", by_clock=True),
        Column("took_ns", "i8", "ns", "Duration"),
        Column("from_ns", "i8", "ns", "Time, 0 for the beginning", by_clock=True),
    ),
)
S = 1_000_000_000
AHEAD = 500 * S
"""The host's clock before the run, less the console's."""


def compared(console_ns: int, offset_ns: int, phase: str, host: str = "obu-1") -> Event:
    """A comparison at a moment of the console's clock."""
    offset = Offset(offset_ns, 1000, console_ns, console_ns + offset_ns, 0, 0, 100)
    data: dict[str, Any] = {**offset.to_json(), "host": host, "phase": phase, "clock_domain": "boot"}
    return Event(console_ns, "worker", Level.INFO, HOST_COMPARED, "compared", data)


EVENTS = [
    compared(100 * S, AHEAD, "before"),
    compared(110 * S, AHEAD + 20_000, "during"),
    compared(120 * S, AHEAD + 30_000, "after"),
    compared(100 * S, 7, "before", host="obu-2"),
]


def block(*t_ns: int) -> SampleBlock:
    """Rows as a role records them whose clock was set before the run."""
    rows = len(t_ns)
    columns = {
        "t_ns": np.array(t_ns, np.int64),
        "took_ns": np.full(rows, 40, np.int64),
        "from_ns": np.zeros(rows, np.int64),
    }
    return SampleBlock("sender", SERIES, 0, rows, columns)


def corrected(*t_ns: int, host: str = "obu-1", events: list[Event] = EVENTS) -> SampleBlock:
    """The rows as they are stored."""
    found = HostClock(events, host).corrected(block(*t_ns))
    assert isinstance(found, SampleBlock)
    return found


def test_times_lose_what_the_offset_has_changed_since_the_clock_was_set() -> None:
    # A moment of the console's clock, as the drifting clock of the host has it: 10 us and 25 us late.
    found = corrected(100 * S, 105 * S + 10_000, 115 * S + 25_000, 130 * S + 30_000)
    assert np.abs(found.columns["t_ns"] - np.array([100 * S, 105 * S, 115 * S, 130 * S])).max() <= 1


def test_durations_and_missing_times_stay_as_they_are() -> None:
    found = corrected(115 * S)
    assert found.columns["took_ns"].tolist() == [40] and found.columns["from_ns"].tolist() == [0]


def test_events_are_corrected_like_samples() -> None:
    data = {"begin_ns": 105 * S + 10_000, "end_ns": 115 * S + 25_000, "cpu_ns": 115 * S, "end": "late"}
    event = Event(115 * S + 25_000, "sender", Level.INFO, "end", "It ends.", data)
    found = HostClock(EVENTS, "obu-1").corrected(EventBlock(0, event))
    assert isinstance(found, EventBlock) and abs(found.event.t_ns - 115 * S) <= 1
    times = found.event.data
    assert abs(times["begin_ns"] - 105 * S) <= 1 and abs(times["end_ns"] - 115 * S) <= 1
    assert (times["cpu_ns"], times["end"]) == (115 * S, "late")


def test_each_host_has_its_own_clock() -> None:
    assert corrected(115 * S + 25_000, host="obu-2").columns["t_ns"].tolist() == [115 * S + 25_000]


def test_a_host_that_was_never_compared_keeps_its_times() -> None:
    assert corrected(115 * S, events=[]).columns["t_ns"].tolist() == [115 * S]
