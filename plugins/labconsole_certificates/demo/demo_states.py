"""The States of the demo: each with its console, and each phase of their exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import permutations
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.pki.keys import opened_key, own_passphrase
from labconsole.security.pki.records import CertificateRecord, KeyRecord, Origin, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.parsing import read_file
from labconsole_certificates.exchange.credentials import client_certificate, server_certificate
from labconsole_certificates.exchange.handshake import Handshake, perform_handshake
from labconsole_certificates.exchange.tls_context import TlsCredentials
from labconsole_certificates.exchange.tls_proof import (
    handshake_detail,
    handshake_report,
    server_name,
    tls_credentials,
)
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.export import Form, exported, note_handover
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import import_certificate, make_request
from labconsole_certificates.operations.received_csrs import approve, import_request
from labconsole_certificates.operations.record_lookup import state_named
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.revocation.crl_operations import publish_crl
from labconsole_certificates.trust.bundle_creation import make_bundle
from labconsole_certificates.trust.bundle_import import import_bundle
from labconsole_certificates.trust.matrix import HOLDS, Cell, CellStatus, matrix


@dataclass(frozen=True)
class DemoState:
    """A State with its console, its root, the key of its client certificates, and its folder of files."""

    store: PkiStore
    state: State
    root: CertificateRecord
    client_key: KeyRecord
    outbox: Path

    @property
    def name(self) -> str:
        """Name of the State."""
        return self.state.name

    @property
    def fingerprint(self) -> str:
        """Fingerprint of its root, in groups: what it reads out to the others over the telephone."""
        return grouped(self.root.sha256)

    def export_bundle(self) -> Path:
        """The file of its next trust bundle."""
        return self._write("trust-bundle.cms", make_bundle(self.store, self.name))

    def import_bundle_file(self, file: Path, fingerprint: str = "") -> None:
        """Import another State's bundle; the first one with the fingerprint that was read out."""
        import_bundle(self.store, self.name, read_file(file), fingerprint)

    def export_request(self, server: str) -> Path:
        """The file of a CSR for the CA of the State called `server`; the key never leaves."""
        to = state_named(self.store.snapshot(), server)
        request = make_request(self.store, self.state, to, self.client_key, CertificateProfile.TLS_CLIENT)
        note_handover(self.store, request, self.state, to)
        return self._write(f"csr-for-{_file_name(server)}.pem", request.csr.public_bytes(Encoding.PEM))

    def answer_request(self, client: str, file: Path) -> Path:
        """The file of certificate and chain for the CSR of the State called `client`, after inspection and approval."""
        asking = state_named(self.store.snapshot(), client)
        request = import_request(self.store, asking, self.state, read_file(file))
        certificate = approve(self.store, request, authority=self.root)
        chain = exported(self.store.snapshot(), certificate, Form.CHAIN)
        note_handover(self.store, certificate, self.state, asking)
        return self._write(f"certificate-for-{_file_name(client)}.pem", chain)

    def import_certificate_file(self, file: Path) -> None:
        """Import a certificate that another CA issued."""
        import_certificate(self.store, read_file(file))

    def server_end(self) -> TlsCredentials:
        """Its end of handshakes with all clients."""
        snapshot = self.store.snapshot()
        return self._end(snapshot, server_certificate(snapshot, self.state, self.state))

    def client_end(self, snapshot: Snapshot, server: str) -> TlsCredentials:
        """Its end of a handshake with the State called `server`; `snapshot` is of its own console."""
        return self._end(snapshot, client_certificate(snapshot, self.state, state_named(snapshot, server)))

    def note_handshakes(
        self, handshakes: Mapping[tuple[str, str], Handshake], servers: Mapping[str, TlsCredentials]
    ) -> None:
        """Record those that passed and have it at one end, by names of client and server; `servers` by their names."""
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

    def _end(self, snapshot: Snapshot, certificate: CertificateRecord | None) -> TlsCredentials:
        assert certificate is not None and certificate.key is not None
        record = snapshot.key_by_id[certificate.key]
        with opened_key(self.store.directory, record) as key:
            return tls_credentials(snapshot, self.state, certificate, key)

    def _write(self, name: str, data: bytes) -> Path:
        path = self.outbox / name
        path.write_bytes(data)
        return path


def found(directory: Path, store: PkiStore, name: str, type: KeyType) -> DemoState:
    """A new State called `name` in `store`: with root, CRL, server certificate and client key.

    Its folder of files is created in `directory`. The keyring is not used: a file keeps the console's own passphrase.
    """
    outbox = directory / "handed-out"
    outbox.mkdir()
    own_passphrase(store.directory, keyring=False)
    new = NewKey(type)
    domain = f"{_file_name(name)}.lab.test"
    state = add_state(store, name, domain)
    root = create_root(store, state, new)
    publish_crl(store, root)
    own = make_request(store, state, state, new, CertificateProfile.TLS_SERVER, names=[f"broker.{domain}"])
    approve(store, own, authority=root)
    # The key of its client certificates is created with the first request, which is for its own CA.
    first = make_request(store, state, state, new, CertificateProfile.TLS_CLIENT)
    approve(store, first, authority=root)
    snapshot = store.snapshot()
    request = next(each for each in snapshot.requests if each.id == first.id)
    assert request.key is not None
    return DemoState(store, state, root, snapshot.key_by_id[request.key], outbox)


def _file_name(name: str) -> str:
    return name.lower().replace(" ", "-")


def _ignored(*_what: object) -> None:
    """A no-op callback."""


@contextmanager
def founded(
    directory: Path, count: int, type: KeyType, done: Callable[[str], None] = _ignored
) -> Iterator[list[DemoState]]:
    """`count` States, each in a folder of its own in `directory`; their consoles are closed at the end.

    `done` is called with the name of each.
    """
    with ExitStack() as opened:
        members = []
        for number in range(count):
            name = state_name(number, count)
            folder = directory / name.lower().replace(" ", "-")
            folder.mkdir()
            store = opened.enter_context(PkiStore.open(folder / "pki"))
            members.append(found(folder, store, name, type))
            done(name)
        yield members


def state_name(number: int, count: int) -> str:
    """Name of a State: with a letter, or where these are too few, a number."""
    return f"State {chr(ord('A') + number)}" if count <= 26 else f"State {number + 1:02}"


def exchange_bundles(members: list[DemoState], done: Callable[[str, str], None] = _ignored) -> None:
    """Each State imports the bundle of each other one; the first is confirmed by its fingerprint.

    `done` is called with the names of importer and subject.
    """
    files = [member.export_bundle() for member in members]
    for importer in members:
        for subject, file in zip(members, files, strict=True):
            if subject is not importer:
                importer.import_bundle_file(file, subject.fingerprint)
                done(importer.name, subject.name)


def exchange_requests(members: list[DemoState], done: Callable[[str, str], None] = _ignored) -> None:
    """Each State requests a client's certificate from the CA of each other one, and imports it.

    `done` is called with the names of requester and issuer.
    """
    for client, server in permutations(members, 2):
        client.import_certificate_file(server.answer_request(client.name, client.export_request(server.name)))
        done(client.name, server.name)


def connect_all_pairs(
    members: list[DemoState], done: Callable[[str, str, Handshake], None] = _ignored
) -> dict[tuple[str, str], Handshake]:
    """`[client] -> tls-connect -> [server]` for every directed pair, by the names of both; recorded in both consoles.

    `done` is called with each.
    """
    servers = {member.name: member.server_end() for member in members}
    shaken = {}
    for client in members:
        snapshot = client.store.snapshot()
        for name, server in servers.items():
            if name != client.name:
                end = client.client_end(snapshot, name)
                handshake = shaken[client.name, name] = perform_handshake(end, server, server_name(server.certificate))
                done(client.name, name, handshake)
    for member in members:
        member.note_handshakes(shaken, servers)
    return shaken


def seen_matrix(member: DemoState, at: datetime) -> dict[tuple[str, str], Cell]:
    """The trust matrix in the console of one State, by names."""
    seen = matrix(member.store.snapshot(), at)
    names = {state.id: state.name for state in seen.states}
    return {(names[truster], names[trusted]): cell for (truster, trusted), cell in seen.cells.items()}


def faults(
    matrices: Sequence[Mapping[tuple[str, str], Cell]], handshakes: Mapping[tuple[str, str], Handshake]
) -> list[str]:
    """A sentence for each pair without trust or handshake, or on which the consoles disagree."""
    found = [handshake_report(client, server, each) for (client, server), each in handshakes.items() if not each.ok]
    for pair, cell in matrices[0].items():
        if cell.status not in HOLDS and cell.status is not CellStatus.OWN:
            found.append(cell.cause)
        elif any(other[pair].status is not cell.status for other in matrices):
            found.append(f"The consoles do not agree on whether {pair[0]} trusts {pair[1]}.")
    return found
