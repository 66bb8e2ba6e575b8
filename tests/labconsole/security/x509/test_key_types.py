"""Types of keys: made, recognised, and refused where they are weak."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

from labconsole.security.x509.key_types import TITLES, KeyType, problem_of, signing_hash, type_of
from tests.helpers.x509_keys import key_of

HASHES = {
    KeyType.RSA_2048: "sha256",
    KeyType.RSA_3072: "sha256",
    KeyType.RSA_4096: "sha384",
    KeyType.P_256: "sha256",
    KeyType.P_384: "sha384",
}


@pytest.mark.parametrize("type", list(KeyType))
def test_every_type_is_made_recognised_and_strong_enough(type: KeyType) -> None:
    key = key_of(type)
    assert type_of(key.public_key()) is type
    assert problem_of(key.public_key()) == ""
    algorithm = signing_hash(key)
    assert (algorithm.name if algorithm else None) == HASHES.get(type)


@pytest.mark.parametrize(
    ("public_key", "said"),
    [
        (rsa.generate_private_key(65537, 1024).public_key(), "RSA-1024, which is too short"),
        (ec.generate_private_key(ec.SECP256K1()).public_key(), "secp256k1, which is not used here"),
        (x25519.X25519PrivateKey.generate().public_key(), "of a kind that gets no certificate"),
    ],
)
def test_other_keys_get_no_certificate(public_key: PublicKeyTypes, said: str) -> None:
    assert type_of(public_key) is None
    assert said in problem_of(public_key)


def test_a_curve_of_nist_that_others_use_gets_one() -> None:
    key = ec.generate_private_key(ec.SECP521R1())
    assert type_of(key.public_key()) is None
    assert problem_of(key.public_key()) == ""
    algorithm = signing_hash(key)
    assert algorithm is not None
    assert algorithm.name == "sha512"


def test_people_have_a_name_for_every_type() -> None:
    assert set(TITLES) == set(KeyType)
