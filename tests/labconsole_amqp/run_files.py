"""Certificates in files for runs through an external broker, good and bad ones; that broker, and a run's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labconsole.security.identities import IdentityFiles, load_identity
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.link.tls import TlsSettings
from tests.helpers.authorities import new_authority
from tests.helpers.identities import EXPIRED, foreign_authority, identity_files, write_identity
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving


def create_files(folder: Path) -> None:
    """Write certificates of two States, each with an RSA key, and of brokers with P-256 keys."""
    authority = new_authority("Test CA")
    write_identity(folder, "broker", authority, CertificateProfile.TLS_SERVER)
    write_identity(folder, "state-x", authority)
    write_identity(folder, "state-y", authority)
    write_identity(folder, "expired", authority, validity=EXPIRED)
    write_identity(folder, "unknown", foreign_authority())
    write_identity(folder, "expired-broker", authority, CertificateProfile.TLS_SERVER, EXPIRED)


class Files:
    """The certificates that `create_files` has written; `unknown` has one of a CA that is not trusted."""

    def __init__(self, folder: Path) -> None:
        self.broker = identity_files(folder, "broker")
        self.sender = identity_files(folder, "state-x")
        self.receiver = identity_files(folder, "state-y")
        self.expired = identity_files(folder, "expired")
        self.unknown = identity_files(folder, "unknown")
        self.expired_broker = identity_files(folder, "expired-broker")


def tls_settings(own: IdentityFiles, trust: IdentityFiles) -> TlsSettings:
    """TLS settings of an end that trusts the CA of `trust`."""
    return TlsSettings(load_identity(own, "the test's end"), trust.trust)


@contextmanager
def serving_files(own: IdentityFiles, files: Files, **limits: int) -> Iterator[RunningBroker]:
    """A broker with a TLS and a plain port; it accepts user `operator`, and certificates of the test CA."""
    settings = BrokerSettings(
        queues=("q",),
        tls_port=0,
        tls=tls_settings(own, files.broker),
        access=Access(anonymous=False, users={"operator": "right"}),
        limits=QueueLimits(**limits),
    )
    with serving(settings) as running:
        yield running


def through(serving: RunningBroker, files: Files, test: int, **more: Any) -> dict[str, Any]:
    """Parameters of a run through an external broker, all right so far."""
    settings: dict[str, Any] = {
        "broker": "external",
        "host": "127.0.0.1",
        "port": serving.ports.tls if test >= 2 else serving.ports.plain,
        "address": "q",
        "test": test,
        "count": 20,
        "trust": str(files.broker.trust),
    }
    return settings | identity("sender", files.sender) | identity("receiver", files.receiver) | more


def identity(role: str, own: IdentityFiles) -> dict[str, str]:
    """Parameters that name the files of a role's identity."""
    return {
        f"{role}_certificate": str(own.certificate),
        f"{role}_key": str(own.key),
        f"{role}_passphrase_file": str(own.passphrase_file),
    }


def login(folder: Path, password: str) -> dict[str, str]:
    """Parameters of a login as user `operator`; the password is `right`."""
    path = folder / "password"
    path.touch(0o600)
    path.write_text(password)
    return {"username": "operator", "password_file": str(path)}
