"""Opens the messages of a receiver: with the keys of now, those of before a rotation, and of refused signers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from labconsole.model.role import RoleContext
from labconsole.security.identities import LoadedIdentity
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.envelopes.message_envelope import MessageEnvelope
from labconsole_amqp.roles.message_protection import load_signer, peer_check, receiver_envelope
from labconsole_amqp.roles.role_settings import RoleSettings
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.sign_encrypt import OpenedMessage, Outcome

_OTHER_KEYS = frozenset((Outcome.SIGNATURE_WRONG, Outcome.DECRYPTION_FAILED, Outcome.UNKNOWN_SIGNER))
"""The outcomes of a message that was protected with other keys."""


@dataclass
class Opener:
    """An envelope with the keys of one time; `refusal`: why its signer is refused now, empty where it is not."""

    keys: tuple[Path | None, Path | None]
    """The files of the signer's certificate, and of the receiver's where bodies are encrypted; files of the database
    never change."""
    envelope: MessageEnvelope
    signer: tuple[x509.Certificate, ...]
    refusal: str = ""

    def accept(self, opened: OpenedMessage) -> OpenedMessage:
        """As `MessageEnvelope.accept`; a good message of a refused signer is refused."""
        accepted = self.envelope.accept(opened)
        if not self.refusal or accepted.outcome is not Outcome.OK:
            return accepted
        return accepted._replace(outcome=Outcome.SIGNER_REFUSED, payload=None, reason=self.refusal)


class MessageOpeners:
    """The openers of a receiver, the newest first.

    Messages that were protected before a rotation may be on their way when the keys change: they are opened with the
    keys of then. A signer whose certificate is refused stays known, so that its messages are refused for that reason.
    """

    def __init__(self, expected: bytes) -> None:
        """`expected` is the payload of every message."""
        self._expected = expected
        self._openers: list[Opener] = []

    def use(self, settings: RoleSettings, identity: LoadedIdentity | None, context: RoleContext) -> None:
        """Use the keys of these settings first, and judge all signers by their CRLs. Raises UserError."""
        encrypted = settings.parameters.protection is Protection.SIGNED_ENCRYPTED
        own = (settings.message_identity or settings.identity) if encrypted else None
        keys = (settings.peer_certificate, own.certificate if own is not None else None)
        newest = next((one for one in self._openers if one.keys == keys), None)
        if newest is None:
            envelope = receiver_envelope(settings, identity, context, self._expected)
            newest = Opener(keys, envelope, load_signer(settings, context))
        openers = [newest, *(one for one in self._openers if one is not newest)]
        check = peer_check(settings, context)
        for one in openers:
            one.refusal = check.refusal(one.signer, Purpose.ANY) if check is not None and one.signer else ""
        self._openers = openers

    def open_all(self, messages: Sequence[bytes]) -> list[tuple[Opener, OpenedMessage]]:
        """Each message as it was opened, and by what, which must `accept` it."""
        return [self._open(message) for message in messages]

    def _open(self, message: bytes) -> tuple[Opener, OpenedMessage]:
        first = self._openers[0], self._openers[0].envelope.open(message)
        if first[1].outcome in _OTHER_KEYS:
            for opener in self._openers[1:]:
                opened = opener.envelope.open(message)
                if opened.outcome not in _OTHER_KEYS:
                    return opener, opened
        return first
