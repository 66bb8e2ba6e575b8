"""Fingerprints: openssl says the same, and a typed one must be whole."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.x509.fingerprints import fingerprint, grouped, key_fingerprint, typed_matches
from tests.helpers.authorities import new_authority
from tests.helpers.openssl_command import run_openssl

DIGITS = hashlib.sha256(b"a certificate").hexdigest()


def test_openssl_says_the_same() -> None:
    authority = new_authority("Root")
    certificate = authority.certificate
    said = run_openssl("x509", "-noout", "-fingerprint", "-sha256", data=certificate.public_bytes(Encoding.PEM))
    assert said.strip().split("=")[1].replace(":", "").lower() == fingerprint(certificate)
    assert fingerprint(certificate) == fingerprint(certificate.public_bytes(Encoding.DER))
    assert key_fingerprint(certificate.public_key()) == key_fingerprint(authority.key.public_key())
    assert key_fingerprint(certificate.public_key()) != fingerprint(certificate)


@pytest.mark.parametrize("typed", [grouped(DIGITS), DIGITS, DIGITS.upper(), f" {grouped(DIGITS).lower()}\n"])
def test_a_typed_fingerprint_matches_in_any_form(typed: str) -> None:
    assert typed_matches(DIGITS, typed)
    assert typed_matches(DIGITS, ":".join(DIGITS[at : at + 2] for at in range(0, 64, 2)))
    assert typed_matches(DIGITS, grouped(DIGITS).replace(" ", "-"))


@pytest.mark.parametrize(
    "typed", ["", " ", DIGITS[:-1], DIGITS[:8], DIGITS + "0", grouped(DIGITS)[:-5], DIGITS[::-1], "yes"]
)
def test_parts_and_others_do_not_match(typed: str) -> None:
    assert not typed_matches(DIGITS, typed)


def test_groups_are_of_four() -> None:
    assert grouped("0a1b2c3d4e") == "0A1B 2C3D 4E"
    assert len(grouped(DIGITS).split()) == 16
