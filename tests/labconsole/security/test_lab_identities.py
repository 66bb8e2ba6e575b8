"""The lab's own identities: made once, whole or not at all, re-created when they no longer serve, good for TLS."""

import json
import os
import random
import re
import shutil
import ssl
import stat
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from labconsole.errors import UserError
from labconsole.paths import tokens_dir
from labconsole.security.identities import IdentityFiles, TokenIdentity, load_certificates, load_identity
from labconsole.security.lab_identities import (
    BROKER,
    STATE,
    STATE_A,
    STATE_B,
    LabIdentities,
    lab_identities,
    lab_message_identity,
    lab_token_identity,
)
from labconsole.security.pki.keys import keys_directory
from labconsole.security.pki.records import Origin
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.token.configuration import LAB
from labconsole.security.token.named_tokens import find_configuration
from labconsole.security.token.remote_private_key import opened_token_key
from labconsole.security.x509.key_types import KeyType, type_of
from tests.helpers.authorities import new_authority
from tests.helpers.identities import EXPIRED, certify, foreign_authority, write_identity
from tests.helpers.program_text import PROGRAM
from tests.labconsole.security.pki.pki_lab import OwnState

NAMES = (STATE_A, STATE_B, BROKER)
MAKE = (
    "import sys, pathlib; from labconsole.security.lab_identities import lab_identities;"
    "print(lab_identities(pathlib.Path(sys.argv[1])).authority_file)"
)

QUICK = (
    "import labconsole.security.lab_identities as identities; from labconsole.security.x509.key_types import KeyType;"
    "identities.LAB_KEY_TYPE = KeyType.P_256;"
)
"""Before `MAKE`, as `quick_keys` in this process."""

UseKeyring = Callable[[str], Path]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the database that contains `made`."""
    return tmp_path_factory.mktemp("lab") / "pki"


@pytest.fixture(scope="module")
def made(home: Path) -> LabIdentities:
    """A set made without a keyring; not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        return lab_identities(home)


@pytest.fixture
def quick_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets that are created in this process have P-256 keys, where four RSA keys would take half a second."""
    monkeypatch.setattr("labconsole.security.lab_identities.LAB_KEY_TYPE", KeyType.P_256)


@pytest.fixture
def lab(made: LabIdentities, home: Path, tmp_path: Path) -> Path:
    """A copy of the directory of `made`, to be damaged."""
    return Path(shutil.copytree(home, tmp_path / "pki"))


def snapshot_of(directory: Path) -> Snapshot:
    with PkiStore.open(directory) as store:
        return store.snapshot()


def certificates(directory: Path) -> list[str]:
    """Fingerprints of the certificates that are not hidden."""
    return [record.sha256 for record in snapshot_of(directory).certificates if record.removed is None]


def test_first_use_creates_a_set_and_names_its_secret_source(made: LabIdentities, home: Path) -> None:
    [passphrase_file] = keys_directory(home).glob("passphrase-*")
    assert made.notes == (
        "The lab identities were created.",
        f"Their passphrase is in the file {passphrase_file}, readable by its owner alone.",
    )
    for name in NAMES:
        identity = made.identity(name)
        assert identity.notes == ()
        assert identity.private_key.public_key() == identity.certificate.public_key()
        assert (identity.files.trust, identity.files.passphrase_file) == (made.authority_file, passphrase_file)
    with pytest.raises(UserError, match=r"no lab identity state-c: choose one of broker, state-a, state-b"):
        made.files("state-c")


def test_they_are_the_state_lab_of_the_certificate_database(made: LabIdentities, home: Path) -> None:
    snapshot = snapshot_of(home)
    [state] = snapshot.states
    [root] = snapshot.roots_of(state.id)
    assert (state.name, state.local) == (STATE, True)
    assert made.authority_file.read_bytes() == root.certificate.public_bytes(Encoding.PEM)
    by_name = {identity.name: snapshot.certificate_by_id[identity.certificate] for identity in snapshot.identities}
    assert by_name.keys() == set(NAMES)
    for name, record in by_name.items():
        assert record.certificate == made.identity(name).certificate
        assert snapshot.chain_of(record) == (root,)
    assert len(snapshot.keys) == len(snapshot.certificates) == 4
    assert {row.what for row in snapshot.audit} >= {"added State", "added key", "issued certificate", "named identity"}


def test_later_uses_find_it(made: LabIdentities, home: Path) -> None:
    before = snapshot_of(home)
    again = lab_identities(home)
    assert (again.by_name, again.notes) == (made.by_name, ())
    assert snapshot_of(home) == before


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_everything_is_the_owners_alone_and_no_key_is_open(made: LabIdentities, home: Path) -> None:
    directories = [home, *(path for path in home.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in directories} == {0o700}
    private = {*keys_directory(home).iterdir(), *(home / "identities").iterdir(), home / "pki.db"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    keys = list(keys_directory(home).glob("*.pem"))
    assert len(keys) == 4
    assert all(path.read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") for path in keys)


def test_the_secret_is_in_its_own_file_only(made: LabIdentities, home: Path) -> None:
    [passphrase_file] = keys_directory(home).glob("passphrase-*")
    secret = passphrase_file.read_text().strip()
    identity = made.identity(STATE_A)
    assert len(secret) >= 40
    assert secret not in f"{made!r} {identity!r} {identity.files.model_dump_json()}"
    files = [path for path in home.rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == [passphrase_file]


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
    assert usage.critical and usage.value.key_cert_sign
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


def test_state_certificates_are_not_valid_for_servers(made: LabIdentities) -> None:
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
    directory = tmp_path / "pki"
    command = [*PROGRAM, QUICK + MAKE, str(directory)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert answers == {str(lab_identities(directory).authority_file)}
    assert len(certificates(directory)) == len(list(keys_directory(directory).glob("*.pem"))) == 4


@pytest.mark.usefixtures("quick_keys")
@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.nightly)])
def test_a_process_killed_in_the_middle_leaves_nothing_that_is_used(tmp_path: Path, rounds: int) -> None:
    """The first is killed when it has written the first of its four keys, nightly others within 0.15 s from then on."""
    randomness = random.Random(6)
    killed_in_the_middle = 0
    for number in range(rounds):
        directory = tmp_path / f"{number}"
        process = subprocess.Popen([*PROGRAM, MAKE, str(directory)], stdout=subprocess.DEVNULL)
        while process.poll() is None and not list(directory.glob("keys/*.pem")):
            time.sleep(0.002)
        time.sleep(randomness.uniform(0, 0.15) if number else 0)
        process.kill()
        process.wait()
        killed_in_the_middle += not list(directory.glob("identities/*.pem"))
        lab = lab_identities(directory)
        assert all(lab.identity(name).notes == () for name in NAMES)
        assert len(certificates(directory)) == 4
    assert killed_in_the_middle > 0


@pytest.mark.usefixtures("quick_keys")
def test_expired_identities_are_recreated_and_the_old_ones_hidden(lab: Path) -> None:
    before = certificates(lab)
    old = lab_identities(lab)
    authority = new_authority("Short-lived CA")
    public_key = old.identity(STATE_B).certificate.public_key()
    with PkiStore.open(lab) as store, store.change() as change:
        expired = certify(authority, "state-b", public_key, validity=EXPIRED)  # type: ignore[arg-type]
        change.name_identity(STATE_B, change.add_certificate(expired, origin=Origin.IMPORTED).id)
    renewed = lab_identities(lab)
    assert re.match(
        r"The lab identities were re-created, since the certificate of state-b expired on [-\d]+ [:\d]+ UTC\.$",
        renewed.notes[0],
    )
    assert renewed.identity(STATE_B).notes == ()
    assert lab_identities(lab).notes == ()
    assert old.authority_file.exists() and old.files(STATE_A).key.exists()
    assert load_certificates(renewed.authority_file) != load_certificates(old.authority_file)
    assert len(load_certificates(renewed.authority_file)) == 1
    assert len(set(certificates(lab)) - set(before)) == 4


@pytest.mark.usefixtures("quick_keys")
def test_a_revoked_identity_is_recreated(lab: Path) -> None:
    with PkiStore.open(lab) as store, store.change() as change:
        change.revoke(change.identity(BROKER).certificate, x509.ReasonFlags.key_compromise)
    assert "the certificate of broker was revoked" in lab_identities(lab).notes[0]
    assert lab_identities(lab).notes == ()


@pytest.mark.usefixtures("quick_keys")
@pytest.mark.parametrize("missing", ["passphrase", "key"])
def test_a_damaged_set_is_recreated(lab: Path, missing: str) -> None:
    old = lab_identities(lab)
    files = old.files(BROKER)
    path = files.key if missing == "key" else files.passphrase_file
    assert path is not None
    path.unlink()
    renewed = lab_identities(lab)
    assert path.name in renewed.notes[0]
    assert renewed.files(BROKER).key != files.key
    assert all(renewed.identity(name).notes == () for name in NAMES)


def test_a_name_used_by_another_state_is_reported(tmp_path: Path) -> None:
    with PkiStore.open(tmp_path) as store:
        record = OwnState(store, "Alpha").issued("end")
        with store.change() as change:
            change.name_identity(STATE_A, record.id)
    with pytest.raises(UserError, match="state-a is an identity of Alpha"):
        lab_identities(tmp_path)
    assert len(certificates(tmp_path)) == 2


@pytest.mark.usefixtures("quick_keys")
def test_secret_is_stored_in_the_keyring_if_there_is_one(use_keyring: UseKeyring, tmp_path: Path) -> None:
    entries = use_keyring("FileKeyring")
    lab = lab_identities(tmp_path / "pki")
    [(entry, secret)] = json.loads(entries.read_text()).items()
    assert lab.notes[1] == f"Their passphrase is in the OS keyring as {entry}."
    assert not list((tmp_path / "pki").glob("keys/passphrase*"))
    identity = lab.identity(STATE_A)
    assert identity.secret is not None and identity.secret.reveal() == secret
    assert lab_identities(tmp_path / "pki").notes == ()
    entries.unlink()
    renewed = lab_identities(tmp_path / "pki")
    assert renewed.files(STATE_A) != lab.files(STATE_A)
    assert "re-created" in renewed.notes[0]


def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UserError, match="cannot be created in"):
        lab_identities(file / "pki")


@pytest.mark.parametrize("type", [KeyType.P_256, KeyType.ED25519, KeyType.ML_DSA_44])
def test_message_identities_have_the_holders_name_and_ca_and_the_wanted_key(lab: Path, type: KeyType) -> None:
    set_of_lab = lab_identities(lab)
    files = lab_message_identity(STATE_A, type, lab)
    [certificate] = load_certificates(files.certificate)
    holder = set_of_lab.identity(STATE_A).certificate
    assert certificate.subject == holder.subject and certificate.issuer == holder.issuer
    assert type_of(certificate.public_key()) is type
    identity = load_identity(files, "state-a")
    assert identity.private_key.public_key() == certificate.public_key()
    assert files.key.read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert os.name != "posix" or stat.S_IMODE(files.key.stat().st_mode) == 0o600
    assert lab_message_identity(STATE_A, type, lab) == files, "later uses find it"
    assert lab_identities(lab).by_name == set_of_lab.by_name, "the set is the same"
    assert lab_message_identity(STATE_B, type, lab).certificate != files.certificate


def test_a_token_identity_signs_in_the_lab_token_and_is_replaced_where_its_key_is_lost(
    lab: Path, lab_home: Path
) -> None:
    def signs(identity: TokenIdentity) -> bool:
        pin = find_configuration(LAB).pin_request(LAB).resolve()
        [certificate] = load_certificates(identity.certificate)
        with opened_token_key(identity.token, identity.label, pin) as key:
            return key.public_key() == certificate.public_key()

    first = lab_token_identity(STATE_A, KeyType.P_256, lab)
    [certificate] = load_certificates(first.certificate)
    assert certificate.subject == lab_identities(lab).identity(STATE_A).certificate.subject
    assert first.token == LAB and signs(first)
    assert lab_token_identity(STATE_A, KeyType.P_256, lab) == first, "later uses find it"
    assert lab_message_identity(STATE_A, KeyType.P_256, lab).certificate != first.certificate
    shutil.rmtree(tokens_dir(lab_home) / LAB)
    second = lab_token_identity(STATE_A, KeyType.P_256, lab)
    assert second.label != first.label and signs(second)
    with pytest.raises(ValueError, match="ed25519"):
        lab_token_identity(STATE_A, KeyType.ED25519, lab)


@pytest.mark.usefixtures("quick_keys")
def test_a_message_identity_follows_its_ca_and_replaces_a_lost_key(lab: Path) -> None:
    first = lab_message_identity(STATE_A, KeyType.P_256, lab)
    first.key.unlink()
    second = lab_message_identity(STATE_A, KeyType.P_256, lab)
    assert second.key.exists() and second.certificate != first.certificate
    lab_identities(lab).files(STATE_B).key.unlink()
    renewed = lab_identities(lab)
    third = lab_message_identity(STATE_A, KeyType.P_256, lab)
    [certificate] = load_certificates(third.certificate)
    [authority] = load_certificates(renewed.authority_file)
    certificate.verify_directly_issued_by(authority)
    shown = [row for row in snapshot_of(lab).certificates if row.removed is None and row.certificate == certificate]
    assert len(shown) == 1
    hidden = {row.certificate for row in snapshot_of(lab).certificates if row.removed is not None}
    assert set(load_certificates(first.certificate)) <= hidden
