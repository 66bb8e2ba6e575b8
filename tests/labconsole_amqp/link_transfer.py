"""Messages for the tests of the fast link, and helpers that send and receive a number of them."""

from __future__ import annotations

import time

from labconsole_amqp.link.arrivals import Batch
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.wire.envelope import message_number
from labconsole_amqp.wire.template import Template, plain_template

PAYLOAD = b"(FPL-MAS123-IS -B738/M-SDFGIRWY/S -WMKK0100 -N0450F350 DCT -WSSS0055 -0)"


def template(payload: bytes = PAYLOAD) -> Template:
    """A plain message of the source's tool, with number and stamp."""
    return plain_template(payload, message_number(0, 0))


def send_all(sender: Sender, message: Template, count: int) -> list[int]:
    """Send `count` messages numbered from 0; returns the times of sending."""
    times: list[int] = []
    deadline = time.monotonic() + 30
    while len(times) < count and time.monotonic() < deadline:
        times += sender.send(message, count - len(times), len(times)).times_ns.tolist()
        sender.pump(0.05 if sender.capacity == 0 else 0)
    assert sender.drain(30) == 0
    return times


def await_credit(sender: Sender) -> None:
    """Wait until there is credit, at most 30 s."""
    deadline = time.monotonic() + 30
    while sender.capacity == 0 and time.monotonic() < deadline:
        sender.pump(0.1)


def receive_all(receiver: Receiver, count: int, seconds: float = 30) -> list[Batch]:
    """Receive `count` messages."""
    batches: list[Batch] = []
    deadline = time.monotonic() + seconds
    while sum(map(len, batches)) < count and time.monotonic() < deadline:
        batches.append(receiver.receive(count, 0.1))
    assert sum(map(len, batches)) == count
    return [batch for batch in batches if len(batch)]


def raw_messages(receiver: Receiver, count: int) -> list[bytes]:
    """The bytes of the next `count` messages, which match no template."""
    return [batch.raw[index] for batch in receive_all(receiver, count) for index in range(len(batch))]
