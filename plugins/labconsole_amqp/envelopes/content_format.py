"""The contract of a hardened format: how it signs and encrypts the content of a message, and reads it again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from labconsole_amqp.envelopes.signing import Signer, Verifier, VerifierPool
from labconsole_amqp.wire.protected_message import SignedMetadata
from labconsole_amqp.wire.sign_encrypt import Outcome


class Content(NamedTuple):
    """Protected content: the octets of the body, and a signature that travels apart from it (empty: in the body)."""

    octets: bytes
    detached_signature: bytes = b""


class VerifiedContent(NamedTuple):
    """The body of content with a good signature, what was signed with it, and the id of the key that signed it."""

    body: bytes
    metadata: SignedMetadata
    key_id: bytes


class RefusedError(Exception):
    """A received message is refused; the reason is for the receiver's own record, never for the peer."""

    def __init__(self, outcome: Outcome, reason: str = "") -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


@dataclass(frozen=True)
class ContentKeys:
    """The keys of one end, and the names of both; an end has only what it needs.

    `recipient_key` encrypts, `decryption_key` decrypts: with one of them, messages are encrypted.
    """

    sender: str
    recipient: str
    address: str
    signer: Signer | None = None
    verifier: Verifier | VerifierPool | None = None
    recipient_key: Any = None
    decryption_key: Any = None


class ContentFormat(ABC):
    """Signs and encrypts content for one sender and one recipient; safe to use from several threads.

    `verify` and `decrypt` raise RefusedError, and nothing else because of the content. They are called with whatever
    came; all failures of decryption have one outcome.
    """

    implies_names: ClassVar[bool] = False
    """Whether sender, recipient and address are signed but not transmitted, since both ends know them."""

    def __init__(self, keys: ContentKeys) -> None:
        self.keys = keys

    @abstractmethod
    def sign(self, body: bytes, metadata: SignedMetadata) -> Content:
        """The content of a signed message."""

    @abstractmethod
    def verify(self, content: Content) -> VerifiedContent:
        """The body and what was signed with it, if the signature is that of the expected signer."""

    @abstractmethod
    def encrypt(self, signed: Content) -> bytes:
        """The content of a signed and encrypted message."""

    @abstractmethod
    def decrypt(self, octets: bytes) -> Content:
        """The signed content in an encrypted one, not verified yet."""

    @property
    def encrypts(self) -> bool:
        """Whether messages are encrypted, too."""
        return self.keys.recipient_key is not None or self.keys.decryption_key is not None

    @property
    def signer(self) -> Signer:
        """The key that signs, of a sender."""
        assert self.keys.signer is not None
        return self.keys.signer

    def verifier(self, key_id: bytes | None = None) -> Verifier:
        """The key that verifies, of a receiver, for content that names its key by this id, or by none.

        Raises RefusedError: it is the key of another signer.
        """
        assert self.keys.verifier is not None
        found = self.keys.verifier.find(key_id)
        if found is None:
            named = "a key that it does not name" if key_id is None else f"the key {key_id[:20].hex()}"
            raise RefusedError(Outcome.UNKNOWN_SIGNER, f"it is signed by {named}")
        return found


def decryption_failed() -> RefusedError:
    """The one refusal for whatever goes wrong before the plaintext is authentic."""
    return RefusedError(Outcome.DECRYPTION_FAILED)


def text_of(octets: bytes) -> str:
    """UTF-8 text in signed content. Raises RefusedError."""
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(Outcome.MALFORMED, "a name in the signed content is not UTF-8") from error
