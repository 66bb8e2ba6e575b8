"""Signed reports, checked by pdfsig; keys and certificates that are refused, each with one sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12
from cryptography.x509.oid import NameOID

from labconsole.errors import UserError
from labconsole.output.report.document import Document, Paragraph, Section
from labconsole.output.report.pdf import ARCHIVAL, PdfResult, write_pdf
from labconsole.output.report.signing import SignatureDetails, is_pkcs12, sign_pdf, signer_from_pem, signer_from_pkcs12
from labconsole.security.key_files import save_private_key
from labconsole.security.private_files import write_private
from labconsole.security.secrets import Secret
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import new_authority
from tests.helpers.identities import EXPIRED, NOT_YET_VALID, VALID, certify
from tests.helpers.pdfsig import pdfsig
from tests.helpers.x509_keys import key_of

SECRET = Secret("correct horse")
DOCUMENT = Document(
    kind="Run report",
    title="Spring trial",
    lead="Letters",
    author="",
    identity="runs.db · run 1",
    generated=datetime(2026, 11, 20, 18, 30, tzinfo=UTC),
    cover=(),
    sections=(Section("Summary", (Paragraph("All letters came."),)),),
)


@pytest.fixture(scope="module")
def authority() -> Issuer:
    return new_authority("Ministry of Letters")


Files = Callable[..., tuple[Path, Path]]


def write_files(folder: Path, authority: Issuer, validity: Validity = VALID) -> tuple[Path, Path]:
    """An encrypted key and the chain of its certificate, in `folder`."""
    key = key_of(KeyType.RSA_2048)
    certificate = certify(authority, "state-a", key.public_key(), validity=validity)
    save_private_key(folder / "key.pem", key, SECRET)
    chain = certificate.public_bytes(Encoding.PEM) + authority.certificate.public_bytes(Encoding.PEM)
    (folder / "chain.pem").write_bytes(chain)
    return folder / "key.pem", folder / "chain.pem"


@pytest.fixture
def files(authority: Issuer, tmp_path: Path) -> Files:
    """Writes an encrypted key and the chain of its certificate."""
    return partial(write_files, tmp_path, authority)


@pytest.fixture(scope="module")
def signed(authority: Issuer, tmp_path_factory: pytest.TempPathFactory) -> PdfResult:
    """The document, signed; not to be changed."""
    folder = tmp_path_factory.mktemp("signed")
    signer = signer_from_pem(*write_files(folder, authority), SECRET)
    sign = partial(sign_pdf, signer=signer, details=SignatureDetails("Result of the trial", "Kuala Lumpur"))
    return write_pdf(DOCUMENT, folder / "report.pdf", sign=sign)


def self_signed(key: ec.EllipticCurvePrivateKey, *, signs: bool = True) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Registrar")])
    usage = dict.fromkeys(
        ("content_commitment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign", "encipher_only"),
        False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(VALID.not_before)
        .not_valid_after(VALID.not_after)
        .add_extension(
            x509.KeyUsage(digital_signature=signs, key_encipherment=not signs, decipher_only=False, **usage), True
        )
        .sign(key, hashes.SHA256())
    )


def test_pdfsig_calls_a_signed_report_valid_and_all_of_it_signed(signed: PdfResult) -> None:
    output = pdfsig(signed.path)
    assert "Signature Validation: Signature is Valid." in output
    assert "Total document signed" in output and "ETSI.CAdES.detached" in output
    assert "CN=state-a" in output and "SHA-256" in output
    data = signed.path.read_bytes()
    assert b"Result of the trial" in data and b"Kuala Lumpur" in data


def test_one_changed_byte_is_found(signed: PdfResult, tmp_path: Path) -> None:
    data = bytearray(signed.path.read_bytes())
    data[len(data) // 3] ^= 1
    (tmp_path / "changed.pdf").write_bytes(data)
    output = pdfsig(tmp_path / "changed.pdf")
    assert "Signature Validation: " in output and "Signature is Valid" not in output


def test_the_signature_leaves_the_document_and_its_metadata_as_they_were(signed: PdfResult, tmp_path: Path) -> None:
    unsigned = write_pdf(DOCUMENT, tmp_path / "unsigned.pdf")
    assert signed.path.read_bytes().startswith(unsigned.path.read_bytes())
    metadata = [
        subprocess.run(["pdfinfo", "-meta", path], capture_output=True, text=True, check=True, timeout=30).stdout
        for path in (unsigned.path, signed.path)
    ]
    assert metadata[0] == metadata[1] and "<pdfaid:part>2" in metadata[0]
    assert signed.standard == ARCHIVAL


def test_the_chain_goes_with_the_signature(signed: PdfResult, authority: Issuer) -> None:
    data = signed.path.read_bytes()
    assert authority.certificate.public_bytes(Encoding.DER).hex().encode() in data.lower()


def test_an_elliptic_key_and_its_certificate_in_one_pkcs12_file(tmp_path: Path) -> None:
    key, path = ec.generate_private_key(ec.SECP256R1()), tmp_path / "registrar.p12"
    both = pkcs12.serialize_key_and_certificates(
        None, key, self_signed(key), None, BestAvailableEncryption(SECRET.reveal().encode())
    )
    write_private(path, both)
    assert is_pkcs12(path) and not is_pkcs12(tmp_path / "key.pem")
    sign = partial(sign_pdf, signer=signer_from_pkcs12(path, SECRET))
    assert "Signature is Valid." in pdfsig(write_pdf(DOCUMENT, tmp_path / "report.pdf", sign=sign).path)
    for secret in (Secret("wrong"), None):
        with pytest.raises(UserError, match=r"registrar\.p12 does not open: the passphrase is wrong"):
            signer_from_pkcs12(path, secret)
    path.chmod(0o644)
    with pytest.raises(UserError, match="can be read by others"):
        signer_from_pkcs12(path, SECRET)


def test_a_pkcs12_file_without_a_key_is_refused(tmp_path: Path) -> None:
    key, path = ec.generate_private_key(ec.SECP256R1()), tmp_path / "trust.p12"
    encryption = BestAvailableEncryption(SECRET.reveal().encode())
    write_private(path, pkcs12.serialize_key_and_certificates(None, None, self_signed(key), None, encryption))
    with pytest.raises(UserError, match="has no private key with its certificate"):
        signer_from_pkcs12(path, SECRET)


def test_a_wrong_passphrase_and_missing_files_are_one_sentence(files: Files, tmp_path: Path) -> None:
    key, chain = files()
    for arguments, said in (
        ((key, chain, Secret("wrong")), "key.pem does not open: the passphrase is wrong"),
        ((tmp_path / "none.pem", chain, None), "none.pem does not exist"),
        ((key, tmp_path / "none.pem", SECRET), "none.pem does not exist"),
        ((key, key, SECRET), "key.pem holds a private key and not a certificate"),
    ):
        with pytest.raises(UserError, match=said) as refused:
            signer_from_pem(*arguments)
        assert "\n" not in str(refused.value) and "correct horse" not in str(refused.value)


@pytest.mark.parametrize(
    ("validity", "said"), [(EXPIRED, "expired on 20"), (NOT_YET_VALID, r"is valid from 20\d\d-\d\d-\d\d on only")]
)
def test_a_certificate_out_of_its_time_is_refused(files: Files, validity: Validity, said: str) -> None:
    with pytest.raises(UserError, match=said):
        signer_from_pem(*files(validity), SECRET)


def test_a_certificate_of_another_key_is_refused(files: Files, authority: Issuer, tmp_path: Path) -> None:
    key, _ = files()
    other = certify(authority, "state-b", generate(KeyType.P_256).public_key())
    (tmp_path / "other.pem").write_bytes(other.public_bytes(Encoding.PEM))
    with pytest.raises(UserError, match="is not that of the signing key"):
        signer_from_pem(key, tmp_path / "other.pem", SECRET)


def test_a_certificate_that_is_not_for_signatures_is_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    save_private_key(tmp_path / "key.pem", key, SECRET)
    (tmp_path / "chain.pem").write_bytes(self_signed(key, signs=False).public_bytes(Encoding.PEM))
    with pytest.raises(UserError, match="is not for signatures"):
        signer_from_pem(tmp_path / "key.pem", tmp_path / "chain.pem", SECRET)


def test_a_kind_of_key_that_viewers_do_not_check_is_refused(files: Files, tmp_path: Path) -> None:
    _, chain = files()
    save_private_key(tmp_path / "other.pem", ed25519.Ed25519PrivateKey.generate(), SECRET)
    with pytest.raises(UserError, match="neither RSA nor EC"):
        signer_from_pem(tmp_path / "other.pem", chain, SECRET)
