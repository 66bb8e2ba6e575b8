"""PKCS#12 files from outside: those of other programs open, those that demand too much work are refused in time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import psutil
import pytest
from asn1crypto import keys
from asn1crypto import pkcs12 as asn1_pkcs12
from cryptography import x509

from labconsole.errors import BadInput
from labconsole.security.secrets import Secret
from labconsole.security.x509.parsing import read_certificate, read_pkcs12
from labconsole.security.x509.pkcs12_opening import open_here, open_in_child
from labconsole.security.x509.work_factor import refuse_costly_key

CORPUS = Path(__file__).with_name("pkcs12_corpus")
FILES = sorted(CORPUS.glob("*.p12"))
ENDLESS = 2**31 - 1


def password_of(file: Path) -> Secret:
    return Secret("secretsecret" if file.name.startswith("keytool") else "secret")


@pytest.fixture(scope="module")
def certificate() -> x509.Certificate:
    return read_certificate((CORPUS / "certificate.pem").read_bytes())


def altered(name: str, old: bytes, new: bytes) -> bytes:
    """A file of the corpus in which `old`, which is in it once, is `new`, of the same length."""
    data = (CORPUS / name).read_bytes()
    assert data.count(old) == 1 and len(old) == len(new)
    return data.replace(old, new)


@pytest.mark.filterwarnings("ignore:PKCS#12 bundle could not be parsed as DER")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_of_other_programs_open(file: Path, certificate: x509.Certificate) -> None:
    opened = open_here(file.read_bytes(), password_of(file), "The file")
    if file.stem == "openssl-certs":
        assert opened.key is None and opened.chain == (certificate,)
    else:
        assert opened.certificate == certificate
        assert opened.key is not None and opened.key.public_key() == certificate.public_key()
    with pytest.raises(BadInput, match="passphrase is wrong or missing"):
        open_here(file.read_bytes(), Secret("other"), "The file")


def test_a_file_is_opened_in_a_child_process(certificate: x509.Certificate) -> None:
    opened = read_pkcs12((CORPUS / "keytool.p12").read_bytes(), Secret("secretsecret"))
    assert opened.key is not None and opened.key.public_key() == certificate.public_key()
    assert (opened.certificate, opened.chain, opened.friendly_name) == (certificate, (), "corpus")


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("keytool") is None, reason="no JDK here")
def test_a_file_that_keytool_has_just_written_opens(tmp_path: Path) -> None:
    """Nightly: alone finds that a newer keytool writes otherwise; a stored file of it is judged in CI."""
    file = tmp_path / "made.p12"
    subprocess.run(
        [
            *("keytool", "-genkeypair", "-keyalg", "EC", "-alias", "made", "-dname", "CN=made"),
            *("-keystore", str(file), "-storetype", "PKCS12", "-storepass", "secretsecret"),
        ],
        check=True,
        capture_output=True,
    )
    opened = open_here(file.read_bytes(), Secret("secretsecret"), "The file")
    assert opened.certificate is not None and opened.key is not None


def test_a_damaged_part_does_not_hide_the_rounds_of_the_integrity_check() -> None:
    """A changed tag in a bag, and 2^31-1 rounds: this held the console for eight minutes."""
    file = asn1_pkcs12.Pfx.load((CORPUS / "openssl-3.p12").read_bytes())
    file["mac_data"]["iterations"] = ENDLESS
    data = bytearray(file.dump(force=True))
    shrouded = bytes.fromhex("060b2a864886f70d010c0a0102")  # RFC 7292, 4.2.2
    data[data.index(shrouded)] = 0x13
    with pytest.raises(BadInput, match="is damaged, or protected in a way"):
        open_here(bytes(data), Secret("secret"), "The file")


def test_too_many_rounds_are_refused_where_rfc_9579_keeps_them() -> None:
    """PBMAC1: rounds and key length of its own PBKDF2, in their place rounds alone."""
    data = altered("go-modern2026.p12", bytes.fromhex("02020800 020120"), bytes.fromhex("0205007fffffff"))
    with pytest.raises(BadInput, match="far too much work"):
        open_here(data, Secret("secret"), "The file")


def test_the_rounds_of_all_parts_count_together() -> None:
    file = asn1_pkcs12.Pfx.load((CORPUS / "nss-aes.p12").read_bytes())  # 600,000 for each of three parts
    file["mac_data"]["iterations"] = 2_000_000
    with pytest.raises(BadInput, match="far too much work"):
        open_here(file.dump(force=True), Secret("secret"), "The file")


@pytest.mark.parametrize(("prf", "refused"), [("sha256", False), ("sha512", True)])
def test_rounds_of_slow_hashes_count_twice(prf: str, refused: bool) -> None:
    """2,000,000 rounds of HMAC-SHA-512 take as long as the limit allows."""
    derivation = {"salt": {"specified": bytes(16)}, "iteration_count": 2_000_000, "prf": {"algorithm": prf}}
    encrypted = keys.EncryptedPrivateKeyInfo(
        {
            "encryption_algorithm": {
                "algorithm": "pbes2",
                "parameters": {
                    "key_derivation_func": {"algorithm": "pbkdf2", "parameters": derivation},
                    "encryption_scheme": {"algorithm": "aes256_cbc", "parameters": bytes(16)},
                },
            },
            "encrypted_data": bytes(48),
        }
    ).dump()
    if refused:
        with pytest.raises(BadInput, match="far too much work"):
            refuse_costly_key(encrypted, "The key")
    else:
        refuse_costly_key(encrypted, "The key")


def test_a_file_that_takes_too_long_is_refused_and_its_process_killed() -> None:
    """What an encrypted part demands shows with the password only, so a time limit ends it."""
    data, before = (CORPUS / "openssl-3.p12").read_bytes(), set(psutil.Process().children(recursive=True))
    with pytest.raises(BadInput, match="takes too long to open"):
        open_in_child(data, Secret("secret"), "The file", timeout_s=0.02)
    assert set(psutil.Process().children(recursive=True)) <= before
