"""What a module refuses is one sentence: what cannot be done, why, and what to do."""

from __future__ import annotations

from pathlib import Path

import pkcs11
import pytest
from pkcs11 import Attribute, KeyType, Mechanism, MechanismFlag

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.module import ReturnValueError, load_module
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.cryptoki.opening import Token, find_token
from labconsole.security.token.errors import (
    MechanismMissingError,
    TokenError,
    TokenFullError,
    TokenGoneError,
    WrongPinError,
)


def aes_key(session: pkcs11.Session, **template: bool) -> pkcs11.SecretKey:
    attributes = {Attribute[name]: value for name, value in template.items()}
    usage = MechanismFlag.WRAP | MechanismFlag.ENCRYPT
    return session.generate_key(KeyType.AES, 256, store=False, capabilities=usage, template=attributes)


def test_a_session_that_has_ended(token: Token) -> None:
    session = token.session()
    session.close()
    with pytest.raises(TokenError) as refused, translated_errors("make a key", "office"):
        aes_key(session)
    assert str(refused.value) == "The token office cannot make a key: it is gone: put it back and start again."


def test_a_mechanism_that_the_module_does_not_have(session: pkcs11.Session) -> None:
    key = aes_key(session)
    with (
        pytest.raises(MechanismMissingError, match="cannot wrap: it does not offer the mechanism"),
        translated_errors("wrap", "t"),
    ):
        key.wrap_key(aes_key(session, EXTRACTABLE=True), mechanism=Mechanism.AES_KEY_WRAP_KWP)


def test_a_key_that_stays_in_the_token(session: pkcs11.Session) -> None:
    key = aes_key(session)
    with pytest.raises(TokenError, match="does not allow that with this key"), translated_errors("wrap a key", "t"):
        key.wrap_key(aes_key(session, EXTRACTABLE=False), mechanism=Mechanism.AES_KEY_WRAP)


def test_what_only_the_module_understands_is_named_with_what_was_being_done(session: pkcs11.Session) -> None:
    with pytest.raises(TokenError) as refused, translated_errors("make an RSA key of 256 bits", "t"):
        session.generate_keypair(KeyType.RSA, 256, store=False)
    assert str(refused.value) == (
        "The token t cannot make an RSA key of 256 bits (GeneralError): ask its maker what that means."
    )


def test_a_token_in_use_is_not_initialised(configuration: TokenConfiguration, pin: Secret, so_pin: Secret) -> None:
    """Through the function list, which reports numbers only."""
    module = load_module(configuration)
    try:
        token = find_token(module, "test", configuration)
        in_use = pytest.raises(TokenError, match="it is in use: end the programs")
        with token.open(user_pin=pin.reveal()), in_use, translated_errors("be initialised", "test"):
            module.init_token(token.slot.slot_id, so_pin.reveal(), "test")
        with (
            pytest.raises(TokenError, match=r"\(C_InitToken gave CK_RV 0x3\): ask its maker"),
            translated_errors("be made", "t"),
        ):
            module.init_token(12345, so_pin.reveal(), "test")
        assert find_token(module, "test", configuration).label == "test"
    finally:
        module.finalize()


@pytest.mark.parametrize(
    ("refusal", "kind", "sentence"),
    [
        (pkcs11.DeviceMemory(), TokenFullError, "it is full: destroy keys that are not needed, or keep fewer in it."),
        (ReturnValueError("C_InitToken", 0x31), TokenFullError, "it is full: destroy keys that are not needed"),
        (pkcs11.PinLocked(), WrongPinError, "it has locked its PIN: let its security officer set a new one."),
        (ReturnValueError("C_InitToken", 0xA4), WrongPinError, "it has locked its PIN"),
        (pkcs11.DeviceRemoved(), TokenGoneError, "it is gone: put it back and start again."),
    ],
)
def test_errors_that_only_devices_return(refusal: Exception, kind: type[TokenError], sentence: str) -> None:
    with pytest.raises(TokenError) as raised, translated_errors("make a key", "office"):
        raise refusal
    assert type(raised.value) is kind
    assert str(raised.value).startswith(f"The token office cannot make a key: {sentence}")


def test_other_exceptions_pass_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), translated_errors("be read", "t"):
        (tmp_path / "nowhere").read_bytes()
    with pytest.raises(TokenError, match=r"^as it is\.$"), translated_errors("be read", "t"):
        raise TokenError("as it is.")
