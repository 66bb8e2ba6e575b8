"""Settings of a role of the AMQP trial (plain JSON); loads identity, keys and endpoint from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.model.trial import RoleSpec
from labconsole.security.identities import IdentityFiles, LoadedIdentity, TokenIdentity
from labconsole.security.secrets import Prompt, SecretRequest, SecretSource
from labconsole_amqp.choices import BrokerChoice
from labconsole_amqp.envelopes import encryption_keys
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyFiles
from labconsole_amqp.link.connection import Endpoint, ShapedPath
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.role_files import travelling_files


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


def _needs_passphrase(key: Path, is_encrypted: Callable[[Path], bool]) -> bool:
    """Whether a key file is encrypted; of one that cannot be read, the role reports the fault."""
    try:
        return is_encrypted(key)
    except UserError:
        return False


def _is_encrypted(key: Path) -> bool:
    from labconsole.security.key_files import is_encrypted  # late, with asn1crypto: Test 1 has no keys

    return is_encrypted(key)


class RoleIdentities(BaseModel):
    """What a role proves itself with and whom it trusts: at the start of a run, or since the database has changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

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
    """Whether the run has the files that the identities name travel: those of its start."""
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
        owners = ((self.identity, self.name), (self.message_identity, self.messages), (self.port_identity, self.port))
        requests = [
            passphrase_request(files, owner)
            for files, owner in owners
            if files is not None and _needs_passphrase(files.key, _is_encrypted)
        ]
        pinned = self.encryption_key if self.role == "receiver" else None
        if pinned is not None and pinned.key and _needs_passphrase(pinned.key, encryption_keys.is_encrypted):
            requests.append(encryption_key_request(pinned))
        if self.message_token is not None:
            from labconsole.security.token.named_tokens import pin_requests  # late: most keys are in files

            requests += pin_requests(self.message_token.token)
        if self.parameters.username:
            requests.append(password_request(self.parameters))
        files, private_files = travelling_files(self)
        return RoleSpec(name, target, self.model_dump(mode="json"), tuple(requests), files, private_files)

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


def require_running(context: RoleContext) -> None:
    """Raises UserError: the run was stopped while its roles prepare."""
    if context.stop_requested:
        raise UserError("The run was stopped before it had started.")


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
        password = (prompt(request.key) or request.resolve()).reveal()
    broker = Endpoint(host, port, tls=tls, username=username or None, password=password)
    return broker if shaper is None else broker.over(ShapedPath(shaper, parameters.shaped_link.rtt_ns / 1e9))
