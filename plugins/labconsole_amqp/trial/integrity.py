"""Integrity of a run: which messages were lost, came twice, from elsewhere or out of order, or were refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Event, Metric, Verdict, VerdictKind
from labconsole_amqp.choices import Mode
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import OUTCOMES, WORK_DONE, ReceiverEnd, events_of
from labconsole_amqp.trial.joining import JoinedSamples
from labconsole_amqp.trial.metrics import metric
from labconsole_amqp.wire.envelope import SENDER_SHIFT, SEQUENCE_MASK
from labconsole_amqp.wire.sign_encrypt import Outcome

_MOST_ROLES = 1000


def integrity_figures(
    parameters: AmqpParameters, joined: JoinedSamples, events: Sequence[Event], definitions: int
) -> Iterator[Metric]:
    """What was lost, came twice, from elsewhere or out of order, or was refused; nothing of a sender alone."""
    if parameters.mode is Mode.SENDER:
        return
    total = len(joined.received["outcome"])
    unrecorded = _unrecorded(parameters, joined, events, definitions)
    duplicates = [OUTCOMES.index(outcome) for outcome in parameters.duplicate_outcomes]
    outcomes = joined.received["outcome"][~np.isin(joined.received["outcome"], duplicates)]
    arrivals = Arrivals.of(parameters, joined)
    if _all_roles_finished(parameters, events):
        yield metric("lost", arrivals.expected - arrivals.came, arrivals.expected)
    if parameters.mode is Mode.BOTH:
        yield metric("duplicated", int(np.count_nonzero(joined.duplicates & ~unrecorded)), total)
        yield metric("unknown", int(np.count_nonzero((joined.of_received < 0) & ~unrecorded)), total)
        if unrecorded.any():
            yield metric("unrecorded", int(np.count_nonzero(unrecorded)), total)
        yield metric("out_of_order", _out_of_order(joined), total)
    yield metric("failed_verifications", int(np.count_nonzero(outcomes)), total)
    for number, outcome in enumerate(OUTCOMES):
        matching = int(np.count_nonzero(outcomes == number))
        if matching and outcome is not Outcome.OK:
            yield metric("failed_verifications", matching, total, reason=outcome.value)


class Arrivals(NamedTuple):
    """How many messages must arrive, and how many different ones of them did."""

    expected: int
    came: int

    @classmethod
    def of(cls, parameters: AmqpParameters, joined: JoinedSamples) -> Arrivals:
        """Those of a run, or of a block of one."""
        return cls(_expected(parameters, joined), _arrived(parameters, joined))


def integrity_verdicts(parameters: AmqpParameters, arrivals: Arrivals, metrics: Sequence[Metric]) -> Iterator[Verdict]:
    """The verdicts on losses, duplicates and refusals, by the figures above."""
    figures = {one.name: int(one.value) for one in metrics if not one.labels}
    evidence = {**arrivals._asdict(), "received": figures.get("received", 0)}
    integrity = VerdictKind.INTEGRITY
    yield Verdict("all messages arrived", *_loss_verdict(figures.get("lost"), arrivals.expected), evidence, integrity)
    foreign = {"duplicated": figures.get("duplicated", 0), "unknown": figures.get("unknown", 0)}
    if parameters.mode is Mode.BOTH:
        unrecorded = figures.get("unrecorded", 0)
        once = _duplicates_verdict(**foreign, unrecorded=unrecorded, reconnects=figures.get("reconnects", 0))
        yield Verdict("no message arrived twice or from elsewhere", *once, foreign, integrity)
    failed = figures["failed_verifications"]
    reason = f"{failed} messages were refused." if failed else "Every message that arrived was good."
    yield Verdict("all messages were accepted", "fail" if failed else "pass", reason, {"failed": failed}, integrity)


def _unrecorded(
    parameters: AmqpParameters, joined: JoinedSamples, events: Sequence[Event], definitions: int
) -> NDArray[np.bool_]:
    """Which arrivals are of messages whose sender was killed before it had written their rows."""
    numbers, stamps = joined.received["number"], joined.received["stamp_ms"]
    found = np.zeros(len(numbers), np.bool_)
    done = {event.source for event in events_of(events, WORK_DONE, "sender")}
    if definitions == 1 or parameters.mode is not Mode.BOTH:
        return found
    for index in range(parameters.senders):
        if f"sender-{index}" in done:
            continue
        own = joined.sent["role"] == index
        if parameters.numbered:
            recorded = joined.sent["seq"][own].max(initial=-1)  # of a block of a run, not the number of its rows
            found |= (numbers >> SENDER_SHIFT == index + 1) & (numbers & SEQUENCE_MASK > recorded)
        else:
            # Without a number, messages of the last millisecond cannot be distinguished from later ones.
            found |= ~joined.matched & (stamps >= (joined.sent["stamp_ms"][own][-1] if own.any() else 0))
    return found


def _expected(parameters: AmqpParameters, joined: JoinedSamples) -> int:
    """Number of messages that must arrive: all that were sent, or that the other console is to send."""
    if parameters.mode is Mode.BOTH:
        return len(joined.sent["seq"])
    return parameters.per_sender * parameters.senders


def _arrived(parameters: AmqpParameters, joined: JoinedSamples) -> int:
    """Number of different messages of those that arrived."""
    if parameters.mode is Mode.BOTH:
        return int(np.count_nonzero(joined.matched))
    numbers = joined.received["number"]
    different = len(np.unique(numbers[numbers >= 0])) if parameters.numbered else len(numbers)
    return min(different, _expected(parameters, joined))


def _all_roles_finished(parameters: AmqpParameters, events: Sequence[Event]) -> bool:
    """Whether every role finished: in a run that was cancelled or failed, losses are not known."""
    ends = [event.data["end"] for event in events_of(events, WORK_DONE, "receiver")]
    if parameters.mode is Mode.BOTH and len(events_of(events, WORK_DONE, "sender")) < parameters.senders:
        return False
    return len(ends) == parameters.receivers and all(end in (ReceiverEnd.COMPLETE, ReceiverEnd.QUIET) for end in ends)


def arrivals_in_order(joined: JoinedSamples) -> dict[int, NDArray[np.int64]]:
    """Times at which messages arrived before all later ones, by a number for each pair of sender and receiver."""
    index, rows = joined.of_received[joined.matched], np.flatnonzero(joined.matched)
    pairs = joined.sent["role"][index] * _MOST_ROLES + joined.received["role"][rows]
    found = {}
    for pair in np.unique(pairs).tolist():
        own = pairs == pair
        sequence = joined.sent["seq"][index[own]]
        found[pair] = joined.received["received_ns"][rows[own]][sequence >= np.maximum.accumulate(sequence)]
    return found


def _out_of_order(joined: JoinedSamples) -> int:
    """Number of messages that arrived after a later one of the same sender, at the same receiver."""
    return int(np.count_nonzero(joined.matched)) - sum(map(len, arrivals_in_order(joined).values()))


def _duplicates_verdict(duplicated: int, unknown: int, unrecorded: int, reconnects: int) -> tuple[str, str]:
    """Result and reason of the verdict on messages that came more than once, or were not of this run."""
    if duplicated and reconnects and not unknown:
        return "pass", f"{duplicated} messages came twice, as they may after a lost connection (at least once)."
    if duplicated or unknown:
        return "fail", f"{duplicated} messages came twice, and {unknown} came that no sender of this run sent."
    if unrecorded:
        return "unknown", f"{unrecorded} messages came of which the sender, which was killed, had not yet written rows."
    return "pass", "Every message came once, and no other."


def _loss_verdict(lost: int | None, expected: int) -> tuple[str, str]:
    """Result and reason of the verdict on losses."""
    if lost is None:
        return "unknown", "The run ended before everything that was sent could have come."
    if not expected:
        return "unknown", "Nothing was sent."
    return ("fail", f"{lost} messages did not arrive.") if lost else ("pass", "Every message arrived.")
