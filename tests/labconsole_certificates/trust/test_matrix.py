"""The State x State matrix: status and cause of each cell, from trust rows here and bundles of States elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from labconsole.security.pki.records import Origin, TokenKey, TrustKind
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.issuing import issue_root, make_self_signed
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.revocation.crl_operations import publish_crl
from labconsole_certificates.trust.matrix import Cell, CellStatus, matrix, trusted_by
from tests.labconsole_certificates.trust.conftest import Console, NewConsole


def _cell(console: Console, truster: str, trusted: str, days: float = 0) -> Cell:
    """What the console knows of it, so many days from now."""
    seen = matrix(console.store.snapshot(), datetime.now(UTC) + timedelta(days=days))
    ids = {state.name: state.id for state in seen.states}
    return seen.cells[ids[truster], ids[trusted]]


@pytest.fixture
def alpha(console: NewConsole) -> Console:
    return console("Alpha")


@pytest.fixture
def beta(console: NewConsole) -> Console:
    return console("Beta")


def test_a_state_trusts_itself(alpha: Console) -> None:
    cell = _cell(alpha, "Alpha", "Alpha")
    assert cell.status is CellStatus.OWN
    assert cell.until == alpha.root.certificate.not_valid_after_utc


def test_trust_is_valid_until_the_root_expires(alpha: Console, beta: Console) -> None:
    publish_crl(beta.store, beta.root, days=3650)
    alpha.import_bundle(beta.bundle(days=9000), grouped(beta.root.sha256))
    cell = _cell(alpha, "Alpha", "Beta")
    assert cell.status is CellStatus.TRUSTED
    assert cell.until == beta.root.certificate.not_valid_after_utc
    [crl] = alpha.store.snapshot().crls
    assert cell.last_crl == crl.this_update
    assert "valid until" in cell.cause
    assert _cell(alpha, "Alpha", "Beta", days=3559).status is CellStatus.TRUSTED
    expiring = _cell(alpha, "Alpha", "Beta", days=3570)
    assert expiring.status is CellStatus.EXPIRING
    assert "runs out on" in expiring.cause and "in 79 days" in expiring.cause
    assert _cell(alpha, "Alpha", "Beta", days=3651).status is CellStatus.EXPIRED
    assert _cell(alpha, "Alpha", "Beta", days=-1).status is CellStatus.NOT_YET_VALID


def test_a_bundle_or_crl_that_was_not_followed_makes_it_stale(alpha: Console, beta: Console) -> None:
    publish_crl(beta.store, beta.root, days=7)
    alpha.import_bundle(beta.bundle(days=30), grouped(beta.root.sha256))
    assert _cell(alpha, "Alpha", "Beta", days=6).status is CellStatus.TRUSTED
    crl = _cell(alpha, "Alpha", "Beta", days=8)
    assert (crl.status, "The CRL of" in crl.cause) == (CellStatus.STALE, True)
    bundle = _cell(alpha, "Alpha", "Beta", days=31)
    assert (bundle.status, "Bundle 1 of Beta" in bundle.cause) == (CellStatus.STALE, True)


def test_trust_of_a_remote_state_is_known_from_its_bundle(alpha: Console, beta: Console) -> None:
    alpha.meets(beta)
    unknown = _cell(alpha, "Beta", "Alpha")
    assert unknown.status is CellStatus.UNTRUSTED
    assert unknown.cause == "Bundle 1 of Beta lists no root of Alpha among those that it trusts."
    beta.meets(alpha)
    alpha.import_bundle(beta.bundle())
    assert _cell(alpha, "Beta", "Alpha").status is CellStatus.TRUSTED
    beta_id = next(state.id for state in alpha.store.snapshot().states if state.name == "Beta")
    assert trusted_by(alpha.store.snapshot(), beta_id) == {alpha.root.sha256, beta.root.sha256}
    assert _cell(beta, "Beta", "Alpha").status is CellStatus.TRUSTED


def test_trust_of_a_state_without_a_bundle_is_unknown(alpha: Console) -> None:
    with alpha.store.change() as change:
        change.add_state("Gamma", local=False)
    assert _cell(alpha, "Gamma", "Alpha").status is CellStatus.UNKNOWN
    missing = _cell(alpha, "Alpha", "Gamma")
    assert missing.status is CellStatus.UNTRUSTED
    assert "let it import the trust bundle of Gamma" in missing.cause


def test_withdrawn_trust_says_so(alpha: Console, beta: Console) -> None:
    alpha.meets(beta)
    with alpha.store.change() as change:
        [row] = change.snapshot().trust
        change.withdraw_trust(row.id)
    cell = _cell(alpha, "Alpha", "Beta")
    assert cell.status is CellStatus.UNTRUSTED
    assert "withdrew its trust" in cell.cause


def test_of_two_trusted_roots_the_longer_valid_one_counts(alpha: Console, beta: Console) -> None:
    key = generate(KeyType.P_256)
    short = issue_root(key, name_from_text("CN=Beta Old"), Validity.for_days(20))
    with beta.store.change() as change:
        change.add_key(beta.state.id, "old", key.public_key(), TokenKey("office", "old"))
        change.add_certificate(short, state=beta.state.id, profile=CertificateProfile.ROOT, origin=Origin.SELF_SIGNED)
    alpha.meets(beta)
    assert len(alpha.trusts()) == 2
    cell = _cell(alpha, "Alpha", "Beta")
    assert cell.status is CellStatus.TRUSTED
    assert cell.until == beta.root.certificate.not_valid_after_utc


def test_a_pin_counts_until_its_certificate_is_revoked(alpha: Console) -> None:
    key = generate(KeyType.P_256)
    name = x509.DNSName("client.gamma.example")
    pinned = make_self_signed(
        key, name_from_text("CN=client"), [name], CertificateProfile.TLS_CLIENT, Validity.for_days(200)
    )
    with alpha.store.change() as change:
        gamma = change.add_state("Gamma", local=False)
        record = change.add_certificate(
            pinned, state=gamma.id, profile=CertificateProfile.TLS_CLIENT, origin=Origin.IMPORTED
        )
        change.trust(alpha.state.id, record.id, TrustKind.PIN, "fingerprint typed")
    assert _cell(alpha, "Alpha", "Gamma").status is CellStatus.TRUSTED
    with alpha.store.change() as change:
        change.revoke(record.id, x509.ReasonFlags.key_compromise)
    assert _cell(alpha, "Alpha", "Gamma").status is CellStatus.REVOKED
