"""The envelope against `proton.Message` as second reader and writer, and against damaged messages."""

import base64
import itertools
import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from proton import Array, Data, Described, Message, MessageException, byte, int32, symbol, timestamp, ulong

from labconsole_amqp.wire.amqp_types import EnvelopeError
from labconsole_amqp.wire.envelope import (
    ENCRYPTED_KEY,
    IV,
    NUMBER_BEFORE_STAMP,
    SIGNATURE,
    FieldsIn,
    MessageParts,
    Protection,
    encode,
    encoded_size,
    message_number,
)
from labconsole_amqp.wire.envelope_layout import Envelope, LayoutMemory, decode, layout_of
from tests.helpers.mutations import tenth_and_all

STAMP = 1_747_728_000_123
BODY = b"\0\x53\x77\xa1\x01x"
SIZES = (11, 237, 42_708)


def parts_for(payload: bytes, protection: Protection, randomness: random.Random) -> MessageParts:
    """Fields of the right lengths for RSA-2048 and AES-256-CBC, with random content."""
    if protection is Protection.NONE:
        return MessageParts(payload)
    signature = randomness.randbytes(256)
    if protection is Protection.SIGNED:
        return MessageParts(payload, signature)
    ciphertext = randomness.randbytes(len(payload) // 16 * 16 + 16)
    return MessageParts(ciphertext, signature, randomness.randbytes(256), randomness.randbytes(16))


def by_proton(parts: MessageParts, fields_in: FieldsIn, durable: bool, message_id: int | None, **more: Any) -> Message:
    """The same message, made by the library of the source's tool."""
    named = ((SIGNATURE, parts.signature), (ENCRYPTED_KEY, parts.encrypted_key), (IV, parts.iv))
    fields = {name.decode(): base64.b64encode(raw).decode() for name, raw in named if raw is not None}
    in_annotations = fields_in is FieldsIn.MESSAGE_ANNOTATIONS
    return Message(
        body=parts.body.decode() if parts.encrypted_key is None else parts.body,
        properties={"sent_time": ulong(STAMP), **({} if in_annotations else fields)},
        annotations={symbol(name): text for name, text in fields.items()} if in_annotations and fields else None,
        durable=durable,
        id=message_id,
        **more,
    )


@pytest.mark.parametrize(
    ("protection", "fields_in", "sizes"),
    [
        (Protection.NONE, FieldsIn.APPLICATION_PROPERTIES, (56, 282, 42_756)),
        (Protection.SIGNED, FieldsIn.APPLICATION_PROPERTIES, (426, 652, 43_126)),
        (Protection.SIGNED_ENCRYPTED, FieldsIn.APPLICATION_PROPERTIES, (829, 1_053, 43_536)),
        (Protection.NONE, FieldsIn.MESSAGE_ANNOTATIONS, (56, 282, 42_756)),
        (Protection.SIGNED, FieldsIn.MESSAGE_ANNOTATIONS, (438, 664, 43_138)),
        (Protection.SIGNED_ENCRYPTED, FieldsIn.MESSAGE_ANNOTATIONS, (841, 1_065, 43_548)),
    ],
)
def test_sizes_are_those_the_source_measured(
    protection: Protection, fields_in: FieldsIn, sizes: tuple[int, ...]
) -> None:
    randomness = random.Random(1)
    for length, size in zip(SIZES, sizes, strict=True):
        message, _ = encode(parts_for(b"x" * length, protection, randomness), STAMP, fields_in=fields_in)
        assert len(message) == size
        assert encoded_size(length, protection, fields_in) == size


@pytest.mark.parametrize("fields_in", FieldsIn)
@pytest.mark.parametrize("protection", Protection)
def test_bytes_are_those_that_proton_writes(protection: Protection, fields_in: FieldsIn) -> None:
    randomness = random.Random(2)
    lengths = [0, 1, 11, 15, 16, 237, 239, 240, 254, 255, 256, 257, 42_708, 65_535, 65_536]
    lengths += [randomness.randrange(3_000) for _ in range(30)]
    for number, length in enumerate(lengths):
        payload = bytes(randomness.randrange(32, 127) for _ in range(length))
        parts = parts_for(payload, protection, randomness)
        durable, message_id = bool(number % 2), message_number(number % 3, number) if number % 4 > 1 else None
        message, stamp_at = encode(parts, STAMP, fields_in=fields_in, durable=durable, message_id=message_id)
        assert message == by_proton(parts, fields_in, durable, message_id).encode()
        assert message[stamp_at : stamp_at + 8] == STAMP.to_bytes(8, "big")
        assert layout_of(message).stamp.start == stamp_at
        assert len(message) == encoded_size(
            length, protection, fields_in, durable=durable, message_id=message_id is not None
        )
        envelope = decode(message)
        assert envelope[:3] == (STAMP, message_id, parts.body)
        assert envelope[3:] == (parts.signature, parts.encrypted_key, parts.iv)


def test_payload_outside_ascii_is_counted_in_bytes() -> None:
    payload = "飛行計画 ✈".encode() * 20
    message, _ = encode(MessageParts(payload), STAMP)
    assert message == by_proton(MessageParts(payload), FieldsIn.APPLICATION_PROPERTIES, False, None).encode()
    assert decode(message).body == payload


def test_stamp_and_number_are_written_into_an_encoded_message() -> None:
    made, stamp_at = encode(MessageParts(b"Hello SWIM!"), message_id=message_number(0, 0))
    message = bytearray(made)
    message[stamp_at : stamp_at + 8] = STAMP.to_bytes(8, "big")
    number_at = stamp_at - NUMBER_BEFORE_STAMP
    message[number_at : number_at + 8] = message_number(3, 9_999).to_bytes(8, "big")
    second_reader = Message()
    second_reader.decode(bytes(message))
    assert second_reader.properties == {"sent_time": STAMP}
    assert isinstance(second_reader.id, int)
    assert second_reader.id == (3 + 1 << 40) + 9_999
    assert decode(message)[:2] == (STAMP, message_number(3, 9_999))


def foreign_messages() -> Iterator[tuple[str, Message]]:
    """Messages as brokers and other clients change them on the way."""
    parts = parts_for(b"Hello SWIM!", Protection.SIGNED, random.Random(3))
    in_properties, in_annotations = FieldsIn.APPLICATION_PROPERTIES, FieldsIn.MESSAGE_ANNOTATIONS
    yield "header filled in", by_proton(parts, in_properties, True, None, priority=9, ttl=60.0, delivery_count=3)
    routed = by_proton(parts, in_annotations, False, 7)
    routed.annotations = {**(routed.annotations or {}), symbol("x-routing-key"): "swim.fpl", symbol("x-exchange"): ""}
    yield "annotations of RabbitMQ", routed
    foreign = by_proton(parts, in_properties, False, None)
    foreign.instructions = {symbol("x-opt-enqueued"): timestamp(STAMP), symbol("x-opt-node"): Array(Data.INT, 1, 2)}
    foreign.annotations = {
        symbol("x-opt-nested"): {"a": [1, None, True, 2.5], "sent_time": 3},
        symbol("x-opt-described"): Described(symbol("some:type"), b"\0" * 300),
    }
    properties: Any = foreign.properties
    properties.update({"priority": byte(-4), "region": int32(70_000)})
    yield "delivery annotations and nested values", foreign
    named = by_proton(parts, in_properties, False, None, user_id=b"guest", address="swim", content_type="text/plain")
    yield "properties filled in", named


@pytest.mark.parametrize(("what", "message"), list(foreign_messages()))
def test_additions_of_brokers_are_accepted(what: str, message: Message) -> None:
    encoded = message.encode()
    envelope = decode(encoded)
    assert envelope.body == b"Hello SWIM!"
    assert envelope.stamp_ms == STAMP == int.from_bytes(encoded[layout_of(encoded).stamp.start :][:8], "big")
    assert envelope.signature is not None and len(envelope.signature) == 256
    assert envelope.message_id == (7 if what == "annotations of RabbitMQ" else None)


def test_message_id_of_another_type_is_not_read_as_a_number() -> None:
    for other in ("seven", b"7", UUID(int=7)):
        assert decode(Message(body="x", properties={"sent_time": STAMP}, id=other).encode()).message_id is None
    for number in (0, 7, 255, 256, 2**64 - 1):
        message = Message(body="x", properties={"sent_time": STAMP}, id=ulong(number)).encode()
        assert decode(message)[:2] == (STAMP, number)


def test_other_widths_of_the_same_values_are_accepted() -> None:
    """Other types for the same values, and every form of sent_time.

    map8 and str32, keys as symbols, wide descriptors and sizes, data sections in pieces, a footer; ulong (the source's
    tool) and long (version 0.1.0 of the console).
    """
    key32, key_symbol = b"\xb1\0\0\0\x09sent_time", b"\xa3\x09sent_time"
    long_stamps = [code + STAMP.to_bytes(8, "big") for code in (b"\x80", b"\x81")]
    small_stamps = {b"\x44": 0, b"\x53\xfe": 254, b"\x55\x05": 5}
    for key, value in itertools.product((key32, key_symbol), (*long_stamps, *small_stamps)):
        entries = bytes((2,)) + key + value
        properties = b"\0\x80\0\0\0\0\0\0\0\x74\xc1" + bytes((len(entries),)) + entries
        pieces = b"\0\x53\x75\xa0\x05Hello" + b"\0\x53\x75\xb0\0\0\0\x06 SWIM!"
        footer = b"\0\x53\x78\xc1\x06\x02\xa3\x01c\x52\x07"
        envelope = decode(properties + pieces + footer)
        assert envelope.stamp_ms == small_stamps.get(value, STAMP)
        assert envelope.body == b"Hello SWIM!"


def test_only_a_body_that_is_a_string_must_be_utf_8() -> None:
    for body, inferred in ((b"\xff", False), (b"\xff", True)):
        message = Message(body=body, inferred=inferred, properties={"sent_time": STAMP}).encode()
        assert decode(message).body == body


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "no body"),
        (Message(body="x").encode(), "sent_time"),
        (Message(body="x", properties={"sent_time": "now"}).encode(), "not a ulong or long"),
        (Message(body="x", properties={"sent_time": int32(7)}).encode(), "not a ulong or long"),
        (Message(body="x", properties={"sent_time": ulong(2**63)}).encode(), "not a time"),
        (Message(body="x", annotations={symbol("sent_time"): STAMP}).encode(), "sent_time"),
        (Message(properties={"sent_time": STAMP}).encode(), "no body"),
        (Message(body=7, properties={"sent_time": STAMP}).encode(), "holds type"),
        (Message(body=["x"], inferred=True, properties={"sent_time": STAMP}).encode(), "unsupported section"),
        (Message(body="x", properties={"sent_time": STAMP, "x-iv": "a+?="}).encode(), "not base64"),
        (Message(body="x", properties={"sent_time": STAMP, "x-iv": "YQ==YQ=="}).encode(), "not base64"),
        (Message(body="x", properties={"sent_time": STAMP, "x-iv": b"YQ=="}).encode(), "not a string"),
        (
            Message(
                body="x", properties={"sent_time": STAMP, "x-iv": "YQ=="}, annotations={symbol("x-iv"): "Yg=="}
            ).encode(),
            "twice",
        ),
        (encode(MessageParts(b"x"), STAMP)[0] * 2, "out of order"),
        (encode(MessageParts(b"\xff\xfe"), STAMP)[0], "not UTF-8"),
        (encode(MessageParts(b"x"), STAMP)[0] + b"\x01", "no section"),
        (b"\0" * 100_000, "unknown type code"),
        (b"\0\x53\x74\xc1\x02\x01\x40" + BODY, "a key without a value"),
        (b"\0\x53\x74\xc1\x04\x02\x40\x40\x40" + BODY, "more than its 2 items"),
        (b"\0\x53\x74\xd1\0\0\0\x05\xff\xff\xff\xff\x40" + BODY, "cut off"),
        (b"\0\x53\x74\xc1\0" + BODY, "no count"),
        (b"\0\x53\x70\xd0\xff\xff\xff\xff\0\0\0\0" + BODY, "goes beyond its place"),
    ],
)
def test_messages_of_another_envelope_are_refused_with_the_reason(message: bytes, reason: str) -> None:
    with pytest.raises(EnvelopeError, match=reason):
        decode(message)


def test_every_truncation_is_refused() -> None:
    for protection in Protection:
        for fields_in in FieldsIn:
            parts = parts_for(b"x" * 237, protection, random.Random(4))
            message, _ = encode(parts, STAMP, fields_in=fields_in, durable=True, message_id=message_number(0, 1))
            for length in range(len(message)):
                with pytest.raises(EnvelopeError):
                    decode(message[:length])


@pytest.mark.parametrize("count", tenth_and_all(20_000))
def test_damaged_messages_are_refused_or_read_as_proton_reads_them(count: int) -> None:
    """Flips, insertions and deletions: no other exception, and the same reading as the second reader.

    Nightly: damages that the first tenth does not have.
    """
    randomness = random.Random(5)
    originals = [message.encode() for _, message in foreign_messages()]
    originals += [
        encode(parts_for(b"x" * 11, protection, randomness), STAMP, fields_in=fields_in, message_id=300)[0]
        for protection in Protection
        for fields_in in FieldsIn
    ]
    read = refused = 0
    for _ in range(count):
        damaged = bytearray(randomness.choice(originals))
        for _ in range(randomness.choice((1, 1, 2, 5))):
            at = randomness.randrange(min(len(damaged), randomness.choice((60, 2_000))))
            match randomness.randrange(4):
                case 0:
                    del damaged[at]
                case 1:
                    damaged.insert(at, randomness.randrange(256))
                case _:
                    damaged[at] = randomness.choice((0, 1, 0x40, 0x53, 0x7F, 0xA1, 0xFF, randomness.randrange(256)))
        try:
            envelope = decode(damaged)
        except EnvelopeError:
            refused += 1
            continue
        stamp_at = layout_of(damaged).stamp_offset
        if stamp_at is None:
            continue
        assert int.from_bytes(damaged[stamp_at : stamp_at + 8], "big", signed=True) == envelope.stamp_ms
        second_reader = Message()
        try:
            second_reader.decode(bytes(damaged))
        except (MessageException, UnicodeDecodeError):
            continue
        read += 1
        properties: Any = second_reader.properties
        assert properties["sent_time"] == envelope.stamp_ms
        body: Any = second_reader.body
        assert (body.encode() if isinstance(body, str) else bytes(body)) == envelope.body
    assert min(read, refused) > count // 20


@pytest.mark.parametrize("count", tenth_and_all(10_000))
def test_a_known_layout_reads_every_message_as_the_parser_does(count: int) -> None:
    """Messages of the same length that differ anywhere: the same parts, or refused for the same reason.

    Nightly: differences that the first tenth does not have.
    """
    randomness = random.Random(6)
    memory = LayoutMemory()
    originals = [message.encode() for _, message in foreign_messages()]
    originals += [
        encode(parts_for(b"x" * 11, protection, randomness), STAMP, fields_in=fields_in, message_id=1 << 40)[0]
        for protection in Protection
        for fields_in in FieldsIn
    ]
    read = refused = 0
    for _ in range(count):
        original = randomness.choice(originals)
        assert memory.decode(original) == decode(original)
        changed = bytearray(original)
        for _ in range(randomness.choice((1, 1, 4))):
            changed[randomness.randrange(len(changed))] = randomness.randrange(256)
        expected: Envelope | str
        try:
            expected = decode(changed)
            read += 1
        except EnvelopeError as error:
            expected = str(error)
            refused += 1
        found: Envelope | str
        try:
            found = memory.decode(changed)
        except EnvelopeError as error:
            found = str(error)
        assert found == expected
    assert min(read, refused) > count // 10


def test_messages_of_many_layouts_leave_a_bounded_memory() -> None:
    memory = LayoutMemory()
    for length in range(2_000):
        parts = MessageParts(b"x" * length)
        assert memory.decode(encode(parts, STAMP)[0]).body == parts.body
    large = Message(body="x", properties={"sent_time": ulong(STAMP), "other": "y" * 100_000}).encode()
    assert memory.decode(large) == memory.decode(large) == decode(large)
    assert len(memory._known) <= 256 and len(large) not in memory._known
    pieces = encode(MessageParts(b"x"), STAMP)[0][: -len(BODY)] + b"\0\x53\x75\xa0\x00" * 800
    assert memory.decode(pieces) == decode(pieces)
    assert len(pieces) not in memory._known
