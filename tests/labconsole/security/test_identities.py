"""Operator identities: what loads, what is noted, and one sentence for what does not load."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from labconsole.errors import UserError
from labconsole.security.identities import IdentityFiles, load_certificates, load_identity
from labconsole.security.key_files import load_private_key
from labconsole.security.secrets import Secret
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import new_authority
from tests.helpers.identities import EXPIRED, NOT_YET_VALID, write_identity


@pytest.fixture(scope="module")
def authority() -> Issuer:
    return new_authority("Test CA")


def test_a_good_identity_loads_from_its_json_without_notes(tmp_path: Path, authority: Issuer) -> None:
    files = IdentityFiles.model_validate_json(write_identity(tmp_path, "state-a", authority).model_dump_json())
    identity = load_identity(files, "State A")
    assert identity.notes == () and identity.chain == ()
    assert identity.private_key.public_key() == identity.certificate.public_key()
    assert identity.secret is not None and identity.secret.reveal() == "passphrase of state-a"
    assert "passphrase of" not in repr(identity) + files.model_dump_json()


@pytest.mark.parametrize(("validity", "note"), [(EXPIRED, "expired on"), (NOT_YET_VALID, "is not valid before")])
def test_certificates_out_of_their_time_load_and_say_so(
    tmp_path: Path, authority: Issuer, validity: Validity, note: str
) -> None:
    identity = load_identity(write_identity(tmp_path, "state-a", authority, validity=validity), "State A")
    assert len(identity.notes) == 1 and note in identity.notes[0] and "State A" in identity.notes[0]


def test_chain_follows_the_certificate(tmp_path: Path, authority: Issuer) -> None:
    files = write_identity(tmp_path, "state-a", authority)
    with files.certificate.open("ab") as file:
        file.write(authority.certificate.public_bytes(Encoding.PEM))
    assert load_identity(files, "State A").chain == (authority.certificate,)


def test_open_key_is_used_and_noted(tmp_path: Path, authority: Issuer) -> None:
    files = write_identity(tmp_path, "state-a", authority)
    identity = load_identity(files, "State A")
    key = identity.private_key
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    reloaded = load_identity(files, "State A")
    assert reloaded.secret is None
    assert reloaded.notes == (f"The key file {files.key} is not encrypted.",)


def test_prompt_is_asked_where_there_is_no_other_source(tmp_path: Path, authority: Issuer) -> None:
    files = write_identity(tmp_path, "state-a", authority).model_copy(update={"passphrase_file": None})
    asked: list[str] = []

    def prompt(purpose: str) -> Secret:
        asked.append(purpose)
        return Secret("passphrase of state-a")

    load_identity(files, "State A", prompt)
    assert asked == [f"the key of State A, {files.key}"]
    with pytest.raises(UserError, match="no passphrase for the key of State A"):
        load_identity(files, "State A")


def test_keyring_entry_defaults_to_the_path_of_the_key(tmp_path: Path) -> None:
    files = IdentityFiles(certificate=tmp_path / "c.pem", key=tmp_path / "k.pem")
    assert files.secret_source.keyring_entry == str(tmp_path / "k.pem")


def test_what_does_not_load_says_why(tmp_path: Path, authority: Issuer) -> None:
    files = write_identity(tmp_path, "state-a", authority)
    other = write_identity(tmp_path, "state-b", authority)
    text = tmp_path / "notes.txt"
    text.write_text("no certificate")
    none = tmp_path / "none.pem"
    cases: list[tuple[dict[str, Path], str]] = [
        ({"certificate": none}, "certificate file .*none.pem does not exist"),
        ({"certificate": tmp_path}, "is not a file"),
        ({"certificate": files.key}, "holds a private key and not a certificate"),
        ({"trust": text}, "notes.txt holds no certificate"),
        ({"trust": none}, "does not exist"),
        ({"key": none}, "key file .*none.pem does not exist"),
        ({"certificate": other.certificate}, "does not belong to the certificate"),
        ({"passphrase_file": other.passphrase_file or none}, "passphrase is wrong"),
    ]
    for update, reason in cases:
        with pytest.raises(UserError, match=reason) as caught:
            load_identity(files.model_copy(update=update), "State A")
        assert str(caught.value).endswith(".") and "passphrase of" not in str(caught.value)


def test_truncated_certificate_is_refused(tmp_path: Path, authority: Issuer) -> None:
    path = tmp_path / "cut.pem"
    pem = authority.certificate.public_bytes(Encoding.PEM)
    for length in range(0, len(pem) - 30, 97):
        path.write_bytes(pem[:length])
        with pytest.raises(UserError, match=r"is empty|is damaged|holds no certificate"):
            load_certificates(path)
    with pytest.raises(UserError):
        load_private_key(path, None)
