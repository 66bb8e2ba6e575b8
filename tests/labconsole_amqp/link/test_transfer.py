"""The fast link: messages arrive byte for byte, are settled, and do not accumulate in memory."""

from __future__ import annotations

import time

import numpy as np
import psutil
import pytest
from proton import Message

from labconsole.clock import now_ns
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.link import proton_engine
from labconsole_amqp.link.arrivals import TemplateMatcher
from labconsole_amqp.link.connection import Connection, connect
from labconsole_amqp.link.queue_probe import drain_queue, probe_queue_depth
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.wire import envelope, envelope_layout
from labconsole_amqp.wire.amqp_types import EnvelopeError
from labconsole_amqp.wire.template import Template
from tests.labconsole_amqp.embedded_broker import RunningBroker, broker_process, serving
from tests.labconsole_amqp.link_transfer import PAYLOAD, await_credit, raw_messages, receive_all, send_all, template


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

    def test_messages_of_several_templates_arrive_in_order_each_as_it_is(self, connection: Connection) -> None:
        templates = [template(b"x" * size) for size in (1, 300, 90_000, 20)]
        order = np.random.default_rng(1).integers(0, 4, 600).tolist()
        sender, sent = Sender(connection, "q"), 0
        while sent < len(order):
            sent += len(sender.send_mixed([templates[place] for place in order[sent:]], sent))
            sender.pump(0.05 if sender.capacity == 0 else 0)
        assert sender.drain(5) == 0
        batches = receive_all(Receiver(connection, "q", templates=templates), len(order))
        assert all(batch.matched.all() and not batch.raw for batch in batches)
        assert np.concatenate([batch.numbers for batch in batches]).tolist() == list(range(len(order)))
        sizes = np.concatenate([batch.sizes for batch in batches]).tolist()
        assert sizes == [len(templates[place].message) for place in order]
        stamps = np.concatenate([batch.stamps_ms for batch in batches])
        assert (np.diff(stamps) >= 0).all() and abs(int(stamps[-1]) - time.time() * 1000) < 10_000

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
        encoded = [envelope.encode(envelope.MessageParts(f"payload {n}".encode())) for n in range(600)]
        sender = Sender(connection, "q")
        await_credit(sender)
        stamp = encoded[0][1]
        messages = [message for message, _ in encoded]
        sent = sender.send_messages(messages, stamp)
        got = raw_messages(Receiver(connection, "q"), 600)
        assert [raw[:stamp] + raw[stamp + 8 :] for raw in got] == [m[:stamp] + m[stamp + 8 :] for m in messages]
        assert [envelope_layout.decode(raw).stamp_ms for raw in got] == sent.stamps_ms.tolist()

    @pytest.mark.parametrize("size", [42_708, 65_477, 100_000, 300_000])
    def test_large_messages_arrive_whole(self, connection: Connection, size: int) -> None:
        """43 KB is one frame; 100 KB is one, too, and more than the broker reads at once (as is 65,477 with the rest of
        the message, just so much); 300 KB needs three frames. No row of the receiver has room for any of them."""
        payload = bytes(65 + n % 26 for n in range(size))
        send_all(Sender(connection, "q"), template(payload), 5)
        for raw in raw_messages(Receiver(connection, "q"), 5):
            assert envelope_layout.decode(raw).body == payload

    @pytest.mark.parametrize("size", [8, 71, 42_708])
    @pytest.mark.parametrize("copies", [False, True], ids=["in place", "copied"])
    def test_the_engine_reads_and_writes_in_place_or_through_a_copy(
        self, broker: RunningBroker, size: int, copies: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where the engine's functions for its own buffers are not exported, bytes are copied."""
        assert proton_engine._buffers is not None
        if copies:
            monkeypatch.setattr(proton_engine, "_buffers", None)
        sent = template(bytes(65 + n % 26 for n in range(size)))
        with connect(broker.plain) as opened:
            send_all(Sender(opened, "q"), sent, 500)
            batches = receive_all(Receiver(opened, "q", templates=[sent]), 500)
        assert all(batch.matched.all() for batch in batches)
        assert np.concatenate([batch.numbers for batch in batches]).tolist() == list(range(500))

    @pytest.mark.parametrize("gather_s", [0.0, 60.0], ids=["at once", "gathered"])
    def test_messages_are_gathered_after_the_first_with_the_time_of_each(
        self, broker: RunningBroker, gather_s: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each is sent when the one before it has been read, so that the time between two is not the computer's."""
        with connect(broker.plain) as sending, connect(broker.plain) as receiving:
            sender, receiver = Sender(sending, "q"), Receiver(receiving, "q", window=4, templates=[template()])
            await_credit(sender)
            sent_ns: list[int] = []

            def send_next() -> None:
                sent_ns.append(now_ns())
                sender.send(template(), 1, len(sent_ns))

            def listen(timeout_s: float) -> None:
                send_next()
                read, deadline = receiver._count, time.monotonic() + timeout_s
                while receiver._count == read and (left_s := deadline - time.monotonic()) > 0:
                    Connection.listen(receiving, left_s)

            monkeypatch.setattr(receiving, "listen", listen)
            send_next()
            batch = receiver.receive(6, 60, gather_s)
            assert len(batch) == len(sent_ns) == (6 if gather_s else 1)  # with credit for four, more is given meanwhile
            assert (batch.received_ns > sent_ns).all() and (batch.received_ns[:-1] < sent_ns[1:]).all()

    def test_gathering_ends_with_its_time(self, broker: RunningBroker) -> None:
        with connect(broker.plain) as sending, connect(broker.plain) as receiving:
            sender, receiver = Sender(sending, "q"), Receiver(receiving, "q", templates=[template()])
            send_all(sender, template(), 1)
            batch = receiver.receive(2, 60, 0.2)
            assert len(batch) == 1 and now_ns() - batch.received_ns[0] >= 200_000_000

    @pytest.mark.parametrize("offset", range(0, 400, 7))
    def test_each_changed_byte_is_found(self, offset: int) -> None:
        good = template(bytes(300))
        matcher = TemplateMatcher(good)
        changed = bytearray(good.message)
        changed[offset % len(good.message)] ^= 1
        rows = np.frombuffer(changed, np.uint8).reshape(1, -1)
        free = [*range(good.stamp_offset, good.stamp_offset + 8)]
        assert good.number_offset is not None
        free += range(good.number_offset, good.number_offset + 8)
        same = offset % len(good.message) in free
        stamp_is_negative = changed[good.stamp_offset] > 0x7F
        assert matcher.check(rows)[0][0] == (same and not stamp_is_negative)
        assert (matcher.check_one(memoryview(changed)) is not None) == (same and not stamp_is_negative)

    def test_a_changed_byte_does_not_match(self, connection: Connection) -> None:
        good = template()
        bad = Template(good.message[:-1] + b"?", good.stamp_offset, good.number_offset)
        sender = Sender(connection, "q")
        for message in (good, bad, good):
            send_all(sender, message, 1)
        batches = receive_all(Receiver(connection, "q", templates=[good]), 3)
        assert [flag for batch in batches for flag in batch.matched.tolist()] == [True, False, True]
        [raw] = [raw for batch in batches for raw in batch.raw.values()]
        assert envelope_layout.decode(raw).body == PAYLOAD[:-1] + b"?"

    def test_a_learned_form_passes_in_the_fast_path(self, connection: Connection) -> None:
        ours, theirs = template(), Message(body=PAYLOAD.decode(), properties={"sent_time": 1 << 40}, durable=True)
        foreign = bytes(theirs.encode())
        stamp = foreign.index(b"sent_time\x81") + 10
        sender, receiver = Sender(connection, "q"), Receiver(connection, "q", templates=[ours])
        await_credit(sender)
        sent = sender.send_messages([foreign], stamp)
        [batch] = receive_all(receiver, 1)
        assert not batch.matched[0]
        assert envelope_layout.decode(batch.raw[0]).stamp_ms == sent.stamps_ms[0]
        receiver.learn(Template(batch.raw[0], stamp))
        sent = sender.send_messages([foreign], stamp)
        send_all(sender, ours, 1)
        batches = receive_all(receiver, 2)
        assert all(batch.matched.all() for batch in batches)
        assert int(batches[0].stamps_ms[0]) == sent.stamps_ms[0]

    def test_a_stamp_that_is_not_a_time_does_not_match(self, connection: Connection) -> None:
        good, sender = template(), Sender(connection, "q")
        await_credit(sender)
        beyond = (2**63).to_bytes(8, "big")
        forged = good.message[: good.stamp_offset] + beyond + good.message[good.stamp_offset + 8 :]
        sender._put_messages([forged])
        [batch] = receive_all(Receiver(connection, "q", templates=[good]), 1)
        assert not batch.matched[0]
        with pytest.raises(EnvelopeError, match="not a time"):
            envelope_layout.decode(batch.raw[0])


class TestSettlement:
    def test_acknowledged_messages_are_accepted_and_timed(self, connection: Connection) -> None:
        sender = Sender(connection, "q")
        sent = send_all(sender, template(), 500)
        acknowledged = sender.pop_acknowledged_ns()
        assert (sender.sent, sender.accepted, sender.unsettled) == (500, 500, 0)
        assert np.all(acknowledged > np.array(sent))
        assert len(sender.pop_acknowledged_ns()) == 0

    def test_pre_settled_messages_need_no_acknowledgement(self, connection: Connection) -> None:
        sender = Sender(connection, "q", settled=True)
        send_all(sender, template(), 500)
        assert (sender.sent, sender.accepted, sender.unsettled) == (500, 0, 0)
        receive_all(Receiver(connection, "q", settled=True, templates=[template()]), 500)

    def test_the_receiver_gets_no_more_than_its_window(self, broker: RunningBroker, connection: Connection) -> None:
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


@pytest.mark.parametrize(
    ("messages", "limit_mb"), [(100_000, 8), pytest.param(1_000_000, 16, marks=pytest.mark.nightly)]
)
def test_memory_does_not_grow(messages: int, limit_mb: int) -> None:
    """A few MB are the messages in the broker's queue; a leak of a hundred bytes a message would be 10 or 100 MB."""
    with broker_process() as (process, endpoint), connect(endpoint) as opened:
        sender, receiver = Sender(opened, "q"), Receiver(opened, "q", templates=[template()])
        usage = [psutil.Process(), psutil.Process(process.pid)]

        def pass_through(until: int) -> None:
            while receiver.received < until:
                sender.send(template_sent, until - sender.sent)
                sender.pump(0)
                receiver.receive(1000, 0.05)
                sender.pop_acknowledged_ns()

        template_sent = template()
        pass_through(50_000)
        before = [one.memory_info().rss for one in usage]
        pass_through(50_000 + messages)
        grown = [one.memory_info().rss - start for one, start in zip(usage, before, strict=True)]
        assert max(grown) < limit_mb * 1024 * 1024
