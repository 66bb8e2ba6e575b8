"""Handshakes between two consoles over the network: each notes what it saw, and no peer holds it up."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from OpenSSL import SSL, crypto

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.validity import Validity
from labconsole_certificates.exchange import remote_tls_proof, tls_endpoint
from labconsole_certificates.exchange.credentials import client_certificate, server_certificate
from labconsole_certificates.exchange.progress import exchange_of
from labconsole_certificates.exchange.tls_endpoint import WaitCancelledError
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import make_request
from labconsole_certificates.operations.received_csrs import approve
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.revocation.crl_operations import publish_crl, revoke
from tests.helpers.authorities import named, new_authority
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.exchange.two_consoles import CLIENT, SERVER, Waiting, connected, state

A, B = "State A", "State B"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for the other ends; none is left, and neither is a socket."""
    threads, sockets = threading.active_count(), _sockets()
    with ThreadPoolExecutor(2) as opened:
        yield opened
    assert threading.active_count() == threads
    assert _sockets() == sockets


def _sockets() -> int:
    """How many sockets this process has open."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += str(each.readlink()).startswith("socket:")
    return found


def _own_server(directory: Path, name: str) -> CertificateRecord:
    with PkiStore.open(directory) as store:
        own = state(store, name)
        found = server_certificate(store.snapshot(), own, own)
    assert found is not None
    return found


def _proofs(directory: Path) -> int:
    with PkiStore.open(directory) as store:
        return len(store.snapshot().proofs)


def test_two_consoles_prove_both_ways_and_each_of_them_knows_it(consoles: Path, pool: ThreadPoolExecutor) -> None:
    a, b = consoles / "a", consoles / "b"
    for client, here, server, there in ((a, A, b, B), (b, B, a, A)):
        waiting = Waiting(pool, server, there, here)
        seen = connected(client, waiting.port, here, there, server_name=f"broker.{there[-1].lower()}.example")
        answered = waiting.ended.result()
        for proof in (seen, answered):
            assert proof.ok, proof.sentence()
            assert proof.sentence().startswith(f"[{here}] -> tls-connect -> [{there}] passed with 127.0.0.1:")
            assert "TLSv1.3" in proof.sentence()
        assert f"Accepts {there}: " in seen.sentence() and seen.sentence().endswith(f"{there} accepts this end.")
        assert f"Accepts {here}: " in answered.sentence() and answered.sentence().endswith(f"{here} accepts this end.")
    for directory, names in ((a, (A, B)), (b, (B, A))):
        with PkiStore.open(directory) as store:
            exchange = exchange_of(store.snapshot(), *names)
            assert exchange.there.next is None and exchange.back.next is None
            assert any(each.what == "proved by handshake" for each in store.snapshot().audit)


@pytest.mark.parametrize("published", [True, False])
def test_a_revoked_client_is_refused_and_neither_console_calls_it_proven(
    consoles: Path, pool: ThreadPoolExecutor, published: bool
) -> None:
    with PkiStore.open(consoles / "b") as store:
        record = client_certificate(store.snapshot(), state(store, A), state(store, B))
        assert record is not None
        revoke(store, record)
        if published:
            publish_crl(store, store.snapshot().roots_of(state(store, B).id)[0])
    waiting = Waiting(pool, consoles / "b", B, A)

    seen = connected(consoles / "a", waiting.port, A, B, server_name="broker.b.example")
    answered = waiting.refusal()

    assert not seen.ok
    if published:  # else it is found after the handshake
        assert "State B broke off: " in seen.sentence() and "alert certificate revoked." in seen.sentence()
    assert "Refuses State A: " in answered and "revoked" in answered
    assert _proofs(consoles / "a") == _proofs(consoles / "b") == 0


def test_another_name_than_the_wanted_one_is_refused(consoles: Path, pool: ThreadPoolExecutor) -> None:
    waiting = Waiting(pool, consoles / "b", B, A)

    seen = connected(consoles / "a", waiting.port, A, B, server_name="broker.c.example")

    assert "is for broker.b.example, and not for broker.c.example" in seen.sentence()
    assert "State A refuses this end." in waiting.refusal()
    assert _proofs(consoles / "a") == _proofs(consoles / "b") == 0


def test_the_name_is_that_of_the_known_certificate_else_the_host(consoles: Path, pool: ThreadPoolExecutor) -> None:
    waiting = Waiting(pool, consoles / "b", B, A)
    assert "and not for 127.0.0.1" in connected(consoles / "a", waiting.port, A, B).sentence()
    waiting.refusal()
    waiting = Waiting(pool, consoles / "b", B, A)
    assert connected(consoles / "a", waiting.port, A, B, server_name="broker.b.example").ok
    waiting.ended.result()
    waiting = Waiting(pool, consoles / "b", B, A)
    assert connected(consoles / "a", waiting.port, A, B).ok
    waiting.ended.result()


def test_an_unknown_ca_is_refused(consoles: Path, pool: ThreadPoolExecutor) -> None:
    """B has a new root that A does not know, and shows a server below it."""
    with PkiStore.open(consoles / "b") as store:
        own = state(store, B)
        root = create_root(store, own, NewKey(), subject="CN=Stranger")
        request = make_request(store, own, own, NewKey(), SERVER, names=["broker.b.example"])
        approve(store, request, authority=root)
    waiting = Waiting(pool, consoles / "b", B, A)

    seen = connected(consoles / "a", waiting.port, A, B, server_name="broker.b.example")

    assert "Refuses State B: " in seen.sentence() and "not trusted here" in seen.sentence()
    assert "State A broke off: tlsv1 alert unknown ca." in waiting.refusal()


def test_the_certificate_of_a_third_state_proves_nothing_of_the_other(consoles: Path, pool: ThreadPoolExecutor) -> None:
    """B's CA certified C's client, too: a peer that presents it is C, whichever State is expected."""
    with PkiStore.open(consoles / "b") as store:
        add_state(store, "State C", local=False)
    waiting = Waiting(pool, consoles / "b", B, "State C")

    seen = connected(consoles / "a", waiting.port, A, B, server_name="broker.b.example")

    said = waiting.refusal()
    assert "is trusted, but it is a certificate of State A, not of State C." in said
    assert seen.sentence().endswith("State B refuses this end.")
    assert _proofs(consoles / "a") == _proofs(consoles / "b") == 0


def test_an_end_without_a_certificate_names_the_missing_step(consoles: Path) -> None:
    with PkiStore.open(consoles / "a") as store:
        add_state(store, "State C", local=False)
        add_state(store, "State D", "d.example")
        for here, connects, needed in (
            (A, True, "State C yet: State A creates a request with the profile TLS client"),
            ("State D", False, "State D yet: Create or import the root of State D"),
        ):
            with pytest.raises(UserError, match=needed):
                remote_tls_proof.own_certificate(store.snapshot(), here, "State C", connects=connects)


def test_unreachable_peer_and_port_in_use_are_reported(consoles: Path, pool: ThreadPoolExecutor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            PkiStore.open(consoles / "b") as store,
            pytest.raises(UserError, match=f"127.0.0.1:{port} cannot be had"),
        ):
            remote_tls_proof.listen_for(
                store, B, A, "127.0.0.1", port, 1, None, remote_tls_proof.ProofProgress(print, lambda _left: False)
            )
    with pytest.raises(UserError, match=r"cannot be reached \(Connection refused\)"):
        connected(consoles / "a", port, A, B)
    waiting = Waiting(pool, consoles / "b", B, A, wait_s=0.2)
    with pytest.raises(UserError, match=r"No peer connected within 0.2 s"):
        waiting.ended.result()


@pytest.mark.parametrize(
    ("sends", "said"),
    [
        (b"", "State B closed the connection."),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "State B was not understood: "),
        (b"\xff" * (1 << 20), "State B was not understood: "),
    ],
    ids=["nothing", "other protocol", "much rubbish"],
)
def test_a_peer_that_speaks_no_tls_ends_with_one_sentence(
    consoles: Path, pool: ThreadPoolExecutor, sends: bytes, said: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak() -> None:
            with server.accept()[0] as via, suppress(OSError):
                via.sendall(sends)
                via.shutdown(socket.SHUT_WR)
                while via.recv(65_536):
                    """What is not read would make it a reset."""

        spoken = pool.submit(speak)
        sentence = connected(consoles / "a", server.getsockname()[1], A, B).sentence()
        spoken.result()
    assert said in sentence
    waiting = Waiting(pool, consoles / "b", B, A)
    with socket.create_connection(("127.0.0.1", waiting.port)) as via, suppress(OSError):
        via.sendall(sends)
    assert said.replace(B, A) in waiting.refusal()


def test_a_silent_peer_and_a_slow_one_end_in_time(
    consoles: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_tls_proof, "HANDSHAKE_S", 0.15)
    left_s: list[float] = []

    def watch(left: float) -> bool:
        left_s.append(left)
        return False

    with socket.create_server(("127.0.0.1", 0)) as server:
        sentence = connected(consoles / "a", server.getsockname()[1], A, B, watch=watch).sentence()
    assert left_s[0] <= 0.15 and left_s == sorted(left_s, reverse=True) and left_s.count(0) == 1
    assert "State B did not answer in time." in sentence
    waiting = Waiting(pool, consoles / "b", B, A)
    with socket.create_connection(("127.0.0.1", waiting.port)) as via, suppress(OSError):
        via.sendall(b"\x16\x03\x01\x40\x00")
        while waiting.has_said_nothing():
            via.sendall(b"\x00")
            time.sleep(0.05)
    assert "State A did not answer in time." in waiting.refusal()


def test_failed_and_foreign_connections_do_not_stop_the_listener(consoles: Path, pool: ThreadPoolExecutor) -> None:
    """A port scan, another protocol and a refused peer: the right one is proven all the same, and its time is kept."""
    waiting = Waiting(pool, consoles / "b", B, A, wait_s=30)
    address = ("127.0.0.1", waiting.port)
    with socket.create_connection(address) as via:
        via.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert "was not understood" in waiting.said()
    socket.create_connection(address).close()
    assert "closed the connection" in waiting.said()
    assert not connected(consoles / "a", waiting.port, A, B, server_name="broker.c.example").ok
    assert "State A refuses this end. Still waiting." in waiting.said()
    assert connected(consoles / "a", waiting.port, A, B, server_name="broker.b.example").ok
    assert waiting.ended.result().ok


def test_the_last_failure_is_the_result_when_the_time_is_over(
    consoles: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is set forward once the failure is there."""
    past_ns = 0
    monkeypatch.setattr(tls_endpoint, "now_ns", lambda: now_ns() + past_ns)
    waiting = Waiting(pool, consoles / "b", B, A, wait_s=60)
    with socket.create_connection(("127.0.0.1", waiting.port)) as via:
        via.sendall(b"GET / HTTP/1.1\r\n\r\n")
        waiting.said()
    past_ns = 60_000_000_000
    proof = waiting.ended.result(timeout=120)
    assert not proof.ok and "was not understood" in proof.sentence()


def test_both_ends_can_be_cancelled(consoles: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """They look for it ten times a second."""
    waits_s: list[float] = []

    def recorded(*waiting: Any) -> Any:
        waits_s.append(waiting[-1])
        return select.select(*waiting)

    monkeypatch.setattr(tls_endpoint, "select", SimpleNamespace(select=recorded))
    waiting = Waiting(pool, consoles / "b", B, A, wait_s=60)
    waiting.cancelled = True
    with pytest.raises(WaitCancelledError, match="Cancelled: nothing was proven"):
        waiting.ended.result(timeout=50)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(WaitCancelledError):
        connected(consoles / "a", server.getsockname()[1], A, B, watch=lambda left: left < 9.9)
    assert 0 < max(waits_s) <= 0.1


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        (("odd",), "What State A shows"),
        (("leaf", "between"), "Refuses State A: its path of Between is not trusted here (verification error 20"),
    ],
    ids=["a version that there is not", "an unknown CA's intermediate"],
)
@pytest.mark.filterwarnings("ignore:Passing pyOpenSSL X509:DeprecationWarning")
def test_a_server_reports_why_it_refuses_a_client(
    consoles: Path, pool: ThreadPoolExecutor, chain: tuple[str, ...], said: str
) -> None:
    outsider = new_authority("Stranger")
    middle = key_of(KeyType.P_384)
    profile = CertificateProfile.INTERMEDIATE
    between = issue(outsider, middle.public_key(), named("CN=Between"), (), profile, Validity.for_days(1))
    key = generate(KeyType.P_256)
    leaf = issue(Issuer(between, middle), key.public_key(), named("CN=a"), (), CLIENT, Validity.for_days(1))
    ders = {"leaf": leaf.public_bytes(Encoding.DER), "between": between.public_bytes(Encoding.DER)}
    ders["odd"] = ders["leaf"].replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07", 1)
    own, *above = (crypto.load_certificate(crypto.FILETYPE_ASN1, ders[each]) for each in chain)
    context = SSL.Context(SSL.TLS_METHOD)
    context.use_certificate(own)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    context.use_privatekey(key)
    for each in above:
        context.add_extra_chain_cert(each)
    waiting = Waiting(pool, consoles / "b", B, A)

    with socket.create_connection(("127.0.0.1", waiting.port)) as via, suppress(SSL.Error):
        connection = SSL.Connection(context, via)
        connection.set_connect_state()
        connection.do_handshake()
        connection.recv(1)

    assert said in waiting.refusal()


def _reset(via: ssl.SSLSocket) -> None:
    """End it at once: what was sent, such as an alert, may be lost."""
    via.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    via.close()


class Broker:
    """State B's broker: a TLS server other than a console, which does `then` with the one connection that it takes."""

    def __init__(self, console: Path, directory: Path, pool: ThreadPoolExecutor) -> None:
        with PkiStore.open(console) as store:
            snapshot = store.snapshot()
            own = state(store, B)
            record = server_certificate(snapshot, own, own)
            assert record is not None and record.key is not None
            with opened_key(store.directory, snapshot.key_by_id[record.key]) as key:
                pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            [root] = snapshot.roots_of(own.id)
        (directory / "broker.pem").write_bytes(pem + record.certificate.public_bytes(Encoding.PEM))
        (directory / "root.pem").write_bytes(root.certificate.public_bytes(Encoding.PEM))
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=directory / "root.pem")
        self.context.load_cert_chain(directory / "broker.pem")
        self.context.verify_mode = ssl.CERT_REQUIRED
        self._pool = pool

    def meets(self, console: Path, then: Callable[[ssl.SSLSocket], object]) -> str:
        """What State A says of it."""
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve() -> None:
                with (
                    server.accept()[0] as plain,
                    suppress(OSError),
                    self.context.wrap_socket(plain, server_side=True) as via,
                ):
                    then(via)

            served = self._pool.submit(serve)
            port = server.getsockname()[1]
            sentence = connected(console, port, A, B, server_name="broker.b.example", foreign=True).sentence()
            served.result()
        return sentence


@pytest.fixture
def broker(consoles: Path, tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> Broker:
    monkeypatch.setattr(remote_tls_proof, "QUIET_S", 60.0)
    return Broker(consoles / "b", tmp_path, pool)


def test_a_broker_that_refuses_nothing_counts_and_that_is_said(
    consoles: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = consoles / "a"
    closing = broker.meets(a, lambda via: via.unwrap())
    assert closing.endswith("within 60 s, and closed the connection.") and " passed with " in closing
    monkeypatch.setattr(remote_tls_proof, "QUIET_S", 0.1)
    silent = broker.meets(a, lambda via: via.recv(1))
    assert " passed with " in silent
    assert silent.endswith("State B accepted nothing and refused nothing within 0.1 s.")
    assert _proofs(a) == 2


def test_a_broker_that_refuses_or_asks_nothing_or_floods_does_not_count(consoles: Path, broker: Broker) -> None:
    a = consoles / "a"
    assert broker.meets(a, _reset).endswith("State B reset the connection.")
    assert "State B sends without end." in broker.meets(a, lambda via: via.sendall(bytes(1 << 18)))
    broker.context.verify_mode = ssl.CERT_NONE
    assert "State B asked for no certificate of this end" in broker.meets(a, lambda via: via.recv(1))
    broker.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    broker.context.load_cert_chain(consoles.parent / "broker.pem")
    broker.context.verify_mode = ssl.CERT_REQUIRED
    assert "State B broke off: tlsv1 alert unknown ca." in broker.meets(a, lambda via: via.recv(1))
    assert _proofs(a) == 0


def test_a_broker_is_not_mistaken_for_a_console(consoles: Path, broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def serve() -> None:
            with server.accept()[0] as plain, broker.context.wrap_socket(plain, server_side=True) as via:
                via.sendall(b"AMQP")
                via.recv(1)

        served = pool.submit(serve)
        sentence = connected(consoles / "a", server.getsockname()[1], A, B, server_name="broker.b.example").sentence()
        served.result()
    assert "it seems to be no console that waits" in sentence
    assert _proofs(consoles / "a") == 0
