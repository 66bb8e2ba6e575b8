"""A receiver to which senders connect: ours and foreign ones; each refusal has its reason, and the next is accepted."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException, Described, Event, Message, SSLDomain, symbol, uint, ulong
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton.utils import BlockingConnection, LinkDetached

from labconsole.errors import UserError
from labconsole.security.identities import IdentityFiles
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.listener import Listener
from labconsole_amqp.link.receiver import Batch, Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.socket_pump import ConnectionLostError
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.wire.template import Template
from tests.labconsole_amqp.amqp_frames import (
    AMQP,
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    FLOW,
    OPEN,
    SASL,
    SASL_INIT,
    TRANSFER,
    frame,
)
from tests.labconsole_amqp.lab_pki import LabCa, tls_of
from tests.labconsole_amqp.link_transfer import await_credit, send_all, template
from tests.labconsole_amqp.states import States

LARGE = template(b"x" * 300_000)
"""In several frames."""
AT_ONCE_S = 15.0
"""Less than `long_limits`."""


@pytest.fixture
def long_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The close of a link and of a connection and a client's handshake end after 30 s at the latest, not 1, 2 and 5."""
    monkeypatch.setattr("labconsole_amqp.link.link_base._DETACH_TIMEOUT_S", 30.0)
    monkeypatch.setattr("labconsole_amqp.link.connection._CLOSE_TIMEOUT_S", 30.0)
    monkeypatch.setattr("labconsole_amqp.link.listener._HANDSHAKE_S", 30.0)


class ListeningEnd:
    """Accepts one sender after the other and receives from each until its link has failed, in a thread."""

    def __init__(self, tls: TlsSettings | None, templates: tuple[Template, ...]) -> None:
        self.refused: list[str] = []
        self.faults: list[UserError] = []
        """What has ended a sender's link."""
        self.versions: list[str | None] = []
        """Of TLS, of each sender that was accepted."""
        self.batches: list[Batch] = []
        self.enough = threading.Event()
        self.listener = Listener("127.0.0.1", tls, self.refused.append)
        self._templates = templates
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while (accepted := self.listener.accept(lambda: not self.enough.is_set())) is not None:
            with accepted as connection:
                self.versions.append(connection.tls_version)
                try:
                    receiver = Receiver(connection, "q", window=200, templates=self._templates)
                    while not self.enough.is_set():
                        self.batches.append(receiver.receive(1000, 0.02))
                except UserError as fault:
                    self.faults.append(fault)

    def endpoint(self, tls: TlsSettings | None = None) -> Endpoint:
        return Endpoint("127.0.0.1", self.listener.port, tls, connect_timeout_s=30)

    @property
    def numbers(self) -> list[int]:
        """Those of the messages that equal a template."""
        return [number for batch in self.batches for number in batch.numbers[batch.matched].tolist()]

    @property
    def bodies(self) -> list[Any]:
        """Those of the other messages."""
        raw = [octets for batch in self.batches for octets in batch.raw.values()]
        found = []
        for octets in raw:
            message = Message()
            message.decode(octets)
            found.append(message.body)
        return found

    def wait(self, reported: list[Any], count: int = 1) -> Any:
        """The last of so many reports: refusals, faults or batches."""
        self._await(reported, count)
        assert len(reported) == count
        return reported[-1]

    def first(self, reported: list[Any]) -> Any:
        """The first report, which others follow where a client that was refused finds out what the port speaks."""
        self._await(reported, 1)
        return reported[0]

    @staticmethod
    def _await(reported: list[Any], count: int) -> None:
        deadline = time.monotonic() + 30
        while len(reported) < count and time.monotonic() < deadline:
            time.sleep(0.01)

    def close(self) -> None:
        self.enough.set()
        self._thread.join(10)
        assert not self._thread.is_alive()
        self.listener.close()


@contextmanager
def listening(
    tls: TlsSettings | None = None, templates: tuple[Template, ...] = (template(),)
) -> Iterator[ListeningEnd]:
    """Listen and receive until the block ends."""
    end = ListeningEnd(tls, templates)
    try:
        yield end
    finally:
        end.close()


def accepts(end: ListeningEnd, tls: TlsSettings | None = None) -> None:
    """A sender that connects now is accepted."""
    before = len(end.numbers)
    with connect(end.endpoint(tls)) as connection:
        sender = Sender(connection, "q")
        send_all(sender, template(), 3)
        sender.close()
    assert end.numbers[before:] == [0, 1, 2]


class TestMessages:
    @pytest.mark.parametrize("secure", [False, True], ids=("plain", "mutual TLS"))
    def test_messages_arrive_in_order_and_are_acknowledged(self, pki: LabCa, secure: bool) -> None:
        tls = tls_of(pki.issue("receiver")) if secure else None
        with listening(tls) as end:
            with connect(end.endpoint(tls_of(pki.issue("sender")) if secure else None)) as connection:
                sender = Sender(connection, "q")
                send_all(sender, template(), 5_000)
                assert (sender.accepted, sender.rejected, sender.released) == (5_000, 0, 0)
            assert end.numbers == list(range(5_000))
            assert end.versions == ["TLSv1.3" if secure else None]
        assert (end.refused, end.faults) == ([], [])

    @pytest.mark.parametrize("secure", [False, True], ids=("plain", "mutual TLS"))
    def test_messages_of_several_frames_arrive(self, pki: LabCa, secure: bool) -> None:
        tls = tls_of(pki.issue("receiver")) if secure else None
        with listening(tls, (LARGE,)) as end:
            with connect(end.endpoint(tls_of(pki.issue("sender")) if secure else None)) as connection:
                send_all(Sender(connection, "q"), LARGE, 30)
            assert end.numbers == list(range(30))

    def test_pre_settled_messages_arrive(self) -> None:
        with listening() as end, connect(end.endpoint()) as connection:
            sender = Sender(connection, "q", settled=True)
            send_all(sender, template(), 1_000)
            sender.close()
            deadline = time.monotonic() + 30
            while len(end.numbers) < 1_000 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert end.numbers == list(range(1_000))

    @pytest.mark.usefixtures("long_limits")
    def test_a_sender_that_closes_is_answered_at_once_and_is_not_a_fault(self) -> None:
        with listening() as end:
            connection = connect(end.endpoint())
            sender = Sender(connection, "q")
            send_all(sender, template(), 10)
            began = time.monotonic()
            sender.close()
            detached = time.monotonic()
            connection.close()
            closed = time.monotonic()
            assert detached - began < AT_ONCE_S and closed - detached < AT_ONCE_S
            # The receiver waits for messages, of which none come, until its owner has enough.
            before = len(end.batches)
            end.wait(end.batches, len(end.batches) + 5)
            assert not any(len(batch) for batch in end.batches[before:])
        assert (end.numbers, end.faults) == (list(range(10)), [])

    def test_what_is_gathered_when_the_sender_detaches_is_acknowledged_before_the_answer(self) -> None:
        listener = Listener("127.0.0.1", None, lambda reason: None)
        received = list[Batch]()

        def serve() -> None:
            connection = listener.accept(lambda: True)
            assert connection is not None
            with connection:
                receiver = Receiver(connection, "q", templates=[template()])
                until = time.monotonic() + 0.5
                while time.monotonic() < until:
                    received.append(receiver.receive(1000, 0.02, gather_s=0.01))

        thread = threading.Thread(target=serve)
        thread.start()
        with connect(Endpoint("127.0.0.1", listener.port)) as connection:
            sender = Sender(connection, "q")
            await_credit(sender)
            sender.send(template(), 40)
            sender.close()
            assert sender.accepted == 40
        thread.join(5)
        listener.close()
        assert sum(map(len, received)) == 40

    @pytest.mark.usefixtures("long_limits")
    @pytest.mark.parametrize("way", ["connection closed", "link detached"])
    def test_a_sender_that_only_closes_or_only_detaches_ends_well(self, way: str) -> None:
        with listening() as end:
            with connect(end.endpoint()) as connection:
                sender = Sender(connection, "q")
                send_all(sender, template(), 10)
                began = time.monotonic()
                if way == "link detached":
                    sender.close()
            assert time.monotonic() - began < AT_ONCE_S
            end.wait(end.batches, len(end.batches) + 5)
        assert (end.numbers, end.faults) == (list(range(10)), [])

    def test_a_sender_whose_socket_dies_is_a_lost_connection_and_the_next_is_accepted(self) -> None:
        with listening() as end:
            with connect(end.endpoint()) as connection:
                send_all(Sender(connection, "q"), template(), 10)
                connection.engine.sock.shutdown(socket.SHUT_RDWR)
                assert isinstance(end.wait(end.faults), ConnectionLostError)
            accepts(end)
        assert end.numbers[:10] == list(range(10)) and len(end.faults) == 1


class TestForeignSenders:
    """Proton's own clients, and frames by hand."""

    @pytest.mark.parametrize("secure", [False, True], ids=("plain", "mutual TLS"))
    def test_messages_of_a_foreign_sender_are_received_and_accepted(self, pki: LabCa, secure: bool) -> None:
        with listening(tls_of(pki.issue("receiver")) if secure else None) as end:
            client = foreign(end, pki.issue("foreign") if secure else None)
            sender = client.create_sender("q")
            bodies = ["first", "x" * 300_000, "last"]
            for body in bodies:
                sender.send(Message(body=body))  # waits for the acknowledgement, and raises if it is another one
            sender.close()
            began = time.monotonic()
            client.close()
            assert time.monotonic() - began < AT_ONCE_S
            assert end.bodies == bodies
        assert (end.refused, end.faults) == ([], [])

    @pytest.mark.parametrize("sasl", [True, False], ids=("sasl", "no sasl"))
    def test_a_foreign_sender_that_waits_for_no_answer_is_accepted(self, sasl: bool) -> None:
        """Open, begin and attach come together, without SASL even with the first octets; credit is renewed."""
        with listening() as end:
            client = Pipelining(f"amqp://127.0.0.1:{end.listener.port}", 500, sasl=sasl)
            Container(client).run()
            assert (client.failure, client.accepted) == ("", 500)
            assert end.bodies == list(range(500))
        assert (end.refused, end.faults) == ([], [])

    def test_all_frames_up_to_the_attach_and_all_from_the_messages_on_can_come_at_once(self) -> None:
        with listening() as end, by_hand(end, SASL + frame(SASL_INIT, [symbol("ANONYMOUS")], kind=1)) as sock:
            sock.sendall(b"".join(map(message, range(5))) + frame(DETACH, [uint(HANDLE), True], channel=CHANNEL))
            sock.sendall(frame(CLOSE, []))
            hear(sock, CLOSE)
        assert (end.bodies, end.refused, end.faults) == (list(range(5)), [], [])

    def test_a_sender_that_detaches_with_an_error_is_a_fault_with_its_reason(self) -> None:
        with listening() as end, by_hand(end) as sock:
            error = Described(ulong(0x1D), [symbol("amqp:internal-error"), "out of paper"])
            sock.sendall(message(1) + frame(DETACH, [uint(HANDLE), True, error], channel=CHANNEL))
            assert "out of paper" in str(end.wait(end.faults))
        assert end.bodies == [1]

    def test_a_sender_that_closes_with_an_error_is_a_fault_with_its_reason(self) -> None:
        with listening() as end, by_hand(end) as sock:
            error = Described(ulong(0x1D), [symbol("amqp:connection:forced"), "out of ink"])
            sock.sendall(message(1) + frame(CLOSE, [error]))
            fault = end.wait(end.faults)
            assert isinstance(fault, ConnectionLostError) and "out of ink" in str(fault)
        assert end.bodies == [1]

    def test_a_second_link_is_a_fault(self) -> None:
        with listening() as end:
            with closing(foreign(end)) as client:
                client.create_sender("q").send(Message(body="first"))
                with pytest.raises((ConnectionException, LinkDetached)):
                    client.create_sender("q", name="second")
            assert "opened a session or link that the console does not expect" in str(end.wait(end.faults))
            accepts(end)


def foreign(end: ListeningEnd, own: IdentityFiles | None = None) -> BlockingConnection:
    """Proton's own client, over TLS with an identity."""
    at = f"127.0.0.1:{end.listener.port}"
    if own is None:
        return BlockingConnection(f"amqp://{at}", timeout=5)
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_credentials(str(own.certificate), str(own.key), None)
    domain.set_trusted_ca_db(str(own.trust))
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
    return BlockingConnection(f"amqps://{at}", ssl_domain=domain, timeout=5)


class Pipelining(MessagingHandler):
    """Proton's own sender, which opens, begins and attaches before it has an answer."""

    def __init__(self, url: str, count: int, *, sasl: bool) -> None:
        super().__init__()
        self._url, self._count, self._sasl = url, count, sasl
        self.sent = self.accepted = 0
        self.failure = ""

    def on_start(self, event: Event) -> None:
        connection = event.container.connect(self._url, sasl_enabled=self._sasl, reconnect=False)
        event.container.create_sender(connection, "q")

    def on_sendable(self, event: Event) -> None:
        while self.sent < self._count and event.sender.credit:
            event.sender.send(Message(body=self.sent))
            self.sent += 1

    def on_accepted(self, event: Event) -> None:
        self.accepted += 1
        if self.accepted == self._count:
            event.connection.close()

    def on_transport_error(self, event: Event) -> None:
        self.failure = str(event.transport.condition)

    def on_link_error(self, event: Event) -> None:
        self.failure = str(event.link.remote_condition)


CHANNEL, HANDLE = 3, 9
"""Those of a sender by hand."""


def begun(*, receives: bool = False) -> bytes:
    """AMQP open, begin and attach of a sender or receiver by hand; both its ends have the address `q`."""
    ends = [Described(ulong(code), ["q"]) for code in (0x28, 0x29)]
    fields = ["by hand", uint(HANDLE), receives, None, None, *ends, None, None, uint(0)]
    session = [None, uint(40), uint(100), uint(100)]
    return (
        AMQP + frame(OPEN, ["hand"]) + frame(BEGIN, session, channel=CHANNEL) + frame(ATTACH, fields, channel=CHANNEL)
    )


@contextmanager
def by_hand(end: ListeningEnd, login: bytes = b"") -> Iterator[socket.socket]:
    """The socket of a sender that has attached, with everything at once, and has credit."""
    with socket.create_connection(("127.0.0.1", end.listener.port), 5) as sock:
        sock.sendall(login + begun())
        hear(sock, FLOW)
        yield sock


def hear(sock: socket.socket, code: int) -> bytes:
    """What comes until there is a frame of this performative."""
    heard = b""
    while bytes((0, 0x53, code)) not in heard:
        heard += sock.recv(65536)
    return heard


def message(number: int) -> bytes:
    """The transfer of a message whose body is its number."""
    delivery = [uint(HANDLE), uint(number), number.to_bytes(4, "big"), uint(0), False, False]
    return frame(TRANSFER, delivery, Message(body=number).encode(), channel=CHANNEL)


@pytest.fixture(scope="module")
def good(pki: LabCa) -> TlsSettings:
    """An end that is accepted."""
    return tls_of(pki.issue("good"))


class TestRefusedByTls:
    @pytest.fixture
    def end(self, pki: LabCa) -> Iterator[ListeningEnd]:
        with listening(tls_of(pki.issue("receiver"))) as end:
            yield end

    def test_a_client_without_a_certificate(self, end: ListeningEnd, good: TlsSettings, pki: LabCa) -> None:
        with pytest.raises(UserError, match="requires a client certificate"):
            connect(end.endpoint(TlsSettings(trust=pki.ca_file)))
        assert end.wait(end.refused) == "client certificate missing"
        accepts(end, good)

    def test_a_client_of_a_foreign_ca(self, end: ListeningEnd, good: TlsSettings, pki: LabCa, tmp_path: Path) -> None:
        unknown = LabCa(tmp_path, "Another CA").issue("unknown")
        with pytest.raises(UserError, match="it does not know the CA"):
            connect(end.endpoint(tls_of(unknown, trust=pki.ca_file)))
        assert end.wait(end.refused) == "client certificate of a foreign CA"
        accepts(end, good)

    def test_a_client_that_does_not_speak_tls(self, end: ListeningEnd, good: TlsSettings) -> None:
        with pytest.raises(UserError, match="is a TLS port, and Test 1 has no TLS"):
            connect(end.endpoint())
        assert end.first(end.refused) == "client does not speak TLS, which this port needs"
        accepts(end, good)

    def test_a_client_that_hangs_up_in_the_handshake(self, end: ListeningEnd, good: TlsSettings) -> None:
        socket.create_connection(("127.0.0.1", end.listener.port), 5).close()
        assert end.wait(end.refused).startswith("TLS handshake failed")
        accepts(end, good)

    def test_a_client_that_does_not_trust_this_end(self, end: ListeningEnd, good: TlsSettings, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="is not trusted by"):
            connect(end.endpoint(TlsSettings(trust=LabCa(tmp_path, "Another CA").ca_file)))
        assert end.wait(end.refused).startswith("TLS handshake failed")
        accepts(end, good)

    def test_a_client_whose_certificate_is_revoked_learns_why(self, states: States) -> None:
        states.crl(states.alpha, "alpha-client")
        with listening(states.tls("beta-broker")) as end:
            for _ in range(3):
                with pytest.raises(
                    UserError, match=r"unauthorized-access \(the certificate of alpha-client is revoked"
                ):
                    connect(end.endpoint(states.tls("alpha-client"))).close()
            end.wait(end.refused, 3)
            assert set(end.refused) == {"the certificate of alpha-client is revoked"}
            accepts(end, states.tls("alpha-second"))

    def test_a_revoked_client_that_waits_for_no_answer_learns_why(self, states: States) -> None:
        """What it has sent meanwhile is not read; its socket is not reset for that before it has the reason."""
        states.crl(states.alpha, "alpha-client")
        files, settings = states.files("alpha-client"), states.tls("alpha-client")
        context = ssl.create_default_context(cafile=str(files.trust))
        assert settings.identity is not None and settings.identity.secret is not None
        context.load_cert_chain(files.certificate, files.key, settings.identity.secret.reveal())
        with listening(states.tls("beta-broker")) as end:
            plain = socket.create_connection(("127.0.0.1", end.listener.port), 5)
            with context.wrap_socket(plain, server_hostname="localhost") as sock:
                login = SASL + frame(SASL_INIT, [symbol("EXTERNAL"), b""], kind=1)
                sock.sendall(login + begun())
                sock.sendall(b"".join(message(number) for number in range(100)))
                heard = b""
                while data := sock.recv(65536):
                    heard += data
            assert b"the certificate of alpha-client is revoked" in heard


class TestRefused:
    @pytest.fixture
    def end(self) -> Iterator[ListeningEnd]:
        with listening() as end:
            yield end

    def test_a_client_that_speaks_tls(self, end: ListeningEnd, pki: LabCa) -> None:
        with pytest.raises(UserError, match="does not speak TLS"):
            connect(end.endpoint(TlsSettings(trust=pki.ca_file)))
        assert end.first(end.refused) == "client speaks TLS, which this port does not"
        accepts(end)

    def test_a_client_that_hangs_up(self, end: ListeningEnd) -> None:
        with socket.create_connection(("127.0.0.1", end.listener.port), 5) as sock:
            sock.sendall(SASL)
            sock.shutdown(socket.SHUT_WR)
            assert "closed the connection during SASL" in end.wait(end.refused)
        accepts(end)

    def test_a_client_that_resets_the_connection_is_not_one_of_tls(self, end: ListeningEnd) -> None:
        with socket.create_connection(("127.0.0.1", end.listener.port), 5) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes((1, 0, 0, 0, 0, 0, 0, 0)))
            sock.sendall(SASL)
        assert end.wait(end.refused).startswith("client is gone")
        accepts(end)

    def test_a_client_that_says_nothing_is_waited_for_a_short_time(
        self, end: ListeningEnd, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("labconsole_amqp.link.listener._HANDSHAKE_S", 0.3)
        with socket.create_connection(("127.0.0.1", end.listener.port), 5):
            assert end.wait(end.refused) == "client did not authenticate in time"
            accepts(end)

    def test_a_client_that_does_not_open_is_waited_for_a_short_time(
        self, end: ListeningEnd, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("labconsole_amqp.link.listener._HANDSHAKE_S", 0.3)
        with socket.create_connection(("127.0.0.1", end.listener.port), 5) as sock:
            sock.sendall(AMQP)
            assert end.wait(end.refused) == "client did not open AMQP in time"
            accepts(end)

    @pytest.mark.parametrize(
        ("said", "reason"),
        [
            (b"GET / HTTP/1.1\r\n\r\n", "client does not speak AMQP 1.0"),
            (SASL + b"\xff" * 100, "client sent a malformed SASL frame"),
            (SASL + frame(SASL_INIT, [symbol("PLAIN"), b"\0a\0b"], kind=1), "SASL PLAIN not offered"),
            (AMQP + b"\xff" * 100, "framing-error"),
            (AMQP + frame(OPEN, ["hand"]) + frame(ATTACH, [7]), None),
        ],
        ids=("another protocol", "sasl", "mechanism", "frames", "no begin"),
    )
    def test_a_client_that_sends_something_else(self, end: ListeningEnd, said: bytes, reason: str | None) -> None:
        with socket.create_connection(("127.0.0.1", end.listener.port), 5) as sock:
            sock.sendall(said)
            if reason is None:  # AMQP was open: the receiver finds what is wrong
                assert end.wait(end.faults)
            else:
                assert reason in end.wait(end.refused)
        accepts(end)

    def test_a_sender_to_another_address(self, end: ListeningEnd) -> None:
        with connect(end.endpoint()) as connection, pytest.raises(UserError, match=r"has no queue other.*awaited"):
            Sender(connection, "other")
        assert "did not attach a sender to q: enter the same address there" in str(end.wait(end.faults))
        accepts(end)

    def test_a_client_that_wants_to_receive(self, end: ListeningEnd) -> None:
        with connect(end.endpoint()) as connection, pytest.raises(UserError, match="only a sender to q is awaited"):
            Receiver(connection, "q")
        assert "did not attach a sender to q" in str(end.wait(end.faults))
        with socket.create_connection(("127.0.0.1", end.listener.port), 5) as sock:
            sock.sendall(begun(receives=True))
            assert b"only a sender to q is awaited" in hear(sock, CLOSE)
        accepts(end)

    def test_foreign_clients_get_the_same_answer(self, end: ListeningEnd) -> None:
        with closing(foreign(end)) as client, pytest.raises(LinkDetached, match="only a sender to q is awaited"):
            client.create_sender("other")
        with closing(foreign(end)) as client, pytest.raises(LinkDetached, match="only a sender to q is awaited"):
            client.create_receiver("q")
        accepts(end)

    def test_a_client_that_attaches_nothing(self, end: ListeningEnd, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("labconsole_amqp.link.link_base.ATTACH_TIMEOUT_S", 0.3)
        with connect(end.endpoint()) as connection:
            end.wait(end.versions)
            deadline = time.monotonic() + 30
            while not end.faults and time.monotonic() < deadline:
                try:
                    connection.pump(0.05)
                except UserError:
                    break
        assert "did not attach a sender to q in 0.3 s" in str(end.wait(end.faults))
        accepts(end)


class TestPort:
    @pytest.mark.usefixtures("long_limits")
    def test_a_client_in_its_handshake_does_not_delay_the_end_of_accepting(self) -> None:
        listener, refused = Listener("127.0.0.1", None, lambda reason: refused.append(reason)), list[str]()
        with socket.create_connection(("127.0.0.1", listener.port), 5) as silent:
            silent.sendall(SASL)
            until = time.monotonic() + 0.3
            assert listener.accept(lambda: time.monotonic() < until) is None
            assert time.monotonic() - until < AT_ONCE_S
        assert refused == ["client did not authenticate in time"]
        listener.close()

    def test_accepting_ends_when_it_shall_not_continue(self) -> None:
        listener = Listener("127.0.0.1", None, lambda reason: None)
        asked = iter((True, True, False))
        assert listener.accept(lambda: next(asked)) is None
        listener.close()

    def test_the_port_is_closed_and_a_closed_one_accepts_no_client(self) -> None:
        listener = Listener("127.0.0.1", None, lambda reason: None)
        listener.close()
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", listener.port), 5)
        with pytest.raises(UserError, match="no client can be accepted any more"):
            listener.accept(lambda: True)

    def test_an_address_of_another_computer_is_refused_with_its_name(self) -> None:
        with pytest.raises(UserError, match=r"no port of 192\.0\.2\.1 can be opened"):
            Listener("192.0.2.1", None, lambda reason: None)

    def test_a_tls_port_needs_an_identity(self) -> None:
        with pytest.raises(UserError, match="needs the broker's certificate and key"):
            Listener("127.0.0.1", TlsSettings(), lambda reason: None)
