"""Faulty and hostile peers: the broker serves its other clients, a client fails with one sentence; no crash, no hang.

The suite throws some hundred mutants; `pytest -m nightly` throws `LABCONSOLE_MUTANTS` (200,000) at each end.
"""

from __future__ import annotations

import gc
import itertools
import os
import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

import psutil
import pytest
from proton import uint

from labconsole.errors import UserError
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.link import link_base
from labconsole_amqp.link.connection import Connection, Endpoint, connect
from labconsole_amqp.link.queue_probe import drain_queue, probe_queue_depth
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.sign_encrypt import open_sealed
from tests.labconsole_amqp.amqp_frames import BEGIN, Frame, RecordedStream, frame, mutants, recorded
from tests.labconsole_amqp.embedded_broker import broker_process, serving
from tests.labconsole_amqp.link_transfer import receive_all, send_all, template

MANY = int(os.environ.get("LABCONSOLE_MUTANTS", "200000"))
PARTS = 4
FEW = 300
_LOOK_EVERY = 500
_MOST_GROWTH = 500 << 20
_QUIET_S = 0.003
_ANSWER_S = 0.002

USER = Access(users={"user": "password"})
LARGE = template(b"x" * 150_000)


@pytest.fixture(autouse=True)
def _links_of_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's answer belongs to the link of that name."""
    monkeypatch.setattr(link_base, "_link_numbers", itertools.cycle(range(3)))


def run_client(endpoint: Endpoint) -> None:
    """Run a client: it sends, probes the queue, receives and closes. Raises UserError."""
    link_base._link_numbers = itertools.cycle(range(3))
    with connect(endpoint) as client:
        sender = Sender(client, "q", timeout_s=0.5)
        for message, count in ((template(), 3), (LARGE, 1)):
            sent = 0
            while sent < count:
                sent += len(sender.send(message, count - sent))
                sender.pump(0.05)
        sender.drain(0.5)
        probe_queue_depth(client, "q", 2, _QUIET_S)
        receiver = Receiver(client, "q", templates=[template()], timeout_s=0.5)
        left = 4
        while left:
            batch = receiver.receive(left, 0.5)
            left -= len(batch)
            for raw in batch.raw.values():
                open_sealed(raw, Protection.NONE)
        receiver.close()


def conversation(*, user: bool) -> tuple[RecordedStream, RecordedStream]:
    """The streams of client and broker of such a client."""
    with (
        serving(BrokerSettings(queues=("q",), access=USER)) as broker,
        recorded(broker.plain) as (way, client_said, broker_said),
    ):
        name = "user" if user else None
        run_client(Endpoint(way.host, way.port, username=name, password="password", connect_timeout_s=2))
    return client_said, broker_said


def send_frames(endpoint: Endpoint, frames: list[Frame]) -> None:
    """Send `frames` to the broker, and wait until it disconnects."""
    with socket.create_connection((endpoint.host, endpoint.port), 5) as sock:
        try:
            sock.sendall(b"".join(frame.data for frame in frames))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1 << 20):
                pass
        except ConnectionError:
            # It hung up before it had read everything.
            return


def assert_still_serves(endpoint: Endpoint) -> None:
    """The broker serves a good client."""
    with connect(endpoint) as client:
        drain_queue(client, "q", 1_000_000, _QUIET_S)
        send_all(Sender(client, "q"), template(), 10)
        receive_all(Receiver(client, "q", templates=[template()]), 10)


def send_mutants(endpoint: Endpoint, process: psutil.Process, count: int) -> None:
    """Send `count` mutants of two recorded clients to a broker in `process`."""
    before = process.memory_info().rss
    streams = [mutants(conversation(user=user)[0].frames(), count // 2, seed=user) for user in (False, True)]
    for number, frames in enumerate(itertools.chain.from_iterable(zip(*streams, strict=True))):
        send_frames(endpoint, frames)
        if number % _LOOK_EVERY == 0:
            assert_still_serves(endpoint)
            assert process.memory_info().rss < before + _MOST_GROWTH, number
    assert_still_serves(endpoint)


def test_broker_survives_mutants_and_serves_the_others() -> None:
    with serving(BrokerSettings(queues=("q",), access=USER)) as broker:
        send_mutants(broker.plain, psutil.Process(), FEW)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_broker_survives_many_mutants() -> None:
    with broker_process() as (process, endpoint):
        send_mutants(endpoint, psutil.Process(process.pid), MANY)
        assert process.poll() is None


class Hostile:
    """A broker that replays frames, each when the client has sent as much as in the recording.

    A client that was refused asks on connections of its own what the port speaks; those are closed at once.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._to_say: SimpleQueue[list[Frame]] = SimpleQueue()
        self._answering: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()
        self.endpoint = Endpoint("127.0.0.1", self._listener.getsockname()[1], connect_timeout_s=2)

    @contextmanager
    def replaying(self, frames: list[Frame]) -> Iterator[None]:
        """Answer the next client with `frames`."""
        self._to_say.put(frames)
        try:
            yield
        finally:
            while self._answering:
                self._answering.pop().join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                # It is closed.
                return
            if self._to_say.empty():
                sock.close()
                continue
            thread = threading.Thread(target=self._answer, args=(sock, self._to_say.get()))
            self._answering.append(thread)
            thread.start()

    def _answer(self, sock: socket.socket, frames: list[Frame]) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(_ANSWER_S)
        heard = 0
        with sock:
            try:
                for frame in frames:
                    while heard < frame.after and (data := self._heard(sock)):
                        heard += len(data)
                    sock.sendall(frame.data)
                sock.shutdown(socket.SHUT_WR)
                sock.settimeout(5)
                while sock.recv(1 << 20):
                    pass
            except OSError:
                # The client has hung up, as it may.
                return

    def _heard(self, sock: socket.socket) -> bytes:
        try:
            return sock.recv(1 << 20)
        except TimeoutError:
            return b""

    def close(self) -> None:
        with suppress(OSError):  # not connected, which wakes the accept all the same
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()


@contextmanager
def hostile() -> Iterator[Hostile]:
    """A hostile broker."""
    broker = Hostile()
    try:
        yield broker
    finally:
        broker.close()


def meet_mutants(count: int, seed: int = 2) -> None:
    """Connect `count` clients to mutants of a broker's frames."""
    before = psutil.Process().memory_info().rss
    with hostile() as broker:
        for number, frames in enumerate(mutants(conversation(user=False)[1].frames(), count, seed)):
            with broker.replaying(frames):
                try:
                    run_client(broker.endpoint)
                except UserError as error:
                    assert "\n" not in str(error)
            if number % _LOOK_EVERY == 0:
                assert psutil.Process().memory_info().rss < before + _MOST_GROWTH, number


def test_client_refuses_a_session_that_a_broker_opens() -> None:
    """Each would take memory, and a client never uses it."""
    frames = conversation(user=False)[1].frames()
    begin = frame(BEGIN, [None, uint(0), uint(2048), uint(2048)], channel=5)
    with (
        hostile() as broker,
        broker.replaying([*frames[:5], Frame(begin, frames[5].after)]),
        pytest.raises(UserError, match="opened a session or link that the console does not expect"),
    ):
        run_client(broker.endpoint)


def test_client_refuses_a_message_that_is_too_large(connection: Connection) -> None:
    send_all(Sender(connection, "q"), template(b"x" * 1_000_000), 1)
    receiver = Receiver(connection, "q", max_message_size=200_000)
    with pytest.raises(UserError, match=r"more than 200,000 bytes: raise \"Largest message\""):
        receive_all(receiver, 1)


def test_a_closed_client_is_freed_without_the_garbage_collector() -> None:
    """Each would keep half a megabyte until garbage is looked for, which in a large process is seldom."""
    gc.disable()
    try:
        with serving(BrokerSettings(queues=("q",), access=USER)) as broker:
            with connect(broker.plain) as client:
                sender = Sender(client, "q", timeout_s=5)
                send_all(sender, template(), 1)
                engine = weakref.ref(client.engine)
            del client, sender
            assert engine() is None
    finally:
        gc.enable()


def test_client_of_a_hostile_broker_ends_with_a_sentence() -> None:
    meet_mutants(FEW // 3)


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(PARTS))
def test_client_survives_many_hostile_brokers(part: int) -> None:
    """Each part has its own mutants, so that several test processes share them: a client waits for half of its time."""
    meet_mutants(MANY // PARTS, seed=2 + part)
