"""A root is rotated under peers that have only bundles of it: no telephone call is needed, and late peers catch up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from labconsole.errors import BadInput
from labconsole.security.pki.records import Origin, RotationRecord
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.issuing import link_certificates
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.revocation.crl_operations import import_crl, publish_crl
from labconsole_certificates.rotation import steps
from labconsole_certificates.rotation.plan import plan_of
from labconsole_certificates.trust.bundle_inspection import inspect_bundle
from tests.helpers.authorities import new_authority
from tests.labconsole_certificates.trust.conftest import Console, NewConsole


def _confirmed(console: Console, rotation: RotationRecord) -> dict[str, bool]:
    """Which peers have confirmed, as the console knows it."""
    plan = plan_of(console.store.snapshot(), rotation, datetime.now(UTC))
    return {peer.state.name: peer.confirmed for peer in plan.peers}


def test_a_root_is_rotated_by_bundles_alone(console: NewConsole) -> None:
    alpha, beta, sleeper = console("Alpha"), console("Beta"), console("Sleeper")
    for one, other in ((alpha, beta), (beta, alpha), (sleeper, beta), (beta, sleeper)):
        one.meets(other)
    for other in (alpha, sleeper):
        beta.import_bundle(other.bundle())  # in which they say that they trust Beta
    rotation = steps.prepare(beta.store, steps.begin(beta.store, beta.root), NewKey())
    assert rotation.successor is not None
    successor = beta.store.snapshot().certificate_by_id[rotation.successor]
    assert _confirmed(beta, rotation) == {"Alpha": False, "Sleeper": False}

    taken = alpha.import_bundle(beta.bundle())  # no fingerprint: the old root signed it
    assert taken.trusted == (successor.sha256,)
    assert alpha.trusts() == {beta.root.sha256, successor.sha256}
    beta.import_bundle(alpha.bundle())
    assert _confirmed(beta, rotation) == {"Alpha": True, "Sleeper": False}

    switched = steps.switch(beta.store, rotation, wait_for_peers=False)
    steps.finish(beta.store, switched, wait_for_overlap=False)
    last = beta.bundle()
    look = inspect_bundle(last)
    assert look.fingerprint == successor.sha256
    assert look.content.roots == (successor.certificate,)
    assert alpha.import_bundle(last).withdrawn == (beta.root.sha256,)
    assert alpha.trusts() == {successor.sha256}

    woken = sleeper.import_bundle(last)  # it has never seen the bundle between, and a link certificate leads it there
    assert not woken.first
    assert sleeper.trusts() == {successor.sha256}


def test_a_crl_is_of_the_root_and_not_of_a_link(console: NewConsole) -> None:
    """A link has the root's name and key, and is newer: the matrix and the list of CRLs look at the root."""
    alpha, beta = console("Alpha"), console("Beta")
    alpha.meets(beta)
    steps.prepare(beta.store, steps.begin(beta.store, beta.root), NewKey())
    alpha.import_bundle(beta.bundle())
    for root in beta.store.snapshot().roots_of(beta.root.state or 0):
        taken = import_crl(alpha.store, publish_crl(beta.store, root).der)
        assert alpha.store.certificate(taken.issuer).sha256 == root.sha256


def test_a_peer_that_missed_two_rotations_catches_up(console: NewConsole) -> None:
    alpha, beta = console("Alpha"), console("Beta")
    alpha.meets(beta)
    root = beta.root
    for _ in range(2):
        rotation = steps.prepare(beta.store, steps.begin(beta.store, root), NewKey())
        steps.finish(beta.store, steps.switch(beta.store, rotation, wait_for_peers=False), wait_for_overlap=False)
        assert rotation.successor is not None
        root = beta.store.snapshot().certificate_by_id[rotation.successor]
    content = inspect_bundle(beta.bundle()).content
    assert content.roots == (root.certificate,)
    assert len(content.links) == 4
    assert not alpha.import_bundle(beta.bundle()).first
    assert alpha.trusts() == {root.sha256}


def test_links_of_other_roots_are_not_exported(console: NewConsole) -> None:
    beta = console("Beta")
    links = link_certificates(new_authority("Beta Root CA"), new_authority("Beta Root CA"))
    with beta.store.change() as change:
        for link in links:
            change.add_certificate(
                link, state=beta.state.id, profile=CertificateProfile.INTERMEDIATE, origin=Origin.LINK
            )
    assert inspect_bundle(beta.bundle()).content.links == ()


def test_an_unknown_signer_cannot_rotate_a_root(console: NewConsole) -> None:
    alpha, beta, mallory = console("Alpha"), console("Beta"), console("Mallory")
    alpha.meets(beta)
    with mallory.store.change() as change:
        change.update_state(mallory.state.id, name="Beta")
    rotation = steps.prepare(mallory.store, steps.begin(mallory.store, mallory.root), NewKey())
    assert rotation.successor is not None
    forged = replace(mallory, state=replace(mallory.state, name="Beta")).bundle()
    with pytest.raises(BadInput, match="an unknown issuer"):
        alpha.import_bundle(forged, grouped(mallory.root.sha256))
    assert alpha.trusts() == {beta.root.sha256}
