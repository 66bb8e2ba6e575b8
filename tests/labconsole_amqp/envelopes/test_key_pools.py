"""Messages that are each signed by a key of its own: the key is known by a signed list, and signs one message."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pytest

from labconsole.errors import UserError
from labconsole.security.token.one_time_keys import KeyUse
from labconsole.security.x509.key_types import KeyType, generate
from labconsole_amqp.envelopes.content_format import Content, ContentKeys
from labconsole_amqp.envelopes.formats import HARDENED, POOLED, EnvelopeFormat
from labconsole_amqp.envelopes.key_list import keys_in, signed_list
from labconsole_amqp.envelopes.message_checks import MessageChecks
from labconsole_amqp.envelopes.message_envelope import HardenedEnvelope, MessageForm, PooledEnvelope
from labconsole_amqp.envelopes.signing import KeySigner, Verifier, VerifierPool
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.protected_message import SignedMetadata
from labconsole_amqp.wire.sign_encrypt import OpenedMessage, Outcome
from tests.labconsole_amqp.envelope_lab import (
    ADDRESS,
    PAYLOAD,
    PROTECTIONS,
    RECIPIENT,
    SENDER,
    known_signer,
    private_key,
)

CASES = [(format, protection) for format in POOLED for protection in PROTECTIONS]
IDS = [f"{format.value}-{protection.value}" for format, protection in CASES]
POOL = 5
USE = KeyUse(load_ns=3, sign_ns=2, destroy_ns=1)


@dataclass(frozen=True)
class KeyInMemory:
    """As much of a key in a token as a pooled envelope uses; it signs as often as it is asked."""

    private_key: Any
    use: KeyUse


@lru_cache(maxsize=8)
def pool(type: KeyType) -> tuple[KeyInMemory, ...]:
    return tuple(KeyInMemory(generate(type), USE) for _ in range(POOL))


class PooledEnds:
    """A sender with a pool of keys, and a receiver that knows the keys of `listed`."""

    def __init__(self, format: EnvelopeFormat, protection: Protection, listed: int = POOL, window: int = 64) -> None:
        form, type = MessageForm(protection), format.token_type
        assert type is not None
        self.pool = deque(pool(type))
        encrypts = protection is Protection.SIGNED_ENCRYPTED
        recipient = private_key(format.encryption[0], "recipient") if encrypts else None
        names = (SENDER, RECIPIENT, ADDRESS)
        sends = ContentKeys(
            *names, signer=KeySigner(private_key(type, "sender")), recipient_key=recipient and recipient.public_key()
        )
        self.sender = PooledEnvelope(form, format, sends, self.pool.popleft)  # type: ignore[arg-type]
        public_keys = [key.private_key.public_key() for key in pool(type)[:listed]]
        receives = ContentKeys(*names, verifier=VerifierPool(type, public_keys), decryption_key=recipient)
        checks = MessageChecks(
            sender=SENDER,
            recipient=RECIPIENT,
            address=ADDRESS,
            signer=known_signer(),
            tolerance_s=600,
            window=window,
            used_keys=set(),
        )
        content = format.content_format()
        self.receiver = HardenedEnvelope(
            form, format, content(receives), checks, expected=lambda payload, _: payload == PAYLOAD
        )
        self.identity = HardenedEnvelope(form, format, content(sends))

    def protect(self, sequence: int) -> bytes:
        return self.sender.protect(PAYLOAD, message_number(0, sequence)).message

    def received(self, message: bytes) -> OpenedMessage:
        return self.receiver.accept(self.receiver.open(message))


@pytest.mark.parametrize(("format", "protection"), CASES, ids=IDS)
def test_each_message_has_another_key(format: EnvelopeFormat, protection: Protection) -> None:
    ends = PooledEnds(format, protection)
    sealed = [ends.sender.protect(PAYLOAD, message_number(0, sequence)) for sequence in range(POOL)]
    assert [one.key_use for one in sealed] == [USE] * POOL
    opened = [ends.received(one.message) for one in reversed(sealed)]
    assert [one.outcome for one in opened] == [Outcome.OK] * POOL, opened[0].reason
    assert len({one.key_id for one in opened}) == POOL


@pytest.mark.parametrize(("format", "protection"), CASES, ids=IDS)
def test_a_replay_and_a_second_message_of_a_key_are_refused(format: EnvelopeFormat, protection: Protection) -> None:
    ends = PooledEnds(format, protection)
    ends.pool[1] = ends.pool[0]
    first, second, third = (ends.protect(sequence) for sequence in range(3))
    assert ends.received(first).outcome is Outcome.OK
    assert ends.received(first).outcome is Outcome.REPLAYED
    refused = ends.received(second)
    assert (refused.outcome, refused.payload) == (Outcome.KEY_USED, None)
    assert "has signed another message" in refused.reason
    assert ends.received(third).outcome is Outcome.OK


@pytest.mark.parametrize(("format", "protection"), CASES, ids=IDS)
def test_keys_that_are_not_in_the_list_are_unknown(format: EnvelopeFormat, protection: Protection) -> None:
    ends = PooledEnds(format, protection, listed=1)
    known, unknown = ends.protect(0), ends.protect(1)
    of_identity = ends.identity.protect(PAYLOAD, message_number(0, 2)).message
    assert [ends.received(one).outcome for one in (known, unknown, of_identity)] == [
        Outcome.OK,
        Outcome.UNKNOWN_SIGNER,
        Outcome.UNKNOWN_SIGNER,
    ]


def test_one_key_needs_no_name_and_of_many_none_is_tried() -> None:
    public_key = private_key(KeyType.P_256).public_key()
    assert Verifier(public_key).find(None) is not None
    assert VerifierPool(KeyType.P_256, [public_key]).find(None) is None


def test_formats_of_pools_are_those_that_name_a_key_of_a_token() -> None:
    assert {format for format in HARDENED if format.token_type is None} == {
        EnvelopeFormat.ML_DSA_44,
        EnvelopeFormat.ML_DSA_65,
        EnvelopeFormat.HYBRID,
    }
    assert not any(format.content_format().implies_names for format in POOLED)


class Lists:
    """The list of a sender's keys, as its identity signs it, and what its receiver makes of a list."""

    def __init__(self, format: EnvelopeFormat) -> None:
        assert format.token_type is not None
        self.format, self.type = format, format.token_type
        self.public_keys = [key.private_key.public_key() for key in pool(self.type)]

    def signed(self, index: int = 0, by: str = "sender", **names: str) -> Content:
        keys = ContentKeys(SENDER, RECIPIENT, ADDRESS, signer=KeySigner(private_key(self.type, by)))
        return signed_list(self.format, replace(keys, **names), index, self.public_keys)

    def read(self, content: Content) -> tuple[Any, ...]:
        verifier = Verifier(private_key(self.type, "sender").public_key())
        keys = ContentKeys(SENDER, RECIPIENT, ADDRESS, verifier=verifier)
        return keys_in(self.format, keys, 0, content, self.type)


@pytest.mark.parametrize("format", POOLED)
def test_the_list_is_what_the_identity_has_signed(format: EnvelopeFormat) -> None:
    lists = Lists(format)
    signed = lists.signed()
    assert list(lists.read(signed)) == lists.public_keys
    changed = bytearray(signed.octets)
    changed[len(changed) // 2] ^= 1
    for refused in (
        lists.signed(by="another"),
        lists.signed(index=1),
        lists.signed(recipient="CN=state-c,O=Lab Console"),
        lists.signed(address="another"),
        signed._replace(octets=bytes(changed)),
        Content(b"", b""),
    ):
        with pytest.raises(UserError, match=r"^The list of the message keys of sender 0 is refused: .*\.$"):
            lists.read(refused)


def test_a_message_of_the_identity_is_not_read_as_a_list() -> None:
    format = EnvelopeFormat.COSE
    lists = Lists(format)
    keys = ContentKeys(SENDER, RECIPIENT, ADDRESS, signer=KeySigner(private_key(lists.type, "sender")))
    metadata = SignedMetadata(SENDER, RECIPIENT, ADDRESS, message_number(0, 0), 0)
    with pytest.raises(UserError, match="another sender, or for another recipient or address"):
        lists.read(format.content_format()(keys).sign(b"", metadata))
