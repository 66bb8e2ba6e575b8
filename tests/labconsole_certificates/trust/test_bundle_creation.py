"""The contents of a State's bundle: its valid CA certificates, the newest CRLs, and the States that it trusts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.records import CertificateRecord, Origin, TokenKey
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import fingerprint, grouped
from labconsole.security.x509.issuing import Issuer, cross_certificate, issue_root
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.authorities import create_intermediate
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.revocation.crl_operations import publish_crl
from labconsole_certificates.rotation import steps
from labconsole_certificates.trust.bundle_format import BundleContent
from labconsole_certificates.trust.bundle_inspection import BundleInspection, inspect_bundle
from tests.labconsole_certificates.trust.conftest import Console, NewConsole

_NOW = datetime.now(UTC).replace(microsecond=0)


def _inspection(console: Console) -> BundleInspection:
    return inspect_bundle(console.bundle())


def _content(console: Console) -> BundleContent:
    return _inspection(console).content


def _further_root(console: Console, validity: Validity) -> CertificateRecord:
    key = generate(KeyType.P_256)
    root = issue_root(key, name_from_text("CN=Further Root"), validity)
    with console.store.change() as change:
        change.add_key(console.state.id, "further", key.public_key(), TokenKey("office", "further"))
        return change.add_certificate(
            root, state=console.state.id, profile=CertificateProfile.ROOT, origin=Origin.IMPORTED
        )


def test_numbers_go_up_and_say_until_when(console: NewConsole) -> None:
    alpha = console("Alpha")
    first, second = _content(alpha), inspect_bundle(alpha.bundle(days=3)).content
    assert (first.sequence, second.sequence) == (1, 2)
    assert second.next_update - second.made == timedelta(days=3)
    assert (first.state, first.domain, first.trusted) == ("Alpha", "alpha.example", (alpha.root.sha256,))


def test_a_bundle_holds_only_unexpired_roots(console: NewConsole) -> None:
    alpha = console("Alpha")
    _further_root(alpha, Validity(_NOW - timedelta(days=9), _NOW - timedelta(days=1)))
    holds = _further_root(alpha, Validity.for_days(9))
    assert set(_content(alpha).roots) == {alpha.root.certificate, holds.certificate}


def test_the_oldest_published_root_signs_the_bundle(console: NewConsole) -> None:
    alpha = console("Alpha")
    rotation = steps.prepare(alpha.store, steps.begin(alpha.store, alpha.root), NewKey())
    look = _inspection(alpha)
    assert look.fingerprint == alpha.root.sha256
    assert len(look.content.roots) == 2
    assert len(look.content.links) == 2
    steps.finish(alpha.store, steps.switch(alpha.store, rotation), wait_for_overlap=False)
    look = _inspection(alpha)
    assert look.content.roots == (look.signer,)
    assert look.fingerprint != alpha.root.sha256


def test_own_intermediates_are_in_it_and_those_for_others_are_not(console: NewConsole) -> None:
    alpha, beta = console("Alpha"), console("Beta")
    own = create_intermediate(alpha.store, alpha.root, alpha.state, NewKey())
    with alpha.store.change() as change:
        other = change.add_state("Gamma")
    create_intermediate(alpha.store, alpha.root, other, NewKey())
    with opened_key(beta.store.directory, beta.store.snapshot().keys[0]) as key:
        cross = cross_certificate(Issuer(beta.root.certificate, key), alpha.root.certificate, Validity.for_days(9))
    with alpha.store.change() as change:  # by Beta: a peer with only Alpha's roots could not check it
        change.add_certificate(
            cross, state=alpha.state.id, profile=CertificateProfile.INTERMEDIATE, origin=Origin.IMPORTED
        )
    assert _content(alpha).intermediates == (own.certificate,)


def test_a_bundle_holds_the_newest_crl_of_each_ca(console: NewConsole) -> None:
    alpha, beta = console("Alpha"), console("Beta")
    intermediate = create_intermediate(alpha.store, alpha.root, alpha.state, NewKey())
    newest = []
    for authority in (alpha.root, intermediate):
        publish_crl(alpha.store, authority)
        newest.append(publish_crl(alpha.store, authority))
    assert {fingerprint(each) for each in _content(alpha).crls} == {each.sha256 for each in newest}
    beta.import_bundle(alpha.bundle(), grouped(alpha.root.sha256))
    assert sorted(each.sha256 for each in beta.store.snapshot().crls) == sorted(each.sha256 for each in newest)
