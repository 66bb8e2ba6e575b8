"""Wrapped keys: they sign again, stay in the token from then on, and unwrap only as they were wrapped."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from pkcs11 import Attribute, AttributeReadOnly, AttributeSensitive, KeyType, Session

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.key_pairs import KeyPair, SigningKey, generate
from labconsole.security.token.cryptoki.mechanism_probes import probe_wrapping
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.cryptoki.private_keys import TokenRSAPrivateKey, private_key
from labconsole.security.token.cryptoki.wrapping import Wrapper, find_wrapper, make_wrapper
from labconsole.security.token.errors import TamperedKeyError, TokenError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from tests.helpers.program_text import PROGRAM
from tests.helpers.signals import frozen

KINDS = (
    KeyKind.RSA_2048,
    pytest.param(KeyKind.RSA_3072, marks=pytest.mark.nightly),
    pytest.param(KeyKind.RSA_4096, marks=pytest.mark.nightly),
    KeyKind.P_256,
)
MESSAGE = b"to be signed"
SIGN_ELSEWHERE = """
import json, sys
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.cryptoki.mechanism_probes import probe_wrapping
from labconsole.security.token.cryptoki.private_keys import private_key
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.security.token.cryptoki.wrapping import find_wrapper

asked = json.load(sys.stdin)
with open_token("test", TokenConfiguration(**asked["configuration"]), Secret(asked["pin"])) as token:
    wrapper = find_wrapper(token.session(), asked["serial"], WrapMechanism(asked["mechanism"]))
    handle = wrapper.unwrap(bytes.fromhex(asked["wrapped"]), KeyKind.P_256)
    key = private_key(handle, load_pem_public_key(asked["public_key"].encode()))
    print(key.sign(asked["message"].encode(), ec.ECDSA(hashes.SHA256())).hex())
"""

GENERATE_ELSEWHERE = """
import json, sys
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.security.token.cryptoki.wrapping import find_wrapper

asked = json.loads(sys.stdin.readline())
session = open_token("test", TokenConfiguration(**asked["configuration"]), Secret(asked["pin"])).session()
pair = generate(session, KeyKind.P_256, extractable=True)
wrapped = find_wrapper(session, asked["serial"], WrapMechanism(asked["mechanism"])).wrap(pair)
public_key = pair.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
print(json.dumps({"wrapped": wrapped.hex(), "public_key": public_key.decode()}), flush=True)
while True:
    generate(session, KeyKind.RSA_4096, extractable=True).destroy()
"""

PairOf = Callable[[KeyKind], KeyPair]


@pytest.fixture(scope="module")
def configuration(each_configuration: TokenConfiguration) -> TokenConfiguration:
    return each_configuration


@pytest.fixture(scope="module")
def token(configuration: TokenConfiguration, pin: Secret) -> Iterator[Token]:
    """The token, open for all tests here."""
    with open_token("test", configuration, pin) as opened:
        yield opened


@pytest.fixture(scope="module")
def session(token: Token) -> Session:
    return token.session()


@pytest.fixture(scope="module")
def pair_of(session: Session) -> PairOf:
    """Gives the one key pair of a kind, which may be wrapped."""
    return cache(lambda kind: generate(session, kind, extractable=True))


@pytest.fixture(scope="module")
def mechanisms(session: Session) -> list[WrapMechanism]:
    """Those that carry keys of all kinds: 0x2109 and 0x210A in SoftHSM2, 0x210B in kryoptic."""
    return [probe.mechanism for probe in probe_wrapping(session) if probe.keys and all(probe.keys.values())]


@pytest.fixture(scope="module")
def wrapper(session: Session, mechanisms: list[WrapMechanism]) -> Wrapper:
    return make_wrapper(session, "wrapper-0001", mechanisms[-1])


@pytest.fixture(scope="module")
def other_wrapper(session: Session, mechanisms: list[WrapMechanism]) -> Wrapper:
    return make_wrapper(session, "wrapper-0002", mechanisms[-1])


def assert_signs(handle: SigningKey, pair: KeyPair) -> None:
    """The signature of the key at `handle` verifies outside the token with the public key of `pair`."""
    key = private_key(handle, pair.public_key)
    if isinstance(key, TokenRSAPrivateKey):
        signature = key.sign(MESSAGE, padding.PKCS1v15(), hashes.SHA256())
        key.public_key().verify(signature, MESSAGE, padding.PKCS1v15(), hashes.SHA256())
    else:
        signature = key.sign(MESSAGE, ec.ECDSA(hashes.SHA256()))
        key.public_key().verify(signature, MESSAGE, ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrapped_signs_again(
    pair_of: PairOf, wrapper: Wrapper, kind: KeyKind, mechanisms: list[WrapMechanism]
) -> None:
    pair = pair_of(kind)
    for mechanism in mechanisms:
        by_mechanism = replace(wrapper, mechanism=mechanism)
        unwrapped = by_mechanism.unwrap(by_mechanism.wrap(pair), kind)
        assert unwrapped.handle != pair.private_handle.handle
        assert_signs(unwrapped, pair)


def test_a_key_wrapped_by_nss_signs_again(nss: Token) -> None:
    session = nss.session()
    wrapper = make_wrapper(session, "wrapper-0001", WrapMechanism.KEY_WRAP_PAD)
    pair = generate(session, KeyKind.RSA_2048, extractable=True)
    wrapped = wrapper.wrap(pair)
    unwrapped = wrapper.unwrap(wrapped, KeyKind.RSA_2048)
    assert_signs(unwrapped, pair)
    assert not unwrapped[Attribute.EXTRACTABLE]
    with pytest.raises(TamperedKeyError):
        wrapper.unwrap(changed(wrapped, len(wrapped) // 2), KeyKind.RSA_2048)


@pytest.mark.parametrize("kind", [KeyKind.RSA_2048, KeyKind.P_256])
def test_an_unwrapped_key_is_never_extractable_again(pair_of: PairOf, wrapper: Wrapper, kind: KeyKind) -> None:
    pair = pair_of(kind)
    unwrapped = wrapper.unwrap(wrapper.wrap(pair), kind)
    assert not unwrapped[Attribute.EXTRACTABLE] and unwrapped[Attribute.SENSITIVE] and unwrapped[Attribute.PRIVATE]
    with pytest.raises(TokenError, match=r"cannot wrap a private key: it does not allow that with this key"):
        wrapper.wrap(replace(pair, private_handle=unwrapped))
    with pytest.raises(AttributeReadOnly):
        unwrapped[Attribute.EXTRACTABLE] = True
    with pytest.raises(AttributeReadOnly):
        unwrapped.copy({Attribute.EXTRACTABLE: True})
    with pytest.raises(AttributeReadOnly):
        unwrapped[Attribute.SENSITIVE] = False
    with pytest.raises(AttributeSensitive):
        unwrapped[Attribute.PRIVATE_EXPONENT if kind is KeyKind.RSA_2048 else Attribute.VALUE]


def test_an_unwrapped_key_only_signs_and_is_not_stored(pair_of: PairOf, wrapper: Wrapper) -> None:
    unwrapped = wrapper.unwrap(wrapper.wrap(pair_of(KeyKind.P_256)), KeyKind.P_256)
    uses = {Attribute.SIGN: True, Attribute.DECRYPT: False, Attribute.UNWRAP: False, Attribute.TOKEN: False}
    assert unwrapped.get_attributes(list(uses)) == uses


def test_a_fresh_key_is_not_asked_for_its_type(session: Session, wrapper: Wrapper) -> None:
    pair = generate(session, KeyKind.P_256, extractable=True)
    unwrapped = wrapper.unwrap(wrapper.wrap(pair), KeyKind.P_256)
    unwrapped.destroy()
    pair.destroy()
    assert unwrapped.key_type is pair.private_handle.key_type is KeyType.EC


def test_a_key_that_is_not_extractable_is_not_wrapped(session: Session, wrapper: Wrapper) -> None:
    pair = generate(session, KeyKind.P_256, extractable=False)
    with pytest.raises(TokenError, match=r"^The token test cannot wrap a private key: it does not allow that with"):
        wrapper.wrap(pair)
    assert_signs(pair.private_handle, pair)


def test_a_key_that_may_be_wrapped_cannot_be_read(pair_of: PairOf) -> None:
    for kind, secret in ((KeyKind.RSA_2048, Attribute.PRIVATE_EXPONENT), (KeyKind.P_256, Attribute.VALUE)):
        with pytest.raises(AttributeSensitive):
            pair_of(kind).private_handle[secret]


def changed(wrapped: bytes, position: int) -> bytes:
    """`wrapped` with one bit of the byte at `position` turned over."""
    return wrapped[:position] + bytes([wrapped[position] ^ 1]) + wrapped[position + 1 :]


@pytest.mark.parametrize(("kind", "step"), [(KeyKind.RSA_2048, 64), (KeyKind.P_256, 1)])
def test_a_changed_key_is_refused_wherever_it_was_changed(
    pair_of: PairOf, wrapper: Wrapper, kind: KeyKind, step: int, mechanisms: list[WrapMechanism]
) -> None:
    for mechanism in mechanisms:
        by_mechanism = replace(wrapper, mechanism=mechanism)
        wrapped = by_mechanism.wrap(pair_of(kind))
        said = rf"was changed, was wrapped by another key, or is not a {kind} key"
        for position in {*range(0, len(wrapped), step), len(wrapped) - 1}:
            with pytest.raises(TamperedKeyError, match=said):
                by_mechanism.unwrap(changed(wrapped, position), kind)
        assert_signs(by_mechanism.unwrap(wrapped, kind), pair_of(kind))


def test_a_key_of_another_wrapper_is_refused(
    pair_of: PairOf, wrapper: Wrapper, other_wrapper: Wrapper, mechanisms: list[WrapMechanism]
) -> None:
    for mechanism in mechanisms:
        wrapped = replace(wrapper, mechanism=mechanism).wrap(pair_of(KeyKind.P_256))
        with pytest.raises(TamperedKeyError, match=r"with wrapper-0002: it was changed, was wrapped by another key"):
            replace(other_wrapper, mechanism=mechanism).unwrap(wrapped, KeyKind.P_256)


@pytest.mark.parametrize(
    "resize", [lambda w: w[:-8], lambda w: w[:-1], lambda w: w[:8], lambda w: b"", lambda w: w + bytes(8)]
)
def test_a_key_of_another_length_is_refused(
    pair_of: PairOf, wrapper: Wrapper, resize: Callable[[bytes], bytes], mechanisms: list[WrapMechanism]
) -> None:
    for mechanism in mechanisms:
        by_mechanism = replace(wrapper, mechanism=mechanism)
        wrapped = by_mechanism.wrap(pair_of(KeyKind.P_256))
        with pytest.raises(TamperedKeyError):
            by_mechanism.unwrap(resize(wrapped), KeyKind.P_256)


@pytest.mark.parametrize(("is_one", "asked"), [(KeyKind.P_256, KeyKind.RSA_2048), (KeyKind.RSA_2048, KeyKind.P_256)])
def test_a_key_of_another_kind_is_refused(pair_of: PairOf, wrapper: Wrapper, is_one: KeyKind, asked: KeyKind) -> None:
    with pytest.raises(TamperedKeyError, match=f"or is not a {asked} key"):
        wrapper.unwrap(wrapper.wrap(pair_of(is_one)), asked)


def error_of(configuration: TokenConfiguration, pin: Secret, wrapper: Wrapper) -> dict[str, Any]:
    """What another process needs to use the same wrapper key; it goes over standard input."""
    return {
        "configuration": configuration.model_dump(mode="json"),
        "pin": pin.reveal(),
        "serial": wrapper.serial,
        "mechanism": wrapper.mechanism,
    }


def test_a_second_process_unwraps_with_the_key_in_the_token(
    configuration: TokenConfiguration, pin: Secret, pair_of: PairOf, wrapper: Wrapper
) -> None:
    pair = pair_of(KeyKind.P_256)
    asked = {
        **error_of(configuration, pin, wrapper),
        "wrapped": wrapper.wrap(pair).hex(),
        "public_key": pair.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
        "message": MESSAGE.decode(),
    }
    command = [*PROGRAM, SIGN_ELSEWHERE]
    answer = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    pair.public_key.verify(bytes.fromhex(answer.stdout), MESSAGE, ec.ECDSA(hashes.SHA256()))


@pytest.mark.skipif(sys.platform == "win32", reason="stops a process by a signal")
def test_signing_never_waits_for_a_process_that_makes_keys(
    configuration: TokenConfiguration, pin: Secret, wrapper: Wrapper
) -> None:
    """It is stopped for good while it makes a key: whatever lock it held then, it would hold for ever."""
    with (
        ThreadPoolExecutor(1) as threads,
        subprocess.Popen(
            [*PROGRAM, GENERATE_ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as generator,
    ):
        try:
            assert generator.stdin is not None and generator.stdout is not None
            generator.stdin.write(json.dumps(error_of(configuration, pin, wrapper)) + "\n")
            generator.stdin.flush()
            made = json.loads(generator.stdout.readline())
            time.sleep(0.05)  # it makes an RSA key now, which takes seconds
            with frozen(generator.pid):
                key = threads.submit(wrapper.unwrap, bytes.fromhex(made["wrapped"]), KeyKind.P_256).result(30)
                public_key = load_pem_public_key(made["public_key"].encode())
                assert isinstance(public_key, ec.EllipticCurvePublicKey)
                ecdsa = ec.ECDSA(hashes.SHA256())
                signature = threads.submit(private_key(key, public_key).sign, MESSAGE, ecdsa).result(30)
                public_key.verify(signature, MESSAGE, ecdsa)
        finally:
            generator.kill()


def test_only_what_is_stored_costs_a_file(
    configuration: TokenConfiguration, session: Session, wrapper: Wrapper
) -> None:
    """A token object is a file and an fsync in SoftHSM2: 8 to 110 ms, which no key of a pool is to cost."""
    if "SOFTHSM2_CONF" not in configuration.environment:
        pytest.skip("only SoftHSM2 keeps each object in a file of its own")
    directory = Path(configuration.environment["SOFTHSM2_CONF"]).parent
    before = set(directory.rglob("*.object"))
    pair = generate(session, KeyKind.P_256, extractable=True)
    wrapper.unwrap(wrapper.wrap(pair), KeyKind.P_256)
    assert set(directory.rglob("*.object")) == before
    kept = generate(session, KeyKind.P_256, extractable=False, stored=True)
    assert len(set(directory.rglob("*.object")) - before) == 2
    kept.destroy()


def test_a_wrapper_key_is_used_by_its_handle_and_not_looked_for(
    session: Session, pair_of: PairOf, wrapper: Wrapper
) -> None:
    """A search takes 67 ms among 12,000 objects: one for each key would cost more than the key."""
    pair = pair_of(KeyKind.P_256)
    wrapper = make_wrapper(session, "wrapper-0003", wrapper.mechanism)
    wrapper.key[Attribute.LABEL] = "under another name"
    with pytest.raises(TokenError, match="has no wrapper key wrapper-0003"):
        find_wrapper(session, wrapper.serial, wrapper.mechanism)
    assert_signs(wrapper.unwrap(wrapper.wrap(pair), pair.kind), pair)
    wrapper.key.destroy()


def test_a_wrapper_key_wraps_and_unwraps_and_nothing_else(wrapper: Wrapper) -> None:
    uses = {Attribute.WRAP: True, Attribute.UNWRAP: True, Attribute.ENCRYPT: False, Attribute.DECRYPT: False}
    kept = {Attribute.TOKEN: True, Attribute.PRIVATE: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: True}
    assert wrapper.key.get_attributes([*uses, *kept]) == uses | kept
    with pytest.raises(AttributeSensitive):
        wrapper.key[Attribute.VALUE]


def test_a_wrapper_key_is_found_by_its_serial(session: Session, wrapper: Wrapper) -> None:
    found = find_wrapper(session, wrapper.serial, wrapper.mechanism)
    assert found.key.handle == wrapper.key.handle
    with pytest.raises(TokenError, match=r"^The token test has no wrapper key wrapper-0009: load it from its shares"):
        find_wrapper(session, "wrapper-0009", WrapMechanism.KEY_WRAP)


def test_a_serial_is_given_once(session: Session, wrapper: Wrapper) -> None:
    with pytest.raises(TokenError, match=r"^The token test has a wrapper key wrapper-0001 already"):
        make_wrapper(session, wrapper.serial, WrapMechanism.KEY_WRAP)
