"""Settings of a role of the AMQP trial (plain JSON); loads identity, keys and endpoint from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives import hashes
from pydantic import BaseModel, ConfigDict

from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.model.trial import Level, RoleSpec
from labconsole.security.identities import (
    IdentityFiles,
    LoadedIdentity,
    TokenIdentity,
    load_certificates,
    load_identity,
    require_valid,
)
from labconsole.security.private_files import contains_private_key
from labconsole.security.secrets import Prompt, Secret, SecretRequest, SecretSource
from labconsole.security.token.named_tokens import find_configuration, pin_requests
from labconsole.security.token.remote_private_key import opened_token_key
from labconsole.security.x509.key_types import PrivateKey
from labconsole_amqp.choices import BrokerChoice
from labconsole_amqp.envelopes import encryption_keys
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyFiles, EncryptionKeyType
from labconsole_amqp.link.connection import Endpoint, ShapedPath
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import IDENTITIES_KEPT, IDENTITIES_USED
from labconsole_amqp.wire.payload import PAYLOAD_FILE, payload_file

T = TypeVar("T")

_TRUST, _CRLS, _PEER, _ENCRYPTION_KEY = "trust", "crls", "peer", "encryption key"


def password_request(parameters: AmqpParameters) -> SecretRequest:
    """The password of the user at the broker."""
    host = parameters.host
    account = f"{parameters.username}@{host}:{parameters.port}"
    file = Path(parameters.password_file) if parameters.password_file else None
    source = SecretSource(keyring_entry=account, passphrase_file=file)
    return SecretRequest(f"password {account}", f"user {parameters.username} at {host}", source)


def passphrase_request(files: IdentityFiles, role: str) -> SecretRequest:
    """The passphrase of the key of `role` ("the sender", say)."""
    return SecretRequest(f"key {files.key.absolute()}", f"the key of {role}, {files.key}", files.secret_source)


def encryption_key_request(files: EncryptionKeyFiles) -> SecretRequest:
    """The passphrase of the receiver's encryption key."""
    assert files.key is not None
    return SecretRequest(
        f"key {files.key.absolute()}", f"the receiver's encryption key, {files.key}", files.secret_source
    )


class RoleIdentities(BaseModel):
    """What a role proves itself with and whom it trusts: at the start of a run, or since the database has changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    identity: IdentityFiles | None = None
    """The role's own identity, with the certificates that it trusts; None without TLS."""
    message_identity: IdentityFiles | None = None
    """The identity that signs or decrypts messages; None where it is the TLS identity."""
    message_token: TokenIdentity | None = None
    """The identity that signs messages in a token, in place of `message_identity`."""
    server_name: str = ""
    """Name that the broker's certificate must carry; empty: the host."""
    peer_certificate: Path | None = None
    """Certificate of the other end: the receiver's to encrypt for, the sender's to verify with."""
    encryption_key: EncryptionKeyFiles | None = None
    """The receiver's key that bodies are encrypted to, where it is pinned by file."""
    sender_name: str = ""
    recipient_name: str = ""
    """The subjects that a hardened envelope signs; empty with the source's."""


class RefusedPeerError(UserError):
    """The other end's certificate is refused by trust or CRLs: nothing is encrypted to it."""


USE_IDENTITIES = "use identities"
"""The command to a role in progress to use other identities: those of the certificate database have changed."""


def use_command(identities: RoleIdentities) -> dict[str, Any]:
    """The command to a role to use these identities from now on."""
    return {"do": USE_IDENTITIES, "identities": identities.model_dump(mode="json")}


class RoleSettings(RoleIdentities):
    """Settings of one sender, receiver or broker. They name files and keyring entries, and contain no secret."""

    parameters: AmqpParameters
    role: str
    """Sender, receiver or broker, as messages call it."""
    index: int = 0
    copied: bool = True
    """Whether the run has made copies of what the identities name: of those of its start."""
    check_queue: bool = False
    """Whether this role first checks that the queue is empty."""
    port_identity: IdentityFiles | None = None
    """The identity with which a receiver listens for its sender, where there is no broker; None without TLS."""

    @property
    def name(self) -> str:
        """The role as part of a sentence: `the sender`."""
        return f"the {self.role}"

    @property
    def logs_in_first(self) -> bool:
        """Whether other senders wait until the token accepts this one's PIN, so that a wrong one is tried once."""
        return self.message_token is not None and self.index == 0 and self.parameters.senders > 1

    @property
    def address(self) -> str:
        """The queue that this sender sends to, or this receiver receives from."""
        return self.parameters.address_of(self.index)

    @property
    def messages(self) -> str:
        """Its messages as part of a sentence."""
        return f"{self.name}'s messages"

    @property
    def port(self) -> str:
        """Its port as part of a sentence."""
        return f"{self.name}'s port"

    def spec(self, name: str, target: str) -> RoleSpec:
        """The role `name` with these settings; `target` as in `RoleSpec`."""
        requests: list[SecretRequest] = []
        if self.identity is not None:
            requests.append(passphrase_request(self.identity, self.name))
        if self.message_identity is not None:
            requests.append(passphrase_request(self.message_identity, self.messages))
        if self.role == "receiver" and self.encryption_key is not None and self.encryption_key.key is not None:
            requests.append(encryption_key_request(self.encryption_key))
        if self.message_token is not None:
            requests += pin_requests(self.message_token.token)
        if self.port_identity is not None:
            requests.append(passphrase_request(self.port_identity, self.port))
        if self.parameters.username:
            requests.append(password_request(self.parameters))
        return RoleSpec(name, target, self.model_dump(mode="json"), tuple(requests), self._files())

    @property
    def message_keys(self) -> tuple[object, ...]:
        """Where the keys of messages are: what is named here never changes, other keys have other names."""
        own = self.message_token or self.message_identity or self.identity
        return own.certificate if own is not None else None, self.peer_certificate, self.encryption_key

    def using(self, command: Mapping[str, Any]) -> RoleSettings:
        """These settings with the identities of a `use_command`."""
        later = RoleIdentities.model_validate(command["identities"])
        return self.model_copy(update={**dict(later), "copied": False})

    def trusting(self, later: RoleSettings) -> RoleSettings:
        """These settings with the trust and CRLs of later ones, whose own identity cannot be used."""
        if self.identity is None or later.identity is None:
            return self
        trusted = {"trust": later.identity.trust, "crls": later.identity.crls}
        return self.model_copy(update={"identity": self.identity.model_copy(update=trusted), "copied": False})

    def _files(self) -> dict[str, Path]:
        """The files of which the role reads a copy.

        Of identities only certificates are copied: a file that contains a private key is read in place.
        """
        pinned = self.encryption_key.public_key if self.role == "sender" and self.encryption_key is not None else None
        certificates = {
            _ENCRYPTION_KEY: pinned,
            _TRUST: self.identity.trust if self.identity is not None else None,
            _CRLS: self.identity.crls if self.identity is not None else None,
            _PEER: self.peer_certificate,
        }
        files = {key: path for key, path in certificates.items() if path is not None and not contains_private_key(path)}
        for name in self.parameters.payload_names:
            if self.role != "broker" and (payload := payload_file(name)) is not None:
                files[PAYLOAD_FILE] = payload
        return files


def load_own_identity(
    settings: RoleSettings, context: RoleContext, before: LoadedIdentity | None = None
) -> LoadedIdentity | None:
    """The role's identity, loaded and checked, with its copy of the trusted certificates; None without TLS.

    What the operator should know about it becomes an event. Where only trust or CRLs differ from the identity of
    `before`, its key is not opened again, which takes as long as 80 messages. Raises UserError.
    """
    if settings.identity is None:
        return None
    files = with_copies(settings.identity, settings, context)
    if before is not None and (before.files.certificate, before.files.key) == (files.certificate, files.key):
        return replace(before, files=files)
    return _loaded(files, settings.name, passphrase_request(files, settings.name), context)


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


def require_running(context: RoleContext) -> None:
    """Raises UserError: the run was stopped while its roles prepare."""
    if context.stop_requested:
        raise UserError("The run was stopped before it had started.")


def _loaded(files: IdentityFiles, name: str, request: SecretRequest, context: RoleContext) -> LoadedIdentity:
    identity = load_identity(files, name, lambda _: context.secret(request.key))
    for note in identity.notes:
        context.event("identity", note, Level.WARNING)
    return identity


def _valid(files: IdentityFiles | None, name: str, context: RoleContext) -> LoadedIdentity | None:
    if files is None:
        return None
    identity = _loaded(files, name, passphrase_request(files, name), context)
    require_valid(identity, identity.name)
    return identity


def load_port_identity(settings: RoleSettings, context: RoleContext) -> LoadedIdentity | None:
    """The identity with which a receiver listens, loaded and checked; None without TLS. Raises UserError."""
    return _valid(settings.port_identity, settings.port, context)


def load_message_identity(settings: RoleSettings, context: RoleContext) -> LoadedIdentity | None:
    """The identity of a role's messages, loaded and checked; None where it is that of TLS. Raises UserError."""
    return _valid(settings.message_identity, settings.messages, context)


def open_token_key(token: TokenIdentity, context: RoleContext, opened: ExitStack) -> PrivateKey:
    """The private key of an identity in a token; it signs until `opened` is closed. Raises UserError."""
    key = opened.enter_context(opened_token_key(token.token, token.label, token_pin(token, context)))
    if key.public_key() != load_certificates(token.certificate)[0].public_key():
        raise UserError(
            f"The key {token.label} in the token {token.token} does not belong to the certificate {token.certificate}: "
            "give the name of the identity to another one."
        )
    return key


def token_pin(token: TokenIdentity, context: RoleContext) -> Secret:
    """The PIN of the token of an identity. Raises UserError."""
    request = find_configuration(token.token).pin_request(token.token)
    return request.resolve(lambda _: context.secret(request.key))


def load_decryption_key(settings: RoleSettings, type: EncryptionKeyType, context: RoleContext) -> Any:
    """The receiver's private key that is pinned by file. Raises UserError."""
    files = settings.encryption_key
    assert files is not None
    if files.key is None:
        raise UserError(
            "A receiver decrypts with a private key: set `receiver_encryption_key` to that of "
            "`receiver_encryption_public_key`."
        )
    secret = None
    if encryption_keys.is_encrypted(files.key):
        request = encryption_key_request(files)
        secret = request.resolve(lambda _: context.secret(request.key))
    else:
        context.event("identity", f"The key file {files.key} is not encrypted.", Level.WARNING)
    return encryption_keys.load_private(files.key, type, secret)


def load_recipient_key(settings: RoleSettings, type: EncryptionKeyType, context: RoleContext) -> Any:
    """The receiver's public key that is pinned by file. Raises UserError."""
    files = settings.encryption_key
    assert files is not None
    if files.public_key is None:
        raise UserError("A sender encrypts to a public key: set `receiver_encryption_public_key`.")
    return encryption_keys.load_public(context.file(_ENCRYPTION_KEY) or files.public_key, type)


def peer_certificate_file(settings: RoleSettings, context: RoleContext) -> Path:
    """The other end's certificate: the role's copy, where it has one."""
    file = (context.file(_PEER) if settings.copied else None) or settings.peer_certificate
    assert file is not None
    return file


def with_copies(files: IdentityFiles, settings: RoleSettings, context: RoleContext) -> IdentityFiles:
    """The files of an identity, with the role's copies of what it trusts, where it has some."""
    if not settings.copied:
        return files
    copies = {"trust": context.file(_TRUST) or files.trust, "crls": context.file(_CRLS) or files.crls}
    return files.model_copy(update=copies)


def tls_settings(
    identity: LoadedIdentity | None, parameters: AmqpParameters, server_name: str = ""
) -> TlsSettings | None:
    """TLS settings of an end with `identity`; None without one."""
    return None if identity is None else TlsSettings(identity, None, server_name, parameters.tls_minimum)


def endpoint(
    parameters: AmqpParameters,
    host: str,
    port: int,
    tls: TlsSettings | None,
    prompt: Prompt,
    shaper: int | None = None,
) -> Endpoint:
    """The broker at `host` and `port` as an endpoint, over the port of a `shaper` where there is one.

    `prompt` returns a secret by its key. Raises UserError.
    """
    username, password = "", None
    if parameters.username and parameters.broker is BrokerChoice.EXTERNAL:
        username = parameters.username
        request = password_request(parameters)
        password = request.resolve(lambda _: prompt(request.key)).reveal()
    broker = Endpoint(host, port, tls=tls, username=username or None, password=password)
    return broker if shaper is None else broker.over(ShapedPath(shaper, parameters.shaped_link.rtt_ns / 1e9))
