"""Finds the fields that change from message to message in what a foreign broker made of a plain message."""

from __future__ import annotations

from labconsole_amqp.link.api import Template
from labconsole_amqp.wire.amqp_types import EnvelopeError
from labconsole_amqp.wire.envelope import Envelope, decode, find_stamp

_OTHER_ID = 0x7ABBCCDDEEFF0011


def template_of(message: bytes, *, numbered: bool) -> Template | None:
    """A template from a good message; None if it has its stamp or number in a short form, or no fixed place.

    That the places are right is proved by writing into them: the message with another number must decode to that
    number, and to nothing else that is different.
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
