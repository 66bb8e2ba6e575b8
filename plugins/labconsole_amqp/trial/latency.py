"""Latency and time in queue of messages, their metrics, and reasons why latency is not judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.caveats import too_few
from labconsole.analysis.column_figures import offered_rate_too_high
from labconsole.clock_comparison import ClockComparison, between_hosts_ns, clocks_doubt
from labconsole.model.trial import OFFERED_RATE, Distribution, Event, Metric, Samples
from labconsole_amqp.choices import Loop, MessageSizes, Mode
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import RECONNECTED, WALL_OFFSET, Phase, latency_from_stamp_ns
from labconsole_amqp.trial.joining import JoinedSamples, load_joined
from labconsole_amqp.trial.metrics import METRICS, metric
from labconsole_amqp.wire.envelope import SEQUENCE_MASK

MIN_ACHIEVED_RATE: Final = 0.98
"""Share of the offered rate below which the sender did not keep it."""
MAX_LATENCY_RISE: Final = 1.5
"""Median of the last third over that of the first one: above it, queues were growing."""
MAX_SENDER_LATENESS_MS: Final = 2.0
"""p99 of how late the sender began a message, above which it is the sender that was measured."""

QUANTILES = {kind.name: kind.quantile for kind in METRICS if kind.quantile is not None}


@dataclass(frozen=True)
class Measure:
    """A time that a run measures of each message: prefix of its metrics, title, and phase."""

    prefix: str
    title: str
    phase: Phase = Phase.WHOLE


def measures(parameters: AmqpParameters) -> tuple[Measure, ...]:
    """Time in queue in a closed loop, latency in an open one, both with both phases; a sweep has those of its steps."""
    queue_time, latency = ("queue_time", "Time in queue at full speed"), ("latency", "Latency")
    match parameters.loop:
        case Loop.CLOSED:
            return (Measure(*queue_time),)
        case Loop.OPEN | Loop.SOAK:
            return (Measure(*latency),)
        case Loop.BOTH:
            return Measure(*queue_time, Phase.FULL_SPEED), Measure(*latency, Phase.OPEN_LOOP)
        case Loop.SWEEP:
            return ()


def counted_rows(parameters: AmqpParameters, joined: JoinedSamples, phase: Phase = Phase.WHOLE) -> NDArray[np.bool_]:
    """Which received rows count: those of messages due in `phase`; without phases, all after the warm-up.

    The warm-up is the first messages of each sender. Without the senders' samples, the sequence is that of the
    message's number, or of receiving.
    """
    if phase is not Phase.WHOLE:
        if not len(joined.sent["seq"]):
            return np.zeros(len(joined.of_received), np.bool_)
        return np.asarray((joined.of_received >= 0) & (joined.sent["phase"][joined.of_received] == phase))
    if not parameters.warm_up:
        return np.ones(len(joined.of_received), np.bool_)
    if len(joined.sent["seq"]):
        sequence = np.where(joined.of_received >= 0, joined.sent["seq"][joined.of_received], parameters.warm_up)
        return np.asarray(sequence >= parameters.warm_up)
    if parameters.numbered:
        return np.asarray(joined.received["number"] & SEQUENCE_MASK >= parameters.warm_up)
    return np.arange(len(joined.of_received)) >= parameters.warm_up


def latencies_ns(
    parameters: AmqpParameters, joined: JoinedSamples, events: Sequence[Event], phase: Phase = Phase.WHOLE
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(time of receipt, latency), both ns, of every good message that counts, in order of receipt."""
    received = joined.received
    good = joined.good & counted_rows(parameters, joined, phase)
    if parameters.mode is Mode.RECEIVER:
        return received["received_ns"][good], latencies_from_stamps_ns(joined, events)[good]
    good &= joined.matched
    times = received["received_ns"][good]
    return times, times - joined.sent[latency_start_column(parameters)][joined.of_received[good]]


def latency_start_column(parameters: AmqpParameters) -> str:
    """The sent samples' column that latency counts from."""
    return "sent_ns" if parameters.loop is Loop.CLOSED else "intended_ns"


def latencies_from_stamps_ns(joined: JoinedSamples, events: Sequence[Event]) -> NDArray[np.int64]:
    """Latency of each received message from the stamp in it, by the wall clocks of both computers, ns.

    Where the clocks were compared, it is corrected by their offset.
    """
    offsets = [
        event.data["offset_ns"] for event in events if event.name == WALL_OFFSET and event.source.startswith("receiver")
    ]
    received = joined.received
    received_ns, offset_ns = received["received_ns"], offsets[0] if offsets else 0
    if (clocks := ClockComparison.of_events(events)) is not None:
        received_ns, offset_ns = clocks.to_sender(received_ns), clocks.before.sender_wall_offset_ns
    return latency_from_stamp_ns(received_ns, offset_ns, received["stamp_ms"])


def latency_figures(
    parameters: AmqpParameters,
    joined: JoinedSamples,
    events: Sequence[Event],
    definitions: int,
    *,
    busy: str = "",
    full_speed: float | None = None,
) -> Iterator[Metric]:
    """Yield the metrics of each of the run's `measures`.

    `busy`: why the computer was too busy in the open loop, or empty; `full_speed`: the run's throughput in messages per
    second. Runs recorded with definitions 1 call the time in queue latency, and judge it.
    """
    uncertainty = clock_uncertainty_ns(events) / 1e6
    for measure in measures(parameters):
        _, latencies = latencies_ns(parameters, joined, events, measure.phase)
        count = len(latencies)
        if not count:
            continue
        prefix, not_judged = measure.prefix, ""
        if definitions == 1:
            prefix = "latency"
        elif prefix == "latency":
            rate = parameters.rate * parameters.senders
            doubts = [
                *_reasons_not_judged(parameters, joined, latencies, measure.phase),
                offered_rate_too_high(rate, full_speed, "msg/s"),
                busy,
                _clock_doubt(parameters, events, latencies) if definitions > 3 else "",
            ]
            not_judged = "; ".join(filter(None, doubts))
            yield metric(OFFERED_RATE, rate, int(np.count_nonzero(_due(joined, measure.phase))) or count)
        milliseconds = latencies / 1e6
        yield metric(f"{prefix}_mean", float(np.mean(milliseconds)), count, not_judged, uncertainty)
        yield metric(f"{prefix}_min", float(np.min(milliseconds)), count, not_judged, uncertainty)
        for name, quantile in QUANTILES.items():
            if name.startswith(prefix):
                value = float(np.quantile(milliseconds, quantile, method="inverted_cdf"))
                few = too_few(count, quantile) if definitions > 1 else ""
                yield metric(name, value, count, "; ".join(filter(None, [not_judged, few])), uncertainty)
        yield metric(f"{prefix}_max", float(np.max(milliseconds)), count, not_judged, uncertainty)


def distributions(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> tuple[Distribution, ...]:
    """The values behind mean and percentiles of each of the run's `measures`, ms, and of drawn sizes, B."""
    joined = load_joined(parameters, samples)
    found = ((one.title, latencies_ns(parameters, joined, events, one.phase)[1]) for one in measures(parameters))
    times = [Distribution(title, "ms", latencies / 1e6) for title, latencies in found if len(latencies)]
    sizes = joined.received["size"] if len(joined.received["size"]) else joined.sent["size"]
    if parameters.message_sizes is not MessageSizes.PAYLOAD and len(sizes):
        times.append(Distribution("Message size", "B", sizes.astype(np.float64)))
    return tuple(times)


def connections_changed(events: Sequence[Event]) -> str:
    """Why throughput and latency are not those of one connection, or empty."""
    changed = [event for event in events if event.name == RECONNECTED]
    moved = sum(bool(event.data.get("moved", False)) for event in changed)
    lost = len(changed) - moved
    reasons = (
        f"a connection was lost, {lost} times in all" if lost else "",
        f"a role moved to another connection, {moved} times in all" if moved else "",
    )
    return "; ".join(filter(None, reasons))


def _due(joined: JoinedSamples, phase: Phase) -> NDArray[np.bool_]:
    """Which sent rows were due in `phase`."""
    sent = joined.sent
    return np.asarray(sent["phase"] == phase) if phase is not Phase.WHOLE else np.ones(len(sent["seq"]), np.bool_)


def _reasons_not_judged(
    parameters: AmqpParameters, joined: JoinedSamples, latencies: NDArray[np.int64], phase: Phase
) -> Iterator[str]:
    """Yield reasons why the latency of an open loop is not that of the link, a short clause each."""
    refused = int(np.count_nonzero(~joined.good & counted_rows(parameters, joined, phase)))
    if parameters.mode is Mode.BOTH:
        due = _due(joined, phase)
        if phase is Phase.WHOLE:
            due &= joined.sent["seq"] >= parameters.warm_up
        missing = int(np.count_nonzero(due)) - len(latencies)
        if missing > 0:
            yield f"messages were lost or refused ({missing:,} of {np.count_nonzero(due):,})"
        yield from _sender_lag(parameters, joined, due)
    elif refused:
        yield f"messages were refused ({refused:,})"
    third = len(latencies) // 3
    if third:
        first, last = float(np.median(latencies[:third])), float(np.median(latencies[-third:]))
        if min(first, last) < 0:  # possible only with latencies from stamps
            yield "latency is below zero: the clocks of both computers differ"
        elif last > MAX_LATENCY_RISE * first:
            thirds = f"median {first / 1e6:.3g} ms in the first third, {last / 1e6:.3g} in the last"
            yield f"latency rose during the run ({thirds})"


def _clock_doubt(parameters: AmqpParameters, events: Sequence[Event], latencies: NDArray[np.int64]) -> str:
    """Why the clocks of consoles and hosts leave the latency open, a short clause; empty with one clock, or one
    offset."""
    clocks = ClockComparison.of_events(events)
    if clocks is None and parameters.mode is Mode.RECEIVER:
        return "the clocks of the two computers were not compared"
    if clocks is not None and clocks.after is None:
        return "the clocks were compared before the run only"
    return clocks_doubt(events, float(np.median(latencies)), clocks.uncertainty_ns if clocks is not None else 0)


def clock_uncertainty_ns(events: Sequence[Event]) -> int:
    """The uncertainty of times between two consoles and between hosts of a run; 0 with one clock."""
    clocks = ClockComparison.of_events(events)
    return between_hosts_ns(events) + (clocks.uncertainty_ns if clocks is not None else 0)


def _sender_lag(parameters: AmqpParameters, joined: JoinedSamples, due: NDArray[np.bool_]) -> Iterator[str]:
    """Yield how senders missed their schedule; `due` are the sent rows that count."""
    sent = {name: column[due] for name, column in joined.sent.items()}
    achieved = [
        (len(times) - 1) / (int(times[-1] - times[0]) / 1e9) / parameters.rate
        for times in (sent["sent_ns"][sent["role"] == role] for role in np.unique(sent["role"]))
        if len(times) > 1 and times[-1] > times[0]
    ]
    if achieved and min(achieved) < MIN_ACHIEVED_RATE:
        yield f"the offered rate was not achieved ({min(achieved):.0%} of it)"
    # Sealing is part of latency: a sender is late if it did not begin it when the message was due.
    late_ns = sent["sent_ns"] - sent["intended_ns"] - sent["sign_ns"] - sent["encrypt_ns"]
    late_ms = float(np.quantile(late_ns, 0.99, method="inverted_cdf")) / 1e6 if len(late_ns) else 0.0
    if late_ms > MAX_SENDER_LATENESS_MS:
        yield f"the sender was late (p99 {late_ms:.3g} ms)"
