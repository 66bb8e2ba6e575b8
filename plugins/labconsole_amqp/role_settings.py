"""What a role of the AMQP trial is told (plain JSON), and what it makes of it: endpoint, identities, keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from pydantic import BaseModel, ConfigDict

from labconsole.security.identities import Identity, IdentityFiles, load_certificates, load_identity
from labconsole.security.secrets import SecretSource
from labconsole_amqp.connection import Endpoint
from labconsole_amqp.fastlink_tls import TlsSettings
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.sealing import rsa_private_key, rsa_public_key


class RoleSettings(BaseModel):
    """Settings of one sender, receiver or broker. They name files and keyring entries, and hold no secret."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parameters: AmqpParameters
    index: int = 0
    host: str = ""
    port: int = 0
    own: IdentityFiles | None = None
    """The role's own identity."""
    trust: Path | None = None
    """PEM file with the authority that peers' certificates come from."""
    peer_certificate: Path | None = None
    """Certificate of the other end: the receiver's to encrypt for, the sender's to verify with."""
    check_queue: bool = False
    """Whether this role looks first if the queue is empty."""

    def to_json(self) -> dict[str, Any]:
        """The plain form for `RoleSpec.settings`."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class RoleIdentity:
    """The loaded identity of a role, and the other end's certificate."""

    settings: RoleSettings
    role: str

    @cached_property
    def own(self) -> Identity:
        """The role's own identity, loaded and checked. Raises TrialError."""
        assert self.settings.own is not None
        return load_identity(self.settings.own, self.role)

    @cached_property
    def private_key(self) -> RSAPrivateKey:
        """The role's private key: signs in a sender, decrypts in a receiver. Raises TrialError."""
        return rsa_private_key(self.own.load_private_key(), self.role)

    @cached_property
    def peer_key(self) -> RSAPublicKey:
        """The other end's public key. Raises TrialError."""
        assert self.settings.peer_certificate is not None
        certificate = load_certificates(self.settings.peer_certificate)[0]
        return rsa_public_key(certificate, str(self.settings.peer_certificate))

    def tls(self) -> TlsSettings | None:
        """TLS settings of this role's connection; None for Test 1. Raises TrialError."""
        parameters = self.settings.parameters
        if not parameters.tls:
            return None
        return TlsSettings(
            ca_file=self.settings.trust,
            certificate_file=self.own.certificate_file,
            key_file=self.own.key_file,
            key_password=self.own.secret.reveal() if self.own.secret else None,
            server_name=parameters.server_name or None,
            minimum_version=f"TLSv{parameters.tls_minimum}",
        )

    def endpoint(self) -> Endpoint:
        """Where the role connects to, with its password resolved. Raises TrialError."""
        parameters = self.settings.parameters
        password = None
        if parameters.username:
            source = SecretSource(
                keyring_entry=f"{parameters.username}@{self.settings.host}:{self.settings.port}",
                passphrase_file=Path(parameters.password_file) if parameters.password_file else None,
            )
            password = source.resolve(f"user {parameters.username} at {self.settings.host}").reveal()
        return Endpoint(
            self.settings.host,
            self.settings.port,
            tls=self.tls(),
            username=parameters.username or None,
            password=password,
        )
