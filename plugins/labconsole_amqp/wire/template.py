"""Templates: messages that are equal but for stamp and number, for sending and for recognising them."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole_amqp.wire.amqp_types import EnvelopeError
from labconsole_amqp.wire.envelope import NUMBER_BEFORE_STAMP, MessageParts, encode
from labconsole_amqp.wire.envelope_layout import layout_of


@dataclass(frozen=True, slots=True)
class Template:
    """An encoded message that is sent many times.

    The 8 bytes at `stamp_offset` (big-endian, below 2**63, ms since the Unix epoch) are written when it is sent, and
    so are the 8 bytes at `number_offset` (big-endian unsigned) if there is one.
    """

    message: bytes
    stamp_offset: int
    number_offset: int | None = None

    def filled(self, number: int, stamp_ms: int) -> bytes:
        """The message with this number, if it has one, and this stamp."""
        message = bytearray(self.message)
        message[self.stamp_offset : self.stamp_offset + 8] = stamp_ms.to_bytes(8, "big")
        if self.number_offset is not None:
            message[self.number_offset : self.number_offset + 8] = number.to_bytes(8, "big")
        return bytes(message)


def plain_template(payload: bytes, number: int | None, *, durable: bool = False) -> Template:
    """The plain message of Tests 1 and 2 with `payload`; `number` is its message id, None for messages without one."""
    message, stamp_offset = encode(MessageParts(payload), durable=durable, message_id=number)
    return Template(message, stamp_offset, None if number is None else stamp_offset - NUMBER_BEFORE_STAMP)


def learn_template(message: bytes, *, numbered: bool) -> Template | None:
    """The template of a good message whose form a broker has changed, None if it has none.

    It has none where stamp or number are in a short form.
    """
    try:
        layout = layout_of(message)
    except EnvelopeError:
        return None
    stamp_offset, number_offset = layout.stamp_offset, layout.number_offset if numbered else None
    if stamp_offset is None or (numbered and number_offset is None):
        return None
    return Template(message, stamp_offset, number_offset)
