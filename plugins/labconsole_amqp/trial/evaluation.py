"""Computes the trial's metrics and verdicts from stored samples and events: a pure function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.caveats import busy
from labconsole.clock_comparison import ClockComparison, host_offsets
from labconsole.model.trial import LINK_USE, Evaluation, Event, Metric, Samples, Verdict
from labconsole_amqp.choices import Loop, MessageSizes, Mode
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.preflight.preflight_verdicts import preflight_verdicts
from labconsole_amqp.roles.schedule import full_speed, open_loop
from labconsole_amqp.series import (
    CONNECTED,
    KEY_USES,
    KEYS_GENERATED,
    LINK_CALIBRATED,
    OPEN_LOOP,
    RECONNECTED,
    SWEEP_STEP,
    WORK_DONE,
    Phase,
    events_of,
)
from labconsole_amqp.trial.address_figures import address_figures
from labconsole_amqp.trial.integrity import Arrivals, integrity_figures, integrity_verdicts
from labconsole_amqp.trial.joining import JoinedSamples, load_joined
from labconsole_amqp.trial.latency import (
    clock_uncertainty_ns,
    connections_changed,
    counted_rows,
    latency_figures,
)
from labconsole_amqp.trial.metrics import metric
from labconsole_amqp.trial.soak_evaluation import drift_metrics, find_drifts, latency_metrics, soak_verdicts
from labconsole_amqp.trial.soak_windows import SoakWindows
from labconsole_amqp.trial.sweep_evaluation import sweep_figures

_LINK_USE_LIMIT = 110.0
"""Above this share (%) of a link its stated rate cannot be right; a shaper passes a burst at the beginning."""
_CALIBRATED = ("link_rate_to_broker", "link_rate_from_broker", "link_round_trip")
_RATE_TOLERANCE, _ROUND_TRIP_TOLERANCE_MS = 0.02, 2.0
"""By which a shaped link may differ from its settings."""
_LINK_BOUND = 85.0
"""From this share (%) on, the link is what limits a run: headers of frames, TLS and TCP/IP take the rest."""
_SHORTEST_S = 0.5
"""A throughput over less time than this is not judged: so short a burst fits into buffers."""


_PHASE_LABELS: Final = {Phase.FULL_SPEED: "at full speed", Phase.OPEN_LOOP: "in the open loop"}


def evaluate(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
    """Metrics and verdicts of a run; those of an end on another console are left out.

    A run keeps the definitions by which it was recorded; each metric describes what changed with definitions 2.
    """
    if parameters.loop is Loop.SOAK:
        return _evaluate_soak(parameters, samples, events)
    joined = load_joined(parameters, samples)
    definitions = samples.definitions
    disturbed = _busy_phases(parameters, samples, events)
    lost = connections_changed(events)
    doubts = {phase: "; ".join(filter(None, (disturbed.get(phase, ""), lost))) for phase in _PHASE_LABELS}
    receiving = list(_receiving(parameters, joined, definitions, doubts[Phase.FULL_SPEED]))
    speed = next((one.value for one in receiving if one.name == "throughput"), None)
    swept, found = _sweep(parameters, samples, joined, events)
    metrics = [
        *swept,
        *_connecting(parameters, events),
        *_calibration(events),
        *_sending(parameters, joined, events),
        *receiving,
        *latency_figures(
            parameters,
            joined,
            events,
            definitions,
            busy=doubts[Phase.OPEN_LOOP],
            full_speed=speed if parameters.loop is Loop.BOTH else None,
        ),
        *integrity_figures(parameters, joined, events, definitions),
        *_reconnecting(parameters, events),
        *_clocks(events),
        *_crypto(joined),
        *_message_keys(samples, events),
        *_cpu(events),
    ]
    metrics += address_figures(parameters, joined, events, {one.name: one for one in metrics if not one.labels})
    reasons = (f"{_PHASE_LABELS[phase]} {reason}" for phase, reason in disturbed.items() if reason)
    arrivals = Arrivals.of(parameters, joined)
    verdicts = (*preflight_verdicts(events), *found, *_verdicts(parameters, arrivals, metrics))
    return Evaluation(tuple(metrics), verdicts, "; ".join(reasons))


def _evaluate_soak(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
    """The same of a soak, whose messages may be too many to be loaded at once; it is never repeated by itself."""

    def figures(joined: JoinedSamples) -> Iterator[Metric]:
        yield from _volume(joined)
        yield from integrity_figures(parameters, joined, events, samples.definitions)
        yield from _crypto(joined)

    windows = SoakWindows.read(parameters, samples, events, figures)
    if windows is None:
        return Evaluation((*_connecting(parameters, events), *_calibration(events)), tuple(preflight_verdicts(events)))
    soak = find_drifts(parameters, windows, samples, events)
    totals = {one.name: one for one in windows.totals if not one.labels}
    metrics = [
        *_connecting(parameters, events),
        *_calibration(events),
        *windows.totals,
        *_send_speed(parameters, windows.sent.count, windows.sent.first_ns, events),
        *_receive_speed(parameters, windows, totals["received_size"].value if "received_size" in totals else 0.0),
        *latency_metrics(parameters, windows, samples, events),
        *drift_metrics(soak),
        *_reconnecting(parameters, events),
        *_clocks(events),
        *_cpu(events),
    ]
    verdicts = (
        *preflight_verdicts(events),
        *soak_verdicts(parameters, soak),
        *_verdicts(parameters, windows.arrivals, metrics),
    )
    return Evaluation(tuple(metrics), verdicts)


def _sweep(
    parameters: AmqpParameters, samples: Samples, joined: JoinedSamples, events: Sequence[Event]
) -> tuple[tuple[Metric, ...], tuple[Verdict, ...]]:
    """The figures and verdicts of a rate sweep; none of another run."""
    if parameters.loop is not Loop.SWEEP:
        return (), ()
    begun = [event.data["begin_ns"] for event in events if event.name == SWEEP_STEP]
    last_ns = int(joined.sent["sent_ns"][-1]) if len(joined.sent["sent_ns"]) else 0
    return sweep_figures(parameters, joined, events, busy(samples, begun[0], last_ns) if begun else "")


def _busy_phases(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> dict[Phase, str]:
    """Why the computer was too busy in each of two phases, or empty."""
    if parameters.loop is not Loop.BOTH:
        return {}
    begins = {event.name: event.data["begin_ns"] for event in events if event.name in ("T0", OPEN_LOOP)}
    found = {}
    if "T0" in begins:
        first = full_speed(parameters, begins["T0"])
        found[Phase.FULL_SPEED] = busy(samples, first.begin_ns + first.warm_up_ns, first.end_ns)
    if OPEN_LOOP in begins:
        second = open_loop(begins[OPEN_LOOP], 0, parameters.rate, parameters.open_loop)
        begin_ns = second.begin_ns + second.warm_up_ns
        found[Phase.OPEN_LOOP] = busy(samples, begin_ns, begin_ns + int(parameters.open_loop * 1e9))
    return found


def _calibration(events: Sequence[Event]) -> Iterator[Metric]:
    """What a shaped link was before the run."""
    for event in events:
        if event.name == LINK_CALIBRATED:
            yield metric("link_rate_to_broker", event.data["rate_up"] / 1e6, 1)
            yield metric("link_rate_from_broker", event.data["rate_down"] / 1e6, 1)
            yield metric("link_round_trip", event.data["rtt_ns"] / 1e6, 1)


def _clocks(events: Sequence[Event]) -> Iterator[Metric]:
    """The hosts of a run, and the offset between the clocks of consoles and hosts."""
    clocks, hosts = ClockComparison.of_events(events), host_offsets(events)
    exchanges = sum(one.exchanges for offsets in hosts.values() for one in offsets)
    if hosts:
        yield metric("hosts", len(hosts), len(hosts))
    if clocks is not None:
        exchanges += clocks.before.exchanges
        yield metric("clock_offset", clocks.before.wall_ns / 1e6, clocks.before.exchanges)
    if exchanges:
        yield metric("clock_uncertainty", clock_uncertainty_ns(events) / 1e3, exchanges)


def _connecting(parameters: AmqpParameters, events: Sequence[Event]) -> Iterator[Metric]:
    senders = [event.data["connect_ns"] for event in events_of(events, CONNECTED, "sender")]
    if senders:
        yield metric("connect_time", float(np.mean(senders)) / 1e6, len(senders))
    receivers = [
        event.data["connect_ns"] + event.data["attach_ns"] for event in events_of(events, CONNECTED, "receiver")
    ]
    if receivers and not parameters.is_direct:  # it waits for the sender
        yield metric("receiver_link_time", float(np.mean(receivers)) / 1e6, len(receivers))


def _reconnecting(parameters: AmqpParameters, events: Sequence[Event]) -> Iterator[Metric]:
    took_ns = [event.data["took_ns"] for event in events if event.name == RECONNECTED]
    if parameters.reconnect:
        yield metric("reconnects", len(took_ns), len(took_ns))
    if took_ns:
        yield metric("reconnect_time", max(took_ns) / 1e6, len(took_ns))


def _sending(parameters: AmqpParameters, joined: JoinedSamples, events: Sequence[Event]) -> Iterator[Metric]:
    sent = joined.sent
    count = len(sent["sent_ns"])
    if not count:
        return
    yield from _sent_volume(joined)
    yield from _largest_sizes(parameters, "sent_size_p99", sent["size"])
    if parameters.loop is Loop.BOTH:
        times = sent["sent_ns"][sent["phase"] == Phase.FULL_SPEED]
        if len(times) > 1 and times[-1] > times[0]:
            yield metric("send_rate", (len(times) - 1) / (int(times[-1] - times[0]) / 1e9), len(times))
    if parameters.is_counted:
        yield from _send_speed(parameters, count, int(sent["sent_ns"][0]), events)


def _volume(joined: JoinedSamples) -> Iterator[Metric]:
    yield from _sent_volume(joined)
    yield from _received_volume(joined)


def _sent_volume(joined: JoinedSamples) -> Iterator[Metric]:
    if count := len(joined.sent["size"]):
        yield metric("sent", count, count)
        yield metric("sent_size", float(np.mean(joined.sent["size"])), count)


def _received_volume(joined: JoinedSamples) -> Iterator[Metric]:
    if count := len(joined.received["size"]):
        yield metric("received", count, count)
        yield metric("received_size", float(np.mean(joined.received["size"])), count)


def _send_speed(parameters: AmqpParameters, count: int, first_ns: int, events: Sequence[Event]) -> Iterator[Metric]:
    """Duration and rate of sending `count` messages, the first of them at `first_ns`."""
    done = events_of(events, WORK_DONE, "sender")
    connects = [event.data["connect_ns"] for event in events_of(events, CONNECTED, "sender")]
    # If one sender has not finished, the time of the others is too short for the messages of all.
    if len(done) == len(connects) == parameters.senders:
        span_ns = max(event.data["end_ns"] for event in done) - first_ns
        yield metric("send_duration", (span_ns + float(np.mean(connects))) / 1e6, count)
        if span_ns > 0:
            yield metric("send_rate", count / (span_ns / 1e9), count)


def _receiving(parameters: AmqpParameters, joined: JoinedSamples, definitions: int, disturbed: str) -> Iterator[Metric]:
    received = joined.received
    total = len(received["received_ns"])
    if not total:
        return
    yield from _received_volume(joined)
    yield from _largest_sizes(parameters, "received_size_p99", received["size"])
    if parameters.loop is Loop.SWEEP:
        return
    both = parameters.loop is Loop.BOTH
    counts = counted_rows(parameters, joined, Phase.FULL_SPEED if both else Phase.WHOLE)
    times = received["received_ns"][counts]
    span_s = _span_s(times)
    if span_s and not both:
        yield metric("receive_duration", span_s, len(times))
    if definitions == 1:
        if span_s:
            yield metric("throughput", len(times) / span_s, len(times))
    else:
        accepted = received["received_ns"][counts & joined.good]
        yield from _throughput(parameters, len(accepted), _span_s(accepted), disturbed)
    if span_s and parameters.narrowest_rate is not None:
        sizes = received["size"][counts]
        if definitions > 2:  # the time begins with the arrival of the first, which took its own before
            sizes = np.delete(sizes, np.argmin(times))
        megabits = int(np.sum(sizes, dtype=np.int64)) * 8 / 1e6
        yield metric(LINK_USE, megabits / span_s / parameters.narrowest_rate * 100, len(times))


def _largest_sizes(parameters: AmqpParameters, name: str, sizes: NDArray[np.int32]) -> Iterator[Metric]:
    if parameters.message_sizes is not MessageSizes.PAYLOAD:
        yield metric(name, float(np.quantile(sizes, 0.99, method="inverted_cdf")), len(sizes))


def _receive_speed(parameters: AmqpParameters, windows: SoakWindows, size: float) -> Iterator[Metric]:
    """Duration, rate and link use of a soak, whose messages have the mean `size`."""
    received, span_s = windows.received, windows.received.seconds
    if not span_s:
        return
    yield metric("receive_duration", span_s, received.count)
    yield from _throughput(parameters, windows.good.count, windows.good.seconds, "")
    if parameters.narrowest_rate is not None:
        megabits = size * (received.count - 1) * 8 / 1e6
        yield metric(LINK_USE, megabits / span_s / parameters.narrowest_rate * 100, received.count)


def _throughput(parameters: AmqpParameters, count: int, span_s: float, disturbed: str) -> Iterator[Metric]:
    """The rate of `count` messages that were accepted, between the first and the last of them."""
    if not span_s:
        return
    doubts = [disturbed]
    if parameters.is_steady:
        doubts.append("an open loop is not full speed")
    both = parameters.loop is Loop.BOTH
    # A phase has its length; after a delay, its messages may arrive within less time.
    if span_s < (parameters.full_speed / 2 if both else _SHORTEST_S) or (both and parameters.full_speed < _SHORTEST_S):
        doubts.append(f"all within {span_s * 1e3:.3g} ms: a burst below {_SHORTEST_S:g} s says little of a rate")
    yield metric("throughput", (count - 1) / span_s, count, "; ".join(filter(None, doubts)))


def _span_s(times: NDArray[np.int64]) -> float:
    """Seconds from the first to the last time, 0 without two of them."""
    return int(times[-1] - times[0]) / 1e9 if len(times) > 1 else 0.0


def _crypto(joined: JoinedSamples) -> Iterator[Metric]:
    for name, table, column in (
        ("sign_time", joined.sent, "sign_ns"),
        ("encrypt_time", joined.sent, "encrypt_ns"),
        ("verify_time", joined.received, "verify_ns"),
        ("decrypt_time", joined.received, "decrypt_ns"),
    ):
        values = table[column][table[column] > 0]
        if len(values):
            yield metric(name, float(np.mean(values)) / 1e3, len(values))


def _message_keys(samples: Samples, events: Sequence[Event]) -> Iterator[Metric]:
    """What keys for one message each took: generated ahead, then loaded, used and destroyed."""
    made = [event.data for event in events_of(events, KEYS_GENERATED, "sender")]
    if keys := sum(data["keys"] for data in made):
        yield metric("keys_generated", keys, keys)
        yield metric(
            "key_generation_time", sum(data["generate_ns"] + data["wrap_ns"] for data in made) / keys / 1e6, keys
        )
    tables = [samples.table(KEY_USES.name, role) for role in samples.roles(KEY_USES.name)]
    for step in ("load", "sign", "destroy"):
        values = np.concatenate([np.zeros(0, np.int64), *(table[f"{step}_ns"] for table in tables)])
        if len(values):
            p99 = float(np.quantile(values, 0.99, method="inverted_cdf"))
            yield metric(f"key_{step}_time", float(np.mean(values)) / 1e3, len(values))
            yield metric(f"key_{step}_p99", p99 / 1e3, len(values))


def _cpu(events: Sequence[Event]) -> Iterator[Metric]:
    for role in ("sender", "receiver", "broker"):
        done = events_of(events, WORK_DONE, role)
        messages = sum(event.data["messages"] for event in done)
        if messages:
            yield metric(
                "cpu_per_message", sum(event.data["cpu_ns"] for event in done) / messages / 1e3, messages, role=role
            )


def _verdicts(parameters: AmqpParameters, arrivals: Arrivals, metrics: Sequence[Metric]) -> Iterator[Verdict]:
    if parameters.mode is Mode.SENDER:
        return
    yield from integrity_verdicts(parameters, arrivals, metrics)
    measured = {one.name: one.value for one in metrics if one.name in _CALIBRATED}
    if measured:
        yield Verdict("the shaped link is as set", *_calibration_verdict(parameters, measured), measured)
    use = next((one.value for one in metrics if one.name == LINK_USE), None)
    if use is not None:
        yield Verdict("the link rate can be as stated", *_link_rate_verdict(use), {LINK_USE: use})


def _calibration_verdict(parameters: AmqpParameters, measured: dict[str, float]) -> tuple[str, str]:
    """Result and reason of the verdict on what a shaped link was before the run."""
    link = parameters.shaped_link
    rates = ((measured["link_rate_to_broker"], link.rate_up), (measured["link_rate_from_broker"], link.rate_down))
    late_ms = measured["link_round_trip"] - link.lone_rtt_ns / 1e6
    deviation = max((abs(rate * 1e6 / wanted - 1) for rate, wanted in rates), default=0.0)
    if deviation > _RATE_TOLERANCE or not -1 < late_ms <= _ROUND_TRIP_TOLERANCE_MS + 2 * parameters.link_jitter:
        reason = (
            f"Its calibration measured a rate that differs by {deviation:.1%} and {late_ms:+.1f} ms in the round trip: "
            "other work kept this computer busy, or the rate is too high for it."
        )
        return "fail", reason
    return "pass", f"By its calibration its rates are within {deviation:.1%}, its round trip {late_ms:+.1f} ms."


def _link_rate_verdict(use: float) -> tuple[str, str]:
    """Result and reason of the verdict on the link rate."""
    if use > _LINK_USE_LIMIT:
        return "fail", f"{use:,.0f} % of the stated rate came through: the link was not shaped to it."
    bound = ": the run is link-bound, and its throughput is that of the link" if use >= _LINK_BOUND else ""
    return "pass", f"{use:.0f} % of the stated rate came through{bound}."
