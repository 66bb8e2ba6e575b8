"""The status of certificates in the eyes of the States, with its cause."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from labconsole.security.certificate_status import Status, StatusKind, all_statuses, status_of, status_of_received
from labconsole.security.pki.change import Change
from labconsole.security.pki.records import CertificateRecord, Origin, State, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.issuing import Issuer, issue, make_self_signed
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named, new_authority
from tests.helpers.x509_keys import key_of

NOW = datetime.now(UTC).replace(microsecond=0)
YEAR = Validity.for_days(365)
KEY = key_of(KeyType.P_256)


class Lab:
    """A and B are here, C is remote and has a root, an intermediate and a client; no State trusts C yet."""

    def __init__(self, store: PkiStore) -> None:
        self.store = store
        self.root = new_authority("State C Root", Validity.for_days(800))
        ca_key = key_of(KeyType.P_384)
        between = issue(
            self.root, ca_key.public_key(), named("CN=State C CA"), (), CertificateProfile.INTERMEDIATE, YEAR
        )
        self.between = Issuer(between, ca_key, (self.root.certificate,))
        with store.change() as change:
            self.a, self.b = (change.add_state(f"State {name}") for name in "AB")
            self.c = change.add_state("State C", local=False)
            self.root_record = _added(change, self.root.certificate, self.c, CertificateProfile.ROOT)
            self.between_record = _added(change, between, self.c, CertificateProfile.INTERMEDIATE)
            self.client = _added(change, self.issued(YEAR), self.c, CertificateProfile.TLS_CLIENT)

    def issued(self, validity: Validity) -> x509.Certificate:
        """A client certificate of C's intermediate."""
        return issue(self.between, KEY.public_key(), named("CN=client"), (), CertificateProfile.TLS_CLIENT, validity)

    def trust(self, state: State, record: CertificateRecord, kind: TrustKind = TrustKind.ROOT) -> int:
        """Let `state` trust it; the number of its row."""
        with self.store.change() as change:
            return change.trust(state.id, record.id, kind, "test").id

    def publish(self, issuer: Issuer, record: CertificateRecord, *revoked: x509.Certificate, days: int = 7) -> None:
        """Import a CRL of `issuer`, which was made ten days ago if it is out of date."""
        validity = Validity(NOW - timedelta(days=10), NOW + timedelta(days=days))
        entries = [Revoked(one.serial_number, NOW, x509.ReasonFlags.unspecified) for one in revoked]
        with self.store.change() as change:
            number = len(change.snapshot().crls) + 1
            change.add_crl(issue_crl(issuer, entries, number, validity), record.id)

    def status(self, record: CertificateRecord, observer: State | None = None, at: datetime = NOW) -> Status:
        """Status as the database has it now; the same one by one and all at once."""
        snapshot = self.store.snapshot()
        seen_by = None if observer is None else observer.id
        one = status_of(snapshot.certificate_by_id[record.id], snapshot, at, seen_by)
        assert all_statuses(snapshot, at, seen_by)[record.id] == one
        return one


def _added(
    change: Change, certificate: x509.Certificate, state: State, profile: CertificateProfile
) -> CertificateRecord:
    return change.add_certificate(certificate, state=state.id, profile=profile, origin=Origin.IMPORTED)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A database with three States."""
    with PkiStore.open(tmp_path / "pki") as store:
        yield Lab(store)


def test_certificate_is_untrusted_until_a_state_trusts_its_root(lab: Lab) -> None:
    before = lab.status(lab.client)
    lab.trust(lab.a, lab.root_record)

    assert before.kind is StatusKind.UNTRUSTED
    assert before.cause.startswith("State C Root is not trusted by State A or State B. ")
    assert lab.status(lab.client).kind is StatusKind.VALID
    assert lab.status(lab.client, lab.a).kind is StatusKind.VALID
    assert lab.status(lab.client, lab.b).kind is StatusKind.UNTRUSTED
    assert lab.status(lab.client, lab.b).cause.startswith("State C Root is not trusted by State B. ")


def test_unknown_revocation_is_reported(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    assert "there is no CRL of CN=State C CA and CN=State C Root" in lab.status(lab.client).cause

    lab.publish(lab.between, lab.between_record)
    lab.publish(lab.root, lab.root_record)
    end = f"{lab.client.certificate.not_valid_after_utc:%Y-%m-%d}"
    assert lab.status(lab.client).cause == f"Valid until {end}. cryptography and OpenSSL both accept it."


def test_trust_that_was_withdrawn_is_named(lab: Lab) -> None:
    row = lab.trust(lab.a, lab.root_record)
    with lab.store.change() as change:
        change.withdraw_trust(row)

    status = lab.status(lab.client)

    assert status.kind is StatusKind.UNTRUSTED
    assert status.cause.startswith(f"State A withdrew its trust in State C Root on {datetime.now(UTC):%Y-%m-%d}. ")


def test_a_pin_holds_for_one_certificate_alone(lab: Lab) -> None:
    made = make_self_signed(KEY, named("CN=pinned"), (), CertificateProfile.TLS_CLIENT, YEAR)
    with lab.store.change() as change:
        pinned = _added(change, made, lab.c, CertificateProfile.TLS_CLIENT)
    assert lab.status(pinned).kind is StatusKind.UNTRUSTED

    lab.trust(lab.a, pinned, TrustKind.PIN)
    assert lab.status(pinned).kind is StatusKind.VALID
    assert "It is pinned by its fingerprint." in lab.status(pinned).cause
    assert lab.status(lab.client).kind is StatusKind.UNTRUSTED


def test_a_crl_of_a_peer_revokes_the_end_and_the_ca(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    lab.publish(lab.between, lab.between_record, lab.client.certificate)

    assert lab.status(lab.client).kind is StatusKind.REVOKED
    assert "client: certificate revoked" in lab.status(lab.client).cause
    assert lab.status(lab.between_record).kind is StatusKind.VALID

    lab.publish(lab.root, lab.root_record, lab.between.certificate)
    assert lab.status(lab.between_record).kind is StatusKind.REVOKED


def test_the_newest_crl_counts(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    lab.publish(lab.between, lab.between_record)
    lab.publish(lab.between, lab.between_record, lab.client.certificate)

    assert lab.status(lab.client).kind is StatusKind.REVOKED


def test_an_own_revocation_counts_before_any_crl_says_so(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    with lab.store.change() as change:
        change.revoke(lab.between_record.id, x509.ReasonFlags.ca_compromise)

    assert lab.status(lab.between_record).kind is StatusKind.REVOKED
    assert "(cACompromise)" in lab.status(lab.between_record).cause
    assert lab.status(lab.client).kind is StatusKind.REVOKED
    assert lab.status(lab.client).cause == "State C CA, through which it is trusted, was revoked."


def test_a_crl_that_is_overdue_refuses_and_says_so(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    lab.publish(lab.between, lab.between_record, days=-1)

    status = lab.status(lab.client)

    assert status.kind is StatusKind.UNTRUSTED
    assert "CRL has expired, so publish or import its issuer's newer one" in status.cause


@pytest.mark.parametrize(
    ("days_left", "kind", "notice"),
    [
        (364, StatusKind.VALID, None),
        (91, StatusKind.VALID, None),
        (90, StatusKind.EXPIRING, 90),
        (30, StatusKind.EXPIRING, 30),
        (7, StatusKind.EXPIRING, 7),
        (0, StatusKind.EXPIRING, 7),
        (-1, StatusKind.EXPIRED, None),
        (366, StatusKind.NOT_YET_VALID, None),
    ],
)
def test_expiry_notice_comes_90_30_and_7_days_ahead(
    lab: Lab, days_left: int, kind: StatusKind, notice: int | None
) -> None:
    lab.trust(lab.a, lab.root_record)
    at = lab.client.certificate.not_valid_after_utc - timedelta(days=days_left)

    status = lab.status(lab.client, at=at)

    assert (status.kind, status.notice) == (kind, notice)
    assert status.cause.endswith(".")


def test_an_unknown_issuer_is_distinguished_from_an_untrusted_root(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    outsider = new_authority("State D Root")
    made = issue(outsider, KEY.public_key(), named("CN=d"), (), CertificateProfile.TLS_CLIENT, Validity.for_days(9))
    with lab.store.change() as change:
        record = _added(change, made, lab.c, CertificateProfile.TLS_CLIENT)

    assert lab.status(record).kind is StatusKind.UNTRUSTED
    assert lab.status(record).cause.startswith("The issuer of d is not known: import its certificate. ")


def _received(
    lab: Lab,
    certificate: x509.Certificate,
    *further: x509.Certificate,
    observer: State | None = None,
    at: datetime = NOW,
) -> tuple[StatusKind, State | None]:
    snapshot = lab.store.snapshot()
    status, state = status_of_received(certificate, further, snapshot, at, None if observer is None else observer.id)
    return status.kind, state


def test_a_received_certificate_is_judged_by_its_path(lab: Lab) -> None:
    received = lab.issued(YEAR)
    assert _received(lab, received) == (StatusKind.UNTRUSTED, None)
    lab.trust(lab.a, lab.root_record)
    assert _received(lab, received) == (StatusKind.VALID, lab.c)
    assert _received(lab, received, observer=lab.b)[0] is StatusKind.UNTRUSTED
    assert _received(lab, received, at=NOW + timedelta(days=400))[0] is StatusKind.EXPIRED
    assert _received(lab, received, at=NOW - timedelta(days=2))[0] is StatusKind.NOT_YET_VALID
    lab.publish(lab.between, lab.between_record, received)
    assert _received(lab, received)[0] is StatusKind.REVOKED


def test_a_received_certificate_may_bring_its_intermediate_but_no_root(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    other = new_authority("State C Root", Validity.for_days(800))
    ca_key = key_of(KeyType.P_256)
    profile = CertificateProfile.INTERMEDIATE
    brought = issue(lab.root, ca_key.public_key(), named("CN=another CA"), (), profile, YEAR)
    forged = issue(other, ca_key.public_key(), named("CN=another CA"), (), profile, YEAR)
    for certificate, root, expected in (
        (brought, lab.root.certificate, (StatusKind.VALID, lab.c)),
        (forged, other.certificate, (StatusKind.UNTRUSTED, None)),
    ):
        issuer = Issuer(certificate, ca_key, (root,))
        leaf = issue(issuer, KEY.public_key(), named("CN=leaf"), (), CertificateProfile.MESSAGE_SIGNING, YEAR)
        assert _received(lab, leaf, certificate, root) == expected
        assert _received(lab, leaf)[0] is StatusKind.UNTRUSTED


def test_a_received_certificate_that_is_known_has_the_revocation_of_its_record(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    assert _received(lab, lab.client.certificate) == (StatusKind.VALID, lab.c)
    with lab.store.change() as change:
        change.revoke(lab.client.id, x509.ReasonFlags.key_compromise)
    assert _received(lab, lab.client.certificate) == (StatusKind.REVOKED, lab.c)


def test_a_received_certificate_under_a_revoked_intermediate_is_revoked(lab: Lab) -> None:
    lab.trust(lab.a, lab.root_record)
    with lab.store.change() as change:
        change.revoke(lab.between_record.id, x509.ReasonFlags.ca_compromise)
    assert _received(lab, lab.issued(YEAR)) == (StatusKind.REVOKED, lab.c)
