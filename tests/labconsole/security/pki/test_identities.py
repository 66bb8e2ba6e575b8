"""Identities by name, as files that TLS takes: chain, trust, key and where its passphrase comes from."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import UserError
from labconsole.security.identities import load_certificates, load_identity
from labconsole.security.pki.identities import NamedIdentities, names
from labconsole.security.pki.keys import make_key
from labconsole.security.pki.records import Origin, TokenKey, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.issuing import Issuer, issue, issue_root, link_certificates
from labconsole.security.x509.key_types import KeyType, generate
from tests.labconsole.security.pki.pki_lab import VALID, OwnState, issue_for, named


def test_no_names_without_a_database(tmp_path: Path) -> None:
    assert names(tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


def test_certificate_with_its_intermediates_key_and_all_that_its_state_trusts(store: PkiStore) -> None:
    alpha, beta = OwnState(store, "Alpha"), OwnState(store, "Beta")
    middle, end = make_key(store.directory, KeyType.P_256), make_key(store.directory, KeyType.P_256)
    middle_certificate = issue(
        beta.issuer, middle.private.public_key(), named("Beta CA 2"), [], CertificateProfile.INTERMEDIATE, VALID
    )
    issuer = Issuer(middle_certificate, middle.private, (beta.root.certificate,))
    certificate = issue_for(issuer, end.private, "alpha-client")
    with store.change() as change:
        change.add_key(alpha.state.id, "client", end.private.public_key(), end.place)
        change.add_certificate(middle_certificate, origin=Origin.ISSUED, state=beta.state.id)
        record = change.add_certificate(certificate, origin=Origin.ISSUED)
        change.name_identity("Ālpha → Beta", record.id)
        change.trust(alpha.state.id, beta.root.id, TrustKind.ROOT, "by the test")
        change.trust(beta.state.id, record.id, TrustKind.PIN, "by the test")
    assert names(store.directory) == ("Ālpha → Beta",)
    files = NamedIdentities(store.directory).files("Ālpha → Beta")
    identity = load_identity(files, "the client")
    assert identity.certificate == certificate
    assert identity.chain == (middle_certificate,)
    assert identity.private_key.public_key() == certificate.public_key()
    assert files.trust is not None
    assert load_certificates(files.trust) == [alpha.root.certificate, beta.root.certificate]
    verify = ["openssl", "verify", "-x509_strict", "-trusted", files.trust, "-untrusted", files.certificate]
    subprocess.run([*verify, files.certificate], check=True, capture_output=True)
    assert NamedIdentities(store.directory).files("Ālpha → Beta") == files


def test_files_of_a_trial_that_runs_stay_as_they_are(store: PkiStore) -> None:
    own = OwnState(store, "Alpha")
    first, second = own.issued("first"), own.issued("second")
    with store.change() as change:
        change.name_identity("gate", first.id)
    before = NamedIdentities(store.directory).files("gate")
    content = before.certificate.read_bytes()
    with store.change() as change:
        change.name_identity("gate", second.id)
    after = NamedIdentities(store.directory).files("gate")
    assert before.certificate.read_bytes() == content
    assert load_certificates(after.certificate) == [second.certificate]
    assert after.trust == before.trust


def test_a_pinned_certificate_is_among_the_trusted_ones(store: PkiStore) -> None:
    own, other = OwnState(store, "Alpha"), OwnState(store, "Beta")
    record, pinned = own.issued("end"), other.issued("pinned")
    with store.change() as change:
        change.name_identity("end", record.id)
        change.trust(own.state.id, pinned.id, TrustKind.PIN, "by the test")
    trust = NamedIdentities(store.directory).files("end").trust
    assert trust is not None
    assert load_certificates(trust) == [own.root.certificate, pinned.certificate]
    with store.change() as change:
        change.revoke(pinned.id, x509.ReasonFlags.key_compromise)
    trust = NamedIdentities(store.directory).files("end").trust
    assert trust is not None
    assert load_certificates(trust) == [own.root.certificate]


def test_a_missing_name_and_a_key_in_a_token_are_reported(store: PkiStore) -> None:
    own = OwnState(store, "Alpha")
    record = own.issued("end")
    key = generate(KeyType.P_256)
    with store.change() as change:
        change.name_identity("end", record.id)
        change.add_key(own.state.id, "in token", key.public_key(), TokenKey("hsm", "end"))
        in_token = change.add_certificate(issue_for(own.issuer, key, "in token"), origin=Origin.ISSUED)
        change.name_identity("hsm-end", in_token.id)
    with pytest.raises(UserError, match="There is no identity gate: choose one of end, hsm-end"):
        NamedIdentities(store.directory).files("gate")
    with pytest.raises(UserError, match="is in a token, and TLS needs a key file"):
        NamedIdentities(store.directory).files("hsm-end")


def test_a_revoked_certificate_cannot_connect_by_its_name(store: PkiStore) -> None:
    own, other = OwnState(store, "Alpha"), OwnState(store, "Beta")
    here, there = own.issued("here"), other.issued("there")
    crl = issue_crl(
        other.issuer,
        [Revoked(there.certificate.serial_number, VALID.not_before, x509.ReasonFlags.superseded)],
        1,
        VALID,
    )
    with store.change() as change:
        change.name_identity("here", here.id)
        change.name_identity("there", there.id)
    assert NamedIdentities(store.directory).files("here") and NamedIdentities(store.directory).files("there")
    with store.change() as change:
        change.revoke(here.id, x509.ReasonFlags.key_compromise)
        change.add_crl(crl, other.root.id)
    with pytest.raises(UserError, match=r"identity here is of no use. Revoked on .* Give its name to another"):
        NamedIdentities(store.directory).files("here")
    with pytest.raises(UserError, match=r"identity there is of no use. .*revoked"):
        NamedIdentities(store.directory).files("there")


def test_during_a_rotation_a_state_that_trusts_one_root_accepts_certificates_of_the_other(
    store: PkiStore, tmp_path: Path
) -> None:
    own = OwnState(store, "Alpha")
    made = make_key(store.directory, KeyType.P_256)
    new = Issuer(issue_root(made.private, named("Alpha Root CA"), VALID), made.private)
    end = make_key(store.directory, KeyType.P_256)
    with store.change() as change:
        change.add_key(own.state.id, "new root", made.private.public_key(), made.place)
        change.add_certificate(new.certificate, origin=Origin.SELF_SIGNED, profile=CertificateProfile.ROOT)
        for link in link_certificates(own.issuer, new):
            change.add_certificate(link, origin=Origin.LINK, state=own.state.id)
        change.add_key(own.state.id, "end", end.private.public_key(), end.place)
        of_new = change.add_certificate(issue_for(new, end.private, "of new"), origin=Origin.ISSUED)
        change.name_identity("of new", of_new.id)
    of_old = own.issued("of old")
    with store.change() as change:
        change.name_identity("of old", of_old.id)
    for name in ("of new", "of old"):
        certificate = NamedIdentities(store.directory).files(name).certificate
        for root in (own.root.certificate, new.certificate):
            trust = tmp_path / "trust.pem"
            trust.write_bytes(root.public_bytes(Encoding.PEM))
            verify = ["openssl", "verify", "-x509_strict", "-trusted", trust, "-untrusted", certificate, certificate]
            subprocess.run(verify, check=True, capture_output=True)
    later = VALID.not_after + timedelta(days=1)
    assert store.snapshot().presented_chain(of_old, later) == ()
