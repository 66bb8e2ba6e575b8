"""CRLs that others send: of namesakes, of earlier days, of a part of what a CA has issued."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from labconsole.errors import UserError
from labconsole.security.certificate_status import StatusKind, status_of
from labconsole.security.x509.issuing import Issuer, certify, subject_key_id
from labconsole.security.x509.key_types import KeyType, generate, signing_hash
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.export_formats import as_pem
from labconsole_certificates.operations.issuing import opened_issuer
from labconsole_certificates.revocation import crl_operations
from tests.labconsole_certificates.three_states import ThreeStates


def _crl(
    issuer: Issuer, *extensions: x509.ExtensionType, revoked: tuple[int, ...] = (), days_ago: int = 0
) -> x509.CertificateRevocationList:
    """A CRL as no console makes them: with these extensions, or none."""
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(days=days_ago, minutes=1)
    builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.certificate.subject)
    builder = builder.last_update(at).next_update(at + timedelta(days=30))
    for extension in extensions:
        critical = isinstance(extension, x509.IssuingDistributionPoint | x509.DeltaCRLIndicator)
        builder = builder.add_extension(extension, critical)
    for serial in revoked:
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(at).build()
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(issuer.key, signing_hash(issuer.key))


def _key_id(certificate: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key_id(certificate))


def _ca_of_same_name(certificate: x509.Certificate) -> Issuer:
    """A root with the name and the key identifier of `certificate`, and another key."""
    key = generate(KeyType.P_256)
    extensions = [(one.value, one.critical) for one in certificate.extensions]
    made = certify(key, certificate.subject, key.public_key(), certificate.subject, Validity.for_days(30), extensions)
    return Issuer(made, key)


def test_an_untrusted_ca_of_the_same_name_cannot_supply_a_crl(world: ThreeStates) -> None:
    leaf = world.certified(world.a, world.b)
    namesake = _ca_of_same_name(world.root_b.certificate)
    import_certificates(world.store, as_pem(namesake.certificate))
    for crl in (
        _crl(namesake, _key_id(namesake.certificate), x509.CRLNumber(9)),
        _crl(namesake, x509.CRLNumber(10), revoked=(leaf.certificate.serial_number,)),
    ):
        crl_operations.import_crl(world.store, as_pem(crl))
        status = status_of(leaf, world.store.snapshot(), datetime.now(UTC))
        assert status.kind is StatusKind.VALID, status.cause


def test_a_ca_of_the_same_name_cannot_hide_a_revocation(world: ThreeStates) -> None:
    leaf = world.certified(world.a, world.b)
    with opened_issuer(world.store.directory, world.store.snapshot(), world.root_b, None) as issuer:
        true = _crl(
            issuer,
            _key_id(issuer.certificate),
            x509.CRLNumber(1),
            revoked=(leaf.certificate.serial_number,),
            days_ago=1,
        )
    crl_operations.import_crl(world.store, as_pem(true))
    namesake = _ca_of_same_name(world.root_b.certificate)
    import_certificates(world.store, as_pem(namesake.certificate))
    crl_operations.import_crl(world.store, as_pem(_crl(namesake, _key_id(namesake.certificate), x509.CRLNumber(9))))
    assert status_of(leaf, world.store.snapshot(), datetime.now(UTC)).kind is StatusKind.REVOKED


def test_an_old_crl_without_number_does_not_come_back(world: ThreeStates) -> None:
    leaf = world.certified(world.a, world.b)
    with opened_issuer(world.store.directory, world.store.snapshot(), world.root_b, None) as issuer:
        old = _crl(issuer, days_ago=2)
        new = _crl(issuer, revoked=(leaf.certificate.serial_number,))
    crl_operations.import_crl(world.store, as_pem(new))
    with pytest.raises(UserError, match="ask for the newest"):
        crl_operations.import_crl(world.store, as_pem(old))
    assert status_of(leaf, world.store.snapshot(), datetime.now(UTC)).kind is StatusKind.REVOKED


def _only(*, end: bool = False, authorities: bool = False) -> x509.IssuingDistributionPoint:
    return x509.IssuingDistributionPoint(
        full_name=None,
        relative_name=None,
        only_contains_user_certs=end,
        only_contains_ca_certs=authorities,
        only_some_reasons=None,
        indirect_crl=False,
        only_contains_attribute_certs=False,
    )


@pytest.mark.parametrize("part", [_only(authorities=True), x509.DeltaCRLIndicator(1)])
def test_a_crl_of_a_part_does_not_take_the_place_of_the_other(part: x509.ExtensionType, world: ThreeStates) -> None:
    leaf = world.certified(world.a, world.b)
    serials = (leaf.certificate.serial_number,)
    with opened_issuer(world.store.directory, world.store.snapshot(), world.root_b, None) as issuer:
        whole = _only(end=True) if isinstance(part, x509.IssuingDistributionPoint) else x509.CRLNumber(1)
        extensions = [whole] if isinstance(whole, x509.CRLNumber) else [whole, x509.CRLNumber(1)]
        first = _crl(issuer, _key_id(issuer.certificate), *extensions, revoked=serials)
        second = _crl(issuer, _key_id(issuer.certificate), part, x509.CRLNumber(2))
    for crl in (first, second):
        crl_operations.import_crl(world.store, as_pem(crl))
    assert status_of(leaf, world.store.snapshot(), datetime.now(UTC)).kind is StatusKind.REVOKED
