"""Joining sent and received messages: losses, duplicates, another order, forged and refused ones."""

from __future__ import annotations

import numpy as np
import pytest

from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import OUTCOMES, ReceiverEnd
from labconsole_amqp.trial.evaluation import evaluate
from labconsole_amqp.wire.envelope import message_number
from labconsole_amqp.wire.sign_encrypt import Outcome
from tests.labconsole_amqp.synthetic_samples import (
    EPOCH_MS,
    MS,
    Tables,
    Truth,
    ended,
    figures,
    received_table,
    sent_table,
    verdicts,
)


@pytest.mark.parametrize("seed", range(20))
def test_numbered_messages_are_joined_in_any_order_of_the_queue(seed: int) -> None:
    random = np.random.default_rng(seed)
    lost, repeated, added = (int(value) for value in random.integers(0, 30, 3))
    truth = Truth.draw(seed, lost=lost, repeated=repeated, added=added)
    shuffled = random.permutation(len(truth.arrivals))
    truth = Truth(truth.sent_ns, truth.arrivals[shuffled], truth.received_ns)
    result = evaluate(AmqpParameters(numbered=True, count=400), truth.samples(), ended())
    found = figures(result)
    assert (found["lost"], found["duplicated"], found["unknown"]) == (lost, repeated, added)
    first = {}
    for sequence, at_ns in zip(truth.arrivals.tolist(), truth.received_ns.tolist(), strict=True):
        first.setdefault(sequence, at_ns)
    first.pop(-1, None)
    latencies = np.sort([at_ns - truth.sent_ns[sequence] for sequence, at_ns in first.items()]) / 1e6
    assert found["queue_time_mean"] == pytest.approx(latencies.mean())
    assert found["queue_time_p99"] == latencies[int(np.ceil(0.99 * len(latencies))) - 1]
    assert (found["queue_time_min"], found["queue_time_max"]) == (latencies[0], latencies[-1])
    in_order = list(first)
    assert found["out_of_order"] == sum(
        sequence < max(in_order[:place]) for place, sequence in enumerate(in_order) if place
    )
    assert verdicts(result)["all messages arrived"] == ("fail" if lost else "pass")


@pytest.mark.parametrize("seed", range(20))
def test_messages_without_number_are_joined_by_stamp_and_rank(seed: int) -> None:
    truth = Truth.draw(seed, lost=0, repeated=0, added=int(seed))
    found = figures(evaluate(AmqpParameters(count=400), truth.samples(), ended()))
    assert (found["lost"], found["duplicated"], found["unknown"], found["out_of_order"]) == (0, 0, seed, 0)
    own = truth.arrivals >= 0
    latencies = truth.received_ns[own] - truth.sent_ns[truth.arrivals[own]]
    assert found["queue_time_mean"] == pytest.approx(latencies.mean() / 1e6)
    assert found["queue_time_max"] == latencies.max() / 1e6


@pytest.mark.parametrize("seed", range(20))
def test_counts_without_number_are_exact_even_when_messages_are_lost_and_repeated(seed: int) -> None:
    random = np.random.default_rng(seed)
    sent_ns = np.repeat(np.arange(100) * MS, 4) + np.tile(np.arange(4) * 1000, 100)  # four a millisecond
    lost = random.choice(np.arange(0, 100, 2), 5, replace=False) * 4  # one of four, in even milliseconds
    twice = random.choice(np.arange(1, 100, 2), 7, replace=False) * 4  # one of four, in odd ones
    arrivals = np.sort(np.concatenate((np.setdiff1d(np.arange(400), lost), twice)), kind="stable")
    truth = Truth(sent_ns, arrivals, np.arange(len(arrivals)) * 1000 + 200 * MS)
    found = figures(evaluate(AmqpParameters(count=400), truth.samples(), ended()))
    assert (found["lost"], found["duplicated"], found["unknown"]) == (5, 7, 0)


def test_a_refused_copy_does_not_push_the_genuine_message_out() -> None:
    sent = sent_table(np.array([10 * MS]))
    stamps = np.full(2, EPOCH_MS + 10)
    for numbers in (None, np.full(2, message_number(0, 0))):
        received = received_table(np.array([20 * MS, 30 * MS]), stamps, numbers)
        received["outcome"][0] = OUTCOMES.index(Outcome.SIGNATURE_WRONG)
        tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
        result = evaluate(AmqpParameters(test=3, numbered=numbers is not None, count=1), tables, ended())
        found = figures(result)
        assert (found["lost"], found["duplicated"], found["failed_verifications"]) == (0, 1, 1)
        assert found["queue_time_mean"] == 20.0
        labelled = [metric for metric in result.metrics if metric.labels.get("reason")]
        assert [(m.name, m.value, m.labels) for m in labelled] == [
            ("failed_verifications", 1, {"reason": "signature wrong"})
        ]
        assert verdicts(result)["all messages were accepted"] == "fail"


def test_a_refused_copy_does_not_take_the_rank_of_a_genuine_message_with_the_same_stamp() -> None:
    sent = sent_table(np.array([10 * MS, 10 * MS + 5]))
    received = received_table(np.array([20 * MS, 30 * MS, 40 * MS]), np.full(3, EPOCH_MS + 10))
    received["outcome"][0] = OUTCOMES.index(Outcome.SIGNATURE_WRONG)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    result = evaluate(AmqpParameters(test=3, count=2), tables, ended())
    assert (figures(result)["lost"], figures(result)["duplicated"]) == (0, 1)
    assert {metric.samples for metric in result.metrics if metric.name == "queue_time_mean"} == {2}


def test_good_messages_come_before_refused_ones_of_the_same_stamp_also_where_nothing_is_missing() -> None:
    sent = sent_table(np.array([10 * MS, 10 * MS + 5000]))
    received = received_table(np.array([20 * MS, 30 * MS]), np.full(2, EPOCH_MS + 10))
    received["outcome"][0] = OUTCOMES.index(Outcome.SIGNATURE_WRONG)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    assert figures(evaluate(AmqpParameters(test=3, count=2), tables, ended()))["queue_time_mean"] == 20.0


def test_several_senders_and_receivers_are_joined_by_sender_and_sequence() -> None:
    sent_ns = np.arange(50) * MS
    everything = np.array([message_number(sender, seq) for seq in range(50) for sender in (0, 1)])
    received_ns = np.repeat(sent_ns, 2) + 3 * MS
    tables = Tables({("sent", f"sender-{index}"): sent_table(sent_ns) for index in (0, 1)})
    for index in (0, 1):
        mine = slice(index, None, 2)
        stamps = EPOCH_MS + sent_ns // MS
        tables.tables["received", f"receiver-{index}"] = received_table(received_ns[mine], stamps, everything[mine])
    parameters = AmqpParameters(numbered=True, senders=2, receivers=2, count=50)
    found = figures(evaluate(parameters, tables, ended(2, 2, ReceiverEnd.QUIET)))
    assert (found["sent"], found["received"], found["lost"], found["out_of_order"]) == (100, 100, 0, 0)
    assert found["queue_time_min"] == found["queue_time_max"] == 3.0


def test_forged_stamps_and_numbers_are_unknown_and_break_nothing() -> None:
    sent = sent_table(np.arange(10) * MS)
    wild = np.array([2**63 - 1, -(2**63), 0, -1, EPOCH_MS + (1 << 44)])
    stamps = np.concatenate((sent["stamp_ms"], wild))
    received = received_table(np.arange(15) * MS + 50 * MS, stamps)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    found = figures(evaluate(AmqpParameters(count=10), tables, ended()))
    assert (found["lost"], found["unknown"], found["duplicated"]) == (0, 5, 0)
    assert found["queue_time_max"] == 50.0
