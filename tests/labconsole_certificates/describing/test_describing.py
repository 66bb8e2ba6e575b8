"""Descriptions say all that is in a thing, and warn of what the operator should look at; secrets are not in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, pkcs12
from cryptography.x509.oid import AttributeOID, NameOID

from labconsole.security.x509 import cms, parsing
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.fingerprints import fingerprint, grouped
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import TITLES, KeyType
from labconsole.security.x509.names import general_name_from_text, name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.describing.comparison import compare
from labconsole_certificates.describing.description import Description, Row
from labconsole_certificates.describing.pki_objects import describe
from tests.helpers.authorities import new_authority
from tests.helpers.x509_keys import key_of

KEY, OWN = key_of(KeyType.P_256), key_of(KeyType.P_384)
HOST = general_name_from_text("bücher.caas.gov.sg")
NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def authority() -> Issuer:
    limits = [general_name_from_text("caas.gov.sg")]
    root = issue_root(KEY, name_from_text("CN=根,C=CN"), Validity.for_days(60), path_length=1, name_constraints=limits)
    return Issuer(root, KEY)


@pytest.fixture(scope="module")
def certificate(authority: Issuer) -> x509.Certificate:
    return issue(
        authority,
        OWN.public_key(),
        name_from_text("CN=broker,C=SG"),
        [HOST],
        CertificateProfile.TLS_SERVER,
        Validity.for_days(30),
        crl_url="http://crl.example/a.crl",
        ocsp_url="http://ocsp.example/",
    )


def rows_of(description: Description) -> dict[str, Row]:
    """Rows by `section/label`; every one has something to say."""
    rows = {f"{section.title}/{row.label}": row for section in description.sections for row in section.rows}
    assert all(row.label and row.value for row in rows.values())
    return rows


def warned(description: Description) -> set[str]:
    return {place for place, row in rows_of(description).items() if row.warning}


def test_a_certificate_is_described_in_full(authority: Issuer, certificate: x509.Certificate) -> None:
    description = describe(certificate, NOW)
    rows = rows_of(description)
    assert description.title == "Certificate broker"
    assert rows["Fingerprint/SHA-256"].value == grouped(fingerprint(certificate))
    assert rows["Subject/Common name (CN)"].value == "broker" and rows["Issuer/Common name (CN)"].value == "根"
    assert rows["Extensions/Subject alternative names"].value == "bücher.caas.gov.sg (xn--bcher-kva.caas.gov.sg)"
    assert rows["Extensions/Basic constraints (critical)"].value == "end certificate"
    assert rows["Extensions/Extended key usage"].value == "TLS server (serverAuth)"
    assert rows["Extensions/CRL distribution points"].value == "URI:http://crl.example/a.crl"
    assert rows["Extensions/Authority information access"].value == "OCSP: URI:http://ocsp.example/"
    assert rows["Public key/Type"].value == "ECDSA P-384"
    assert rows["Certificate/Signature algorithm"].value == "ECDSA with SHA-256"
    serial = rows["Certificate/Serial number"].value
    assert int(serial.replace(":", ""), 16) == certificate.serial_number
    assert warned(description) == set()
    root = rows_of(describe(authority.certificate, NOW))
    assert root["Certificate/Signed by itself"].value == "yes, verified"
    assert root["Extensions/Name constraints (critical)"].value.startswith("permitted: caas.gov.sg")
    assert root["Extensions/Basic constraints (critical)"].value.splitlines() == [
        "certification authority",
        "CAs below it: 1 at most",
    ]


def test_validity_times_are_described(certificate: x509.Certificate) -> None:
    assert warned(describe(certificate, NOW + timedelta(days=31))) == {"Certificate/Valid until"}
    assert warned(describe(certificate, NOW - timedelta(days=1))) == {"Certificate/Valid from"}
    late = rows_of(describe(certificate, NOW + timedelta(days=31)))["Certificate/Valid until"]
    assert late.value.endswith(" UTC: expired")


def test_self_signature_is_verified(authority: Issuer) -> None:
    der = bytearray(authority.certificate.public_bytes(Encoding.DER))
    der[-1] ^= 1
    forged = x509.load_der_x509_certificate(bytes(der))
    assert rows_of(describe(forged, NOW))["Certificate/Signed by itself"].value.startswith("no: ")


@pytest.mark.parametrize("type", [type for type in KeyType if not type.startswith("rsa-")])
def test_keys_are_called_as_the_field_calls_them_and_stay_secret(type: KeyType) -> None:
    key = key_of(type)
    description = describe(key)
    assert rows_of(description)["Public key/Type"].value == TITLES[type]
    is_ec = isinstance(key, ec.EllipticCurvePrivateKey)
    secret = f"{key.private_numbers().private_value:x}" if is_ec else key.private_bytes_raw().hex()
    text = "".join(row.value for row in rows_of(description).values()).replace(" ", "").replace("\n", "").lower()
    assert len(secret) > 32 and secret[:32] not in text


def test_a_csr_shows_its_requested_extensions() -> None:
    csr = create_csr(OWN, name_from_text("CN=broker,C=SG"), [HOST], CertificateProfile.TLS_SERVER)
    description = describe(csr)
    rows = rows_of(description)
    assert rows["Request/Proof of possession"].value == "verified" and rows["Request/Asks for"].value == "TLS server"
    assert rows["Requested extensions/Subject alternative names"].value.startswith("bücher.caas.gov.sg")
    assert warned(description) == set()


def test_a_csr_with_a_bad_signature_or_ca_rights_warns() -> None:
    csr = create_csr(OWN, name_from_text("CN=broker,C=SG"), [HOST], CertificateProfile.TLS_SERVER)
    forged = parsing.read_csr(csr.public_bytes(Encoding.DER).replace(b"broker", b"brokes"))
    assert "Request/Proof of possession" in warned(describe(forged))
    asking = create_csr(OWN, name_from_text("CN=broker,C=SG"), [], CertificateProfile.INTERMEDIATE)
    assert "Request/Asks for CA rights" in warned(describe(asking))


def test_a_challenge_password_is_not_shown() -> None:
    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(name_from_text("CN=broker"))
        .add_attribute(AttributeOID.CHALLENGE_PASSWORD, b"canary-7d1f")
        .sign(OWN, hashes.SHA256())
    )
    description = describe(csr)
    assert "Request/Challenge password" in warned(description)
    assert "canary" not in str(description) and b"canary".hex() not in str(description).replace(" ", "").lower()


def test_a_crl_lists_what_is_revoked(authority: Issuer, certificate: x509.Certificate) -> None:
    revoked = [Revoked(certificate.serial_number, NOW, x509.ReasonFlags.key_compromise)]
    crl = issue_crl(authority, revoked, 7, Validity.for_days(3))
    description = describe(crl, NOW)
    rows = rows_of(description)
    assert rows["Revocation list/Revoked certificates"].value == "1" and rows["Extensions/CRL number"].value == "7"
    text = rows["Revoked/Serial numbers"].value
    assert text.endswith("key compromise")
    assert int(text.split()[0].replace(":", ""), 16) == certificate.serial_number
    assert warned(description) == set()
    assert warned(describe(crl, NOW + timedelta(days=9))) == {"Revocation list/Next one by"}


def test_a_long_crl_is_shown_in_part(authority: Issuer) -> None:
    revoked = [Revoked(serial, NOW, x509.ReasonFlags.superseded) for serial in range(1, 1203)]
    rows = rows_of(describe(issue_crl(authority, revoked, 7, Validity.for_days(3)), NOW))
    assert rows["Revocation list/Revoked certificates"].value == "1,202"
    lines = rows["Revoked/Serial numbers"].value.splitlines()
    assert len(lines) == 151 and lines[-1] == "and 1,052 more (not shown)"


def test_long_lists_are_cut_and_counted() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, str(number)) for number in range(80)])
    hosts = [x509.DNSName(f"h{number}.example") for number in range(1000)]
    csr = x509.CertificateSigningRequestBuilder().subject_name(name)
    long = csr.add_extension(x509.SubjectAlternativeName(hosts), critical=False).sign(OWN, hashes.SHA256())
    rows = rows_of(describe(parsing.read_csr(long.public_bytes(Encoding.DER))))
    assert rows["Subject/Further ones"].value == "30 (not shown)"
    assert rows["Requested extensions/Subject alternative names"].value.endswith("and 850 more (not shown)")


def test_a_pkcs12_file_shows_its_contents(authority: Issuer, certificate: x509.Certificate) -> None:
    made = pkcs12.serialize_key_and_certificates(b"broker", OWN, certificate, [authority.certificate], NoEncryption())
    description = describe(parsing.read_pkcs12(made), NOW)
    rows = rows_of(description)
    assert rows["PKCS#12/Private key"].value == "ECDSA P-384"
    assert rows["PKCS#12/Key and certificate"].value == "belong together"
    assert rows["Certificate 1: 根/SHA-256"].value == grouped(fingerprint(authority.certificate))
    assert rows["Subject/Common name (CN)"].value == "broker"
    assert warned(description) == set()


def test_a_signed_message_is_described(authority: Issuer) -> None:
    message = cms.read(cms.sign(b"roots and CRLs", authority.certificate, authority.key))
    rows = rows_of(describe(message))
    assert rows["CMS SignedData/Signer"].value == "CN=根,C=CN" and rows["CMS SignedData/Content"].value == "14 bytes"


def test_hidden_characters_are_spelt_out_with_a_warning() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "safe\u202egnp")])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(OWN, hashes.SHA256())
    description = describe(csr)
    assert rows_of(description)["Subject/Common name (CN)"].value == "safe<U+202E>gnp"
    assert "Subject/Common name (CN)" in warned(description) and "\u202e" not in str(description)


def test_two_things_are_compared_row_by_row(authority: Issuer, certificate: x509.Certificate) -> None:
    same = compare(certificate, certificate, NOW)
    assert same.rows and all(row.same for row in same.rows)
    other = compare(authority.certificate, certificate, NOW)
    by_place = {(row.section, row.label): row for row in other.rows}
    assert (other.left, other.right) == ("Certificate 根", "Certificate broker")
    assert by_place["Issuer", "Common name (CN)"].same and not by_place["Subject", "Common name (CN)"].same
    only_right = by_place["Extensions", "Extended key usage"]
    assert only_right.left is None and only_right.right is not None and not only_right.same
    sections = [row.section for row in other.rows]
    assert sections == sorted(sections, key=sections.index), "rows of a section stand together"


def test_a_repeated_attribute_is_compared_twice() -> None:
    one, two = (
        create_csr(OWN, name_from_text(f"OU={last},OU=Unit,C=SG"), [], CertificateProfile.TLS_CLIENT)
        for last in ("A", "B")
    )
    units = [row for row in compare(one, two).rows if row.label == "Organisational unit (OU)"]
    assert [row.same for row in units] == [True, False]


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_a_serial_number_that_is_not_positive_is_warned_of() -> None:
    name, days = name_from_text("CN=old"), Validity.for_days(1)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 0x11223344, days.not_before, days.not_after)
    der = builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)
    assert der.count(b"\x02\x04\x11\x22\x33\x44") == 1
    negative = der.replace(b"\x02\x04\x11", b"\x02\x04\x80")
    description = describe(parsing.read_certificate(negative), NOW)
    assert "Certificate/Serial number" in warned(description)
    assert rows_of(description)["Certificate/Serial number"].value.endswith(": not positive")


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_a_serial_number_of_thousands_of_digits_is_shown_in_hex() -> None:
    """Python prints no decimal number of more than 4,300 digits."""
    made = asn1_x509.Certificate.load(new_authority("old").certificate.public_bytes(Encoding.DER))
    made["tbs_certificate"]["serial_number"] = -(1 << 20_000)
    shown = rows_of(describe(parsing.read_certificate(made.dump(force=True)), NOW))["Certificate/Serial number"].value
    assert shown.startswith("-01:00:") and shown.endswith(": not positive")
