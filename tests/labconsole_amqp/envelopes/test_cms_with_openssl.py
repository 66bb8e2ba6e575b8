"""The program `openssl cms` verifies and decrypts every message of the envelope `cms`, and the console those of it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.protected_message import decode_protected, encode_protected
from labconsole_amqp.wire.sign_encrypt import Outcome
from tests.helpers.authorities import new_authority
from tests.helpers.identities import certify
from tests.labconsole_amqp.envelope_lab import ADDRESS, PAYLOAD, RECIPIENT, SENDER, Ends, ends, private_key

SIGNING = (KeyType.RSA_2048, KeyType.P_256)
LENGTHS = (1, 11, 237, 42_708)
PSS = ("-keyopt", "rsa_padding_mode:pss", "-keyopt", "rsa_pss_saltlen:32")
OAEP = ("-keyopt", "rsa_padding_mode:oaep", "-keyopt", "rsa_oaep_md:sha256")


class OpenSsl:
    """Keys and certificates of both ends as files, and the program."""

    def __init__(self, folder: Path, signing: KeyType) -> None:
        self.folder = folder
        authority = new_authority("Test CA")
        folder.joinpath("ca.pem").write_bytes(authority.certificate.public_bytes(Encoding.PEM))
        for name, key in (
            ("sender", private_key(signing, "sender")),
            ("recipient", private_key(KeyType.RSA_2048, "recipient")),
        ):
            certificate = certify(authority, name, key.public_key(), CertificateProfile.STATE)
            folder.joinpath(f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
            pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            folder.joinpath(f"{name}.key").write_bytes(pem)

    def cms(self, octets: bytes, *options: str) -> bytes:
        """The output of `openssl cms` for these octets."""
        run = subprocess.run(
            ["openssl", "cms", *options], input=octets, cwd=self.folder, capture_output=True, timeout=30, check=False
        )
        assert run.returncode == 0, run.stderr.decode()
        return run.stdout

    def verify(self, octets: bytes) -> bytes:
        """The content of a SignedData, verified up to the CA."""
        options = ("-inform", "DER", "-certfile", "sender.pem", "-CAfile", "ca.pem", "-binary")
        return self.cms(octets, "-verify", *options)

    def decrypt(self, octets: bytes) -> bytes:
        """The content of an AuthEnvelopedData."""
        options = ("-inform", "DER", "-recip", "recipient.pem", "-inkey", "recipient.key", "-binary")
        return self.cms(octets, "-decrypt", *options)


@pytest.fixture(scope="module", params=SIGNING)
def peer(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[OpenSsl, KeyType]:
    return OpenSsl(tmp_path_factory.mktemp("openssl"), request.param), request.param


def pair(signing: KeyType, protection: Protection, expected: bytes | None = None) -> Ends:
    return ends(EnvelopeFormat.CMS, protection, signing, expected=expected)


def entity(body: bytes, sequence: int = 1) -> bytes:
    """The MIME entity that a partner signs, as the guide describes it."""
    fields = {
        "Content-Type": "application/octet-stream",
        "Message-Created": str(time.time_ns() // 1_000_000),
        "Message-Number": str(message_number(0, sequence)),
        "Message-Sender": SENDER,
        "Message-Recipient": RECIPIENT,
        "Message-Address": ADDRESS,
    }
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode() + b"\r\n" + body


ROUNDS = pytest.mark.parametrize("rounds", (1, pytest.param(3, marks=pytest.mark.nightly)))
"""Nightly: each length with each type of key, and more signatures by ECDSA, whose encoding has several lengths."""


def lengths_for(signing: KeyType, protection: Protection, rounds: int) -> Sequence[int]:
    """Lengths of bodies: in a single round each length once with each protection, and each protection with two keys."""
    if rounds > 1:
        return LENGTHS * rounds
    return LENGTHS[(signing is KeyType.P_256) ^ (protection is Protection.SIGNED) :: 2]


@ROUNDS
def test_openssl_verifies_every_message(peer: tuple[OpenSsl, KeyType], rounds: int) -> None:
    openssl, signing = peer
    sender = pair(signing, Protection.SIGNED)
    for sequence, length in enumerate(lengths_for(signing, Protection.SIGNED, rounds)):
        body = (PAYLOAD * 200)[:length]
        content = openssl.verify(decode_protected(sender.protect(sequence, body)).content)
        head, _, rest = content.partition(b"\r\n\r\n")
        assert rest == body
        assert f"Message-Sender: {SENDER}\r\nMessage-Recipient: {RECIPIENT}\r\n".encode() in head
        assert f"Message-Number: {message_number(0, sequence)}\r\n".encode() in head


@ROUNDS
def test_openssl_decrypts_and_verifies_every_message(peer: tuple[OpenSsl, KeyType], rounds: int) -> None:
    openssl, signing = peer
    sender = pair(signing, Protection.SIGNED_ENCRYPTED)
    for sequence, length in enumerate(lengths_for(signing, Protection.SIGNED_ENCRYPTED, rounds)):
        body = (PAYLOAD * 200)[:length]
        signed = openssl.decrypt(decode_protected(sender.protect(sequence, body)).content)
        assert openssl.verify(signed).partition(b"\r\n\r\n")[2] == body


def test_the_console_opens_what_openssl_signs_and_encrypts(peer: tuple[OpenSsl, KeyType]) -> None:
    """Signers and recipients by key identifier, or by issuer and serial number; with certificates and without."""
    openssl, signing = peer
    options = ("-signer", "sender.pem", "-inkey", "sender.key", *(PSS if signing is KeyType.RSA_2048 else ()))
    receivers = {one: pair(signing, one, PAYLOAD) for one in (Protection.SIGNED, Protection.SIGNED_ENCRYPTED)}
    for place, (named, more) in enumerate(product(((), ("-keyid",)), ((), ("-nocerts",)))):
        signed = openssl.cms(
            entity(PAYLOAD, place),
            *("-sign", "-binary", "-nodetach", "-outform", "DER", "-md", "sha256"),
            *(*options, *named, *more),
        )
        encrypted = openssl.cms(
            signed,
            *("-encrypt", "-binary", "-outform", "DER", "-aes-256-gcm", "-recip", "recipient.pem"),
            *(*OAEP, *named),
        )
        for protection, octets in ((Protection.SIGNED, signed), (Protection.SIGNED_ENCRYPTED, encrypted)):
            content_type = EnvelopeFormat.CMS.content_types[protection is Protection.SIGNED_ENCRYPTED]
            result = receivers[protection].received(encode_protected(octets, content_type.encode())[0])
            assert (result.outcome, result.payload) == (Outcome.OK, PAYLOAD), result.reason


def test_what_openssl_signs_without_the_metadata_or_by_another_algorithm_is_refused(
    peer: tuple[OpenSsl, KeyType],
) -> None:
    openssl, signing = peer
    receiver = pair(signing, Protection.SIGNED, PAYLOAD)
    options = ("-sign", "-binary", "-nodetach", "-outform", "DER", "-signer", "sender.pem", "-inkey", "sender.key")
    pss = PSS if signing is KeyType.RSA_2048 else ()
    cases = [
        (PAYLOAD, (*pss, "-md", "sha256")),
        (entity(PAYLOAD), (*pss, "-md", "sha1")),
        (entity(PAYLOAD), (*pss, "-md", "sha256", "-noattr")),
        (entity(PAYLOAD), ("-md", "sha384")),
    ]
    for content, more in cases:
        octets = openssl.cms(content, *options, *more)
        result = receiver.received(encode_protected(octets, b"")[0])
        assert result.outcome is Outcome.MALFORMED, (more, result)
