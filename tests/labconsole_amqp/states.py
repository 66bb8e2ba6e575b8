"""Two States for tests, with a certificate database: Alpha with two clients, and Beta with a client and a broker."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509

from labconsole.security.identities import IdentityFiles, load_identity
from labconsole.security.pki.identities import files_of
from labconsole.security.pki.keys import make_key, opened_key
from labconsole.security.pki.records import Origin, TrustKind
from labconsole.security.pki.snapshot import identity_named
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.link.tls import TlsSettings
from tests.labconsole.security.pki.pki_lab import VALID, OwnState, issue_for

NAMES = {"sender_identity": "alpha-client", "receiver_identity": "beta-client", "broker_identity": "beta-broker"}
"""Parameters of a run between both States."""
FOLLOWED: dict[str, Any] = {
    "test": 3,
    "payload": "small",
    "loop": "open",
    "rate": 25.0,
    "count": 75,
    "patience": 2.0,
    **NAMES,
}
"""A run of 3 s between them, during which the database changes."""


class StoredState(OwnState):
    """A State of a database that exists already, with the key of its root."""

    def __init__(self, store: PkiStore, name: str) -> None:
        snapshot = store.snapshot()
        self.store = store
        self.state = next(state for state in snapshot.states if state.name == name)
        self.root = next(
            record
            for record in snapshot.certificates
            if record.certificate.subject.rfc4514_string() == f"CN={name} Root CA"
        )
        assert self.root.key is not None
        with opened_key(store.directory, snapshot.key_by_id[self.root.key]) as key:
            self.issuer = Issuer(self.root.certificate, key)


def name_identity(
    store: PkiStore,
    holder: OwnState,
    issuer: OwnState,
    name: str,
    profile: CertificateProfile = CertificateProfile.STATE,
    type: KeyType = KeyType.RSA_2048,
    passphrase: str | None = None,
) -> None:
    """An identity of `holder` with a new key and a certificate of `issuer`'s CA; it replaces one with this name."""
    prepared_identity(store, holder, issuer, name, profile, type, passphrase)()


def prepared_identity(
    store: PkiStore,
    holder: OwnState,
    issuer: OwnState,
    name: str,
    profile: CertificateProfile = CertificateProfile.STATE,
    type: KeyType = KeyType.RSA_2048,
    passphrase: str | None = None,
) -> Callable[[], None]:
    """As `name_identity`, but the database changes when the result is called: a run may be over before a key exists."""
    source, secret = (None, None) if passphrase is None else (SecretSource(), Secret(passphrase))
    key = make_key(store.directory, type, source, secret)
    certificate = issue_for(issuer.issuer, key.private, name, profile)

    def change_database() -> None:
        with store.change() as change:
            change.add_key(holder.state.id, name, key.private.public_key(), key.place)
            change.name_identity(name, change.add_certificate(certificate, origin=Origin.ISSUED).id)

    return change_database


@dataclass
class States:
    """Alpha with two clients, Beta with a broker; each trusts the other's root."""

    store: PkiStore
    alpha: OwnState
    beta: OwnState
    beta_trusts_alpha: int = 0

    def named(self, state: OwnState, name: str, profile: CertificateProfile = CertificateProfile.STATE) -> None:
        """An identity of a State by its own CA with a new key.

        A broker's is P-256, which is opened 50 ms faster; an end's is RSA, which the source's envelopes need.
        """
        self.prepared(state, name, profile)()

    def prepared(
        self, state: OwnState, name: str, profile: CertificateProfile = CertificateProfile.STATE
    ) -> Callable[[], None]:
        """As `named`, but the database changes when the result is called."""
        type = KeyType.P_256 if profile is CertificateProfile.TLS_SERVER else KeyType.RSA_2048
        return prepared_identity(self.store, state, state, name, profile, type)

    def files(self, name: str) -> IdentityFiles:
        """The files of an identity as the database is now; revoked or not."""
        snapshot = self.store.snapshot()
        return files_of(identity_named(name, snapshot.identities), snapshot, self.store.directory)

    def tls(self, name: str) -> TlsSettings:
        """TLS settings of an end with this identity."""
        identity = load_identity(self.files(name), name, lambda _: None)
        return TlsSettings(identity, server_name="localhost")

    def crl(self, state: OwnState, *names: str) -> None:
        """The next CRL of a State's CA, in which the certificates of these identities are revoked."""
        snapshot = self.store.snapshot()
        now = datetime.now(UTC)
        serials = [
            snapshot.certificate_by_id[identity_named(name, snapshot.identities).certificate].certificate.serial_number
            for name in names
        ]
        revoked = [Revoked(serial, now, x509.ReasonFlags.key_compromise) for serial in serials]
        number = 1 + len(snapshot.crls)
        with self.store.change() as change:
            change.add_crl(issue_crl(state.issuer, revoked, number, VALID), state.root.id)


def create_states(directory: Path) -> None:
    """Fill the certificate database in `directory`: four RSA keys take a second, so tests copy it."""
    with PkiStore.open(directory) as store:
        states = States(store, OwnState(store, "Alpha"), OwnState(store, "Beta"))
        states.named(states.alpha, "alpha-client")
        states.named(states.alpha, "alpha-second")
        states.named(states.beta, "beta-client")
        states.named(states.beta, "beta-broker", CertificateProfile.TLS_SERVER)
        with store.change() as change:
            change.trust(states.alpha.state.id, states.beta.root.id, TrustKind.ROOT, "by the test")
            change.trust(states.beta.state.id, states.alpha.root.id, TrustKind.ROOT, "by the test")


@contextmanager
def copied_states(template: Path, directory: Path) -> Iterator[States]:
    """The States in a copy of the database that `create_states` has filled."""
    shutil.copytree(template, directory, dirs_exist_ok=True)
    with PkiStore.open(directory) as store:
        alpha, beta = StoredState(store, "Alpha"), StoredState(store, "Beta")
        (trust,) = (
            row for row in store.snapshot().trust if (row.state, row.certificate) == (beta.state.id, alpha.root.id)
        )
        yield States(store, alpha, beta, trust.id)
