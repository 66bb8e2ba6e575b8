"""Frames that brokers other than ours send: in other forms and another order, with small limits, and wrong ones."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from proton import Described, symbol, ubyte, uint, ulong, ushort

from labconsole.errors import UserError
from labconsole_amqp.link import link_base
from labconsole_amqp.link.arrivals import Batch
from labconsole_amqp.link.connection import Connection, Endpoint, connect
from labconsole_amqp.link.performatives import (
    FRAME_HEAD,
    DeliveryState,
    Fields,
    Performative,
    TransferFrames,
    code_of,
)
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.wire import envelope_layout
from labconsole_amqp.wire.template import plain_template
from tests.labconsole_amqp.amqp_frames import (
    AMQP,
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    FLOW,
    OPEN,
    SASL,
    SASL_OUTCOME,
    TRANSFER,
    frame,
)
from tests.labconsole_amqp.link_transfer import receive_all, template

DISPOSITION = int(Performative.DISPOSITION)
CHANNEL, HANDLE = 7, 5
"""The peer's own; the client's are 0."""


class Peer:
    """A broker with one client, of which the test writes each frame after the attach."""

    def __init__(self, *, sends: bool, largest_frame: int, window: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = Endpoint("127.0.0.1", self._listener.getsockname()[1], connect_timeout_s=30)
        self.heard = bytearray()
        self._begins = [frame(OPEN, ["peer", None, uint(largest_frame)])]
        about = [ushort(0), uint(0), uint(window), uint(1000)]
        name, source, target = "receiver-q-0" if sends else "sender-q-0", 0x28, 0x29
        ends = [Described(ulong(code), ["q"]) for code in (source, target)]
        attach = [name, uint(HANDLE), not sends, None, None, *ends, None, None, uint(0) if sends else None]
        self._answers = frame(BEGIN, about, channel=CHANNEL) + frame(ATTACH, attach, channel=CHANNEL)
        self._name = name.encode()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        self.sock, _ = self._listener.accept()
        self.sock.settimeout(5)
        mechanisms = frame(0x40, [symbol("ANONYMOUS")], kind=1)
        self.sock.sendall(SASL + mechanisms + frame(SASL_OUTCOME, [ubyte(0)], kind=1) + AMQP + self._begins[0])
        while self._name not in self.heard:
            self.heard += self.sock.recv(65536)
        self.sock.sendall(self._answers)
        self.heard.clear()

    def say(self, code: int, fields: list[Any], payload: bytes = b"") -> None:
        """Send a frame."""
        self.sock.sendall(frame(code, fields, payload, channel=CHANNEL))

    def credit(self, messages: int, *, count: int = 0, received: int = 0, window: int = 10_000) -> None:
        """Give credit."""
        numbers = (received, window, 0, 1000, HANDLE, count, messages)
        self.say(FLOW, [uint(number) for number in numbers])

    def frames(self, code: int) -> list[Fields]:
        """The frames of this performative that the client has sent by now."""
        self.sock.settimeout(0.2)
        try:
            while data := self.sock.recv(65536):
                self.heard += data
        except TimeoutError:
            # It has sent nothing more.
            pass
        found, at = [], 0
        while at < len(self.heard):
            size = FRAME_HEAD.unpack_from(self.heard, at)[0]
            one = bytes(self.heard[at : at + size])
            if code_of(memoryview(one), 8) == code:
                found.append(Fields(one))
            at += size
        return found

    def close(self) -> None:
        self._thread.join()
        self.sock.close()
        self._listener.close()


@contextmanager
def peer(
    monkeypatch: pytest.MonkeyPatch, *, sends: bool = False, largest_frame: int = 65536, window: int = 10_000
) -> Iterator[tuple[Peer, Connection]]:
    """A peer that sends or receives, and a connection to it."""
    monkeypatch.setattr(link_base, "_link_numbers", itertools.count())
    monkeypatch.setattr(link_base, "_DETACH_TIMEOUT_S", 0.0)
    monkeypatch.setattr("labconsole_amqp.link.connection._CLOSE_TIMEOUT_S", 0.0)
    one = Peer(sends=sends, largest_frame=largest_frame, window=window)
    try:
        with connect(one.endpoint) as connection:
            yield one, connection
    finally:
        one.close()


def until(sender: Sender, done: Any) -> None:
    """Pump until `done`."""
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        sender.pump(0.05)


@contextmanager
def sending(monkeypatch: pytest.MonkeyPatch, credit: int, **limits: int) -> Iterator[tuple[Peer, Sender]]:
    """A peer with these `limits`, and a sender to it that has credit."""
    with peer(monkeypatch, **limits) as (broker, connection):
        sender = Sender(connection, "q")
        broker.credit(credit, window=limits.get("window", 10_000))
        until(sender, lambda: sender.capacity)
        yield broker, sender


ACCEPTED, RELEASED, REJECTED = (Described(ulong(code), []) for code in (0x24, 0x26, 0x25))


class TestSending:
    def test_outcomes_in_any_order_count_in_the_order_of_sending(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with sending(monkeypatch, 1000) as (broker, sender):
            assert len(sender.send(template(), 300)) == 300
            broker.say(DISPOSITION, [True, uint(3), uint(255), True, ACCEPTED])
            broker.say(DISPOSITION, [True, uint(2), None, True, RELEASED])
            sender.pump(0.2)
            sender.pump(0.05)
            assert (sender.unsettled, len(sender.pop_acknowledged_ns())) == (300, 0)
            broker.say(DISPOSITION, [True, uint(0), uint(1), True, REJECTED])
            until(sender, lambda: sender.unsettled == 44)
            assert (sender.accepted, sender.rejected, sender.released) == (253, 2, 1)
            assert len(sender.pop_acknowledged_ns()) == 256

    def test_outcomes_of_one_message_each_and_of_several_may_have_the_same_size(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As RabbitMQ sends them."""
        with sending(monkeypatch, 1000) as (broker, sender):
            sender.send(template(), 600)
            broker.say(DISPOSITION, [True, uint(0), uint(299), True, ACCEPTED])
            ranges = [(300, 300), (301, 301), (302, 400), (401, 401), (402, 599)]
            for first, last in ranges:
                broker.say(DISPOSITION, [True, uint(first), uint(last), True, ACCEPTED])
            until(sender, lambda: not sender.unsettled)
            assert sender.accepted == 600

    def test_an_outcome_that_is_not_settled_is_settled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with sending(monkeypatch, 10) as (broker, sender):
            sender.send(template(), 10)
            broker.say(DISPOSITION, [True, uint(0), uint(9), False, Described(ulong(0x23), [uint(0), ulong(0)])])
            broker.say(DISPOSITION, [True, uint(2), uint(5), False, ACCEPTED])
            broker.say(DISPOSITION, [True, uint(0), uint(1), True, ACCEPTED])
            until(sender, lambda: sender.unsettled == 4)
            sender.pump(0.05)
            [answer] = broker.frames(DISPOSITION)
            assert [answer.uint(1), answer.uint(2), answer.state(4)] == [2, 5, DeliveryState.ACCEPTED]
            assert answer.flag(3) and not answer.flag(0)

    def test_the_window_of_the_session_bounds_what_is_sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with sending(monkeypatch, 100, window=3) as (broker, sender):
            assert len(sender.send(template(), 10)) == 3
            broker.credit(97, count=3, received=3, window=2**32 - 1)
            until(sender, lambda: sender.capacity)
            assert sender.capacity == 97

    def test_a_large_message_is_cut_into_the_frames_that_the_peer_accepts(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Stamp and number of each stay in one frame, wherever the cut is."""
        with sending(monkeypatch, 100, largest_frame=512) as (broker, sender):
            large = plain_template(bytes(65 + n % 26 for n in range(2000)), 0)
            for first in (0, 2):
                sent = sender.send(large, 2, first) if first else sender.send_mixed([large] * 2, first)
                assert len(sent) == 2
            parts = broker.frames(TRANSFER)
            assert max(len(part.frame) for part in parts) <= 512
            assert [part.uint(1) for part in parts if part.place(1)] == [0, 1, 2, 3]
            stream, messages = b"", []
            for part in parts:
                stream += part.frame[part.stop :]
                if not part.flag(5):
                    messages.append(envelope_layout.decode(stream))
                    stream = b""
            assert [message.message_id for message in messages] == [0, 1, 2, 3]
            assert {message.body for message in messages} == {bytes(65 + n % 26 for n in range(2000))}

    @pytest.mark.parametrize("offset", [*range(440, 520), *range(920, 1000)])
    def test_no_cut_is_within_a_stamp(self, offset: int) -> None:
        message = bytes(n % 251 for n in range(1500))
        framed = TransferFrames(0, settled=False, largest=512).framed(message, (offset, None))
        place = framed.offset(offset)
        assert framed.octets[place : place + 8] == message[offset : offset + 8]

    def test_delivery_ids_go_on_from_zero_after_32_bits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with peer(monkeypatch) as (broker, connection):
            sender = Sender(connection, "q")
            sender._next_id = sender._oldest_id = sender._transfers = 2**32 - 300
            broker.credit(1000, count=2**32 - 300, received=2**32 - 300)
            until(sender, lambda: sender.capacity)
            assert len(sender.send(template(), 600)) == 600
            ids = [transfer.uint(1) for transfer in broker.frames(TRANSFER)]
            assert ids == [*range(2**32 - 300, 2**32), *range(300)]
            for number in ids:
                broker.say(DISPOSITION, [True, uint(number), uint(number), True, ACCEPTED])
            broker.credit(500, count=300, received=300)
            until(sender, lambda: not sender.unsettled and sender.capacity == 500)
            assert sender.accepted == 600

    def test_outcomes_that_end_before_they_begin_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with sending(monkeypatch, 10) as (broker, sender):
            sender.send(template(), 10)
            broker.say(DISPOSITION, [True, uint(5), uint(3), True, ACCEPTED])
            with pytest.raises(UserError, match="a disposition that ends before it begins"):
                until(sender, lambda: False)
            assert sender.accepted == 0

    def test_a_peer_that_sends_on_a_sender_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with peer(monkeypatch) as (broker, connection):
            sender = Sender(connection, "q")
            broker.say(TRANSFER, [uint(HANDLE), uint(0), b"a", uint(0)], b"message")
            with pytest.raises(UserError, match="sends messages on a link that sends to it"):
                until(sender, lambda: False)


class TestReceiving:
    @pytest.fixture
    def ends(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Peer, Receiver]]:
        with peer(monkeypatch, sends=True) as (broker, connection):
            yield broker, Receiver(connection, "q", templates=[template()])

    def batch(self, receiver: Receiver, count: int) -> Batch:
        time.sleep(0.1)
        [batch] = receive_all(receiver, count)
        receiver._flush()
        return batch

    def test_transfers_in_other_forms(self, ends: tuple[Peer, Receiver]) -> None:
        """Short ids, no tag, a descriptor of eight bytes, several frames, an end without a message."""
        broker, receiver = ends
        whole = template().filled(1, 1000)
        handle, message_format = uint(HANDLE), uint(0)
        broker.say(TRANSFER, [handle, uint(0), None, message_format], whole)
        broker.say(TRANSFER, [handle, uint(1), b"tag", message_format, True], whole)
        broker.say(TRANSFER, [handle, uint(2), b"tag", message_format, False, True], whole[:10])
        broker.say(TRANSFER, [handle, None, None, None, None, True], whole[10:50])
        broker.say(TRANSFER, [handle], whole[50:])
        broker.say(TRANSFER, [handle, uint(3), b"tag", message_format, None, True], whole[:10])
        broker.say(TRANSFER, [handle, None, None, None, None, False, None, None, None, True])
        long_form = frame(TRANSFER, [handle, uint(4), b"x", message_format], whole, channel=CHANNEL)
        body = b"\x00\x80" + bytes(7) + long_form[10:]
        broker.sock.sendall((len(body) + 8).to_bytes(4, "big") + long_form[4:8] + body)
        batch = self.batch(receiver, 5)
        assert batch.matched.tolist() == [True, True, True, False, True]
        assert (batch.raw, batch.sizes.tolist()) == ({3: b""}, [len(whole)] * 3 + [0, len(whole)])
        settled = [(one.uint(1), one.uint(2)) for one in broker.frames(DISPOSITION)]
        assert settled == [(0, 0), (2, 2), (4, 4)]

    def test_many_in_frames_of_one_form_until_it_changes(self, ends: tuple[Peer, Receiver]) -> None:
        broker, receiver = ends
        whole, other = template().filled(1, 1000), template().filled(1, 1000)[:-1] + b"?"
        said = b""
        for number in range(1000, 1400):
            settled = 1200 <= number < 1300
            payload = other if number % 50 == 0 else whole
            tag = number.to_bytes(4, "big")
            fields = [uint(HANDLE), uint(number), tag, uint(0), settled, False]
            said += frame(TRANSFER, fields, payload, channel=CHANNEL)
        broker.sock.sendall(said)
        batch = self.batch(receiver, 400)
        assert [index for index, matched in enumerate(batch.matched) if not matched] == list(range(0, 400, 50))
        assert set(batch.raw.values()) == {other}
        settled_ranges = [(one.uint(1), one.uint(2)) for one in broker.frames(DISPOSITION)]
        assert settled_ranges == [(1000, 1199), (1300, 1399)]

    def test_credit_counts_what_has_come(self, ends: tuple[Peer, Receiver]) -> None:
        broker, receiver = ends
        for number in range(300):
            broker.say(TRANSFER, [uint(HANDLE), uint(number), b"t", uint(0)], b"message")
        self.batch(receiver, 300)
        first, *_, last = broker.frames(FLOW)
        assert (first.uint(5), first.uint(6)) == (0, 1000)
        assert (last.uint(0), last.uint(5), last.uint(6)) == (300, 300, 1000)

    def test_more_messages_than_there_was_credit_for_are_received_and_give_no_credit(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with peer(monkeypatch, sends=True) as (broker, connection):
            receiver = Receiver(connection, "q", window=100)
            for number in range(250):
                broker.say(TRANSFER, [uint(HANDLE), uint(number), b"t", uint(0)], b"message")
            time.sleep(0.1)
            assert [len(receiver.receive(30, 1)) for _ in range(9)] == [30] * 8 + [10]
            receiver._flush()
            credits = [flow.uint(6) for flow in broker.frames(FLOW)]
            assert min(credits) > 0 and max(credits) == 100

    def test_a_form_is_learnt_while_others_wait(self, ends: tuple[Peer, Receiver]) -> None:
        broker, receiver = ends
        large = template(b"x" * 2_000)
        messages = (b"a", large.filled(1, 1000), b"b", large.filled(2, 1000))
        broker.sock.sendall(
            b"".join(
                frame(TRANSFER, [uint(HANDLE), uint(number), b"t", uint(0)], message, channel=CHANNEL)
                for number, message in enumerate(messages)
            )
        )
        time.sleep(0.1)
        assert receiver.receive(1, 1).raw == {0: b"a"}
        receiver.learn(large)
        batch = self.batch(receiver, 3)
        assert (batch.numbers.tolist(), batch.raw) == ([1, -1, 2], {1: b"b"})

    def test_what_came_before_a_message_that_is_too_large_comes_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with peer(monkeypatch, sends=True) as (broker, connection):
            receiver = Receiver(connection, "q", max_message_size=1000)
            heads = ([uint(HANDLE), uint(number), b"t", uint(0)] for number in range(5))
            said = (frame(TRANSFER, head, b"m", channel=CHANNEL) for head in heads)
            part = frame(TRANSFER, [uint(HANDLE), uint(5), b"t", uint(0), None, True], bytes(1001), channel=CHANNEL)
            broker.sock.sendall(b"".join(said) + part)
            assert len(self.batch(receiver, 5)) == 5
            with pytest.raises(UserError, match="more than 1,000 bytes"):
                receiver.receive(5, 1)
            broker.sock.sendall(bytes.fromhex("0000000802000000"))
            with pytest.raises(UserError, match="was lost"):
                receiver.receive(5, 1)
            assert receiver.received == 5

    @pytest.mark.parametrize("end", [(DETACH, [uint(HANDLE), True], CHANNEL), (CLOSE, [], 0)], ids=("detach", "close"))
    @pytest.mark.parametrize("gather_s", [0.0, 0.5])
    def test_messages_that_come_with_the_end_are_returned_before_it(
        self, ends: tuple[Peer, Receiver], end: tuple[int, list[Any], int], gather_s: float
    ) -> None:
        broker, receiver = ends
        code, fields, channel = end
        messages = (
            frame(TRANSFER, [uint(HANDLE), uint(number), b"t", uint(0), True], b"message", channel=CHANNEL)
            for number in range(50)
        )
        broker.sock.sendall(b"".join(messages) + frame(code, fields, channel=channel))
        time.sleep(0.1)
        assert [len(receiver.receive(30, 1, gather_s)) for _ in range(2)] == [30, 20]
        with pytest.raises(UserError, match=r"ended the receiver's link|closed the connection"):
            receiver.receive(30, 1, gather_s)

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ([uint(HANDLE + 1), uint(0), b"t"], "a message for a link that is not open"),
            ([uint(HANDLE), None, b"t"], "a message without a delivery id"),
            ([uint(HANDLE), None, b"t", None, None, True], "a message without a delivery id"),
            ([uint(HANDLE), "zero", b"t"], "field 1 is not an unsigned number"),
        ],
    )
    def test_a_wrong_transfer_is_one_sentence_after_the_messages_before_it(
        self, ends: tuple[Peer, Receiver], fields: list[Any], reason: str
    ) -> None:
        broker, receiver = ends
        good = frame(TRANSFER, [uint(HANDLE), uint(0), b"t"], b"message", channel=CHANNEL)
        broker.sock.sendall(good + frame(TRANSFER, fields, b"message", channel=CHANNEL))
        assert self.batch(receiver, 1).raw == {0: b"message"}
        with pytest.raises(UserError, match=f"sent a frame that cannot be read: {reason}"):
            receiver.receive(1, 1)
