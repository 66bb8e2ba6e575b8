"""Files alone make no one an authority of a State: what other States send, and the operator imports."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from cryptography import x509

from labconsole.errors import BadInput, UserError
from labconsole.security.pki.records import RequestStatus, TrustKind
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, certify, issue, issue_root
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.export_formats import chain_as_pem, write_pkcs12
from labconsole_certificates.operations.issuing import opened_issuer
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.no_csr import import_pkcs12
from labconsole_certificates.operations.record_lookup import authority_of
from labconsole_certificates.operations.removal import remove, restore
from labconsole_certificates.trust.roots_and_pins import pin
from tests.labconsole_certificates.three_states import ThreeStates

_VALID = Validity.for_days(30)


@pytest.fixture(scope="module")
def outsider() -> Issuer:
    """The root of an attacker who wants to be trusted."""
    key = generate(KeyType.P_256)
    return Issuer(issue_root(key, name_from_text("CN=Stranger Root"), _VALID), key)


def _pem(*certificates: x509.Certificate) -> bytes:
    return chain_as_pem(certificates)


def _by_file(world: ThreeStates, outsider: Issuer) -> None:
    import_certificates(world.store, _pem(outsider.certificate), world.a)


def _after_import_without_state(world: ThreeStates, outsider: Issuer) -> None:
    import_certificates(world.store, _pem(outsider.certificate))
    import_certificates(world.store, _pem(outsider.certificate), world.a)


def _as_chain(world: ThreeStates, outsider: Issuer) -> None:
    request = own_csrs.make_request(world.store, world.b, world.a, NewKey(), CertificateProfile.TLS_CLIENT)
    key = request.csr.public_key()
    answer = issue(outsider, key, request.csr.subject, (), CertificateProfile.TLS_CLIENT, _VALID)  # type: ignore[arg-type]
    own_csrs.import_certificate(world.store, _pem(answer, outsider.certificate))


def _in_pkcs12(world: ThreeStates, outsider: Issuer) -> None:
    password = Secret("a password")
    data = write_pkcs12(outsider.key, outsider.certificate, (), "your certificate", password)
    import_pkcs12(world.store, world.a, data, password, sender=world.c)


@pytest.mark.parametrize("way", [_by_file, _after_import_without_state, _as_chain, _in_pkcs12])
def test_no_file_makes_a_root_of_a_state_of_this_console(
    way: Callable[[ThreeStates, Issuer], None], world: ThreeStates, outsider: Issuer
) -> None:
    with pytest.raises(UserError):
        way(world, outsider)
    snapshot = world.store.snapshot()
    roots = [*snapshot.roots_of(world.a.id), *snapshot.trusted_by(world.a.id, TrustKind.ROOT)]
    assert {root.sha256 for root in roots} == {world.root_a.sha256}


def test_a_certificate_of_our_name_and_key_that_we_did_not_sign_is_not_a_root(
    world: ThreeStates, outsider: Issuer
) -> None:
    public_key = world.root_a.certificate.public_key()
    name = world.root_a.certificate.subject
    namesake = Issuer(issue_root(outsider.key, name, _VALID), outsider.key)
    forged = issue(namesake, public_key, name, (), CertificateProfile.INTERMEDIATE, _VALID)  # type: ignore[arg-type]
    [record] = import_certificates(world.store, _pem(forged), world.a)
    assert record.profile is CertificateProfile.INTERMEDIATE
    assert world.store.snapshot().roots_of(world.a.id) == (world.root_a,)


def test_a_forged_answer_does_not_use_up_a_request(world: ThreeStates, outsider: Issuer) -> None:
    made = world.asks(world.a, world.b)
    key, profile = made.csr.public_key(), CertificateProfile.TLS_CLIENT
    forged = issue(outsider, key, made.csr.subject, (), profile, _VALID)  # type: ignore[arg-type]
    before = world.rows()
    with pytest.raises(BadInput, match="was not issued by a CA of State B that is known here"):
        own_csrs.import_certificate(world.store, _pem(forged, outsider.certificate))
    assert world.rows() == before
    assert world.store.request(made.id).status is RequestStatus.RECEIVED


def test_of_two_requests_with_one_key_the_one_is_answered_whose_ca_signed(world: ThreeStates) -> None:
    """The newer one is to State A; what State B signs answers the older one, over an intermediate in the file too."""
    older = own_csrs.make_request(world.store, world.a, world.b, NewKey(), CertificateProfile.TLS_CLIENT)
    assert older.key is not None
    key = world.store.snapshot().key_by_id[older.key]
    newer = own_csrs.make_request(world.store, world.a, world.a, key, CertificateProfile.TLS_CLIENT)
    below = generate(KeyType.P_256)
    with opened_issuer(world.store.directory, world.store.snapshot(), world.root_b, None) as root:
        name = name_from_text("CN=State B Issuing CA")
        middle = issue(root, below.public_key(), name, (), CertificateProfile.INTERMEDIATE, _VALID)
    public_key = older.csr.public_key()
    answer = issue(Issuer(middle, below), public_key, older.csr.subject, (), older.profile, _VALID)  # type: ignore[arg-type]
    record = own_csrs.import_certificate(world.store, _pem(answer, middle))
    assert world.store.request(older.id).certificate == record.id
    assert world.store.request(newer.id).status is RequestStatus.MADE


def test_a_pin_is_for_one_certificate_and_no_ca_in_disguise(world: ThreeStates) -> None:
    """It does not say that it is a CA, but OpenSSL takes it for one where it is trusted."""
    key, name = generate(KeyType.P_256), name_from_text("CN=client of C")
    usage = x509.KeyUsage(True, False, False, False, False, True, False, False, False)
    odd = certify(key, name, key.public_key(), name, _VALID, [(usage, True)])
    [record] = import_certificates(world.store, _pem(odd), world.c)
    with pytest.raises(UserError, match="would take client of C for a CA"):
        pin(world.store, world.a, record, record.sha256)
    assert world.store.snapshot().trusted_by(world.a.id, TrustKind.PIN) == ()


def test_no_ca_of_another_state_decides_a_request(world: ThreeStates) -> None:
    made = world.asks(world.a, world.b)
    with pytest.raises(UserError, match="State A Root CA is a CA of State A, not of State B"):
        received_csrs.approve(world.store, made, authority=world.root_a)
    with pytest.raises(UserError, match="State A Root CA is a CA of State A, not of State B"):
        authority_of(world.store.snapshot(), world.b, world.root_a.sha256, datetime.now(UTC))
    assert received_csrs.approve(world.store, made, authority=world.root_b).state == world.a.id


def test_a_retired_root_is_not_restored_by_a_file(world: ThreeStates) -> None:
    """The old root's certificate is public; after its rotation its key may be in other hands."""
    newer = create_root(world.store, world.a, NewKey())
    remove(world.store, world.root_a)
    import_certificates(world.store, _pem(world.root_a.certificate))
    import_certificates(world.store, _pem(world.root_a.certificate), world.a)
    assert world.store.snapshot().trusted_by(world.a.id, TrustKind.ROOT) == (newer,)
    restore(world.store, world.store.certificate(world.root_a.id))
    assert len(world.store.snapshot().trusted_by(world.a.id, TrustKind.ROOT)) == 2
