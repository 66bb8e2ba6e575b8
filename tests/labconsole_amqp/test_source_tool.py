"""Messages of the source's tool in Tests 1-4 and both forms: direct, and through foreign brokers."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from labconsole_amqp.wire.envelope import FieldsIn, MessageParts, Protection, encode, encoded_size
from labconsole_amqp.wire.sign_encrypt import Outcome, open_sealed

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "source_tool.json").read_text("utf-8"))
PAYLOAD = base64.b64decode(VECTORS["payload"])
PROTECTIONS = {1: Protection.NONE, 2: Protection.NONE, 3: Protection.SIGNED, 4: Protection.SIGNED_ENCRYPTED}
CASES = [
    pytest.param(
        entry["test"], FieldsIn(entry["fields_in"]), broker, id=f"{entry['fields_in']}-{entry['test']}-{broker}"
    )
    for entry in VECTORS["messages"]
    for broker in entry["through"]
]


def message(test: int, fields_in: FieldsIn, broker: str) -> bytes:
    [entry] = [one for one in VECTORS["messages"] if (one["test"], one["fields_in"]) == (test, fields_in)]
    return base64.b64decode(entry["through"][broker])


def keys() -> tuple[RSAPublicKey, RSAPrivateKey]:
    public = load_pem_public_key(VECTORS["verification_key"].encode())
    private = load_pem_private_key(VECTORS["decryption_key"].encode(), None)
    assert isinstance(public, RSAPublicKey)
    assert isinstance(private, RSAPrivateKey)
    return public, private


@pytest.mark.parametrize(("test", "fields_in", "broker"), CASES)
def test_each_message_is_opened(test: int, fields_in: FieldsIn, broker: str) -> None:
    opened = open_sealed(
        message(test, fields_in, broker), PROTECTIONS[test], *keys(), expected=lambda payload, _: payload == PAYLOAD
    )
    assert (opened.outcome, opened.payload, opened.reason) == (Outcome.OK, PAYLOAD, "")
    assert opened.envelope is not None
    assert 1_700_000_000_000 < opened.envelope.stamp_ms < 1_900_000_000_000


@pytest.mark.parametrize("fields_in", FieldsIn)
@pytest.mark.parametrize("test", PROTECTIONS)
def test_the_console_writes_the_same_bytes(test: int, fields_in: FieldsIn) -> None:
    raw = message(test, fields_in, "embedded")
    envelope = open_sealed(raw, PROTECTIONS[test], *keys()).envelope
    assert envelope is not None
    parts = MessageParts(envelope.body, envelope.signature, envelope.encrypted_key, envelope.iv)
    assert encode(parts, envelope.stamp_ms, fields_in=fields_in)[0] == raw
    assert len(raw) == encoded_size(len(PAYLOAD), PROTECTIONS[test], fields_in)


@pytest.mark.parametrize("test", [3, 4])
def test_a_changed_message_is_refused(test: int) -> None:
    raw = bytearray(message(test, FieldsIn.APPLICATION_PROPERTIES, "embedded"))
    raw[-1] ^= 1
    assert open_sealed(raw, PROTECTIONS[test], *keys()).outcome is not Outcome.OK
