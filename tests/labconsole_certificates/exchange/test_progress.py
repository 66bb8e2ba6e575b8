"""The exchange of two States: each step becomes done when it is done, and both directions are proven by handshakes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import UserError
from labconsole.security.pki.records import CertificateRecord, Item, RequestRecord, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped
from labconsole_certificates.exchange.progress import Direction, ExchangeStepKind, exchange_of
from labconsole_certificates.exchange.tls_proof import prove
from labconsole_certificates.operations.authorities import create_intermediate, create_root
from labconsole_certificates.operations.export import note_handover
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import import_certificate, make_request
from labconsole_certificates.operations.received_csrs import approve, import_request, refuse
from labconsole_certificates.operations.record_lookup import state_named
from labconsole_certificates.operations.self_signed import make_self_signed
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.revocation.crl_operations import import_crl, publish_crl, revoke
from labconsole_certificates.trust.bundle_creation import make_bundle
from labconsole_certificates.trust.bundle_import import import_bundle
from labconsole_certificates.trust.roots_and_pins import pin, trust_root

_CLIENT, _SERVER = CertificateProfile.TLS_CLIENT, CertificateProfile.TLS_SERVER


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PkiStore]:
    """A console in which both State A and State B are at home, without anything yet."""
    with PkiStore.open(tmp_path / "pki") as store:
        _add_states(store)
        yield store


def _add_states(store: PkiStore) -> None:
    for name in ("A", "B"):
        add_state(store, name, f"{name.lower()}.example")


def _state(store: PkiStore, name: str) -> State:
    return state_named(store.snapshot(), name)


def _there(store: PkiStore, client: str = "A", server: str = "B") -> Direction:
    return exchange_of(store.snapshot(), client, server).there


def _next(store: PkiStore, client: str = "A", server: str = "B") -> ExchangeStepKind | None:
    step = _there(store, client, server).next
    return None if step is None else step.kind


def _server_certificate(store: PkiStore, name: str) -> CertificateRecord:
    state = _state(store, name)
    return approve(store, make_request(store, state, state, NewKey(), _SERVER, names=[f"broker.{state.domain}"]))


def _ask(store: PkiStore, client: str, server: str) -> RequestRecord:
    return make_request(store, _state(store, client), _state(store, server), NewKey(), _CLIENT)


def _pem(thing: RequestRecord | CertificateRecord) -> bytes:
    held = thing.csr if isinstance(thing, RequestRecord) else thing.certificate
    return held.public_bytes(Encoding.PEM)


def _complete(store: PkiStore, client: str, server: str) -> CertificateRecord:
    """The whole CSR method in one direction, roots being there."""
    request = import_request(store, _state(store, client), _state(store, server), _pem(_ask(store, client, server)))
    return import_certificate(store, _pem(approve(store, request)))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which both have a root and a server, and trust each other: to be copied."""
    directory = tmp_path_factory.mktemp("filled") / "pki"
    with PkiStore.open(directory) as store:
        _add_states(store)
        roots = {name: create_root(store, _state(store, name), NewKey()) for name in ("A", "B")}
        for name, other in (("A", "B"), ("B", "A")):
            _server_certificate(store, name)
            trust_root(store, _state(store, name), roots[other], grouped(roots[other].sha256))
    return directory


@pytest.fixture
def trusting(filled: Path, tmp_path: Path) -> Iterator[PkiStore]:
    """Both have a root and a server, and trust each other."""
    with PkiStore.open(shutil.copytree(filled, tmp_path / "trusting")) as store:
        yield store


def test_each_step_is_done_when_it_is_done(store: PkiStore) -> None:
    assert _next(store) is ExchangeStepKind.MAKE_ROOT
    root = create_root(store, _state(store, "B"), NewKey())
    assert _next(store) is ExchangeStepKind.TRUST_ROOT
    import_bundle(store, "A", make_bundle(store, "B"), grouped(root.sha256))
    assert _next(store) is ExchangeStepKind.MAKE_SERVER
    _server_certificate(store, "B")
    assert _next(store) is ExchangeStepKind.MAKE_REQUEST
    request = _ask(store, "A", "B")
    assert _next(store) is ExchangeStepKind.GIVE_REQUEST
    received = import_request(store, _state(store, "A"), _state(store, "B"), _pem(request))
    step = _there(store).next
    assert step is not None
    assert (step.kind, step.subject) == (ExchangeStepKind.APPROVE, request.id)
    certificate = approve(store, received)
    assert _next(store) is ExchangeStepKind.GIVE_CERTIFICATE
    import_certificate(store, _pem(certificate))
    assert _next(store) is ExchangeStepKind.PROVE
    for name, other in (("A", "B"), ("B", "A")):
        steps = {step.kind: step for step in _there(store, name, other).steps}
        assert [step.missing == "" for step in steps.values()] == [step.done for step in steps.values()]
    given = next(step for step in _there(store).steps if step.kind is ExchangeStepKind.GIVE_REQUEST)
    assert (given.item, given.sender, given.receiver) == (Item.CSR, _state(store, "A").id, _state(store, "B").id)
    assert given.at is not None


def test_a_refused_csr_is_created_again(trusting: PkiStore) -> None:
    refuse(trusting, _ask(trusting, "A", "B"), "wrong name")
    step = _there(trusting).next
    assert step is not None and step.kind is ExchangeStepKind.MAKE_REQUEST
    assert "B refused the last one (wrong name)" in step.missing
    _ask(trusting, "A", "B")
    assert _next(trusting) is ExchangeStepKind.GIVE_REQUEST


def test_a_certificate_of_the_own_ca_does_not_count_as_issued_by_the_peer(trusting: PkiStore) -> None:
    approve(trusting, _ask(trusting, "A", "A"))
    assert _next(trusting) is ExchangeStepKind.MAKE_REQUEST


def test_a_ca_below_the_root_of_another_state_issues_for_both(trusting: PkiStore) -> None:
    """State A certifies a CA of State B, limited to its domain: that serves towards A, whose root is above it."""
    a, b = _state(trusting, "A"), _state(trusting, "B")
    [root] = trusting.snapshot().roots_of(a.id)
    create_intermediate(trusting, root, b, NewKey(), name_constraints=["b.example", "a.example"])
    by_root_of_a = _server_certificate(trusting, "B")
    assert trusting.snapshot().chain_of(by_root_of_a)[-1] == root
    request = make_request(trusting, a, b, NewKey(), _CLIENT, names=["client.a.example"])
    import_certificate(trusting, _pem(approve(trusting, import_request(trusting, a, b, _pem(request)))))
    assert _next(trusting) is ExchangeStepKind.PROVE
    _complete(trusting, "B", "A")
    _server_certificate(trusting, "A")
    assert prove(trusting, "A", "B").ok


def test_a_certificate_proven_by_a_handshake_needs_no_handover(trusting: PkiStore) -> None:
    """Where both States are of this console, the key is stored with the certificate from the moment it is issued."""
    for client, server in (("A", "B"), ("B", "A")):
        approve(trusting, _ask(trusting, client, server))
        assert _next(trusting, client, server) is ExchangeStepKind.GIVE_CERTIFICATE
    assert prove(trusting, "A", "B").ok
    assert _next(trusting) is None and _next(trusting, "B", "A") is None


def test_an_exported_request_counts_as_given(trusting: PkiStore) -> None:
    """As for a State elsewhere, of which one does not hear whether it has taken the CSR in."""
    request = _ask(trusting, "A", "B")
    note_handover(trusting, request, _state(trusting, "A"), _state(trusting, "B"))
    assert _next(trusting) is ExchangeStepKind.APPROVE


def test_both_directions_are_proven_by_handshakes(trusting: PkiStore) -> None:
    for client, server in (("A", "B"), ("B", "A")):
        _complete(trusting, client, server)
    proof = prove(trusting, "A", "B")
    assert proof.ok
    assert proof.there.protocol == "TLSv1.3"
    exchange = exchange_of(trusting.snapshot(), "A", "B")
    assert exchange.there.next is None and exchange.back.next is None
    assert exchange.there.proven is not None and exchange.back.proven is not None


def test_another_certificate_must_be_proven_again(trusting: PkiStore) -> None:
    for client, server in (("A", "B"), ("B", "A")):
        _complete(trusting, client, server)
    prove(trusting, "A", "B")
    _complete(trusting, "A", "B")
    assert _next(trusting) is ExchangeStepKind.PROVE
    assert _next(trusting, "B", "A") is None


def test_missing_steps_are_reported_before_any_handshake(trusting: PkiStore) -> None:
    _complete(trusting, "A", "B")
    with pytest.raises(UserError, match=r"B cannot connect to A yet: B creates a request"):
        prove(trusting, "A", "B")
    assert not trusting.snapshot().proofs


def test_a_handshake_without_trust_fails_and_proves_nothing(trusting: PkiStore) -> None:
    for client, server in (("A", "B"), ("B", "A")):
        _complete(trusting, client, server)
    a = _state(trusting, "A")
    with trusting.change() as change:
        [row] = [each for each in change.snapshot().trust if each.state == a.id]
        change.withdraw_trust(row.id)
    proof = prove(trusting, "A", "B")
    assert not proof.there.ok
    assert proof.back.ok  # A's server trusts its own root for clients, and B trusts A's
    assert _there(trusting).proven is None
    assert _there(trusting, "B", "A").proven is not None


def test_a_revoked_certificate_passes_no_handshake(trusting: PkiStore) -> None:
    for client, server in (("A", "B"), ("B", "A")):
        _complete(trusting, client, server)
    snapshot = trusting.snapshot()
    [root] = snapshot.roots_of(_state(trusting, "B").id)
    [server] = [each for each in snapshot.certificates if each.profile is _SERVER and each.state == root.state]
    revoke(trusting, server, x509.ReasonFlags.key_compromise)
    assert _next(trusting) is ExchangeStepKind.MAKE_SERVER  # it is not used any more
    publish_crl(trusting, root)
    with pytest.raises(UserError, match="cannot connect to B yet"):
        prove(trusting, "A", "B")


def test_a_revoked_certificate_is_requested_again(trusting: PkiStore) -> None:
    _server_certificate(trusting, "B")
    first = _complete(trusting, "A", "B")
    revoke(trusting, _complete(trusting, "A", "B"))
    assert _next(trusting) is ExchangeStepKind.PROVE and _there(trusting).steps[-1].subject == first.id
    revoke(trusting, first)
    assert _next(trusting) is ExchangeStepKind.MAKE_REQUEST
    said = r"A TLS client was revoked on .* UTC: A creates a request"
    found = _there(trusting).next
    assert found is not None and re.match(said, found.missing)
    with pytest.raises(UserError, match=f"A cannot connect to B yet: {said}"):
        prove(trusting, "A", "B")


def test_a_certificate_revoked_by_an_imported_crl_is_requested_again(trusting: PkiStore, tmp_path: Path) -> None:
    """There it was revoked; here only the CRL reports it."""
    _server_certificate(trusting, "B")
    client = _complete(trusting, "A", "B")
    shutil.copytree(trusting.directory, tmp_path / "elsewhere")
    with PkiStore.open(tmp_path / "elsewhere") as elsewhere:
        revoke(elsewhere, client)
        [root] = elsewhere.snapshot().roots_of(_state(elsewhere, "B").id)
        crl = publish_crl(elsewhere, root)
    assert _next(trusting) is ExchangeStepKind.PROVE
    import_crl(trusting, crl.der)
    assert _next(trusting) is ExchangeStepKind.MAKE_REQUEST


def test_a_pinned_certificate_needs_no_request(trusting: PkiStore) -> None:
    """The title of the source taken literally: a self-signed end certificate, known by its fingerprint."""
    certificate = make_self_signed(trusting, _state(trusting, "A"), NewKey(), _CLIENT, names=["a.example"])
    pin(trusting, _state(trusting, "B"), certificate, grouped(certificate.sha256))
    direction = _there(trusting)
    assert direction.next is not None and direction.next.kind is ExchangeStepKind.PROVE
    assert "B has pinned the certificate of A" in [step.title for step in direction.steps]
    _complete(trusting, "B", "A")
    assert prove(trusting, "A", "B").ok


def test_states_elsewhere_keep_their_keys(trusting: PkiStore) -> None:
    with trusting.change() as change:
        change.add_state("C", local=False)
    with pytest.raises(UserError):
        prove(trusting, "A", "C")
    kinds = [step.kind for step in _there(trusting, "A", "C").steps]
    assert ExchangeStepKind.MAKE_ROOT not in kinds and ExchangeStepKind.MAKE_SERVER not in kinds
    assert "The keys of C lie elsewhere" in _there(trusting, "A", "C").steps[-1].missing
    with pytest.raises(UserError):
        exchange_of(trusting.snapshot(), "A", "Nobody")
