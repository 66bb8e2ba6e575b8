"""Two consoles, each with a State of its own that knows the other's: what handshakes over the network begin with."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.pki.records import State
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.exchange.remote_tls_proof import (
    PeerAddress,
    ProofProgress,
    RemoteProof,
    connect_to,
    listen_for,
)
from labconsole_certificates.exchange.tls_endpoint import CancelCheck, WaitCancelledError
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.record_lookup import state_named
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.trust.roots_and_pins import trust_root

CLIENT, SERVER = CertificateProfile.TLS_CLIENT, CertificateProfile.TLS_SERVER
NAMES = ("State A", "State B")
_TIMEOUT_S = 60.0


def make_consoles(directory: Path) -> None:
    """The databases `a` and `b` in `directory`: roots are trusted, and both ways of the CSR method are done."""
    new = NewKey()
    with PkiStore.open(directory / "a") as a, PkiStore.open(directory / "b") as b:
        stores = dict(zip(NAMES, (a, b), strict=True))
        roots = {}
        for name, store in stores.items():
            for each in NAMES:
                add_state(store, each, f"{each[-1].lower()}.example", local=each == name)
            own = state(store, name)
            roots[name] = create_root(store, own, new)
            host = f"broker.{own.domain}"
            received_csrs.approve(store, own_csrs.make_request(store, own, own, new, SERVER, names=[host]))
        for name, other in (NAMES, NAMES[::-1]):
            [root] = import_certificates(stores[name], roots[other].der, state(stores[name], other))
            trust_root(stores[name], state(stores[name], name), root, root.sha256)
        for name, other in (NAMES, NAMES[::-1]):
            _certify(stores[name], name, stores[other], other, new)


def _certify(client: PkiStore, name: str, server: PkiStore, other: str, new: NewKey) -> None:
    """The CSR method between two consoles: `other` certifies the client of `name`."""
    made = own_csrs.make_request(client, state(client, name), state(client, other), new, CLIENT)
    taken = received_csrs.import_request(server, state(server, name), state(server, other), made.der)
    issued = received_csrs.approve(server, taken).certificate.public_bytes(Encoding.PEM)
    own_csrs.import_certificate(client, issued, state(client, other))


def state(store: PkiStore, name: str) -> State:
    """A State as this console knows it."""
    return state_named(store.snapshot(), name)


class Waiting:
    """State B's console, or another one, that waits for one connection, in a thread."""

    def __init__(self, pool: ThreadPoolExecutor, directory: Path, here: str, there: str, wait_s: float = 60.0) -> None:
        said: Queue[str] = Queue()
        self._said = said
        self.cancelled = False

        def listen() -> RemoteProof:
            following = ProofProgress(said.put, lambda _left: self.cancelled)
            with PkiStore.open(directory) as store:
                return listen_for(store, here, there, "127.0.0.1", 0, wait_s, None, following)

        self.ended: Future[RemoteProof] = pool.submit(listen)
        sentence = said.get(timeout=_TIMEOUT_S)
        self.port = int(sentence.split(" waits at 127.0.0.1:")[1].split()[0])

    def said(self) -> str:
        """The next sentence, on a connection that failed."""
        return self._said.get(timeout=_TIMEOUT_S)

    def has_said_nothing(self) -> bool:
        """Whether there is no further sentence yet."""
        return self._said.empty()

    def refusal(self) -> str:
        """What it says of the connection that failed; it is waited no longer for another one."""
        sentence = self.said()
        self.cancelled = True
        with pytest.raises(WaitCancelledError):
            self.ended.result(timeout=_TIMEOUT_S)
        assert sentence.endswith(" Still waiting.")
        return sentence.removesuffix(" Still waiting.")


def connected(
    directory: Path,
    port: int,
    here: str,
    there: str,
    *,
    server_name: str = "",
    foreign: bool = False,
    watch: CancelCheck = lambda _left: False,
) -> RemoteProof:
    """Connect State `here` of the console in `directory`."""
    place = PeerAddress("127.0.0.1", port, server_name, foreign)
    with PkiStore.open(directory) as store:
        return connect_to(store, here, there, place, None, ProofProgress(lambda _sentence: None, watch))
