"""Small messages between two consoles over two queues of the broker, one for each direction."""

from __future__ import annotations

import json
from typing import Any

from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.wire.amqp_types import EnvelopeError
from labconsole_amqp.wire.envelope import MessageParts, encode
from labconsole_amqp.wire.envelope_layout import decode

_CREDIT = 200
_BATCH = 100
_LARGEST_BYTES = 16 * 1024


class ClockLink:
    """Sends and receives JSON objects. Raises UserError: a queue does not exist, or the connection is lost."""

    def __init__(self, connection: Connection, outgoing: str, incoming: str) -> None:
        self._receiver = Receiver(
            connection,
            incoming,
            window=_CREDIT,
            settled=True,
            max_message_size=_LARGEST_BYTES,
        )
        self._sender = Sender(connection, outgoing, settled=True)

    def send(self, content: dict[str, Any]) -> int:
        """Send a message; returns when (`clock.now_ns`), 0 where the broker accepts none now. Raises UserError."""
        message, stamp_offset = encode(MessageParts(json.dumps(content).encode()))
        sent = self._sender.send_messages([message], stamp_offset)
        return int(sent.times_ns[0]) if len(sent) else 0

    def receive(self, timeout_s: float) -> list[tuple[int, dict[str, Any]]]:
        """The messages that have come, each with the time; waits up to `timeout_s` for the first. Raises UserError.

        What is not a JSON object is left out: it comes from another program.
        """
        batch = self._receiver.receive(_BATCH, timeout_s)
        found = []
        for index, message in batch.raw.items():
            try:
                content = json.loads(decode(message).body)
            except (EnvelopeError, ValueError, RecursionError):
                continue
            if isinstance(content, dict):
                found.append((int(batch.received_ns[index]), content))
        return found
