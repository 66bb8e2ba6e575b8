"""The gate: what is read is whole, what is refused has one sentence that says what is wrong and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from asn1crypto import core, keys, pem
from asn1crypto import crl as asn1_crl
from asn1crypto import pkcs12 as asn1_pkcs12
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs7,
    pkcs12,
)

from labconsole.errors import BadInput
from labconsole.security.secrets import Secret
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import issue_crl
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.parsing import ContentKind
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named, new_authority
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of

PASSWORD = Secret("long-and-secret")
KEY = key_of(KeyType.P_256)
ENCODINGS = (Encoding.PEM, Encoding.DER)


@pytest.fixture(scope="module")
def authority() -> Issuer:
    return new_authority("Root of A")


@pytest.fixture(scope="module")
def csr() -> x509.CertificateSigningRequest:
    return create_csr(KEY, named("CN=broker"), [], CertificateProfile.TLS_SERVER)


@pytest.fixture(scope="module")
def crl(authority: Issuer) -> x509.CertificateRevocationList:
    return issue_crl(authority, [], 1, Validity.for_days(3))


def key_bytes(encoding: Encoding = Encoding.PEM, password: Secret | None = None) -> bytes:
    protection = NoEncryption() if password is None else BestAvailableEncryption(password.reveal().encode())
    return KEY.private_bytes(encoding, PrivateFormat.PKCS8, protection)


def pkcs12_bytes(authority: Issuer, password: Secret | None = PASSWORD) -> bytes:
    protection = NoEncryption() if password is None else BestAvailableEncryption(password.reveal().encode())
    other = new_authority("Another").certificate
    return pkcs12.serialize_key_and_certificates(
        b"broker of A", authority.key, authority.certificate, [other], protection
    )


def refusal(read: Callable[[], object]) -> str:
    """The one sentence with which something is refused."""
    with pytest.raises(BadInput) as refused:
        read()
    sentence = str(refused.value)
    assert sentence.startswith("The ") and sentence.endswith(".") and ": " in sentence and "\n" not in sentence
    return sentence


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_kind_is_read_in_both_encodings(
    authority: Issuer, csr: x509.CertificateSigningRequest, crl: x509.CertificateRevocationList, encoding: Encoding
) -> None:
    certificate = authority.certificate
    assert parsing.read_certificate(certificate.public_bytes(encoding)) == certificate
    assert parsing.read_csr(csr.public_bytes(encoding)) == csr
    assert parsing.read_crl(crl.public_bytes(encoding)) == crl
    for password in (None, PASSWORD):
        assert parsing.read_private_key(key_bytes(encoding, password), password).public_key() == KEY.public_key()
    kinds = {
        ContentKind.CERTIFICATE: certificate.public_bytes(encoding),
        ContentKind.CSR: csr.public_bytes(encoding),
        ContentKind.CRL: crl.public_bytes(encoding),
        ContentKind.PRIVATE_KEY: key_bytes(encoding),
        ContentKind.ENCRYPTED_PRIVATE_KEY: key_bytes(encoding, PASSWORD),
    }
    for kind, data in kinds.items():
        assert parsing.kind_of(data) is kind
        assert len(parsing.read(data, PASSWORD)) == 1


@pytest.mark.parametrize("type", [type for type in KeyType if not type.startswith("rsa-")])
def test_keys_of_every_type_are_read(type: KeyType) -> None:
    key = key_of(type)
    protection = BestAvailableEncryption(PASSWORD.reveal().encode())
    data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)
    assert parsing.read_private_key(data, PASSWORD).public_key() == key.public_key()


def test_old_key_files_of_openssl_are_read() -> None:
    protection = BestAvailableEncryption(PASSWORD.reveal().encode())
    data = KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, protection)
    assert b"Proc-Type: 4,ENCRYPTED" in data and parsing.kind_of(data) is ContentKind.ENCRYPTED_PRIVATE_KEY
    assert parsing.read_private_key(data, PASSWORD).public_key() == KEY.public_key()
    with_parameters = run_openssl("ecparam", "-name", "prime256v1", "-genkey").encode()
    assert with_parameters.startswith(b"-----BEGIN EC PARAMETERS-----")
    assert parsing.kind_of(with_parameters) is ContentKind.PRIVATE_KEY
    parsing.read_private_key(with_parameters)


def test_a_chain_is_read_in_its_order_and_text_around_it_does_not_matter(authority: Issuer) -> None:
    other = new_authority("Root of B").certificate
    mail = (
        b"\xef\xbb\xbfDear colleague,\r\n   "
        + other.public_bytes(Encoding.PEM).replace(b"\n", b"\r\n   ")
        + b"Subject: CN=...\n"
        + authority.certificate.public_bytes(Encoding.PEM)
        + b"Regards"
    )
    assert parsing.read_certificates(mail) == (other, authority.certificate)
    assert "holds 2 certificates: give them one by one" in refusal(lambda: parsing.read_certificate(mail))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_certificates_of_a_p7b_file_are_read(authority: Issuer, encoding: Encoding) -> None:
    data = pkcs7.serialize_certificates([authority.certificate], encoding)
    assert parsing.kind_of(data) is ContentKind.CMS
    assert parsing.read_certificates(data) == parsing.read(data) == (authority.certificate,)


def test_a_pkcs12_file_is_read_with_its_password(authority: Issuer) -> None:
    data = pkcs12_bytes(authority)
    assert parsing.kind_of(data) is ContentKind.PKCS12
    read = parsing.read_pkcs12(data, PASSWORD)
    assert read.key is not None and read.key.public_key() == authority.certificate.public_key()
    assert read.certificate == authority.certificate and len(read.chain) == 1 and read.friendly_name == "broker of A"
    for password in (None, Secret("wrong"), Secret("")):
        assert "passphrase is wrong or missing" in refusal(lambda: parsing.read_pkcs12(data, password))  # noqa: B023
    assert parsing.read_pkcs12(pkcs12_bytes(authority, None)).key is not None


def test_openssl_reads_the_same_pkcs12(authority: Issuer, tmp_path: Path) -> None:
    """A file that openssl writes, with the older encryption that others still send."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    key.write_bytes(authority.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    certificate.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    made = tmp_path / "made.p12"
    run_openssl(
        *("pkcs12", "-export", "-inkey", key, "-in", certificate, "-out", made, "-passout", "pass:x"),
        *("-keypbe", "PBE-SHA1-3DES", "-certpbe", "PBE-SHA1-3DES", "-macalg", "sha1", "-name", "ブローカー"),
    )
    read = parsing.read_pkcs12(made.read_bytes(), Secret("x"))
    assert read.certificate == authority.certificate and read.friendly_name == "ブローカー"


def test_a_private_key_in_place_of_a_certificate_is_reported(
    authority: Issuer, csr: x509.CertificateSigningRequest
) -> None:
    certificate = authority.certificate.public_bytes(Encoding.PEM)
    for data in (key_bytes(), key_bytes(Encoding.DER), key_bytes(password=PASSWORD)):
        for read in (parsing.read_certificate, parsing.read_csr, parsing.read_crl):
            assert "holds a private key and not" in (message := refusal(lambda: read(data))), message  # noqa: B023
            assert "keep this one secret" in message
    assert "holds a certificate and not a private key" in refusal(lambda: parsing.read_private_key(certificate))
    assert "holds a certificate signing request and not a certificate:" in refusal(
        lambda: parsing.read_certificate(csr.public_bytes(Encoding.DER))
    )
    assert "holds a certificate and not a PKCS#12 file" in refusal(lambda: parsing.read_pkcs12(certificate))


def test_missing_and_wrong_passphrases_are_reported_without_showing_them() -> None:
    for encoding in ENCODINGS:
        data = key_bytes(encoding, PASSWORD)
        assert refusal(lambda: parsing.read_private_key(data, what="The file a.key")) == (  # noqa: B023
            "The file a.key is encrypted: give its passphrase."
        )
        wrong = refusal(lambda: parsing.read_private_key(data, Secret("guessed")))  # noqa: B023
        assert "passphrase is wrong" in wrong and "guessed" not in wrong


def test_a_key_that_signs_no_certificate_is_refused() -> None:
    key = x25519.X25519PrivateKey.generate()
    data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert "of a kind that signs no certificate" in refusal(lambda: parsing.read_private_key(data))


@pytest.mark.parametrize("part", [0.3, 0.9, 0.99])
def test_truncated_files_are_reported(authority: Issuer, part: float) -> None:
    for encoding, reason in (
        (Encoding.PEM, "is damaged, a BEGIN line and its END line do not meet"),
        (Encoding.DER, "cut off"),
    ):
        whole = authority.certificate.public_bytes(encoding)
        cut = whole[: int(len(whole) * part)]
        assert reason in refusal(lambda: parsing.read_certificate(cut))  # noqa: B023
        assert parsing.kind_of(cut) is ContentKind.UNKNOWN


def test_boundaries_of_two_kinds_do_not_meet(authority: Issuer) -> None:
    pem = authority.certificate.public_bytes(Encoding.PEM).replace(b"END CERTIFICATE", b"END X509 CRL")
    assert "do not meet" in refusal(lambda: parsing.read_certificate(pem))


@pytest.mark.parametrize("data", [b"", b" \n", b"hello", b"0", b"\x30\x80", b"\x30\x00", b"\xff" * 99, bytes(10)])
def test_files_without_any_known_content_are_refused(data: bytes) -> None:
    assert parsing.kind_of(data) is ContentKind.UNKNOWN and parsing.kinds_of(data) == ()
    for read in (parsing.read, parsing.read_certificates, parsing.read_csr, parsing.read_crl, parsing.read_private_key):
        refusal(lambda: read(data))  # noqa: B023
    refusal(lambda: parsing.read_pkcs12(data))


def test_a_fault_deep_inside_is_found_at_once(authority: Issuer) -> None:
    """`cryptography` parses extensions when they are first read: no code after the strict parser may meet a fault."""
    der = authority.certificate.public_bytes(Encoding.DER)
    constraints = bytes.fromhex("0603551d13 0101ff 0405 3003 0101ff")  # basicConstraints, a sequence in it
    assert der.count(constraints) == 1
    faulty = der.replace(constraints, constraints.replace(b"\x30\x03", b"\x31\x03"))
    loaded = x509.load_der_x509_certificate(faulty)
    with pytest.raises(ValueError):
        _ = loaded.extensions
    assert "damaged or not as its standard says" in refusal(lambda: parsing.read_certificate(faulty))


def test_a_crl_without_next_update_is_refused(authority: Issuer) -> None:
    crl = issue_crl(authority, [], 1, Validity.for_days(3))
    parsed = asn1_crl.CertificateList.load(crl.public_bytes(Encoding.DER))
    content = parsed["tbs_cert_list"]
    del content["next_update"]
    data = asn1_crl.CertificateList(
        {
            "tbs_cert_list": content,
            "signature_algorithm": parsed["signature_algorithm"],
            "signature": parsed["signature"],
        }
    ).dump(force=True)
    assert x509.load_der_x509_crl(data).next_update_utc is None
    assert "a revocation list that is damaged or not as" in refusal(lambda: parsing.read_crl(data))


def test_an_unknown_public_key_is_refused(authority: Issuer) -> None:
    der = authority.certificate.public_bytes(Encoding.DER)
    ec_public_key = bytes.fromhex("06072a8648ce3d0201")  # RFC 5480
    assert der.count(ec_public_key) == 1
    odd = der.replace(ec_public_key, ec_public_key[:-1] + b"\x7f")
    assert "with an algorithm that is not supported" in refusal(lambda: parsing.read_certificate(odd))


def test_work_that_a_file_demands_is_limited(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(key_bytes())
    made = keys.EncryptedPrivateKeyInfo.load(key_bytes(Encoding.DER, PASSWORD))
    made["encryption_algorithm"]["parameters"]["key_derivation_func"]["parameters"]["iteration_count"] = 2**31 - 1
    demanding = made.dump(force=True)
    assert parsing.kind_of(demanding) is ContentKind.ENCRYPTED_PRIVATE_KEY
    assert "demands far too much work" in refusal(lambda: parsing.read_private_key(demanding, PASSWORD))
    usual = run_openssl("pkcs8", "-topk8", "-scrypt", "-in", key, "-passout", "pass:x").encode()
    assert parsing.read_private_key(usual, Secret("x")).public_key() == KEY.public_key()
    usual_work, much_work = (bytes.fromhex(f"02024000 0201{r} 0201{p}") for r, p in (("08", "01"), ("7f", "7f")))
    greedy = pem.unarmor(usual)[2].replace(usual_work, much_work)  # N = 16,384; r and p
    assert much_work in greedy
    assert "demands far too much work" in refusal(lambda: parsing.read_private_key(greedy, Secret("x")))


def test_a_pkcs12_file_that_demands_too_much_is_refused(authority: Issuer) -> None:
    file = asn1_pkcs12.Pfx.load(pkcs12_bytes(authority))
    file["mac_data"]["iterations"] = 2**31 - 1
    data = file.dump(force=True)
    assert "demands far too much work" in refusal(lambda: parsing.read_pkcs12(data, PASSWORD))


def test_files_are_read_up_to_a_limit(tmp_path: Path, authority: Issuer) -> None:
    path = tmp_path / "a.pem"
    assert "does not exist" in refusal(lambda: parsing.read_file(path))
    assert "is not a file" in refusal(lambda: parsing.read_file(tmp_path))
    path.write_bytes(b"")
    assert "is empty" in refusal(lambda: parsing.read_file(path))
    path.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    assert parsing.read_certificate(parsing.read_file(path)) == authority.certificate
    with path.open("ab") as file:
        file.truncate(parsing.MAX_BYTES + 1)
    assert "longer than 4 MiB" in refusal(lambda: parsing.read_file(path))
    assert "longer than 4 MiB" in refusal(lambda: parsing.read_certificates(bytes(parsing.MAX_BYTES) + b"1"))


@pytest.mark.skipif(os.name != "posix", reason="pipes with names are POSIX")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "is not a file" in refusal(lambda: parsing.read_file(pipe))


def test_many_begin_lines_cost_no_time() -> None:
    """A file made to keep a careless reader busy for hours."""
    data = b"-----BEGIN CERTIFICATE-----\n" * (parsing.MAX_BYTES // 28)
    assert "damaged" in refusal(lambda: parsing.read_certificates(data))


def test_a_certificate_of_another_make_is_read() -> None:
    """Without any extension, version 1: old, but whole."""
    name = named("CN=old")
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(Validity.for_days(1).not_before)
        .not_valid_after(Validity.for_days(1).not_after)
        .sign(KEY, hashes.SHA256())
    )
    assert parsing.read_certificate(certificate.public_bytes(Encoding.PEM)) == certificate


def test_a_certificate_or_csr_far_longer_than_any_is_refused() -> None:
    """One of some megabytes would block the window."""
    hosts = x509.SubjectAlternativeName([x509.DNSName(f"h{number}.example") for number in range(8000)])
    request = x509.CertificateSigningRequestBuilder().subject_name(named("CN=broker")).add_extension(hosts, False)
    data = request.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)
    assert "KiB, far longer than any in use" in refusal(lambda: parsing.read_csr(data))


def test_a_crl_number_of_thousands_of_digits_is_refused(crl: x509.CertificateRevocationList) -> None:
    """RFC 5280, 5.2.3: at most 20 octets. Python prints no number of more than 4,300 digits."""
    parsed = asn1_crl.CertificateList.load(crl.public_bytes(Encoding.DER))
    [number] = [each for each in parsed["tbs_cert_list"]["crl_extensions"] if each["extn_id"].native == "crl_number"]
    number["extn_value"] = core.ParsableOctetString(core.Integer(1 << 20_000).dump())
    assert "a revocation list that is damaged or not as" in refusal(lambda: parsing.read_crl(parsed.dump(force=True)))


def test_a_file_name_of_300_characters_is_refused() -> None:
    assert "cannot be read (File name too long)" in refusal(lambda: parsing.read_file(Path("x" * 300)))
