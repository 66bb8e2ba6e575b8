"""Figures and verdicts of a run under attack: those of benign stations, and those of attackers' packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Evaluation, Event, Metric, Samples, Verdict
from labconsole_v2x.attacks.attack_metrics import metric
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.attacks.tracking_evaluation import TrackedStations, tracking_metrics, tracking_verdict
from labconsole_v2x.choices import ATTACKS, Attack
from labconsole_v2x.live.joined_packets import JoinedPackets, load_joined
from labconsole_v2x.live.live_evaluation import evaluate_joined, on_air_metrics
from labconsole_v2x.security.verification import Reason
from labconsole_v2x.stations.receiving import IMPLAUSIBLE, QUEUE_FULL, REASONS

_QUEUE_FULL, _IMPLAUSIBLE = REASONS.index(QUEUE_FULL), REASONS.index(IMPLAUSIBLE)
LEAST_DETECTED, MOST_FALSE_ALARMS = 95.0, 0.1
"""In %, of the packets of attackers and of the CAMs of benign stations: with these, A-CON-01 is detected."""
REASONS_OF: Mapping[Attack, tuple[str, ...]] = {
    Attack.INVALID_SIGNATURE: (Reason.SIGNATURE_INVALID,),
    Attack.INVALID_DENM_SIGNATURE: (Reason.SIGNATURE_INVALID,),
    Attack.NO_SIGNATURE: (Reason.UNSECURED,),
    Attack.OVERLOAD: (Reason.SIGNATURE_INVALID,),
    Attack.REPLAY: (Reason.DUPLICATE, Reason.TOO_OLD),
    Attack.OLD_TIMESTAMP: (Reason.TOO_OLD,),
    Attack.EXPIRED_CERTIFICATE: (Reason.EXPIRED,),
    Attack.IMPLAUSIBLE_CONTENT: (IMPLAUSIBLE,),
}
"""For which reasons a receiver rejects what attackers send."""

_RIGHTLY = {
    False: "All {0:,} packets of attackers were rejected",
    True: "All {0:,} packets of attackers were rejected, or were the first copy of a CAM, in time",
}
"""By whether they were replayed."""


def evaluate(parameters: AttackParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
    """All figures of a run; what was not recorded is left out."""
    packets = load_joined(parameters, samples, events)
    if packets is None:
        return Evaluation(())
    benign = evaluate_joined(parameters, packets, samples, events)
    attacks = AttackPackets(parameters, packets)
    content = _content_rates(parameters, packets, attacks)
    own = [*_shares(parameters, packets, attacks), *_counts(packets, attacks), *_on_air(packets), *content]
    verdicts = list(_verdicts(parameters, attacks, content)) if parameters.attacking else []
    if parameters.attack is Attack.TRACKING:
        tracked = TrackedStations(packets, samples)
        own += tracking_metrics(tracked)
        verdicts.append(tracking_verdict(parameters, tracked))
    names = {one.name for one in own}
    metrics = metric.ordered((*(one for one in benign.metrics if one.name not in names), *own))
    return Evaluation(metrics, (*verdicts, *benign.verdicts), benign.disturbed)


class AttackPackets:
    """What receivers read of attackers: rows of the received packets."""

    def __init__(self, parameters: AttackParameters, packets: JoinedPackets) -> None:
        received, stations = packets.received, packets.stations
        self.of_attackers: NDArray[np.bool_] = np.isin(
            received["source"], stations["source"][stations["station"] > parameters.senders]
        )
        """Of all received rows those of attackers."""
        self.counted = self.of_attackers & packets.counts(received["received_ns"])
        self.checked = self.counted & (received["reason"] != _QUEUE_FULL)
        reasons = received["reason"][self.checked]
        self.rejected = Counter(REASONS[reason] for reason in reasons[reasons > 0].tolist())
        """Reason -> verdicts on those that count: a packet that waited for a certificate has two."""
        self.false_accepts = int(np.count_nonzero(_false_accepts(parameters, packets, self.of_attackers)))
        self.received = int(np.count_nonzero(self.of_attackers))
        """Rows, warm-up included."""
        self._received = received

    @property
    def last_reasons(self) -> Counter[str]:
        """Reason -> packets that count, by the last verdict on each: the one before says what the receiver lacked."""
        columns = (self._received[name][self.checked].tolist() for name in ("receiver", "source", "received_ns"))
        reasons = self._received["reason"][self.checked].tolist()
        last = dict(zip(zip(*columns, strict=True), reasons, strict=True))  # rows are in order of time
        return Counter(REASONS[reason] for reason in last.values() if reason > 0)


def _false_accepts(
    parameters: AttackParameters, packets: JoinedPackets, of_attackers: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The received rows that should not have been accepted."""
    received = packets.received
    accepted = received["reason"] == 0
    if parameters.attack is not Attack.REPLAY:
        return np.asarray(accepted & of_attackers)
    # Rows are in order of time: the first one of a CAM at a receiver is no replay to it, unless it comes too late.
    rows = np.flatnonzero(accepted)
    pairs = np.stack((received["receiver"][rows], received["identity"][rows]))
    _, first = np.unique(pairs, axis=1, return_index=True)
    good = np.zeros(len(accepted), np.bool_)
    good[rows[first]] = True
    good &= received["age_ns"] <= parameters.cam_past * 1e6
    return np.asarray(accepted & of_attackers & ~good)


def _shares(parameters: AttackParameters, packets: JoinedPackets, attacks: AttackPackets) -> Iterator[Metric]:
    """Parts of what a receiver read, and of its time, %."""
    received = packets.received
    read = packets.counts(received["received_ns"]) & (received["waited"] == 0)
    benign = int(np.count_nonzero(read & np.isin(received["source"], packets.sent["source"])))
    attackers = int(np.count_nonzero(read & attacks.of_attackers))
    if benign + attackers:
        yield metric("benign_share", 100 * benign / (benign + attackers), benign + attackers)
    if packets.until_ns <= packets.from_ns:
        return
    begun = np.clip(received["started_ns"], packets.from_ns, packets.until_ns)
    spent_ns = np.clip(received["done_ns"], packets.from_ns, packets.until_ns) - begun
    all_ns = (packets.until_ns - packets.from_ns) * parameters.receiving_stations * parameters.threads
    for name, spent in (("rejected_time", spent_ns[attacks.of_attackers]), ("receiver_load", spent_ns)):
        yield metric(name, 100 * spent.sum() / all_ns, int(np.count_nonzero(spent)))


def _on_air(packets: JoinedPackets) -> Iterator[Metric]:
    """What all stations send shares the channel: attackers, too."""
    sent = [table["size"][packets.counts(table["due_ns"])] for table in (packets.sent, packets.attacks)]
    sizes = np.concatenate(sent).astype(np.int64)
    if len(sizes):
        yield from on_air_metrics(sizes, packets.seconds)


def _counts(packets: JoinedPackets, attacks: AttackPackets) -> Iterator[Metric]:
    if not len(packets.attacks["sent_ns"]):
        return
    received = packets.received
    sent = int(np.count_nonzero(packets.counts(packets.attacks["due_ns"])))
    yield metric("attack_sent", sent, sent)
    fresh = int(np.count_nonzero(attacks.counted & (received["waited"] == 0)))
    yield metric("attack_received", fresh, fresh)
    yield metric("false_accepts", attacks.false_accepts, attacks.received)
    yield metric("attack_rejected", attacks.rejected.total(), fresh)
    for reason, count in sorted(attacks.rejected.items()):
        yield metric("attack_rejected", count, fresh, reason=reason)
    if attacks.checked.any():
        spent_us = (received["done_ns"] - received["started_ns"])[attacks.checked] / 1e3
        yield metric("attack_packet_time", spent_us.mean(), len(spent_us))


def _content_rates(parameters: AttackParameters, packets: JoinedPackets, attacks: AttackPackets) -> tuple[Metric, ...]:
    """How much implausible content was detected, and how much of benign stations was taken for it, %."""
    if parameters.attack is not Attack.IMPLAUSIBLE_CONTENT:
        return ()
    received = packets.received
    checked = packets.counts(received["received_ns"]) & (received["waited"] == 0) & (received["reason"] != _QUEUE_FULL)
    implausible = packets.counts(received["received_ns"]) & (received["reason"] == _IMPLAUSIBLE)
    benign = np.isin(received["source"], packets.sent["source"])
    rows = {"detection_rate": attacks.of_attackers}
    if parameters.checks_plausibility:
        rows["false_alarm_rate"] = benign
    of = {name: int(np.count_nonzero(checked & chosen)) for name, chosen in rows.items()}
    return tuple(
        metric(name, 100 * int(np.count_nonzero(implausible & chosen)) / of[name], of[name])
        for name, chosen in rows.items()
        if of[name]
    )


def _verdicts(parameters: AttackParameters, attacks: AttackPackets, content: Sequence[Metric]) -> Iterator[Verdict]:
    by_content = parameters.attack is Attack.IMPLAUSIBLE_CONTENT
    name = "implausible content was detected" if by_content else "no attack packet was accepted"
    if not attacks.received or (by_content and not any(one.name == "detection_rate" for one in content)):
        yield Verdict(name, "unknown", "No receiver has read a packet of an attacker.")
        return
    if by_content:
        yield from _content_verdicts(name, content)
    else:
        yield Verdict(
            name,
            "fail" if attacks.false_accepts else "pass",
            f"{attacks.false_accepts:,} of {attacks.received:,} packets of attackers were accepted."
            if attacks.false_accepts
            else f"{_RIGHTLY[parameters.attack is Attack.REPLAY].format(attacks.received)}, the warm-up included.",
            {"false_accepts": attacks.false_accepts, "received": attacks.received},
        )
    expected = {str(reason) for reason in REASONS_OF[parameters.attack]}
    others = {reason: count for reason, count in attacks.rejected.items() if reason not in expected}
    if others:
        others = {reason: count for reason, count in attacks.last_reasons.items() if reason in others}
    named = ", ".join(f"{reason}: {count:,}" for reason, count in sorted(others.items()))
    yield Verdict(
        "attack packets were rejected for what is wrong with them",
        "fail" if others else "pass",
        f"Other reasons than that of {ATTACKS[parameters.attack.value]}: {named}."
        if others
        else f"Reason: {' or '.join(sorted(expected))}.",
        dict(attacks.rejected),
    )


def _content_verdicts(name: str, content: Sequence[Metric]) -> Iterator[Verdict]:
    """Some of the packets, such as the first one of a stream, are within plausible bounds: a share decides."""
    rates = {one.name: one for one in content}
    detected = rates["detection_rate"]
    yield Verdict(
        name,
        "pass" if detected.value >= LEAST_DETECTED else "fail",
        f"{detected.value:.4g} % of {detected.samples:,} packets of attackers were rejected for it; at least "
        f"{LEAST_DETECTED:g} % must be.",
        {"detection_rate": detected.value, "least": LEAST_DETECTED},
    )
    alarms = rates.get("false_alarm_rate")
    if alarms is not None:
        yield Verdict(
            "genuine content raised no alarm",
            "pass" if alarms.value <= MOST_FALSE_ALARMS else "fail",
            f"{alarms.value:.4g} % of {alarms.samples:,} CAMs of benign stations were rejected for it; at most "
            f"{MOST_FALSE_ALARMS:g} % may be.",
            {"false_alarm_rate": alarms.value, "most": MOST_FALSE_ALARMS},
        )
