"""Bundles of a State that is trusted for itself, and claims to be another one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from labconsole.errors import BadInput
from labconsole.security.pki.records import TrustKind
from labconsole.security.x509 import cms
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import fingerprint, grouped
from labconsole.security.x509.issuing import Issuer, cross_certificate, issue, issue_root, link_certificates
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import general_name_from_text, name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.authorities import create_intermediate, create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import make_request
from labconsole_certificates.operations.received_csrs import approve
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.trust.bundle_format import BundleContent, encode
from labconsole_certificates.trust.roots_and_pins import trust_root
from tests.labconsole_certificates.trust.conftest import Console, NewConsole

_NOW = datetime.now(UTC).replace(microsecond=0)
_VALID = Validity.for_days(300)


def _root(name: str) -> Issuer:
    key = generate(KeyType.P_256)
    return Issuer(issue_root(key, name_from_text(f"CN={name} Root,O={name}"), Validity.for_days(1000)), key)


def _content(state: str, root: Issuer) -> BundleContent:
    return BundleContent(
        state=state,
        domain="",
        sequence=1,
        made=_NOW,
        next_update=_NOW + timedelta(days=30),
        roots=(root.certificate,),
        intermediates=(),
        links=(),
        crls=(),
        trusted=(),
    )


def _bundle(state: str, root: Issuer, **changed: object) -> bytes:
    """The bundle of `state` that `root` signs, its only root if nothing else is said."""
    content = _content(state, root)
    return cms.sign(encode(replace(content, **changed)), root.certificate, root.key)  # type: ignore[arg-type]


def _typed(root: Issuer) -> str:
    return grouped(fingerprint(root.certificate))


@pytest.fixture
def alpha(console: NewConsole) -> Console:
    return console("Alpha")


@pytest.fixture
def beta(alpha: Console) -> Issuer:
    """The root of Beta, which Alpha trusts."""
    root = _root("Beta")
    alpha.import_bundle(_bundle("Beta", root), _typed(root))
    return root


def test_a_ca_below_a_root_does_not_become_a_root(alpha: Console, beta: Issuer) -> None:
    """Beta limits a CA to a domain; shown as a link, its certificate would set the CA free of that."""
    key = generate(KeyType.P_256)
    name = name_from_text("CN=Office of Beta")
    limits = [general_name_from_text("office.beta.example")]
    below = issue(beta, key.public_key(), name, (), CertificateProfile.INTERMEDIATE, _VALID, name_constraints=limits)
    alone = Issuer(issue_root(key, name, Validity.for_days(1000)), key)
    with pytest.raises(BadInput, match="not a link certificate"):
        alpha.import_bundle(_bundle("Beta", alone, sequence=2, links=(below,)))
    assert alpha.trusts() == {fingerprint(beta.certificate)}


def test_a_ca_that_a_state_has_cross_certified_does_not_speak_for_it(alpha: Console, beta: Issuer) -> None:
    gamma = _root("Gamma")
    cross = cross_certificate(beta, gamma.certificate, _VALID)
    with pytest.raises(BadInput, match="not a link certificate"):
        alpha.import_bundle(_bundle("Beta", gamma, sequence=2, links=(cross,)))
    assert alpha.trusts() == {fingerprint(beta.certificate)}


def test_no_bundle_brings_a_state_of_this_console_a_root(alpha: Console) -> None:
    state = add_state(alpha.store, "Delta")
    own = create_root(alpha.store, state, NewKey())
    forged = _root("Delta")
    with pytest.raises(BadInput, match="has no such key"):
        alpha.import_bundle(_bundle("Delta", forged), _typed(forged))
    assert alpha.store.snapshot().trusted_by(state.id, TrustKind.ROOT) == (own,)


def test_a_root_with_the_name_of_another_state_s_ca_is_refused(alpha: Console, beta: Issuer) -> None:
    """CRLs are distinguished by the name of their CA: with a namesake, Gamma could have Beta's certificates refused."""
    gamma, namesake = _root("Gamma"), _root("Beta")
    roots = (gamma.certificate, namesake.certificate)
    with pytest.raises(BadInput, match="has the name of a CA of Beta"):
        alpha.import_bundle(_bundle("Gamma", gamma, roots=roots), _typed(gamma))
    assert alpha.trusts() == {fingerprint(beta.certificate)}
    alpha.import_bundle(_bundle("Gamma", gamma), _typed(gamma))


def test_a_foreign_cross_certificate_is_not_used_in_own_chains(alpha: Console, beta: Issuer) -> None:
    below = create_intermediate(alpha.store, alpha.root, alpha.state, NewKey())
    request = make_request(alpha.store, alpha.state, alpha.state, NewKey(), CertificateProfile.TLS_CLIENT)
    leaf = approve(alpha.store, request, authority=below)
    cross = cross_certificate(beta, below.certificate, _VALID)
    alpha.import_bundle(_bundle("Beta", beta, sequence=2, intermediates=(cross,)))
    assert len(alpha.store.snapshot().issuers_of(leaf)) == 2
    assert alpha.store.snapshot().chain_of(leaf) == (below, alpha.root)


def test_a_retired_root_is_not_restored_by_a_link(alpha: Console, beta: Issuer) -> None:
    """The newer root has certified the older one's key until that would have run out; by then it may be stolen."""
    newer = _root("Beta")
    links = link_certificates(beta, newer)
    alpha.import_bundle(_bundle("Beta", newer, sequence=2, links=links))
    assert alpha.trusts() == {fingerprint(newer.certificate)}
    with pytest.raises(BadInput, match="an unknown issuer"):
        alpha.import_bundle(_bundle("Beta", beta, sequence=3, links=links))
    assert alpha.trusts() == {fingerprint(newer.certificate)}


def test_no_bundle_alone_restores_withdrawn_trust(alpha: Console, beta: Issuer) -> None:
    other = _root("Beta")
    both = (beta.certificate, other.certificate)
    alpha.import_bundle(_bundle("Beta", beta, sequence=2, roots=both))
    snapshot = alpha.store.snapshot()
    [row] = [each for each in snapshot.trust if snapshot.certificate_by_id[each.certificate].certificate == both[1]]
    with alpha.store.change() as change:
        change.withdraw_trust(row.id)
    taken = alpha.import_bundle(_bundle("Beta", beta, sequence=3, roots=both))
    assert alpha.trusts() == {fingerprint(beta.certificate)}
    assert "Its trust in one root stays withdrawn" in taken.sentence()
    record = alpha.store.snapshot().certificate_by_sha256[fingerprint(other.certificate)]
    trust_root(alpha.store, alpha.state, record, _typed(other))
    assert "stays withdrawn" not in alpha.import_bundle(_bundle("Beta", other, sequence=4, roots=both)).sentence()


def test_blanks_make_no_other_state(alpha: Console, beta: Issuer) -> None:
    forged = _root("Other")
    for name in ("Beta ", " beta", "Ｂｅｔａ"):
        with pytest.raises(BadInput, match="an unknown issuer"):
            alpha.import_bundle(_bundle(name, forged, sequence=2), _typed(forged))


@pytest.mark.parametrize("made", ["00000101000000Z", "00010101000000Z", "20261321000000Z", "2026112100000.Z"])
def test_times_that_no_clock_shows_are_refused(alpha: Console, made: str) -> None:
    root = _root("Gamma")
    content = _content("Gamma", root)
    encoded = encode(content)
    time = f"{content.made:%Y%m%d%H%M%S}Z".encode()
    data = cms.sign(encoded.replace(time, made.encode()), root.certificate, root.key)
    with pytest.raises(BadInput, match=r"none that a clock shows|is not a trust bundle"):
        alpha.import_bundle(data, _typed(root))
