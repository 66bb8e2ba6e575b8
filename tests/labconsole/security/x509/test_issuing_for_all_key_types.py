"""What is issued, as openssl and pkilint see it, for every type of key."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.csrs import create_csr, judge_csr
from labconsole.security.x509.issuing import Issuer, issue, issue_root, make_self_signed
from labconsole.security.x509.key_types import KeyType, type_of
from labconsole.security.x509.validity import Validity
from tests.helpers.openssl_command import run_openssl
from tests.helpers.pkilint_errors import certificate_errors, chain_errors, crl_errors
from tests.helpers.x509_keys import key_of

KNOWN_TO_OPENSSL_3_0 = [type for type in KeyType if not type.startswith("ml-dsa")]
NAMES = [x509.DNSName("broker.a.example"), x509.DNSName("xn--bcher-kva.a.example")]
YEARS = Validity.for_days(3650)
WEEK = Validity.for_days(7)


class Issued:
    """A State's root, intermediate CA, end certificates of all profiles, CSR and CRL, all with keys of one type."""

    def __init__(self, type: KeyType) -> None:
        key = key_of(type)
        self.root = Issuer(issue_root(key, _name("CN=State A Root,O=Luftfahrt-Behörde,C=SG"), YEARS), key)
        below = issue(
            self.root,
            key.public_key(),
            _name("CN=State A 中間,C=SG"),
            [],
            CertificateProfile.INTERMEDIATE,
            Validity.for_days(1000),
            path_length=0,
            name_constraints=[x509.DNSName("a.example")],
            crl_url="http://crl.example/root.crl",
        )
        self.intermediate = Issuer(below, key, (self.root.certificate,))
        self.ends = {
            profile: issue(
                self.intermediate,
                key.public_key(),
                _name("CN=Bücher,C=SG"),
                NAMES,
                profile,
                Validity.for_days(900),
                crl_url="http://crl.example/a.crl",
                ocsp_url="http://ocsp.example/",
            )
            for profile in _end_profiles(type)
        }
        self.csr = create_csr(key, _name("CN=Bücher,C=SG"), NAMES, CertificateProfile.TLS_SERVER)
        revoked = [
            Revoked(certificate.serial_number, datetime.now(UTC), reason)
            for certificate, reason in zip(self.ends.values(), x509.ReasonFlags, strict=False)
            if reason is not x509.ReasonFlags.remove_from_crl
        ]
        self.crl = issue_crl(self.intermediate, revoked, 7, WEEK)


def _name(text: str) -> x509.Name:
    return x509.Name.from_rfc4514_string(text)


def _end_profiles(type: KeyType) -> list[CertificateProfile]:
    ends = [CertificateProfile.TLS_SERVER, CertificateProfile.TLS_CLIENT, CertificateProfile.MESSAGE_SIGNING]
    ends.append(CertificateProfile.OCSP_RESPONDER)
    if type.startswith(("rsa", "p-")):
        ends += [CertificateProfile.MESSAGE_ENCRYPTION, CertificateProfile.STATE]
    return ends


@pytest.fixture(scope="module", params=list(KeyType))
def issued(request: pytest.FixtureRequest) -> Issued:
    return Issued(request.param)


def test_pkilint_finds_nothing(issued: Issued) -> None:
    chain = [issued.root.certificate, issued.intermediate.certificate]
    for certificate in (*chain, *issued.ends.values()):
        assert certificate_errors(certificate) == []
    assert chain_errors(*chain) == []
    assert chain_errors(issued.root.certificate, issued.root.certificate) == []
    for certificate in issued.ends.values():
        assert chain_errors(issued.intermediate.certificate, certificate) == []
    assert crl_errors(issued.crl) == []


def test_cryptography_verifies_every_signature(issued: Issued) -> None:
    """openssl 3.0 knows no ML-DSA: the library, with an openssl of its own, does."""
    issued.root.certificate.verify_directly_issued_by(issued.root.certificate)
    issued.intermediate.certificate.verify_directly_issued_by(issued.root.certificate)
    for certificate in issued.ends.values():
        certificate.verify_directly_issued_by(issued.intermediate.certificate)
    assert issued.crl.is_signature_valid(issued.intermediate.certificate.public_key())
    judgement = judge_csr(issued.csr)
    assert judgement.proof_of_possession
    assert judgement.problems == ()


def test_openssl_verifies_all(tmp_path: Path) -> None:
    """One call of `openssl verify` judges the certificates of all types of keys."""
    of_types = {type: Issued(type) for type in KNOWN_TO_OPENSSL_3_0}
    roots, intermediates = tmp_path / "roots.pem", tmp_path / "intermediates.pem"
    roots.write_bytes(b"".join(each.root.certificate.public_bytes(Encoding.PEM) for each in of_types.values()))
    between = [each.intermediate.certificate.public_bytes(Encoding.PEM) for each in of_types.values()]
    intermediates.write_bytes(b"".join(between))
    for type, each in of_types.items():
        for profile, certificate in each.ends.items():
            (tmp_path / f"{type}-{profile}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    ends = [tmp_path / f"{type}-{profile}.pem" for type, each in of_types.items() for profile in each.ends]
    chain = ("-CAfile", roots, "-untrusted", intermediates)
    said = run_openssl("verify", "-x509_strict", *chain, *ends)
    assert said.split() == [word for end in ends for word in (f"{end}:", "OK")]
    for profile, purpose in (
        ("tls-server", "sslserver"),
        ("tls-client", "sslclient"),
        ("message-signing", "smimesign"),
    ):
        files = [tmp_path / f"{type}-{profile}.pem" for type in of_types]
        assert run_openssl("verify", "-purpose", purpose, *chain, *files).count(": OK") == len(files)


@pytest.mark.parametrize("type", KNOWN_TO_OPENSSL_3_0)
def test_openssl_verifies_csr_and_crl(type: KeyType, tmp_path: Path) -> None:
    issued = Issued(type)
    (tmp_path / "intermediate.pem").write_bytes(issued.intermediate.certificate.public_bytes(Encoding.PEM))
    (tmp_path / "csr.pem").write_bytes(issued.csr.public_bytes(Encoding.PEM))
    assert "verify OK" in run_openssl("req", "-verify", "-noout", "-in", tmp_path / "csr.pem")
    (tmp_path / "crl.pem").write_bytes(issued.crl.public_bytes(Encoding.PEM))
    checked = run_openssl("crl", "-noout", "-CAfile", tmp_path / "intermediate.pem", "-in", tmp_path / "crl.pem")
    assert "verify OK" in checked


@pytest.mark.parametrize("type", [KeyType.P_256, KeyType.ED25519, KeyType.ML_DSA_65])
def test_a_self_signed_end_certificate(type: KeyType, tmp_path: Path) -> None:
    key = key_of(type)
    certificate = make_self_signed(key, _name("CN=Broker"), NAMES, CertificateProfile.TLS_SERVER, WEEK)
    assert certificate_errors(certificate) == []
    certificate.verify_directly_issued_by(certificate)
    assert type_of(certificate.public_key()) is type
    if type in KNOWN_TO_OPENSSL_3_0:
        (tmp_path / "own.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
        run_openssl("verify", "-purpose", "sslserver", "-CAfile", tmp_path / "own.pem", tmp_path / "own.pem")
