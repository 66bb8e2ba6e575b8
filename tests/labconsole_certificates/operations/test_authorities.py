"""Own CAs: roots and intermediates that openssl accepts, import of others, and what is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from labconsole.errors import UserError
from labconsole.security.pki.keys import keys_directory
from labconsole.security.pki.records import FileKey, Origin, TrustKind
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import issue_root, make_self_signed
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.authorities import create_intermediate, create_root, import_authority
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.export_formats import write_pkcs12
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state, claim_domain
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.three_states import ThreeStates

CA_NAME = x509.Name.from_rfc4514_string("CN=Old CA,O=CAAS")
PASSWORD = Secret("open-2468")


def _ca(days: int = 100) -> x509.Certificate:
    return issue_root(key_of(KeyType.P_256), CA_NAME, Validity.for_days(days))


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _key(password: Secret | None = None) -> bytes:
    encryption = BestAvailableEncryption(password.reveal().encode()) if password else NoEncryption()
    return key_of(KeyType.P_256).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


@cache
def _pkcs12() -> bytes:
    """The CA with its key; to derive the keys of its password and its MAC takes long."""
    return write_pkcs12(key_of(KeyType.P_256), _ca(), (), "ca", PASSWORD)


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
@pytest.mark.parametrize(
    "name", ["ส" * 40, "中国民用航空局中国民用航空局中国民用航空局", "الهيئة العامة للطيران المدني"]
)
def test_a_state_of_any_script_needs_no_subject_to_be_typed(world: ThreeStates, name: str) -> None:
    state = add_state(world.store, name)
    root = create_root(world.store, state, NewKey())
    made = own_csrs.make_request(world.store, state, world.b, NewKey(), CertificateProfile.STATE)
    organisation = x509.NameAttribute(NameOID.ORGANIZATION_NAME, name, _validate=False)
    assert all(organisation in subject for subject in (root.certificate.subject, made.csr.subject))
    said = run_openssl("x509", "-noout", "-subject", "-nameopt", "utf8,sep_comma_plus", data=_pem(root.certificate))
    assert f"CN={name} Root CA" in said


def test_a_root_is_trusted_by_its_state_and_its_key_file_is_encrypted(world: ThreeStates) -> None:
    snapshot = world.store.snapshot()
    assert snapshot.trusted_by(world.a.id, TrustKind.ROOT) == (world.root_a,)
    key = snapshot.key_by_id[world.root_a.key or 0]
    assert isinstance(key.place, FileKey)
    file = keys_directory(world.store.directory) / key.place.file
    assert file.stat().st_mode & 0o777 == 0o600 and b"ENCRYPTED PRIVATE KEY" in file.read_bytes()


def test_an_intermediate_issues_within_its_limits_and_openssl_agrees(world: ThreeStates, tmp_path: Path) -> None:
    made = create_intermediate(world.store, world.root_b, world.b, NewKey(), name_constraints=["a.example"])
    record = received_csrs.approve(world.store, world.asks(world.a, world.b, "client.a.example"))
    snapshot = world.store.snapshot()
    assert snapshot.chain_of(record) == (made, world.root_b)
    (tmp_path / "root.pem").write_bytes(exported(snapshot, world.root_b))
    (tmp_path / "chain.pem").write_bytes(exported(snapshot, record, Form.CHAIN))
    said = run_openssl(
        "verify", "-CAfile", tmp_path / "root.pem", "-untrusted", tmp_path / "chain.pem", tmp_path / "chain.pem"
    )
    assert said.endswith("OK\n")
    wider = claim_domain(world.store, world.a, "a.example, c.example")
    taken = world.asks(wider, world.b, "client.c.example")
    before = world.rows()
    with pytest.raises(UserError, match=r"client\.c\.example is outside the names that State B Intermediate CA may"):
        received_csrs.approve(world.store, taken)
    assert world.rows() == before


def test_a_root_that_may_have_no_ca_below_it_has_none(world: ThreeStates) -> None:
    narrow = create_root(world.store, world.a, NewKey(), path_length=0)
    before = world.rows()
    with pytest.raises(UserError, match=r"path length 0"):
        create_intermediate(world.store, narrow, world.a, NewKey())
    assert world.rows() == before


def test_names_may_be_in_any_script(world: ThreeStates) -> None:
    record = create_root(world.store, world.a, NewKey(), subject="CN=新加坡民航局,O=CAAS,C=SG")
    [name] = record.certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    assert name.value == "新加坡民航局"


@pytest.mark.parametrize(
    ("name", "domain", "why"),
    [
        ("", "", "needs a name of 1 to"),
        ("x" * 41, "", "needs a name of 1 to"),
        ("State\u202ea", "", "can be shown"),
        ("state a", "", "There is a State State A already"),
        ("State D", "IP:192.0.2.1", "is not a DNS domain"),
    ],
)
def test_a_state_that_cannot_be_is_refused(world: ThreeStates, name: str, domain: str, why: str) -> None:
    before = world.rows()
    with pytest.raises(UserError, match=why):
        add_state(world.store, name, domain)
    assert world.rows() == before


def test_a_state_of_another_console_gets_no_ca_here(world: ThreeStates) -> None:
    with pytest.raises(UserError, match="State C is a State of another console"):
        create_root(world.store, world.c, NewKey())


@pytest.mark.parametrize("form", ["pem", "encrypted", "der", "pkcs12"])
def test_an_imported_ca_issues(world: ThreeStates, form: str) -> None:
    certificate = _ca()
    data, key, password = _pem(certificate), _key(), None
    if form == "encrypted":
        key, password = _key(PASSWORD), PASSWORD
    if form == "der":
        data = certificate.public_bytes(Encoding.DER)
        key = key_of(KeyType.P_256).private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    if form == "pkcs12":
        data, key = _pkcs12(), b""
        password = PASSWORD
    record = import_authority(world.store, world.a, data, key, password=password)
    assert (record.profile, record.origin) == (CertificateProfile.ROOT, Origin.IMPORTED)
    issued = received_csrs.approve(world.store, world.asks(world.b, world.a), authority=record, days=30)
    assert world.store.snapshot().chain_of(issued) == (record,)


def test_an_imported_ca_is_not_two_when_it_comes_again(world: ThreeStates) -> None:
    first = import_authority(world.store, world.a, _pem(_ca()), _key())
    keys = len(world.store.snapshot().keys)
    assert import_authority(world.store, world.a, exported(world.store.snapshot(), first), _key()) == first
    assert len(world.store.snapshot().keys) == keys


def _other_key() -> bytes:
    return key_of(KeyType.P_384).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _expired_ca() -> x509.Certificate:
    past = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
    return issue_root(key_of(KeyType.P_256), CA_NAME, Validity(past - timedelta(days=9), past))


def _client() -> x509.Certificate:
    return make_self_signed(key_of(KeyType.P_256), CA_NAME, (), CertificateProfile.TLS_CLIENT, Validity.for_days(9))


BAD_IMPORTS: dict[str, tuple[Callable[[], tuple[bytes, bytes]], Secret | None, str]] = {
    "wrong password": (lambda: (_pem(_ca()), _key(PASSWORD)), Secret("shut"), "password|passphrase"),
    "no password": (lambda: (_pem(_ca()), _key(PASSWORD)), None, "password|passphrase"),
    "wrong password of a PKCS#12": (lambda: (_pkcs12(), b""), Secret("shut"), "password|passphrase"),
    "truncated PKCS#12": (lambda: (_pkcs12()[:-40], b""), PASSWORD, "cut off"),
    "another key": (lambda: (_pem(_ca()), _other_key()), None, "is not that of the certificate"),
    "a key for a certificate": (lambda: (_key(), _key()), None, "private key"),
    "a certificate for a key": (lambda: (_pem(_ca()), _pem(_ca())), None, "key"),
    "no CA": (lambda: (_pem(_client()), _key()), None, "is not a CA certificate"),
    "expired": (lambda: (_pem(_expired_ca()), _key()), None, "expired on"),
    "no PKCS#12": (lambda: (b"hello", b""), PASSWORD, "PKCS#12"),
}


@pytest.mark.parametrize("fault", BAD_IMPORTS)
def test_an_import_that_cannot_be_changes_nothing(world: ThreeStates, fault: str) -> None:
    files_of_ca, password, why = BAD_IMPORTS[fault]
    data, key = files_of_ca()
    before, files = world.rows(), set(keys_directory(world.store.directory).iterdir())
    with pytest.raises(UserError, match=why):
        import_authority(world.store, world.a, data, key, password=password)
    assert world.rows() == before and set(keys_directory(world.store.directory).iterdir()) == files


def test_the_passphrase_of_a_new_key_is_the_operator_s_if_wished(world: ThreeStates) -> None:
    asked: list[str] = []

    def answer(purpose: str) -> Secret:
        asked.append(purpose)
        return Secret("mine-1357")

    root = create_root(world.store, world.a, NewKey(passphrase=SecretSource()), prompt=answer)
    assert asked == ["the new key file", "the new key file, once more"]
    with pytest.raises(UserError, match="There is no passphrase for the key State A Root CA"):
        received_csrs.approve(world.store, world.asks(world.b, world.a), authority=root)
    with pytest.raises(UserError, match="passphrase is wrong"):
        received_csrs.approve(
            world.store, world.asks(world.b, world.a), authority=root, prompt=lambda _: Secret("other")
        )
    received_csrs.approve(world.store, world.asks(world.b, world.a), authority=root, prompt=answer)


def test_a_passphrase_typed_in_two_ways_makes_no_key(world: ThreeStates) -> None:
    before, files = world.rows(), set(keys_directory(world.store.directory).iterdir())
    typed = iter(["one", "two"])
    with pytest.raises(UserError, match="typed in two ways"):
        create_root(world.store, world.a, NewKey(passphrase=SecretSource()), prompt=lambda _: Secret(next(typed)))
    with pytest.raises(UserError, match="There is no passphrase for the new key file"):
        create_root(world.store, world.a, NewKey(passphrase=SecretSource()), prompt=lambda _: None)
    assert world.rows() == before and set(keys_directory(world.store.directory).iterdir()) == files


def test_a_passphrase_file_is_read_when_the_key_is_used(world: ThreeStates, tmp_path: Path) -> None:
    file = tmp_path / "passphrase"
    file.write_text("in-a-file\n")
    file.chmod(0o600)
    root = create_root(world.store, world.a, NewKey(passphrase=SecretSource(passphrase_file=file)))
    received_csrs.approve(world.store, world.asks(world.b, world.a), authority=root)
    file.chmod(0o644)
    with pytest.raises(UserError, match="can be read by others"):
        received_csrs.approve(world.store, world.asks(world.b, world.a), authority=root)


def test_a_ca_with_a_weak_key_is_not_imported(world: ThreeStates) -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    certificate = x509.CertificateBuilder(CA_NAME, CA_NAME, weak.public_key(), 1).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    now, before = datetime.now(UTC), world.rows()
    signed = certificate.not_valid_before(now).not_valid_after(now + timedelta(days=9)).sign(weak, hashes.SHA256())
    key = weak.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(UserError, match="use RSA of 2,048, 3,072 or 4,096 bits"):
        import_authority(world.store, world.a, _pem(signed), key)
    assert world.rows() == before
