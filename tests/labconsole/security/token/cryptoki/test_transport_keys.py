"""A wrapper key leaves a token wrapped by a transport key, and works in another; the transport key never stays."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pkcs11
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap
from pkcs11 import Attribute, ObjectClass

from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import private_key
from labconsole.security.token.cryptoki.transport_keys import transport_key
from labconsole.security.token.cryptoki.wrapping import Wrapper, find_wrapper, make_wrapper
from labconsole.security.token.errors import TamperedKeyError, TokenError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism

TRANSPORT = secrets.token_bytes(32)


def _objects(session: pkcs11.Session) -> int:
    return len(list(session.get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY})))


@pytest.fixture
def wrapper(session: pkcs11.Session) -> Iterator[Wrapper]:
    """A wrapper key of its test."""
    made = make_wrapper(session, secrets.token_hex(4), WrapMechanism.KEY_WRAP_PAD)
    yield made
    made.destroy()


def test_a_wrapper_key_is_wrapped_as_rfc_3394_says(session: pkcs11.Session, wrapper: Wrapper) -> None:
    with transport_key(session, TRANSPORT) as key:
        wrapped = key.wrap(wrapper)
        assert key.wrap(wrapper) == wrapped
    assert len(wrapped) == 40
    assert len(aes_key_unwrap(TRANSPORT, wrapped)) == 32


def test_the_transport_key_is_gone_at_the_end_also_after_a_failure(session: pkcs11.Session) -> None:
    before = _objects(session)
    with transport_key(session, TRANSPORT):
        assert _objects(session) == before + 1
    assert _objects(session) == before
    with pytest.raises(ValueError, match="oops"), transport_key(session, TRANSPORT):
        raise ValueError("oops")
    assert _objects(session) == before


def test_the_transport_key_cannot_be_read_or_wrapped(session: pkcs11.Session, wrapper: Wrapper) -> None:
    with transport_key(session, TRANSPORT) as key:
        with pytest.raises(pkcs11.AttributeSensitive):
            _ = key.key[Attribute.VALUE]
        with pytest.raises(TokenError, match="does not allow that"), transport_key(session, bytes(32)) as second:
            second.wrap(Wrapper(key.key, "transport", WrapMechanism.KEY_WRAP))


def test_a_transported_wrapper_key_equals_a_generated_one(session: pkcs11.Session, wrapper: Wrapper) -> None:
    with transport_key(session, TRANSPORT) as key:
        carried = key.unwrap(key.wrap(wrapper), "carried", wrapper.mechanism, stored=True)
    attributes = (
        Attribute.TOKEN,
        Attribute.PRIVATE,
        Attribute.SENSITIVE,
        Attribute.EXTRACTABLE,
        Attribute.WRAP,
        Attribute.UNWRAP,
        Attribute.ENCRYPT,
        Attribute.DECRYPT,
        Attribute.SIGN,
        Attribute.VERIFY,
        Attribute.DERIVE,
    )
    assert [carried.key[attribute] for attribute in attributes] == [wrapper.key[attribute] for attribute in attributes]
    carried.destroy()


def test_it_unwraps_what_it_wrapped_and_nothing_else_is_loaded(session: pkcs11.Session, wrapper: Wrapper) -> None:
    pair = generate(session, KeyKind.P_256, extractable=True)
    blob = wrapper.wrap(pair)
    with transport_key(session, TRANSPORT) as key:
        carried = key.wrap(wrapper)
        with pytest.raises(TamperedKeyError, match="changed on its way"):
            key.unwrap(carried[:-1] + bytes([carried[-1] ^ 1]), "x", wrapper.mechanism, stored=True)
        with pytest.raises(TamperedKeyError, match="changed on its way"):
            key.unwrap(carried[:-8], "x", wrapper.mechanism, stored=True)
    with transport_key(session, bytes(32)) as wrong, pytest.raises(TamperedKeyError, match="another set of shares"):
        wrong.unwrap(carried, "x", wrapper.mechanism, stored=True)
    with pytest.raises(TokenError, match="has no wrapper key x"):
        find_wrapper(session, "x", wrapper.mechanism)
    with transport_key(session, TRANSPORT) as key:
        loaded = key.unwrap(carried, "loaded", wrapper.mechanism, stored=False)
        unwrapped = private_key(loaded.unwrap(blob, pair.kind), pair.public_key)
    assert isinstance(unwrapped, ec.EllipticCurvePrivateKey)
    signature = unwrapped.sign(b"data", ec.ECDSA(hashes.SHA256()))
    assert isinstance(pair.public_key, ec.EllipticCurvePublicKey)
    pair.public_key.verify(signature, b"data", ec.ECDSA(hashes.SHA256()))


def test_nss_carries_the_same_bytes(nss: Token) -> None:
    session = nss.session()
    made = make_wrapper(session, "nss", WrapMechanism.KEY_WRAP, stored=False)
    with transport_key(session, TRANSPORT) as key:
        wrapped = key.wrap(made)
        assert len(aes_key_unwrap(TRANSPORT, wrapped)) == 32
        again = key.unwrap(wrapped, "again", made.mechanism, stored=False)
        assert key.wrap(again) == wrapped
