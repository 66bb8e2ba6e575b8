"""Cross and link certificates: through them, a peer that trusts one CA accepts what another one issued."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import BadInput
from labconsole.security.x509.certificate_profiles import CertificateProfile, profile_extensions
from labconsole.security.x509.crl_issuing import issue_crl
from labconsole.security.x509.issuing import Issuer, certify, cross_certificate, issue, issue_root, link_certificates
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named, new_authority
from tests.helpers.openssl_command import OpensslError, run_openssl
from tests.helpers.pkilint_errors import certificate_errors, chain_errors
from tests.helpers.x509_keys import key_of

MONTH = Validity.for_days(30)
HOST = [x509.DNSName("broker.b.example")]
CHECKED = ("verify", "-x509_strict", "-no-CAfile", "-no-CApath")


def end(issuer: Issuer) -> x509.Certificate:
    public_key = key_of(KeyType.P_256).public_key()
    return issue(issuer, public_key, named("CN=Broker"), HOST, CertificateProfile.TLS_SERVER, Validity.for_days(7))


def verify(folder: Path, trusted: x509.Certificate, between: x509.Certificate, leaf: x509.Certificate) -> str:
    for name, certificate in (("trusted", trusted), ("between", between), ("leaf", leaf)):
        (folder / name).write_bytes(certificate.public_bytes(Encoding.PEM))
    return run_openssl(*CHECKED, "-CAfile", folder / "trusted", "-untrusted", folder / "between", folder / "leaf")


@pytest.mark.parametrize("path_length", [None, 0])
@pytest.mark.parametrize(
    ("old_type", "new_type"), [(KeyType.RSA_2048, KeyType.P_256), (KeyType.P_384, KeyType.ED25519)]
)
def test_both_roots_lead_to_what_both_issued(
    old_type: KeyType, new_type: KeyType, path_length: int | None, tmp_path: Path
) -> None:
    """One name, two keys: neither link uses up any path length (RFC 5280, 6.1.4)."""
    name = named("CN=State B Root,C=SG")
    old, new = (
        Issuer(issue_root(key, name, Validity.for_days(days), path_length=path_length), key)
        for key, days in ((key_of(old_type), 60), (key_of(new_type), 600))
    )
    old_with_new, new_with_old = link_certificates(old, new)
    verify(tmp_path, new.certificate, old_with_new, end(old))
    verify(tmp_path, old.certificate, new_with_old, end(new))
    for link, issuer in ((old_with_new, new), (new_with_old, old)):
        assert certificate_errors(link) == []
        assert chain_errors(issuer.certificate, link) == []
        assert link.not_valid_after_utc == old.certificate.not_valid_after_utc
    assert old_with_new.not_valid_before_utc == old.certificate.not_valid_before_utc
    assert new_with_old.not_valid_before_utc == new.certificate.not_valid_before_utc
    with pytest.raises(OpensslError):
        verify(tmp_path, new.certificate, new_with_old, end(old))


def test_roots_that_never_hold_together_are_not_linked() -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    old = new_authority("Root", Validity(now - timedelta(days=60), now - timedelta(days=30)))
    with pytest.raises(BadInput, match="are never valid at the same time"):
        link_certificates(old, new_authority("Root"))


def test_another_state_is_certified_within_its_domain_only(tmp_path: Path) -> None:
    own, other = new_authority("State A Root"), new_authority("State B Root")
    limited = [x509.DNSName("b.example")]
    cross = cross_certificate(own, other.certificate, MONTH, name_constraints=limited, path_length=0)
    assert certificate_errors(cross) == []
    verify(tmp_path, own.certificate, cross, end(other))
    outside = issue(
        other,
        key_of(KeyType.P_256).public_key(),
        named("CN=x"),
        [x509.DNSName("broker.c.example")],
        CertificateProfile.TLS_SERVER,
        MONTH,
    )
    with pytest.raises(OpensslError, match="permitted subtree violation"):
        verify(tmp_path, own.certificate, cross, outside)


def test_a_cross_certificate_keeps_the_limits_and_identifier_of_the_other_ca() -> None:
    key = generate(KeyType.P_256)
    limits = [x509.DNSName("b.example")]
    other = issue_root(key, named("CN=B"), MONTH, path_length=0, name_constraints=limits)
    cross = cross_certificate(new_authority("A"), other, Validity.for_days(7))
    for type in (x509.NameConstraints, x509.BasicConstraints, x509.SubjectKeyIdentifier):
        assert cross.extensions.get_extension_for_class(type) == other.extensions.get_extension_for_class(type)


def test_a_ca_whose_key_identifier_is_made_another_way_keeps_it(tmp_path: Path) -> None:
    """RFC 7093 and others make it otherwise than RFC 5280's first method: chains are found by what certificates say."""
    key, subject = generate(KeyType.P_256), named("CN=State B Root")
    key_id = x509.SubjectKeyIdentifier(b"made by another CA")
    extensions = profile_extensions(CertificateProfile.ROOT, key.public_key())
    other = Issuer(certify(key, subject, key.public_key(), subject, MONTH, ((key_id, False), *extensions)), key)
    own = new_authority("State A Root")
    cross = cross_certificate(own, other.certificate, Validity.for_days(7))
    assert cross.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value == key_id
    crl = issue_crl(other, [], 1, Validity.for_days(7))
    for made in (end(other), crl):
        authority = made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        assert authority.key_identifier == key_id.digest
    verify(tmp_path, own.certificate, cross, end(other))


def test_a_ca_outside_its_own_limits_gets_a_new_key_all_the_same() -> None:
    """The limits are for what it certifies, not for itself under another key (RFC 5280, 6.1.4)."""
    limits = [x509.DirectoryName(named("O=Ministry"))]
    name = named("CN=State B Root")
    old, new = (
        Issuer(issue_root(key, name, MONTH, name_constraints=limits), key)
        for key in (key_of(KeyType.P_256), key_of(KeyType.P_384))
    )
    for link, issuer in zip(link_certificates(old, new), (new, old), strict=True):
        link.verify_directly_issued_by(issuer.certificate)
    with pytest.raises(BadInput, match="outside the names"):
        cross_certificate(old, new_authority("Stranger").certificate, MONTH)


def test_only_cas_are_cross_certified_and_only_where_there_is_room() -> None:
    own = new_authority("A", path_length=0)
    with pytest.raises(BadInput, match="is not a CA"):
        cross_certificate(own, end(new_authority("B")), MONTH)
    with pytest.raises(BadInput, match="signs end certificates only"):
        cross_certificate(own, new_authority("B").certificate, MONTH)
