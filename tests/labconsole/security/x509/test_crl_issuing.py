"""CRLs: their contents, and that openssl refuses the certificates that they list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import BadInput
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.signatures import crl_signed_by
from labconsole.security.x509.validation.validator import validate
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named, new_authority
from tests.helpers.openssl_command import OpensslError, run_openssl
from tests.helpers.pkilint_errors import crl_errors
from tests.helpers.x509_keys import key_of

WEEK = Validity.for_days(7)
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
REASON = x509.ReasonFlags.key_compromise
HOST = [x509.DNSName("broker.example.sg")]


@pytest.fixture(scope="module")
def root() -> Issuer:
    return new_authority("State A Root")


def test_openssl_refuses_the_listed_certificate_only(root: Issuer, tmp_path: Path) -> None:
    public_key = key_of(KeyType.P_256).public_key()
    good, bad = (
        issue(root, public_key, named(f"CN={name}"), HOST, CertificateProfile.TLS_SERVER, WEEK) for name in "ab"
    )
    crl = issue_crl(root, [Revoked(bad.serial_number, AT, REASON)], 1, WEEK)
    files = {name: tmp_path / name for name in ("root", "good", "bad", "crl")}
    for file, made in zip(files.values(), (root.certificate, good, bad, crl), strict=True):
        file.write_bytes(made.public_bytes(Encoding.PEM))
    check = ("verify", "-crl_check", "-CAfile", files["root"], "-CRLfile", files["crl"])
    run_openssl(*check, files["good"])
    with pytest.raises(OpensslError, match="certificate revoked"):
        run_openssl(*check, files["bad"])


def test_crl_contents(root: Issuer) -> None:
    crl = issue_crl(root, [Revoked(5, AT, REASON), Revoked(6, AT, x509.ReasonFlags.unspecified)], 1 << 158, WEEK)
    assert crl_errors(crl) == []
    assert (crl.last_update_utc, crl.next_update_utc) == (WEEK.not_before, WEEK.not_after)
    assert crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number == 1 << 158
    authority = crl.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    own = root.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert authority.key_identifier == own.digest
    compromised, unspecified = crl
    assert (compromised.serial_number, compromised.revocation_date_utc) == (5, AT)
    assert next(iter(compromised.extensions)).value == x509.CRLReason(REASON)
    assert not list(unspecified.extensions)


def test_an_empty_crl_is_issued(root: Issuer) -> None:
    crl = issue_crl(root, [], 0, WEEK)
    assert crl_errors(crl) == []
    assert not list(crl)


def test_an_invalid_crl_is_not_issued(root: Issuer) -> None:
    key = key_of(KeyType.P_256)
    end = issue(root, key.public_key(), named("CN=x"), HOST, CertificateProfile.TLS_SERVER, WEEK)
    for issuer, revoked, number, said in (
        (Issuer(end, key), [], 1, "may not sign CRLs"),
        (root, [], -1, "cannot be the number"),
        (root, [], 1 << 159, "cannot be the number"),
        (root, [Revoked(5, AT, REASON)] * 2, 1, "twice"),
        (root, [Revoked(5, AT, x509.ReasonFlags.remove_from_crl)], 1, "delta CRLs only"),
    ):
        with pytest.raises(BadInput, match=said):
            issue_crl(issuer, revoked, number, WEEK)


def test_no_entry_is_revoked_after_this_update(root: Issuer) -> None:
    """RFC 5280, 5.1.2.4 and 5.3.2 as zlint reads them; revocation dates have whole seconds."""
    at = datetime.now(UTC).replace(microsecond=700_000)
    crl = issue_crl(root, [Revoked(5, at, REASON), Revoked(6, at - timedelta(days=3), REASON)], 1, WEEK)
    assert crl.last_update_utc == at.replace(microsecond=0) == max(one.revocation_date_utc for one in crl)
    assert crl_errors(crl) == []


@pytest.mark.parametrize(("minutes", "accepted"), [(4, True), (6, False)])
def test_the_clock_of_a_ca_may_be_five_minutes_ahead(root: Issuer, minutes: int, accepted: bool) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    begins = now + timedelta(minutes=minutes)
    crl = issue_crl(root, [], 1, Validity(begins, begins + timedelta(days=1)))
    leaf = issue(root, key_of(KeyType.P_256).public_key(), named("CN=a"), HOST, CertificateProfile.TLS_SERVER, WEEK)
    judged = validate(leaf, [], [root.certificate], [crl], at=now, crls_required=True)
    assert judged.accepted is accepted, judged.why


def test_a_crl_is_of_the_ca_that_it_names_and_whose_key_signed_it(root: Issuer) -> None:
    other, namesake = new_authority("State B Root"), new_authority("State A Root")
    same_key = Issuer(issue_root(root.key, other.certificate.subject, WEEK), root.key)
    crl = issue_crl(root, [], 1, WEEK)
    assert crl_signed_by(crl, root.certificate)
    for stranger in (other, namesake, same_key):
        assert not crl_signed_by(crl, stranger.certificate)
