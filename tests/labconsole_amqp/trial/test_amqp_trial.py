"""The AMQP trial on the embedded broker: Tests 1-4 with payloads, sizes, options and faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labconsole.security.lab_identities import STATE_A, STATE_B
from labconsole_amqp.link.connection import connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.metrics import METRICS
from labconsole_amqp.wire.envelope import MessageParts, Protection, encode, message_number
from labconsole_amqp.wire.payload import load_payload
from labconsole_amqp.wire.sign_encrypt import seal
from tests.labconsole_amqp.lab import Lab, run
from tests.labconsole_amqp.other_clients import endpoint, injecting, state_key
from tests.labconsole_amqp.run_judgements import (
    ALWAYS,
    CRYPTO,
    PAYLOADS,
    SIZES,
    SIZES_IN_ANNOTATIONS,
    all_good,
    refusals,
)

pytestmark = pytest.mark.usefixtures("lab_home")


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("test", (1, 2, 3, 4))
def test_each_test_with_each_payload_gives_the_sources_sizes_and_every_figure(
    test: int, payload: str, tmp_path: Path
) -> None:
    count = 40 if test >= 3 or payload == "fpl-fixm" else 500
    outcome = run(tmp_path / "run", test=test, payload=payload, count=count)
    all_good(outcome, count)
    size = SIZES[test][PAYLOADS.index(payload)]
    assert (outcome.figures["sent_size"], outcome.figures["received_size"]) == (size, size)
    assert set(outcome.column("sent", "size")) == set(outcome.column("received", "size")) == {size}
    assert set(outcome.figures) == ALWAYS | CRYPTO[test]
    assert set(outcome.labelled("cpu_per_message")) == {"sender", "receiver", "broker"}
    units = {kind.name: kind.unit for kind in METRICS}
    for metric in outcome.evaluation.metrics:
        assert metric.unit == units[metric.name]
        assert metric.samples > 0
        assert metric.value >= 0
    figures = outcome.figures
    assert 0 < figures["queue_time_min"] <= figures["queue_time_p50"] <= figures["queue_time_max"]
    depth = outcome.column("depth", "messages")
    assert len(depth) > 0 and 0 <= depth.min() <= depth.max() <= count
    tls = {event.data["tls"] for event in outcome.events_named("connected")}
    assert tls == ({None} if test == 1 else {"TLSv1.3"})


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("test", (3, 4))
def test_the_annotation_form_gives_the_sizes_of_the_within_malaysia_tables(
    test: int, payload: str, tmp_path: Path
) -> None:
    outcome = run(tmp_path / "run", test=test, payload=payload, count=10, fields_in="message-annotations")
    all_good(outcome, 10)
    assert outcome.figures["received_size"] == SIZES_IN_ANNOTATIONS[test][PAYLOADS.index(payload)]


def test_durable_messages_have_three_bytes_more_and_numbered_ones_eleven(tmp_path: Path) -> None:
    assert run(tmp_path / "a", count=10, payload="small", durable=True).figures["sent_size"] == 59
    assert run(tmp_path / "b", count=10, payload="small", numbered=True).figures["sent_size"] == 67


@pytest.mark.parametrize("test", (1, 4))
def test_an_open_loop_keeps_its_rate_and_its_schedule(test: int, tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=test, loop="open", rate=20.0, count=20)
    all_good(outcome, 20)
    intended, sent = outcome.column("sent", "intended_ns"), outcome.column("sent", "sent_ns")
    assert np.abs(np.diff(intended) - 50_000_000).max() <= 1
    assert (sent >= intended).all(), "a message went out before it was due"
    late_ns = (sent - intended)[10:]  # of messages at the end, by when delays would have added up
    assert late_ns.min() < 50_000_000, "each of them went out when the next one was due"
    (done,) = (event for event in outcome.events_named("work done") if event.source == "sender-0")
    assert outcome.figures["send_rate"] == pytest.approx(20e9 / (done.data["end_ns"] - sent[0]))
    assert outcome.figures["latency_mean"] == pytest.approx(
        (outcome.column("received", "received_ns") - intended).mean() / 1e6
    )


def test_an_open_loop_that_cannot_keep_its_rate_shows_it_as_latency(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=3, loop="open", rate=1_000_000.0, count=300)
    all_good(outcome, 300)
    last_late_ms = (outcome.column("sent", "sent_ns") - outcome.column("sent", "intended_ns"))[-1] / 1e6
    assert last_late_ms > 20, "300 signatures take longer than 0.3 ms"
    assert outcome.figures["latency_max"] >= last_late_ms


@pytest.mark.parametrize("payload", ("small", "fpl-fixm"))
def test_pre_settled_messages_all_arrive_without_acknowledgement(payload: str, tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", settlement="pre-settled", count=300, payload=payload)
    all_good(outcome, 300)
    assert outcome.samples.roles("acknowledged") == []


def test_acknowledgements_are_recorded_for_every_message(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", count=300)
    late = outcome.column("acknowledged", "acknowledged_ns") - outcome.column("sent", "sent_ns")
    assert len(late) == 300
    assert (late > 0).all()


@pytest.mark.parametrize("test", (1, 4))
def test_several_senders_and_receivers_share_the_work(test: int, tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=test, senders=2, receivers=2, numbered=True, count=100, credit=10)
    all_good(outcome, 200)
    shares = [len(outcome.samples.table("received", role)["number"]) for role in outcome.samples.roles("received")]
    assert len(shares) == 2
    assert min(shares) > 0
    assert sorted(outcome.column("received", "number")) == sorted(
        message_number(sender, sequence) for sender in (0, 1) for sequence in range(100)
    )


def test_a_shallow_queue_and_one_credit_hold_the_sender_back_and_lose_nothing(tmp_path: Path) -> None:
    all_good(run(tmp_path / "run", queue_depth=3, credit=1, count=100), 100)


def test_the_warm_up_is_sent_but_left_out_of_throughput_and_latency(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", warm_up=40, count=60)
    all_good(outcome, 100)
    samples = {metric.name: metric.samples for metric in outcome.evaluation.metrics}
    assert (samples["throughput"], samples["queue_time_mean"], samples["sent"]) == (60, 60, 100)
    assert outcome.frame.channels["queue_time"].count == 60
    first_ns = outcome.column("received", "received_ns")[40]
    last_ns = outcome.column("received", "received_ns")[-1]
    assert outcome.figures["receive_duration"] == pytest.approx((last_ns - first_ns) / 1e9)


def test_any_file_can_be_the_payload_and_test_4_takes_binary_ones(tmp_path: Path) -> None:
    file = tmp_path / "payload.bin"
    file.write_bytes(bytes(range(256)) * 3)
    all_good(run(tmp_path / "run", test=4, payload=str(file), count=10), 10)
    assert "not UTF-8" in (run(tmp_path / "plain", test=1, payload=str(file), count=10).failure or "")


def test_a_cancelled_run_keeps_its_figures_but_claims_no_loss(tmp_path: Path) -> None:
    def cancel(lab: Lab) -> None:
        lab.until("received", 50)
        lab.cancel()

    outcome = Lab(tmp_path / "run", during=cancel).run(count=100_000, loop="open", rate=500.0)
    assert outcome.failure is None
    assert 50 <= outcome.figures["received"] <= outcome.figures["sent"] < 100_000
    assert outcome.figures["throughput"] > 0
    assert "lost" not in outcome.figures
    assert outcome.verdicts["all messages arrived"] == "unknown"
    assert {event.source for event in outcome.events_named("work done")} >= {"sender-0", "receiver-0"}


def test_messages_received_by_another_client_are_lost_and_the_run_still_ends(tmp_path: Path) -> None:
    def steal(lab: Lab) -> None:
        with connect(endpoint(lab)) as connection:
            thief = Receiver(connection, "labconsole", window=5)
            while thief.received < 5:
                thief.receive(5 - thief.received, 0.1)

    settings = {"count": 150, "loop": "open", "rate": 100.0, "patience": 1.0, "numbered": True}
    outcome = Lab(tmp_path / "run", during=steal).run(**settings)
    assert outcome.failure is None
    assert outcome.figures["lost"] == 150 - outcome.figures["received"] > 0
    assert outcome.verdicts["all messages arrived"] == "fail"
    assert outcome.events_named("work done")[-1].source == "broker"


def test_forged_messages_are_counted_by_reason_and_fail_the_verdict(tmp_path: Path) -> None:
    payload = load_payload("fpl-tac").data
    wrong = encode(seal(payload, Protection.SIGNED, state_key(STATE_B)))
    unsigned = encode(MessageParts(payload))
    other = encode(seal(b"another payload", Protection.SIGNED, state_key(STATE_A)))
    forged = [wrong, wrong, unsigned, other, (b"not an AMQP message", 0)]
    lab = Lab(tmp_path / "run", during=injecting(forged, tls=True))
    outcome = lab.run(test=3, count=40, loop="open", rate=20.0)
    assert outcome.failure is None
    assert refusals(outcome) == {"signature wrong": 2, "signature missing": 1, "payload differs": 1, "malformed": 1}
    assert outcome.figures["failed_verifications"] == 5
    assert outcome.figures["lost"] == 0
    assert outcome.verdicts["all messages arrived"] == "pass"
    assert outcome.verdicts["all messages were accepted"] == "fail"
    assert len(outcome.events_named("refused")) == 5
    assert outcome.frame.channels["failed"].count == 5


def test_test_4_refuses_what_is_signed_but_not_encrypted_or_not_for_this_receiver(tmp_path: Path) -> None:
    payload = load_payload("fpl-tac").data
    key = state_key(STATE_A)
    open_body = encode(seal(payload, Protection.SIGNED, key))
    for_another = encode(seal(payload, Protection.SIGNED_ENCRYPTED, key, key.public_key()))
    lab = Lab(tmp_path / "run", during=injecting([open_body, for_another], tls=True))
    outcome = lab.run(test=4, count=40, loop="open", rate=20.0)
    assert refusals(outcome) == {"decryption failed": 2}
    assert outcome.figures["lost"] == 0


def test_duplicates_and_unknown_messages_are_distinguished_by_number(tmp_path: Path) -> None:
    payload = MessageParts(load_payload("fpl-tac").data)
    numbers = [message_number(0, 3), message_number(0, 3), message_number(7, 0), 2**64 - 1]
    foreign = [encode(payload, message_id=number) for number in numbers]
    lab = Lab(tmp_path / "run", during=injecting([*foreign, encode(payload)], tls=False))
    outcome = lab.run(test=1, count=40, loop="open", rate=20.0, numbered=True)
    assert outcome.failure is None
    assert outcome.figures["received"] == 45
    assert [outcome.figures[name] for name in ("lost", "duplicated", "unknown", "failed_verifications")] == [0, 2, 3, 0]
    assert outcome.verdicts["no message arrived twice or from elsewhere"] == "fail"


def test_unknown_messages_do_not_end_the_run_before_all_of_its_own_arrived(tmp_path: Path) -> None:
    payload = MessageParts(load_payload("fpl-tac").data)
    many = [encode(payload, message_id=message_number(7, sequence)) for sequence in range(200)]
    lab = Lab(tmp_path / "run", during=injecting(many, tls=False))
    outcome = lab.run(test=1, count=8, loop="open", rate=6.0, numbered=True)
    assert (outcome.figures["lost"], outcome.figures["unknown"]) == (0, 200)


@pytest.mark.parametrize(
    ("test", "username", "warned"), ((1, "operator", True), (2, "operator", False), (1, "", False))
)
def test_a_password_that_goes_unencrypted_is_warned_of(test: int, username: str, warned: bool) -> None:
    parameters = AmqpParameters.model_validate({"test": test, "broker": "external", "username": username})
    assert any("unencrypted" in warning for warning in AmqpTrial().warnings(parameters)) is warned
