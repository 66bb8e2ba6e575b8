"""The files that a role reads: which of them travel with the run, and where the role finds each on its computer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from labconsole.model.role import RoleContext
from labconsole.security.identities import IdentityFiles
from labconsole.security.private_files import contains_private_key
from labconsole_amqp.wire.payload import PAYLOAD_FILE, payload_file

if TYPE_CHECKING:
    from labconsole_amqp.roles.role_settings import RoleSettings

IdentityName = Literal["identity", "message_identity", "port_identity"]
"""The identities in `RoleSettings`."""
_IDENTITIES: tuple[IdentityName, ...] = ("identity", "message_identity", "port_identity")
_PARTS = ("certificate", "key", "trust", "crls")
_TOKEN_CERTIFICATE, _PEER_CERTIFICATE = "message_token certificate", "peer_certificate"
_DECRYPTION_KEY, _RECIPIENT_KEY = "encryption_key key", "encryption_key public_key"
_KEYS = (*(f"{name} key" for name in _IDENTITIES), _DECRYPTION_KEY)

NO_SOURCES: Mapping[str, str | None] = {"passphrase_file": None, "keyring_entry": ""}
"""Fields of `IdentityFiles` where the passphrase is given, and neither keyring nor file is asked."""


def travelling_files(settings: RoleSettings) -> tuple[dict[str, Path], dict[str, Path]]:
    """`files` and `private_files` of the role's `RoleSpec`: a file that contains a private key is among the latter."""
    named = {key: path for key, path in _named_files(settings) if path is not None}
    private = {key: path for key, path in named.items() if key in _KEYS or contains_private_key(path)}
    files = {key: path for key, path in named.items() if key not in private}
    for name in settings.parameters.payload_names:
        if settings.role != "broker" and (payload := payload_file(name)) is not None:
            files[PAYLOAD_FILE] = payload
    return files, private


def _named_files(settings: RoleSettings) -> Iterator[tuple[str, Path | None]]:
    """Yield what the role reads besides payloads, with the key of each file."""
    for name in _IDENTITIES:
        if (identity := getattr(settings, name)) is not None:
            yield from ((f"{name} {part}", getattr(identity, part)) for part in _PARTS)
    if settings.message_token is not None:
        yield _TOKEN_CERTIFICATE, settings.message_token.certificate
    yield _PEER_CERTIFICATE, settings.peer_certificate
    if settings.encryption_key is not None and settings.role == "receiver":
        yield _DECRYPTION_KEY, settings.encryption_key.key
    elif settings.encryption_key is not None:
        yield _RECIPIENT_KEY, settings.encryption_key.public_key


def is_away(settings: RoleSettings, context: RoleContext) -> bool:
    """Whether a role with private keys is on another host than the console: it has them in memory there."""
    named = dict(_named_files(settings))
    keys = ((named.get(key), context.file(key)) for key in _KEYS)
    return settings.copied and any(found is not None and found != path for path, found in keys)


def identity_files(settings: RoleSettings, name: IdentityName, context: RoleContext) -> IdentityFiles | None:
    """The files of an identity where the role reads them; None where it has no such identity."""
    files: IdentityFiles | None = getattr(settings, name)
    if files is None or not settings.copied:
        return files
    found = {part: context.file(f"{name} {part}") for part in _PARTS}
    return files.model_copy(update={part: path for part, path in found.items() if path is not None})


def peer_certificate_file(settings: RoleSettings, context: RoleContext) -> Path:
    """The other end's certificate where the role reads it; it must have one."""
    return _found(settings, _PEER_CERTIFICATE, settings.peer_certificate, context)


def token_certificate_file(settings: RoleSettings, context: RoleContext) -> Path:
    """The certificate of a key in a token where the role reads it; it must have one."""
    token = settings.message_token
    return _found(settings, _TOKEN_CERTIFICATE, token.certificate if token is not None else None, context)


def decryption_key_file(settings: RoleSettings, path: Path, context: RoleContext) -> Path:
    """The receiver's private key that is pinned by file, `path` on the console, where the role reads it."""
    return _found(settings, _DECRYPTION_KEY, path, context)


def recipient_key_file(settings: RoleSettings, path: Path, context: RoleContext) -> Path:
    """The receiver's public key that is pinned by file, `path` on the console, where the role reads it."""
    return _found(settings, _RECIPIENT_KEY, path, context)


def _found(settings: RoleSettings, key: str, path: Path | None, context: RoleContext) -> Path:
    found = (context.file(key) if settings.copied else None) or path
    assert found is not None
    return found
