"""Probes with known answers: how a module's wrap mechanisms behave, and whether it supports several threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import (
    InvalidUnwrap,
    aes_key_unwrap,
    aes_key_wrap,
    aes_key_wrap_with_padding,
)
from pkcs11 import Attribute, KeyType, Mechanism, MechanismFlag, ObjectClass, SecretKey, Session
from pkcs11.exceptions import PKCS11Error

from labconsole.security.token.cryptoki.key_pairs import KeyPair, SigningKey, generate
from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import private_key
from labconsole.security.token.cryptoki.wrapping import Wrapper, WrappingKey, wrap_with
from labconsole.security.token.errors import MechanismMissingError, TokenError
from labconsole.security.token.mechanisms import (
    KeyKind,
    WrapBehaviour,
    WrapMechanism,
    WrapProbe,
    choose_mechanism,
    probed_kind,
)

_KEY = bytes(range(32))
_VALUES = (bytes.fromhex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"), bytes(range(20)))
"""Key and value of RFC 3394, 4.6; the second value is not a multiple of 8 bytes, which shows how a module pads."""

_NONCE = bytes(range(100, 112))

_DER_HEAD = 4
"""Bytes before the contents of a sequence of 256 to 65,535 bytes: tag, length of the length, length (X.690, 8.1.3)."""


def _zero_padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 8)


def _pkcs7_padded(value: bytes) -> bytes:
    """PKCS #7 padding to blocks of 8 bytes (RFC 5652, 6.3): 1 to 8 bytes, each of them their number."""
    number = 8 - len(value) % 8
    return value + bytes([number]) * number


_FORMS: Mapping[WrapBehaviour, Callable[[bytes], bytes]] = {
    WrapBehaviour.RFC5649: lambda value: aes_key_wrap_with_padding(_KEY, value),
    WrapBehaviour.RFC5649_ZERO_PADDED: lambda value: aes_key_wrap_with_padding(_KEY, _zero_padded(value)),
    WrapBehaviour.RFC3394_ZERO_PADDED: lambda value: aes_key_wrap(_KEY, _zero_padded(value)),
    WrapBehaviour.RFC3394_PKCS7: lambda value: aes_key_wrap(_KEY, _pkcs7_padded(value)),
    WrapBehaviour.AES_GCM: lambda value: _NONCE + AESGCM(_KEY).encrypt(_NONCE, value, None),
}
"""What each behaviour makes of a value of any length; RFC 3394 itself accepts multiples of 8 bytes only."""


@dataclass(frozen=True)
class KnownObjects:
    """The known key and the known values, as session objects of a token."""

    key: WrappingKey
    values: tuple[SecretKey, ...]

    def behaviour(self, mechanism: WrapMechanism) -> WrapBehaviour:
        """How `mechanism` wraps the known values (PKCS#11 v2.40, 5.13: C_WrapKey), recognised by the bytes."""
        seen = tuple(self._wrapped(mechanism, value) for value in self.values)
        if seen == (aes_key_wrap(_KEY, _VALUES[0]), None):
            return WrapBehaviour.RFC3394
        forms = (behaviour for behaviour, form in _FORMS.items() if seen == tuple(map(form, _VALUES)))
        return next(forms, WrapBehaviour.UNKNOWN)

    def needs_padding(self, rsa_key: SigningKey) -> bool:
        """Whether the key's PKCS #8 form is not a multiple of 8 bytes: for one RSA-2048 key in four, by chance.

        A module that does not pad wraps such a key with CKM_AES_KEY_WRAP, and refuses the next one.
        """
        try:
            plain = aes_key_unwrap(_KEY, self.key.wrap_key(rsa_key, mechanism=Mechanism.AES_KEY_WRAP))
        except (PKCS11Error, InvalidUnwrap):
            return True
        return (_DER_HEAD + int.from_bytes(plain[2:_DER_HEAD], "big")) % 8 != 0

    def _wrapped(self, mechanism: WrapMechanism, value: SecretKey) -> bytes | None:
        try:
            return wrap_with(self.key, value, mechanism, nonce=_NONCE)
        except PKCS11Error:
            return None


def import_known(session: Session, made: ExitStack) -> KnownObjects | None:
    """The known key and values as session objects of the token, destroyed at the end; None if it accepts none."""
    common = {Attribute.CLASS: ObjectClass.SECRET_KEY, Attribute.TOKEN: False, Attribute.PRIVATE: True}
    uses = {Attribute.WRAP: True, Attribute.UNWRAP: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}
    secret = {**common, Attribute.KEY_TYPE: KeyType.GENERIC_SECRET, Attribute.EXTRACTABLE: True}
    objects = []
    try:
        for template in (
            {**common, **uses, Attribute.KEY_TYPE: KeyType.AES, Attribute.VALUE: _KEY},
            *({**secret, Attribute.VALUE: value} for value in _VALUES),
        ):
            objects.append(session.create_object(template))
            made.callback(objects[-1].destroy)
    except PKCS11Error:
        return None
    key, *values = objects
    return KnownObjects(cast(WrappingKey, key), tuple(cast(SecretKey, value) for value in values))


_KINDS = (KeyKind.RSA_2048, KeyKind.P_256)

_MORE_KEYS = 10
_THREADS = 8
_KEYS_PER_THREAD = 10
_SIGNATURES_PER_KEY = 5


def mechanism_for(session: Session, kind: KeyKind, named: Sequence[WrapMechanism] = ()) -> WrapMechanism:
    """The mechanism that `choose_mechanism` takes for keys of `kind`, probed with keys of this kind alone.

    For P-256 this takes some 30 ms: no RSA key is generated.

    Raises:
        MechanismMissingError: there is none; all kinds were then probed, since the sentence names what is carried.
        TokenError: as `probe_wrapping`.
    """
    try:
        return choose_mechanism(probe_wrapping(session, named, (probed_kind(kind),)), kind)
    except MechanismMissingError:
        return choose_mechanism(probe_wrapping(session, named), kind)


def probe_wrapping(
    session: Session, named: Sequence[WrapMechanism] = (), kinds: Sequence[KeyKind] = _KINDS
) -> tuple[WrapProbe, ...]:
    """The results of every wrap mechanism, and first of the `named` ones of the token's configuration.

    Known values are wrapped under a known key, then real keys of `kinds` there and back, and changed ones.

    All keys are session objects that are destroyed afterwards. Takes the time of one RSA-2048 key generation or two,
    and some 50 ms. Without a login nothing can be tested.

    Raises:
        TokenError: the token is gone, or cannot destroy a key that was created in it.
    """
    token = session.token
    with translated_errors("be probed for its wrap mechanisms", token.label), ExitStack() as made:
        offered = {int(mechanism) for mechanism in token.slot.get_mechanisms()}
        known = import_known(session, made)
        key = _wrapping_key(session, made)
        pairs = () if key is None else _pairs(session, kinds, known, made)
        return tuple(
            _probe(mechanism, known, key, pairs)
            if mechanism in offered
            else WrapProbe(mechanism, WrapBehaviour.ABSENT, {}, False, False)
            for mechanism in dict.fromkeys((*named, *WrapMechanism))
        )


def threads_safe(token: Token) -> bool | None:
    """Whether eight threads, each in a session of its own, generate keys and sign concurrently without an error.

    None if the token makes no P-256 keys, which this uses. A module that is not safe may also crash its process: run it
    in one that may be lost.

    Raises:
        TokenError: the token gives no session, or is gone.
    """
    try:
        generate(token.session(), KeyKind.P_256, extractable=False).destroy()
    except MechanismMissingError:
        return None
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="probe") as threads:
        return all(threads.map(_makes_and_signs, [token.session() for _ in range(_THREADS)]))


def _makes_and_signs(session: Session) -> bool:
    try:
        for _ in range(_KEYS_PER_THREAD):
            pair = generate(session, KeyKind.P_256, extractable=False)
            if not all(_signs(pair, pair.private_handle) for _ in range(_SIGNATURES_PER_KEY)):
                return False
            pair.destroy()
    except TokenError:
        return False
    return True


def _wrapping_key(session: Session, made: ExitStack) -> WrappingKey | None:
    """A new AES key in the token, as a session object; None if it makes none."""
    try:
        key = session.generate_key(
            KeyType.AES,
            256,
            store=False,
            capabilities=MechanismFlag.WRAP | MechanismFlag.UNWRAP,
            template={Attribute.PRIVATE: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False},
        )
    except PKCS11Error:
        return None
    made.callback(key.destroy)
    return cast(WrappingKey, key)


def _pairs(
    session: Session, kinds: Sequence[KeyKind], known: KnownObjects | None, made: ExitStack
) -> tuple[KeyPair, ...]:
    """A key pair of each of these kinds that the token makes; the RSA key shows whether a module pads."""
    pairs = []
    for kind in kinds:
        with suppress(TokenError):
            pair = _pair(session, kind, known)
            made.callback(pair.destroy)
            pairs.append(pair)
    return tuple(pairs)


def _pair(session: Session, kind: KeyKind, known: KnownObjects | None) -> KeyPair:
    pair = generate(session, kind, extractable=True)
    for _ in range(_MORE_KEYS):
        if known is None or kind is KeyKind.P_256 or known.needs_padding(pair.private_handle):
            break
        pair.destroy()
        pair = generate(session, kind, extractable=True)
    return pair


def _probe(
    mechanism: WrapMechanism, known: KnownObjects | None, key: WrappingKey | None, pairs: Sequence[KeyPair]
) -> WrapProbe:
    behaviour = WrapBehaviour.NOT_TESTABLE if known is None else known.behaviour(mechanism)
    if key is None:
        return WrapProbe(mechanism, behaviour, {}, False, False, "no AES key can be generated")
    wrapper = Wrapper(key, "the probe's key", mechanism)
    carried = {pair.kind: _carry(wrapper, pair) for pair in pairs}
    there = [one for one in carried.values() if one.signs]
    return WrapProbe(
        mechanism,
        behaviour,
        {kind: one.signs for kind, one in carried.items()},
        refuses_tampered=bool(there) and all(one.refuses_tampered for one in there),
        refuses_second_wrap=bool(there) and all(one.refuses_second_wrap for one in there),
        detail=", ".join(f"{kind}: {one.fault}" for kind, one in carried.items() if one.fault),
    )


@dataclass(frozen=True)
class _Carried:
    """The result of wrapping and unwrapping one key."""

    signs: bool
    refuses_tampered: bool = False
    refuses_second_wrap: bool = False
    fault: str = ""


def _carry(wrapper: Wrapper, pair: KeyPair) -> _Carried:
    try:
        wrapped = wrapper.wrap(pair)
        back = replace(pair, private_handle=wrapper.unwrap(wrapped, pair.kind))
    except TokenError as error:
        return _Carried(False, fault=str(error.__cause__) or type(error.__cause__).__name__)
    try:
        return _Carried(
            signs=_signs(pair, back.private_handle),
            refuses_tampered=all(_refused(partial(_unwrap, wrapper, one, pair.kind)) for one in _changed(wrapped)),
            refuses_second_wrap=_refused(partial(wrapper.wrap, back)),
        )
    finally:
        back.private_handle.destroy()


def _signs(pair: KeyPair, handle: SigningKey) -> bool:
    """Whether a signature made with `handle` is verified outside the token with the pair's public key."""
    data = b"labconsole probe"
    try:
        key = private_key(handle, pair.public_key)
        if isinstance(key, rsa.RSAPrivateKey):
            signature = key.sign(data, padding.PKCS1v15(), hashes.SHA256())
            key.public_key().verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
        else:
            key.public_key().verify(key.sign(data, ec.ECDSA(hashes.SHA256())), data, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, TokenError):
        return False
    return True


def _changed(wrapped: bytes) -> list[bytes]:
    """The wrapped key with one bit changed: at its beginning, in the middle, at its end."""
    return [
        wrapped[:place] + bytes([wrapped[place] ^ 1]) + wrapped[place + 1 :]
        for place in (0, len(wrapped) // 2, len(wrapped) - 1)
    ]


def _unwrap(wrapper: Wrapper, wrapped: bytes, kind: KeyKind) -> None:
    wrapper.unwrap(wrapped, kind).destroy()


def _refused(action: Callable[[], object]) -> bool:
    try:
        action()
    except TokenError:
        return True
    return False
