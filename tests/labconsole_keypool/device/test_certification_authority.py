"""The CA: contents of its certificates, storage of its key, refused CSRs."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import UserError
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.cryptoki.private_keys import TokenECPrivateKey
from labconsole_keypool.device.certification_authority import SigningCA
from labconsole_keypool.messages.certificate_fields import CertificateFields, plain_fields
from tests.labconsole_keypool.signing_lab import PIN, new_token

SHA256 = hashes.SHA256()


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return new_token(tmp_path_factory.mktemp("softhsm"))


@pytest.fixture
def token(configuration: TokenConfiguration) -> Iterator[Token]:
    with open_token("test", configuration, PIN) as opened:
        yield opened


def csr_of(key: ec.EllipticCurvePrivateKey) -> x509.CertificateSigningRequest:
    return x509.CertificateSigningRequestBuilder(plain_fields(1).subject).sign(key, SHA256)


def test_certificate_has_the_requested_fields_and_those_of_the_ca(tmp_path: Path) -> None:
    authority = SigningCA.of_lab(tmp_path)
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.RFC822Name("signer@lab.test")])
    fields = CertificateFields(plain_fields(1).subject, ((names, False),))
    issued, other = (authority.issue(csr_of(key), fields) for _ in range(2))
    assert issued.subject == fields.subject and issued.public_key() == key.public_key()
    assert issued.serial_number != other.serial_number
    assert issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value == names
    usage = issued.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical and usage.value.content_commitment and not usage.value.key_cert_sign
    assert issued.not_valid_before_utc < issued.not_valid_after_utc
    [root] = authority.chain
    issued.verify_directly_issued_by(root)
    root.verify_directly_issued_by(root)


def test_openssl_accepts_the_chain(tmp_path: Path) -> None:
    authority = SigningCA.of_lab(tmp_path)
    issued = authority.issue(csr_of(ec.generate_private_key(ec.SECP256R1())), plain_fields(1))
    for name, certificate in (("ca.pem", authority.chain[0]), ("end.pem", issued)):
        (tmp_path / name).write_bytes(certificate.public_bytes(Encoding.PEM))
    command = ["openssl", "verify", "-x509_strict", "-CAfile", str(tmp_path / "ca.pem"), str(tmp_path / "end.pem")]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert verified.returncode == 0, verified.stderr


def test_a_csr_whose_signature_is_not_its_key_s_is_refused(tmp_path: Path) -> None:
    csr = csr_of(ec.generate_private_key(ec.SECP256R1()))
    der = csr.public_bytes(Encoding.DER)
    changed = der[:-1] + bytes([der[-1] ^ 1])
    with pytest.raises(InvalidSignature):
        SigningCA.of_lab(tmp_path).issue(x509.load_der_x509_csr(changed), plain_fields(1))


def test_the_lab_s_ca_is_made_once_and_its_key_is_the_owner_s_alone(tmp_path: Path) -> None:
    first, second = SigningCA.of_lab(tmp_path), SigningCA.of_lab(tmp_path)
    assert first.chain == second.chain
    directory = tmp_path / "signing-ca"
    assert b"ENCRYPTED" in (directory / "ca.key.pem").read_bytes()
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["ca.pem", "ca.key.pem", "secret-source.json"])
def test_damaged_ca_is_reported_and_not_replaced(tmp_path: Path, name: str) -> None:
    SigningCA.of_lab(tmp_path)
    (tmp_path / "signing-ca" / name).write_bytes(b"no")
    for _ in range(2):
        with pytest.raises(
            UserError, match=r"^The signing CA does not serve \(.*\): move .*signing-ca away; then a new"
        ):
            SigningCA.of_lab(tmp_path)


def test_a_ca_whose_key_stays_in_the_token(token: Token, tmp_path: Path) -> None:
    first, second = (SigningCA.in_token(token, tmp_path) for _ in range(2))
    assert isinstance(first._issuer.key, TokenECPrivateKey)
    assert first.chain[0].public_key() == second.chain[0].public_key()
    for authority in (first, second):
        issued = authority.issue(csr_of(ec.generate_private_key(ec.SECP256R1())), plain_fields(2))
        issued.verify_directly_issued_by(authority.chain[0])
