"""The check of a queue before a run takes no message of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.link.connection import connect
from labconsole_amqp.link.proton_engine import lib
from labconsole_amqp.link.queue_probe import _ProbeReceiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.wire.envelope import MessageParts, encode
from tests.labconsole_amqp.embedded_broker import serving
from tests.labconsole_amqp.lab import run


@pytest.mark.parametrize("outcome", (lib.PN_RELEASED, lib.PN_ACCEPTED))
def test_the_queue_probe_leaves_no_credit_behind(outcome: int) -> None:
    """RabbitMQ notices tens of ms late that a consumer is gone; messages for it arrive late, out of order."""
    message, stamp_offset = encode(MessageParts(b"payload"))
    with (
        serving(BrokerSettings(queues=("q",))) as broker,
        connect(broker.plain) as probing,
        connect(broker.plain) as sending,
    ):
        assert _ProbeReceiver(probing, "q").fetch(1000, outcome, quiet_s=0.05) == 0
        sender = Sender(sending, "q")
        while not sender.capacity:
            sender.pump(0.1)
        sender.send_messages([message] * 10, stamp_offset)
        assert sender.drain(5) == 0
        counts = broker.broker.counts()["q"]
        assert (counts.received, counts.delivered) == (10, 0)
        assert broker.broker.depths() == {"q": 10}


def test_a_queue_that_is_not_empty_after_draining_refuses_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labconsole_amqp.roles.link_role._MAX_DRAINED", 6)
    message, stamp_offset = encode(MessageParts(b"payload"))
    with serving(BrokerSettings(queues=("q",))) as broker:
        with connect(broker.plain) as connection:
            sender = Sender(connection, "q")
            while not sender.capacity:
                sender.pump(0.1)
            sender.send_messages([message] * 10, stamp_offset)
            assert sender.drain(5) == 0
        place = {"broker": "external", "port": broker.plain.port, "address": "q"}
        outcome = run(tmp_path / "run", test=1, count=5, leftover="drain", **place)
        assert outcome.failure == (
            f"The queue q at 127.0.0.1:{broker.plain.port} is still not empty after 6 messages were discarded: stop "
            "the sender, and run again."
        )
        assert [event.message for event in outcome.events_named("drained")] == [
            "6 messages were in the queue q and were discarded."
        ]
        assert "sent" not in outcome.figures
        assert broker.broker.depths() == {"q": 4}
