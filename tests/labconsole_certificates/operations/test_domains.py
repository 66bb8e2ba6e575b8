"""A State's domain: claimed once, changed by a question, and no certificate of the State has names outside it."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.cli.main import main
from labconsole.errors import BadInput, UserError
from labconsole.security.certificate_status import StatusKind, status_of
from labconsole.security.pki import domains
from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.records import CertificateRecord, Origin
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.issuing import Issuer, issue
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.exchange.tls_proof import prove
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.self_signed import make_self_signed
from labconsole_certificates.operations.states import add_state, claim_domain
from labconsole_certificates.trust.roots_and_pins import trust_root
from tests.labconsole_certificates.three_states import ThreeStates


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("caas.gov.sg", "caas.gov.sg"),
        (" A.example, b.example;b.example ", "a.example b.example"),
        ("bücher.example.", "bücher.example"),
        ("", ""),
    ],
)
def test_domains_are_read_as_they_are_typed(typed: str, kept: str) -> None:
    assert domains.domains_from_text(typed) == kept


@pytest.mark.parametrize(
    "typed", ["*.a.example", "IP:192.0.2.1", "a.example ops@b.example", "x." * 122 + "a b.example"]
)
def test_malformed_domains_are_refused(typed: str) -> None:
    with pytest.raises(BadInput):
        domains.domains_from_text(typed)


@pytest.mark.parametrize(
    ("domain", "name", "accepted"),
    [
        ("a.example", "a.example", True),
        ("a.example", "SWIM.A.example", True),
        ("a.example", "*.a.example", True),
        ("a.example", "nota.example", False),
        ("a.example", "a.example.evil.example", False),
        ("a.example b.example", "x.b.example", True),
        ("bücher.example", "swim.xn--bcher-kva.example", True),
        ("", "any.thing.example", True),
    ],
)
def test_names_are_held_against_the_domains(world: ThreeStates, domain: str, name: str, accepted: bool) -> None:
    state = claim_domain(world.store, world.b, domain)
    assert (domains.refusal(state, [x509.DNSName(name)]) == "") is accepted


def test_csr_with_a_name_outside_its_states_domain_is_not_approved(world: ThreeStates) -> None:
    """Another State's CSR for `server.a.example` was approved without a warning."""
    claim_domain(world.store, world.c, "c.example")
    with opened_key(world.store.directory, world.store.keys()[0]) as key:
        csr = create_csr(key, name_from_text("CN=x"), [x509.DNSName("server.a.example")], _CLIENT)
    taken = received_csrs.import_request(world.store, world.c, world.a, csr.public_bytes(_PEM))
    before = world.rows()
    with pytest.raises(UserError, match=r"server\.a\.example is outside the domain of State C \(c\.example\)"):
        received_csrs.approve(world.store, taken)
    assert world.rows() == before
    state = world.store.state("State C")
    assert any("outside the domain" in problem for problem in received_csrs.judged(csr, state).problems)


def test_state_without_a_domain_is_not_restricted_and_that_is_said(world: ThreeStates) -> None:
    request = world.asks(world.a, world.b, "client.a.example")
    unclaimed = claim_domain(world.store, world.a, "")
    said = domains.notice(world.store.snapshot(), unclaimed, [x509.DNSName("swim.b.example")])
    assert "has claimed no domain" in said and "within the domain of State B" in said
    assert received_csrs.approve(world.store, request).state == world.a.id


def test_client_certificate_without_a_dns_name_is_not_affected(world: ThreeStates) -> None:
    assert world.certified(world.a, world.b).state == world.a.id


def test_own_certificates_keep_to_the_domain_too(world: ThreeStates) -> None:
    with pytest.raises(UserError, match="outside the domain of State A"):
        make_self_signed(world.store, world.a, NewKey(), CertificateProfile.TLS_SERVER, names=["swim.b.example"])
    with pytest.raises(UserError, match="outside the domain of State A"):
        own_csrs.make_request(world.store, world.a, world.b, NewKey(), _CLIENT, names=["client.b.example"])


def test_certificate_from_a_file_with_a_foreign_name_is_not_imported(world: ThreeStates) -> None:
    forged = _issued(world, world.root_b, "server.a.example")
    before = world.rows()
    with pytest.raises(BadInput, match="outside the domain of State B"):
        import_certificates(world.store, forged.public_bytes(_PEM), world.b)
    assert world.rows() == before


def test_handshake_refuses_a_name_that_its_ca_s_state_has_not_claimed(world: ThreeStates) -> None:
    """State B's CA, which A trusts, certifies a host of A: the root alone would have accepted it."""
    _connected(world)
    assert prove(world.store, "State A", "State B").ok
    claim_domain(world.store, world.b, "elsewhere.example")
    proof = prove(world.store, "State A", "State B")
    assert not proof.ok
    assert "outside the domain of State B (elsewhere.example)" in proof.there.client_report
    status = status_of(_server(world, world.b.id), world.store.snapshot(), datetime.now(UTC))
    assert status.kind is StatusKind.UNTRUSTED and "outside the domain" in status.cause


def test_unknown_certificate_is_held_against_the_domain_of_its_ca(world: ThreeStates) -> None:
    forged = _issued(world, world.root_b, "server.a.example")
    path = (forged, world.root_b.certificate)
    assert "outside the domain of State B" in domains.path_refusal(world.store.snapshot(), path)


def test_terminal_asks_before_a_domain_is_changed(
    world: ThreeStates, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["pki", "domain", "State B", "c.example"]) == 1
    assert "State B claims c.example, and had b.example before" in " ".join(capsys.readouterr().err.split())
    assert world.store.state("State B").domain == "b.example"

    monkeypatch.setattr("sys.stdin", _Terminal("yes\n"))
    assert main(["pki", "domain", "State B", "c.example", "d.example"]) == 0
    assert world.store.state("State B").domain == "c.example d.example"
    entry = world.store.audit(1)[0]
    assert (entry.what, entry.subject) == ("claimed domain", "State B")
    assert entry.detail == "c.example d.example, confirmed by the operator; was b.example"


def test_domains_that_a_state_has_are_not_claimed_again(world: ThreeStates) -> None:
    before = world.rows()
    assert main(["pki", "domain", "State B", "b.example"]) == 0
    assert world.rows() == before


def test_domain_of_another_state_is_a_question(world: ThreeStates) -> None:
    snapshot = world.store.snapshot()
    assert "State A has claimed a.example" in domains.claim_question(snapshot, None, "State D", "sub.a.example")
    assert domains.claim_question(snapshot, None, "State D", "d.example") == ""


def test_certificates_known_before_the_claim_stay_known(world: ThreeStates) -> None:
    state = add_state(world.store, "State D", local=False)
    certificate = _issued(world, world.root_b, "swim.anywhere.example")
    with world.store.change() as change:
        record = change.add_certificate(certificate, state=state.id, origin=Origin.IMPORTED)
    claim_domain(world.store, state, "d.example")
    assert import_certificates(world.store, certificate.public_bytes(_PEM), state)[0].id == record.id


_CLIENT = CertificateProfile.TLS_CLIENT
_PEM = Encoding.PEM


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _issued(world: ThreeStates, authority: CertificateRecord, name: str) -> x509.Certificate:
    assert authority.key is not None
    with opened_key(world.store.directory, world.store.key(authority.key)) as key:
        issuer = Issuer(authority.certificate, key)
        public = generate(KeyType.P_256).public_key()
        names = [x509.DNSName(name)]
        return issue(issuer, public, name_from_text("CN=x"), names, CertificateProfile.TLS_SERVER, Validity.for_days(9))


def _connected(world: ThreeStates) -> None:
    """Both States can connect to each other."""
    for one, other, root in ((world.a, world.b, world.root_b), (world.b, world.a, world.root_a)):
        trust_root(world.store, one, root, root.sha256)
        world.certified(one, other)
        received_csrs.approve(
            world.store, world.asks(one, one, f"swim.{one.domain}", profile=CertificateProfile.TLS_SERVER)
        )


def _server(world: ThreeStates, state: int) -> CertificateRecord:
    return next(
        each
        for each in world.store.certificates()
        if each.state == state and each.profile is CertificateProfile.TLS_SERVER
    )
