"""The figures that runs of the messaging trial have: the sizes of the source, all names, and nothing lost."""

from __future__ import annotations

import numpy as np
import pytest

from labconsole_amqp.run_payloads import load_payloads
from labconsole_amqp.series import ReceiverEnd
from labconsole_amqp.wire.envelope import message_number
from tests.labconsole_amqp.lab import Outcome

PAYLOADS = ("small", "fpl-tac", "fpl-fixm")
SIZES = {
    1: (56, 282, 42_756),
    2: (56, 282, 42_756),
    3: (426, 652, 43_126),
    4: (829, 1_053, 43_536),
}
"""Bytes of a message by test, for each of `PAYLOADS`."""
SIZES_IN_ANNOTATIONS = {3: (438, 664, 43_138), 4: (841, 1_065, 43_548)}
ALWAYS = {
    "connect_time", "send_duration", "send_rate", "sent_size", "receiver_link_time", "receive_duration",
    "received_size", "throughput", "queue_time_mean", "queue_time_min", "queue_time_p50", "queue_time_p90",
    "queue_time_p99", "queue_time_p999", "queue_time_max", "sent", "received", "lost", "duplicated", "unknown",
    "out_of_order", "failed_verifications",
}  # fmt: skip
"""Names of the figures of each run."""
CRYPTO = {1: set(), 2: set(), 3: {"sign_time", "verify_time"}}
CRYPTO[4] = CRYPTO[3] | {"encrypt_time", "decrypt_time"}


def all_good(outcome: Outcome, sent: int) -> None:
    """Everything arrived once, in order, and was accepted."""
    figures = outcome.figures
    assert outcome.failure is None
    assert (figures["sent"], figures["received"]) == (sent, sent)
    assert [figures[name] for name in ("lost", "duplicated", "unknown", "out_of_order", "failed_verifications")] == [
        0
    ] * 5
    assert set(outcome.verdicts.values()) == {"pass"}
    ends = {event.data["end"] for event in outcome.events_named("work done") if event.source.startswith("receiver")}
    assert ends == {ReceiverEnd.COMPLETE if outcome.parameters.receivers == 1 else ReceiverEnd.QUIET}


def all_arrived(outcome: Outcome, count: int) -> None:
    """Nothing was lost or refused."""
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    assert (figures["received"], figures["lost"], figures["failed_verifications"]) == (count, 0, 0)


def nothing_lost(outcome: Outcome, sent: int) -> None:
    """All arrived, some perhaps twice where a connection was restored."""
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    assert (figures["sent"], figures["lost"], figures["unknown"], figures["failed_verifications"]) == (sent, 0, 0, 0)
    assert figures["received"] == sent + figures["duplicated"]
    assert len(outcome.column("acknowledged", "acknowledged_ns")) == sent
    assert set(outcome.verdicts.values()) == {"pass"}


def refusals(outcome: Outcome) -> dict[str, int]:
    """Messages that were refused, by reason."""
    return {reason: int(metric.value) for reason, metric in outcome.labelled("failed_verifications").items()}


def drawn_sizes(outcome: Outcome) -> dict[str, list[int]]:
    """The sizes of each sender's messages, as they are to be."""
    parameters = outcome.parameters
    payloads, sizes = load_payloads(parameters), {}
    for role in outcome.samples.roles("sent"):
        numbers = message_number(int(role[-1]), 0) + outcome.samples.table("sent", role)["seq"]
        sizes[role] = [parameters.message_size(len(payloads.of_message(number))) for number in numbers.tolist()]
    return sizes


def as_drawn(outcome: Outcome, sent: int) -> None:
    """Everything arrived, and each message had its size."""
    all_good(outcome, sent)
    for role, sizes in drawn_sizes(outcome).items():
        # A signature by ECDSA in DER has a byte or two more or less.
        assert outcome.samples.table("sent", role)["size"] == pytest.approx(sizes, abs=4)
    sizes = outcome.column("sent", "size")
    assert sorted(sizes) == sorted(outcome.column("received", "size"))
    for end in ("sent", "received"):
        assert outcome.figures[f"{end}_size"] == pytest.approx(sizes.mean())
        assert outcome.figures[f"{end}_size_p99"] == np.quantile(sizes, 0.99, method="inverted_cdf")
    assert len(set(sizes.tolist())) > 1
