"""The fast link through a foreign broker: RabbitMQ with its AMQP 1.0 plugin, another implementation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest
from proton import Message

from labconsole.errors import UserError
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.queue_probe import drain_queue, probe_queue_depth
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.wire import envelope
from labconsole_amqp.wire.envelope_layout import decode, layout_of
from labconsole_amqp.wire.template import Template
from tests.helpers.parallel import run_parallel
from tests.labconsole_amqp.lab_pki import LabCa, tls_of
from tests.labconsole_amqp.link_transfer import PAYLOAD, template
from tests.labconsole_amqp.real_broker import USER
from tests.labconsole_amqp.shared_rabbitmq import SENDER, SharedRabbitmq


@pytest.fixture
def queue(rabbitmq: SharedRabbitmq) -> str:
    """A queue for each test: RabbitMQ may pass messages to a pre-settled receiver that has just gone."""
    return rabbitmq.fresh_queue()


@pytest.fixture(scope="module")
def secure(rabbitmq: SharedRabbitmq) -> Endpoint:
    """The port with TLS, as a client that the broker knows."""
    return rabbitmq.secure(rabbitmq.sender)


def send_all(sender: Sender, message: Template, count: int) -> None:
    deadline = time.monotonic() + 30
    while sender.sent < count and time.monotonic() < deadline:
        sender.send(message, count - sender.sent, envelope.message_number(0, sender.sent))
        sender.pump(0.05 if sender.capacity == 0 else 0)
    assert sender.drain(5) == 0


@pytest.mark.parametrize("over_tls", [False, True], ids=["plain", "tls-external"])
@pytest.mark.parametrize("settled", [False, True], ids=["acknowledged", "pre-settled"])
def test_messages_arrive_in_order_and_a_learned_form_is_fast(
    rabbitmq: SharedRabbitmq, secure: Endpoint, queue: str, over_tls: bool, settled: bool
) -> None:
    """RabbitMQ fills the header in; the rest of the message stays ours, so its form can be learned."""
    with connect(secure if over_tls else rabbitmq.plain) as connection:
        receiver = Receiver(connection, queue, settled=settled, templates=[template()])
        sender = Sender(connection, queue, settled=settled)
        send_all(sender, template(), 2000)
        assert sender.accepted == (0 if settled else 2000)
        numbers: list[int] = []
        slow = 0
        deadline = time.monotonic() + 30
        while receiver.received < 2000 and time.monotonic() < deadline:
            batch = receiver.receive(200, 0.2)
            for index, raw in batch.raw.items():
                opened = decode(raw)
                assert opened.body == PAYLOAD
                assert opened.message_id is not None
                batch.numbers[index] = opened.message_id
                slow += 1
            if batch.raw:
                stamp = layout_of(raw).stamp.start
                receiver.learn(Template(raw, stamp, stamp - envelope.NUMBER_BEFORE_STAMP))
            numbers += batch.numbers.tolist()
        assert numbers == [envelope.message_number(0, n) for n in range(2000)]
        assert 0 < slow <= 200


def test_a_second_reader_decodes_a_large_message(secure: Endpoint, queue: str) -> None:
    payload = bytes(65 + n % 26 for n in range(42_708))
    with connect(secure) as connection:
        send_all(Sender(connection, queue), template(payload), 3)
        receiver = Receiver(connection, queue)
        deadline = time.monotonic() + 30
        while receiver.received < 3:
            assert time.monotonic() < deadline
            for raw in receiver.receive(10, 1).raw.values():
                message = Message()
                message.decode(raw)
                assert message.body == payload.decode()


def test_a_queue_that_is_not_empty_is_seen_and_drained(rabbitmq: SharedRabbitmq, queue: str) -> None:
    with connect(rabbitmq.plain) as connection:
        assert probe_queue_depth(connection, queue) == 0
        send_all(Sender(connection, queue), template(), 20)
        assert probe_queue_depth(connection, queue, limit=100) == 20
        assert drain_queue(connection, queue, limit=1000) == 20
        assert probe_queue_depth(connection, queue) == 0


def test_a_missing_queue(rabbitmq: SharedRabbitmq) -> None:
    """RabbitMQ reports it to receivers only; a sender's messages vanish: the queue is checked before."""
    missing = rabbitmq.broker.address("nowhere")
    with connect(rabbitmq.plain) as connection, pytest.raises(UserError, match="has no queue /amq/queue/nowhere"):
        Receiver(connection, missing)
    with connect(rabbitmq.plain) as connection, pytest.raises(UserError, match="has no queue /amq/queue/nowhere"):
        probe_queue_depth(connection, missing)


@pytest.fixture(scope="module")
def refusals(rabbitmq: SharedRabbitmq) -> Mapping[str, Future[str]]:
    """Its refusals of a wrong password and of an unknown name; each takes 3 s."""
    plain = rabbitmq.plain
    endpoints = {
        "password": Endpoint(plain.host, plain.port, username=USER, password="wrong"),
        "name": rabbitmq.secure(rabbitmq.unknown),
    }

    def refusal(what: str) -> str:
        with pytest.raises(UserError) as raised:
            connect(endpoints[what])
        return str(raised.value)

    return run_parallel(endpoints, refusal)


def test_a_wrong_password(refusals: Mapping[str, Future[str]]) -> None:
    assert "wrong user name or password" in refusals["password"].result()


def test_a_client_without_authentication_is_refused(rabbitmq: SharedRabbitmq) -> None:
    with pytest.raises(UserError, match=r"without|does not offer SASL ANONYMOUS"):
        connect(Endpoint(rabbitmq.plain.host, rabbitmq.plain.port))


def test_a_client_certificate_is_required(rabbitmq: SharedRabbitmq, secure: Endpoint) -> None:
    with pytest.raises(UserError, match="requires a client certificate"):
        connect(Endpoint(secure.host, secure.port, TlsSettings(trust=rabbitmq.ca_file)))


def test_a_foreign_client_certificate(rabbitmq: SharedRabbitmq, secure: Endpoint, tmp_path: Path) -> None:
    unknown = LabCa(tmp_path, "Another CA").issue(SENDER)
    tls = tls_of(unknown, trust=rabbitmq.ca_file)
    with pytest.raises(UserError, match=r"refused our client certificate .* does not know the CA"):
        connect(Endpoint(secure.host, secure.port, tls))


def test_a_certificate_whose_name_the_broker_does_not_know(refusals: Mapping[str, Future[str]]) -> None:
    assert "certificate" in refusals["name"].result()
