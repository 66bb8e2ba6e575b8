"""The envelope of a role's messages, with its keys loaded and checked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.model.trial import Level
from labconsole.security.identities import LoadedIdentity, load_certificates, validity_problem
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.envelopes.content_format import ContentKeys
from labconsole_amqp.envelopes.formats import EnvelopeFormat, key_titles
from labconsole_amqp.envelopes.message_checks import KnownSigner, MessageChecks, Windows
from labconsole_amqp.envelopes.message_envelope import (
    HardenedEnvelope,
    MessageEnvelope,
    PooledEnvelope,
    SourceEnvelope,
)
from labconsole_amqp.envelopes.signing import KeySigner, Verifier
from labconsole_amqp.link.revocation import check_of
from labconsole_amqp.roles.message_key_pool import ListedKeys, make_pool
from labconsole_amqp.roles.role_files import identity_files, peer_certificate_file
from labconsole_amqp.roles.role_keys import (
    load_decryption_key,
    load_message_identity,
    load_recipient_key,
    open_token_key,
)
from labconsole_amqp.roles.role_settings import RefusedPeerError, RoleSettings
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.sign_encrypt import ExpectedPayload, rsa_private_key, rsa_public_key

if TYPE_CHECKING:
    from cryptography import x509


def sender_envelope(
    settings: RoleSettings,
    identity: LoadedIdentity | None,
    context: RoleContext,
    opened: ExitStack,
    *,
    announces_login: bool = False,
) -> MessageEnvelope:
    """The envelope with which a sender protects its messages; `identity` is its own for TLS. Raises UserError.

    A key in a token signs until `opened` is closed. Where each message has a key of its own, all are generated here.
    `announces_login`: report when the token has accepted the PIN.
    """
    form, format = settings.parameters.message_form, settings.parameters.envelope
    if form.protection is Protection.NONE:
        return SourceEnvelope(form)
    peer = None
    if form.protection is Protection.SIGNED_ENCRYPTED:
        peer = _Peer.load(settings, context)
        peer.require_accepted()
    with ExitStack() as before:
        pooled, owner = settings.parameters.pool_size > 0, settings.messages
        if settings.message_token is not None:
            key = open_token_key(settings, context, before if pooled else opened)
            if announces_login:
                context.report(logged_in=True)
        else:
            key, owner = _message_key(settings, identity, context)
        if not format.is_hardened:
            recipient = rsa_public_key(peer.certificate, str(peer.file)) if peer is not None else None
            return SourceEnvelope(form, signing_key=rsa_private_key(key, owner), recipient_key=recipient)
        _require_signing(format, key.public_key(), owner)
        keys = _content_keys(settings, signer=KeySigner(key), recipient_key=_recipient_key(settings, peer, context))
        if not pooled:
            return HardenedEnvelope(form, format, format.content_format()(keys))
        return PooledEnvelope(form, format, keys, make_pool(settings, keys, context, opened).take)


def _recipient_key(settings: RoleSettings, peer: _Peer | None, context: RoleContext) -> Any:
    """The key that bodies are encrypted to; None where they are not. Raises UserError."""
    format, recipient_key = settings.parameters.envelope, None
    if peer is not None and format.pinned_key is not None:
        recipient_key = load_recipient_key(settings, format.pinned_key, context)
    elif peer is not None:
        recipient_key = peer.certificate.public_key()
        _require_encryption(format, recipient_key, str(peer.file))
    return recipient_key


def require_recipient(settings: RoleSettings, context: RoleContext) -> None:
    """Raises RefusedPeerError if bodies would be encrypted to a certificate that CRLs refuse."""
    if settings.parameters.protection is Protection.SIGNED_ENCRYPTED:
        _Peer.load(settings, context).require_accepted()


def receiver_envelope(
    settings: RoleSettings,
    identity: LoadedIdentity | None,
    context: RoleContext,
    signer: Sequence[x509.Certificate],
    expected: ExpectedPayload,
    windows: Windows,
    listed: ListedKeys | None,
) -> MessageEnvelope:
    """The envelope with which a receiver opens messages with `expected` payloads; `windows` are of their signer.

    `signer` is what `load_signer` gives; whether it is refused is for the caller to judge. `listed` are the keys of the
    senders where each message has one of its own. Raises UserError.
    """
    parameters, form, format = settings.parameters, settings.parameters.message_form, settings.parameters.envelope
    if form.protection is Protection.NONE:
        return SourceEnvelope(form, expected=expected)
    certificate, file = signer[0], str(peer_certificate_file(settings, context))
    key: Any = None
    owner = ""
    if form.protection is Protection.SIGNED_ENCRYPTED and format.pinned_key is not None:
        key = load_decryption_key(settings, format.pinned_key, context)
    elif form.protection is Protection.SIGNED_ENCRYPTED:
        key, owner = _message_key(settings, identity, context)
    if not format.is_hardened:
        verification_key = rsa_public_key(certificate, file)
        decryption_key = None if key is None else rsa_private_key(key, owner)
        return SourceEnvelope(form, verification_key=verification_key, decryption_key=decryption_key, expected=expected)
    public_key: Any = certificate.public_key()
    _require_signing(format, public_key, file)
    if key is not None and format.pinned_key is None:
        _require_encryption(format, key.public_key(), owner)
    checks = MessageChecks(
        sender=settings.sender_name,
        recipient=settings.recipient_name,
        address=settings.address,
        signer=KnownSigner(certificate.not_valid_before_utc, certificate.not_valid_after_utc),
        tolerance_s=parameters.time_tolerance,
        window=parameters.replay_window,
        windows=windows,
        used_keys=listed.used if listed is not None else None,
    )
    verifier = Verifier(public_key)
    keys = _content_keys(settings, verifier=verifier, decryption_key=key)
    if listed is not None:
        keys = replace(keys, verifier=listed.verifier(format, keys, verifier))
    return HardenedEnvelope(form, format, format.content_format()(keys), checks, expected=expected)


def _content_keys(settings: RoleSettings, **keys: Any) -> ContentKeys:
    return ContentKeys(settings.sender_name, settings.recipient_name, settings.address, **keys)


def _message_key(
    settings: RoleSettings, identity: LoadedIdentity | None, context: RoleContext
) -> tuple[PrivateKey, str]:
    """The private key of a role's messages, and whose it is: that of TLS unless messages have one. Raises UserError."""
    own = load_message_identity(settings, context) or identity
    assert own is not None
    return own.private_key, own.name


def load_signer(settings: RoleSettings, context: RoleContext) -> tuple[x509.Certificate, ...]:
    """The certificate that messages are verified with, and its chain; none without signatures. Raises UserError."""
    signed = settings.parameters.protection is not Protection.NONE
    return tuple(load_certificates(peer_certificate_file(settings, context))) if signed else ()


def report_expired(certificate: x509.Certificate, file: Path, context: RoleContext) -> None:
    """Record that the other end's certificate is not valid now, if it is not."""
    problem = validity_problem(certificate, datetime.now(UTC))
    if problem is not None:
        context.event("identity", f"The other end's certificate {file} {problem}.", Level.WARNING)


@dataclass(frozen=True)
class _Peer:
    """The other end's certificate; `refusal` is why the CRLs of this end refuse it, empty: they do not."""

    file: Path
    certificate: x509.Certificate
    refusal: str

    @classmethod
    def load(cls, settings: RoleSettings, context: RoleContext) -> _Peer:
        """Read and judge it; an expired one is noted. Raises UserError."""
        file = peer_certificate_file(settings, context)
        certificate, *chain = load_certificates(file)
        own = identity_files(settings, "identity", context)
        check = check_of(own) if own is not None else None
        refusal = check.refusal((certificate, *chain), Purpose.ANY) if check is not None else ""
        if not refusal:
            report_expired(certificate, file, context)
        return cls(file, certificate, refusal)

    def require_accepted(self) -> None:
        """Raises RefusedPeerError if it is refused."""
        if self.refusal:
            raise RefusedPeerError(f"The other end's certificate {self.file} cannot be used: {self.refusal}.")


def _require_signing(format: EnvelopeFormat, key: Any, owner: str) -> None:
    if not format.signs_with(key):
        raise UserError(
            f"The key of {owner} cannot sign messages of the envelope {format.value}: it needs "
            f"{key_titles(format.signing)}."
        )


def _require_encryption(format: EnvelopeFormat, key: Any, owner: str) -> None:
    if not format.encrypts_to(key):
        raise UserError(
            f"Bodies of the envelope {format.value} cannot be encrypted to the key of {owner}: it needs "
            f"{key_titles(format.encryption)}."
        )
