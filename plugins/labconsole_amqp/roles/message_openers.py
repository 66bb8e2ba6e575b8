"""Opens the messages of a receiver: with the keys of now, those of before a rotation, and of refused signers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labconsole.model.role import RoleContext
from labconsole.model.trial import Level
from labconsole.security.identities import LoadedIdentity
from labconsole.security.x509.fingerprints import key_fingerprint
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.envelopes.message_checks import Windows
from labconsole_amqp.envelopes.message_envelope import MessageEnvelope
from labconsole_amqp.link.revocation import RevocationCheck
from labconsole_amqp.roles.message_key_pool import ListedKeys
from labconsole_amqp.roles.message_protection import load_signer, receiver_envelope, report_expired
from labconsole_amqp.roles.role_files import identity_files, peer_certificate_file
from labconsole_amqp.roles.role_settings import RefusedPeerError, RoleSettings
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.sign_encrypt import ExpectedPayload, OpenedMessage, Outcome

if TYPE_CHECKING:
    from cryptography import x509

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
    anchored: bool
    """Whether the receiver's State has trusted it when it came: one that is known by its file alone needs no root."""
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

    def __init__(self, expected: ExpectedPayload, listed: ListedKeys | None = None) -> None:
        """`listed` are the keys of the senders where each message has one of its own."""
        self._expected, self._listed = expected, listed
        self._openers: list[Opener] = []
        self._windows: dict[str, Windows] = {}
        """By the key of the signer: another certificate for it does not make old messages new."""

    def use(self, settings: RoleSettings, identity: LoadedIdentity | None, context: RoleContext) -> None:
        """Use the keys of these settings first, and judge all signers by their trust and CRLs. Raises UserError."""
        encrypted = settings.parameters.protection is Protection.SIGNED_ENCRYPTED
        own = (settings.message_identity or settings.identity) if encrypted else None
        keys = (settings.peer_certificate, own.certificate if own is not None else None)
        judges = _Judges(settings, context)
        known = next((one for one in self._openers if one.keys == keys), None)
        newest = known or self._opener(keys, settings, identity, context, judges)
        self._openers = [newest, *(one for one in self._openers if one is not newest)]
        for one in self._openers:
            refused, one.refusal = one.refusal, judges.refusal(one)
            if one.refusal and one.refusal != refused:
                context.event("identity", f"Messages of their signer are refused: {one.refusal}.", Level.WARNING)
        if known is None and newest.signer and not newest.refusal:
            report_expired(newest.signer[0], peer_certificate_file(settings, context), context)

    def _opener(
        self,
        keys: tuple[Path | None, Path | None],
        settings: RoleSettings,
        identity: LoadedIdentity | None,
        context: RoleContext,
        judges: _Judges,
    ) -> Opener:
        signer = load_signer(settings, context)
        windows = self._windows.setdefault(key_fingerprint(signer[0].public_key()) if signer else "", {})
        envelope = receiver_envelope(settings, identity, context, signer, self._expected, windows, self._listed)
        return Opener(keys, envelope, signer, judges.trusts(signer))

    def require_signer(self, settings: RoleSettings) -> None:
        """Raises RefusedPeerError: the signer is refused, so that no message could be accepted."""
        if refusal := self._openers[0].refusal:
            file = settings.peer_certificate
            raise RefusedPeerError(f"The other end's certificate {file} cannot be used: {refusal}.")

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


class _Judges:
    """Judges signers by the receiver's trust, and by its CRLs where it has some."""

    def __init__(self, settings: RoleSettings, context: RoleContext) -> None:
        """Raises UserError: trust or CRLs cannot be read."""
        signed = settings.parameters.protection is not Protection.NONE
        files = identity_files(settings, "identity", context) if signed else None
        trust = files.trust if files is not None else None
        self._check = RevocationCheck(trust, files.crls) if files is not None and trust is not None else None
        self._has_crls = files is not None and files.crls is not None

    def trusts(self, signer: tuple[x509.Certificate, ...]) -> bool:
        """Whether a root leads to it."""
        return bool(signer) and self._check is not None and not self._check.refusal(signer, Purpose.ANY)

    def refusal(self, opener: Opener) -> str:
        """Why the signer of an opener is refused; by trust alone only where it was trusted before."""
        if self._check is None or not opener.signer or not (self._has_crls or opener.anchored):
            return ""
        return self._check.refusal(opener.signer, Purpose.ANY)
