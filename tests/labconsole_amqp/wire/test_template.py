"""Templates are learned from a broker's form of a message only where its fields are certain."""

from __future__ import annotations

from proton import Message, symbol, ulong

from labconsole_amqp.wire.envelope import NUMBER_BEFORE_STAMP, MessageParts, encode, message_number
from labconsole_amqp.wire.envelope_layout import decode
from labconsole_amqp.wire.template import learn_template

STAMP_MS = 1_700_000_000_123
NUMBER = message_number(3, 77)


def foreign(number: int | None = None) -> bytes:
    """A message as a broker may change it: header filled in, annotations added."""
    message = Message(body="payload", properties={"sent_time": STAMP_MS}, durable=True, priority=4, ttl=60.0)
    message.annotations = {symbol("x-routing-key"): "q"}
    if number is not None:
        message.id = ulong(number)
    return bytes(message.encode())


def with_field(message: bytes, offset: int, value: int) -> bytes:
    return message[:offset] + value.to_bytes(8, "big") + message[offset + 8 :]


def test_stamp_and_number_are_found_at_any_offset() -> None:
    template = learn_template(foreign(NUMBER), numbered=True)
    assert template is not None
    assert template.number_offset is not None
    changed = with_field(with_field(template.message, template.stamp_offset, 5), template.number_offset, 6)
    found = decode(changed)
    assert (found.stamp_ms, found.message_id, found.body) == (5, 6, b"payload")


def test_without_numbers_only_the_stamp_is_a_field() -> None:
    template = learn_template(foreign(), numbered=False)
    assert template is not None
    assert template.number_offset is None
    assert decode(with_field(template.message, template.stamp_offset, 9)).stamp_ms == 9


def test_the_encoded_form_is_learned_as_it_is() -> None:
    message, stamp_offset = encode(MessageParts(b"payload"), STAMP_MS, message_id=NUMBER)
    template = learn_template(message, numbered=True)
    assert template is not None
    assert (template.stamp_offset, template.number_offset) == (stamp_offset, stamp_offset - NUMBER_BEFORE_STAMP)


def test_a_message_without_a_fixed_offset_of_its_number_gives_no_template() -> None:
    assert learn_template(foreign(5), numbered=True) is None, "a small ulong takes one byte"
    assert learn_template(foreign(), numbered=True) is None, "there is none"
    payload = NUMBER.to_bytes(8, "big")
    twice = encode(MessageParts(payload), STAMP_MS, message_id=NUMBER)[0]
    template = learn_template(twice, numbered=True)
    assert template is None or decode(with_field(twice, template.number_offset or 0, 6)).body == payload


def test_bytes_that_are_not_a_message_give_no_template() -> None:
    assert learn_template(b"this is not a message", numbered=False) is None
    assert learn_template(b"", numbered=True) is None
