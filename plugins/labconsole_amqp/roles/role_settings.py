"""What a role of the AMQP trial is told (plain JSON), and what it makes of it: endpoint, identities, keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from pydantic import BaseModel, ConfigDict

from labconsole.model.role import RoleContext
from labconsole.model.trial import Level, RoleSpec
from labconsole.security.identities import (
    Identity,
    IdentityFiles,
    load_certificates,
    load_identity,
    validity_problem,
)
from labconsole.security.private_files import contains_private_key
from labconsole.security.secrets import SecretRequest
from labconsole_amqp.link.connection import Endpoint
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.secret_requests import passphrase_request, password_request
from labconsole_amqp.wire.payload import PAYLOAD_FILE, payload_file
from labconsole_amqp.wire.sign_encrypt import rsa_private_key, rsa_public_key

_TRUST, _PEER = "trust", "peer"


class RoleSettings(BaseModel):
    """Settings of one sender, receiver or broker. They name files and keyring entries, and hold no secret."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parameters: AmqpParameters
    role: str
    """Sender, receiver or broker, as messages call it."""
    index: int = 0
    own: IdentityFiles | None = None
    """The role's own identity."""
    trust: Path | None = None
    """PEM file with the authority that peers' certificates come from."""
    server_name: str = ""
    """Name that the broker's certificate must carry; empty: the host."""
    peer_certificate: Path | None = None
    """Certificate of the other end: the receiver's to encrypt for, the sender's to verify with."""
    check_queue: bool = False
    """Whether this role looks first if the queue is empty."""

    def spec(self, name: str, target: str) -> RoleSpec:
        """The role `name` with these settings; what `target` is, `RoleSpec` says."""
        requests: list[SecretRequest] = []
        if self.own is not None:
            requests.append(passphrase_request(self.own, f"the {self.role}"))
        if self.parameters.username:
            requests.append(password_request(self.parameters, self.parameters.host, self.parameters.port))
        keys = tuple(request.key for request in requests)
        return RoleSpec(name, target, self.model_dump(mode="json"), keys, self._files())

    def _files(self) -> dict[str, Path]:
        """The files that the role reads a copy of. Of identities they are certificates alone: a file with a key in it
        stays where it is, and is read there."""
        certificates = {_TRUST: self.trust, _PEER: self.peer_certificate}
        files = {key: path for key, path in certificates.items() if path is not None and not contains_private_key(path)}
        if self.role != "broker" and (payload := payload_file(self.parameters.payload)) is not None:
            files[PAYLOAD_FILE] = payload
        return files


@dataclass(frozen=True)
class RoleIdentity:
    """The loaded identity of a role, and the other end's certificate; what is odd about them becomes an event."""

    settings: RoleSettings
    role: str
    context: RoleContext

    @cached_property
    def own(self) -> Identity:
        """The role's own identity, loaded and checked. Raises UserError."""
        assert self.settings.own is not None
        request = passphrase_request(self.settings.own, self.role)
        identity = load_identity(self.settings.own, self.role, lambda _: self.context.secret(request.key))
        for note in identity.notes:
            self.context.event("identity", note, Level.WARNING)
        return identity

    @cached_property
    def private_key(self) -> RSAPrivateKey:
        """The role's private key: signs in a sender, decrypts in a receiver. Raises UserError."""
        return rsa_private_key(self.own.load_private_key(), self.role)

    @cached_property
    def peer_key(self) -> RSAPublicKey:
        """The other end's public key. Raises UserError."""
        file = self.context.file(_PEER) or self.settings.peer_certificate
        assert file is not None
        certificate = load_certificates(file)[0]
        problem = validity_problem(certificate, datetime.now(UTC))
        if problem is not None:
            self.context.event("identity", f"The other end's certificate {file} {problem}.", Level.WARNING)
        return rsa_public_key(certificate, str(file))

    def tls(self) -> TlsSettings | None:
        """TLS settings of this role's connection; None for Test 1. Raises UserError."""
        parameters = self.settings.parameters
        if not parameters.tls:
            return None
        return TlsSettings(
            ca_file=self.context.file(_TRUST) or self.settings.trust,
            certificate_file=self.own.certificate_file,
            key_file=self.own.key_file,
            key_password=self.own.secret.reveal() if self.own.secret else None,
            server_name=self.settings.server_name or None,
            minimum_version=f"TLSv{parameters.tls_minimum}",
        )

    def endpoint(self, host: str, port: int) -> Endpoint:
        """The broker at `host` and `port`, with the user's password resolved. Raises UserError."""
        parameters = self.settings.parameters
        password = None
        if parameters.username:
            request = password_request(parameters, host, port)
            password = request.resolve(lambda _: self.context.secret(request.key)).reveal()
        return Endpoint(host, port, tls=self.tls(), username=parameters.username or None, password=password)
