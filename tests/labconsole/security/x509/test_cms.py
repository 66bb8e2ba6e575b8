"""Signed files: what is signed here OpenSSL verifies and the other way round; whatever is changed is refused."""

from __future__ import annotations

import importlib
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from asn1crypto import cms as asn1_cms
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from labconsole.errors import BadInput
from labconsole.security.x509 import cms
from labconsole.security.x509.cms import algorithm_for
from labconsole.security.x509.issuing import Issuer, issue_root
from labconsole.security.x509.key_types import KeyType, generate, signing_hash
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from tests.helpers.mutations import mutations, tenth_and_all
from tests.helpers.x509_keys import key_of

_CONTENT = b"-----BEGIN: content that looks like PEM, \x00 and is binary\r\n"
_KNOWN_TO_OPENSSL_3_0 = [KeyType.RSA_2048, KeyType.P_256, KeyType.P_384]


def _root(type: KeyType = KeyType.P_256, name: str = "CN=Bücher Root,O=Lab") -> Issuer:
    key = key_of(type) if type is KeyType.RSA_2048 else generate(type)
    return Issuer(issue_root(key, name_from_text(name), Validity.for_days(10)), key)


@pytest.fixture(scope="module")
def root() -> Issuer:
    return _root()


def _written(folder: Path, issuer: Issuer) -> tuple[Path, Path]:
    certificate, key = folder / "root.pem", folder / "root.key"
    certificate.write_bytes(issuer.certificate.public_bytes(Encoding.PEM))
    key.write_bytes(issuer.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, key


def _openssl(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, check=False)


@pytest.mark.parametrize("type", [*_KNOWN_TO_OPENSSL_3_0, KeyType.ED25519, KeyType.ML_DSA_44, KeyType.ML_DSA_87])
def test_what_was_signed_is_read_back(type: KeyType) -> None:
    issuer = _root(type)
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    message = cms.verify(cms.sign(_CONTENT, issuer.certificate, issuer.key, at=at))
    assert message.content == _CONTENT
    assert message.signer == issuer.certificate
    assert message.signing_time == at


def test_what_other_libraries_call_a_signature_algorithm_does_not_matter() -> None:
    importlib.import_module("pyhanko_certvalidator.asn1_types")  # gives asn1crypto names for ML-DSA, as any report does
    issuer = _root(KeyType.ML_DSA_65)
    message = cms.verify(cms.sign(_CONTENT, issuer.certificate, issuer.key))
    assert (message.content, message.signature_algorithm) == (_CONTENT, "ML-DSA-65")


@pytest.mark.parametrize("type", _KNOWN_TO_OPENSSL_3_0)
def test_openssl_verifies_what_is_signed_here(type: KeyType, tmp_path: Path) -> None:
    issuer = _root(type)
    certificate, _ = _written(tmp_path, issuer)
    signed = tmp_path / "signed.der"
    signed.write_bytes(cms.sign(_CONTENT, issuer.certificate, issuer.key))
    found = _openssl(
        "cms", "-verify", "-binary", "-inform", "DER", "-in", signed, "-CAfile", certificate, "-purpose", "any"
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout == _CONTENT


def test_openssl_verifies_the_bare_signature_of_ed25519(tmp_path: Path) -> None:
    """OpenSSL 3.0 knows Ed25519 (RFC 8419), but not in CMS."""
    issuer = _root(KeyType.ED25519)
    signed = asn1_cms.ContentInfo.load(cms.sign(_CONTENT, issuer.certificate, issuer.key))["content"]
    info = signed["signer_infos"][0]
    (tmp_path / "attributes").write_bytes(info["signed_attrs"].untag().dump())
    (tmp_path / "signature").write_bytes(info["signature"].native)
    (tmp_path / "key.pem").write_bytes(
        issuer.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    found = _openssl(
        "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", tmp_path / "key.pem", "-in", tmp_path / "attributes",
        "-sigfile", tmp_path / "signature",
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("options", [[], ["-keyid"], ["-md", "sha512"], ["-stream"], ["-cades"], ["-outform", "PEM"]])
@pytest.mark.parametrize("type", [KeyType.RSA_2048, KeyType.P_256])
def test_what_openssl_signed_is_verified_here(type: KeyType, options: list[str], tmp_path: Path) -> None:
    certificate, key = _written(tmp_path, _root(type))
    (tmp_path / "content").write_bytes(_CONTENT)
    form = [] if "-outform" in options else ["-outform", "DER"]
    made = _openssl(
        "cms", "-sign", "-binary", "-nodetach", "-signer", certificate, "-inkey", key, "-in", tmp_path / "content",
        "-out", tmp_path / "signed", *options, *form,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert cms.verify((tmp_path / "signed").read_bytes()).content == _CONTENT


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-noattr"], "no signed attributes"),
        (["-nocerts"], "does not bring its signer's certificate"),
        (["-md", "sha1"], "not accepted"),
        (["-keyopt", "rsa_padding_mode:pss"], "not accepted"),
        (["-detached"], "holds no content"),
    ],
)
def test_what_is_not_accepted_is_said(options: list[str], says: str, tmp_path: Path) -> None:
    certificate, key = _written(tmp_path, _root(KeyType.RSA_2048))
    (tmp_path / "content").write_bytes(_CONTENT)
    attached = [] if "-detached" in options else ["-nodetach"]
    made = _openssl(
        "cms", "-sign", "-binary", *attached, "-signer", certificate, "-inkey", key, "-in", tmp_path / "content",
        "-outform", "DER", "-out", tmp_path / "signed", *[each for each in options if each != "-detached"],
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    with pytest.raises(BadInput, match=says):
        cms.verify((tmp_path / "signed").read_bytes())


def test_two_signatures_are_not_accepted(tmp_path: Path) -> None:
    both: list[str | Path] = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        certificate, key = _written(tmp_path / name, _root())
        both += ["-signer", certificate, "-inkey", key]
    (tmp_path / "content").write_bytes(_CONTENT)
    made = _openssl(
        "cms", "-sign", "-binary", "-nodetach", *both, "-in", tmp_path / "content", "-outform", "DER",
        "-out", tmp_path / "signed",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    with pytest.raises(BadInput, match="2 signatures"):
        cms.verify((tmp_path / "signed").read_bytes())


def test_a_key_signs_only_for_its_own_certificate(root: Issuer) -> None:
    with pytest.raises(BadInput, match="does not belong"):
        cms.sign(_CONTENT, root.certificate, _root().key)


def test_another_certificate_with_the_same_key_is_not_the_signer(root: Issuer) -> None:
    """RFC 5035: the signature is bound to the certificate, not to its issuer and serial number."""
    signed = asn1_cms.ContentInfo.load(cms.sign(_CONTENT, root.certificate, root.key))
    other = issue_root(root.key, name_from_text("CN=Bücher Root,O=Lab"), Validity.for_days(20))
    twin = x509.load_der_x509_certificate(other.public_bytes(Encoding.DER))
    content = signed["content"]
    parsed = asn1_cms.CertificateChoices.load(twin.public_bytes(Encoding.DER))
    content["certificates"] = [parsed]
    content["signer_infos"][0]["sid"].chosen["serial_number"] = twin.serial_number
    with pytest.raises(BadInput, match="for another certificate"):
        cms.verify(signed.dump(force=True))


def test_two_certificates_with_the_signers_serial_number_are_refused(root: Issuer) -> None:
    """RFC 5280, 4.1.2.2: issuer and serial number do not show which of them signed."""
    builder = x509.CertificateBuilder(
        root.certificate.issuer, root.certificate.subject, generate(KeyType.P_256).public_key(),
        root.certificate.serial_number, root.certificate.not_valid_before_utc, root.certificate.not_valid_after_utc,
    )  # fmt: skip
    twin = builder.sign(root.key, signing_hash(root.key))
    with pytest.raises(BadInput, match="Two certificates"):
        cms.verify(cms.sign(_CONTENT, root.certificate, root.key, chain=(twin,)))


def test_attributes_of_another_type_of_content_are_refused(root: Issuer) -> None:
    """RFC 5652, 11.1: the signed content type is that of the content, or the signature was meant for something else."""
    signed = asn1_cms.ContentInfo.load(cms.sign(_CONTENT, root.certificate, root.key))
    info = signed["content"]["signer_infos"][0]
    attributes = asn1_cms.CMSAttributes(
        [
            {"type": "content_type", "values": ["signed_data"]},
            *(each for each in info["signed_attrs"] if each["type"].native != "content_type"),
        ]
    )
    info["signed_attrs"] = attributes
    info["signature"] = algorithm_for(root.key.public_key()).sign(root.key, attributes.dump())
    with pytest.raises(BadInput, match="damaged"):
        cms.verify(signed.dump(force=True))


def test_changed_content_is_refused(root: Issuer) -> None:
    signed = cms.sign(_CONTENT, root.certificate, root.key)
    with pytest.raises(BadInput, match="changed after it was signed"):
        cms.verify(signed.replace(b"is binary", b"is barely"))


def test_changed_attributes_are_refused(root: Issuer) -> None:
    signed = cms.sign(_CONTENT, root.certificate, root.key, at=datetime(2026, 7, 1, tzinfo=UTC))
    with pytest.raises(BadInput, match="not that of its signer's certificate"):
        cms.verify(signed.replace(b"260701000000Z", b"260801000000Z"))


@pytest.mark.parametrize("count", tenth_and_all(1000))
def test_no_mutation_is_taken_for_another_content(root: Issuer, count: int) -> None:
    """Whatever bytes are damaged: the same content by the same signer, or one sentence."""
    signed = cms.sign(_CONTENT, root.certificate, root.key)
    refused = 0
    for damaged in mutations(signed, count, seed=5):
        try:
            message = cms.verify(damaged)
        except BadInput:
            refused += 1
        else:
            assert (message.content, message.signer) == (_CONTENT, root.certificate)
    assert refused > count * 0.9


def test_too_long_a_file_is_not_parsed() -> None:
    with pytest.raises(BadInput, match="longer than"):
        cms.verify(b"0" * 5_000_000)
