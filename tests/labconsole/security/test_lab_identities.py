"""The lab's own identities: made once, whole or not at all, made anew when they no longer serve, good for TLS."""

import json
import os
import random
import re
import shutil
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from labconsole.security.identities import IdentityFiles
from labconsole.security.lab_identities import AUTHORITY, BROKER, STATE_A, STATE_B, LabIdentities, lab_identities
from labconsole.trial import TrialError
from tests.helpers.authorities import new_authority
from tests.helpers.identities import EXPIRED, certify, foreign_authority, write_identity

NAMES = (STATE_A, STATE_B, BROKER)
MAKE = (
    "import sys, pathlib; from labconsole.security.lab_identities import lab_identities;"
    "print(lab_identities(pathlib.Path(sys.argv[1])).directory)"
)

UseKeyring = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> LabIdentities:
    """A set made without a keyring; not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        return lab_identities(tmp_path_factory.mktemp("lab") / "identities")


@pytest.fixture
def lab(made: LabIdentities, tmp_path: Path) -> Path:
    """A copy of the directory of `made`, to be damaged."""
    return Path(shutil.copytree(made.directory.parent, tmp_path / "identities"))


def test_first_use_makes_a_set_and_says_where_its_secret_lies(made: LabIdentities) -> None:
    passphrase_file = made.directory / "passphrase"
    assert made.notes == (
        "The lab identities were made.",
        f"Their passphrase lies in the file {passphrase_file}, readable by its owner alone.",
    )
    for name in NAMES:
        identity = made.identity(name)
        assert identity.notes == ()
        assert identity.load_private_key().public_key() == identity.certificate.public_key()
        assert (identity.files.trust, identity.files.passphrase_file) == (made.authority_file, passphrase_file)
    with pytest.raises(TrialError, match=r"no lab identity state-c: choose one of state-a, state-b, broker"):
        made.files("state-c")


def test_later_uses_find_it(made: LabIdentities) -> None:
    again = lab_identities(made.directory.parent)
    assert (again.directory, again.notes) == (made.directory, ())


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_everything_is_the_owners_alone_and_no_key_is_open(made: LabIdentities) -> None:
    parent = made.directory.parent
    assert {stat.S_IMODE(path.stat().st_mode) for path in (parent, made.directory)} == {0o700}
    files = [path for path in parent.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    keys = [path for path in files if path.name.endswith(".key.pem")]
    assert len(keys) == 4
    assert all(path.read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") for path in keys)


def test_the_secret_stands_in_its_own_file_only(made: LabIdentities) -> None:
    secret = (made.directory / "passphrase").read_text().strip()
    identity = made.identity(STATE_A)
    assert len(secret) >= 40
    assert secret not in f"{made!r} {identity!r} {identity.files.model_dump_json()}"
    assert [path.name for path in made.directory.iterdir() if secret in path.read_text()] == ["passphrase"]


def test_certificates_follow_rfc_5280(made: LabIdentities) -> None:
    authority = x509.load_pem_x509_certificate(made.authority_file.read_bytes())
    certificates = {name: made.identity(name).certificate for name in NAMES}
    serials = [certificate.serial_number for certificate in (authority, *certificates.values())]
    assert len(set(serials)) == 4 and min(serials) > 2**120
    own_id = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    for certificate in certificates.values():
        extensions = certificate.extensions
        issuer_id = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
        assert issuer_id == own_id
        constraints = extensions.get_extension_for_class(x509.BasicConstraints)
        assert constraints.critical and not constraints.value.ca
        certificate.verify_directly_issued_by(authority)
    usage = authority.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical and usage.value.key_cert_sign and not usage.value.digital_signature
    names = certificates[BROKER].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert {str(address) for address in names.get_values_for_type(x509.IPAddress)} == {"127.0.0.1", "::1"}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_openssl_verifies_the_chains_strictly(made: LabIdentities) -> None:
    files = [str(made.files(name).certificate) for name in NAMES]
    command = ["openssl", "verify", "-x509_strict", "-CAfile", str(made.authority_file), *files]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stdout.count(": OK") == 3, answer.stderr


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str:
    """Shake hands in memory; returns the common name that the server sees in the client's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    client_side = client.wrap_bio(to_client, to_server, server_hostname=host)
    open_sides = [client_side, server_side]
    for _ in range(10):
        for side in list(open_sides):
            try:
                side.do_handshake()
                open_sides.remove(side)
            except ssl.SSLWantReadError:
                continue
    assert open_sides == []
    peer: Any = server_side.getpeercert()
    return str(dict(entry[0] for entry in peer["subject"])["commonName"])


def context(lab: LabIdentities, name: str, protocol: int) -> ssl.SSLContext:
    identity = lab.identity(name)
    assert identity.secret is not None
    made = ssl.SSLContext(protocol)
    made.load_verify_locations(lab.authority_file)
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(identity.certificate_file, identity.key_file, identity.secret.reveal())
    return made


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_mutual_tls_between_a_state_and_the_broker(made: LabIdentities, host: str) -> None:
    server = context(made, BROKER, ssl.PROTOCOL_TLS_SERVER)
    client = context(made, STATE_A, ssl.PROTOCOL_TLS_CLIENT)
    assert handshake(server, client, host) == "state-a"


def test_states_are_no_servers(made: LabIdentities) -> None:
    server = context(made, STATE_B, ssl.PROTOCOL_TLS_SERVER)
    client = context(made, STATE_A, ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(ssl.SSLError, match=r"unsuitable certificate purpose|unsupported certificate purpose"):
        handshake(server, client, "localhost")


def test_foreign_and_expired_certificates_do_not_verify(tmp_path: Path) -> None:
    """The bad identities that other tests use are bad for the reason they say."""
    own = new_authority("Own CA")
    verifier = PolicyBuilder().store(Store([own.certificate])).time(datetime.now(UTC)).build_client_verifier()

    def verify(files: IdentityFiles) -> None:
        verifier.verify(x509.load_pem_x509_certificate(files.certificate.read_bytes()), [])

    verify(write_identity(tmp_path, "good", own))
    with pytest.raises(VerificationError, match="not valid at"):
        verify(write_identity(tmp_path, "expired", own, validity=EXPIRED))
    with pytest.raises(VerificationError, match="candidates exhausted"):
        verify(write_identity(tmp_path, "foreign", foreign_authority()))


def test_processes_at_the_same_time_make_one_set(tmp_path: Path) -> None:
    directory = tmp_path / "identities"
    command = [sys.executable, "-c", MAKE, str(directory)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert answers == {str(directory / "lab-0001")}
    assert sorted(path.name for path in directory.iterdir() if path.is_dir()) == ["lab-0001"]


def test_a_process_killed_in_the_middle_leaves_nothing_that_is_used(tmp_path: Path) -> None:
    randomness = random.Random(6)
    killed_in_the_middle = 0
    for number in range(4):
        directory = tmp_path / f"{number}"
        process = subprocess.Popen([sys.executable, "-c", MAKE, str(directory)], stdout=subprocess.DEVNULL)
        while process.poll() is None and not list(directory.glob(".making-*")):
            time.sleep(0.002)
        time.sleep(randomness.uniform(0, 0.3))
        process.kill()
        process.wait()
        killed_in_the_middle += bool(list(directory.glob(".making-*")))
        lab = lab_identities(directory)
        assert all(lab.identity(name).notes == () for name in NAMES)
        assert [path.name for path in directory.iterdir() if path.is_dir()] == ["lab-0001"]
    assert killed_in_the_middle > 0


def test_expired_identities_are_made_anew_and_the_old_ones_stay(lab: Path) -> None:
    authority = new_authority("Another CA")
    certificate = certify(authority, "state-b", authority.key.public_key(), validity=EXPIRED)
    (lab / "lab-0001" / "state-b.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    renewed = lab_identities(lab)
    assert renewed.directory == lab / "lab-0002"
    assert re.match(
        r"The lab identities were made anew, since the certificate of state-b expired on [-\d]+ [:\d]+ UTC\.$",
        renewed.notes[0],
    )
    assert (lab / "lab-0001" / f"{AUTHORITY}.pem").exists()
    assert renewed.identity(STATE_B).notes == ()
    assert lab_identities(lab).notes == ()


@pytest.mark.parametrize("missing", ["passphrase", "secret-source.json", "broker.key.pem", "state-a.pem"])
def test_a_damaged_set_is_made_anew(lab: Path, missing: str) -> None:
    (lab / "lab-0001" / missing).unlink()
    renewed = lab_identities(lab)
    assert renewed.directory == lab / "lab-0002"
    assert missing in renewed.notes[0]


def test_secret_lies_in_the_keyring_if_there_is_one(use_keyring: UseKeyring, tmp_path: Path) -> None:
    entries = use_keyring("FileKeyring")
    lab = lab_identities(tmp_path / "identities")
    [(entry, secret)] = json.loads(entries.read_text()).items()
    assert lab.notes[1] == f"Their passphrase lies in the OS keyring as {entry}."
    assert not (lab.directory / "passphrase").exists()
    identity = lab.identity(STATE_A)
    assert identity.secret is not None and identity.secret.reveal() == secret
    assert lab_identities(tmp_path / "identities").notes == ()
    entries.unlink()
    renewed = lab_identities(tmp_path / "identities")
    assert renewed.directory.name == "lab-0002"
    assert "made anew" in renewed.notes[0]


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(TrialError, match="cannot be made in"):
        lab_identities(file / "identities")
