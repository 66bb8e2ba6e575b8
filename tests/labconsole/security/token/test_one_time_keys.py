"""Keys that a token generates ahead, which sign once each: on a real SoftHSM2, through its child process."""

from __future__ import annotations

from pathlib import Path

import pkcs11
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import save_configuration
from labconsole.security.token.one_time_keys import OneTimeKey, OneTimeKeys, opened_one_time_keys

DATA = b"a message"
_PSS = padding.PSS(padding.MGF1(SHA256()), 32)


@pytest.fixture(autouse=True)
def named_token(own_home: Path, configuration: TokenConfiguration) -> None:
    """The SoftHSM2 token of this file is called `office` in the test's home."""
    save_configuration("office", configuration)


def made(keys: OneTimeKeys, count: int) -> list[OneTimeKey]:
    found: list[OneTimeKey] = []
    while len(found) < count:
        found += keys.generate(count - len(found))
    return found


def sign(key: OneTimeKey) -> None:
    """Sign, and verify with the public key."""
    if isinstance(key.public_key, rsa.RSAPublicKey):
        assert isinstance(key.private_key, rsa.RSAPrivateKey)
        key.public_key.verify(key.private_key.sign(DATA, _PSS, SHA256()), DATA, _PSS, SHA256())
    else:
        assert isinstance(key.private_key, ec.EllipticCurvePrivateKey)
        key.public_key.verify(key.private_key.sign(DATA, ec.ECDSA(SHA256())), DATA, ec.ECDSA(SHA256()))


@pytest.mark.parametrize(("kind", "count"), [(KeyKind.P_256, 20), (KeyKind.RSA_2048, 2)])
def test_each_key_signs_once_and_says_what_it_took(kind: KeyKind, count: int, pin: Secret) -> None:
    with opened_one_time_keys("office", kind, pin) as keys:
        pool = made(keys, count)
        assert len({key.public_key.public_numbers() for key in pool}) == len(pool) == count
        assert all(key.generate_ns > 0 and key.wrap_ns > 0 and key.use is None for key in pool)
        for key in reversed(pool):
            sign(key)
            assert key.use is not None and min(key.use) > 0
        with pytest.raises(TokenError, match="signs once only"):
            sign(pool[0])


def test_nothing_is_left_in_the_token(configuration: TokenConfiguration, pin: Secret) -> None:
    with opened_one_time_keys("office", KeyKind.P_256, pin) as keys:
        pool = made(keys, 5)
        sign(pool[0])
        with open_token("test", configuration, pin) as token:
            session = token.session()
            stored = list(session.get_objects({pkcs11.Attribute.TOKEN: True}))
    assert stored == []


def test_a_changed_key_and_one_of_another_opening_are_refused(pin: Secret) -> None:
    with (
        opened_one_time_keys("office", KeyKind.P_256, pin) as keys,
        opened_one_time_keys("office", KeyKind.P_256, pin) as others,
    ):
        (changed,), (foreign,) = keys.generate(1), others.generate(1)
        changed._wrapped = ("00" if changed._wrapped[:2] != "00" else "01") + changed._wrapped[2:]
        foreign._conversation = changed._conversation
        for key in (changed, foreign):
            with pytest.raises(TokenError, match="cannot unwrap a private key"):
                sign(key)
        (good,) = keys.generate(1)
        sign(good)


def test_a_wrong_pin_is_reported_without_it() -> None:
    wrong = Secret("4321-other")
    with pytest.raises(TokenError, match="PIN") as refused, opened_one_time_keys("office", KeyKind.P_256, wrong):
        pass
    assert wrong.reveal() not in str(refused.value)
