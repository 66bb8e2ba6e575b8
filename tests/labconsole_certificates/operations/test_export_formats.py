"""PKCS #12 files: opened by openssl and by the library, strongly encrypted, and refused where they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

from labconsole.errors import BadInput
from labconsole.security.secrets import Secret
from labconsole.security.token.cryptoki.private_keys import TokenECPrivateKey
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.export_formats import write_pkcs12
from tests.helpers.authorities import named, new_authority
from tests.helpers.openssl_command import OpensslError, run_openssl
from tests.helpers.x509_keys import key_of

PASSWORD = Secret("correct horse 馬")


@pytest.fixture(autouse=True)
def few_rounds() -> None:
    """None here: the rounds are what is judged."""


@pytest.fixture(scope="module")
def root() -> Issuer:
    return new_authority("State A Root")


def certificate_of(root: Issuer, type: KeyType) -> x509.Certificate:
    profile = CertificateProfile.TLS_CLIENT
    return issue(root, key_of(type).public_key(), named("CN=client"), [], profile, Validity.for_days(7))


def opened(data: bytes, folder: Path, password: str) -> str:
    (folder / "file.p12").write_bytes(data)
    (folder / "password").write_text(password, encoding="utf-8")
    return run_openssl(
        *("pkcs12", "-info", "-noenc", "-in", folder / "file.p12", "-passin", f"file:{folder / 'password'}")
    )


@pytest.fixture(scope="module", params=[pytest.param(KeyType.RSA_2048, marks=pytest.mark.nightly), KeyType.ED25519])
def written(request: pytest.FixtureRequest, root: Issuer) -> tuple[x509.Certificate, bytes]:
    """A certificate, and the file with it, its key and its root; made once, for the password costs 0.5 s.

    Nightly also with an RSA key: alone finds that openssl cannot read one in the same encryption.
    """
    certificate = certificate_of(root, request.param)
    return certificate, write_pkcs12(key_of(request.param), certificate, [root.certificate], "Client 國", PASSWORD)


def test_openssl_opens_it_with_the_password_only(written: tuple[x509.Certificate, bytes], tmp_path: Path) -> None:
    _, data = written
    said = opened(data, tmp_path, PASSWORD.reveal())
    assert said.count("BEGIN CERTIFICATE") == 2
    assert "BEGIN PRIVATE KEY" in said
    assert said.count("PBES2, PBKDF2, AES-256-CBC, Iteration 600000, PRF hmacWithSHA256") == 2
    assert "MAC: sha256, Iteration 600000" in said
    with pytest.raises(OpensslError, match="invalid password"):
        opened(data, tmp_path, "wrong")


def test_the_library_reads_everything_back(root: Issuer, written: tuple[x509.Certificate, bytes]) -> None:
    certificate, data = written
    read = pkcs12.load_pkcs12(data, PASSWORD.reveal().encode())
    assert read.cert is not None
    assert read.cert.certificate == certificate
    assert read.cert.friendly_name == "Client 國".encode()
    assert [extra.certificate for extra in read.additional_certs] == [root.certificate]
    assert certificate.public_bytes(Encoding.DER) not in data


def test_keys_that_pkcs12_cannot_hold_are_refused(root: Issuer) -> None:
    key = key_of(KeyType.P_256)
    certificate = certificate_of(root, KeyType.P_256)
    quantum_safe = certificate_of(root, KeyType.ML_DSA_44)
    public_key = key.public_key()
    assert isinstance(public_key, ec.EllipticCurvePublicKey)
    in_token = TokenECPrivateKey(None, public_key)  # type: ignore[arg-type]  # never asked to sign
    for holder, made, password, said in (
        (key, certificate, Secret(""), "without a password"),
        (key, quantum_safe, PASSWORD, "not that of the certificate"),
        (key_of(KeyType.ML_DSA_44), quantum_safe, PASSWORD, "cannot hold ML-DSA keys yet"),
        (in_token, certificate, PASSWORD, "is in a token"),
    ):
        with pytest.raises(BadInput, match=said):
            write_pkcs12(holder, made, [], "x", password)
