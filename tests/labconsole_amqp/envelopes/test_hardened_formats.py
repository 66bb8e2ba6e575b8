"""Each hardened format: messages open at their receiver, and nowhere else, once, unchanged and in time."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from proton import Message

from labconsole_amqp.envelopes.example import example_size
from labconsole_amqp.envelopes.formats import HARDENED, EnvelopeFormat
from labconsole_amqp.envelopes.message_envelope import HardenedEnvelope, MessageForm
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.envelope_layout import layout_of
from labconsole_amqp.wire.protected_message import decode_protected, encode_protected
from labconsole_amqp.wire.sign_encrypt import Outcome
from tests.labconsole_amqp.envelope_lab import (
    ADDRESS,
    CASES,
    PAYLOAD,
    PROTECTIONS,
    RECIPIENT,
    SENDER,
    Ends,
    ends,
    known_signer,
)

MUTANTS = 400
FEW_FLIPS = 150
BY_FORMAT = [(format, protection) for format in HARDENED for protection in PROTECTIONS]
_STAMP_BYTES = 8


def refused(pair: Ends, message: bytes) -> Outcome:
    """The outcome of a message, which must be refused without its payload."""
    result = pair.received(message)
    assert result.payload is None or result.outcome is Outcome.OK
    return result.outcome


@pytest.mark.parametrize(("format", "protection", "signing", "encryption"), CASES)
def test_messages_open(format: EnvelopeFormat, protection: Protection, signing: Any, encryption: Any) -> None:
    encrypts = protection is Protection.SIGNED_ENCRYPTED
    for numbered in (False, True):
        for length in (1, 11, 237, 256, 42_708):
            body = (PAYLOAD * 200)[:length]
            pair = ends(format, protection, signing, encryption, numbered=numbered, expected=body)
            sealed = pair.sender.protect(body, message_number(2, 77))
            result = pair.received(sealed.message)
            assert (result.outcome, result.payload) == (Outcome.OK, body), result.reason
            assert (sealed.sign_ns > 0, sealed.encrypt_ns > 0) == (True, encrypts)
            assert (result.verify_ns > 0, result.decrypt_ns > 0) == (True, encrypts)
            assert result.envelope is not None and result.metadata is not None
            assert result.envelope.message_id == (message_number(2, 77) if numbered else None)
            signed = result.metadata
            assert (signed.sender, signed.recipient, signed.address) == (SENDER, RECIPIENT, ADDRESS)
            assert (signed.sender_index, signed.sequence) == (2, 77)
            assert abs(signed.created_ms - time.time() * 1000) < 5_000


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_another_implementation_reads_the_amqp_message(format: EnvelopeFormat, protection: Protection) -> None:
    pair = ends(format, protection, numbered=True)
    sealed = pair.sender.protect(PAYLOAD, message_number(0, 5))
    stamped = bytearray(sealed.message)
    stamped[sealed.stamp_offset : sealed.stamp_offset + _STAMP_BYTES] = (1_747_728_000_000).to_bytes(8, "big")
    assert layout_of(sealed.message).stamp.start == sealed.stamp_offset
    message = Message()
    message.decode(bytes(stamped))
    properties: Any = message.properties
    assert (message.id, properties["sent_time"]) == (message_number(0, 5), 1_747_728_000_000)
    encrypts = protection is Protection.SIGNED_ENCRYPTED
    assert str(message.content_type) == (format.content_types[encrypts] or "None")
    body: Any = message.body
    assert bytes(body) == decode_protected(sealed.message).content
    again = pair.received(message.encode())
    assert again.outcome is Outcome.OK, "in proton's own encoding, with other widths and a header"


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_the_stamp_is_not_signed_and_has_one_place(format: EnvelopeFormat, protection: Protection) -> None:
    pair = ends(format, protection)
    sealed = [pair.sender.protect(PAYLOAD, message_number(0, sequence)) for sequence in (0, 9, 10, 2**39)]
    assert len({one.stamp_offset for one in sealed}) == 1
    message = bytearray(sealed[0].message)
    message[sealed[0].stamp_offset + 7] ^= 1
    assert pair.received(bytes(message)).outcome is Outcome.OK


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_every_changed_bit_is_refused(format: EnvelopeFormat, protection: Protection) -> None:
    """Of content and detached signature, which must have one form only; sampled over all of their places."""
    pair = ends(format, protection)
    content_type = format.content_types[protection is Protection.SIGNED_ENCRYPTED].encode()
    decoded = decode_protected(pair.protect())
    dice = random.Random(7)
    for field in ("content", "detached_signature"):
        octets = getattr(decoded, field)
        places = range(len(octets))
        few = {*places[:4], *places[-4:], *dice.sample(places, min(FEW_FLIPS, len(octets)))}
        for place in sorted(few):
            changed = bytearray(octets)
            changed[place] ^= 1 << dice.randrange(8)
            parts = decoded._replace(**{field: bytes(changed)})
            message, _ = encode_protected(parts.content, content_type, parts.detached_signature)
            outcome = refused(pair, message)
            assert outcome is not Outcome.OK, (field, place)
    assert pair.received(pair.protect()).outcome is Outcome.OK, "the refused ones left no trace"


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_messages_without_their_protection_are_refused(format: EnvelopeFormat, protection: Protection) -> None:
    pair = ends(format, protection)
    other = ends(format, PROTECTIONS[protection is PROTECTIONS[0]])
    assert refused(pair, other.protect()) is not Outcome.OK
    for content in (b"", b"\x00", PAYLOAD, bytes(2000)):
        message, _ = encode_protected(content, b"")
        assert refused(pair, message) is not Outcome.OK


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_a_replay_is_refused_and_messages_out_of_order_are_not(format: EnvelopeFormat, protection: Protection) -> None:
    pair = ends(format, protection, window=8)
    messages = [pair.protect(sequence) for sequence in range(20)]
    order = [0, 3, 1, 2, 3, 0, 12, 5, 4, 11, 12]
    ok, replayed, late = Outcome.OK, Outcome.REPLAYED, Outcome.NOT_TIMELY
    outcomes = [pair.received(messages[sequence]).outcome for sequence in order]
    assert outcomes == [ok, ok, ok, ok, replayed, replayed, ok, ok, late, ok, replayed]


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_a_message_for_another_recipient_or_address_is_refused(format: EnvelopeFormat, protection: Protection) -> None:
    implied = format.content_format().implies_names
    for change, outcome in (
        ({"recipient": "CN=state-c,O=Lab Console"}, Outcome.OTHER_RECIPIENT),
        ({"address": "another"}, Outcome.OTHER_ADDRESS),
        ({"sender": "CN=state-x"}, Outcome.UNKNOWN_SIGNER),
    ):
        pair = ends(format, protection, **change)
        wrong = Outcome.SIGNATURE_WRONG if protection is Protection.SIGNED else Outcome.DECRYPTION_FAILED
        assert refused(pair, pair.protect()) is (wrong if implied else outcome)


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_another_signer_and_another_recipients_key_are_refused(format: EnvelopeFormat, protection: Protection) -> None:
    pair = ends(format, protection, signed_by="another")
    outcome = Outcome.SIGNATURE_WRONG if format.content_format().implies_names else Outcome.UNKNOWN_SIGNER
    assert refused(pair, pair.protect()) is outcome
    if protection is Protection.SIGNED_ENCRYPTED:
        pair = ends(format, protection, encrypted_to="another")
        assert refused(pair, pair.protect()) is Outcome.DECRYPTION_FAILED


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_a_certificate_of_the_signer_that_is_not_valid_now_is_refused(
    format: EnvelopeFormat, protection: Protection
) -> None:
    for signer, reason in (
        (known_signer(from_days=-9, to_days=-1), "expired"),
        (known_signer(from_days=1, to_days=9), "not valid before"),
    ):
        pair = ends(format, protection, signer=signer)
        result = pair.received(pair.protect())
        assert result.outcome is Outcome.SIGNER_REFUSED
        assert reason in result.reason and result.payload is None


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_a_message_that_is_too_old_or_from_the_future_is_refused(
    format: EnvelopeFormat, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = ends(format, protection, tolerance_s=60)
    message, true_ns = pair.protect(), time.time_ns()
    for seconds, outcome in ((61, Outcome.NOT_TIMELY), (-61, Outcome.NOT_TIMELY), (55, Outcome.OK)):
        monkeypatch.setattr(time, "time_ns", lambda later=seconds: true_ns + later * 1_000_000_000)
        assert pair.received(message).outcome is outcome


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_a_changed_message_id_or_content_type_and_another_payload_are_refused(
    format: EnvelopeFormat, protection: Protection
) -> None:
    pair = ends(format, protection, numbered=True)
    decoded = decode_protected(pair.protect(3))
    parts = (decoded.content, decoded.content_type, decoded.detached_signature)
    renumbered, _ = encode_protected(*parts, message_id=message_number(0, 4))
    assert refused(pair, renumbered) is Outcome.SIGNATURE_WRONG
    retyped, _ = encode_protected(decoded.content, b"text/plain", decoded.detached_signature)
    assert refused(pair, retyped) is Outcome.MALFORMED
    without, _ = encode_protected(*parts)
    assert pair.received(without).outcome is Outcome.OK, "a broker may leave the number out"
    assert refused(pair, pair.protect(5, b"another payload")) is Outcome.PAYLOAD_DIFFERS


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_mutants_are_refused_without_a_fault(format: EnvelopeFormat, protection: Protection) -> None:
    """Whole encoded messages, changed at random: the receiver never raises, and accepts none twice."""
    pair = ends(format, protection, numbered=True)
    original = pair.protect(1)
    assert pair.received(original).outcome is Outcome.OK
    dice = random.Random(f"{format}{protection}")
    for _ in range(MUTANTS):
        mutant = bytearray(original)
        for _ in range(dice.choice((1, 1, 2, 5, 40))):
            place = dice.randrange(len(mutant))
            match dice.randrange(5):
                case 0:
                    mutant[place] = dice.randrange(256)
                case 1:
                    del mutant[place : place + dice.choice((1, 3, 50))]
                case 2:
                    mutant[place:place] = dice.randbytes(dice.choice((1, 3, 50)))
                case 3:
                    mutant[place : place + 4] = dice.choice((b"\xff\xff\xff\xff", bytes(4), b"\x7f\xff\xff\xff"))
                case _:
                    mutant = mutant[:place] + mutant[dice.randrange(len(mutant)) :]
            if not mutant:
                break
        assert refused(pair, bytes(mutant)) is not Outcome.OK


@pytest.mark.parametrize(("format", "protection"), BY_FORMAT)
def test_sizes_are_known_before(format: EnvelopeFormat, protection: Protection) -> None:
    for length in (11, 237, 42_708, 1_000_003):
        for numbered in (False, True):
            for durable in (False, True):
                form = MessageForm(protection, durable=durable, numbered=numbered)
                pair = ends(format, protection)
                assert isinstance(pair.sender, HardenedEnvelope)
                sender = HardenedEnvelope(form, format, pair.sender._content)
                size = len(sender.protect(b"x" * length, message_number(0, 0)).message)
                known = example_size(format, form, length, SENDER, RECIPIENT, ADDRESS)
                assert size == known, (length, numbered, durable)


def test_compact_messages_have_the_sizes_asked_for() -> None:
    small = b"Hello SWIM!"
    sizes = {
        protection: len(ends(EnvelopeFormat.COMPACT, protection, numbered=True).protect(body=small))
        for protection in PROTECTIONS
    }
    assert sizes[Protection.SIGNED] <= 340 and sizes[Protection.SIGNED_ENCRYPTED] <= 640


def test_threads_share_an_envelope() -> None:
    pair = ends(EnvelopeFormat.COMPACT, Protection.SIGNED_ENCRYPTED)
    outcomes: list[Outcome] = []

    def work() -> None:
        outcomes.extend(pair.receiver.open(pair.protect(number)).outcome for number in range(20))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [Outcome.OK] * 40
