"""From stored samples and events to the trial's figures and verdicts: pure, and the same whenever it is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from labconsole.trial import LINK_USE, Distribution, Evaluation, Event, Metric, Origin, Samples, Verdict
from labconsole_amqp.choices import Loop, Mode
from labconsole_amqp.envelope import SEQUENCE_MASK
from labconsole_amqp.joining import Joined, load
from labconsole_amqp.metrics import METRICS
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.samples import CONNECTED, OUTCOMES, WALL_OFFSET, WORK_DONE, End, latency_from_stamp_ns
from labconsole_amqp.sealing import Outcome

_QUANTILES = tuple((kind.name, kind.quantile) for kind in METRICS if kind.quantile is not None)
_LINK_USE_LIMIT = 110.0
"""Above this share (%) of a link its stated rate cannot be right; a shaper lets a burst through at the beginning."""
_KINDS = {kind.name: kind for kind in METRICS}


def evaluate(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
    """All figures of a run. Those that need an end which this console did not play are left out."""
    joined = load(parameters, samples)
    metrics = [
        *_connecting(events),
        *_sending(parameters, joined, events),
        *_receiving(parameters, joined),
        *_latency(parameters, joined, events),
        *_integrity(parameters, joined, events),
        *_crypto(joined),
        *_cpu(events),
    ]
    return Evaluation(tuple(metrics), tuple(_verdicts(parameters, joined, metrics)))


def _metric(name: str, value: float, samples: int, **labels: str) -> Metric:
    """A figure of this trial with the unit and direction of its kind."""
    kind = _KINDS[name]
    return Metric(name, float(value), kind.unit, kind.direction, samples, labels, Origin.MEASURED)


def _of(events: Sequence[Event], name: str, role: str) -> list[Event]:
    return [event for event in events if event.name == name and event.source.startswith(role)]


def _connecting(events: Sequence[Event]) -> Iterator[Metric]:
    senders = [event.data["connect_ns"] for event in _of(events, CONNECTED, "sender")]
    if senders:
        yield _metric("connect_time", float(np.mean(senders)) / 1e6, len(senders))
    receivers = [event.data["connect_ns"] + event.data["attach_ns"] for event in _of(events, CONNECTED, "receiver")]
    if receivers:
        yield _metric("receiver_link_time", float(np.mean(receivers)) / 1e6, len(receivers))


def _sending(parameters: AmqpParameters, joined: Joined, events: Sequence[Event]) -> Iterator[Metric]:
    sent = joined.sent
    count = len(sent["sent_ns"])
    if not count:
        return
    yield _metric("sent", count, count)
    yield _metric("sent_size", float(np.mean(sent["size"])), count)
    done = _of(events, WORK_DONE, "sender")
    connects = [event.data["connect_ns"] for event in _of(events, CONNECTED, "sender")]
    # Without the end of one sender, the others' time would be too short for the messages of all.
    if len(done) == len(connects) == parameters.senders:
        span_ns = max(event.data["end_ns"] for event in done) - int(sent["sent_ns"][0])
        yield _metric("send_duration", (span_ns + float(np.mean(connects))) / 1e6, count)
        if span_ns > 0:
            yield _metric("send_rate", count / (span_ns / 1e9), count)


def counted(parameters: AmqpParameters, joined: Joined) -> NDArray[np.bool_]:
    """Which received rows count for throughput and latency: all but the warm-up, the first messages of each sender.

    Without the senders' samples, their sequence is the one in the message's number, or that of receiving.
    """
    if not parameters.warm_up:
        return np.ones(len(joined.of_received), np.bool_)
    if len(joined.sent["seq"]):
        sequence = np.where(joined.of_received >= 0, joined.sent["seq"][joined.of_received], parameters.warm_up)
        return np.asarray(sequence >= parameters.warm_up)
    if parameters.numbered:
        return np.asarray(joined.received["number"] & SEQUENCE_MASK >= parameters.warm_up)
    return np.arange(len(joined.of_received)) >= parameters.warm_up


def _receiving(parameters: AmqpParameters, joined: Joined) -> Iterator[Metric]:
    received = joined.received
    total = len(received["received_ns"])
    if not total:
        return
    yield _metric("received", total, total)
    yield _metric("received_size", float(np.mean(received["size"])), total)
    counts = counted(parameters, joined)
    times = received["received_ns"][counts]
    if len(times) > 1 and times[-1] > times[0]:
        span_s = int(times[-1] - times[0]) / 1e9
        yield _metric("receive_duration", span_s, len(times))
        yield _metric("throughput", len(times) / span_s, len(times))
        if parameters.link_rate is not None:
            megabits = int(np.sum(received["size"][counts], dtype=np.int64)) * 8 / 1e6
            yield _metric(LINK_USE, megabits / span_s / parameters.link_rate * 100, len(times))


def latencies_ns(
    parameters: AmqpParameters, joined: Joined, events: Sequence[Event]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(time of receipt, latency), both ns, of every good message that counts, in order of receipt."""
    received = joined.received
    good = joined.good & counted(parameters, joined)
    if parameters.mode is Mode.RECEIVER:
        return received["received_ns"][good], from_stamps_ns(joined, events)[good]
    good &= joined.matched
    times = received["received_ns"][good]
    return times, times - joined.sent[start_column(parameters)][joined.of_received[good]]


def start_column(parameters: AmqpParameters) -> str:
    """The sent samples' column that latency counts from."""
    return "intended_ns" if parameters.loop is Loop.OPEN else "sent_ns"


def from_stamps_ns(joined: Joined, events: Sequence[Event]) -> NDArray[np.int64]:
    """Latency of each received message from the stamp in it, by the wall clocks of both computers, ns."""
    offsets = [event.data["offset_ns"] for event in _of(events, WALL_OFFSET, "receiver")]
    received = joined.received
    return latency_from_stamp_ns(received["received_ns"], offsets[0] if offsets else 0, received["stamp_ms"])


def _latency(parameters: AmqpParameters, joined: Joined, events: Sequence[Event]) -> Iterator[Metric]:
    _, latencies = latencies_ns(parameters, joined, events)
    count = len(latencies)
    if not count:
        return
    milliseconds = latencies / 1e6
    yield _metric("latency_mean", float(np.mean(milliseconds)), count)
    yield _metric("latency_min", float(np.min(milliseconds)), count)
    for name, fraction in _QUANTILES:
        yield _metric(name, float(np.quantile(milliseconds, fraction, method="inverted_cdf")), count)
    yield _metric("latency_max", float(np.max(milliseconds)), count)


def distributions(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> tuple[Distribution, ...]:
    """The latencies behind `latency_mean` and the percentiles: those of all good messages that count, ms."""
    _, latencies = latencies_ns(parameters, load(parameters, samples), events)
    return (Distribution("Latency", "ms", latencies / 1e6),) if len(latencies) else ()


def _integrity(parameters: AmqpParameters, joined: Joined, events: Sequence[Event]) -> Iterator[Metric]:
    if parameters.mode is Mode.SENDER:
        return
    outcomes = joined.received["outcome"]
    total = len(outcomes)
    expected, came = _expected(parameters, joined), _came(parameters, joined)
    if _ran_out(parameters, events):
        yield _metric("lost", expected - came, expected)
    if parameters.mode is Mode.BOTH:
        yield _metric("duplicated", int(np.count_nonzero(joined.duplicates)), total)
        yield _metric("unknown", int(np.count_nonzero(joined.of_received < 0)), total)
        yield _metric("out_of_order", _out_of_order(joined), total)
    yield _metric("failed_verifications", int(np.count_nonzero(outcomes)), total)
    for number, outcome in enumerate(OUTCOMES):
        matching = int(np.count_nonzero(outcomes == number))
        if matching and outcome is not Outcome.OK:
            yield _metric("failed_verifications", matching, total, reason=outcome.value)


def _expected(parameters: AmqpParameters, joined: Joined) -> int:
    """Messages that must have come: all that were sent, or that the other console was to send."""
    if parameters.mode is Mode.BOTH:
        return len(joined.sent["seq"])
    return parameters.per_sender * parameters.senders


def _came(parameters: AmqpParameters, joined: Joined) -> int:
    """How many different messages of those came."""
    if parameters.mode is Mode.BOTH:
        return int(np.count_nonzero(joined.matched))
    numbers = joined.received["number"]
    different = len(np.unique(numbers[numbers >= 0])) if parameters.numbered else len(numbers)
    return min(different, _expected(parameters, joined))


def _ran_out(parameters: AmqpParameters, events: Sequence[Event]) -> bool:
    """Whether every end worked to its end: in a run that was cancelled or failed, nobody knows what is lost."""
    ends = [event.data["end"] for event in _of(events, WORK_DONE, "receiver")]
    if parameters.mode is Mode.BOTH and len(_of(events, WORK_DONE, "sender")) < parameters.senders:
        return False
    return len(ends) == parameters.receivers and all(end in (End.COMPLETE, End.QUIET) for end in ends)


def _out_of_order(joined: Joined) -> int:
    """Messages that came after a later one of the same sender, at the same receiver."""
    index = joined.of_received[joined.matched]
    senders, receivers = joined.sent["role"][index], joined.received["role"][joined.matched]
    total = 0
    for sender, receiver in np.unique(np.stack((senders, receivers)), axis=1).T:
        sequence = joined.sent["seq"][index][(senders == sender) & (receivers == receiver)]
        total += int(np.count_nonzero(sequence < np.maximum.accumulate(sequence)))
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
            yield _metric(name, float(np.mean(values)) / 1e3, len(values))


def _cpu(events: Sequence[Event]) -> Iterator[Metric]:
    for role in ("sender", "receiver", "broker"):
        done = _of(events, WORK_DONE, role)
        messages = sum(event.data["messages"] for event in done)
        if messages:
            yield _metric(
                "cpu_per_message", sum(event.data["cpu_ns"] for event in done) / messages / 1e3, messages, role=role
            )


def _verdicts(parameters: AmqpParameters, joined: Joined, metrics: Sequence[Metric]) -> Iterator[Verdict]:
    if parameters.mode is Mode.SENDER:
        return
    figures = {figure.name: int(figure.value) for figure in metrics if not figure.labels}
    evidence = {
        "expected": _expected(parameters, joined),
        "came": _came(parameters, joined),
        "received": figures.get("received", 0),
    }
    yield Verdict("all messages arrived", *_arrival(figures.get("lost"), evidence["expected"]), evidence)
    foreign = {"duplicated": figures.get("duplicated", 0), "unknown": figures.get("unknown", 0)}
    if parameters.mode is Mode.BOTH:
        reason = (
            f"{foreign['duplicated']} messages came twice, and {foreign['unknown']} came that nobody of this run sent."
            if any(foreign.values())
            else "Every message came once, and no other."
        )
        yield Verdict(
            "no message arrived twice or from elsewhere", "fail" if any(foreign.values()) else "pass", reason, foreign
        )
    failed = figures["failed_verifications"]
    reason = f"{failed} messages were refused." if failed else "Every message that arrived was good."
    yield Verdict("all messages were accepted", "fail" if failed else "pass", reason, {"failed": failed})
    use = next((figure.value for figure in metrics if figure.name == LINK_USE), None)
    if use is not None:
        yield Verdict("the link rate can be as stated", *_link_as_stated(use), {LINK_USE: use})


def _link_as_stated(use: float) -> tuple[str, str]:
    """Result and reason of the verdict on the link rate."""
    if use > _LINK_USE_LIMIT:
        return "fail", f"{use:,.0f} % of the stated rate came through: the link was not shaped to it."
    return "pass", f"{use:.0f} % of the stated rate came through."


def _arrival(lost: int | None, expected: int) -> tuple[str, str]:
    """Result and reason of the verdict on losses."""
    if lost is None:
        return "unknown", "The run ended before everything that was sent could have come."
    if not expected:
        return "unknown", "Nothing was sent."
    return ("fail", f"{lost} messages did not arrive.") if lost else ("pass", "Every message arrived.")
