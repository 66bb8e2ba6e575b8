"""Content of anyone, without a key: it ends no receiver, and takes little memory before it is refused."""

from __future__ import annotations

import tracemalloc

import pytest

from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.protected_message import decode_protected, encode_protected
from labconsole_amqp.wire.sign_encrypt import Outcome
from tests.labconsole_amqp.envelope_lab import PAYLOAD, ends

SIZE = 300_000
BOMBS = {
    EnvelopeFormat.CMS: b"\x30\x83" + (SIZE - SIZE % 2).to_bytes(3, "big") + b"\x05\x00" * (SIZE // 2),
    EnvelopeFormat.COSE: b"\xd2\x9a" + SIZE.to_bytes(4, "big") + b"\x80" * SIZE,
    EnvelopeFormat.XML_DSIG: b'<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#">'
    + b"<a/>" * (SIZE // 4)
    + b"</ds:Signature>",
}


def nested(levels: int, wide: int) -> bytes:
    """Arrays in arrays of CBOR, each of which is small."""
    return b"\x80" if not levels else bytes((0x98, wide)) + nested(levels - 1, wide) * wide


@pytest.mark.parametrize(
    ("format", "content"),
    [*BOMBS.items(), (EnvelopeFormat.COSE, b"\xd2" + nested(3, 64))],
    ids=["der", "cbor", "xml", "nested cbor"],
)
def test_many_small_items_are_refused_before_they_are_built(format: EnvelopeFormat, content: bytes) -> None:
    pair = ends(format, Protection.SIGNED)
    message, _ = encode_protected(content, format.content_types[0].encode())
    pair.received(pair.protect())
    tracemalloc.start()
    try:
        result = pair.received(message)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.outcome is Outcome.MALFORMED
    assert peak < 10 * len(content)


def test_maps_of_many_entries_are_refused_before_they_are_built() -> None:
    pair = ends(EnvelopeFormat.COMPACT, Protection.SIGNED)
    entries = b"\x40" * SIZE
    section = b"\x00\x53\x74\xd1" + (len(entries) + 4).to_bytes(4, "big") + SIZE.to_bytes(4, "big") + entries
    result = pair.received(section + b"\x00\x53\x75\xa0\x01x")
    assert (result.outcome, "are the most" in result.reason) == (Outcome.MALFORMED, True)


def test_xml_without_a_canonical_form_is_refused() -> None:
    pair = ends(EnvelopeFormat.XML_DSIG, Protection.SIGNED)
    decoded = decode_protected(pair.sender.protect(PAYLOAD, message_number(0, 1)).message)
    changed = decoded.content.replace(b"<ds:SignedInfo>", b'<ds:SignedInfo xmlns:x="rel">')
    assert changed != decoded.content
    message, _ = encode_protected(changed, decoded.content_type)
    assert pair.received(message).outcome is Outcome.MALFORMED
