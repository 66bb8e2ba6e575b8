"""Raw AES: a key of the token enciphers blocks, cannot be read, and is lost with its session."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pkcs11 import Attribute, KeyType, ObjectClass, Session
from pkcs11.exceptions import PKCS11Error

from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.raw_aes import RawAESKey, generate_aes
from labconsole.security.token.errors import TokenError


@pytest.fixture(scope="module")
def configuration(each_configuration: TokenConfiguration) -> TokenConfiguration:
    return each_configuration


def test_blocks_are_those_of_fips_197_and_chained_ones_those_of_rfc_4493(session: Session) -> None:
    """The vectors' keys are imported, where the token accepts that; the first block of a chain meets zeros."""
    if "SoftHSM" not in session.token.manufacturer_id:
        pytest.skip("a key in clear is imported in SoftHSM only")

    def imported(value: str) -> RawAESKey:
        template = {
            Attribute.CLASS: ObjectClass.SECRET_KEY,
            Attribute.KEY_TYPE: KeyType.AES,
            Attribute.TOKEN: False,
            Attribute.ENCRYPT: True,
            Attribute.VALUE: bytes.fromhex(value),
        }
        return RawAESKey(cast(Any, session.create_object(template)))

    key, block = imported("000102030405060708090a0b0c0d0e0f"), bytes.fromhex("00112233445566778899aabbccddeeff")
    enciphered = bytes.fromhex("69c4e0d86a7b0430d8cdb78070b4c55a")
    assert key.encipher(block * 3) == enciphered * 3
    assert key.last_chained(block) == enciphered
    second = bytes(a ^ b for a, b in zip(block, enciphered, strict=True))
    assert key.last_chained(block + second) == enciphered


def test_key_of_the_token_cannot_be_read_and_differs_each_time(session: Session) -> None:
    keys = [generate_aes(session) for _ in range(2)]
    assert keys[0].encipher(bytes(16)) != keys[1].encipher(bytes(16))
    for key in keys:
        with pytest.raises(PKCS11Error):
            key.handle[Attribute.VALUE]
        with pytest.raises(TokenError, match="cannot encrypt"):
            key.encipher(bytes(15))
        key.handle.destroy()
