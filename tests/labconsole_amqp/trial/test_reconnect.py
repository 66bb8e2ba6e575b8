"""Connections that are lost in mid-run and restored: nothing is lost, and what came twice is counted."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.choices import Settlement
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.parameters import AmqpParameters
from tests.labconsole_amqp.cut_relay import cut_relay
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab import Lab
from tests.labconsole_amqp.other_clients import PACED, cutting
from tests.labconsole_amqp.real_broker import USER
from tests.labconsole_amqp.run_files import Files, login, through
from tests.labconsole_amqp.run_judgements import nothing_lost
from tests.labconsole_amqp.shared_rabbitmq import SharedRabbitmq

pytestmark = pytest.mark.usefixtures("lab_home")


@pytest.mark.parametrize(
    ("test", "envelope", "numbered"),
    [
        (1, "seed-2025", False),
        (2, "seed-2025", True),
        (3, "seed-2025", False),
        (3, "compact", True),
        (4, "seed-2025", True),
        (4, "compact", False),
    ],
)
def test_no_message_is_lost_with_a_connection(
    files_broker: RunningBroker, files: Files, test: int, envelope: str, numbered: bool, tmp_path: Path
) -> None:
    more = login(tmp_path, "right") if test == 1 else {}
    pace = {**PACED, "count": 2_000} if test < 3 else {"loop": "open", "rate": 75.0, "count": 150}
    settings = through(files_broker, files, test, envelope=envelope, numbered=numbered, reconnect=20.0, **pace)
    with cut_relay(settings["port"]) as relay:
        during = cutting(relay, 3, settings["count"] // 5)
        outcome = Lab(tmp_path / "run", during=during).run(**{**settings, **more, "port": relay.port})
    nothing_lost(outcome, settings["count"])
    figures = outcome.figures
    # The queue was checked by a connection of its own, and a connection may be cut before it is open.
    assert relay.connections - 3 >= figures["reconnects"] >= 1
    assert 0 < figures["reconnect_time"] < 10_000
    lost = outcome.events_named("connection lost")
    assert len(lost) == figures["reconnects"] and "was lost" in lost[0].message
    judged = {one.name: one.not_judged for one in outcome.evaluation.metrics}
    assert f"a connection was lost, {figures['reconnects']:.0f} times in all" in judged["throughput"]


@pytest.mark.parametrize("other", [{"loop": "both"}, {"mode": "receiver", "broker": "external"}])
def test_where_messages_are_counted_twice_they_need_numbers(other: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="need numbers, so that none is counted twice"):
        AmqpParameters.model_validate({**other, "reconnect": 5.0})
    assert AmqpParameters.model_validate({**other, "reconnect": 5.0, "numbered": True}).reconnect == 5
    assert AmqpParameters.model_validate(other).reconnect == 0


def test_messages_that_are_sent_again_keep_their_numbers_and_stamps(
    files_broker: RunningBroker, files: Files, tmp_path: Path
) -> None:
    settings = through(files_broker, files, 2, count=2_000, numbered=True, reconnect=20.0, **PACED)
    with cut_relay(settings["port"]) as relay:
        during = cutting(relay, 2, 400)
        outcome = Lab(tmp_path / "run", during=during).run(**{**settings, "port": relay.port})
    nothing_lost(outcome, 2_000)
    sent = dict(zip(outcome.column("sent", "seq").tolist(), outcome.column("sent", "stamp_ms").tolist(), strict=True))
    numbers = outcome.column("received", "number") & np.int64((1 << 40) - 1)
    stamps = outcome.column("received", "stamp_ms")
    assert {sent[number] - stamp for number, stamp in zip(numbers.tolist(), stamps.tolist(), strict=True)} == {0}


def test_broker_that_refuses_for_a_while_is_tried_again(
    files_broker: RunningBroker, files: Files, tmp_path: Path
) -> None:
    settings = through(files_broker, files, 2, count=2_000, reconnect=20.0, **PACED)
    with cut_relay(settings["port"]) as relay:
        during = cutting(relay, 1, 250, refuse=5)
        outcome = Lab(tmp_path / "run", during=during).run(**{**settings, "port": relay.port})
    nothing_lost(outcome, 2_000)
    attempts = [event.data["attempts"] for event in outcome.events_named("connected again")]
    assert sum(attempts) == len(attempts) + 5


def test_connection_that_cannot_be_restored_in_time_ends_the_run(
    files_broker: RunningBroker, files: Files, tmp_path: Path
) -> None:
    settings = through(files_broker, files, 2, count=100_000, loop="open", rate=500.0, reconnect=1.0)
    with cut_relay(settings["port"]) as relay:
        during = cutting(relay, 1, 50, refuse=1_000)
        began = time.monotonic()
        outcome = Lab(tmp_path / "run", during=during).run(**{**settings, "port": relay.port})
    assert outcome.failure is not None and time.monotonic() - began < 15
    assert "could not be restored within 1 s" in str(outcome.failure)
    assert outcome.figures["received"] >= 50 and "lost" not in outcome.figures


def test_connection_that_is_lost_again_and_again_ends_the_run(
    files_broker: RunningBroker, files: Files, tmp_path: Path
) -> None:
    def cut_always(lab: Lab) -> None:
        lab.until("received", 50)
        while not lab.wait(0.05):
            relay.cut()

    settings = through(files_broker, files, 2, count=100_000, loop="open", rate=500.0, reconnect=1.5)
    with cut_relay(settings["port"]) as relay:
        outcome = Lab(tmp_path / "run", during=cut_always).run(**{**settings, "port": relay.port})
    assert "could not be restored within 1.5 s" in str(outcome.failure)
    assert len(outcome.events_named("connection lost")) < 20, "pauses become longer"


def test_without_a_time_to_reconnect_a_lost_connection_ends_the_run(
    files_broker: RunningBroker, files: Files, tmp_path: Path
) -> None:
    settings = through(files_broker, files, 2, count=100_000, loop="open", rate=500.0)
    with cut_relay(settings["port"]) as relay:
        outcome = Lab(tmp_path / "run", during=cutting(relay, 1, 50)).run(**{**settings, "port": relay.port})
    assert "was lost" in str(outcome.failure)
    assert not outcome.events_named("connected again") and "reconnects" not in outcome.figures


def test_pre_settled_messages_that_were_under_way_are_lost_and_counted(
    files_broker: RunningBroker, files: Files, tmp_path: Path
) -> None:
    more = {**PACED, "count": 2_000, "settlement": Settlement.PRE_SETTLED, "reconnect": 20.0, "patience": 2.0}
    settings = through(files_broker, files, 2, numbered=True, **more)
    with cut_relay(settings["port"]) as relay:
        during = cutting(relay, 2, 400)
        outcome = Lab(tmp_path / "run", during=during).run(**{**settings, "port": relay.port})
    assert outcome.failure is None
    figures = outcome.figures
    assert figures["lost"] == figures["sent"] - figures["received"] and figures["duplicated"] == 0
    assert figures["reconnects"] >= 1


def test_broker_is_stopped_and_started_in_mid_run(tmp_path: Path) -> None:
    """What the embedded broker held in memory is gone: it is lost, and counted; the run continues."""
    settings = BrokerSettings(queues=("q",), access=Access(anonymous=True))
    with ExitStack() as first, ExitStack() as second:
        port = first.enter_context(serving(settings)).ports.plain

        def during(lab: Lab) -> None:
            lab.until("received", 200)
            first.close()
            second.enter_context(serving(replace(settings, plain_port=port)))

        values = {"broker": "external", "port": port, "address": "q", "reconnect": 20.0, "patience": 2.0}
        outcome = Lab(tmp_path / "run", during=during).run(**values, count=2_000, loop="open", rate=1000.0)
    assert outcome.failure is None
    figures = outcome.figures
    assert (figures["sent"], figures["reconnects"]) == (2_000, 2)
    assert figures["lost"] == 2_000 - figures["received"] + figures["duplicated"]


def test_connections_to_rabbitmq_are_restored_without_loss(rabbitmq: SharedRabbitmq, tmp_path: Path) -> None:
    with cut_relay(rabbitmq.broker.port) as relay:
        values = {"broker": "external", "port": relay.port, "address": rabbitmq.fresh_queue(), "username": USER}
        values |= {
            "password_file": str(rabbitmq.broker.password_file),
            "numbered": True,
            "durable": True,
            "reconnect": 30.0,
        }
        outcome = Lab(tmp_path / "run", during=cutting(relay, 3, 300)).run(**values, count=1_500, **PACED)
    nothing_lost(outcome, 1_500)
    assert outcome.figures["reconnects"] >= 1
