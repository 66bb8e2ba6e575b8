"""Each fault of an open link is one clear sentence, and nothing stays open."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import psutil
import pytest

from labconsole.errors import UserError
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.link.connection import Connection, Endpoint, connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.socket_pump import ConnectionLostError
from tests.helpers.signals import frozen
from tests.labconsole_amqp.embedded_broker import RunningBroker, broker_process, serving
from tests.labconsole_amqp.link_transfer import send_all, template


class TestFaults:
    def test_a_missing_queue(self, connection: Connection) -> None:
        with pytest.raises(UserError, match="has no queue nowhere: create it there, or correct the address"):
            Sender(connection, "nowhere")
        with pytest.raises(UserError, match="has no queue nowhere"):
            Receiver(connection, "nowhere")
        send_all(Sender(connection, "q"), template(), 1)

    def test_a_message_larger_than_the_peer_takes(self) -> None:
        limits = QueueLimits(max_message_size=100)
        with serving(BrokerSettings(queues=("q",), limits=limits)) as broker, connect(broker.plain) as opened:
            sender = Sender(opened, "q")
            assert sender.max_message_size == 100
            with pytest.raises(UserError, match=r"the message has \d+ bytes, but .* takes at most 100"):
                sender.send(template(), 1)
            with pytest.raises(UserError, match="takes at most 100"):
                sender.send_messages([template().message], template().stamp_offset)
            assert sender.sent == 0

    def test_a_broker_that_is_killed(self) -> None:
        with broker_process() as (process, endpoint), connect(endpoint) as opened:
            sender = Sender(opened, "q")
            send_all(sender, template(), 100)
            process.kill()
            process.wait()
            with pytest.raises(UserError, match=f"the connection to {endpoint.name} was lost"):
                for _ in range(100):
                    sender.send(template(), 10)
                    sender.pump(0.05)
            assert sender.accepted >= 100

    def test_messages_gathered_before_a_kill_are_returned_and_the_loss_follows(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with broker_process() as (process, endpoint), connect(endpoint) as opened:
            send_all(Sender(opened, "q"), template(), 10)
            receiver = Receiver(opened, "q", templates=[template()])
            listen, before = opened.listen, receiver._count

            def listen_and_kill(timeout_s: float) -> None:
                if receiver._count == before + 10:
                    process.kill()
                listen(timeout_s)

            monkeypatch.setattr(opened, "listen", listen_and_kill)
            assert len(receiver.receive(100, 30, gather_s=30)) == 10
            with pytest.raises(UserError, match=f"the connection to {endpoint.name} was lost"):
                receiver.receive(100, 30, gather_s=30)

    def test_messages_that_come_with_the_loss_are_returned_before_it_is_raised(
        self, broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Over TLS, say, the last messages and the end of the connection are read at once."""
        with connect(broker.plain) as sending, connect(broker.plain) as opened:
            sender, receiver = Sender(sending, "q"), Receiver(opened, "q", templates=[template()])
            listen = opened.listen

            def listen_and_lose(timeout_s: float) -> None:
                send_all(sender, template(), 5)
                listen(timeout_s)
                raise ConnectionLostError("the connection was lost")

            monkeypatch.setattr(opened, "listen", listen_and_lose)
            send_all(sender, template(), 1)
            assert len(receiver.receive(100, 2, gather_s=2)) == 6
            with pytest.raises(ConnectionLostError):
                receiver.receive(100, 2)

    def test_messages_received_before_a_kill_are_still_returned(self) -> None:
        with broker_process() as (process, endpoint), connect(endpoint) as opened:
            send_all(Sender(opened, "q"), template(), 300)
            receiver = Receiver(opened, "q", templates=[template()])
            while receiver._queued < 300:
                opened.pump(1)
            process.kill()
            process.wait()
            received = 0
            with pytest.raises(UserError, match="was lost"):
                while True:
                    received += len(receiver.receive(50, 0.1))
            assert received == 300

    def test_a_broker_that_shuts_down_reports_it(self) -> None:
        with ExitStack() as stack:
            broker = stack.enter_context(serving(BrokerSettings(queues=("q",))))
            with connect(broker.plain) as opened:
                stack.close()
                with pytest.raises(
                    UserError, match=r"closed the connection: amqp:connection:forced \(broker shut down\)"
                ):
                    opened.pump(1)

    def test_a_silent_broker_is_noticed(self) -> None:
        with broker_process() as (process, endpoint):
            quiet = Endpoint(endpoint.host, endpoint.port, idle_timeout_s=1)
            silent = pytest.raises(UserError, match="was lost: it was silent for too long")
            with connect(quiet) as opened, frozen(process.pid), silent:
                for _ in range(30):
                    opened.pump(0.2)

    def test_heartbeats_keep_a_quiet_connection_open(self, broker: RunningBroker) -> None:
        with connect(Endpoint("127.0.0.1", broker.plain.port, idle_timeout_s=3)) as opened:
            end = time.monotonic() + 4
            while time.monotonic() < end:
                opened.pump(end - time.monotonic())
            send_all(Sender(opened, "q"), template(), 1)

    def test_wake_ends_a_pump_from_another_thread(self, connection: Connection) -> None:
        timer = threading.Timer(0.1, connection.wake)
        timer.start()
        began = time.monotonic()
        connection.pump(60)
        timer.join()
        assert time.monotonic() - began < 30

    def test_closing_twice_is_harmless_and_leaves_nothing_open(self, broker: RunningBroker) -> None:
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
