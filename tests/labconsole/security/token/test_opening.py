"""A token is opened once with its PIN; further sessions need none and end before the one that logged in."""

from __future__ import annotations

from pkcs11 import Attribute, KeyType, MechanismFlag, ObjectClass

from labconsole.security.token.opening import Token


def test_further_sessions_need_no_pin(token: Token) -> None:
    first, second = token.session(), token.session()
    key = first.generate_key(KeyType.AES, 256, store=False, capabilities=MechanismFlag.WRAP)
    assert key.key_length == 256
    [seen] = second.get_objects()
    assert seen[Attribute.CLASS] is ObjectClass.SECRET_KEY
