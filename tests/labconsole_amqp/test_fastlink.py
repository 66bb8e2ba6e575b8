"""The fast link: what is sent arrives byte for byte, and whatever goes wrong is one clear sentence."""

from __future__ import annotations

import socket
import ssl
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest
from proton import Message

from labconsole.clock import now_ns
from labconsole.trial import TrialError
from labconsole_amqp import envelope
from labconsole_amqp.broker import BrokerSettings
from labconsole_amqp.broker_queue import QueueLimits
from labconsole_amqp.broker_sasl import Access
from labconsole_amqp.fastlink import (
    Batch,
    Connection,
    Endpoint,
    Receiver,
    Sender,
    Template,
    TlsSettings,
    connect,
    drain_queue,
    probe_queue_depth,
)
from tests.labconsole_amqp.embedded import Serving, broker_process, serving
from tests.labconsole_amqp.lab_pki import PASSPHRASE, LabCa

PAYLOAD = b"(FPL-MAS123-IS -B738/M-SDFGIRWY/S -WMKK0100 -N0450F350 DCT -WSSS0055 -0)"


def template(payload: bytes = PAYLOAD) -> Template:
    message, stamp = envelope.encode(envelope.Parts(payload), message_id=envelope.message_number(0, 0))
    return Template(message, stamp, stamp - envelope.NUMBER_BEFORE_STAMP)


def send_all(sender: Sender, message: Template, count: int) -> list[int]:
    """Send `count` messages numbered from 0; returns the times of sending."""
    times: list[int] = []
    deadline = time.monotonic() + 10
    while len(times) < count and time.monotonic() < deadline:
        times += sender.send(message, count - len(times), len(times)).times_ns.tolist()
        sender.pump(0.05 if sender.capacity == 0 else 0)
    assert sender.drain(5) == 0
    return times


def await_credit(sender: Sender) -> None:
    deadline = time.monotonic() + 5
    while sender.capacity == 0 and time.monotonic() < deadline:
        sender.pump(0.1)


def receive_all(receiver: Receiver, count: int, seconds: float = 10) -> list[Batch]:
    """Receive until `count` messages are there."""
    batches: list[Batch] = []
    deadline = time.monotonic() + seconds
    while sum(map(len, batches)) < count and time.monotonic() < deadline:
        batches.append(receiver.receive(count, 0.1))
    assert sum(map(len, batches)) == count
    return [batch for batch in batches if len(batch)]


def raw_messages(receiver: Receiver, count: int) -> list[bytes]:
    return [batch.raw[index] for batch in receive_all(receiver, count) for index in range(len(batch))]


@pytest.fixture
def broker() -> Iterator[Serving]:
    with serving(BrokerSettings(queues=("q",))) as running:
        yield running


@pytest.fixture
def connection(broker: Serving) -> Iterator[Connection]:
    with connect(broker.plain) as opened:
        yield opened


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> LabCa:
    return LabCa(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def tls_broker(pki: LabCa) -> Iterator[Serving]:
    server = pki.issue("broker")
    tls = TlsSettings(pki.ca_file, server.certificate, server.key)
    with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls, access=Access(users={"lab": "secret"}))) as running:
        yield running


def tls_endpoint(broker: Serving, settings: TlsSettings, host: str = "127.0.0.1") -> Endpoint:
    assert broker.ports.tls is not None
    return Endpoint(host, broker.ports.tls, settings, connect_timeout_s=5)


@contextmanager
def broker_up_to(version: ssl.TLSVersion, pki: LabCa) -> Iterator[Serving]:
    """A broker that speaks no later version of TLS."""
    server = pki.issue("broker of its time")
    tls = TlsSettings(pki.ca_file, server.certificate, server.key)
    with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as running:
        context = running.broker._context
        assert context is not None
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version, context.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED, version
        yield running


class TestTransfer:
    def test_messages_of_a_template_arrive_in_order_with_stamp_and_number(self, connection: Connection) -> None:
        before_ms = time.time_ns() // 1_000_000
        sent = send_all(Sender(connection, "q"), template(), 3000)
        batches = receive_all(Receiver(connection, "q", templates=[template()]), 3000)
        numbers = np.concatenate([batch.numbers for batch in batches])
        assert numbers.tolist() == list(range(3000))
        assert all(batch.matched.all() and not batch.raw for batch in batches)
        stamps = np.concatenate([batch.stamps_ms for batch in batches])
        assert before_ms <= stamps.min() <= stamps.max() <= time.time_ns() // 1_000_000
        received = np.concatenate([batch.received_ns for batch in batches])
        assert np.all(np.diff(received) >= 0)
        assert np.all(received > np.array(sent))
        assert {size for batch in batches for size in batch.sizes.tolist()} == {len(template().message)}

    def test_a_second_reader_decodes_what_was_sent(self, connection: Connection) -> None:
        send_all(Sender(connection, "q"), template(), 2)
        for number, raw in enumerate(raw_messages(Receiver(connection, "q"), 2)):
            message = Message()
            message.decode(raw)
            assert message.body == PAYLOAD.decode()
            assert message.id == number
            assert message.properties is not None
            assert abs(message.properties["sent_time"] - time.time() * 1000) < 10_000

    def test_distinct_messages_pass_unchanged_but_for_the_stamp(self, connection: Connection) -> None:
        encoded = [envelope.encode(envelope.Parts(f"payload {n}".encode())) for n in range(600)]
        sender = Sender(connection, "q")
        await_credit(sender)
        stamp = encoded[0][1]
        messages = [message for message, _ in encoded]
        sent = sender.send_messages(messages, stamp)
        got = raw_messages(Receiver(connection, "q"), 600)
        assert [raw[:stamp] + raw[stamp + 8 :] for raw in got] == [m[:stamp] + m[stamp + 8 :] for m in messages]
        assert [envelope.decode(raw).stamp_ms for raw in got] == sent.stamps_ms.tolist()

    @pytest.mark.parametrize("size", [42_708, 300_000])
    def test_large_messages_arrive_whole(self, connection: Connection, size: int) -> None:
        """43 KB is one frame; 300 KB needs three, and no row of the receiver has room for it."""
        payload = bytes(65 + n % 26 for n in range(size))
        send_all(Sender(connection, "q"), template(payload), 5)
        for raw in raw_messages(Receiver(connection, "q"), 5):
            assert envelope.decode(raw).body == payload

    def test_a_changed_byte_does_not_match(self, connection: Connection) -> None:
        good = template()
        bad = Template(good.message[:-1] + b"?", good.stamp_offset, good.number_offset)
        sender = Sender(connection, "q")
        for message in (good, bad, good):
            send_all(sender, message, 1)
        batches = receive_all(Receiver(connection, "q", templates=[good]), 3)
        assert [flag for batch in batches for flag in batch.matched.tolist()] == [True, False, True]
        [raw] = [raw for batch in batches for raw in batch.raw.values()]
        assert envelope.decode(raw).body == PAYLOAD[:-1] + b"?"

    def test_a_learned_form_passes_in_the_fast_path(self, connection: Connection) -> None:
        ours, theirs = template(), Message(body=PAYLOAD.decode(), properties={"sent_time": 1 << 40}, durable=True)
        foreign = bytes(theirs.encode())
        stamp = foreign.index(b"sent_time\x81") + 10
        sender, receiver = Sender(connection, "q"), Receiver(connection, "q", templates=[ours])
        await_credit(sender)
        sent = sender.send_messages([foreign], stamp)
        [batch] = receive_all(receiver, 1)
        assert not batch.matched[0]
        assert envelope.decode(batch.raw[0]).stamp_ms == sent.stamps_ms[0]
        receiver.learn(Template(batch.raw[0], stamp))
        sent = sender.send_messages([foreign], stamp)
        send_all(sender, ours, 1)
        batches = receive_all(receiver, 2)
        assert all(batch.matched.all() for batch in batches)
        assert int(batches[0].stamps_ms[0]) == sent.stamps_ms[0]


class TestSettlement:
    def test_acknowledged_messages_are_accepted_and_timed(self, connection: Connection) -> None:
        sender = Sender(connection, "q")
        sent = send_all(sender, template(), 500)
        acknowledged = sender.take_acknowledged_ns()
        assert (sender.sent, sender.accepted, sender.unsettled) == (500, 500, 0)
        assert np.all(acknowledged > np.array(sent))
        assert len(sender.take_acknowledged_ns()) == 0

    def test_pre_settled_messages_need_no_acknowledgement(self, connection: Connection) -> None:
        sender = Sender(connection, "q", settled=True)
        send_all(sender, template(), 500)
        assert (sender.sent, sender.accepted, sender.unsettled) == (500, 0, 0)
        receive_all(Receiver(connection, "q", settled=True, templates=[template()]), 500)

    def test_the_receiver_gets_no_more_than_its_window(self, broker: Serving, connection: Connection) -> None:
        with connect(broker.plain) as other:
            receiver = Receiver(other, "q", window=20)
            send_all(Sender(connection, "q"), template(), 100)
            time.sleep(0.2)
            assert broker.broker.depths() == {"q": 80}
            receive_all(receiver, 100)

    def test_sending_stops_without_credit(self) -> None:
        with (
            serving(BrokerSettings(queues=("q",), limits=QueueLimits(messages=30))) as broker,
            connect(broker.plain) as c,
        ):
            sender = Sender(c, "q")
            await_credit(sender)
            assert len(sender.send(template(), 100)) == 30
            assert sender.capacity == 0
            assert len(sender.send(template(), 100)) == 0


class TestQueueProbe:
    def test_it_counts_up_to_the_limit_and_leaves_everything_in_order(self, connection: Connection) -> None:
        send_all(Sender(connection, "q"), template(), 20)
        assert probe_queue_depth(connection, "q", quiet_s=0.2) == 1
        assert probe_queue_depth(connection, "q", limit=100, quiet_s=0.2) == 20
        batches = receive_all(Receiver(connection, "q", templates=[template()]), 20)
        assert [number for batch in batches for number in batch.numbers.tolist()] == list(range(20))

    def test_draining_empties_the_queue(self, connection: Connection) -> None:
        send_all(Sender(connection, "q"), template(), 20)
        assert drain_queue(connection, "q", limit=5, quiet_s=0.2) == 5
        assert drain_queue(connection, "q", limit=1000, quiet_s=0.2) == 15
        assert probe_queue_depth(connection, "q", quiet_s=0.2) == 0


class TestConnecting:
    def test_the_steps_are_timed(self, tls_broker: Serving, pki: LabCa) -> None:
        client = pki.issue("timed")
        began = now_ns()
        with connect(tls_endpoint(tls_broker, TlsSettings(pki.ca_file, client.certificate, client.key))) as opened:
            took = now_ns() - began
            times = opened.times
            assert min(times.tcp_ns, times.tls_ns, times.sasl_ns, times.open_ns) > 0
            assert times.total_ns <= took
            assert opened.tls_version == "TLSv1.3"
            assert Sender(opened, "q").attach_ns > 0

    def test_an_encrypted_key_is_opened_with_the_passphrase(self, tls_broker: Serving, pki: LabCa) -> None:
        client = pki.issue("encrypted", encrypted=True)
        settings = TlsSettings(pki.ca_file, client.certificate, client.key, PASSPHRASE)
        assert PASSPHRASE not in repr(tls_endpoint(tls_broker, settings))
        connect(tls_endpoint(tls_broker, settings)).close()

    @pytest.mark.parametrize("passphrase", [None, "wrong"])
    def test_a_wrong_passphrase(self, tls_broker: Serving, pki: LabCa, passphrase: str | None) -> None:
        client = pki.issue("locked", encrypted=True)
        settings = TlsSettings(pki.ca_file, client.certificate, client.key, passphrase)
        with pytest.raises(TrialError, match="check both files and the key's passphrase"):
            connect(tls_endpoint(tls_broker, settings))

    @pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
    def test_both_tls_versions_are_spoken(self, pki: LabCa, version: str) -> None:
        client = pki.issue("versioned")
        settings = TlsSettings(pki.ca_file, client.certificate, client.key, minimum_version=version)
        offers = ssl.TLSVersion.TLSv1_2 if version == "TLSv1.2" else ssl.TLSVersion.TLSv1_3
        with broker_up_to(offers, pki) as broker, connect(tls_endpoint(broker, settings)) as opened:
            assert opened.tls_version == version
            send_all(Sender(opened, "q"), template(), 100)
            receive_all(Receiver(opened, "q", templates=[template()]), 100)

    def test_user_and_password_let_in(self, tls_broker: Serving) -> None:
        endpoint = tls_broker.plain
        connect(Endpoint(endpoint.host, endpoint.port, username="lab", password="secret")).close()

    def test_a_wrong_password(self, tls_broker: Serving) -> None:
        endpoint = tls_broker.plain
        with pytest.raises(TrialError, match="refused user lab: wrong user name or password"):
            connect(Endpoint(endpoint.host, endpoint.port, username="lab", password="wrong"))

    def test_a_mechanism_that_is_not_offered(self, broker: Serving) -> None:
        with pytest.raises(TrialError, match="does not offer SASL PLAIN"):
            connect(Endpoint("127.0.0.1", broker.plain.port, username="lab", password="secret"))

    def test_nobody_listens(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        with pytest.raises(TrialError, match=f"127.0.0.1:{port} refused the connection: is the broker running"):
            connect(Endpoint("127.0.0.1", port))

    def test_an_unknown_host(self) -> None:
        with pytest.raises(TrialError, match=r"the host name nowhere\.invalid cannot be resolved"):
            connect(Endpoint("nowhere.invalid", 5672))

    def test_a_port_that_does_not_answer(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            endpoint = Endpoint("127.0.0.1", sock.getsockname()[1], connect_timeout_s=0.3)
            with pytest.raises(TrialError, match="does not answer AMQP"):
                connect(endpoint)

    def test_a_port_that_speaks_something_else(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            thread = threading.Thread(target=_answer, args=(sock, b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n"))
            thread.start()
            with pytest.raises(TrialError, match=r"does not speak AMQP 1\.0"):
                connect(Endpoint("127.0.0.1", sock.getsockname()[1], connect_timeout_s=5))
            thread.join()

    def test_a_wrong_ca(self, tls_broker: Serving, tmp_path: Path) -> None:
        settings = TlsSettings(LabCa(tmp_path, "Another CA").ca_file)
        with pytest.raises(TrialError, match=r"is not trusted by .*wrong CA file or foreign certificate"):
            connect(tls_endpoint(tls_broker, settings))

    def test_a_host_name_that_the_certificate_does_not_carry(self, tls_broker: Serving, pki: LabCa) -> None:
        client = pki.issue("named")
        settings = TlsSettings(pki.ca_file, client.certificate, client.key, server_name="swim.example")
        with pytest.raises(TrialError, match=r"is not for swim\.example"):
            connect(tls_endpoint(tls_broker, settings))

    def test_an_expired_server_certificate(self, pki: LabCa) -> None:
        server = pki.issue("old broker", days=(-20, -10))
        tls = TlsSettings(pki.ca_file, server.certificate, server.key)
        with (
            serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as broker,
            pytest.raises(TrialError, match=r"the certificate of .* has expired"),
        ):
            connect(tls_endpoint(broker, TlsSettings(pki.ca_file)))

    def test_a_server_certificate_of_tomorrow(self, pki: LabCa) -> None:
        server = pki.issue("early broker", days=(1, 10))
        tls = TlsSettings(pki.ca_file, server.certificate, server.key)
        with (
            serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as broker,
            pytest.raises(TrialError, match="is not yet valid: check both clocks"),
        ):
            connect(tls_endpoint(broker, TlsSettings(pki.ca_file)))

    @pytest.mark.parametrize(
        ("offers", "minimum", "told"),
        [
            (
                ssl.TLSVersion.TLSv1_2,
                "TLSv1.3",
                r'does not speak TLS 1\.3: set "TLS from" \(tls_minimum\) to',
            ),
            (ssl.TLSVersion.TLSv1_1, "TLSv1.2", r"speaks neither TLS 1\.2 nor 1\.3: it must be updated"),
        ],
    )
    def test_no_tls_version_in_common(self, pki: LabCa, offers: ssl.TLSVersion, minimum: str, told: str) -> None:
        settings = TlsSettings(pki.ca_file, minimum_version=minimum)
        with broker_up_to(offers, pki) as broker, pytest.raises(TrialError, match=told):
            connect(tls_endpoint(broker, settings))

    def test_a_certificate_can_be_trusted_itself_without_its_ca(self, pki: LabCa) -> None:
        """Two States without a common CA can trust the certificate of the other (WP/16, "Objective")."""
        server = pki.issue("peer broker")
        tls = TlsSettings(pki.ca_file, server.certificate, server.key)
        client = pki.issue("peer client")
        with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as broker:
            pinned = TlsSettings(server.certificate, client.certificate, client.key)
            connect(tls_endpoint(broker, pinned)).close()

    def test_no_client_certificate(self, tls_broker: Serving, pki: LabCa) -> None:
        with pytest.raises(TrialError, match="requires a client certificate"):
            connect(tls_endpoint(tls_broker, TlsSettings(pki.ca_file)))

    def test_a_foreign_client_certificate(self, tls_broker: Serving, pki: LabCa, tmp_path: Path) -> None:
        stranger = LabCa(tmp_path, "Another CA").issue("stranger")
        settings = TlsSettings(pki.ca_file, stranger.certificate, stranger.key)
        with pytest.raises(
            TrialError, match=r"refused our client certificate .*stranger\.pem: it does not know the CA"
        ):
            connect(tls_endpoint(tls_broker, settings))

    def test_an_expired_client_certificate(self, tls_broker: Serving, pki: LabCa) -> None:
        old = pki.issue("old client", days=(-20, -10))
        settings = TlsSettings(pki.ca_file, old.certificate, old.key)
        with pytest.raises(TrialError, match=r"refused our client certificate .*: it has expired"):
            connect(tls_endpoint(tls_broker, settings))

    def test_tls_on_a_plain_port(self, broker: Serving, pki: LabCa) -> None:
        with pytest.raises(TrialError, match="does not speak TLS"):
            connect(Endpoint("127.0.0.1", broker.plain.port, TlsSettings(pki.ca_file), connect_timeout_s=5))

    def test_no_tls_on_a_tls_port(self, tls_broker: Serving) -> None:
        assert tls_broker.ports.tls is not None
        with pytest.raises(TrialError, match=r"is it a TLS port|does not speak AMQP"):
            connect(Endpoint("127.0.0.1", tls_broker.ports.tls, connect_timeout_s=5))


def _answer(listener: socket.socket, words: bytes) -> None:
    """Say something that is not AMQP, and wait until the client hangs up."""
    sock, _ = listener.accept()
    with sock:
        sock.sendall(words)
        sock.settimeout(5)
        while sock.recv(4096):
            pass


class TestFaults:
    def test_a_missing_queue(self, connection: Connection) -> None:
        with pytest.raises(TrialError, match="has no queue nowhere: create it there, or correct the address"):
            Sender(connection, "nowhere")
        with pytest.raises(TrialError, match="has no queue nowhere"):
            Receiver(connection, "nowhere")
        send_all(Sender(connection, "q"), template(), 1)

    def test_a_message_larger_than_the_peer_takes(self) -> None:
        limits = QueueLimits(max_message_size=100)
        with serving(BrokerSettings(queues=("q",), limits=limits)) as broker, connect(broker.plain) as opened:
            sender = Sender(opened, "q")
            assert sender.max_message_size == 100
            with pytest.raises(TrialError, match=r"the message has \d+ bytes, but .* takes at most 100"):
                sender.send(template(), 1)
            with pytest.raises(TrialError, match="takes at most 100"):
                sender.send_messages([template().message], template().stamp_offset)
            assert sender.sent == 0

    def test_a_broker_that_is_killed(self) -> None:
        with broker_process() as (process, endpoint), connect(endpoint) as opened:
            sender = Sender(opened, "q")
            send_all(sender, template(), 100)
            process.kill()
            process.wait()
            with pytest.raises(TrialError, match=f"the connection to {endpoint.name} was lost"):
                for _ in range(100):
                    sender.send(template(), 10)
                    sender.pump(0.05)
            assert sender.accepted >= 100

    def test_what_came_before_a_kill_is_still_handed_out(self) -> None:
        with broker_process() as (process, endpoint), connect(endpoint) as opened:
            send_all(Sender(opened, "q"), template(), 300)
            receiver = Receiver(opened, "q", templates=[template()])
            opened.pump(1)
            time.sleep(0.2)
            opened.pump(0)
            process.kill()
            process.wait()
            received = 0
            with pytest.raises(TrialError, match="was lost"):
                while True:
                    received += len(receiver.receive(50, 0.1))
            assert received == 300

    def test_a_broker_that_shuts_down_says_so(self) -> None:
        with ExitStack() as stack:
            broker = stack.enter_context(serving(BrokerSettings(queues=("q",))))
            with connect(broker.plain) as opened:
                stack.close()
                with pytest.raises(
                    TrialError, match=r"closed the connection: amqp:connection:forced \(broker shut down\)"
                ):
                    opened.pump(1)

    def test_a_silent_broker_is_noticed(self) -> None:
        with broker_process() as (process, endpoint):
            quiet = Endpoint(endpoint.host, endpoint.port, idle_timeout_s=1)
            with connect(quiet) as opened:
                psutil.Process(process.pid).suspend()
                try:
                    with pytest.raises(TrialError, match="was lost: it was silent for too long"):
                        for _ in range(30):
                            opened.pump(0.2)
                finally:
                    psutil.Process(process.pid).resume()

    def test_heartbeats_keep_a_quiet_connection_open(self, broker: Serving) -> None:
        with connect(Endpoint("127.0.0.1", broker.plain.port, idle_timeout_s=3)) as opened:
            end = time.monotonic() + 4
            while time.monotonic() < end:
                opened.pump(end - time.monotonic())
            send_all(Sender(opened, "q"), template(), 1)

    def test_wake_ends_a_pump_from_another_thread(self, connection: Connection) -> None:
        timer = threading.Timer(0.1, connection.wake)
        timer.start()
        began = time.monotonic()
        connection.pump(5)
        timer.join()
        assert time.monotonic() - began < 2

    def test_closing_twice_is_harmless_and_leaves_nothing_open(self, broker: Serving) -> None:
        process = psutil.Process()
        before = process.num_fds()
        kept = []
        for _ in range(5):
            kept.append(opened := connect(broker.plain))
            opened.close()
            opened.close()
        deadline = time.monotonic() + 5
        while process.num_fds() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.num_fds() <= before


@pytest.mark.parametrize(("messages", "limit_mb"), [(100_000, 8), pytest.param(1_000_000, 16, marks=pytest.mark.slow)])
def test_memory_does_not_grow(messages: int, limit_mb: int) -> None:
    """A few MB are how full the broker's queue happens to be; a hundred bytes a message would be 10 or 100 MB."""
    with broker_process() as (process, endpoint), connect(endpoint) as opened:
        sender, receiver = Sender(opened, "q"), Receiver(opened, "q", templates=[template()])
        usage = [psutil.Process(), psutil.Process(process.pid)]

        def pass_through(until: int) -> None:
            while receiver.received < until:
                sender.send(template_sent, until - sender.sent)
                sender.pump(0)
                receiver.receive(1000, 0.05)
                sender.take_acknowledged_ns()

        template_sent = template()
        pass_through(50_000)
        before = [one.memory_info().rss for one in usage]
        pass_through(50_000 + messages)
        grown = [one.memory_info().rss - start for one, start in zip(usage, before, strict=True)]
        assert max(grown) < limit_mb * 1024 * 1024
