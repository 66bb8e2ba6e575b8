"""Keys in a token that sign once, usable in any process: generated ahead, wrapped, and loaded for their signature."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole.security.secret_value import Secret
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.module_process import Conversation
from labconsole.security.token.remote_private_key import (
    PublicKey,
    RemotePrivateKey,
    opened_token,
    public_key_in,
    remote_key,
)


class KeyUse(NamedTuple):
    """How long the token took to load (unwrap) a key, to sign with it, and to destroy it, ns."""

    load_ns: int
    sign_ns: int
    destroy_ns: int


class OneTimeKey:
    """A key pair whose private key signs once. Signing loads it into the token, and destroys it there."""

    def __init__(
        self, conversation: Conversation, wrapped: str, public_key: PublicKey, generate_ns: int, wrap_ns: int
    ) -> None:
        """`wrapped` is the private key, encrypted by the token, in hex; the times are those of generating it."""
        self._conversation, self._wrapped = conversation, wrapped
        self.public_key = public_key
        self.generate_ns, self.wrap_ns = generate_ns, wrap_ns
        self.use: KeyUse | None = None
        """Of its signature, once it has signed."""
        self.private_key: RemotePrivateKey = remote_key(self._signature, public_key)

    def _signature(self, digest: bytes, hash_name: str, salt: int | None) -> bytes:
        """The one signature, for one thread. Raises TokenError: it has signed, or as `RemotePrivateKey.sign`."""
        if self.use is not None:
            raise TokenError("The key has signed, and signs once only: take another one.")
        public = self.public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        question = {"do": "sign once", "private": self._wrapped, "public_key": public.hex()}
        answer = self._conversation.ask(question | {"digest": digest.hex(), "hash": hash_name, "salt": salt})
        self.use = KeyUse(answer["load_ns"], answer["sign_ns"], answer["destroy_ns"])
        return bytes.fromhex(answer["signature"])


class OneTimeKeys:
    """An open token that generates such keys of one kind; they sign until it is closed, and are lost then."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def generate(self, most: int) -> list[OneTimeKey]:
        """Up to `most` keys, at least one: as many as are ready in half a second. Raises TokenError."""
        answer = self._conversation.ask({"do": "generate ahead", "most": most})
        return [
            OneTimeKey(self._conversation, key["private"], public_key_in(key), key["generate_ns"], key["wrap_ns"])
            for key in answer["keys"]
        ]


@contextmanager
def opened_one_time_keys(token_name: str, kind: KeyKind, pin: Secret) -> Iterator[OneTimeKeys]:
    """The token called `token_name`, which generates keys of this kind; nothing is left in it afterwards.

    Takes a second. Threads may share the keys; the thread that opened the token must outlive them.

    Raises:
        TokenError: no such token, a wrong PIN (tried once), the module crashes or hangs, or the token cannot wrap keys
            of this kind.
    """
    with opened_token(token_name, pin) as conversation:
        conversation.ask({"do": "prepare ahead", "kind": kind.value})
        yield OneTimeKeys(conversation)
