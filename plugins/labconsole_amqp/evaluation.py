"""From stored samples to the trial's figures: sender and receiver are joined, never averaged apart.

Messages with a number are joined by (sender, sequence). The source's envelope has none: its messages are joined by
their stamp (`sent_time`, ms) and their rank among those with the same stamp, which is exact as long as the queue keeps
the order of sending (a queue with one sender and one receiver does).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.trial import Evaluation, Event, Metric, Origin, Samples, Verdict
from labconsole_amqp.envelope import SENDER_SHIFT, message_number
from labconsole_amqp.metrics import METRICS
from labconsole_amqp.parameters import AmqpParameters, Loop, Mode
from labconsole_amqp.samples import CONNECTED, OUTCOMES, RECEIVED, SENT, WALL_OFFSET, WORK_DONE
from labconsole_amqp.sealing import Outcome

Table = dict[str, NDArray[Any]]
_QUANTILES = (("latency_p50", 0.5), ("latency_p90", 0.9), ("latency_p99", 0.99), ("latency_p999", 0.999))
_KINDS = {kind.name: kind for kind in METRICS}


@dataclass(frozen=True)
class Joined:
    """Senders' and receivers' samples of one run, joined.

    `sent` and `received` are all rows, in order of time; `of_received` gives for each received row the index of its
    row in `sent`, -1 if it has none; a duplicate has the same index as the first.
    """

    sent: Table
    received: Table
    of_received: NDArray[np.int64]
    duplicates: NDArray[np.bool_]

    @property
    def matched(self) -> NDArray[np.bool_]:
        """Which received rows are the first arrival of a message that was sent."""
        return (self.of_received >= 0) & ~self.duplicates


def load(parameters: AmqpParameters, samples: Samples) -> Joined:
    """Read both ends' samples and join them."""
    sent = _gathered(samples, SENT.name, "sent_ns")
    received = _gathered(samples, RECEIVED.name, "received_ns")
    if parameters.numbered:
        sent_keys = message_number(0, 0) + (sent["sender"] << SENDER_SHIFT) + sent["seq"]
        received_keys = received["number"]
    else:
        sent_keys, received_keys = _ranked(sent["stamp_ms"]), _ranked(received["stamp_ms"])
    order = np.argsort(sent_keys, kind="stable")
    if len(order):
        place = np.minimum(np.searchsorted(sent_keys[order], received_keys), len(order) - 1)
        index = np.where(sent_keys[order][place] == received_keys, order[place], -1)
    else:
        index = np.full(len(received_keys), -1, np.int64)
    first = np.zeros(len(index), np.bool_)
    first[np.unique(index, return_index=True)[1]] = True
    return Joined(sent, received, index, ~first & (index >= 0))


def _gathered(samples: Samples, series: str, time_column: str) -> Table:
    """The rows of all roles in order of time, with a column `sender` (index of the role)."""
    tables = [samples.table(series, role) for role in samples.roles(series)]
    roles = [int(role.rpartition("-")[2]) for role in samples.roles(series)]
    if not tables:
        definition = SENT if series == SENT.name else RECEIVED
        return {column.name: np.empty(0, np.dtype(column.dtype)) for column in definition.columns} | {
            "sender": np.empty(0, np.int64)
        }
    gathered = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    gathered["sender"] = np.concatenate(
        [np.full(len(table[time_column]), role, np.int64) for role, table in zip(roles, tables, strict=True)]
    )
    order = np.argsort(gathered[time_column], kind="stable")
    return {name: column[order] for name, column in gathered.items()}


def _ranked(stamps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys that tell messages with equal stamps apart by their rank among them (fewer than 2**20 a millisecond)."""
    order = np.argsort(stamps, kind="stable")
    ordered = stamps[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.empty(0, np.int64)
    ranks = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    keys = np.empty(len(stamps), np.int64)
    keys[order] = (ordered << 20) + ranks
    return keys


def evaluate(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
    """All figures of a run. Those that need an end which this console did not play are left out."""
    joined = load(parameters, samples)
    metrics = [
        *_connecting(events),
        *_sending(joined, events),
        *_receiving(parameters, joined),
        *_latency(parameters, joined, events),
        *_integrity(parameters, joined),
        *_crypto(joined),
        *_cpu(events),
    ]
    return Evaluation(tuple(metrics), tuple(_verdicts(parameters, joined, metrics)))


def metric(name: str, value: float, samples: int, **labels: str) -> Metric:
    """A figure of this trial with the unit and direction of its kind."""
    kind = _KINDS[name]
    return Metric(name, float(value), kind.unit, kind.direction, samples, labels, Origin.MEASURED)


def _of(events: Sequence[Event], name: str, role: str) -> list[Event]:
    return [event for event in events if event.name == name and event.source.startswith(role)]


def _connecting(events: Sequence[Event]) -> Iterator[Metric]:
    senders = [event.data["connect_ns"] for event in _of(events, CONNECTED, "sender")]
    if senders:
        yield metric("connect_time", float(np.mean(senders)) / 1e6, len(senders))
    receivers = [event.data["connect_ns"] + event.data["attach_ns"] for event in _of(events, CONNECTED, "receiver")]
    if receivers:
        yield metric("receiver_link_time", float(np.mean(receivers)) / 1e6, len(receivers))


def _sending(joined: Joined, events: Sequence[Event]) -> Iterator[Metric]:
    sent = joined.sent
    count = len(sent["sent_ns"])
    if not count:
        return
    yield metric("sent", count, count)
    yield metric("sent_size", float(np.mean(sent["size"])), count)
    done = _of(events, WORK_DONE, "sender")
    connects = [event.data["connect_ns"] for event in _of(events, CONNECTED, "sender")]
    if done and connects:
        span_ns = max(event.data["end_ns"] for event in done) - int(sent["sent_ns"][0])
        yield metric("send_duration", (span_ns + max(connects)) / 1e6, count)
        if span_ns > 0:
            yield metric("send_rate", count / (span_ns / 1e9), count)


def counted(parameters: AmqpParameters, joined: Joined) -> NDArray[np.bool_]:
    """Which received rows count for throughput and latency: all but the warm-up, the first messages of each sender.

    Without the sender's samples, those are the first messages received.
    """
    if not parameters.warm_up:
        return np.ones(len(joined.of_received), np.bool_)
    if len(joined.sent["seq"]):
        sequence = np.where(joined.of_received >= 0, joined.sent["seq"][joined.of_received], parameters.warm_up)
        return np.asarray(sequence >= parameters.warm_up)
    return np.arange(len(joined.of_received)) >= parameters.warm_up * parameters.senders


def _receiving(parameters: AmqpParameters, joined: Joined) -> Iterator[Metric]:
    received = joined.received
    total = len(received["received_ns"])
    if not total:
        return
    yield metric("received", total, total)
    yield metric("received_size", float(np.mean(received["size"])), total)
    times = received["received_ns"][counted(parameters, joined)]
    if len(times) > 1 and times[-1] > times[0]:
        span_ns = int(times[-1] - times[0])
        yield metric("receive_duration", span_ns / 1e9, len(times))
        yield metric("throughput", len(times) / (span_ns / 1e9), len(times))


def latencies_ns(
    parameters: AmqpParameters, joined: Joined, events: Sequence[Event]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(time of receipt, latency), both ns, of every good message that counts, in order of receipt."""
    received = joined.received
    good = (received["outcome"] == 0) & counted(parameters, joined)
    if parameters.mode is Mode.RECEIVER:
        offsets = [event.data["offset_ns"] for event in _of(events, WALL_OFFSET, "receiver")]
        offset_ns = offsets[0] if offsets else 0
        times = received["received_ns"][good]
        return times, times + offset_ns - received["stamp_ms"][good] * 1_000_000
    good &= joined.matched
    times = received["received_ns"][good]
    start = "intended_ns" if parameters.loop is Loop.OPEN else "sent_ns"
    return times, times - joined.sent[start][joined.of_received[good]]


def _latency(parameters: AmqpParameters, joined: Joined, events: Sequence[Event]) -> Iterator[Metric]:
    _, latencies = latencies_ns(parameters, joined, events)
    count = len(latencies)
    if not count:
        return
    milliseconds = latencies / 1e6
    yield metric("latency_mean", float(np.mean(milliseconds)), count)
    yield metric("latency_min", float(np.min(milliseconds)), count)
    for name, fraction in _QUANTILES:
        yield metric(name, float(np.quantile(milliseconds, fraction, method="inverted_cdf")), count)
    yield metric("latency_max", float(np.max(milliseconds)), count)


def _integrity(parameters: AmqpParameters, joined: Joined) -> Iterator[Metric]:
    received = joined.received
    sent_count, received_count = len(joined.sent["seq"]), len(received["outcome"])
    if parameters.mode is not Mode.SENDER:
        unique = int(np.count_nonzero(joined.matched))
        if parameters.mode is Mode.BOTH:
            unmatched = int(np.count_nonzero(joined.of_received < 0))
            yield metric("lost", sent_count - unique, sent_count)
            yield metric("duplicated", int(np.count_nonzero(joined.duplicates)), received_count)
            yield metric("unknown", unmatched, received_count)
            yield metric("out_of_order", _out_of_order(joined), received_count)
        else:
            expected = parameters.per_sender * parameters.senders
            yield metric("lost", max(0, expected - received_count), expected)
        failed = received["outcome"] != 0
        yield metric("failed_verifications", int(np.count_nonzero(failed)), received_count)
        for number, outcome in enumerate(OUTCOMES):
            matching = int(np.count_nonzero(received["outcome"] == number))
            if matching and outcome is not Outcome.OK:
                yield metric("failed_verifications", matching, received_count, reason=outcome.value)


def _out_of_order(joined: Joined) -> int:
    """Messages that came after a later one of the same sender."""
    total = 0
    index = joined.of_received[joined.matched]
    for sender in np.unique(joined.sent["sender"]):
        sequence = joined.sent["seq"][index][joined.sent["sender"][index] == sender]
        total += int(np.count_nonzero(sequence < np.maximum.accumulate(sequence))) if len(sequence) else 0
    return total


def _crypto(joined: Joined) -> Iterator[Metric]:
    for name, table, column in (
        ("sign_time", joined.sent, "sign_ns"),
        ("encrypt_time", joined.sent, "encrypt_ns"),
        ("verify_time", joined.received, "verify_ns"),
        ("decrypt_time", joined.received, "decrypt_ns"),
    ):
        values = table[column][table[column] > 0]
        if len(values):
            yield metric(name, float(np.mean(values)) / 1e3, len(values))


def _cpu(events: Sequence[Event]) -> Iterator[Metric]:
    for role in ("sender", "receiver", "broker"):
        done = _of(events, WORK_DONE, role)
        messages = sum(event.data["messages"] for event in done)
        if messages:
            yield metric(
                "cpu_per_message", sum(event.data["cpu_ns"] for event in done) / messages / 1e3, messages, role=role
            )


def _verdicts(parameters: AmqpParameters, joined: Joined, metrics: Sequence[Metric]) -> Iterator[Verdict]:
    figures = {figure.name: figure.value for figure in metrics if not figure.labels}
    if parameters.mode is Mode.SENDER or "lost" not in figures:
        return
    lost, failed = int(figures["lost"]), int(figures["failed_verifications"])
    evidence = {"lost": lost, "duplicated": int(figures.get("duplicated", 0)), "received": len(joined.of_received)}
    reason = "Every message arrived." if lost == 0 else f"{lost} messages did not arrive."
    yield Verdict("all messages arrived", "pass" if lost == 0 else "fail", reason, evidence)
    reason = "Every message that arrived was good." if failed == 0 else f"{failed} messages were refused."
    evidence = {"failed": failed}
    yield Verdict("all messages were accepted", "pass" if failed == 0 else "fail", reason, evidence)
