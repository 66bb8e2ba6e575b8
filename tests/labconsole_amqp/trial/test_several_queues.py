"""Runs over several queues: each sender and receiver has one of them, and each queue has figures of its own."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from labconsole.model.metrics import VerdictKind
from labconsole.model.validation_faults import fault_sentence
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.link.connection import connect
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.connection_check import check_connection, step
from labconsole_amqp.wire.envelope import message_number
from tests.helpers.repeated_runs import repeated
from tests.labconsole_amqp.cut_relay import cut_relay
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab import Lab, Outcome, run, sent_at_full_speed
from tests.labconsole_amqp.link_transfer import send_all, template
from tests.labconsole_amqp.other_clients import resend
from tests.labconsole_amqp.run_judgements import refusals
from tests.labconsole_amqp.synthetic_samples import MS, Tables, ended, received_table, sent_table

pytestmark = pytest.mark.usefixtures("lab_home")

TWO: dict[str, Any] = {"address": "a b", "senders": 2, "receivers": 2, "numbered": True}


def arrived(outcome: Outcome, role: str) -> set[int]:
    """The senders whose messages a receiver has got."""
    return set(((outcome.samples.table("received", role)["number"] >> 40) - 1).tolist())


def nothing_lost(outcome: Outcome, sent: int) -> None:
    assert outcome.failure is None, outcome.failure
    names = ("sent", "received", "lost", "duplicated", "unknown", "failed_verifications")
    assert [outcome.figures[name] for name in names] == [sent, sent, 0, 0, 0, 0]
    assert set(outcome.verdicts.values()) == {"pass"}


@pytest.mark.parametrize("test", (1, *(pytest.param(test, marks=pytest.mark.nightly) for test in (2, 3)), 4))
def test_each_end_has_one_of_the_queues_in_turn(test: int, tmp_path: Path) -> None:
    """Nightly: Tests 2 and 3, of which each part is in Test 1 or 4 too."""
    outcome = run(tmp_path / "run", test=test, count=60, **TWO | {"senders": 3, "receivers": 3})
    nothing_lost(outcome, 180)
    assert arrived(outcome, "receiver-1") == {1}
    assert len(outcome.samples.table("received", "receiver-1")["number"]) == 60
    ends = {event.source: event.data["end"] for event in outcome.events_named("work done") if "end" in event.data}
    assert ends == {"receiver-0": "quiet", "receiver-1": "complete", "receiver-2": "quiet"}
    (link,) = (one for one in outcome.evaluation.verdicts if one.name == "preflight: link")
    assert re.sub(r" \(\S+ ms\)", "", link.reason) == (
        "Receiver: May receive from the queue a. Receiver: May receive from the queue b. Sender: May send to the queue "
        "a. Sender: May send to the queue b."
    )
    assert link.kind is VerdictKind.PREFLIGHT
    lines = AmqpTrial().curves(outcome.parameters, outcome.samples, outcome.samples.events)
    depths = {line.title: len(line.values) for line in lines if line.group == "Queue depth"}
    assert depths.keys() == {"In a", "In b"}
    assert depths["In a"] == depths["In b"] > 1


def test_each_queue_has_figures_and_they_are_exported(tmp_path: Path) -> None:
    outcome = Lab(tmp_path / "run").run(test=1, count=2_000, warm_up=100, **TWO)
    nothing_lost(outcome, 4_200)
    for name in ("throughput", "lost", "queue_time_p50", "queue_time_p99"):
        labelled = outcome.labelled(name)
        assert set(labelled) == {"a", "b"}, name
        assert labelled["a"].labels == {"queue": "a"}
    for sender, address in enumerate(("a", "b")):
        own = outcome.samples.table("received", f"receiver-{sender}")
        times = own["received_ns"][own["number"] >= message_number(sender, 100)]
        throughput = outcome.labelled("throughput")[address]
        assert throughput.value == pytest.approx((len(times) - 1) * 1e9 / np.ptp(times))
        assert throughput.samples == 2_000
    low, high = sorted(one.value for one in outcome.labelled("queue_time_p50").values())
    assert low <= outcome.figures["queue_time_p50"] <= high


def test_losses_belong_to_the_queue_of_their_sender() -> None:
    sent_ns = 5_000 * MS + np.arange(100) * 10 * MS
    tables = Tables({("sent", f"sender-{index}"): sent_table(sent_ns) for index in range(3)})
    for index, lost in enumerate((0, 7, 2)):  # sender 2 shares its queue with sender 0
        stamps, numbers = sent_table(sent_ns)["stamp_ms"][lost:], message_number(index, 0) + np.arange(lost, 100)
        tables.tables["received", f"receiver-{index}"] = received_table(
            sent_ns[lost:] + MS * (index + 1), stamps, numbers
        )
    parameters = AmqpParameters.model_validate(TWO | {"senders": 3, "receivers": 3, "loop": "open", "rate": 100.0})
    metrics = AmqpTrial().evaluate(parameters, tables, ended(3, 3)).metrics
    found = {(one.name, one.labels.get("queue")): one for one in metrics}
    assert [(found["lost", queue].value, found["lost", queue].samples) for queue in (None, "a", "b")] == [
        (9, 300),
        (2, 200),
        (7, 100),
    ]
    assert [found["latency_p99", queue].value for queue in (None, "a", "b")] == [3.0, 3.0, 2.0]
    assert found["latency_p99", "a"].not_judged == found["latency_p99", None].not_judged != ""


def test_a_run_with_one_queue_has_no_figures_by_queue(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", count=20, senders=2, receivers=2, numbered=True)
    assert not [one for one in outcome.evaluation.metrics if "queue" in one.labels]


@pytest.mark.parametrize(
    ("loop", "figures"),
    [
        ({"loop": "both", "full_speed": 0.2, "open_loop": 0.4, "rate": 50.0}, {"throughput", "lost", "latency_p50"}),
        ({"loop": "sweep", "rate": 10.0, "step": 0.5, "p99_limit": 0.1}, {"lost"}),  # four steps: no rate keeps it
    ],
    ids=("both", "sweep"),
)
def test_phases_and_sweeps_have_several_queues(loop: dict[str, Any], figures: set[str], tmp_path: Path) -> None:
    settings = {"test": 3, "envelope": "cose", **TWO, **loop}
    outcome = repeated(lambda number: run(tmp_path / str(number), **settings), sent_at_full_speed)
    assert outcome.failure is None, outcome.failure
    assert outcome.figures["lost"] == outcome.figures["failed_verifications"] == 0
    by_queue = {one.name for one in outcome.evaluation.metrics if "queue" in one.labels}
    assert figures <= by_queue
    assert ("throughput" in by_queue) == ("throughput" in outcome.figures)


@pytest.mark.parametrize("envelope", ("compact", "cms", pytest.param("jose", marks=pytest.mark.nightly)))
def test_a_message_is_signed_for_the_queue_of_its_sender(envelope: str, tmp_path: Path) -> None:
    """Nightly: JOSE, whose address is checked in CI in `test_hardened_formats`."""
    lab = Lab(tmp_path / "run", during=lambda lab: resend(lab, 1, queue="a", to="b"))
    outcome = lab.run(test=3, envelope=envelope, count=50, loop="open", rate=25.0, patience=2.0, **TWO)
    assert outcome.failure is None, outcome.failure
    # The compact format transmits no address: its signature is wrong for another one.
    expected = {"signature wrong" if envelope == "compact" else "other address": 1}
    assert refusals(outcome) == expected


def external(broker: RunningBroker, **more: Any) -> dict[str, Any]:
    return {"broker": "external", "port": broker.plain.port, "test": 1, "count": 30, "patience": 3.0, **TWO, **more}


def test_every_queue_is_checked_and_drained(tmp_path: Path) -> None:
    with serving(BrokerSettings(queues=("a", "b"))) as broker:
        with connect(broker.plain) as client:
            send_all(Sender(client, "b"), template(), 3)
        refused = run(tmp_path / "refused", **external(broker))
        assert f"The queue b at {broker.plain.name} is not empty, 3 messages are in it" in str(refused.failure)
        nothing_lost(run(tmp_path / "drained", **external(broker, leftover="drain")), 60)
        assert broker.broker.depths() == {"a": 0, "b": 0}


def test_the_connection_test_tries_each_queue() -> None:
    with serving(BrokerSettings(queues=("a", "b"))) as broker:
        found: list[str] = []
        parameters = AmqpParameters.model_validate(external(broker))
        check_connection(parameters, lambda _: None, lambda end, check: found.append(step(end, check)))
    steps = [re.sub(r" \(\S+ ms\)", "", one) for one in found if "queue" in one]
    assert sorted(steps) == [
        "Receiver, link: May receive from the queue a.",
        "Receiver, link: May receive from the queue b.",
        "Receiver, queue depth: The queue a is empty.",
        "Receiver, queue depth: The queue b is empty.",
        "Sender, link: May send to the queue a.",
        "Sender, link: May send to the queue b.",
    ]


def test_two_consoles_share_the_queues_and_compare_clocks_over_the_first(tmp_path: Path) -> None:
    outcomes: dict[str, Outcome] = {}
    with serving(BrokerSettings(queues=("a", "b", "a.clock", "a.clock-reply"))) as broker:

        def play(mode: str) -> None:
            outcomes[mode] = run(tmp_path / mode, **external(broker, mode=mode, wait_for_peer=120.0))

        threads = [threading.Thread(target=play, args=(mode,)) for mode in ("receiver", "sender")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    sender, receiver = outcomes["sender"], outcomes["receiver"]
    assert (sender.failure, receiver.failure) == (None, None)
    assert sender.figures["clock_offset"] == receiver.figures["clock_offset"]
    assert (sender.figures["sent"], receiver.figures["received"], receiver.figures["lost"]) == (60, 60, 0)
    assert {queue: one.samples for queue, one in receiver.labelled("lost").items()} == {"a": 30, "b": 30}
    assert {queue: one.samples for queue, one in receiver.labelled("queue_time_p50").items()} == {"a": 30, "b": 30}


def test_a_restored_connection_has_its_queue_again(tmp_path: Path) -> None:
    with serving(BrokerSettings(queues=("a", "b"))) as broker, cut_relay(broker.plain.port) as relay:

        def cut(lab: Lab) -> None:
            lab.until("received", 200)
            relay.cut()

        settings = external(broker, count=500, loop="open", rate=250.0, reconnect=20.0)
        outcome = Lab(tmp_path / "run", during=cut).run(**settings | {"port": relay.port})
    assert outcome.failure is None, outcome.failure
    assert (outcome.figures["sent"], outcome.figures["lost"], outcome.figures["unknown"]) == (1_000, 0, 0)
    assert outcome.figures["reconnects"] >= 1
    assert [arrived(outcome, f"receiver-{index}") for index in (0, 1)] == [{0}, {1}]


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("labconsole", ("labconsole",)),
        ("a b", ("a", "b")),
        (" a,b ,\tc\n", ("a", "b", "c")),
        ("/amq/queue/x,/amq/queue/y", ("/amq/queue/x", "/amq/queue/y")),
        ('"my queue", plain', ("my queue", "plain")),
    ],
    ids=("one", "spaces", "commas", "rabbitmq", "quoted"),
)
def test_addresses_are_separated_by_spaces_or_commas(text: str, addresses: tuple[str, ...]) -> None:
    parameters = AmqpParameters(address=text, senders=3, receivers=3, numbered=True)
    assert parameters.addresses == addresses
    assert parameters.address_of(len(addresses)) == addresses[0]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"senders": 1},
            "senders: each of the 2 queues in `address` needs one: set `senders` to 2 or more, or name fewer queues.",
        ),
        (
            {"receivers": 1},
            "receivers: each of the 2 queues in `address` needs one: set `receivers` to 2 or more, or name fewer "
            "queues.",
        ),
        ({"address": "a, a"}, "address: the queue a is in it twice: name each queue once."),
        ({"address": " , "}, "address: there is no address in it: name a queue."),
    ],
    ids=("senders", "receivers", "twice", "none"),
)
def test_queues_that_have_no_ends_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        AmqpParameters.model_validate(TWO | settings)
    assert fault_sentence(caught.value, AmqpParameters) == sentence


def test_a_console_that_only_sends_needs_no_receivers_and_stored_runs_are_read_as_they_were() -> None:
    alone: dict[str, Any] = {"mode": "sender", "broker": "external", "receivers": 1}
    assert AmqpParameters.model_validate(TWO | alone).addresses == ("a", "b")
    assert AmqpParameters.of_stored({"address": "my queue"}).senders == 1
