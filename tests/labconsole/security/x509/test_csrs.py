"""Certificate signing requests: what they ask for, and what speaks against them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from labconsole.errors import BadInput
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import create_csr, judge_csr
from labconsole.security.x509.issuing import make_self_signed
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.names import general_name_from_text, malformed
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named
from tests.helpers.mutations import mutations, tenth_and_all
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of

HOST = [x509.DNSName("client.example.sg"), x509.DNSName("xn--bcher-kva.example")]
NAME = named("CN=國家 A,C=SG")
KEY = key_of(KeyType.P_256)


@pytest.mark.parametrize(
    "profile", [profile for profile in CertificateProfile if profile is not CertificateProfile.ROOT]
)
def test_the_purpose_of_a_csr_is_read(profile: CertificateProfile) -> None:
    judgement = judge_csr(create_csr(KEY, NAME, HOST, profile))
    assert judgement.proof_of_possession
    assert judgement.profile is profile
    assert judgement.names == tuple(HOST)
    assert judgement.asks_for_ca == (profile is CertificateProfile.INTERMEDIATE)
    assert bool(judgement.problems) == judgement.asks_for_ca


def test_a_csr_without_extensions_is_accepted() -> None:
    csr = x509.CertificateSigningRequestBuilder().subject_name(NAME).sign(KEY, hashes.SHA256())
    judgement = judge_csr(csr)
    assert (judgement.profile, judgement.names, judgement.extensions, judgement.problems) == (None, (), (), ())


def altered(old: bytes, new: bytes) -> x509.CertificateSigningRequest:
    der = create_csr(KEY, named("CN=Original"), HOST, CertificateProfile.TLS_CLIENT).public_bytes(Encoding.DER)
    assert old in der
    return x509.load_der_x509_csr(der.replace(old, new))


def test_a_request_that_was_altered_proves_nothing() -> None:
    judgement = judge_csr(altered(b"Original", b"Imposter"))
    assert not judgement.proof_of_possession
    assert "not by the key in it" in judgement.problems[0]


def test_unreadable_extensions_are_reported() -> None:
    judgement = judge_csr(altered(b"client.example.sg", b"client.example.\xff\xff"))
    assert any("cannot be read" in problem for problem in judgement.problems)
    assert judgement.names == ()


def test_a_key_on_no_curve_is_reported() -> None:
    encoded = KEY.public_key().public_numbers()  # type: ignore[union-attr]
    judgement = judge_csr(altered(encoded.y.to_bytes(32, "big"), (encoded.y ^ 1).to_bytes(32, "big")))
    assert not judgement.proof_of_possession
    assert any("cannot be read" in problem for problem in judgement.problems)


def test_a_weak_key_and_an_empty_name_are_reported() -> None:
    weak = rsa.generate_private_key(65537, 1024)
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(weak, hashes.SHA256())
    problems = " ".join(judge_csr(csr).problems)
    assert "RSA-1024, which is too short" in problems
    assert "has no name" in problems


def test_a_broken_hash_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    said = run_openssl("req", "-new", "-key", file, "-sha1", "-subj", "/CN=x")
    judgement = judge_csr(x509.load_pem_x509_csr(said.encode()))
    assert any("signed with SHA1" in problem for problem in judgement.problems)


def test_a_csr_for_ca_rights_by_key_usage_alone_is_reported() -> None:
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(NAME).add_extension(usage, critical=True)
    assert judge_csr(builder.sign(KEY, hashes.SHA256())).asks_for_ca


@pytest.mark.parametrize(
    "name",
    [
        *map(x509.DNSName, ("a.example\0.b.example", "*", "a b.example", " a.example", ".a.example", "a.example/b")),
        x509.UniformResourceIdentifier("https://a.example/\r\nX: y"),
        x509.RFC822Name("a.example"),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
        x509.OtherName(x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3"), b"\x0c\x05admin"),
    ],
)
def test_names_that_libraries_read_differently_are_reported_and_never_issued(name: x509.GeneralName) -> None:
    san = x509.SubjectAlternativeName([*HOST, name])
    csr = (
        x509.CertificateSigningRequestBuilder().subject_name(NAME).add_extension(san, False).sign(KEY, hashes.SHA256())
    )
    [problem] = judge_csr(csr).problems
    assert "is not a valid host, address, mail address or URI" in problem
    with pytest.raises(BadInput, match="is not a valid host"):
        make_self_signed(KEY, NAME, [*HOST, name], CertificateProfile.TLS_CLIENT, Validity.for_days(9))


@pytest.mark.parametrize(
    "text",
    ["A.Example", "*.bücher.example", "IP:2001:db8::1", "URI:https://a.example/x", "Åsa@example.org", "b@A.example"],
)
def test_names_that_people_type_are_issued(text: str) -> None:
    name = general_name_from_text(text)
    made = make_self_signed(KEY, NAME, [name], CertificateProfile.TLS_CLIENT, Validity.for_days(9))
    assert list(made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == [name]
    assert malformed([x509.DNSName("BROKER.Example"), x509.RFC822Name("b@EXAMPLE.org")]) is None


def test_a_csr_without_a_name_is_not_created() -> None:
    with pytest.raises(BadInput, match="Neither a subject nor an alternative name"):
        create_csr(KEY, x509.Name([]), [], CertificateProfile.TLS_CLIENT)
    with pytest.raises(BadInput, match="take RSA or ECDSA"):
        create_csr(key_of(KeyType.ED25519), NAME, HOST, CertificateProfile.MESSAGE_ENCRYPTION)


@pytest.mark.parametrize("count", tenth_and_all(1000))
@pytest.mark.parametrize("type", [KeyType.RSA_2048, KeyType.P_256, KeyType.ML_DSA_44])
def test_damaged_requests_are_judged(type: KeyType, count: int) -> None:
    """Whatever a reader of DER lets through is judged; what says something else than the original proves nothing."""
    original = create_csr(key_of(type), NAME, HOST, CertificateProfile.TLS_CLIENT)
    judged = 0
    for data in mutations(original.public_bytes(Encoding.DER), count, seed=7):
        try:
            csr = x509.load_der_x509_csr(data)
        except (ValueError, x509.InvalidVersion):
            continue
        judged += 1
        same = csr.tbs_certrequest_bytes == original.tbs_certrequest_bytes
        assert same or not judge_csr(csr).proof_of_possession
    assert judged > count / 20
