"""A private key in a token, usable in any process: a child process loads the PKCS#11 module and signs.

The window and the command line load no module, since it may crash or hang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import load_der_public_key
from cryptography.utils import Buffer

from labconsole.security.secret_value import Secret
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.module_process import Conversation
from labconsole.security.token.named_tokens import find_configuration
from labconsole.security.token.private_key_types import (
    HASHES,
    ECPrivateKeyInToken,
    RSAPrivateKeyInToken,
    digest_of,
    ecdsa_digest,
    rsa_scheme,
)

_PROGRAM = "labconsole.security.token.cryptoki.signing_process"
_TIMEOUT_S = 120.0
"""Timeout of one answer: a slow device makes an RSA-4096 key pair in it."""


PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
DigestSigner = Callable[[bytes, str, int | None], bytes]
"""Gives the signature of a digest, the name of its hash, and the salt of PSS in bytes (None: not PSS)."""


class RemoteRSAPrivateKey(RSAPrivateKeyInToken):
    """An RSA key in a token that a child process has opened."""

    def __init__(self, signature: DigestSigner, public_key: rsa.RSAPublicKey) -> None:
        super().__init__(public_key)
        self._signature = signature

    def sign(
        self,
        data: bytes,
        padding: padding.AsymmetricPadding,
        algorithm: utils.Prehashed | hashes.HashAlgorithm | utils.NoDigestInfo,
    ) -> bytes:
        """PKCS #1 v1.5 or PSS (RFC 8017, 8.2 and 8.1) with SHA-256, 384 or 512; the digest is computed here.

        Raises:
            UnsupportedAlgorithm: another padding, hash or mask, or PSS.AUTO, which has no meaning for signing.
            ValueError: the digest or the salt has a length that does not fit.
            TokenError: the token is closed or gone, or refuses.
        """
        digest, hashed_with = digest_of(data, algorithm)
        scheme = rsa_scheme(padding, hashed_with, self.public_key())
        return self._signature(digest, scheme.hash_name, scheme.salt_length)


class RemoteECPrivateKey(ECPrivateKeyInToken):
    """An EC key in a token that a child process has opened."""

    def __init__(self, signature: DigestSigner, public_key: ec.EllipticCurvePublicKey) -> None:
        super().__init__(public_key)
        self._signature = signature

    def sign(self, data: Buffer, signature_algorithm: ec.EllipticCurveSignatureAlgorithm) -> bytes:
        """ECDSA (FIPS 186-4, 6), as a DER sequence of r and s; the digest is computed here.

        Raises:
            UnsupportedAlgorithm: another scheme or hash, or deterministic signatures.
            ValueError: the digest has a length that is not its hash's.
            TokenError: the token is closed or gone, or refuses.
        """
        digest, hashed_with = ecdsa_digest(data, signature_algorithm)
        if hashed_with.name not in HASHES:
            raise UnsupportedAlgorithm(f"An EC key in a token signs with SHA-256, 384 or 512, not {hashed_with.name}.")
        return self._signature(digest, hashed_with.name, None)


RemotePrivateKey = RemoteRSAPrivateKey | RemoteECPrivateKey


def remote_key(signature: DigestSigner, public_key: PublicKey) -> RemotePrivateKey:
    """The private key of this public key, whose signatures come from `signature`."""
    if isinstance(public_key, rsa.RSAPublicKey):
        return RemoteRSAPrivateKey(signature, public_key)
    return RemoteECPrivateKey(signature, public_key)


@contextmanager
def opened_token_key(token_name: str, label: str, pin: Secret) -> Iterator[RemotePrivateKey]:
    """The private key labelled `label` in the token called `token_name`; it signs while the context is open.

    Takes half a second. Threads may share the key; the thread that opened it must outlive them.

    Raises:
        TokenError: no such token or key, a wrong PIN (tried once), or the module crashes or hangs.
    """
    with opened_token(token_name, pin) as conversation:
        yield _key_labelled(label, conversation)


@contextmanager
def opened_new_token_key(token_name: str, label: str, kind: KeyKind, pin: Secret) -> Iterator[RemotePrivateKey]:
    """The private key of a new pair in the token, stored, sensitive and never extractable; one login does both.

    Raises:
        TokenError: as `opened_token_key`, and: the label is in use, the token is full or cannot make such keys.
    """
    with opened_token(token_name, pin) as conversation:
        conversation.ask({"do": "make", "label": label, "kind": kind.value})
        yield _key_labelled(label, conversation)


@contextmanager
def opened_token(token_name: str, pin: Secret) -> Iterator[Conversation]:
    """The child process that has opened the token called `token_name`. Raises as `opened_token_key`."""
    configuration = find_configuration(token_name)
    opening = {
        "do": "open",
        "name": token_name,
        "configuration": configuration.model_dump(mode="json"),
        "pin": pin.reveal(),
    }
    with Conversation(_PROGRAM, _TIMEOUT_S, f"The PKCS#11 module {configuration.module}") as conversation:
        conversation.ask(opening)
        yield conversation


def _key_labelled(label: str, conversation: Conversation) -> RemotePrivateKey:
    public_key = public_key_in(conversation.ask({"do": "find", "label": label}))
    return remote_key(partial(_signature, conversation), public_key)


def public_key_in(answer: dict[str, Any]) -> PublicKey:
    """The public key in an answer of the child process."""
    return cast(PublicKey, load_der_public_key(bytes.fromhex(answer["public_key"])))


def _signature(conversation: Conversation, digest: bytes, hash_name: str, salt: int | None) -> bytes:
    answer = conversation.ask({"do": "sign", "digest": digest.hex(), "hash": hash_name, "salt": salt})
    return bytes.fromhex(answer["signature"])
