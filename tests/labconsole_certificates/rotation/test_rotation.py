"""Rotations from plan to end: successors, link certificates, peers that must confirm, overlap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from labconsole.errors import UserError
from labconsole.security.certificate_status import StatusKind, all_statuses
from labconsole.security.pki.change import Change
from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.records import (
    CertificateRecord,
    Item,
    Origin,
    RequestStatus,
    RotationStatus,
    State,
    TrustKind,
)
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.key_types import KeyType, type_of
from labconsole.security.x509.validation.validator import validate
from labconsole_certificates.exchange.handshake import perform_handshake
from labconsole_certificates.exchange.tls_context import TlsCredentials
from labconsole_certificates.operations.authorities import create_intermediate, create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.received_csrs import approve
from labconsole_certificates.operations.record_lookup import authorities_of, must_issue
from labconsole_certificates.operations.self_signed import make_self_signed
from labconsole_certificates.revocation.crl_operations import publish_crl, revoke
from labconsole_certificates.rotation import steps
from labconsole_certificates.rotation.plan import RotationStepKind
from labconsole_certificates.rotation.rotation_kinds import RotationKind
from labconsole_certificates.trust.roots_and_pins import pin, trust_root
from tests.labconsole_certificates.rotation.rotation_console import Lab


def _successor(lab: Lab, rotation: int) -> CertificateRecord:
    number = lab.store.rotation(rotation).successor
    assert number is not None
    return lab.store.certificate(number)


def _extension(certificate: x509.Certificate, kind: type[x509.ExtensionType]) -> object:
    return certificate.extensions.get_extension_for_class(kind).value


def test_of_two_consoles_that_take_one_step_one_does(lab: Lab) -> None:
    """Both have read that the successor is to be made: a second root would stand in every bundle."""
    rotation = steps.begin(lab.store, lab.root_b)
    prepared = steps.prepare(lab.store, rotation, NewKey())
    before = lab.store.snapshot()
    with pytest.raises(UserError, match="is overlap by now"):
        steps.prepare(lab.store, rotation, NewKey())
    assert lab.store.snapshot() == before
    assert len(before.roots_of(lab.b.id)) == 2
    steps.switch(lab.store, prepared)
    with pytest.raises(UserError, match="is switched by now"):
        steps.cancel(lab.store, prepared)


def test_link_certificates_issue_nothing(lab: Lab) -> None:
    """They bear the CA's name and keys: by them the new key would be used before the switch, and too short after."""
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    before = lab.issued(lab.a, CertificateProfile.TLS_CLIENT)
    steps.switch(lab.store, rotation)
    after = lab.issued(lab.a, CertificateProfile.TLS_CLIENT)
    snapshot = lab.store.snapshot()
    successor = _successor(lab, rotation.id)
    [link, *_] = [one for one in snapshot.certificates if one.is_link and one in snapshot.issuers_of(after)]
    assert lab.root_b in snapshot.issuers_of(before) and successor not in snapshot.issuers_of(before)
    assert successor in snapshot.issuers_of(after)
    assert authorities_of(snapshot, lab.b, datetime.now(UTC)) == (successor, lab.root_b)
    with pytest.raises(UserError, match="This is a link certificate of State B Root CA: choose the root itself"):
        must_issue(snapshot, link, datetime.now(UTC))


def test_an_end_certificate_gets_a_new_key_and_keeps_the_rest(lab: Lab) -> None:
    with lab.store.change() as change:
        change.name_identity("broker-b", lab.broker.id)
    rotation = steps.begin(lab.store, lab.broker)
    assert lab.plan(rotation).kind is RotationKind.ISSUED_HERE
    assert lab.plan(rotation).next_sentence == "Create a new key, and issue the new certificate."

    rotation = steps.prepare(lab.store, rotation, NewKey())
    successor = _successor(lab, rotation.id)
    old, new = lab.broker.certificate, successor.certificate
    assert rotation.status is RotationStatus.OVERLAP
    assert successor.replaces == lab.broker.id
    assert (new.subject, new.issuer) == (old.subject, old.issuer)
    assert new.public_key() != old.public_key()
    assert _extension(new, x509.SubjectAlternativeName) == _extension(old, x509.SubjectAlternativeName)
    assert lab.store.identity("broker-b").certificate == lab.broker.id

    rotation = steps.switch(lab.store, rotation)
    assert lab.store.identity("broker-b").certificate == successor.id
    with pytest.raises(UserError, match="The overlap lasts until"):
        steps.finish(lab.store, rotation)
    later = lab.plan(rotation, datetime.now(UTC) + timedelta(days=31))
    assert later.next_sentence == "Retire the old one."

    assert steps.finish(lab.store, rotation, wait_for_overlap=False).status is RotationStatus.FINISHED
    assert lab.plan(rotation).next_step is None


def test_during_overlap_old_and_new_certificate_pass_a_handshake(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.broker), NewKey())
    snapshot = lab.store.snapshot()
    root = (lab.root_b.certificate,)

    def end(record: CertificateRecord) -> TlsCredentials:
        assert record.key is not None
        with opened_key(lab.store.directory, snapshot.key_by_id[record.key], None) as key:
            return TlsCredentials(record.certificate, (), key, root)

    for server in (lab.broker, _successor(lab, rotation.id)):
        done = perform_handshake(end(lab.client), end(server), "broker.b.example")
        assert done.ok, done


def test_root_rotation_creates_link_certificates_that_validate_both_ways(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    new_root = _successor(lab, rotation.id)
    plan = lab.plan(rotation)
    links = [record.certificate for record in plan.links]

    assert plan.kind is RotationKind.ROOT
    assert new_root.replaces == lab.root_b.id
    assert new_root.certificate.subject == lab.root_b.certificate.subject
    assert len(links) == 2
    assert {record.origin for record in plan.links} == {Origin.LINK}
    steps.switch(lab.store, rotation)
    newer = lab.issued(lab.a, CertificateProfile.TLS_CLIENT, "second.a.example")
    now = datetime.now(UTC)
    assert validate(newer.certificate, (), [new_root.certificate], at=now).accepted
    assert validate(newer.certificate, links, [lab.root_b.certificate], at=now).accepted
    assert validate(lab.client.certificate, links, [new_root.certificate], at=now).accepted
    assert not validate(lab.client.certificate, (), [new_root.certificate], at=now).accepted


def test_a_retired_root_is_distrusted_and_its_certificates_validate_by_the_link(lab: Lab) -> None:
    trust_root(lab.store, lab.a, lab.root_b, grouped(lab.root_b.sha256))
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    new_root = _successor(lab, rotation.id)
    trust_root(lab.store, lab.a, new_root, grouped(new_root.sha256))
    steps.finish(lab.store, steps.switch(lab.store, rotation), wait_for_overlap=False)

    snapshot = lab.store.snapshot()
    statuses = all_statuses(snapshot, datetime.now(UTC), lab.a.id)
    assert lab.root_b.id not in {record.id for record in snapshot.trusted_by(lab.a.id, TrustKind.ROOT)}
    assert lab.store.certificate(lab.root_b.id).removed is not None
    assert statuses[lab.root_b.id].kind is StatusKind.UNTRUSTED
    assert "State A withdrew its trust in State B Root CA on" in statuses[lab.root_b.id].cause
    assert statuses[new_root.id].kind is StatusKind.VALID
    assert statuses[lab.client.id].kind is StatusKind.VALID


def test_peers_must_trust_the_new_root_before_the_switch(lab: Lab) -> None:
    trust_root(lab.store, lab.a, lab.root_b, grouped(lab.root_b.sha256))
    rotation = steps.begin(lab.store, lab.root_b)
    assert [peer.state.name for peer in lab.plan(rotation).peers] == ["State A"]

    rotation = steps.prepare(lab.store, rotation, NewKey())
    assert lab.plan(rotation).next_sentence == "Get the confirmation of State A."
    with pytest.raises(UserError, match="State A would refuse the successor"):
        steps.switch(lab.store, rotation)
    assert lab.store.rotation(rotation.id).status is RotationStatus.OVERLAP

    new_root = _successor(lab, rotation.id)
    trust_root(lab.store, lab.a, new_root, grouped(new_root.sha256))
    assert [(peer.confirmed, peer.how) for peer in lab.plan(rotation).peers] == [(True, "trusts it here")]
    assert lab.plan(rotation).next_sentence == "Use the successor from now on."
    assert steps.switch(lab.store, rotation).status is RotationStatus.SWITCHED


def test_a_remote_peer_confirms_by_its_bundle_or_by_word(lab: Lab) -> None:
    with lab.store.change() as change:
        remote = change.add_state("State C", "c.example", local=False)
        _plan_lines(change, lab, remote.id, 1, (lab.root_b.sha256,))
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    assert [peer.confirmed for peer in lab.plan(rotation).peers] == [False]

    with lab.store.change() as change:
        _plan_lines(change, lab, remote.id, 2, (lab.root_b.sha256, _successor(lab, rotation.id).sha256))
    assert lab.plan(rotation).peers[0].how == "its newest trust bundle says so"

    rotation = steps.confirm(lab.store, rotation, remote)
    assert rotation.confirmed == (remote.id,)
    assert lab.plan(rotation).peers[0].how == "noted by the operator"


@pytest.mark.parametrize("kind", TrustKind)
def test_a_state_of_this_console_that_confirms_trusts_the_successor(lab: Lab, kind: TrustKind) -> None:
    """Else the last step, which ends its trust in the old one, would cut it off."""
    if kind is TrustKind.ROOT:
        old = lab.root_b
        trust_root(lab.store, lab.a, old, grouped(old.sha256))
    else:
        old = make_self_signed(lab.store, lab.b, NewKey(), CertificateProfile.TLS_CLIENT)
        pin(lab.store, lab.a, old, grouped(old.sha256))
    rotation = steps.prepare(lab.store, steps.begin(lab.store, old, overlap_days=0), NewKey())
    rotation = steps.switch(lab.store, steps.confirm(lab.store, rotation, lab.a))
    assert rotation.confirmed == (lab.a.id,)
    steps.finish(lab.store, rotation)
    trusted = lab.store.snapshot().trusted_by(lab.a.id, kind)
    assert old not in trusted and _successor(lab, rotation.id) in trusted


def _plan_lines(change: Change, lab: Lab, remote: int, sequence: int, trusted: tuple[str, ...]) -> None:
    now = datetime.now(UTC)
    change.add_bundle(
        importer=lab.b.id,
        subject=remote,
        sequence=sequence,
        made=now,
        next_update=now + timedelta(days=30),
        sha256=f"{sequence:064x}",
        signer="0" * 64,
        trusted=trusted,
    )


def test_the_successor_of_a_pinned_certificate_is_pinned(lab: Lab) -> None:
    pinned = make_self_signed(lab.store, lab.b, NewKey(), CertificateProfile.TLS_SERVER, names=("broker.b.example",))
    pin(lab.store, lab.a, pinned, grouped(pinned.sha256))
    rotation = steps.begin(lab.store, pinned)
    assert lab.plan(rotation).kind is RotationKind.SELF_SIGNED
    assert [peer.state.name for peer in lab.plan(rotation).peers] == ["State A"]

    rotation = steps.prepare(lab.store, rotation, NewKey())
    successor = _successor(lab, rotation.id)
    pin(lab.store, lab.a, successor, grouped(successor.sha256))
    steps.finish(lab.store, steps.switch(lab.store, rotation), wait_for_overlap=False)

    pins = lab.store.snapshot().trusted_by(lab.a.id, TrustKind.PIN)
    assert [record.id for record in pins] == [successor.id]


def test_rotation_of_a_certificate_from_another_console_makes_a_csr(lab: Lab) -> None:
    with lab.store.change() as change:
        change.update_state(lab.b.id, local=False)
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.client), NewKey())
    request = lab.store.requests()[-1]
    plan = lab.plan(rotation)

    assert plan.kind is RotationKind.ISSUED_ELSEWHERE
    assert rotation.status is RotationStatus.PREPARING
    assert request.csr.subject == lab.client.certificate.subject
    assert request.status is RequestStatus.MADE
    assert plan.next_sentence == "Give the CSR to State B, and import the certificate that comes back."
    with pytest.raises(UserError, match="No certificate has come back"):
        steps.adopt(lab.store, rotation)

    with lab.store.change() as change:  # State B's console approves it
        change.update_state(lab.b.id, local=True)
    approve(lab.store, request)
    with lab.store.change() as change:
        change.update_state(lab.b.id, local=False)
        change.hand_over(lab.b.id, lab.a.id, Item.CERTIFICATE, request.sha256)
    assert lab.plan(rotation).next_sentence == "Take the certificate that came back as the successor."
    rotation = steps.adopt(lab.store, rotation)
    assert rotation.status is RotationStatus.OVERLAP
    assert _successor(lab, rotation.id).certificate.public_key() == request.csr.public_key()


def test_the_root_issues_the_successor_of_an_intermediate(lab: Lab) -> None:
    intermediate = create_intermediate(lab.store, lab.root_b, lab.b, NewKey())

    rotation = steps.prepare(lab.store, steps.begin(lab.store, intermediate), NewKey())

    successor = _successor(lab, rotation.id).certificate
    assert successor.issuer == lab.root_b.certificate.subject
    constraints = _extension(successor, x509.BasicConstraints)
    assert constraints == _extension(intermediate.certificate, x509.BasicConstraints)


def test_a_rotation_can_be_cancelled_until_the_switch(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.broker), NewKey())
    with pytest.raises(UserError, match="is being rotated"):
        steps.begin(lab.store, lab.broker)

    cancelled = steps.cancel(lab.store, rotation)
    assert lab.plan(cancelled).steps == ()
    again = steps.prepare(lab.store, steps.begin(lab.store, lab.broker), NewKey())
    switched = steps.switch(lab.store, again)
    with pytest.raises(UserError, match="cannot be given up any more"):
        steps.cancel(lab.store, switched)


def test_steps_out_of_turn_are_refused(lab: Lab) -> None:
    rotation = steps.begin(lab.store, lab.broker)

    for step in (steps.switch, steps.finish):
        with pytest.raises(UserError):
            step(lab.store, rotation)
    with pytest.raises(UserError, match="no successor yet"):
        steps.confirm(lab.store, rotation, lab.a)
    prepared = steps.prepare(lab.store, rotation, NewKey())
    with pytest.raises(UserError, match="The successor is there already"):
        steps.prepare(lab.store, prepared, NewKey())


def test_only_certificates_with_their_key_here_are_rotated(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    link = lab.plan(rotation).links[0]

    with pytest.raises(UserError, match="rotate the root that it links"):
        steps.begin(lab.store, link)
    with lab.store.change() as change:
        change.update_state(lab.a.id, local=False)
    with pytest.raises(UserError, match="let its State do that"):
        steps.begin(lab.store, lab.client)


def test_the_plan_lists_its_steps_in_order(lab: Lab) -> None:
    trust_root(lab.store, lab.a, lab.root_b, grouped(lab.root_b.sha256))
    plan = lab.plan(steps.begin(lab.store, lab.root_b))

    assert [(step.kind, step.done) for step in plan.steps] == [
        (RotationStepKind.PREPARE, False),
        (RotationStepKind.CONFIRM, False),
        (RotationStepKind.SWITCH, False),
        (RotationStepKind.FINISH, False),
    ]
    assert [bool(step.waits_for) for step in plan.steps] == [False, True, True, True]
    assert plan.overlap is None


def test_the_overlap_ends_with_the_old_one_at_the_latest(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.broker, overlap_days=3_000), NewKey())
    overlap = lab.plan(rotation).overlap

    assert overlap is not None
    assert overlap[1] == lab.broker.certificate.not_valid_after_utc


def test_after_the_rotation_the_new_roots_crl_revokes_certificates_of_the_old_one(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    new_root = _successor(lab, rotation.id)
    links = [record.certificate for record in lab.plan(rotation).links]
    steps.finish(lab.store, steps.switch(lab.store, rotation), wait_for_overlap=False)

    revoke(lab.store, lab.client, x509.ReasonFlags.key_compromise)
    crl = publish_crl(lab.store, new_root).crl

    said = validate(lab.client.certificate, links, [new_root.certificate], [crl], at=datetime.now(UTC))
    assert said.revoked, said.why
    assert validate(lab.broker.certificate, links, [new_root.certificate], [crl], at=datetime.now(UTC)).accepted


def _prove_from_elsewhere(lab: Lab, *, client: bool = False) -> State:
    """State C, of another console, has connected to B's broker (or B to C's); nothing else is known of its trust."""
    with lab.store.change() as change:
        remote = change.add_state("State C", "c.example", local=False)
        if client:
            change.add_proof(lab.b.id, remote.id, lab.broker.id, lab.client.id, "TLSv1.3")
        else:
            change.add_proof(remote.id, lab.b.id, lab.client.id, lab.broker.id, "TLSv1.3")
    return remote


@pytest.mark.parametrize("client", [False, True])
def test_peer_proven_by_handshake_must_confirm_the_new_root(lab: Lab, client: bool) -> None:
    remote = _prove_from_elsewhere(lab, client=client)
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    with pytest.raises(UserError, match="State C would refuse the successor"):
        steps.switch(lab.store, rotation)

    rotation = steps.confirm(lab.store, rotation, remote)
    assert steps.switch(lab.store, rotation).status is RotationStatus.SWITCHED


def test_peer_found_after_the_rotation_began_must_confirm_too(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    assert lab.plan(rotation).peers == ()

    remote = _prove_from_elsewhere(lab)
    trust_root(lab.store, lab.a, lab.root_b, grouped(lab.root_b.sha256))
    assert [(peer.state.name, peer.confirmed) for peer in lab.plan(rotation).peers] == [
        ("State A", False),
        ("State C", False),
    ]
    with pytest.raises(UserError, match="State A, State C would refuse the successor"):
        steps.switch(lab.store, rotation)

    rotation = steps.confirm(lab.store, steps.confirm(lab.store, rotation, remote), lab.a)
    assert set(rotation.confirmed) == {lab.a.id, remote.id}
    assert steps.switch(lab.store, rotation).status is RotationStatus.SWITCHED


def test_peer_found_after_the_switch_holds_up_the_end(lab: Lab) -> None:
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b, overlap_days=0), NewKey())
    rotation = steps.switch(lab.store, rotation)
    trust_root(lab.store, lab.a, lab.root_b, grouped(lab.root_b.sha256))
    with pytest.raises(UserError, match="State A would refuse the successor"):
        steps.finish(lab.store, rotation)

    steps.confirm(lab.store, rotation, lab.a)
    steps.finish(lab.store, rotation)
    assert _successor(lab, rotation.id) in lab.store.snapshot().trusted_by(lab.a.id, TrustKind.ROOT)


def test_holder_of_an_issued_certificate_on_another_console_must_confirm(lab: Lab) -> None:
    with lab.store.change() as change:
        change.update_state(lab.a.id, local=False)
    rotation = steps.begin(lab.store, lab.root_b)
    assert [peer.state.name for peer in lab.plan(rotation).peers] == ["State A"]
    revoke(lab.store, lab.client, x509.ReasonFlags.superseded)
    assert lab.plan(rotation).peers == ()


def test_state_of_this_console_that_no_longer_trusts_the_old_root_is_not_asked(lab: Lab) -> None:
    trust = trust_root(lab.store, lab.a, lab.root_b, grouped(lab.root_b.sha256))
    rotation = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey())
    with lab.store.change() as change:
        change.withdraw_trust(trust.id)
    assert lab.plan(rotation).peers == ()
    with pytest.raises(UserError, match="need not confirm"):
        steps.confirm(lab.store, rotation, lab.a)


def test_successor_has_the_key_type_of_the_old_root_unless_another_is_asked_for(lab: Lab) -> None:
    old = create_root(lab.store, lab.a, NewKey(KeyType.P_384))
    same = steps.prepare(lab.store, steps.begin(lab.store, old), NewKey())
    assert type_of(_successor(lab, same.id).certificate.public_key()) is KeyType.P_384
    other = steps.prepare(lab.store, steps.begin(lab.store, lab.root_b), NewKey(KeyType.ED25519))
    assert type_of(_successor(lab, other.id).certificate.public_key()) is KeyType.ED25519
