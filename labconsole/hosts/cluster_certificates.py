"""The certificates of a cluster: a CA of its own in the certificate database, the console's certificate, enrolments.

The CA belongs to no State: anyone with a certificate of it can run code on every host of the cluster. The key of a host
is made for its enrolment, goes into that one file, and is not kept here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex, token_urlsafe

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from labconsole.errors import UserError
from labconsole.paths import pki_dir
from labconsole.security.identities import IdentityFiles, validity_problem
from labconsole.security.pki.identities import files_of
from labconsole.security.pki.keys import make_key, opened_key, own_passphrase
from labconsole.security.pki.own_certificates import add_with_key, creating_alone, state_called
from labconsole.security.pki.records import CertificateRecord, IdentityRecord, Origin
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue_lab_root, issue_with_extensions, lab_name
from labconsole.security.x509.key_types import KeyType, PublicKey, generate
from labconsole.security.x509.validity import Validity

OWNER = "Hosts"
"""What the CA and its certificates belong to in the certificate database, next to the States."""
CONSOLE = "hosts-console"
_KEY_TYPE = KeyType.P_256
_DAYS = 365
_EXTENSIONS = (
    (x509.BasicConstraints(ca=False, path_length=None), True),
    (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False),
)
"""Each member of a cluster connects to each, and is connected to: no State's certificate serves both."""


@dataclass(frozen=True)
class Enrolment:
    """What a host needs to join: a PEM file with its certificate, the cluster's CA, and its key under `passphrase`."""

    certificate: x509.Certificate
    pem: bytes
    passphrase: Secret


def console_files(directory: Path | None = None) -> IdentityFiles:
    """The console's own certificate in the cluster, made with the CA where there is none. Never prompts.

    `directory`: that of the certificate database, the user's own where none is named. Raises UserError.
    """
    directory = directory or pki_dir()
    with _changing(directory) as store:
        return files_of(*_console(store), directory)


def enrol(name: str, directory: Path | None = None) -> Enrolment:
    """Make key and certificate of the host `name`; an earlier one of that name stays valid. Raises UserError."""
    if name == CONSOLE:
        raise UserError(f"{CONSOLE} is the name of this console: enrol the host under another one.")
    directory = directory or pki_dir()
    with _changing(directory) as store:
        _console(store)
        snapshot = store.snapshot()
        root = _root(snapshot)
        assert root is not None
        key, passphrase = generate(_KEY_TYPE), Secret(token_urlsafe(24))
        certificate = _issue(store, snapshot, root, name, key.public_key())
        with store.change() as change:
            change.add_certificate(certificate, origin=Origin.ISSUED, state=state_called(change, OWNER).id)
    encrypted = BestAvailableEncryption(passphrase.reveal().encode())
    parts = (
        certificate.public_bytes(Encoding.PEM),
        root.certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encrypted),
    )
    return Enrolment(certificate, b"".join(parts), passphrase)


@contextmanager
def _changing(directory: Path) -> Iterator[PkiStore]:
    """The certificate database, while no other process makes certificates of the cluster. Raises UserError."""
    with creating_alone(directory, ".hosts.lock", "certificates of hosts"), PkiStore.open(directory) as store:
        yield store


def _console(store: PkiStore) -> tuple[IdentityRecord, Snapshot]:
    """The identity of the console, made where there is none that is valid, and the database with it."""
    snapshot = store.snapshot()
    root = _root(snapshot)
    for identity in snapshot.identities:
        record = snapshot.certificate_by_id[identity.certificate]
        if identity.name == CONSOLE and root in snapshot.chain_of(record) and _serves(record):
            return identity, snapshot
    if root is None:
        root = _make_root(store)
        snapshot = store.snapshot()
    key = make_key(store.directory, _KEY_TYPE, *own_passphrase(store.directory))
    certificate = _issue(store, snapshot, root, CONSOLE, key.private.public_key())
    with store.change() as change:
        label = f"{CONSOLE} {token_hex(4)}"
        record = add_with_key(change, state_called(change, OWNER), label, key, certificate, None)
        identity = change.name_identity(CONSOLE, record.id)
    return identity, store.snapshot()


def _root(snapshot: Snapshot) -> CertificateRecord | None:
    """The newest CA of the cluster that is valid."""
    owned = [state.id for state in snapshot.states if state.name == OWNER]
    return next((root for state in owned for root in snapshot.roots_of(state) if _serves(root)), None)


def _make_root(store: PkiStore) -> CertificateRecord:
    key, tag = make_key(store.directory, _KEY_TYPE, *own_passphrase(store.directory)), token_hex(4)
    certificate = issue_lab_root(key.private, f"Hosts CA {tag}")
    with store.change() as change:
        owner = state_called(change, OWNER)
        return add_with_key(change, owner, f"hosts-ca {tag}", key, certificate, CertificateProfile.ROOT)


def _issue(
    store: PkiStore, snapshot: Snapshot, root: CertificateRecord, name: str, public_key: PublicKey
) -> x509.Certificate:
    assert root.key is not None
    with opened_key(store.directory, snapshot.key_by_id[root.key]) as authority:
        issuer, validity = Issuer(root.certificate, authority), Validity.for_days(_DAYS)
        return issue_with_extensions(issuer, public_key, lab_name(name), validity, _EXTENSIONS)


def _serves(record: CertificateRecord) -> bool:
    """Whether a certificate is valid now and was not revoked."""
    return record.revoked is None and validity_problem(record.certificate, datetime.now(UTC)) is None
