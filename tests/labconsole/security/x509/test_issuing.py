"""The contents of certificates, and the requests that CAs refuse."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID

from labconsole.errors import BadInput
from labconsole.security.x509.certificate_profiles import TEXTS, CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue, issue_root, make_self_signed
from labconsole.security.x509.key_types import KeyType, PublicKey
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named, new_authority
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of

PUBLIC_KEY = key_of(KeyType.P_256).public_key()
MONTH = Validity.for_days(30)
HOST = [x509.DNSName("broker.example.sg")]
SERVER = CertificateProfile.TLS_SERVER


@pytest.fixture(scope="module")
def root() -> Issuer:
    return new_authority("State A Root")


def end(issuer: Issuer, public_key: PublicKey = PUBLIC_KEY, profile: CertificateProfile = SERVER) -> x509.Certificate:
    return issue(issuer, public_key, named("CN=Broker"), HOST, profile, MONTH)


def below(issuer: Issuer, subject: str = "CN=Below", path_length: int | None = None) -> Issuer:
    key = key_of(KeyType.P_384)
    profile = CertificateProfile.INTERMEDIATE
    made = issue(issuer, key.public_key(), named(subject), [], profile, MONTH, path_length=path_length)
    return Issuer(made, key, (issuer.certificate, *issuer.chain))


def value(certificate: x509.Certificate, type: type[x509.ExtensionType]) -> object:
    return certificate.extensions.get_extension_for_class(type).value


def test_serial_numbers_are_random_positive_and_of_twenty_octets_at_most(root: Issuer) -> None:
    serials = [end(root).serial_number for _ in range(64)]
    assert len(set(serials)) == len(serials)
    assert all(0 < serial < 1 << 159 for serial in serials)
    assert max(serials) > 1 << 150  # one of 64 numbers of 159 bits is shorter than that every 1e150 times


def test_a_root_says_that_it_is_one() -> None:
    root = new_authority("Root", path_length=1).certificate
    basic = root.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value) == (True, x509.BasicConstraints(ca=True, path_length=1))
    usage = root.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.key_cert_sign, usage.value.crl_sign, usage.value.key_encipherment) == (True, True, False)
    own = root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert value(root, x509.AuthorityKeyIdentifier) == x509.AuthorityKeyIdentifier(own.digest, None, None)


def test_an_end_certificate_names_its_issuer_and_where_it_is_revoked(root: Issuer) -> None:
    made = issue(
        root,
        PUBLIC_KEY,
        named("CN=Broker"),
        [*HOST, *HOST],
        SERVER,
        MONTH,
        crl_url="http://crl.example.sg/a.crl",
        ocsp_url="http://ocsp.example.sg/",
    )
    assert made.issuer == root.certificate.subject
    own = root.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert value(made, x509.AuthorityKeyIdentifier) == x509.AuthorityKeyIdentifier(own.digest, None, None)
    assert value(made, x509.SubjectAlternativeName) == x509.SubjectAlternativeName(HOST)
    (point,) = made.extensions.get_extension_for_class(x509.CRLDistributionPoints).value
    assert point.full_name == [x509.UniformResourceIdentifier("http://crl.example.sg/a.crl")]
    (access,) = made.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
    assert access.access_method == AuthorityInformationAccessOID.OCSP
    assert access.access_location == x509.UniformResourceIdentifier("http://ocsp.example.sg/")


@pytest.mark.parametrize(
    ("profile", "rsa_usage", "ec_usage", "purposes"),
    [
        (SERVER, "digital_signature key_encipherment", "digital_signature", "SERVER_AUTH"),
        (CertificateProfile.TLS_CLIENT, "digital_signature", "digital_signature", "CLIENT_AUTH"),
        (
            CertificateProfile.MESSAGE_SIGNING,
            "digital_signature content_commitment",
            "digital_signature content_commitment",
            "EMAIL_PROTECTION",
        ),
        (CertificateProfile.MESSAGE_ENCRYPTION, "key_encipherment", "key_agreement", "EMAIL_PROTECTION"),
        (
            CertificateProfile.STATE,
            "digital_signature content_commitment key_encipherment",
            "digital_signature content_commitment key_agreement",
            "CLIENT_AUTH EMAIL_PROTECTION",
        ),
        (CertificateProfile.OCSP_RESPONDER, "digital_signature", "digital_signature", "OCSP_SIGNING"),
    ],
)
def test_a_profile_and_the_type_of_key_decide_the_usage(
    root: Issuer, profile: CertificateProfile, rsa_usage: str, ec_usage: str, purposes: str
) -> None:
    for type, expected in ((KeyType.RSA_2048, rsa_usage), (KeyType.P_256, ec_usage)):
        made = end(root, key_of(type).public_key(), profile)
        usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
        names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
        assert [name for name in (*names, "key_cert_sign", "crl_sign") if getattr(usage, name)] == expected.split()
        assert list(made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
            getattr(ExtendedKeyUsageOID, purpose) for purpose in purposes.split()
        ]
        assert value(made, x509.BasicConstraints) == x509.BasicConstraints(ca=False, path_length=None)
        responder = profile is CertificateProfile.OCSP_RESPONDER
        assert any(isinstance(extension.value, x509.OCSPNoCheck) for extension in made.extensions) == responder


def test_the_year_2050_is_said_in_another_form_and_nothing_is_too_long(root: Issuer) -> None:
    """UTCTime through 2049, GeneralizedTime after (RFC 5280, 4.1.2.5); no rule of browsers shortens it."""
    key = root.key
    made = issue_root(
        key, named("CN=Long"), Validity(datetime(2049, 12, 31, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC))
    )
    der = made.public_bytes(Encoding.DER)
    assert b"\x17\x0d491231000000Z\x18\x0f20500101000000Z" in der
    lasting = issue_root(key, named("CN=Lasting"), Validity.for_days(36_500))
    assert lasting.not_valid_after_utc - lasting.not_valid_before_utc > timedelta(days=36_500)


def test_an_end_certificate_ends_with_its_issuer_at_the_latest() -> None:
    root = new_authority("Root", Validity.for_days(30))
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30, minutes=59)
    made = issue(root, PUBLIC_KEY, named("CN=x"), HOST, SERVER, Validity(MONTH.not_before, later))
    assert made.not_valid_after_utc == root.certificate.not_valid_after_utc
    with pytest.raises(BadInput, match="own certificate ends on"):
        issue(root, PUBLIC_KEY, named("CN=x"), HOST, SERVER, Validity.for_days(31))


def test_an_empty_subject_makes_the_names_critical(root: Issuer, tmp_path: Path) -> None:
    made = issue(root, PUBLIC_KEY, x509.Name([]), HOST, SERVER, MONTH)
    assert made.extensions.get_extension_for_class(x509.SubjectAlternativeName).critical
    assert not end(root).extensions.get_extension_for_class(x509.SubjectAlternativeName).critical
    for name, certificate in (("root", root.certificate), ("end", made)):
        (tmp_path / name).write_bytes(certificate.public_bytes(Encoding.PEM))
    run_openssl("verify", "-x509_strict", "-CAfile", tmp_path / "root", tmp_path / "end")


def test_path_lengths_are_kept() -> None:
    root = new_authority("Root", path_length=1)
    assert value(below(root).certificate, x509.BasicConstraints) == x509.BasicConstraints(ca=True, path_length=None)
    with pytest.raises(BadInput, match="at most 0"):
        below(root, path_length=1)
    last = below(root, path_length=0)
    with pytest.raises(BadInput, match="signs end certificates only"):
        below(last, "CN=Too deep")
    assert end(last).issuer == named("CN=Below")


def weak(root: Issuer) -> x509.Certificate:
    return end(root, rsa.generate_private_key(65537, 1024).public_key())


def no_authority(root: Issuer) -> x509.Certificate:
    key = key_of(KeyType.P_256)
    return end(Issuer(make_self_signed(key, named("CN=Own"), HOST, SERVER, MONTH), key))


def another_key(root: Issuer) -> Issuer:
    return Issuer(root.certificate, key_of(KeyType.P_384))


REFUSED: dict[str, tuple[Callable[[Issuer], object], str]] = {
    "a weak key": (weak, "too short"),
    "no CA": (no_authority, "CN=Own is not a CA"),
    "another's key": (another_key, "not that of the certificate"),
    "a root issued": (lambda root: end(root, profile=CertificateProfile.ROOT), "signs itself"),
    "nobody": (
        lambda root: issue(root, PUBLIC_KEY, x509.Name([]), [], CertificateProfile.TLS_CLIENT, MONTH),
        "Neither",
    ),
    "a server without a name": (lambda root: issue(root, PUBLIC_KEY, named("CN=x"), [], SERVER, MONTH), "host name"),
    "a CA without a subject": (lambda root: issue_root(root.key, x509.Name([]), MONTH), "needs a subject"),
    "an end certificate with limits": (
        lambda root: issue(root, PUBLIC_KEY, named("CN=x"), HOST, SERVER, MONTH, path_length=0),
        "for CAs only",
    ),
    "a self-signed CA as an end certificate": (
        lambda root: make_self_signed(root.key, named("CN=x"), HOST, CertificateProfile.INTERMEDIATE, MONTH),
        "without any CA",
    ),
    "a URL that is none": (
        lambda root: issue(root, PUBLIC_KEY, named("CN=x"), HOST, SERVER, MONTH, crl_url="crl.example"),
        "not a URL",
    ),
    "encryption to a key that only signs": (
        lambda root: end(root, key_of(KeyType.ED25519).public_key(), CertificateProfile.STATE),
        "take RSA or ECDSA",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_path_validation_would_accept_is_not_issued(root: Issuer, what: str) -> None:
    attempt, said = REFUSED[what]
    with pytest.raises(BadInput, match=said):
        attempt(root)


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_a_validity_that_is_a_slip_is_refused(days: int) -> None:
    with pytest.raises(BadInput, match="choose 1 to 36,500 days"):
        Validity.for_days(days)


def test_a_validity_that_cannot_be_is_refused() -> None:
    with pytest.raises(BadInput, match="ends before it begins"):
        Validity(MONTH.not_after, MONTH.not_before)
    with pytest.raises(BadInput, match="before 1950"):
        Validity(datetime(1949, 12, 31, tzinfo=UTC), MONTH.not_after)


def test_people_have_words_for_every_profile() -> None:
    assert set(TEXTS) == set(CertificateProfile)
