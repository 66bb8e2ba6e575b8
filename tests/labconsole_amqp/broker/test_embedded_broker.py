"""The embedded broker: order, bounds, redelivery, access; also with proton's blocking client."""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from proton import ConnectionException, Message, SSLDomain, symbol, ubyte
from proton.utils import BlockingConnection, LinkDetached

from labconsole.errors import UserError
from labconsole_amqp.broker.embedded_broker import Broker, BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.link.connection import Connection, Endpoint, connect
from labconsole_amqp.link.proton_engine import lib
from labconsole_amqp.link.queue_probe import _ProbeReceiver
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.wire.template import Template
from tests.labconsole_amqp.amqp_frames import SASL, SASL_INIT, SASL_OUTCOME, frame
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab_pki import LabCa, tls_of

# An amqp-value of 16 bytes: 8 for the stamp, 8 for the number.
MESSAGE = Template(b"\x00\x53\x77\xa0\x10" + bytes(16), stamp_offset=5, number_offset=13)


def until(done: Callable[[], bool], *pump: Connection) -> None:
    """Pump until `done`."""
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        for connection in pump:
            connection.pump(0.01)
        time.sleep(0.005)


def send(sender: Sender, count: int) -> None:
    """Send messages numbered from 0, and wait for their acknowledgements."""
    deadline = time.monotonic() + 30
    first = sender.sent
    while sender.sent < first + count:
        assert time.monotonic() < deadline
        sender.send(MESSAGE, first + count - sender.sent, sender.sent)
        sender.pump(0.01)
    assert sender.drain(5) == 0


def receive(receiver: Receiver, count: int) -> list[int]:
    """The numbers of `count` messages."""
    numbers: list[int] = []
    deadline = time.monotonic() + 30
    while len(numbers) < count:
        assert time.monotonic() < deadline
        numbers += receiver.receive(count - len(numbers), 0.1).numbers.tolist()
    return numbers


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with serving(BrokerSettings(queues=("q", "other"))) as running:
        yield running


class TestQueues:
    def test_first_in_first_out_and_queues_do_not_mix(self, broker: RunningBroker) -> None:
        with connect(broker.plain) as connection:
            send(Sender(connection, "q"), 1000)
            send(Sender(connection, "other"), 3)
            assert broker.broker.depths() == {"q": 1000, "other": 3}
            assert receive(Receiver(connection, "q", templates=[MESSAGE]), 1000) == list(range(1000))
            until(lambda: broker.broker.counts()["q"].delivered == 1000, connection)
            assert broker.broker.depths() == {"q": 0, "other": 3}

    def test_competing_consumers_share_the_messages(self, broker: RunningBroker) -> None:
        with connect(broker.plain) as one, connect(broker.plain) as two:
            receivers = [Receiver(c, "q", window=50, templates=[MESSAGE]) for c in (one, two)]
            got: Counter[int] = Counter()
            share = [0, 0]
            with connect(broker.plain) as producer:
                send(Sender(producer, "q"), 2000)
                while sum(share) < 2000:
                    for index, receiver in enumerate(receivers):
                        numbers = receiver.receive(100, 0.02).numbers.tolist()
                        got.update(numbers)
                        share[index] += len(numbers)
            assert got == Counter(range(2000))
            assert min(share) > 500

    def test_several_producers_share_the_room(self) -> None:
        limits = QueueLimits(messages=100, window=80)
        with (
            serving(BrokerSettings(queues=("q",), limits=limits)) as broker,
            connect(broker.plain) as one,
            connect(broker.plain) as two,
        ):
            senders = [Sender(one, "q"), Sender(two, "q")]
            until(lambda: sum(sender.capacity for sender in senders) == 100, one, two)
            for sender in senders:
                sender.send(MESSAGE, 100)
                assert sender.drain(5) == 0
            assert broker.broker.depths() == {"q": 100}

    def test_a_full_queue_stops_its_producer_until_it_is_emptied(self) -> None:
        """A relay must give new credit when its queue has drained, or the producer stalls for ever."""
        with (
            serving(BrokerSettings(queues=("q",), limits=QueueLimits(messages=64))) as broker,
            connect(broker.plain) as producer,
            connect(broker.plain) as consumer,
        ):
            sender = Sender(producer, "q")
            send(sender, 64)
            sender.pump(0.2)
            assert (sender.capacity, broker.broker.depths()) == (0, {"q": 64})
            receiver = Receiver(consumer, "q", window=10, templates=[MESSAGE])
            assert receive(receiver, 64) == list(range(64))
            until(lambda: sender.capacity == 64, producer, consumer)
            sent = 64
            got: list[int] = []
            while len(got) < 436:
                sent += len(sender.send(MESSAGE, 500 - sent, sent))
                sender.pump(0)
                got += receiver.receive(100, 0.01).numbers.tolist()
            assert got == list(range(64, 500))

    def test_large_queues_in_bytes_get_no_new_credit(self) -> None:
        limits = QueueLimits(messages=1000, size_bytes=2000, window=10)
        with serving(BrokerSettings(queues=("q",), limits=limits)) as broker, connect(broker.plain) as producer:
            sender = Sender(producer, "q")
            for _ in range(40):
                sender.send(MESSAGE, 10)
                sender.pump(0.01)
            assert 2000 / 21 <= sender.sent <= 2000 / 21 + 20


class TestSettlement:
    def test_messages_are_accepted_once_they_are_in_the_queue(self, broker: RunningBroker) -> None:
        with connect(broker.plain) as connection:
            sender = Sender(connection, "q")
            send(sender, 10)
            assert sender.accepted == broker.broker.depths()["q"] == broker.broker.counts()["q"].received == 10

    @pytest.mark.parametrize("reset", [False, True], ids=["end", "reset"])
    def test_unsettled_messages_of_a_lost_consumer_are_requeued_at_the_front(
        self, broker: RunningBroker, reset: bool
    ) -> None:
        with connect(broker.plain) as producer:
            send(Sender(producer, "q"), 100)
            lost = connect(broker.plain)
            receiver = Receiver(lost, "q", window=40, templates=[MESSAGE])
            assert receive(receiver, 5) == [0, 1, 2, 3, 4]
            until(lambda: broker.broker.counts()["q"].delivered == 5, lost)
            if reset:
                lost.engine.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                lost.engine.sock.close()
            else:
                lost.engine.sock.shutdown(socket.SHUT_RDWR)
            until(lambda: broker.broker.depths()["q"] == 95, producer)
            assert receive(Receiver(producer, "q", templates=[MESSAGE]), 95) == list(range(5, 100))
            lost.close()

    def test_unsettled_messages_of_a_detached_consumer_are_requeued(self, broker: RunningBroker) -> None:
        with connect(broker.plain) as connection:
            send(Sender(connection, "q"), 20)
            receiver = Receiver(connection, "q", templates=[MESSAGE])
            until(lambda: broker.broker.depths()["q"] == 0, connection)
            receiver.close()
            assert broker.broker.depths()["q"] == 20
            assert receive(Receiver(connection, "q", templates=[MESSAGE]), 20) == list(range(20))

    def test_pre_settled_messages_are_gone_once_sent(self, broker: RunningBroker) -> None:
        with connect(broker.plain) as connection:
            send(Sender(connection, "q", settled=True), 20)
            receiver = Receiver(connection, "q", settled=True, templates=[MESSAGE])
            assert receive(receiver, 20) == list(range(20))
            assert broker.broker.counts()["q"].delivered == 20
            receiver.close()
            assert broker.broker.depths()["q"] == 0

    def test_released_messages_return_and_rejected_ones_do_not(self, broker: RunningBroker) -> None:
        client = BlockingConnection(f"127.0.0.1:{broker.ports.plain}", timeout=5)
        try:
            sender = client.create_sender("q")
            for body in ("a", "b", "c"):
                sender.send(Message(body=body))
            receiver = client.create_receiver("q", credit=1)
            assert receiver.receive(5).body == "a"
            receiver.release(delivered=False)
            assert receiver.receive(5).body == "a"
            receiver.reject()
            assert receiver.receive(5).body == "b"
            receiver.accept()
        finally:
            client.close()
        with connect(broker.plain) as connection:
            until(lambda: broker.broker.depths()["q"] == 1, connection)
        counts = broker.broker.counts()["q"]
        assert (counts.received, counts.delivered, counts.rejected) == (3, 1, 1)

    def test_a_draining_consumer_is_notified_when_the_queue_is_empty(self, broker: RunningBroker) -> None:
        with connect(broker.plain) as connection:
            send(Sender(connection, "q"), 3)
            link = _ProbeReceiver(connection, "q")._link
            lib.pn_link_drain(link, 10)
            until(lambda: not lib.pn_link_draining(link), connection)
            assert lib.pn_link_queued(link) == lib.pn_link_credit(link) == 3


class TestLimits:
    def test_a_message_above_the_limit_closes_its_link(self) -> None:
        limits = QueueLimits(max_message_size=1000)
        with serving(BrokerSettings(queues=("q",), limits=limits)) as broker:
            client = BlockingConnection(f"127.0.0.1:{broker.ports.plain}", timeout=5)
            try:
                sender = client.create_sender("q")
                sender.send(Message(body=b"x" * 900))
                with pytest.raises(LinkDetached, match="takes at most 1000 bytes"):
                    sender.send(Message(body=b"x" * 1100))
            finally:
                client.close()
            assert broker.broker.depths() == {"q": 1}

    def test_a_message_that_never_ends_is_stopped(self) -> None:
        limits = QueueLimits(max_message_size=100_000)
        with serving(BrokerSettings(queues=("q",), limits=limits)) as broker:
            client = BlockingConnection(f"127.0.0.1:{broker.ports.plain}", timeout=5)
            try:
                sender = client.create_sender("q")
                with pytest.raises(LinkDetached, match="takes at most 100000 bytes"):
                    sender.send(Message(body=b"x" * 30_000_000))
            finally:
                client.close()

    def test_garbage_leaves_other_clients_unharmed(self, broker: RunningBroker) -> None:
        with connect(broker.plain) as connection:
            for garbage in (
                b"GET / HTTP/1.1\r\n\r\n",
                b"AMQP\x03\x01\x00\x00\xff\xff\xff\xff\x02\x01\x00\x00",
                b"AMQP",
            ):
                with socket.create_connection(("127.0.0.1", broker.plain.port), 5) as sock:
                    sock.sendall(garbage)
                    sock.settimeout(0.5 if garbage == b"AMQP" else 30)
                    try:
                        while sock.recv(4096):
                            pass
                    except TimeoutError:
                        assert garbage == b"AMQP"
            with socket.create_connection(("127.0.0.1", broker.plain.port), 5) as sock:
                sock.sendall(b"AMQP\x00\x01\x00\x00" + b"\x00\x00\x00\x02\x02\x00\x00\x00")
                sock.settimeout(30)
                answer = b""
                while part := sock.recv(4096):
                    answer += part
                assert b"amqp:" in answer
            send(Sender(connection, "q"), 5)
        assert broker.refused == Counter({"client does not speak AMQP 1.0": 1, "client sent a malformed SASL frame": 1})

    @pytest.mark.parametrize("sent", [b"", b"AMQP\x00\x01\x00\x00"], ids=["nothing", "header only"])
    def test_a_client_that_does_not_finish_the_handshake_is_disconnected(
        self, broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, sent: bytes
    ) -> None:
        monkeypatch.setattr("labconsole_amqp.broker.client_connection._HANDSHAKE_NS", 100_000_000)
        with socket.create_connection(("127.0.0.1", broker.plain.port), 5) as sock:
            sock.sendall(sent)
            sock.settimeout(30)
            while sock.recv(4096):
                pass
        assert broker.refused == Counter({"client did not finish its handshake in time": 1})

    @pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
    def test_a_client_that_disconnects_before_it_is_accepted(self, secure: bool, pki: LabCa) -> None:
        """As a port scan or a health check does: its connection is already reset when the broker accepts it."""
        server = pki.issue("reset broker")
        tls = tls_of(server)
        refused: list[str] = []
        broker = Broker(BrokerSettings(queues=("q",), tls_port=0, tls=tls), refused.append)
        ports = broker.listen()
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", ports.tls if secure else ports.plain), 5) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        deadline = time.monotonic() + (30 if secure else 0.5)
        broker.serve(lambda: len(refused) == 3 or time.monotonic() > deadline, lambda: None)
        assert len(refused) == (3 if secure else 0)
        broker.close()

    def test_a_port_that_is_taken(self, broker: RunningBroker) -> None:
        other = Broker(BrokerSettings(plain_port=broker.ports.plain), print)
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{broker.ports.plain} .*: choose another port"):
            other.listen()
        other.close()


class TestAccess:
    @pytest.fixture
    def secure(self, pki: LabCa) -> Iterator[RunningBroker]:
        server = pki.issue("broker")
        tls = tls_of(server)
        access = Access(anonymous=False, users={"lab": "secret"})
        with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls, access=access)) as running:
            yield running

    def test_plain_and_tls_port_serve_the_same_queues(self, secure: RunningBroker, pki: LabCa) -> None:
        client = pki.issue("State A")
        assert secure.ports.tls is not None
        tls = Endpoint("127.0.0.1", secure.ports.tls, tls_of(client))
        plain = Endpoint("127.0.0.1", secure.plain.port, username="lab", password="secret")
        with connect(tls) as one, connect(plain) as two:
            send(Sender(one, "q"), 100)
            assert receive(Receiver(two, "q", templates=[MESSAGE]), 100) == list(range(100))
        assert not secure.refused

    def test_reasons_of_refusal_are_counted(self, secure: RunningBroker, pki: LabCa, tmp_path: Path) -> None:
        assert secure.ports.tls is not None
        old, unknown = pki.issue("old", days=(-20, -10)), LabCa(tmp_path, "Another CA").issue("unknown")
        settings = [
            TlsSettings(trust=pki.ca_file),
            tls_of(old),
            tls_of(unknown, trust=pki.ca_file),
        ]
        endpoints = [Endpoint("127.0.0.1", secure.ports.tls, tls) for tls in settings]
        endpoints += [
            Endpoint("127.0.0.1", secure.plain.port, username="lab", password="wrong"),
            Endpoint("127.0.0.1", secure.plain.port, username="other", password="secret"),
        ]
        for endpoint in endpoints:
            with pytest.raises(UserError):
                connect(endpoint)
        reasons = {
            "client certificate missing": 1,
            "client certificate expired": 1,
            "client certificate of a foreign CA": 1,
            "wrong user name or password": 2,
        }
        until(lambda: secure.refused == Counter(reasons))

    @pytest.mark.parametrize("mechanism", ["ANONYMOUS", "EXTERNAL"])
    def test_a_mechanism_that_was_not_offered_is_refused(self, secure: RunningBroker, mechanism: str) -> None:
        """Here EXTERNAL names no certificate: the port is plain."""
        with socket.create_connection(("127.0.0.1", secure.plain.port), timeout=10) as sock:
            sock.sendall(SASL + frame(SASL_INIT, [symbol(mechanism), b""], kind=1))
            received = b""
            while part := sock.recv(4096):
                received += part
        auth_failed = frame(SASL_OUTCOME, [ubyte(1)], kind=1)
        assert received.endswith(auth_failed) and b"PLAIN" in received
        until(lambda: secure.refused == Counter({f"SASL {mechanism} not offered": 1}))

    def test_anonymous_clients_are_refused(self, secure: RunningBroker) -> None:
        with pytest.raises(UserError, match="does not offer SASL ANONYMOUS"):
            connect(secure.plain)
        with socket.create_connection(("127.0.0.1", secure.plain.port), 5) as sock:
            sock.sendall(b"AMQP\x00\x01\x00\x00")
            sock.settimeout(30)
            assert sock.recv(8) == b"AMQP\x03\x01\x00\x00"
            assert sock.recv(8) == b""

    def test_protons_client_is_accepted_with_its_certificate(self, secure: RunningBroker, pki: LabCa) -> None:
        """A second implementation of TLS and SASL EXTERNAL on the client's side."""
        client = pki.issue("proton client")
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_credentials(str(client.certificate), str(client.key), None)
        domain.set_trusted_ca_db(str(pki.ca_file))
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        connection = BlockingConnection(
            f"amqps://localhost:{secure.ports.tls}", timeout=5, ssl_domain=domain, allowed_mechs="EXTERNAL"
        )
        try:
            connection.create_sender("q").send(Message(body="hello", id=7))
            message = connection.create_receiver("q").receive(5)
            assert (message.body, message.id) == ("hello", 7)
        finally:
            connection.close()

    def test_protons_client_with_a_wrong_password_is_refused(self, secure: RunningBroker) -> None:
        with pytest.raises(ConnectionException):
            BlockingConnection(
                f"127.0.0.1:{secure.ports.plain}",
                timeout=5,
                user="lab",
                password="wrong",
                allow_insecure_mechs=True,
                reconnect=False,
            )

    def test_a_tls_port_needs_an_identity(self) -> None:
        broker = Broker(BrokerSettings(tls_port=0), print)
        with pytest.raises(UserError, match="needs the broker's certificate and key"):
            broker.listen()
        broker.close()

    @pytest.mark.parametrize("password", ["secre", "secret2", "SECRET", " "])
    def test_only_the_whole_password_is_accepted(self, secure: RunningBroker, password: str) -> None:
        with pytest.raises(UserError):
            connect(Endpoint("127.0.0.1", secure.plain.port, username="lab", password=password))
        until(lambda: secure.refused == Counter({"wrong user name or password": 1}))
