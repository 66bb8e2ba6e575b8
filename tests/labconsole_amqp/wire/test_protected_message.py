"""The AMQP message of hardened envelopes: what brokers change is accepted, everything else is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest
from proton import Data, Message, symbol, ulong

from labconsole_amqp.wire.amqp_types import EnvelopeError
from labconsole_amqp.wire.envelope import MessageParts, encode
from labconsole_amqp.wire.envelope_layout import layout_of
from labconsole_amqp.wire.protected_message import ProtectedMessage, decode_protected, encode_protected

CONTENT, TYPE = bytes(range(256)) * 2, b"application/cose"
SECTIONS = {"durable": True, "message_id": 2**40 + 5}


def stamped(message: bytes, stamp_offset: int, stamp_ms: int = 1_000) -> bytes:
    return message[:stamp_offset] + stamp_ms.to_bytes(8, "big") + message[stamp_offset + 8 :]


@pytest.mark.parametrize("durable", (False, True))
@pytest.mark.parametrize("number", (None, 2**40 + 5))
@pytest.mark.parametrize("signature", (b"", b"header..signature", b"x" * 1000))
@pytest.mark.parametrize("content_type", (b"", TYPE, b"t/" + b"x" * 253))
@pytest.mark.parametrize("content", (b"x", CONTENT[:255], CONTENT))
def test_what_is_encoded_is_decoded_by_both(
    durable: bool, number: int | None, signature: bytes, content_type: bytes, content: bytes
) -> None:
    message, offset = encode_protected(content, content_type, signature, durable=durable, message_id=number)
    assert layout_of(message).stamp.start == offset
    sent = stamped(message, offset)
    expected = ProtectedMessage(1_000, number, content_type, content, signature)
    assert decode_protected(sent) == expected
    read: Any = Message()
    read.decode(sent)
    assert (read.durable, read.id, bytes(read.body)) == (durable, number, content)
    assert read.properties["sent_time"] == 1_000
    assert read.properties.get("x-jws-signature", "") == signature.decode()


def test_what_brokers_add_and_write_in_other_widths_is_accepted() -> None:
    message: Any = Message(body=CONTENT, inferred=True)
    message.durable, message.priority, message.ttl, message.delivery_count = True, 7, 60.0, 2
    message.id, message.content_type, message.subject = ulong(5), symbol(TYPE.decode()), "x"
    message.properties = {"other": 1, "sent_time": ulong(5), "x-jws-signature": "a..b"}
    message.annotations = {symbol("x-opt-enqueue-time"): 1}
    message.instructions = {symbol("x-opt-y"): Data.LIST}
    assert decode_protected(message.encode()) == ProtectedMessage(5, 5, TYPE, CONTENT, b"a..b")
    one, offset = encode_protected(CONTENT, TYPE)
    two = stamped(one, offset)
    parts = two + b"\x00\x53\x75\xa0\x03abc" + b"\x00\x53\x78\xc1\x01\x00"
    assert decode_protected(parts).content == CONTENT + b"abc", "several data sections, and a footer"


def test_everything_else_is_refused() -> None:
    message, offset = encode_protected(CONTENT, TYPE, b"a..b", **SECTIONS)  # type: ignore[arg-type]
    good = stamped(message, offset)
    entry = good[good.index(b"\xa1\x09sent_time") : good.index(b"\xa1\x0fx-jws-signature")]
    start = good.index(b"\x00\x53\x74\xd1")
    twice = good[:start] + b"\x00\x53\x74\xd1" + (4 + 2 * len(entry)).to_bytes(4, "big") + bytes((0, 0, 0, 4))
    for wrong, reason in (
        (b"", "sent_time|no body"),
        (good[:-1], "beyond its place"),
        (good + b"x", "no section begins"),
        (good[: good.index(b"\x00\x53\x75")], "no body"),
        (twice + entry * 2 + good[good.index(b"\x00\x53\x75") :], "sent_time twice"),
        (encode(MessageParts(CONTENT, encrypted_key=b"k", iv=b"i"))[0], "the body is a value"),
        (encode(MessageParts(b"text"))[0], "the body is a value"),
        (good.replace(b"\xa1\x0fx-jws-signature\xb1", b"\xa1\x0fx-jws-signature\xb0"), "is not a string"),
        (good.replace(b"sent_time", b"sent_tame"), "sent_time is missing"),
        (stamped(message, offset, 2**63), "not a time"),
        (good.replace(b"\x00\x53\x75", b"\x00\x53\x76"), "unknown or unsupported section"),
    ):
        with pytest.raises(EnvelopeError, match=reason):
            decode_protected(wrong)


def test_mutants_raise_nothing_else() -> None:
    message, offset = encode_protected(CONTENT, TYPE, b"a..b", **SECTIONS)  # type: ignore[arg-type]
    good, dice = stamped(message, offset), random.Random(5)
    for _ in range(5_000):
        mutant = bytearray(good)
        for _ in range(dice.choice((1, 2, 8))):
            mutant[dice.randrange(min(120, len(mutant)))] = dice.randrange(256)
        try:
            decode_protected(mutant[: dice.choice((len(mutant), dice.randrange(len(mutant))))])
        except EnvelopeError:
            continue
