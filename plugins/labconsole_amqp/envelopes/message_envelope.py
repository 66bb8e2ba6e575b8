"""The one interface of all envelopes, `protect(message)` and `open(message)`, and the kinds of envelopes.

A sender protects, a receiver opens on any thread and then accepts in the order of arrival, on one: only there is it
known whether a message was there before. Both fail closed. Towards the peer and the broker every refusal must look the
same (see `wire.sign_encrypt`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from labconsole.clock import now_ns
from labconsole_amqp.envelopes.content_format import Content, ContentFormat, ContentKeys, RefusedError
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.envelopes.message_checks import MessageChecks
from labconsole_amqp.envelopes.signing import KeySigner
from labconsole_amqp.wire.amqp_types import Buffer, EnvelopeError
from labconsole_amqp.wire.envelope import FieldsIn, Protection, encode
from labconsole_amqp.wire.envelope_layout import Envelope, LayoutMemory
from labconsole_amqp.wire.protected_message import ProtectedMessage, SignedMetadata, decode_protected, encode_protected
from labconsole_amqp.wire.sign_encrypt import ExpectedPayload, OpenedMessage, Outcome, open_sealed, seal

if TYPE_CHECKING:
    from labconsole.security.token.one_time_keys import KeyUse, OneTimeKey


class SealedMessage(NamedTuple):
    """An encoded message, the offset of its stamp, and how long signing and encrypting took, ns.

    `key_use` are the parts of signing by a key that signs this message alone.
    """

    message: bytes
    stamp_offset: int
    sign_ns: int
    encrypt_ns: int
    key_use: KeyUse | None = None


@dataclass(frozen=True)
class MessageForm:
    """What a run decides of its messages besides their envelope. `fields_in` matters to the source's alone."""

    protection: Protection
    durable: bool = False
    numbered: bool = False
    fields_in: FieldsIn = FieldsIn.APPLICATION_PROPERTIES


class MessageEnvelope(ABC):
    """Protects the messages of one sender, or opens those of one receiver."""

    def __init__(self, form: MessageForm) -> None:
        self.form = form

    @abstractmethod
    def protect(self, body: bytes, number: int) -> SealedMessage:
        """The encoded message with `body`; `number` is its message id (`message_number`). Any thread may call this."""

    @abstractmethod
    def open(self, message: Buffer) -> OpenedMessage:
        """Decode, decrypt and verify a received message. Any thread may call this; it never raises for the content."""

    def accept(self, opened: OpenedMessage) -> OpenedMessage:
        """The final outcome of a message; called once for each, in the order of arrival, on one thread."""
        return opened

    def _message_id(self, number: int) -> int | None:
        return number if self.form.numbered else None


class SourceEnvelope(MessageEnvelope):
    """The envelope of the source's tool (`wire.envelope`, `wire.sign_encrypt`), and plain messages."""

    def __init__(
        self,
        form: MessageForm,
        *,
        signing_key: RSAPrivateKey | None = None,
        recipient_key: RSAPublicKey | None = None,
        verification_key: RSAPublicKey | None = None,
        decryption_key: RSAPrivateKey | None = None,
        expected: ExpectedPayload | None = None,
    ) -> None:
        """An end has only its own keys; only `expected` payloads are accepted, any where it is None."""
        super().__init__(form)
        self._signing_key, self._recipient_key = signing_key, recipient_key
        self._verification_key, self._decryption_key = verification_key, decryption_key
        self._expected, self._decoded = expected, LayoutMemory().decode

    def protect(self, body: bytes, number: int) -> SealedMessage:
        parts = seal(body, self.form.protection, self._signing_key, self._recipient_key)
        message, stamp_offset = encode(
            parts,
            fields_in=self.form.fields_in,
            durable=self.form.durable,
            message_id=self._message_id(number),
        )
        return SealedMessage(message, stamp_offset, parts.sign_ns, parts.encrypt_ns)

    def open(self, message: Buffer) -> OpenedMessage:
        return open_sealed(
            message,
            self.form.protection,
            self._verification_key,
            self._decryption_key,
            expected=self._expected,
            decoded=self._decoded,
        )


class HardenedEnvelope(MessageEnvelope):
    """A hardened format in a `protected_message`: signs the metadata, too, and refuses replays."""

    def __init__(
        self,
        form: MessageForm,
        format: EnvelopeFormat,
        content: ContentFormat,
        checks: MessageChecks | None = None,
        *,
        expected: ExpectedPayload | None = None,
    ) -> None:
        """A receiver has `checks`; only `expected` payloads are accepted, any where it is None."""
        super().__init__(form)
        self._content = content
        self._checks = checks
        self._expected = expected
        self._encrypts = content.encrypts
        self._content_type = format.content_types[self._encrypts].encode()

    def protect(self, body: bytes, number: int) -> SealedMessage:
        return self._protected(self._content, body, number)

    def _protected(self, content: ContentFormat, body: bytes, number: int) -> SealedMessage:
        """The encoded message, whose content has this format and keys."""
        keys = content.keys
        created_ms = time.time_ns() // 1_000_000
        began = now_ns()
        signed = content.sign(body, SignedMetadata(keys.sender, keys.recipient, keys.address, number, created_ms))
        done = now_ns()
        protected = Content(content.encrypt(signed)) if self._encrypts else signed
        encrypt_ns = now_ns() - done if self._encrypts else 0
        message, stamp_offset = encode_protected(
            protected.octets,
            self._content_type,
            protected.detached_signature,
            durable=self.form.durable,
            message_id=self._message_id(number),
        )
        return SealedMessage(message, stamp_offset, done - began, encrypt_ns)

    def open(self, message: Buffer) -> OpenedMessage:
        try:
            decoded = decode_protected(message)
        except EnvelopeError as error:
            return OpenedMessage(Outcome.MALFORMED, None, reason=str(error))
        envelope = Envelope(decoded.stamp_ms, decoded.message_id, decoded.content, None, None, None)
        began = decrypted = now_ns()
        try:
            content = self._received(decoded)
            if self._encrypts:
                content = self._content.decrypt(content.octets)
                decrypted = now_ns()
            verified = self._content.verify(content)
        except RefusedError as refused:
            return OpenedMessage(refused.outcome, envelope, reason=refused.reason)
        verify_ns = now_ns() - decrypted
        metadata = verified.metadata
        if decoded.message_id not in (None, metadata.message_id):
            reason = "the message id is not the signed one"
            return OpenedMessage(Outcome.SIGNATURE_WRONG, envelope, None, verify_ns, decrypted - began, reason)
        return OpenedMessage(
            Outcome.OK, envelope, verified.body, verify_ns, decrypted - began, "", metadata, verified.key_id
        )

    def accept(self, opened: OpenedMessage) -> OpenedMessage:
        assert self._checks is not None
        if opened.metadata is None:
            return opened
        outcome, reason = self._checks.outcome(opened.metadata, opened.key_id, time.time_ns() // 1_000_000)
        body, number = opened.payload or b"", opened.metadata.message_id
        if outcome is Outcome.OK and self._expected is not None and not self._expected(body, number):
            outcome = Outcome.PAYLOAD_DIFFERS
        return opened if outcome is Outcome.OK else opened._replace(outcome=outcome, reason=reason, payload=None)

    def _received(self, message: ProtectedMessage) -> Content:
        """The content of a message. Raises RefusedError: it is of another media type."""
        if message.content_type and message.content_type != self._content_type:
            shown = message.content_type[:60].decode(errors="replace")
            raise RefusedError(Outcome.MALFORMED, f"the content type is {shown!r}, which this envelope has not")
        return Content(message.content, message.detached_signature)


class PooledEnvelope(HardenedEnvelope):
    """A sender's hardened envelope in which another key signs each message."""

    def __init__(
        self, form: MessageForm, format: EnvelopeFormat, keys: ContentKeys, take: Callable[[], OneTimeKey]
    ) -> None:
        """`keys` are those of the sender, whose `signer` is of the type of all; `take` gives the next key that signs.

        Any thread may call `take`, which raises UserError when there is none left.
        """
        self._keys, self._make, self._take = keys, format.content_format(), take
        super().__init__(form, format, self._make(keys))

    def protect(self, body: bytes, number: int) -> SealedMessage:
        key = self._take()
        content = self._make(replace(self._keys, signer=KeySigner(key.private_key)))
        return self._protected(content, body, number)._replace(key_use=key.use)
