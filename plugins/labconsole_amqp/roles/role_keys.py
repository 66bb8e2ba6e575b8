"""The identities and keys of a role, loaded and checked, from the files and secrets that its context has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from cryptography.hazmat.primitives import hashes

from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.model.trial import Level
from labconsole.security.identities import (
    IdentityFiles,
    LoadedIdentity,
    load_certificates,
    load_identity,
    require_valid,
)
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.key_types import PrivateKey
from labconsole_amqp.envelopes import encryption_keys
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyType
from labconsole_amqp.roles.role_files import (
    NO_SOURCES,
    IdentityName,
    decryption_key_file,
    identity_files,
    is_away,
    recipient_key_file,
    token_certificate_file,
)
from labconsole_amqp.roles.role_settings import (
    RefusedPeerError,
    RoleSettings,
    encryption_key_request,
    passphrase_request,
)
from labconsole_amqp.series import IDENTITIES_KEPT, IDENTITIES_USED

T = TypeVar("T")


def load_own_identity(
    settings: RoleSettings, context: RoleContext, before: tuple[RoleSettings, LoadedIdentity | None] | None = None
) -> LoadedIdentity | None:
    """The role's identity, loaded and checked; None without TLS.

    What the operator should know about it becomes an event. Where only trust or CRLs differ from those of `before`, the
    settings and identity in use, its key is not opened again, which takes as long as 80 messages. Raises UserError.
    """
    named, files = settings.identity, identity_files(settings, "identity", context)
    if named is None or files is None:
        return None
    used, identity = before if before is not None else (settings, None)
    if identity is not None and _same_key(used.identity, named):
        return replace(identity, files=files)
    return _loaded(settings, "identity", settings.name, context)


def _same_key(used: IdentityFiles | None, named: IdentityFiles) -> bool:
    return used is not None and (used.certificate, used.key) == (named.certificate, named.key)


def report_use(context: RoleContext, settings: RoleSettings, identity: LoadedIdentity, refused: str = "") -> None:
    """Record that a role uses other identities from now on; `refused`: why it refuses the end that it is connected to,
    by them."""
    sha256 = identity.certificate.fingerprint(hashes.SHA256()).hex()
    name = settings.name.capitalize()
    sentence = f"{name} uses the newest trust and CRLs, and the certificate {sha256[:16]}..., from now on."
    if refused:
        sentence += f" The broker is refused: {refused}."
    context.event(IDENTITIES_USED, sentence, certificate=sha256, refused=refused)


def report_kept(context: RoleContext, settings: RoleSettings, reason: str) -> None:
    """Record that a role cannot use other identities."""
    sentence = f"{settings.name.capitalize()} keeps the identities that it has: {reason.rstrip('.')}."
    context.event(IDENTITIES_KEPT, sentence, Level.WARNING)


def use_newest(
    context: RoleContext, settings: RoleSettings, later: RoleSettings, use: Callable[[RoleSettings], T]
) -> T:
    """`use` the later settings, or only their trust and CRLs where the own identity cannot be opened.

    Raises UserError: those cannot be read. RefusedPeerError: bodies would be encrypted to a refused certificate.
    """
    try:
        return use(later)
    except RefusedPeerError:
        raise
    except UserError as fault:
        report_kept(context, settings, str(fault))
        return use(settings.trusting(later))


def keeps_identities(context: RoleContext, settings: RoleSettings) -> bool:
    """Whether a role cannot use later identities, which are files of the console: it is on another host."""
    if away := is_away(settings, context):
        report_kept(context, settings, "the files of the new ones are on the console's computer, and it is on another")
    return away


def _loaded(settings: RoleSettings, which: IdentityName, owner: str, context: RoleContext) -> LoadedIdentity | None:
    """An identity of the settings, of `owner` in messages; its passphrase is the one that the context has, if any."""
    named, files = getattr(settings, which), identity_files(settings, which, context)
    if named is None or files is None:
        return None
    given = context.secret(passphrase_request(named, owner).key)
    if given is not None or is_away(settings, context):
        files = files.model_copy(update=NO_SOURCES)
    identity = load_identity(files, owner, lambda _: given)
    for note in identity.notes:
        context.event("identity", note, Level.WARNING)
    return identity


def _valid(settings: RoleSettings, which: IdentityName, owner: str, context: RoleContext) -> LoadedIdentity | None:
    identity = _loaded(settings, which, owner, context)
    if identity is not None:
        require_valid(identity, identity.name)
    return identity


def load_port_identity(settings: RoleSettings, context: RoleContext) -> LoadedIdentity | None:
    """The identity with which a receiver listens, loaded and checked; None without TLS. Raises UserError."""
    return _valid(settings, "port_identity", settings.port, context)


def load_message_identity(settings: RoleSettings, context: RoleContext) -> LoadedIdentity | None:
    """The identity of a role's messages, loaded and checked; None where it is that of TLS. Raises UserError."""
    return _valid(settings, "message_identity", settings.messages, context)


def open_token_key(settings: RoleSettings, context: RoleContext, opened: ExitStack) -> PrivateKey:
    """The private key in a token that signs messages; it signs until `opened` is closed. Raises UserError."""
    from labconsole.security.token.remote_private_key import opened_token_key  # late: most keys are in files

    token = settings.message_token
    assert token is not None
    key = opened.enter_context(opened_token_key(token.token, token.label, token_pin(settings, context)))
    if key.public_key() != load_certificates(token_certificate_file(settings, context))[0].public_key():
        raise UserError(
            f"The key {token.label} in the token {token.token} does not belong to the certificate {token.certificate}: "
            "give the name of the identity to another one."
        )
    return key


def token_pin(settings: RoleSettings, context: RoleContext) -> Secret:
    """The PIN of the token that signs messages.

    Raises UserError: it is not available, or the token is a built-in one of the console's computer, and not of this.
    """
    from labconsole.security.token.configuration import is_lab
    from labconsole.security.token.named_tokens import find_configuration

    token = settings.message_token
    assert token is not None
    if is_lab(token.token) and is_away(settings, context):
        raise UserError(
            f"The built-in token {token.token}, whose key signs messages, is on the console's computer: start the "
            "sender there."
        )
    request = find_configuration(token.token).pin_request(token.token)
    return context.secret(request.key) or request.resolve()


def load_decryption_key(settings: RoleSettings, type: EncryptionKeyType, context: RoleContext) -> Any:
    """The receiver's private key that is pinned by file. Raises UserError."""
    files = settings.encryption_key
    assert files is not None
    if files.key is None:
        raise UserError(
            "A receiver decrypts with a private key: set `receiver_encryption_key` to that of "
            "`receiver_encryption_public_key`."
        )
    key, secret = decryption_key_file(settings, files.key, context), None
    if not encryption_keys.is_encrypted(key):
        context.event("identity", f"The key file {files.key} is not encrypted.", Level.WARNING)
    elif (secret := context.secret(encryption_key_request(files).key)) is None:
        request = encryption_key_request(files)
        source = SecretSource() if is_away(settings, context) else request.source
        secret = source.resolve(request.purpose)
    return encryption_keys.load_private(key, type, secret)


def load_recipient_key(settings: RoleSettings, type: EncryptionKeyType, context: RoleContext) -> Any:
    """The receiver's public key that is pinned by file. Raises UserError."""
    files = settings.encryption_key
    assert files is not None
    if files.public_key is None:
        raise UserError("A sender encrypts to a public key: set `receiver_encryption_public_key`.")
    return encryption_keys.load_public(recipient_key_file(settings, files.public_key, context), type)
