"""Revocation: CRLs that openssl reads, in order, and those of others."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import UserError
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.record_lookup import certificate_named
from labconsole_certificates.operations.removal import remove
from labconsole_certificates.revocation.crl_operations import import_crl, publish_crl, revoke
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.three_states import ThreeStates

C_NAME = x509.Name.from_rfc4514_string("CN=C root,O=C")
C_KEY = key_of(KeyType.P_384)
C_ROOT = issue_root(C_KEY, C_NAME, Validity.for_days(99))
WEEK = Validity.for_days(7)


def _crl_of_c(number: int, *serials: int, key: KeyType = KeyType.P_384) -> bytes:
    root = C_ROOT if key is KeyType.P_384 else issue_root(key_of(key), C_NAME, Validity.for_days(99))
    revoked = [Revoked(serial, WEEK.not_before, x509.ReasonFlags.superseded) for serial in serials]
    return issue_crl(Issuer(root, key_of(key)), revoked, number, WEEK).public_bytes(Encoding.DER)


def test_a_revoked_certificate_is_in_each_later_crl(world: ThreeStates) -> None:
    first, other = world.certified(world.a, world.b), world.certified(world.a, world.b)
    assert len(publish_crl(world.store, world.root_b).crl) == 0
    revoke(world.store, first, x509.ReasonFlags.key_compromise)
    remove(world.store, certificate_named(world.store.snapshot(), first.sha256))
    record = publish_crl(world.store, world.root_b, days=3)
    assert record.number == 2
    said = run_openssl(
        "crl", "-inform", "DER", "-noout", "-text", data=exported(world.store.snapshot(), record, Form.DER)
    )
    assert f"{first.certificate.serial_number:040X}" in said and "Key Compromise" in said
    assert f"{other.certificate.serial_number:040X}" not in said
    assert (record.next_update - record.this_update).days == 3


def test_a_reason_that_no_crl_can_carry_is_refused(world: ThreeStates) -> None:
    record = world.certified(world.a, world.b)
    with pytest.raises(UserError, match="removeFromCRL"):
        revoke(world.store, record, x509.ReasonFlags.remove_from_crl)
    assert publish_crl(world.store, world.root_b).number == 1


def test_only_its_issuer_revokes_a_certificate_and_once(world: ThreeStates) -> None:
    mine = world.certified(world.a, world.b)
    revoke(world.store, mine)
    with pytest.raises(UserError, match="has been revoked since"):
        revoke(world.store, mine)
    with pytest.raises(UserError, match="signed itself"):
        revoke(world.store, world.root_a)
    key = key_of(KeyType.P_256)
    foreign = issue(
        Issuer(C_ROOT, C_KEY), key.public_key(), C_NAME, (), CertificateProfile.TLS_CLIENT, Validity.for_days(9)
    )
    [root, end] = import_certificates(world.store, _pem(C_ROOT) + _pem(foreign), world.c)
    assert root.state == end.state == world.c.id
    with pytest.raises(UserError, match="was not issued by a CA of this console"):
        revoke(world.store, end)
    with pytest.raises(UserError, match="The private key of C root is not here"):
        publish_crl(world.store, root)


def test_imported_crls_must_be_in_order(world: ThreeStates) -> None:
    before = world.rows()
    with pytest.raises(UserError, match=r"The CA CN=C root,O=C of this CRL is not known"):
        import_crl(world.store, _crl_of_c(1))
    assert world.rows() == before
    import_certificates(world.store, _pem(C_ROOT), world.c)
    record = import_crl(world.store, _crl_of_c(5, 77), world.c, world.a)
    assert record.number == 5 and len(record.crl) == 1
    before = world.rows()
    with pytest.raises(UserError, match="has the number 4, and number 5 is here already"):
        import_crl(world.store, _crl_of_c(4))
    with pytest.raises(UserError, match="whose key did not sign it"):
        import_crl(world.store, _crl_of_c(6, key=KeyType.P_256))
    with pytest.raises(UserError):
        import_crl(world.store, _pem(C_ROOT))
    assert world.rows() == before


def test_crl_numbers_continue_when_the_ca_gets_a_new_key(world: ThreeStates) -> None:
    old = world.certified(world.a, world.b)
    assert publish_crl(world.store, world.root_b).number == 1
    newer = create_root(world.store, world.b, NewKey())
    revoke(world.store, old)
    record = publish_crl(world.store, newer)
    assert record.number == 2
    assert record.crl.get_revoked_certificate_by_serial_number(old.certificate.serial_number) is not None


def test_a_ca_of_another_state_with_the_same_name_is_another_ca(world: ThreeStates) -> None:
    revoke(world.store, world.certified(world.a, world.b))
    publish_crl(world.store, world.root_b)
    namesake = create_root(world.store, world.a, NewKey(), subject="CN=State B Root CA,O=State B")
    record = publish_crl(world.store, namesake)
    assert record.number == 1 and len(record.crl) == 0


def test_of_two_crls_made_at_once_the_later_has_the_next_number(world: ThreeStates) -> None:
    mine = Secret("mine-1357")
    asked = NewKey(passphrase=SecretSource())
    root = create_root(world.store, world.a, asked, prompt=lambda _: mine)

    def slow(_: str) -> Secret:
        publish_crl(world.store, root, prompt=lambda _: mine)
        return mine

    assert publish_crl(world.store, root, prompt=slow).number == 2
    assert [crl.number for crl in world.store.snapshot().crls] == [1, 2]


def test_two_certificates_of_one_ca_with_one_serial_number_are_refused(world: ThreeStates) -> None:
    issuer = Issuer(C_ROOT, C_KEY)
    key = key_of(KeyType.P_256)
    first = issue(issuer, key.public_key(), C_NAME, (), CertificateProfile.TLS_CLIENT, Validity.for_days(9))
    twin = x509.CertificateBuilder(
        first.issuer,
        first.subject,
        key.public_key(),
        first.serial_number,
        first.not_valid_before_utc,
        first.not_valid_after_utc,
        [one for one in first.extensions if not isinstance(one.value, x509.ExtendedKeyUsage)],
    ).sign(C_KEY, hashes.SHA384())
    import_certificates(world.store, _pem(C_ROOT) + _pem(first))
    before = world.rows()
    with pytest.raises(UserError, match="serial number"):
        import_certificates(world.store, _pem(twin))
    assert world.rows() == before


@pytest.mark.parametrize("reference", ["abcdef", "xyz12345", "0" * 64])
def test_a_reference_that_means_nothing_says_so(world: ThreeStates, reference: str) -> None:
    with pytest.raises(UserError, match=r"is not a fingerprint|No certificate here"):
        certificate_named(world.store.snapshot(), reference)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)
