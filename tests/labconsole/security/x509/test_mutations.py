"""What comes from outside raises nothing but BadInput: thousands of damaged files, the same ones every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from labconsole.security.secrets import Secret
from labconsole.security.x509 import gate, reading
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.crls import Revoked, make_crl
from labconsole.security.x509.describing.things import describe
from labconsole.security.x509.issuing import Issuer, issue, make_root
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.names import general_name_from_text, name_from_text, short_name
from labconsole.security.x509.pkcs12_opening import open_here
from labconsole.security.x509.profiles import CertificateProfile
from labconsole.security.x509.requests import make_csr
from labconsole.security.x509.validation.validating import validate
from labconsole.security.x509.validity import Validity
from tests.helpers.der_mutations import der_mutations
from tests.helpers.mutations import mutations
from tests.helpers.x509_keys import key_of

PASSWORD = Secret("x")
NAMES = [
    general_name_from_text(text)
    for text in ("bücher.caas.gov.sg", "192.0.2.1", "URI:http://a.example/", "用户@例え.jp", "DIR:CN=根,C=CN")
]
EACH = 400
"""Damaged copies of each file by each way of damaging: 400 x 2 x 7, beside 400 of PEM."""
AT = datetime.now(UTC)


@pytest.fixture(autouse=True)
def _no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """PKCS#12 files are opened in this process: a process for each of thousands would take minutes."""
    monkeypatch.setattr(reading, "open_in_child", open_here)


@pytest.fixture(scope="module")
def authority() -> Issuer:
    key = key_of(KeyType.P_256)
    subject = name_from_text("CN=根,O=สำนักงานการบินพลเรือนแห่งประเทศไทย,C=TH")
    return Issuer(make_root(key, subject, Validity.for_days(60), name_constraints=NAMES[:1]), key)


@pytest.fixture(scope="module")
def certificate(authority: Issuer) -> x509.Certificate:
    return issue(
        authority,
        key_of(KeyType.P_384).public_key(),
        name_from_text("CN=broker,C=TH"),
        NAMES[:1],
        CertificateProfile.TLS_SERVER,
        Validity.for_days(30),
        crl_url="http://crl.example/a.crl",
        ocsp_url="http://ocsp.example/",
    )


@pytest.fixture(scope="module")
def files(authority: Issuer, certificate: x509.Certificate) -> dict[str, bytes]:
    """One good file of each kind, in DER."""
    key = key_of(KeyType.P_384)
    csr = make_csr(key, name_from_text("CN=broker,C=TH"), NAMES, CertificateProfile.TLS_SERVER)
    revoked = [Revoked(certificate.serial_number, AT, x509.ReasonFlags.key_compromise)]
    crl = make_crl(authority, revoked, 1, Validity.for_days(3))
    quick = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(1)
    protection = quick.key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC).build(b"x")
    return {
        "root": authority.certificate.public_bytes(Encoding.DER),
        "certificate": certificate.public_bytes(Encoding.DER),
        "csr": csr.public_bytes(Encoding.DER),
        "crl": crl.public_bytes(Encoding.DER),
        "pkcs12": pkcs12.serialize_key_and_certificates(
            b"broker", key, certificate, [authority.certificate], protection
        ),
        "open-pkcs12": pkcs12.serialize_key_and_certificates(b"broker", key, certificate, None, NoEncryption()),
        "key": key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
    }


def taken(mutated: Iterator[bytes]) -> tuple[int, int]:
    """Read and describe each; how many were refused with BadInput, and how many came through whole."""
    refused = through = 0
    for data in mutated:
        gate.kind_of(data)
        try:
            things = gate.read(data, PASSWORD)
        except BadInput as refusal:
            assert str(refusal).endswith(".") and "\n" not in str(refusal)
            refused += 1
            continue
        through += 1
        for thing in things:
            assert describe(thing, AT).sections
            if isinstance(thing, x509.Certificate | x509.CertificateSigningRequest):
                assert short_name(thing)
    return refused, through


@pytest.mark.filterwarnings("ignore")  # `cryptography` warns of odd serial numbers and the like
@pytest.mark.parametrize("damage", [mutations, der_mutations])
@pytest.mark.parametrize("kind", ["root", "certificate", "csr", "crl", "pkcs12", "open-pkcs12", "key"])
def test_damaged_files_are_refused_or_read_but_raise_nothing_else(
    files: dict[str, bytes], kind: str, damage: Callable[[bytes, int, int], Iterator[bytes]]
) -> None:
    refused, through = taken(damage(files[kind], EACH, 20261121))
    assert refused + through == EACH
    assert refused > EACH / 2, "the damage is hardly any"


@pytest.mark.filterwarnings("ignore")
def test_damaged_pem_is_refused_or_read(certificate: x509.Certificate) -> None:
    refused, through = taken(mutations(certificate.public_bytes(Encoding.PEM), EACH, 5))
    assert refused + through == EACH and refused > EACH / 2


def test_the_same_seed_gives_the_same_files(files: dict[str, bytes]) -> None:
    for damage in (mutations, der_mutations):
        assert list(damage(files["csr"], 20, 1)) == list(damage(files["csr"], 20, 1))
        assert list(damage(files["csr"], 20, 1)) != list(damage(files["csr"], 20, 2))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("damage", [mutations, der_mutations])
def test_what_comes_through_can_be_judged(
    files: dict[str, bytes],
    authority: Issuer,
    certificate: x509.Certificate,
    damage: Callable[[bytes, int, int], Iterator[bytes]],
) -> None:
    """OpenSSL reads more strictly in places: what it cannot read does not come through either."""
    crl = gate.read_crl(files["crl"])
    for kind in ("certificate", "root", "crl"):
        for data in damage(files[kind], EACH, 7):
            try:
                [thing] = gate.read(data)
            except BadInput:
                continue
            if isinstance(thing, x509.CertificateRevocationList):
                validate(certificate, [], [authority.certificate], [thing], at=AT)
            elif kind == "certificate":
                judged = validate(thing, [], [authority.certificate], [], at=AT)
                assert not judged.accepted or thing == certificate
            elif isinstance(thing, x509.Certificate):
                validate(certificate, [thing], [authority.certificate], [crl], at=AT)
