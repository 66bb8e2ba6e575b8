"""Templates: messages that are equal but for stamp and number, for sending and for recognising them."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole_amqp.wire.amqp_types import EnvelopeError
from labconsole_amqp.wire.envelope import (
    NUMBER_BEFORE_STAMP,
    Envelope,
    MessageParts,
    decode,
    encode,
    find_stamp,
)

_OTHER_ID = 0x7ABBCCDDEEFF0011


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

    It has none where stamp or number are in a short form or without a fixed place. The places are checked by writing
    into them: the message with another number must decode to that number, and be equal otherwise.
    """
    try:
        stamp_offset = find_stamp(message)
        envelope = decode(message)
        if not numbered:
            return Template(message, stamp_offset)
        if envelope.message_id is None:
            return None
        number_offset = message.find(envelope.message_id.to_bytes(8, "big"))
        if number_offset < 0:
            return None
        changed = message[:number_offset] + _OTHER_ID.to_bytes(8, "big") + message[number_offset + 8 :]
        return Template(message, stamp_offset, number_offset) if _differs_in_id(envelope, decode(changed)) else None
    except EnvelopeError:
        return None


def _differs_in_id(envelope: Envelope, changed: Envelope) -> bool:
    return changed == envelope._replace(message_id=_OTHER_ID)
