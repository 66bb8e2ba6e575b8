"""What a broker is to offer, the files of its TLS port, and what each kind of broker implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import ClassVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)

from labconsole.security.identities import LoadedIdentity
from labconsole.security.private_files import write_private
from processes import SetupError

HOST = "127.0.0.1"
LARGEST_MESSAGE = 512 * 1024 * 1024
"""Bytes; RabbitMQ accepts no higher limit."""


@dataclass(frozen=True)
class BrokerSettings:
    """What a broker offers on loopback. `clients` are common names of certificates; `folder` is private (0700).

    With `user` the port without TLS accepts that user alone (SASL PLAIN), without it any client (ANONYMOUS).
    """

    folder: Path
    port: int
    tls_port: int
    queues: tuple[str, ...]
    depth: int
    clients: tuple[str, ...]
    identity: LoadedIdentity
    trusted: tuple[x509.Certificate, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def data(self) -> Path:
        """Folder of the stored messages, which a stop leaves as it is."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """Folder of what the broker logs and prints."""
        return self.folder / "log"

    @property
    def configuration(self) -> Path:
        """Folder of the configuration, written again at each start."""
        return self.folder / "configuration"


@dataclass(frozen=True)
class Program:
    """A program to start; `environment` is all that it gets."""

    command: Sequence[str]
    environment: Mapping[str, str]


class RealBroker(ABC):
    """A kind of broker: how it is obtained, configured and started."""

    title: ClassVar[str]

    @abstractmethod
    def install(self, software: Path) -> None:
        """Obtain what is missing; archives are unpacked in `software`. Raises SetupError."""

    @abstractmethod
    def configure(self, settings: BrokerSettings, software: Path) -> list[Program]:
        """Write the configuration; returns the programs to start in this order, the broker last. Raises OSError."""

    @abstractmethod
    def version(self, settings: BrokerSettings) -> str:
        """The version of the broker that has just started."""

    def address(self, queue: str) -> str:
        """How the broker spells the address of a queue."""
        return queue


@dataclass(frozen=True)
class TlsFiles:
    """Key with certificate, and trusted authorities; `password` opens what is encrypted."""

    key: Path
    certificate: Path
    trust: Path
    password: str = field(repr=False)


def write_java_stores(settings: BrokerSettings) -> TlsFiles:
    """PKCS#12 stores for Java under a new password. Raises SetupError, UserError, OSError."""
    folder, password = settings.configuration, token_urlsafe(32)
    protection, identity = BestAvailableEncryption(password.encode()), settings.identity
    key = serialize_key_and_certificates(
        b"broker", _key(identity), identity.certificate, identity.chain or None, protection
    )
    trusted = [PKCS12Certificate(one, f"authority-{number}".encode()) for number, one in enumerate(settings.trusted)]
    files = TlsFiles(folder / "broker.p12", folder / "broker.p12", folder / "trust.p12", password)
    write_private(files.key, key)
    write_private(files.trust, serialize_java_truststore(trusted, protection))
    return files


def write_pem_files(settings: BrokerSettings) -> TlsFiles:
    """PEM files, the key encrypted under a new password. Raises SetupError, UserError, OSError."""
    folder, password = settings.configuration, token_urlsafe(32)
    files = TlsFiles(folder / "broker.key", folder / "broker.pem", folder / "trust.pem", password)
    key = _key(settings.identity)
    protection = BestAvailableEncryption(password.encode())
    write_private(files.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))
    for path, certificates in (
        (files.certificate, (settings.identity.certificate, *settings.identity.chain)),
        (files.trust, settings.trusted),
    ):
        write_private(path, b"".join(one.public_bytes(Encoding.PEM) for one in certificates))
    return files


def _key(identity: LoadedIdentity) -> RSAPrivateKey | EllipticCurvePrivateKey:
    """The broker's private key. Raises UserError, SetupError: it is not of a kind that all brokers know."""
    key = identity.private_key
    if not isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey):
        raise SetupError("the brokers know RSA and ECDSA keys only: name a certificate with such a key.")
    return key
