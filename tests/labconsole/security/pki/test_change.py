"""What changes of the certificate database do, refuse and tell the audit list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from labconsole.errors import BadInput
from labconsole.security.pki.keys import make_key
from labconsole.security.pki.records import (
    FileKey,
    Item,
    Origin,
    RequestStatus,
    RotationStatus,
    TokenKey,
    TrustKind,
)
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import SecretSource
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.fingerprints import key_fingerprint
from labconsole.security.x509.issuing import Issuer, issue, issue_root, link_certificates
from labconsole.security.x509.key_types import KeyType, generate
from tests.helpers.x509_keys import key_of
from tests.labconsole.security.pki.pki_lab import VALID, OwnState, issue_for, named

NOW = datetime.now(UTC)


def said(store: PkiStore) -> list[str]:
    """What the audit list says was done, oldest first."""
    return [row.what for row in reversed(store.audit())]


@pytest.fixture
def own(store: PkiStore, kept_passphrase: None) -> OwnState:
    """A local State with its root."""
    return OwnState(store, "Alpha")


def test_a_certificate_belongs_to_the_key_and_the_state_that_have_its_public_key(own: OwnState) -> None:
    key = generate(KeyType.P_256)
    certificate = issue_for(own.issuer, key, "end")
    with own.store.change() as change:
        before = change.add_certificate(certificate, origin=Origin.ISSUED)
        row = change.add_key(own.state.id, "end", key.public_key(), TokenKey("hsm", "end-key"))
    after = own.store.certificate(before.id)
    assert (before.key, before.state) == (None, None)
    assert (after.key, after.state) == (row.id, own.state.id)
    assert row.place == TokenKey("hsm", "end-key")
    assert row.spki_sha256 == key_fingerprint(key.public_key())


def test_the_same_certificate_is_the_same_row_and_what_was_unknown_is_filled_in(own: OwnState) -> None:
    certificate = issue_for(own.issuer, key_of(KeyType.P_256), "end")
    with own.store.change() as change:
        first = change.add_certificate(certificate, origin=Origin.IMPORTED)
        change.remove(first.id)
        other = change.add_state("Beta", local=False)
        second = change.add_certificate(
            certificate, origin=Origin.ISSUED, state=other.id, profile=CertificateProfile.TLS_CLIENT
        )
        third = change.add_certificate(
            certificate, origin=Origin.ISSUED, state=own.state.id, profile=CertificateProfile.STATE
        )
    assert first.id == second.id
    assert second == third == own.store.certificate(first.sha256)
    assert (second.state, second.profile, second.removed) == (other.id, CertificateProfile.TLS_CLIENT, None)
    assert second.origin is Origin.IMPORTED


def test_two_certificates_of_one_issuer_with_one_serial_number_are_refused(own: OwnState) -> None:
    first = issue_for(own.issuer, key_of(KeyType.P_256), "good")
    twin = (
        x509.CertificateBuilder(extensions=list(first.extensions))
        .subject_name(named("twin"))
        .issuer_name(first.issuer)
        .public_key(first.public_key())  # type: ignore[arg-type]
        .serial_number(first.serial_number)
        .not_valid_before(first.not_valid_before_utc)
        .not_valid_after(first.not_valid_after_utc)
        .sign(own.issuer.key, first.signature_hash_algorithm)  # type: ignore[arg-type]
    )
    with own.store.change() as change:
        change.add_certificate(first, origin=Origin.ISSUED)
    before = own.store.snapshot()
    with pytest.raises(BadInput, match="was given by the same issuer to another"), own.store.change() as change:
        change.add_certificate(twin, origin=Origin.IMPORTED)
    assert own.store.snapshot() == before


def test_a_root_of_a_local_state_has_its_key_here(own: OwnState) -> None:
    key = generate(KeyType.P_256)
    root = issue_root(key, named("Alpha Root CA"), VALID)
    with own.store.change() as change:
        other = change.add_state("Beta")
        unknown = change.add_certificate(root, origin=Origin.IMPORTED, profile=CertificateProfile.ROOT)
    for certificate, private, state in ((root, key, own.state), (own.root.certificate, own.issuer.key, other)):
        with pytest.raises(BadInput, match="has no such key"), own.store.change() as change:
            again = issue_root(private, certificate.subject, VALID)
            change.add_certificate(again, origin=Origin.IMPORTED, state=state.id, profile=CertificateProfile.ROOT)
    with pytest.raises(BadInput, match="has no such key"), own.store.change() as change:
        change.add_certificate(root, origin=Origin.BUNDLE, state=own.state.id)
    assert own.store.certificate(unknown.id).state is None
    assert own.store.snapshot().roots_of(own.state.id) == (own.root,)


def test_keys_that_the_console_cannot_use_are_refused(own: OwnState) -> None:
    key = ec.generate_private_key(ec.SECP521R1())
    with pytest.raises(BadInput, match="of a type that the console cannot use"), own.store.change() as change:
        change.add_key(own.state.id, "odd", key.public_key(), FileKey("odd.pem", SecretSource()))


def test_revoked_once_with_its_reason(own: OwnState) -> None:
    record = own.issued("end")
    at = NOW - timedelta(hours=3)
    with own.store.change() as change:
        revoked = change.revoke(record.id, x509.ReasonFlags.key_compromise, at).revoked
    assert revoked is not None
    assert (revoked.at, revoked.reason) == (at, x509.ReasonFlags.key_compromise)
    with pytest.raises(BadInput, match="end has been revoked since"), own.store.change() as change:
        change.revoke(record.id, x509.ReasonFlags.superseded)
    assert said(own.store)[-1] == "revoked certificate"


def test_removed_is_hidden_and_comes_back(own: OwnState) -> None:
    record = own.issued("end")
    with own.store.change() as change:
        assert change.remove(record.id).removed is not None
    assert record.id not in [row.id for row in own.store.certificates()]
    assert record.id in [row.id for row in own.store.certificates(removed=True)]
    assert own.store.snapshot().issuers_of(record) == (own.root,)
    with pytest.raises(BadInput, match="end was removed before"), own.store.change() as change:
        change.remove(record.id)
    with own.store.change() as change:
        change.restore(record.id)
    assert own.store.certificate(record.id) == record
    with pytest.raises(BadInput, match="end was not removed"), own.store.change() as change:
        change.restore(record.id)


def test_what_is_trusted_or_in_use_is_not_removed(own: OwnState) -> None:
    record = own.issued("end")
    with own.store.change() as change:
        change.name_identity("alpha-client", record.id)
    with pytest.raises(BadInput, match="The identity alpha-client uses end"), own.store.change() as change:
        change.remove(record.id)
    with pytest.raises(BadInput, match="Alpha trusts Alpha Root CA"), own.store.change() as change:
        change.remove(own.root.id)


def test_a_request_is_made_received_and_decided_once(own: OwnState) -> None:
    csr = create_csr(key_of(KeyType.P_256), named("client"), [], CertificateProfile.TLS_CLIENT)
    with own.store.change() as change:
        other = change.add_state("Beta")
        parties = {"requester": other.id, "issuer": own.state.id, "profile": CertificateProfile.TLS_CLIENT}
        made = change.add_request(csr, **parties, status=RequestStatus.MADE)  # type: ignore[arg-type]
        received = change.add_request(csr, **parties, status=RequestStatus.RECEIVED)  # type: ignore[arg-type]
    assert (made.id, made.status) == (received.id, RequestStatus.MADE)
    assert received.status is RequestStatus.RECEIVED
    assert received.csr == csr
    with pytest.raises(BadInput, match="say in a few words why"), own.store.change() as change:
        change.refuse_request(made.id, " ")
    with own.store.change() as change:
        refused = change.refuse_request(made.id, "no such person")
    assert (refused.status, refused.reason) == (RequestStatus.REFUSED, "no such person")
    assert refused.decided is not None
    with pytest.raises(BadInput, match="was refused before"), own.store.change() as change:
        change.approve_request(made.id, own.root.id)
    assert said(own.store)[-4:] == ["added State", "made request", "received request", "refused request"]


def test_an_approved_request_knows_its_certificate(own: OwnState) -> None:
    csr = create_csr(key_of(KeyType.P_256), named("client"), [], CertificateProfile.TLS_CLIENT)
    record = own.issued("client")
    with own.store.change() as change:
        request = change.add_request(
            csr,
            requester=own.state.id,
            issuer=own.state.id,
            profile=CertificateProfile.TLS_CLIENT,
            status=RequestStatus.RECEIVED,
        )
        approved = change.approve_request(request.id, record.id)
    assert (approved.status, approved.certificate) == (RequestStatus.APPROVED, record.id)


def test_crls_keep_their_number_however_long(own: OwnState) -> None:
    record = own.issued("end")
    number = 2**158 + 1
    crl = issue_crl(
        own.issuer, [Revoked(record.certificate.serial_number, NOW, x509.ReasonFlags.superseded)], number, VALID
    )
    with own.store.change() as change:
        first = change.add_crl(crl, own.root.id)
        second = change.add_crl(crl, own.root.id)
    assert first == second
    assert own.store.crls() == (first,)
    assert (first.number, first.crl) == (number, crl)
    assert (first.this_update, first.next_update) == (crl.last_update_utc, crl.next_update_utc)


def test_trust_is_given_once_and_withdrawn_once(own: OwnState) -> None:
    with own.store.change() as change:
        first = change.trust(own.state.id, own.root.id, TrustKind.ROOT, "again")
    assert first.confirmed == "its own"
    with own.store.change() as change:
        withdrawn = change.withdraw_trust(first.id)
    assert withdrawn.withdrawn is not None
    with pytest.raises(BadInput, match="withdrawn before"), own.store.change() as change:
        change.withdraw_trust(first.id)
    with own.store.change() as change:
        again = change.trust(own.state.id, own.root.id, TrustKind.ROOT, "by hand")
    assert again.id != first.id
    assert own.store.trust_records() == (withdrawn, again)


def test_a_bundle_has_a_sequence_number_of_its_own(own: OwnState) -> None:
    with own.store.change() as change:
        other = change.add_state("Beta", local=False)
        facts = {
            "importer": own.state.id,
            "subject": other.id,
            "sequence": 3,
            "made": NOW,
            "next_update": NOW + timedelta(days=30),
            "sha256": "ab" * 32,
            "signer": "cd" * 32,
            "trusted": ("ef" * 32, "01" * 32),
        }
        bundle = change.add_bundle(**facts)  # type: ignore[arg-type]
    assert bundle.trusted == ("ef" * 32, "01" * 32)
    assert (bundle.made, bundle.next_update) == (NOW, NOW + timedelta(days=30))
    with pytest.raises(BadInput, match="Alpha has a bundle 3 of Beta"), own.store.change() as change:
        change.add_bundle(**facts)  # type: ignore[arg-type]


def test_handovers_and_proofs(own: OwnState) -> None:
    record = own.issued("end")
    with own.store.change() as change:
        other = change.add_state("Beta")
        handover = change.hand_over(own.state.id, other.id, Item.ROOT, own.root.sha256)
        proof = change.add_proof(own.state.id, other.id, record.id, own.root.id, "TLS 1.3")
    snapshot = own.store.snapshot()
    assert (snapshot.handovers, snapshot.proofs) == ((handover,), (proof,))
    assert [(row.what, row.subject) for row in snapshot.audit[:2]] == [
        ("proved by handshake", "Alpha to Beta"),
        ("handed over root", "Alpha to Beta"),
    ]


def test_a_rotation_from_its_beginning_to_its_end(own: OwnState) -> None:
    with own.store.change() as change:
        peers = [change.add_state(name, local=False).id for name in ("Beta", "Gamma")]
        begun = change.add_rotation(own.root.id, 30, [*peers, peers[0]])
    assert (begun.peers, begun.confirmed, begun.status) == (tuple(peers), (), RotationStatus.PREPARING)
    with pytest.raises(BadInput, match="is being rotated"), own.store.change() as change:
        change.add_rotation(own.root.id, 30, [])
    successor = own.issued("successor")
    with own.store.change() as change:
        change.advance_rotation(begun.id, RotationStatus.OVERLAP, successor=successor.id)
        confirmed = change.confirm_rotation(begun.id, peers[1])
        change.confirm_rotation(begun.id, peers[1])
        switched = change.advance_rotation(begun.id, RotationStatus.SWITCHED)
        finished = change.advance_rotation(begun.id, RotationStatus.FINISHED)
    assert confirmed.confirmed == (peers[1],)
    assert confirmed.successor == successor.id
    assert switched.switched == finished.switched == finished.ended
    with pytest.raises(BadInput, match="is finished"), own.store.change() as change:
        change.advance_rotation(begun.id, RotationStatus.CANCELLED)
    with pytest.raises(BadInput, match="Alpha need not confirm"), own.store.change() as change:
        change.confirm_rotation(begun.id, own.state.id)
    with own.store.change() as change:
        assert change.add_rotation(own.root.id, 10, []).id != begun.id


def test_an_identity_needs_a_key_and_its_name_moves_over(own: OwnState) -> None:
    first, second = own.issued("one"), own.issued("two")
    with own.store.change() as change:
        change.name_identity("gate", first.id)
        moved = change.name_identity("gate", second.id)
    assert own.store.identities() == (moved,)
    assert moved.certificate == second.id
    foreign = issue_for(own.issuer, key_of(KeyType.P_256), "foreign")
    with pytest.raises(BadInput, match="no key of that certificate"), own.store.change() as change:
        change.name_identity("gate", change.add_certificate(foreign, origin=Origin.IMPORTED, state=own.state.id).id)


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "‮evil", "x" * 65])
def test_names_that_cannot_be_shown_are_refused(store: PkiStore, name: str) -> None:
    with pytest.raises(BadInput, match="cannot be a name"), store.change() as change:
        change.add_state(name)


def test_a_state_is_renamed_and_moved(own: OwnState) -> None:
    with own.store.change() as change:
        change.update_state(own.state.id, name="alpha")
        change.update_state(own.state.id, local=False)
        change.claim_domain(own.state.id, "alpha.example")
    assert own.store.state("alpha").domain == "alpha.example"
    assert not own.store.state("alpha").local


@pytest.mark.parametrize("type", [KeyType.P_256, KeyType.RSA_2048, KeyType.ED25519, KeyType.ML_DSA_44])
def test_issuers_are_found_by_their_signatures(store: PkiStore, type: KeyType) -> None:
    top = key_of(type)
    root = Issuer(issue_root(top, named("Twin CA"), VALID), top)
    twin_key = generate(KeyType.P_256)
    twin = issue_root(twin_key, named("Twin CA"), VALID)
    middle_key = generate(KeyType.P_256)
    middle = issue(root, middle_key.public_key(), named("Middle"), [], CertificateProfile.INTERMEDIATE, VALID)
    end = issue_for(Issuer(middle, middle_key, (root.certificate,)), key_of(KeyType.P_256), "end")
    with store.change() as change:
        records = [change.add_certificate(one, origin=Origin.IMPORTED) for one in (end, middle, twin, root.certificate)]
    snapshot = store.snapshot()
    assert snapshot.chain_of(records[0]) == (records[1], records[3])
    assert snapshot.chain_of(records[2]) == snapshot.chain_of(records[3]) == ()
    assert snapshot.issuers_of(records[2]) == (records[2],)
    with store.change() as change:
        change.remove(records[1].id)
    assert store.snapshot().chain_of(records[0]) == (), "its issuer was removed"


def test_chains_have_a_root_in_place_of_its_link_certificates(own: OwnState) -> None:
    made = make_key(own.store.directory, KeyType.P_256)
    new = Issuer(issue_root(made.private, named("Alpha Root CA"), VALID), made.private)
    end = issue_for(new, key_of(KeyType.P_256), "end")
    with own.store.change() as change:
        change.add_key(own.state.id, "new root", made.private.public_key(), made.place)
        record = change.add_certificate(end, origin=Origin.IMPORTED)
        root = change.add_certificate(
            new.certificate, origin=Origin.SELF_SIGNED, state=own.state.id, profile=CertificateProfile.ROOT
        )
        for link in link_certificates(own.issuer, new):
            change.add_certificate(link, origin=Origin.LINK, state=own.state.id)
    snapshot = own.store.snapshot()
    assert snapshot.chain_of(record) == (root,)
    assert len(snapshot.issuers_of(record)) == 2
    assert snapshot.roots_of(own.state.id) == (root, own.root)
    assert snapshot.trusted_by(own.state.id, TrustKind.ROOT) == (root, own.root)
    assert snapshot.trusted_by(own.state.id, TrustKind.PIN) == ()
