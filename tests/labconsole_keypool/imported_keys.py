"""A pool of many RSA keys in seconds: computed from few primes, imported into the token, and wrapped by it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import cast

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers, RSAPublicNumbers
from pkcs11 import Attribute, KeyType, ObjectClass, PublicKey, Session
from pkcs11.util import biginteger

from labconsole.security.token.configuration import LAB
from labconsole.security.token.cryptoki.key_pairs import KeyPair, signing_key
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import find_configuration
from labconsole_keypool.device import generator
from labconsole_keypool.device.emulation import Device
from labconsole_keypool.store.key_store import KeyStore, store_path

_EXPONENT = 65537


def fill_with_imported_keys(key_store: str, count: int) -> None:
    """Put `count` RSA-2048 key pairs, each another one, into the key store, wrapped by the token `lab`.

    SoftHSM with Debian's OpenSSL 3.0 takes 0.36 s of CPU to generate one; to import, wrap and store one takes 4 ms.
    """
    configuration = find_configuration(LAB)
    pin = configuration.pin_request(LAB).resolve()
    numbers = _private_numbers(count)

    def imported(session: Session, kind: KeyKind, *, extractable: bool) -> KeyPair:
        return _import_pair(session, kind, next(numbers), extractable=extractable)

    with (
        pytest.MonkeyPatch.context() as patch,
        open_token(LAB, configuration, pin) as token,
        KeyStore.open(store_path(key_store)) as store,
    ):
        patch.setattr(generator, "generate", imported)
        filling = generator.Generator(token, store, Device(), KeyKind.RSA_2048, 10_000)
        assert filling.make(count, lambda: False, lambda stored: None) == count


def _private_numbers(count: int) -> Iterator[RSAPrivateNumbers]:
    """Numbers of `count` private keys: each has another pair of the same few primes."""
    primes: list[int] = []
    while len(primes) * (len(primes) - 1) // 2 < count:
        private = rsa.generate_private_key(_EXPONENT, 2048).private_numbers()
        primes += (private.p, private.q)
    for p, q in combinations(primes, 2):
        d = rsa.rsa_recover_private_exponent(_EXPONENT, p, q)
        yield RSAPrivateNumbers(
            p=p,
            q=q,
            d=d,
            dmp1=rsa.rsa_crt_dmp1(d, p),
            dmq1=rsa.rsa_crt_dmq1(d, q),
            iqmp=rsa.rsa_crt_iqmp(p, q),
            public_numbers=RSAPublicNumbers(_EXPONENT, p * q),
        )


def _import_pair(session: Session, kind: KeyKind, numbers: RSAPrivateNumbers, *, extractable: bool) -> KeyPair:
    """Session objects of both keys in the token, with the attributes of generated ones (C_CreateObject)."""
    public = numbers.public_numbers
    shared = {
        Attribute.KEY_TYPE: KeyType.RSA,
        Attribute.TOKEN: False,
        Attribute.MODULUS: biginteger(public.n),
        Attribute.PUBLIC_EXPONENT: biginteger(public.e),
    }
    private = {
        Attribute.CLASS: ObjectClass.PRIVATE_KEY,
        Attribute.PRIVATE: True,
        Attribute.SENSITIVE: True,
        Attribute.EXTRACTABLE: extractable,
        Attribute.SIGN: True,
        Attribute.PRIVATE_EXPONENT: biginteger(numbers.d),
        Attribute.PRIME_1: biginteger(numbers.p),
        Attribute.PRIME_2: biginteger(numbers.q),
        Attribute.EXPONENT_1: biginteger(numbers.dmp1),
        Attribute.EXPONENT_2: biginteger(numbers.dmq1),
        Attribute.COEFFICIENT: biginteger(numbers.iqmp),
    }
    return KeyPair(
        kind,
        public.public_key(),
        cast(PublicKey, session.create_object({Attribute.CLASS: ObjectClass.PUBLIC_KEY, **shared})),
        signing_key(session.create_object({**shared, **private}), kind),
    )
