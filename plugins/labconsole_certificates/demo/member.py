"""A State of the demo: a console of its own, which hands files to the others and takes theirs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.records import CertificateRecord, KeyRecord, Origin, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.private_files import write_private
from labconsole.security.secrets import SecretSource
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import groups
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.parsing import read_file
from labconsole_certificates.exchange.credentials import client_certificate, server_certificate
from labconsole_certificates.exchange.handshake import Handshake, TlsEnd
from labconsole_certificates.exchange.tls_proof import End, handshake_detail, tls_end
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.export import Form, exported, handed_over
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import make_request, take_in_certificate
from labconsole_certificates.operations.received_csrs import approve, take_in_request
from labconsole_certificates.operations.record_lookup import state_named
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.revocation.crls import publish_crl
from labconsole_certificates.trust.bundle_creation import make_bundle
from labconsole_certificates.trust.bundle_import import take_in


@dataclass(frozen=True)
class Member:
    """A State with its console, its root, the key with which it connects to others, and its folder of files."""

    store: PkiStore
    state: State
    root: CertificateRecord
    client_key: KeyRecord
    outbox: Path

    @property
    def name(self) -> str:
        """Name of its State."""
        return self.state.name

    @property
    def fingerprint(self) -> str:
        """Of its root, in groups: what it reads to the others over the telephone."""
        return groups(self.root.sha256)

    def give_bundle(self) -> Path:
        """Make its next trust bundle, as a file."""
        return self._write("trust-bundle.cms", make_bundle(self.store, self.name))

    def take_bundle(self, file: Path, fingerprint: str = "") -> None:
        """Take another State's bundle in; the first one with the fingerprint that was read out."""
        take_in(self.store, self.name, read_file(file), fingerprint)

    def give_request(self, server: str) -> Path:
        """Make a CSR for the CA of the State called `server`, as a file; the key never leaves."""
        to = state_named(self.store.snapshot(), server)
        request = make_request(self.store, self.state, to, self.client_key, CertificateProfile.TLS_CLIENT)
        handed_over(self.store, request, self.state, to)
        return self._write(f"csr-for-{_file_name(server)}.pem", request.csr.public_bytes(Encoding.PEM))

    def answer_request(self, client: str, file: Path) -> Path:
        """Look at the CSR of the State called `client` and approve it: certificate and chain, as a file."""
        asking = state_named(self.store.snapshot(), client)
        request = take_in_request(self.store, asking, self.state, read_file(file))
        certificate = approve(self.store, request, authority=self.root)
        chain = exported(self.store.snapshot(), certificate, Form.CHAIN)
        handed_over(self.store, certificate, self.state, asking)
        return self._write(f"certificate-for-{_file_name(client)}.pem", chain)

    def take_certificate(self, file: Path) -> None:
        """Take in what another CA issued."""
        take_in_certificate(self.store, read_file(file))

    def server_end(self) -> TlsEnd:
        """Its end of handshakes with all who connect to it."""
        snapshot = self.store.snapshot()
        return self._end(snapshot, server_certificate(snapshot, self.state, self.state))

    def client_end(self, snapshot: Snapshot, server: str) -> TlsEnd:
        """Its end of a handshake with the State called `server`; `snapshot` is of its own console."""
        return self._end(snapshot, client_certificate(snapshot, self.state, state_named(snapshot, server)))

    def note_handshakes(self, handshakes: Mapping[tuple[str, str], Handshake], servers: Mapping[str, TlsEnd]) -> None:
        """Note those that passed with it at one end, by the names of client and server; `servers` by their names."""
        with self.store.change() as change:
            snapshot = change.snapshot()
            for (client, server), handshake in handshakes.items():
                if handshake.ok and self.name in (client, server):
                    connecting, answering = state_named(snapshot, client), state_named(snapshot, server)
                    shown = change.add_certificate(
                        servers[server].certificate,
                        state=answering.id,
                        profile=CertificateProfile.TLS_SERVER,
                        origin=Origin.IMPORTED,
                    )
                    own = client_certificate(snapshot, connecting, answering)
                    assert own is not None
                    change.add_proof(connecting.id, answering.id, own.id, shown.id, handshake_detail(handshake))

    def _end(self, snapshot: Snapshot, certificate: CertificateRecord | None) -> TlsEnd:
        assert certificate is not None and certificate.key is not None
        record = snapshot.key_by_id[certificate.key]
        with opened_key(self.store.directory, record) as key:
            return tls_end(snapshot, End(self.state, certificate, record), key)

    def _write(self, name: str, data: bytes) -> Path:
        path = self.outbox / name
        path.write_bytes(data)
        return path


def found(directory: Path, store: PkiStore, name: str, type: KeyType) -> Member:
    """Make the State called `name` in `store`: its root, CRL, server's certificate and client key.

    Its folder of files is made in `directory`. No keyring is asked: keys are under a passphrase file beside them.
    """
    outbox = directory / "handed-out"
    outbox.mkdir()
    passphrase = directory / "passphrase"
    write_private(passphrase, f"{secrets.token_urlsafe(24)}\n".encode())
    new = NewKey(type, passphrase=SecretSource(passphrase_file=passphrase.absolute()))
    domain = f"{_file_name(name)}.lab.test"
    state = add_state(store, name, domain)
    root = create_root(store, state, new)
    publish_crl(store, root)
    own = make_request(store, state, state, new, CertificateProfile.TLS_SERVER, names=[f"broker.{domain}"])
    approve(store, own, authority=root)
    # Its client's key is made with the first request: that one is for its own CA.
    first = make_request(store, state, state, new, CertificateProfile.TLS_CLIENT)
    approve(store, first, authority=root)
    snapshot = store.snapshot()
    request = next(each for each in snapshot.requests if each.id == first.id)
    assert request.key is not None
    return Member(store, state, root, snapshot.key_by_id[request.key], outbox)


def _file_name(name: str) -> str:
    return name.lower().replace(" ", "-")
