"""Key files: encrypted and private when written, and one sentence for each that cannot be used."""

import os
import stat
from pathlib import Path

import pytest
from asn1crypto import keys, pem
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from labconsole.errors import UserError
from labconsole.security.key_files import is_encrypted, is_quickly_guessed, load_private_key, save_private_key
from labconsole.security.secrets import Secret
from labconsole.security.x509.key_types import KeyType
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of

KEY = ec.generate_private_key(ec.SECP256R1())
SECRET = Secret("correct horse")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "state-a.key.pem"
    save_private_key(path, KEY, SECRET)
    return path


def test_saved_key_is_encrypted_pkcs8_of_its_owner_alone(key_file: Path) -> None:
    assert key_file.read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert is_encrypted(key_file)
    if os.name == "posix":
        assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert [path.name for path in key_file.parent.iterdir()] == [key_file.name]
    loaded = load_private_key(key_file, SECRET)
    assert loaded.public_key() == KEY.public_key()


@pytest.mark.parametrize(
    "type",
    [KeyType.P_256, *(pytest.param(type, marks=pytest.mark.nightly) for type in (KeyType.RSA_2048, KeyType.ED25519))],
)
def test_openssl_reads_a_key_under_a_typed_passphrase(type: KeyType, tmp_path: Path) -> None:
    """Nightly: alone finds that openssl cannot read an RSA or Ed25519 key in the same encryption."""
    path, passphrase = tmp_path / "key.pem", tmp_path / "passphrase"
    secret = Secret("correct horse 馬")
    passphrase.write_text(secret.reveal(), encoding="utf-8")
    save_private_key(path, key_of(type), secret, typed=True)
    assert "BEGIN PUBLIC KEY" in run_openssl("pkey", "-in", path, "-pubout", "-passin", f"file:{passphrase}")
    parsed = run_openssl("asn1parse", "-in", path)
    assert "hmacWithSHA256" in parsed and "aes-256-cbc" in parsed and f":{600_000:06X}" in parsed
    assert not is_quickly_guessed(path)
    assert load_private_key(path, secret).public_key() == key_of(type).public_key()
    with pytest.raises(UserError, match="passphrase is wrong"):
        load_private_key(path, Secret("other"))
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_of_ml_dsa_is_kept_under_a_typed_passphrase(tmp_path: Path) -> None:
    save_private_key(tmp_path / "key.pem", key_of(KeyType.ML_DSA_44), SECRET, typed=True)
    loaded = load_private_key(tmp_path / "key.pem", SECRET)
    assert loaded.public_key() == key_of(KeyType.ML_DSA_44).public_key()


def test_files_that_are_quickly_guessed_are_known(key_file: Path, tmp_path: Path) -> None:
    assert is_quickly_guessed(key_file)
    (tmp_path / "open.pem").write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "open.pem").chmod(0o600)
    assert not is_quickly_guessed(tmp_path / "open.pem")


@pytest.mark.parametrize(("secret", "reason"), [(Secret("wrong"), "passphrase is wrong"), (None, "is encrypted")])
def test_wrong_and_missing_passphrase(key_file: Path, secret: Secret | None, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        load_private_key(key_file, secret)
    assert "correct horse" not in str(caught.value)


def test_damaged_key_file(key_file: Path) -> None:
    key_file.write_bytes(key_file.read_bytes()[:-60])
    with pytest.raises(UserError, match="damaged"):
        load_private_key(key_file, SECRET)


@pytest.mark.parametrize("number", ["modulus", "public_exponent", "both private ways"])
def test_rsa_key_whose_numbers_do_not_belong_together_is_refused(number: str, tmp_path: Path) -> None:
    der = key_of(KeyType.RSA_2048).private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    numbers = keys.RSAPrivateKey.load(der)
    changed = ("private_exponent", "exponent1") if number == "both private ways" else (number,)
    for name in changed:
        numbers[name] = numbers[name].native + 2
    path = tmp_path / "damaged.pem"
    path.write_bytes(pem.armor("RSA PRIVATE KEY", numbers.dump()))
    path.chmod(0o600)
    with pytest.raises(UserError, match="damaged"):
        load_private_key(path, None)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_key_file_open_to_others_is_refused(key_file: Path) -> None:
    key_file.chmod(0o644)
    with pytest.raises(UserError, match=r"can be read by others \(mode 0644\)"):
        load_private_key(key_file, SECRET)


def test_file_without_a_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a key")
    path.chmod(0o600)
    with pytest.raises(UserError, match="holds no private key"):
        load_private_key(path, None)
    with pytest.raises(UserError, match="does not exist"):
        load_private_key(tmp_path / "none", None)


def test_open_key_of_the_operator_loads_without_secret(tmp_path: Path) -> None:
    path = tmp_path / "open.pem"
    path.write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    assert not is_encrypted(path)
    assert load_private_key(path, SECRET).public_key() == KEY.public_key()
