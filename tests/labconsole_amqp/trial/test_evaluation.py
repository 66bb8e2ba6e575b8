"""Figures from synthetic samples whose truth is known: latency, rates, link use, warm-up, verdicts."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from labconsole.model.trial import LINK_RATE, LINK_USE, Direction, Event, Origin, VerdictKind
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import CONNECTED, WALL_OFFSET, WORK_DONE, ReceiverEnd
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.curves import curves
from labconsole_amqp.trial.evaluation import evaluate
from labconsole_amqp.trial.metrics import METRICS
from labconsole_amqp.wire.envelope import message_number
from tests.labconsole_amqp.synthetic_samples import (
    EPOCH_MS,
    MS,
    Tables,
    Truth,
    ended,
    event,
    figures,
    received_table,
    sent_table,
    verdicts,
)


def test_the_source_s_figures_by_its_own_arithmetic() -> None:
    """Within Malaysia, small payload, Test 1: 10,000 messages in 12,384 - 5,175 ms are 1,387/s (printed: 1,386)."""
    sent = sent_table(np.linspace(0, 7_200 * MS, 10_000).astype(np.int64))
    received = received_table(np.linspace(500 * MS, 500 * MS + 7_017 * MS, 10_000).astype(np.int64), sent["stamp_ms"])
    events = ended(end_ns=7_209 * MS)
    events[0] = event("sender-0", CONNECTED, connect_ns=5_175 * MS, attach_ns=MS)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    found = figures(evaluate(AmqpParameters(), tables, events))
    assert found["send_duration"] == pytest.approx(12_384)
    assert found["send_rate"] == pytest.approx(1_387, abs=1)
    assert found["receive_duration"] == pytest.approx(7.017)
    assert found["throughput"] == pytest.approx(1_425.11, abs=0.2)
    assert found["receiver_link_time"] == pytest.approx(5.0)


def test_link_use_is_received_bits_over_the_stated_rate() -> None:
    """Within Malaysia, Test 4: 999 large messages (43,601 bytes) after the first in 189 s are 92 % of 2 Mbit/s."""
    assert LINK_RATE in AmqpParameters.model_fields
    sent = sent_table(np.linspace(0, 180_000 * MS, 1_000).astype(np.int64))
    received = received_table(np.linspace(0, 189_000 * MS, 1_000).astype(np.int64) + MS, sent["stamp_ms"])
    received["size"][:] = 43_601
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    shaped = evaluate(AmqpParameters(count=1_000, link_rate=2.0), tables, ended())
    assert figures(shaped)[LINK_USE] == pytest.approx(92.2, abs=0.05)
    (use,) = (metric for metric in shaped.metrics if metric.name == LINK_USE)
    assert (use.unit, use.direction, use.origin, use.samples) == ("%", Direction.NEUTRAL, Origin.MEASURED, 1_000)
    unknown = evaluate(AmqpParameters(count=1_000), tables, ended())
    assert LINK_USE not in figures(unknown)
    plausible = "the link rate can be as stated"
    assert plausible not in verdicts(unknown)
    assert verdicts(shaped)[plausible] == "pass"
    (bound,) = (verdict.reason for verdict in shaped.verdicts if verdict.name == plausible)
    assert (
        bound == "92 % of the stated rate came through: the run is link-bound, and its throughput is that of the link."
    )
    wide = evaluate(AmqpParameters(count=1_000, link_rate=2.2), tables, ended())
    assert "84 % of the stated rate came through." in [verdict.reason for verdict in wide.verdicts]
    wrong = evaluate(AmqpParameters(count=1_000, link_rate=1.0), tables, ended())
    assert verdicts(wrong)[plausible] == "fail"
    # The first 100 messages are 60 bytes each: a warm-up that does not count.
    received["size"][:100] = 60
    warmed = figures(evaluate(AmqpParameters(count=900, warm_up=100, link_rate=2.0), tables, ended()))
    assert warmed[LINK_USE] == pytest.approx(92.3, abs=0.2)


def test_verdicts_on_complete_data_are_integrity_verdicts() -> None:
    sent = sent_table(np.arange(10) * MS)
    tables = Tables(
        {("sent", "sender-0"): sent, ("received", "receiver-0"): received_table(np.arange(10) * MS, sent["stamp_ms"])}
    )
    judged = evaluate(AmqpParameters(count=10, link_rate=2.0), tables, ended())
    kinds = {verdict.name: verdict.kind for verdict in judged.verdicts}
    assert kinds == {
        "all messages arrived": VerdictKind.INTEGRITY,
        "no message arrived twice or from elsewhere": VerdictKind.INTEGRITY,
        "all messages were accepted": VerdictKind.INTEGRITY,
        "the link rate can be as stated": VerdictKind.FINDING,
    }


def test_the_distribution_is_that_behind_the_percentiles() -> None:
    truth = Truth.draw(3, lost=20, repeated=10, added=10)
    parameters = AmqpParameters(numbered=True, count=380, warm_up=20)
    found = {metric.name: metric for metric in evaluate(parameters, truth.samples(), ended()).metrics}
    (latency,) = AmqpTrial().distributions(parameters, truth.samples(), ended())
    assert (latency.title, latency.unit) == ("Time in queue at full speed", "ms")
    assert len(latency.values) == found["queue_time_mean"].samples < 380
    assert latency.values.mean() == pytest.approx(found["queue_time_mean"].value)
    for kind in METRICS:
        if kind.quantile is not None and kind.name in found:
            assert np.quantile(latency.values, kind.quantile, method="inverted_cdf") == found[kind.name].value
    of_times = [kind.quantile for kind in METRICS if kind.quantile and not kind.name.startswith("key_")]
    assert of_times == [0.5, 0.9, 0.99, 0.999] * 2
    assert AmqpTrial().distributions(parameters, Tables(), []) == ()


def test_the_warm_up_of_each_sender_does_not_count() -> None:
    sent_ns = np.arange(10) * MS
    numbers = np.array([message_number(sender, seq) for seq in range(10) for sender in (0, 1)])
    received_ns = np.repeat(sent_ns, 2) + np.where(np.arange(20) < 8, 100 * MS, 2 * MS)
    tables = Tables({("sent", f"sender-{index}"): sent_table(sent_ns) for index in (0, 1)})
    stamps = EPOCH_MS + np.repeat(sent_ns, 2) // MS
    tables.tables["received", "receiver-0"] = received_table(received_ns, stamps, numbers)
    parameters = AmqpParameters(numbered=True, senders=2, warm_up=4, count=6)
    result = evaluate(parameters, tables, ended(2))
    assert figures(result)["queue_time_max"] == 2.0
    assert {metric.samples for metric in result.metrics if metric.name in ("throughput", "queue_time_mean")} == {12}


def test_a_console_that_only_receives_finds_each_sender_s_warm_up_by_message_number() -> None:
    # The second sender is late: its warm-up comes after messages of the first one that count.
    numbers = np.array([message_number(0, seq) for seq in range(10)] + [message_number(1, seq) for seq in range(10)])
    received_ns = np.arange(20) * MS
    received = received_table(received_ns, EPOCH_MS + received_ns // MS, numbers)
    received["stamp_ms"][10:14] -= 1000
    parameters = AmqpParameters(
        mode="receiver", broker="external", numbered=True, senders=2, receivers=1, warm_up=4, count=6
    )
    events = [event("receiver-0", WALL_OFFSET, offset_ns=EPOCH_MS * MS), *ended(0)]
    result = evaluate(parameters, Tables({("received", "receiver-0"): received}), events)
    assert figures(result)["queue_time_max"] == 0.0
    assert {metric.samples for metric in result.metrics if metric.name in ("throughput", "queue_time_mean")} == {12}


def test_sending_figures_need_the_end_of_every_sender() -> None:
    tables = Tables({("sent", f"sender-{index}"): sent_table(np.arange(10) * MS) for index in (0, 1)})
    parameters = AmqpParameters(numbered=True, senders=2, count=10)
    slow = event("sender-1", CONNECTED, connect_ns=5 * MS, attach_ns=MS)
    events = [slow if e.source == "sender-1" and e.name == CONNECTED else e for e in ended(2, end_ns=10 * MS)]
    found = figures(evaluate(parameters, tables, events))
    assert (found["connect_time"], found["send_duration"], found["send_rate"]) == (4.0, 14.0, 2000.0)
    killed = [e for e in events if not (e.source == "sender-1" and e.name == WORK_DONE)]
    assert not {"send_duration", "send_rate"} & set(figures(evaluate(parameters, tables, killed)))


def test_open_loop_latency_counts_from_the_intended_time() -> None:
    sent = sent_table(np.full(3, 100 * MS))
    sent["intended_ns"] = np.array([0, 10, 20]) * MS
    received = received_table(np.array([101, 102, 103]) * MS, sent["stamp_ms"])
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    assert figures(evaluate(AmqpParameters(loop="open", rate=100, count=3), tables, ended()))["latency_mean"] == 92.0
    assert figures(evaluate(AmqpParameters(loop="closed", count=3), tables, ended()))["queue_time_mean"] == 2.0


@pytest.mark.parametrize(
    "events",
    (
        [],
        ended(end=ReceiverEnd.STOPPED),
        [event("receiver-0", WORK_DONE, cpu_ns=1, messages=1, end=ReceiverEnd.COMPLETE)],
    ),
)
def test_a_run_that_did_not_come_to_its_end_claims_no_loss(events: Sequence[Event]) -> None:
    truth = Truth.draw(1, lost=10, repeated=0, added=0)
    result = evaluate(AmqpParameters(count=400), truth.samples(), events)
    assert "lost" not in figures(result)
    assert verdicts(result)["all messages arrived"] == "unknown"
    assert figures(result)["received"] == 390


def test_a_console_that_only_receives_measures_from_the_stamps_and_its_wall_clock() -> None:
    received_ns = np.array([10, 12, 14]) * MS
    received = received_table(received_ns, EPOCH_MS + np.array([5, 7, 9]))
    parameters = AmqpParameters(mode="receiver", broker="external", count=4)
    events = [event("receiver-0", WALL_OFFSET, offset_ns=EPOCH_MS * MS), *ended(0, 1, ReceiverEnd.QUIET)]
    result = evaluate(parameters, Tables({("received", "receiver-0"): received}), events)
    found = figures(result)
    assert (found["queue_time_mean"], found["lost"], found["received"]) == (5.0, 1, 3)
    assert not {"sent", "send_rate", "duplicated", "unknown", "connect_time"} & set(found)


def test_a_console_that_only_receives_counts_a_repeated_number_once() -> None:
    numbers = np.array([message_number(0, seq) for seq in (0, 1, 1)])
    received = received_table(np.arange(3) * MS, EPOCH_MS + np.arange(3), numbers)
    parameters = AmqpParameters(mode="receiver", broker="external", count=3, numbered=True)
    result = evaluate(parameters, Tables({("received", "receiver-0"): received}), ended(0, 1, ReceiverEnd.QUIET))
    assert figures(result)["lost"] == 1


def test_a_console_that_only_sends_has_no_figures_of_the_other_end() -> None:
    parameters = AmqpParameters(mode="sender", broker="external", count=3)
    tables = Tables({("sent", "sender-0"): sent_table(np.arange(3) * MS)})
    result = evaluate(parameters, tables, ended(1, 0, end_ns=4 * MS))
    assert set(figures(result)) == {"connect_time", "send_duration", "send_rate", "sent", "sent_size"}
    assert result.verdicts == ()


def test_a_run_without_any_sample_gives_no_figures_and_no_pass() -> None:
    for events in ([], ended()):
        result = evaluate(AmqpParameters(), Tables(), events)
        assert "throughput" not in figures(result)
        assert verdicts(result)["all messages arrived"] == "unknown"
        assert curves(AmqpParameters(), Tables(), events) == ()


def test_time_of_cryptography_is_the_mean_over_messages_that_had_it() -> None:
    sent = sent_table(np.arange(2) * MS)
    sent["sign_ns"][:] = (300_000, 500_000)
    received = received_table(np.arange(2) * MS + 5 * MS, sent["stamp_ms"])
    received["verify_ns"][:] = (0, 20_000)  # the first was refused before its signature was looked at
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    found = figures(evaluate(AmqpParameters(test=3, count=2), tables, ended()))
    assert (found["sign_time"], found["verify_time"]) == (400.0, 20.0)
    assert not {"encrypt_time", "decrypt_time"} & set(found)


def test_a_million_messages_take_less_than_three_seconds_of_cpu_and_twice_gives_the_same() -> None:
    random = np.random.default_rng(1)
    count = 1_000_000
    sent_ns = np.cumsum(random.integers(1, 20_000, count))
    received_ns = sent_ns + random.integers(MS, 2 * MS)
    tables = Tables(
        {
            ("sent", "sender-0"): sent_table(sent_ns),
            ("received", "receiver-0"): received_table(received_ns, EPOCH_MS + sent_ns // MS),
        }
    )
    before = time.process_time()
    first = evaluate(AmqpParameters(count=count), tables, ended())
    assert time.process_time() - before < 3.0
    assert figures(first)["lost"] == 0
    assert evaluate(AmqpParameters(count=count), tables, ended()) == first
