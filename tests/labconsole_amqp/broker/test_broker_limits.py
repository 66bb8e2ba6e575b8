"""Limits of one client of the embedded broker: only a client that exceeds one loses its connection."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest
from proton import Described, uint, ulong

from labconsole_amqp.broker import client_connection
from labconsole_amqp.broker.client_connection import ClientConnection, Stage
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.broker.queue import Queue, QueueLimits
from labconsole_amqp.link.connection import connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.server_handshake import Access
from tests.labconsole_amqp.amqp_frames import AMQP, ATTACH, BEGIN, CLOSE, DETACH, FLOW, OPEN, SASL, TRANSFER, frame
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.link_transfer import receive_all, send_all, template


class RawClient:
    """A client that breaks the rules: it sends frames without reading."""

    def __init__(self, broker: RunningBroker) -> None:
        self.sock = socket.create_connection(("127.0.0.1", broker.plain.port), 5)
        self.sock.sendall(AMQP + frame(OPEN, ["raw"]))

    def begin(self, channel: int = 0) -> None:
        self.sock.sendall(frame(BEGIN, [None, uint(0), uint(2**31), uint(2**31)], channel=channel))

    def attach(self, handle: int, address: str = "q") -> None:
        source, target = Described(ulong(0x28), [address]), Described(ulong(0x29), [address])
        fields = [f"link {handle}", uint(handle), False, None, None, source, target, None, None, uint(0)]
        self.sock.sendall(frame(ATTACH, fields))

    def transfer(self, handle: int, number: int, payload: bytes, *, more: bool = False) -> None:
        fields = [uint(handle), uint(number), number.to_bytes(4, "big"), uint(0), False, more]
        self.sock.sendall(frame(TRANSFER, fields, payload))

    def answer(self) -> bytes:
        """All output of the broker until it disconnects."""
        received = b""
        while True:
            try:
                data = self.sock.recv(65536)
            except ConnectionResetError:
                return received
            if not data:
                return received
            received += data

    def until(self, expected: bytes) -> None:
        """Read until the broker has sent `expected`."""
        received = b""
        while expected not in received:
            data = self.sock.recv(65536)
            assert data, received
            received += data


@pytest.fixture
def raw(broker: RunningBroker) -> Iterator[RawClient]:
    client = RawClient(broker)
    client.begin()
    yield client
    client.sock.close()


def serves_others(broker: RunningBroker) -> None:
    with connect(broker.plain) as connection:
        send_all(Sender(connection, "q"), template(), 3)
        receive_all(Receiver(connection, "q", templates=[template()]), 3)


@pytest.mark.parametrize(
    "body",
    [
        b"\x00\x53\x41\xc0\x05\x01\xa3\x02\xff\xfe",
        b"\x00\x53\x41\xc0\x05\x01\xa1\x02\xff\xfe",
        b"\x00\x53\x41\x00\x00\x00\x00\x00\x00\x00",
        b"\x00\x53\x41\xe0\x05\x01\xa1\x02ab",
        b"\x00\x53\x41\xc1\x05\x02\x40\x40\x40\x40",
        b"\x00\xa3\x01x\xc0\x04\x01\x73\xff\xff\xff\xff",
        b"\x00\x53\x41\xc0\x06\x01\x73\xff\xff\xff\xff",
        b"\x00\x53\x41\xc0\x03\x01\x00\x53\x41\x45",
        b"\x00\x53\x41\xd0\xff\xff\xff\xff\x00\x00",
        b"",
    ],
)
def test_a_malformed_login_ends_its_connection_alone(body: bytes) -> None:
    with (
        serving(BrokerSettings(queues=("q",), access=Access(users={"lab": "secret"}))) as broker,
        socket.create_connection(("127.0.0.1", broker.plain.port), 5) as sock,
    ):
        sock.sendall(SASL + (len(body) + 8).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body)
        while sock.recv(4096):
            pass
        serves_others(broker)
        assert sum(broker.refused.values()) == 1


class TestSize:
    def test_an_endless_message_is_refused_without_a_limit_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The engine would end the process at 2 GB."""
        monkeypatch.setattr("labconsole_amqp.broker.queue.ENGINE_BYTES", 1 << 20)
        with serving(BrokerSettings(queues=("q",), limits=QueueLimits(max_message_size=0))) as broker:
            client = RawClient(broker)
            client.begin()
            client.attach(0)
            client.until(b"link 0")
            for _ in range(20):
                client.transfer(0, 0, bytes(100_000), more=True)
            client.until(b"message-size-exceeded")
            serves_others(broker)
            client.sock.close()

    def test_messages_beyond_the_credit_are_discarded(self) -> None:
        with serving(BrokerSettings(queues=("q",), limits=QueueLimits(messages=10))) as broker:
            raw = RawClient(broker)
            raw.begin()
            raw.attach(0)
            raw.until(b"link 0")
            for number in range(50):
                raw.transfer(0, number, b"\0\x53\x77\xa1\x01x")
            raw.until(b"transfer-limit-exceeded")
            for number in range(50, 400):
                raw.transfer(0, number, bytes(100_000))
            raw.sock.sendall(frame(CLOSE, []))
            assert frame(CLOSE, []) in raw.answer()
            assert broker.broker.depths()["q"] <= 10
            assert not broker.refused
            raw.sock.close()

    def test_partial_messages_of_all_links_count_together(
        self, broker: RunningBroker, raw: RawClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client_connection, "_SESSION_BYTES", 1 << 20)
        monkeypatch.setattr("labconsole_amqp.broker.queue.ENGINE_BYTES", 1 << 20)
        for handle in range(5):
            raw.attach(handle)
        raw.until(b"link 4")
        for part in range(9):
            for handle in range(5):
                raw.transfer(handle, handle, bytes(100_000), more=True) if not part else raw.sock.sendall(
                    frame(TRANSFER, [uint(handle), None, None, None, None, True], bytes(100_000))
                )
        assert b"resource-limit-exceeded" in raw.answer()
        serves_others(broker)

    def test_a_queue_full_in_bytes_leaves_the_rest_to_its_producers(self) -> None:
        """Earlier credit does not fill the broker's memory; nothing is lost."""
        limits = QueueLimits(size_bytes=1_000_000)
        with (
            serving(BrokerSettings(queues=("q",), limits=limits)) as broker,
            connect(broker.plain) as producer,
            connect(broker.plain) as consumer,
        ):
            sender, message = Sender(producer, "q"), template(b"x" * 50_000)
            while sender.sent < 600:
                sender.send(message, 600 - sender.sent, sender.sent)
                sender.pump(0.05)
            for _ in range(5):
                sender.pump(0.02)
            assert broker.broker.depths()["q"] < 40
            assert sender.unsettled > 500
            receiver = Receiver(consumer, "q", templates=[message])
            got: list[int] = []
            deadline = time.monotonic() + 20
            while len(got) < 600:
                assert time.monotonic() < deadline
                got += receiver.receive(100, 0.02).numbers.tolist()
                sender.pump(0)
            assert got == list(range(600))
            assert sender.drain(5) == 0

    def test_a_consumer_that_settles_nothing_gets_no_more_than_a_queue_holds(self) -> None:
        limits = QueueLimits(size_bytes=1_000_000)
        large = template(b"x" * 50_000)
        with serving(BrokerSettings(queues=("q",), limits=limits)) as broker, connect(broker.plain) as client:
            sender = Sender(client, "q")
            raw = RawClient(broker)
            raw.begin()
            source, target = Described(ulong(0x28), ["q"]), Described(ulong(0x29), ["q"])
            raw.sock.sendall(frame(ATTACH, ["in", uint(0), True, None, None, source, target]))
            raw.sock.sendall(frame(FLOW, [uint(0), uint(2**31), uint(0), uint(2**31), uint(0), uint(0), uint(10**6)]))
            raw.sock.setblocking(False)
            for _ in range(60):
                sender.send(large, 4)
                sender.pump(0.005)
                with suppress(BlockingIOError):
                    raw.sock.recv(1 << 20)
            assert sender.unsettled > 0, "the broker holds back what it has no room for"
            assert broker.broker.counts()["q"].received < 100
            raw.sock.close()


class TestNumber:
    def test_links_of_one_connection(self, broker: RunningBroker, raw: RawClient) -> None:
        for handle in range(300):
            raw.attach(handle)
        assert b"opened more than 256 links" in raw.answer()
        serves_others(broker)

    def test_links_that_were_refused_and_closed_count_no_longer(self, broker: RunningBroker, raw: RawClient) -> None:
        for _ in range(300):
            raw.attach(0, "no such queue")
            raw.sock.sendall(frame(DETACH, [uint(0), True]))
        raw.sock.sendall(frame(CLOSE, []))
        assert frame(CLOSE, []) in raw.answer()
        assert not broker.refused

    def test_the_refusal_of_a_long_name_is_short(self, broker: RunningBroker, raw: RawClient) -> None:
        raw.attach(0, "q" * 60_000)
        raw.until(b"no queue " + b"q" * 200)
        serves_others(broker)


def test_a_client_that_closes_late_has_finished_its_handshake() -> None:
    """The broker may check its time limits between the last frame of a client and the answer to it."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    refused: Counter[str] = Counter()
    peer = ClientConnection(
        ours, "broker", Access(), {"q": Queue("q", QueueLimits())}.get, lambda reason: refused.update([reason])
    )
    with theirs:
        theirs.sendall(AMQP + frame(OPEN, ["late"]))
        peer.work()
        peer.flush()
        with pytest.MonkeyPatch.context() as later:
            later.setattr(client_connection, "now_ns", lambda: time.monotonic_ns() + 3_600_000_000_000)
            theirs.sendall(frame(CLOSE, []))
            peer.work()
            peer.tick()
        assert peer.stage is Stage.CLOSING
        peer.drop()
    assert not refused
