"""Figures and verdicts of a live run, from stored samples and events alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.caveats import busy
from labconsole.clock_comparison import between_hosts_ns, clocks_doubt, host_offsets
from labconsole.model.series import RESOURCES
from labconsole.model.trial import (
    OFFERED_RATE,
    Distribution,
    Evaluation,
    Event,
    Metric,
    Origin,
    Samples,
    Verdict,
    VerdictKind,
)
from labconsole_v2x.choices import Generation
from labconsole_v2x.live.joined_packets import JoinedPackets, load_joined
from labconsole_v2x.live.live_metrics import QUANTILES, latency_metrics, metric, quantile
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.series import QUEUE
from labconsole_v2x.stations.channel import airtime_us, octets_on_air
from labconsole_v2x.stations.receiving import QUEUE_FULL, REASONS
from labconsole_v2x.stations.sending import SecurityMode

_QUEUE_FULL = REASONS.index(QUEUE_FULL)
_WAITING = (REASONS.index("unknown signer"), REASONS.index("unknown issuer"))
_SECOND_NS = 1_000_000_000
_MOST_LATENESS_MS = 5.0
"""p99 of how late senders were, above which latency shows the senders."""


def evaluate(parameters: LiveParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
    """All figures of a run; what was not recorded is left out."""
    packets = load_joined(parameters, samples, events)
    return Evaluation(()) if packets is None else evaluate_joined(parameters, packets, samples, events)


def evaluate_joined(
    parameters: LiveParameters, packets: JoinedPackets, samples: Samples, events: Sequence[Event]
) -> Evaluation:
    """The figures of these packets, without those of attackers."""
    receptions = Receptions(packets)
    disturbed = busy(samples, packets.from_ns, packets.until_ns)
    metrics = [
        *_totals(packets, events),
        *_sending(parameters, packets),
        *_changes(parameters, packets),
        *_latency(packets, receptions, disturbed, events),
        *_loss(packets, receptions),
        *_receiving(packets, receptions),
        *_times(parameters, packets, receptions),
        *_learning(parameters, packets, events),
        *_queue(packets, samples),
        *_processes(packets, samples),
        *_hosts(events),
    ]
    return Evaluation(metric.ordered(metrics), tuple(_verdicts(packets, receptions, metrics)), disturbed)


def distributions(parameters: LiveParameters, samples: Samples, events: Sequence[Event]) -> tuple[Distribution, ...]:
    """Latency (ms), and the times to sign and to verify (us)."""
    packets = load_joined(parameters, samples, events)
    if packets is None:
        return ()
    receptions = Receptions(packets)
    found = [
        Distribution("Latency", "ms", latencies_ms(packets, receptions)),
        Distribution("Time to verify", "us", _verify_us(packets, receptions)),
        Distribution("Time to sign", "us", _sign_us(parameters, packets)),
    ]
    return tuple(one for one in found if len(one.values))


class Receptions:
    """The verdict on each counted CAM at each receiver.

    A reception is a pair of receiver and CAM. Of its rows the first accepted one counts, else the last: a packet that
    waited for a certificate has two.
    """

    def __init__(self, packets: JoinedPackets) -> None:
        received, index = packets.received, packets.of_received
        mine = index >= 0
        mine &= np.where(mine, packets.counted_sent[index] if len(packets.sent["source"]) else False, False)
        rows = np.flatnonzero(mine)
        pairs = packets.pairs(rows)
        rejected = received["reason"][rows] != 0
        # Accepted rows first; among the others the last row, since rows are in order of time.
        best = np.lexsort((np.where(rejected, -rows, rows), rejected, pairs))
        _, first = np.unique(pairs[best], return_index=True)
        chosen = rows[best[first]]
        self.accepted: NDArray[np.int64] = np.sort(chosen[received["reason"][chosen] == 0])
        """Received rows, in order of time."""
        self.rejected: NDArray[np.int64] = chosen[received["reason"][chosen] != 0]
        fresh = received["waited"][rows] == 0
        self.duplicates = int(np.count_nonzero(fresh)) - len(np.unique(pairs[fresh]))
        self.expected = int(np.count_nonzero(packets.counted_sent)) * packets.receivers

    @property
    def read(self) -> int:
        """Receptions that a receiver read from its socket."""
        return len(self.accepted) + len(self.rejected)


def latencies_ms(packets: JoinedPackets, receptions: Receptions) -> NDArray[np.float64]:
    """From due to processed, of all accepted CAMs in order of time."""
    rows = receptions.accepted
    due = packets.sent["due_ns"][packets.of_received[rows]]
    return np.asarray((packets.received["done_ns"][rows] - due) / 1e6)


def _totals(packets: JoinedPackets, events: Sequence[Event]) -> Iterator[Metric]:
    received = packets.received
    yield metric("sent", len(packets.sent["source"]), len(packets.sent["source"]))
    fresh = received["waited"] == 0
    yield metric("received", int(np.count_nonzero(fresh)), int(np.count_nonzero(fresh)))
    accepted = received["reason"] == 0
    yield metric("accepted", int(np.count_nonzero(accepted)), int(np.count_nonzero(fresh)))
    ages_ms = received["age_ns"][accepted] / 1e6
    wall = "the wall clocks of several hosts are in it as they are" if host_offsets(events) else ""
    for name in ("age_p50", "age_p99") if len(ages_ms) else ():
        yield metric(name, quantile(ages_ms, QUANTILES[name]), len(ages_ms), wall)
    foreign = int(np.count_nonzero(fresh & ~np.isin(received["source"], packets.stations["source"])))
    if foreign:
        yield metric("foreign", foreign, foreign)


def _sending(parameters: LiveParameters, packets: JoinedPackets) -> Iterator[Metric]:
    counted = packets.counted_sent
    sent = {name: column[counted] for name, column in packets.sent.items()}
    count = len(sent["source"])
    if not count:
        return
    if parameters.generation is Generation.FIXED and not parameters.dcc:
        yield _calculated(metric(OFFERED_RATE, parameters.senders * parameters.rate, count))
    yield metric("send_rate", count / packets.seconds, count)
    lateness_ms = (sent["sent_ns"] - sent["due_ns"]) / 1e6
    yield metric("send_lateness_p99", quantile(lateness_ms, 0.99), count)
    sizes = sent["size"].astype(np.int64)
    yield metric("packet_size", sizes.mean(), count)
    if parameters.security is not SecurityMode.NONE:
        with_certificate = sent["certificate"] == 1
        yield metric("certificate_share", with_certificate.mean() * 100, count)
        for signer, chosen in (("certificate", with_certificate), ("digest", ~with_certificate)):
            if chosen.any():
                yield metric("packet_size", sizes[chosen].mean(), int(np.count_nonzero(chosen)), signer=signer)
    else:
        yield metric("packet_size", sizes.mean(), count, signer="none")
    yield from on_air_metrics(sizes, packets.seconds)


def _changes(parameters: LiveParameters, packets: JoinedPackets) -> Iterator[Metric]:
    if parameters.security is SecurityMode.NONE or parameters.tickets == 1:
        return
    changes = int(np.count_nonzero(packets.counts(packets.stations["from_ns"])))
    yield metric("identity_changes", changes, changes)


def on_air_metrics(sizes: NDArray[np.int64], seconds: float) -> Iterator[Metric]:
    """The rate and time on air of packets with these octets."""
    values, counts = np.unique(sizes, return_counts=True)
    octets = sum(octets_on_air(size) * number for size, number in zip(values.tolist(), counts.tolist(), strict=True))
    air_us = sum(airtime_us(size) * number for size, number in zip(values.tolist(), counts.tolist(), strict=True))
    for name, value in (("air_rate", octets * 8 / 1e3), ("airtime", air_us / 1e4)):
        yield _calculated(metric(name, value / seconds, len(sizes)))


def _calculated(one: Metric) -> Metric:
    return replace(one, origin=Origin.CALCULATED)


def _latency(
    packets: JoinedPackets, receptions: Receptions, disturbed: str, events: Sequence[Event]
) -> Iterator[Metric]:
    values = latencies_ms(packets, receptions)
    if len(values):
        doubts = *_doubts(packets), disturbed, clocks_doubt(events, float(np.median(values)) * 1e6)
        yield from latency_metrics(values, "; ".join(filter(None, doubts)), between_hosts_ns(events) / 1e6)


def _doubts(packets: JoinedPackets) -> Iterator[str]:
    """Why latency says little of the receiver, a short clause each."""
    counted = packets.counted_sent
    lateness_ms = quantile((packets.sent["sent_ns"] - packets.sent["due_ns"])[counted] / 1e6, 0.99)
    if lateness_ms > _MOST_LATENESS_MS:
        yield f"the senders were late (p99 {lateness_ms:.3g} ms)"


def _loss(packets: JoinedPackets, receptions: Receptions) -> Iterator[Metric]:
    expected = receptions.expected
    if not expected or packets.until_ns - packets.from_ns <= 0:
        return
    received = packets.received
    full = received["reason"] == _QUEUE_FULL
    in_time = (received["received_ns"] >= packets.from_ns) & np.isin(received["source"], packets.sent["source"])
    in_queue = min(int(np.count_nonzero(full & in_time)), expected - receptions.read)
    never_read = expected - receptions.read - in_queue
    yield metric("packet_loss", (expected - len(receptions.accepted)) / expected * 100, expected)
    yield metric("packet_delivery_ratio", (receptions.read + in_queue) / expected * 100, expected)
    yield metric("lost", expected - len(receptions.accepted), expected)
    places = {
        "channel or socket": never_read,
        "receiver queue": in_queue,
        "verification": len(receptions.rejected),
    }
    for place, count in places.items():
        yield metric("lost", count, expected, place=place)
    reasons, counts = np.unique(received["reason"][receptions.rejected], return_counts=True)
    yield metric("rejected", len(receptions.rejected), expected)
    for reason, count in zip(reasons.tolist(), counts.tolist(), strict=True):
        yield metric("rejected", count, expected, reason=REASONS[reason])
    yield metric("duplicates", receptions.duplicates, expected)


def _receiving(packets: JoinedPackets, receptions: Receptions) -> Iterator[Metric]:
    received, rows = packets.received, receptions.accepted
    if packets.seconds > 0:
        yield metric("accept_rate", len(rows) / packets.seconds, len(rows))
        content = int(received["content"][rows].sum(dtype=np.int64))
        yield metric("goodput", content * 8 / 1e3 / packets.seconds, len(rows))
    intervals_ms = _inter_arrival_ms(packets, rows)
    if len(intervals_ms):
        yield metric("inter_arrival", intervals_ms.mean(), len(intervals_ms))
        yield metric("inter_arrival_p99", quantile(intervals_ms, 0.99), len(intervals_ms))


def _inter_arrival_ms(packets: JoinedPackets, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    receiver, sender, times = (
        packets.received["receiver"][rows],
        packets.sender[rows],
        packets.received["received_ns"][rows],
    )
    order = np.lexsort((times, sender, receiver))
    same = np.ones(max(0, len(rows) - 1), np.bool_)
    for column in (receiver, sender):
        same &= column[order][1:] == column[order][:-1]
    return np.asarray(np.diff(times[order])[same] / 1e6)


def _verify_us(packets: JoinedPackets, receptions: Receptions) -> NDArray[np.float64]:
    times = packets.received["verify_ns"][receptions.accepted]
    return np.asarray(times[times > 0] / 1e3)


def _sign_us(parameters: LiveParameters, packets: JoinedPackets) -> NDArray[np.float64]:
    if not parameters.security.signs:
        return np.empty(0)  # nothing was signed, though placeholders were put in
    return np.asarray(packets.sent["sign_ns"][packets.counted_sent] / 1e3)


def _times(parameters: LiveParameters, packets: JoinedPackets, receptions: Receptions) -> Iterator[Metric]:
    times = {"verify_time": _verify_us(packets, receptions), "sign_time": _sign_us(parameters, packets)}
    for name, values in times.items():
        if len(values):
            yield metric(name, values.mean(), len(values))
            for part in (f"{name}_p50", f"{name}_p99"):
                yield metric(part, quantile(values, QUANTILES[part]), len(values))


def _learning(parameters: LiveParameters, packets: JoinedPackets, events: Sequence[Event]) -> Iterator[Metric]:
    received = packets.received
    accepted = (received["reason"] == 0) & (packets.of_received >= 0)
    pairs = np.stack((received["receiver"][accepted], packets.sender[accepted]))
    heard, first = np.unique(pairs, axis=1, return_index=True)
    yield metric("neighbours", heard.shape[1] / parameters.receiving_stations, heard.shape[1])
    if not parameters.security.verifies:
        return
    if heard.shape[1] >= packets.receivers * parameters.senders * parameters.instances > 0:
        last_ns = int(received["done_ns"][accepted][first].max())
        seconds, uncertainty = (last_ns - packets.begin_ns) / 1e9, between_hosts_ns(events) / 1e9
        yield metric("warm_up_time", seconds, heard.shape[1], "", uncertainty)
    waiting = np.isin(received["reason"], _WAITING) & (received["waited"] == 0)
    yield metric("waited", int(np.count_nonzero(waiting)), len(waiting))


def _queue(packets: JoinedPackets, samples: Samples) -> Iterator[Metric]:
    growth, peak, readings = [], 0, 0
    middle = np.mean if samples.definitions == 1 else np.median
    for role in samples.roles(QUEUE.name):
        table = samples.table(QUEUE.name, role)
        t, length = table["t_ns"], table["length"].astype(np.float64)
        inside = packets.counts(t)
        if not inside.any():
            continue
        first = inside & (t < packets.from_ns + _SECOND_NS)
        last = inside & (t >= packets.until_ns - _SECOND_NS)
        peak, readings = max(peak, int(length[inside].max())), readings + int(np.count_nonzero(inside))
        if first.any() and last.any():
            growth.append(float(middle(length[last]) - middle(length[first])))
    if readings:
        yield metric("queue_peak", peak, readings)
    if growth:
        yield metric("queue_growth", max(growth), readings)


def _processes(packets: JoinedPackets, samples: Samples) -> Iterator[Metric]:
    for role in samples.roles(RESOURCES.name):
        table = samples.table(RESOURCES.name, role)
        inside = packets.counts(table["t_ns"])
        if inside.any() and role != "worker":
            count = int(np.count_nonzero(inside))
            yield metric("cpu", float(table["cpu"][inside].mean()), count, role=role)
            yield metric("memory", float(table["rss"][inside].max()) / 1e6, count, role=role)


def _hosts(events: Sequence[Event]) -> Iterator[Metric]:
    if hosts := host_offsets(events):
        exchanges = sum(one.exchanges for offsets in hosts.values() for one in offsets)
        yield metric("hosts", len(hosts), len(hosts))
        yield metric("clock_uncertainty", between_hosts_ns(events) / 1e3, exchanges)


def _verdicts(packets: JoinedPackets, receptions: Receptions, metrics: Sequence[Metric]) -> Iterator[Verdict]:
    sent = packets.sent
    different = len(np.unique(np.stack((sent["source"], sent["identity"])), axis=1).T) if len(sent["source"]) else 0
    twice = len(sent["source"]) - different
    yield Verdict(
        "no packet was sent twice",
        "fail" if twice else "pass",
        f"{twice} packets have the identity of another one." if twice else "Each packet has an identity of its own.",
        {"sent": len(sent["source"]), "different": different},
        VerdictKind.INTEGRITY,
    )
    figures = {one.name: one.value for one in metrics if not one.labels}
    lost = figures.get("lost")
    if lost is None:
        reason = "No station had a CAM to receive in the time that counts."
        yield Verdict("no packet was lost", "unknown", reason)
        return
    yield Verdict(
        "no packet was lost",
        "fail" if lost else "pass",
        f"{lost:,.0f} of {receptions.expected:,} were not accepted."
        if lost
        else f"All {receptions.expected:,} were accepted.",
        {"lost": lost, "expected": receptions.expected},
    )
    growth = figures.get("queue_growth")
    if growth is not None:
        full = next((one.value for one in metrics if one.labels.get("place") == "receiver queue"), 0)
        reason = "Its queue was no longer at the end."
        if full:
            reason = f"{full:,.0f} packets found no room in its queue."
        elif growth > 1:
            reason = f"Its queue grew by {growth:,.0f} packets."
        data = {"queue_growth": growth, "no_room": full}
        yield Verdict("the receiver kept up", "fail" if full or growth > 1 else "pass", reason, data)
