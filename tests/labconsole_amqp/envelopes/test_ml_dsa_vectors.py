"""The console opens post-quantum CMS that Bouncy Castle has written, by the registered algorithm identifiers."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key

from labconsole_amqp.envelopes.cms_content import CmsContent
from labconsole_amqp.envelopes.content_format import Content, ContentKeys, RefusedError
from labconsole_amqp.envelopes.signing import Verifier
from labconsole_amqp.wire.envelope import message_number
from labconsole_amqp.wire.protected_message import SignedMetadata
from tests.labconsole_amqp.envelope_lab import ADDRESS, PAYLOAD, RECIPIENT, SENDER

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "bouncy_castle_ml_dsa.json").read_text(encoding="utf-8"))


def octets(text: str) -> bytes:
    return base64.b64decode(text)


@pytest.mark.parametrize("vector", VECTORS["messages"], ids=lambda vector: vector["envelope"])
def test_signed_and_encrypted_messages_of_bouncy_castle_open(vector: dict[str, str]) -> None:
    certificate = x509.load_der_x509_certificate(octets(vector["certificate"]))
    public_key: Any = certificate.public_key()
    recipient_key = load_der_private_key(octets(VECTORS["recipient_key_pkcs8"]), None)
    keys = ContentKeys(SENDER, RECIPIENT, ADDRESS, verifier=Verifier(public_key), decryption_key=recipient_key)
    content = CmsContent(keys)
    for signed in (Content(octets(vector["signed"])), content.decrypt(octets(vector["signed_encrypted"]))):
        body, metadata, _ = content.verify(signed)
        assert body == PAYLOAD
        created_ms = metadata.created_ms
        assert metadata == SignedMetadata(SENDER, RECIPIENT, ADDRESS, message_number(0, 7), created_ms)
    changed = bytearray(octets(vector["signed"]))
    changed[-1] ^= 1
    with pytest.raises(RefusedError):
        content.verify(Content(bytes(changed)))
