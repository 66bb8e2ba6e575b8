"""Synthetic samples and events with known losses and times, and the figures of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Evaluation, Event, Level
from labconsole_amqp.series import CONNECTED, RECEIVED, SENT, WORK_DONE, ReceiverEnd
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.wire.envelope import message_number

MS = 1_000_000
EPOCH_MS = 1_700_000_000_000


@dataclass
class Tables:
    """`Samples` in memory."""

    tables: dict[tuple[str, str], dict[str, NDArray[Any]]] = field(default_factory=dict)
    definitions: int = AmqpTrial.definitions

    def roles(self, series: str) -> list[str]:
        return sorted(role for name, role in self.tables if name == series)

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        return self.tables[series, role]


def sent_table(sent_ns: NDArray[np.int64], first: int = 0, size: int = 282) -> dict[str, NDArray[Any]]:
    """Rows of one sender: stamps follow from the times."""
    count = len(sent_ns)
    table = {column.name: np.zeros(count, np.dtype(column.dtype)) for column in SENT.columns}
    table |= {"seq": np.arange(first, first + count), "intended_ns": sent_ns, "sent_ns": sent_ns}
    return table | {"stamp_ms": EPOCH_MS + sent_ns // MS, "size": np.full(count, size, np.int32)}


def received_table(
    received_ns: NDArray[np.int64], stamps_ms: NDArray[np.int64], numbers: NDArray[np.int64] | None = None
) -> dict[str, NDArray[Any]]:
    """Rows of one receiver, all good."""
    count = len(received_ns)
    table = {column.name: np.zeros(count, np.dtype(column.dtype)) for column in RECEIVED.columns}
    table |= {"received_ns": received_ns, "stamp_ms": stamps_ms, "size": np.full(count, 282, np.int32)}
    return table | {"number": np.full(count, -1) if numbers is None else numbers}


def event(source: str, name: str, **data: Any) -> Event:
    return Event(0, source, Level.INFO, name, "", data)


def ended(
    senders: int = 1, receivers: int = 1, end: ReceiverEnd = ReceiverEnd.COMPLETE, end_ns: int = 0
) -> list[Event]:
    """The events of a run that finished."""
    events = []
    for index in range(senders):
        events.append(event(f"sender-{index}", CONNECTED, connect_ns=3 * MS, attach_ns=MS))
        events.append(event(f"sender-{index}", WORK_DONE, cpu_ns=2000, messages=2, end_ns=end_ns))
    for index in range(receivers):
        events.append(event(f"receiver-{index}", CONNECTED, connect_ns=4 * MS, attach_ns=MS))
        events.append(event(f"receiver-{index}", WORK_DONE, cpu_ns=6000, messages=2, end=end))
    return events


def figures(evaluation: Evaluation) -> dict[str, float]:
    return {metric.name: metric.value for metric in evaluation.metrics if not metric.labels}


def verdicts(evaluation: Evaluation) -> dict[str, str]:
    return {verdict.name: verdict.result for verdict in evaluation.verdicts}


@dataclass(frozen=True)
class Truth:
    """A synthetic run through a queue that may lose, repeat, reorder and add messages."""

    sent_ns: NDArray[np.int64]
    arrivals: NDArray[np.int64]  # sequence of each arrival, in order of arrival; -1: not sent in this run
    received_ns: NDArray[np.int64]

    @classmethod
    def draw(cls, seed: int, count: int = 400, *, lost: int, repeated: int, added: int) -> Truth:
        random = np.random.default_rng(seed)
        sent_ns = np.cumsum(random.integers(1, MS // 2, count))  # several messages in most milliseconds
        kept = np.sort(random.choice(count, count - lost, replace=False))
        twice = random.choice(kept, repeated, replace=False)
        arrivals = np.concatenate((kept, twice, np.full(added, -1)))
        arrivals = arrivals[np.argsort(np.concatenate((kept, twice, random.integers(0, count, added))), kind="stable")]
        received_ns = np.cumsum(random.integers(1, MS // 2, len(arrivals))) + int(sent_ns[-1])
        return cls(sent_ns, arrivals, received_ns)

    def samples(self) -> Tables:
        numbers = np.where(self.arrivals >= 0, message_number(0, 0) + self.arrivals, message_number(9, 0))
        stamps = np.where(self.arrivals >= 0, EPOCH_MS + self.sent_ns[self.arrivals] // MS, 5)
        received = received_table(self.received_ns, stamps, numbers)
        return Tables({("sent", "sender-0"): sent_table(self.sent_ns), ("received", "receiver-0"): received})
