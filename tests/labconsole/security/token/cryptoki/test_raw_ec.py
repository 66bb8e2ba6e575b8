"""Raw ECDSA: `cryptography` verifies what a token signs and the other way round, and no key outlives its session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from pkcs11 import Attribute, KeyType, Mechanism, Object, ObjectClass, Session
from pkcs11.exceptions import AttributeSensitive, AttributeTypeInvalid, PKCS11Error

from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.raw_ec import generate_ec, generate_ecdh, import_ec
from labconsole.security.token.errors import MechanismMissingError, TokenError, TokenGoneError

CURVES = {
    "secp256r1": ec.SECP256R1(),
    "brainpoolP256r1": ec.BrainpoolP256R1(),
    "brainpoolP384r1": ec.BrainpoolP384R1(),
    "secp384r1": ec.SECP384R1(),
}
P256 = CURVES["secp256r1"]


@pytest.fixture(scope="module")
def configuration(each_configuration: TokenConfiguration) -> TokenConfiguration:
    return each_configuration


@pytest.fixture(params=CURVES)
def curve(request: pytest.FixtureRequest, session: Session) -> ec.EllipticCurve:
    """Each curve that the token has; SoftHSM2 has all four."""
    offered: ec.EllipticCurve = CURVES[request.param]
    try:
        generate_ec(session, offered)
    except TokenError:
        if "SoftHSM" in session.token.manufacturer_id:
            raise
        pytest.skip(f"{session.token.manufacturer_id} has no {offered.name}")
    return offered


def size(curve: ec.EllipticCurve) -> int:
    return curve.key_size // 8


def digest_for(curve: ec.EllipticCurve) -> bytes:
    return bytes(range(size(curve)))


def library_algorithm(curve: ec.EllipticCurve) -> ec.ECDSA:
    return ec.ECDSA(utils.Prehashed(hashes.SHA256() if size(curve) == 32 else hashes.SHA384()))


def der(signature: bytes) -> bytes:
    middle = len(signature) // 2
    r, s = signature[:middle], signature[middle:]
    return utils.encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))


def library_signature(key: ec.EllipticCurvePrivateKey) -> bytes:
    """r and s in fixed size, of `digest_for` the key's curve."""
    octets = key.sign(digest_for(key.curve), library_algorithm(key.curve))
    return b"".join(number.to_bytes(size(key.curve), "big") for number in utils.decode_dss_signature(octets))


def keys(session: Session) -> list[Object]:
    """All key pairs' keys that a session finds."""
    classes = (ObjectClass.PUBLIC_KEY, ObjectClass.PRIVATE_KEY)
    return [key for kind in classes for key in session.get_objects({Attribute.CLASS: kind})]


@contextmanager
def removed(session: Session) -> Iterator[None]:
    """Expect that what is created within is found by the session, and no longer afterwards."""
    assert not keys(session)
    yield
    assert not keys(session)


def test_library_verifies_what_the_token_signs(session: Session, curve: ec.EllipticCurve) -> None:
    key, digest = generate_ec(session, curve), digest_for(curve)
    assert key.public_key.curve.name == curve.name
    signatures = {key.sign(digest) for _ in range(5)}
    assert {len(signature) for signature in signatures} == {2 * size(curve)}
    for signature in signatures:
        key.public_key.verify(der(signature), digest, library_algorithm(curve))


def test_token_verifies_what_the_library_signs(session: Session, curve: ec.EllipticCurve) -> None:
    key = ec.generate_private_key(curve)
    public = import_ec(session, key.public_key())
    for _ in range(5):
        assert public.verify(digest_for(curve), library_signature(key))


def test_token_verifies_its_own_signatures(session: Session, curve: ec.EllipticCurve) -> None:
    key = generate_ec(session, curve)
    assert import_ec(session, key.public_key).verify(digest_for(curve), key.sign(digest_for(curve)))


def test_spoiled_digest_or_signature_is_not_valid(session: Session, curve: ec.EllipticCurve) -> None:
    key, digest = ec.generate_private_key(curve), digest_for(curve)
    public, other = (import_ec(session, one.public_key()) for one in (key, ec.generate_private_key(curve)))
    signature = library_signature(key)
    assert public.verify(digest, signature)
    assert not other.verify(digest, signature)
    assert not public.verify(digest[::-1], signature)
    for at in (0, size(curve) - 1, size(curve), 2 * size(curve) - 1):
        assert not public.verify(digest, signature[:at] + bytes((signature[at] ^ 1,)) + signature[at + 1 :])


def test_impossible_signatures_are_not_valid(session: Session, curve: ec.EllipticCurve) -> None:
    """r and s of 0, of the curve's order and above, and of another size, as packets from the air may have them."""
    key, length = ec.generate_private_key(curve), size(curve)
    public, signature = import_ec(session, key.public_key()), library_signature(key)
    r, s = signature[:length], signature[length:]
    order, none, most = curve.group_order.to_bytes(length, "big"), bytes(length), b"\xff" * length
    for spoiled in (none + none, none + s, r + none, order + order, most + most, r, b"", signature + b"\0\0"):
        assert public.verify(digest_for(curve), spoiled) is False


def test_public_key_is_destroyed(token: Token) -> None:
    session, other = token.session(), token.session()
    with removed(other):
        public = import_ec(session, ec.generate_private_key(P256).public_key())
        assert len(keys(other)) == 1
        public.destroy()
    with pytest.raises(TokenError, match="The token test cannot verify a signature "):
        public.verify(digest_for(P256), bytes(64))
    with pytest.raises(TokenError, match="The token test cannot destroy a public key "):
        public.destroy()


def test_keys_are_lost_with_their_session(token: Token) -> None:
    session, other = token.session(), token.session()
    with removed(other):
        key = generate_ec(session, P256)
        import_ec(session, key.public_key)
        assert len(keys(other)) == 3
        assert not any(found[Attribute.TOKEN] for found in keys(session))
        session.close()
    for use in (key.sign, lambda _: generate_ec(session, P256), lambda _: import_ec(session, key.public_key)):
        with pytest.raises(TokenGoneError, match=r"^The token test cannot .*: it is gone: put it back and start again"):
            use(digest_for(P256))


def test_private_key_cannot_be_extracted(session: Session) -> None:
    key = generate_ec(session, P256)
    assert key.handle[Attribute.SENSITIVE]
    assert not key.handle[Attribute.EXTRACTABLE]
    with pytest.raises((AttributeSensitive, AttributeTypeInvalid)):
        key.handle[Attribute.VALUE]
    wrapper: Any = session.generate_key(KeyType.AES, 256, store=False)
    with pytest.raises(PKCS11Error):
        wrapper.wrap_key(key.handle, mechanism=Mechanism.AES_KEY_WRAP)


def test_curve_that_the_token_lacks_is_one_sentence(nss: Token) -> None:
    session, key = nss.session(), ec.generate_private_key(CURVES["brainpoolP256r1"])
    with pytest.raises(MechanismMissingError) as refused:
        import_ec(session, key.public_key())
    assert str(refused.value) == (
        "The token NSS Certificate DB cannot import a public key on brainpoolP256r1:"
        " it does not offer that curve: use another curve or token."
    )
    with pytest.raises(MechanismMissingError, match="cannot generate a key pair on brainpoolP384r1: it does not offer"):
        generate_ec(session, CURVES["brainpoolP384r1"])
    assert generate_ec(session, P256).sign(digest_for(P256))


def test_secret_is_that_of_the_library_and_its_key_cannot_be_read(session: Session, curve: ec.EllipticCurve) -> None:
    key, peer = generate_ecdh(session, curve), ec.generate_private_key(curve)
    assert key.shared_secret(peer.public_key()) == peer.exchange(ec.ECDH(), key.public_key)
    assert not list(session.get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY}))
    with pytest.raises(PKCS11Error):
        key.handle[Attribute.VALUE]
