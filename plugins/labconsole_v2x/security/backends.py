"""Backends that sign, verify and encrypt: OpenSSL by `cryptography`, AWS-LC by `awscrt`, and a PKCS#11 token.

The token is in the place of the source's ASIC (Figs. 4.1 and 4.2). Its Escrypt CyscurLib and its FPGA are not offered.
"""

from __future__ import annotations

import hmac
import os
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole.security.token.errors import TokenError, TokenFullError, TokenGoneError
from labconsole_v2x.security.chain import DigestVerifier
from labconsole_v2x.security.encoding import encode_x_only_signature
from labconsole_v2x.security.encryption import (
    KEY_SIZE,
    NONCE_SIZE,
    TAG_SIZE,
    DecryptionError,
    DecryptionKey,
)
from labconsole_v2x.security.keys import (
    CURVES,
    SigningKey,
    SoftwareKey,
    compressed_point,
    der_signature,
    load_public_key,
)
from labconsole_v2x.security.structures import Curve, PublicKey
from labconsole_v2x.security.trust import KeyLoader, software_verifier

if TYPE_CHECKING:
    from labconsole.model.role import RoleContext
    from labconsole.security.token.cryptoki.opening import Token
    from labconsole.security.token.cryptoki.raw_aes import RawAESKey
    from labconsole.security.token.cryptoki.raw_ec import RawECDHKey, RawECKey, RawECPublicKey


_BLOCK, _LENGTH_SIZE = 16, 3
_COUNTER_FLAGS = bytes((_LENGTH_SIZE - 1,))
_TAGGED_FLAGS = bytes(((TAG_SIZE - 2) // 2 << 3 | _LENGTH_SIZE - 1,))
"""First octets of blocks of CCM (NIST SP 800-38C, A.2.1, A.3): no associated data, tags of 16 octets, lengths of 3."""


class Backend(StrEnum):
    """What signs or verifies."""

    OPENSSL = "openssl"
    AWS_LC = "aws-lc"
    TOKEN = "token"


def open_backend_token(
    name: str, configuration: Mapping[str, Any] | None, context: RoleContext, resources: ExitStack
) -> Token | None:
    """Open the token of a role until `resources` are closed; None without a configuration. Raises TokenError."""
    if configuration is None:
        return None
    from labconsole.security.token.configuration import TokenConfiguration
    from labconsole.security.token.cryptoki.opening import open_token

    described = TokenConfiguration.model_validate(configuration)
    return resources.enter_context(open_token(name, described, context.secret(described.pin_request(name).key)))


def key_loader(backend: Backend, token: Token | None = None) -> KeyLoader:
    """What loads the public keys of certificates for verification."""
    if backend is Backend.TOKEN and token is not None:
        return TokenVerification(token).load
    return aws_lc_verifier if backend is Backend.AWS_LC else software_verifier


def generate_key(
    backend: Backend, curve: Curve, token: Token | None = None, *, compressed_r: bool = False
) -> SigningKey:
    """A new signing key; one in a token is lost with its session, and its signatures have R as x only."""
    if backend is Backend.TOKEN and token is not None:
        from labconsole.security.token.cryptoki.raw_ec import generate_ec

        return TokenKey(generate_ec(token.session(), CURVES[curve]), curve)
    return SoftwareKey.generate(curve, compressed_r=compressed_r)


def generate_decryption_key(backend: Backend, curve: Curve = Curve.P256, token: Token | None = None) -> DecryptionKey:
    """A new encryption key for tickets and authorities; one in a token is lost with its session."""
    if backend is Backend.TOKEN and token is not None:
        from labconsole.security.token.cryptoki.raw_ec import generate_ecdh

        return TokenDecryptionKey(generate_ecdh(token.session(), CURVES[curve]), curve)
    return SoftwareKey.generate(curve)


class SymmetricKey(Protocol):
    """An AES-128 key in software or in a token, for AES-128-CCM as IEEE 1609.2 has it (5.3.8)."""

    def encrypt(self, nonce: bytes, plaintext: bytes) -> bytes:
        """The ciphertext, which ends with the tag; no nonce, of 12 octets, may be used twice under a key.

        Raises ValueError: a nonce of another size.
        """

    def decrypt(self, nonce: bytes, ciphertext: bytes) -> bytes:
        """The plaintext. Raises `DecryptionError`: another key or nonce, or altered octets."""


def generate_symmetric_key(backend: Backend, token: Token | None = None) -> SymmetricKey:
    """A new AES-128 key; one in a token cannot be read, and is lost with its session. AWS-LC is not used for AES."""
    if backend is Backend.TOKEN and token is not None:
        from labconsole.security.token.cryptoki.raw_aes import generate_aes

        return TokenSymmetricKey(generate_aes(token.session(), KEY_SIZE * 8))
    return SoftwareSymmetricKey(os.urandom(KEY_SIZE))


def aws_lc_verifier(key: PublicKey) -> DigestVerifier:
    """Load a P-256 key into AWS-LC, other keys into OpenSSL; raises ValueError as `software_verifier`.

    AWS-LC verifies 1.2 times as fast, and holds the interpreter's lock meanwhile: threads gain nothing.
    """
    if key.curve is not Curve.P256:
        return software_verifier(key)
    from awscrt.crypto import EC  # 0.1 s to import

    der = load_public_key(key).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return partial(_verify_by_aws_lc, EC.new_key_from_der_data(der))


def _verify_by_aws_lc(key: Any, r: bytes, s: bytes, digest: bytes) -> bool:
    return bool(key.verify(digest, der_signature(r, s)))


class TokenKey:
    """A private key in a token; several threads may sign, one after the other."""

    def __init__(self, key: RawECKey, curve: Curve) -> None:
        self._key = key
        self._curve = curve
        self._turn = Lock()
        self._public = PublicKey(curve, compressed_point(key.public_key))

    @property
    def curve(self) -> Curve:
        """The curve of the key."""
        return self._curve

    @property
    def public_key(self) -> PublicKey:
        """Its public key, compressed."""
        return self._public

    def sign_digest(self, digest: bytes) -> bytes:
        """Sign a digest of 32 or 48 octets in the token; returns the encoded `Signature`. Raises TokenError."""
        with self._turn:
            octets = self._key.sign(digest)
        return encode_x_only_signature(self._curve, octets)


@dataclass(frozen=True)
class SoftwareSymmetricKey:
    """An AES-128 key in this process, used by `cryptography`."""

    value: bytes = field(repr=False)

    def encrypt(self, nonce: bytes, plaintext: bytes) -> bytes:
        """As in `SymmetricKey`."""
        return AESCCM(self.value, TAG_SIZE).encrypt(_checked(nonce), plaintext, None)

    def decrypt(self, nonce: bytes, ciphertext: bytes) -> bytes:
        """As in `SymmetricKey`."""
        try:
            return AESCCM(self.value, TAG_SIZE).decrypt(_checked(nonce), ciphertext, None)
        except InvalidTag as error:
            raise _not_decrypted() from error


class TokenSymmetricKey:
    """An AES-128 key in a token; several threads may use it, one after the other.

    Tokens such as SoftHSM have no CCM: it is composed here (NIST SP 800-38C, 6) of enciphered blocks and CBC-MACs.
    """

    def __init__(self, key: RawAESKey) -> None:
        self._key = key
        self._turn = Lock()

    def encrypt(self, nonce: bytes, plaintext: bytes) -> bytes:
        """As in `SymmetricKey`. Raises TokenError."""
        with self._turn:
            return self._streamed(_checked(nonce), plaintext) + self._tag(nonce, plaintext)

    def decrypt(self, nonce: bytes, ciphertext: bytes) -> bytes:
        """As in `SymmetricKey`. Raises TokenError."""
        tag = ciphertext[-TAG_SIZE:]
        with self._turn:
            plaintext = self._streamed(_checked(nonce), ciphertext[:-TAG_SIZE])
            if not hmac.compare_digest(self._tag(nonce, plaintext), tag):
                raise _not_decrypted()
        return plaintext

    def _streamed(self, nonce: bytes, octets: bytes) -> bytes:
        """Octets combined with the key stream from counter 1 on."""
        blocks = range(1, (len(octets) + _BLOCK - 1) // _BLOCK + 1)
        counters = b"".join(_COUNTER_FLAGS + nonce + number.to_bytes(_LENGTH_SIZE, "big") for number in blocks)
        stream = self._key.encipher(counters) if counters else b""
        return _combined(octets, stream)

    def _tag(self, nonce: bytes, plaintext: bytes) -> bytes:
        """The tag: the CBC-MAC over the nonce, the length and the padded plaintext, with the block of counter 0."""
        first = _TAGGED_FLAGS + nonce + len(plaintext).to_bytes(_LENGTH_SIZE, "big")
        mac = self._key.last_chained(first + plaintext + bytes(-len(plaintext) % _BLOCK))
        return _combined(mac, self._key.encipher(_COUNTER_FLAGS + nonce + bytes(_LENGTH_SIZE)))


def _checked(nonce: bytes) -> bytes:
    if len(nonce) != NONCE_SIZE:
        raise ValueError(f"a nonce of {len(nonce)} octets instead of {NONCE_SIZE}")
    return nonce


def _combined(octets: bytes, stream: bytes) -> bytes:
    size = len(octets)
    return (int.from_bytes(octets, "big") ^ int.from_bytes(stream[:size], "big")).to_bytes(size, "big")


def _not_decrypted() -> DecryptionError:
    return DecryptionError("The data cannot be decrypted with this key. Check the key, and that the data is whole.")


class TokenDecryptionKey:
    """A private encryption key in a token; several threads may use it, one after the other.

    ECIES beyond ECDH is done here: the secret of each message leaves the token, the private key does not.
    """

    def __init__(self, key: RawECDHKey, curve: Curve) -> None:
        self._key = key
        self._turn = Lock()
        self._public = PublicKey(curve, compressed_point(key.public_key))

    @property
    def public_key(self) -> PublicKey:
        """Its public key, compressed."""
        return self._public

    def shared_secret(self, peer: PublicKey) -> bytes:
        """As in `DecryptionKey`. Raises TokenError."""
        if peer.curve is not self._public.curve:
            raise ValueError("a point of another curve")
        public_key = load_public_key(peer)
        with self._turn:
            return self._key.shared_secret(public_key)


class TokenVerification:
    """Public keys as objects of one session of a token; several threads may verify, one after the other."""

    def __init__(self, token: Token) -> None:
        self._session = token.session()
        self._turn = Lock()
        self._unused: deque[RawECPublicKey] = deque()

    def load(self, key: PublicKey) -> DigestVerifier:
        """Import a key as a session object, which is removed from the token when the verifier is no longer used.

        Raises ValueError: it is not a point of its curve, or the token refuses it, as one without that curve does.
        TokenError: the token is full or gone.
        """
        from labconsole.security.token.cryptoki.raw_ec import import_ec

        public_key = load_public_key(key)
        with self._turn:
            while self._unused:
                self._unused.popleft().destroy()
            try:
                imported = import_ec(self._session, public_key)
            except (TokenFullError, TokenGoneError):
                raise
            except TokenError as error:  # a packet with that key must not end the receiver
                raise ValueError(str(error)) from error
            return _TokenVerifier(imported, self._turn, self._unused)


class _TokenVerifier:
    def __init__(self, key: RawECPublicKey, turn: Lock, unused: deque[RawECPublicKey]) -> None:
        self._key = key
        self._turn = turn
        self._unused = unused

    def __call__(self, r: bytes, s: bytes, digest: bytes) -> bool:
        with self._turn:
            return self._key.verify(digest, r + s)

    def __del__(self) -> None:
        # In whatever thread: the next load destroys the object, in its turn.
        self._unused.append(self._key)
