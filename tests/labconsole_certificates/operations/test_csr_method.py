"""The CSR method on both sides, and each CSR or certificate that must not pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from labconsole.errors import UserError
from labconsole.security.pki.records import CertificateRecord, Item, Origin, RequestStatus
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType, PublicKey
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.authorities import create_intermediate, create_root, import_authority
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.revocation.crl_operations import revoke
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.three_states import ThreeStates

CLIENT = x509.Name.from_rfc4514_string("CN=client,O=C")
TLS_CLIENT = CertificateProfile.TLS_CLIENT


def _csr_of_c(*names: str) -> x509.CertificateSigningRequest:
    """A CSR that another console made."""
    return create_csr(key_of(KeyType.P_256), CLIENT, [x509.DNSName(name) for name in names], TLS_CLIENT)


def _der(thing: x509.Certificate | x509.CertificateSigningRequest) -> bytes:
    return thing.public_bytes(Encoding.DER)


def test_a_csr_becomes_a_certificate_that_goes_back(world: ThreeStates) -> None:
    store = world.store
    made = own_csrs.make_request(
        store, world.a, world.b, NewKey(), TLS_CLIENT, subject="CN=a,O=CAAS", names=["bücher.a.example"]
    )
    csr = exported(store.snapshot(), made)
    assert "self-signature verify OK" in run_openssl("req", "-verify", "-noout", data=csr)
    taken = received_csrs.import_request(store, world.a, world.b, csr)
    assert (taken.id, taken.status, taken.profile) == (made.id, RequestStatus.RECEIVED, TLS_CLIENT)
    issued = received_csrs.approve(store, taken, days=30)
    back = own_csrs.import_certificate(store, exported(store.snapshot(), issued, Form.CHAIN))
    snapshot = store.snapshot()
    assert back == issued and (back.state, back.key) == (world.a.id, made.key)
    assert snapshot.requests[0].certificate == issued.id
    [names] = [one.value for one in issued.certificate.extensions if isinstance(one.value, x509.SubjectAlternativeName)]
    assert names.get_values_for_type(x509.DNSName) == ["xn--bcher-kva.a.example"]
    handovers = [(one.item, one.sender, one.receiver) for one in snapshot.handovers]
    assert handovers == [(Item.CSR, world.a.id, world.b.id), (Item.CERTIFICATE, world.b.id, world.a.id)]


def test_a_csr_of_another_console_gets_the_extensions_of_the_profile_only(world: ThreeStates) -> None:
    greedy = x509.CertificateSigningRequestBuilder().subject_name(CLIENT)
    greedy = greedy.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    csr = greedy.sign(key_of(KeyType.P_256), hashes.SHA256())
    taken = received_csrs.import_request(world.store, world.c, world.b, _der(csr), TLS_CLIENT)
    issued = received_csrs.approve(world.store, taken)
    usage = issued.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH] and issued.key is None


def test_profile_subject_and_names_can_be_changed_before_approval(world: ThreeStates) -> None:
    taken = received_csrs.import_request(world.store, world.c, world.b, _der(_csr_of_c("c.example")))
    issued = received_csrs.approve(
        world.store,
        taken,
        profile=CertificateProfile.TLS_SERVER,
        subject="CN=broker,O=C",
        names=["broker.c.example"],
        crl_url="http://crl.example/b.crl",
    ).certificate
    assert issued.subject.rfc4514_string() == "CN=broker,O=C"
    alternatives = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternatives.get_values_for_type(x509.DNSName) == ["broker.c.example"]
    assert issued.extensions.get_extension_for_class(x509.CRLDistributionPoints)


def test_a_csr_with_a_bad_self_signature_is_not_imported(world: ThreeStates) -> None:
    before = world.rows()
    der = bytearray(_der(_csr_of_c()))
    der[-1] ^= 1
    with pytest.raises(UserError, match="is not signed with the key in it"):
        received_csrs.import_request(world.store, world.c, world.b, bytes(der))
    assert world.rows() == before


def test_a_csr_that_asks_for_ca_rights_can_be_seen_and_only_refused(world: ThreeStates) -> None:
    csr = create_csr(key_of(KeyType.P_256), CLIENT, (), CertificateProfile.INTERMEDIATE)
    taken = received_csrs.import_request(world.store, world.c, world.b, _der(csr), TLS_CLIENT)
    before = world.rows()
    with pytest.raises(UserError, match=r"was not approved.* asks to become a CA"):
        received_csrs.approve(world.store, taken)
    assert world.rows() == before
    with pytest.raises(UserError, match="reason"):
        received_csrs.refuse(world.store, taken, "  ")
    received_csrs.refuse(world.store, taken, "No CA below ours was agreed upon.")
    refused = world.store.snapshot().requests[0]
    assert (refused.status, refused.reason) == (RequestStatus.REFUSED, "No CA below ours was agreed upon.")
    with pytest.raises(UserError, match="is refused already"):
        received_csrs.approve(world.store, refused)


def test_a_request_is_decided_once(world: ThreeStates) -> None:
    taken = world.asks(world.a, world.b)
    received_csrs.approve(world.store, taken)
    decided = world.store.snapshot().requests[0]
    with pytest.raises(UserError, match="is approved already"):
        received_csrs.approve(world.store, decided)
    with pytest.raises(UserError, match="was approved before"):
        received_csrs.refuse(world.store, taken, "too late")
    with pytest.raises(UserError, match="was approved before"):
        received_csrs.approve(world.store, taken)  # as another window may still show it
    assert len(world.store.snapshot().certificates) == 3


def test_a_state_is_added_with_its_csr_and_not_without(world: ThreeStates) -> None:
    before = world.rows()
    forged = bytearray(_der(_csr_of_c()))
    forged[-1] ^= 1
    for issuer, data in ((world.b, bytes(forged)), (world.b, b""), (world.c, _der(_csr_of_c()))):
        with pytest.raises(UserError):
            received_csrs.import_request(world.store, "State D", issuer, data)
    with pytest.raises(UserError, match="name of 1 to"):
        received_csrs.import_request(world.store, " ", world.b, _der(_csr_of_c()))
    assert world.rows() == before
    taken = received_csrs.import_request(world.store, "State D", world.b, _der(_csr_of_c()))
    added = world.store.snapshot().state_by_id[taken.requester]
    assert (added.name, added.local) == ("State D", False)
    csr = create_csr(key_of(KeyType.P_256), CLIENT, (), TLS_CLIENT)
    assert received_csrs.import_request(world.store, "State D", world.b, _der(csr)).requester == added.id


def test_a_file_that_is_not_a_csr_is_refused(world: ThreeStates) -> None:
    before = world.rows()
    for data in (exported(world.store.snapshot(), world.root_a), b"", b"\x30\x82", _der(_csr_of_c())[:-9]):
        with pytest.raises(UserError):
            received_csrs.import_request(world.store, world.c, world.b, data)
    with pytest.raises(UserError, match="State C is a State of another console"):
        received_csrs.import_request(world.store, world.a, world.c, _der(_csr_of_c()))
    assert world.rows() == before


def _expired_root(world: ThreeStates) -> CertificateRecord:
    key, past = key_of(KeyType.P_384), datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
    name = x509.Name.from_rfc4514_string("CN=expired root")
    record = import_authority(
        world.store,
        world.b,
        issue_root(key, name, Validity.for_days(9)).public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    with world.store.change() as change:
        change.remove(record.id)
        expired = issue_root(key, name, Validity(past - timedelta(days=9), past))
        return change.add_certificate(
            expired, state=world.b.id, profile=CertificateProfile.ROOT, origin=Origin.SELF_SIGNED
        )


def test_an_expired_issuer_issues_nothing(world: ThreeStates) -> None:
    taken = world.asks(world.a, world.b)
    expired = _expired_root(world)
    with pytest.raises(UserError, match="The CA expired root cannot issue: it expired on"):
        received_csrs.approve(world.store, taken, authority=expired)
    assert world.store.snapshot().requests[0].status is RequestStatus.RECEIVED


def test_nothing_is_issued_below_a_revoked_ca(world: ThreeStates) -> None:
    first = create_intermediate(world.store, world.root_b, world.b, NewKey(), path_length=1)
    second = create_intermediate(world.store, first, world.b, NewKey(), subject="CN=second")
    taken = world.asks(world.a, world.b)
    revoke(world.store, first, x509.ReasonFlags.ca_compromise)
    with pytest.raises(UserError, match="The CA State B Intermediate CA cannot issue: it was revoked"):
        received_csrs.approve(world.store, taken, authority=second)


def test_a_key_that_was_compromised_gets_no_certificate_again(world: ThreeStates) -> None:
    csr = _der(_csr_of_c())
    first = received_csrs.approve(world.store, received_csrs.import_request(world.store, world.c, world.b, csr))
    revoke(world.store, first, x509.ReasonFlags.key_compromise)
    again = received_csrs.import_request(world.store, world.c, world.a, csr)
    with pytest.raises(UserError, match="revoked because that key was compromised"):
        received_csrs.approve(world.store, again)


def test_a_certificate_ends_before_its_ca(world: ThreeStates) -> None:
    with pytest.raises(UserError, match="The CA's own certificate ends on"):
        received_csrs.approve(world.store, world.asks(world.a, world.b), days=5000)
    with pytest.raises(UserError, match="A validity of 0 days cannot be"):
        received_csrs.approve(world.store, world.asks(world.a, world.b), days=0)


def test_a_state_without_a_ca_says_so(world: ThreeStates) -> None:
    with world.store.change() as change:
        lone = change.add_state("Lone")
    with pytest.raises(UserError, match="Lone has no CA here: create a root, or import one"):
        received_csrs.approve(world.store, world.asks(world.a, lone))


def test_a_newer_root_issues_when_none_is_named(world: ThreeStates) -> None:
    newer = create_root(world.store, world.b, NewKey())
    issued = world.certified(world.a, world.b)
    assert world.store.snapshot().chain_of(issued) == (newer,)


def test_a_certificate_without_a_matching_csr_is_refused(world: ThreeStates) -> None:
    key, root = key_of(KeyType.P_384), key_of(KeyType.ED25519)
    ca = issue_root(root, x509.Name.from_rfc4514_string("CN=C root"), Validity.for_days(99))
    answer = issue(Issuer(ca, root), key.public_key(), CLIENT, (), TLS_CLIENT, Validity.for_days(9))
    before = world.rows()
    with pytest.raises(UserError, match="No request here has the key of client"):
        own_csrs.import_certificate(world.store, _der(answer))
    with pytest.raises(UserError):
        own_csrs.import_certificate(world.store, _der(_csr_of_c()))
    assert world.rows() == before


def test_a_second_certificate_for_one_request_and_a_second_one_with_its_serial_number_are_refused(
    world: ThreeStates,
) -> None:
    made = own_csrs.make_request(world.store, world.a, world.c, NewKey(), TLS_CLIENT)
    root = key_of(KeyType.ED25519)
    ca = issue_root(root, x509.Name.from_rfc4514_string("CN=C root"), Validity.for_days(99))
    issuer = Issuer(ca, root)
    public_key = made.csr.public_key()
    assert isinstance(public_key, PublicKey)
    first, second = (issue(issuer, public_key, CLIENT, (), TLS_CLIENT, Validity.for_days(9)) for _ in range(2))
    record = own_csrs.import_certificate(world.store, exported_chain(first, ca))
    assert (record.state, record.key) == (world.a.id, made.key)
    before = world.rows()
    with pytest.raises(UserError, match="has another certificate already"):
        own_csrs.import_certificate(world.store, _der(second))
    twin = _with_serial_of(first, issuer)
    with pytest.raises(UserError, match=r"has another certificate already"):
        own_csrs.import_certificate(world.store, _der(twin))
    assert world.rows() == before


def exported_chain(*certificates: x509.Certificate) -> bytes:
    """Certificates in one PEM file."""
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def _with_serial_of(certificate: x509.Certificate, issuer: Issuer) -> x509.Certificate:
    builder = x509.CertificateBuilder(
        certificate.issuer,
        certificate.subject,
        certificate.public_key(),
        certificate.serial_number,
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc + timedelta(days=1),
        list(certificate.extensions),
    )
    return builder.sign(issuer.key, None)
