"""The bare RSA operations: the token does each, and what it gives is what RSA says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pkcs11 import Session

from labconsole.security.token.cryptoki.key_pairs import public_key_of
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.raw_rsa import generate_rsa
from labconsole.security.token.errors import TokenError

DATA = bytes(range(16))


def test_each_operation_does_what_its_name_says(session: Session) -> None:
    pair = generate_rsa(session, 1024)
    public = public_key_of(pair.public)
    assert isinstance(public, rsa.RSAPublicKey) and public.key_size == 1024
    public.verify(pair.hash_and_sign(DATA * 64), DATA * 64, padding.PKCS1v15(), hashes.SHA256())
    assert public.recover_data_from_signature(pair.sign(DATA), padding.PKCS1v15(), None) == DATA
    assert pair.decrypt(pair.encrypt(DATA)) == DATA
    assert pair.decrypt(public.encrypt(DATA, padding.PKCS1v15())) == DATA
    assert pair.verify(DATA, pair.sign(DATA))
    assert not pair.verify(DATA[::-1], pair.sign(DATA))


def test_threads_use_one_pair_through_sessions_of_their_own(token: Token) -> None:
    pair = generate_rsa(token.session(), 1024)
    others = [pair.in_session(token.session()) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        signatures = list(threads.map(lambda other: other.sign(DATA), others))
    assert signatures == [pair.sign(DATA)] * 2


def test_what_a_token_cannot_do_is_one_sentence(token: Token) -> None:
    session = token.session()
    with pytest.raises(TokenError, match="The token test cannot generate an RSA key pair of 256 bits"):
        generate_rsa(session, 256)
    pair = generate_rsa(session, 1024)
    pair.destroy()
    with pytest.raises(TokenError, match="has lost a key pair"):
        pair.in_session(token.session())
