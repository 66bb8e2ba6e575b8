"""No passphrase, password or private key turns up where it does not belong: canaries are planted and looked for.

Looked at are: what commands and actions say, the database and all other files of the home, what is exported, the
arguments and environments of processes, and a crash report with the local variables of every frame.
"""

from __future__ import annotations

import base64
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from labconsole.engine.operation_process import Outcome
from labconsole.errors import UserError
from labconsole.paths import pki_dir
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.issuing import issue_root
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations import no_csr
from labconsole_certificates.operations.authorities import import_authority
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.received_csrs import approve
from labconsole_certificates.revocation.crl_operations import publish_crl
from tests.helpers.operations import Operations
from tests.helpers.terminal import Terminal
from tests.labconsole_certificates.three_states import ThreeStates

PASSPHRASE, PASSWORD = "canary-passphrase-5kq8", "canary-password-w3zt"
KEY = ec.derive_private_key(0x5EC4E7CA9A475EC4E7CA9A475EC4E7CA9A475EC4E7CA9A475EC4E7CA9A475EC4, ec.SECP256R1())
CA = issue_root(KEY, x509.Name.from_rfc4514_string("CN=Canary CA"), Validity.for_days(99))

terminal_only = pytest.mark.skipif(os.name != "posix", reason="a pseudo terminal is needed")


CA_FINGERPRINT = fingerprint(CA)


def _forms() -> list[bytes]:
    """How the canaries could be written down: as they are, in hex, in UTF-16, in Base64 at each offset."""
    number = KEY.private_numbers().private_value
    forms = [str(number).encode()]
    for secret in (PASSPHRASE.encode(), PASSWORD.encode(), number.to_bytes(32, "big")):
        forms += [secret, secret.hex().encode(), secret.hex().upper().encode()]
        forms += [base64.b64encode(bytes(offset) + secret)[4:-4] for offset in range(3)]
    return [*forms, PASSPHRASE.encode("utf-16-le"), PASSWORD.encode("utf-16-le")]


FORMS = _forms()


def _sings(content: bytes) -> bool:
    """Whether a canary is in it; line breaks of PEM do not hide one."""
    joined = content.replace(b"\n", b"")
    return any(form in content or form in joined for form in FORMS)


def _files(*directories: Path) -> list[Path]:
    return [file for directory in directories for file in directory.rglob("*") if file.is_file()]


def _key_pem(password: str = "") -> bytes:
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


@pytest.fixture
def import_files(tmp_path: Path) -> Path:
    """A directory with the canary CA as it comes from outside: certificate, and key under the password."""
    directory = tmp_path / "handed"
    directory.mkdir()
    (directory / "ca.pem").write_bytes(CA.public_bytes(Encoding.PEM))
    (directory / "key.pem").write_bytes(_key_pem(PASSWORD))
    return directory


def test_a_canary_is_found_where_it_is() -> None:
    der = KEY.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    private = repr(KEY.private_numbers().private_value).encode()
    written = base64.b64encode(b"?" + PASSWORD.encode() + b"??")
    for content in (_key_pem(), der, private, written, f"passphrase={PASSPHRASE}".encode()):
        assert _sings(b"before " + content + b" after")
    assert not _sings(_key_pem(PASSWORD))


@pytest.mark.usefixtures("started_programs")
@pytest.mark.skipif(os.name != "posix", reason="a pseudo terminal is needed")
@pytest.mark.usefixtures("world")
def test_commands_do_not_leak_typed_secrets(own_home: Path, import_files: Path) -> None:
    shown, processes = b"", []

    def typed(arguments: tuple[str | Path, ...], answers: dict[str, str]) -> None:
        nonlocal shown
        command = [sys.executable, "-m", "labconsole.cli.main", "pki", *map(str, arguments)]
        terminal = Terminal(command, dict(os.environ))
        for question, text in answers.items():
            terminal.answer(question, text)
            processes.append(_outside_of(terminal.process.pid))
        code, entered = terminal.finish()
        assert code == 0, terminal.shown.decode()
        shown += entered + terminal.shown

    new, p12 = "Passphrase for the new key file", "Passphrase for the new file ca.p12"
    typed(
        ("import-ca", "State A", import_files / "ca.pem", "--key", import_files / "key.pem", "--ask-passphrase"),
        {"Passphrase for the file": PASSWORD, f"{new}: ": PASSPHRASE, f"{new}, once more: ": PASSPHRASE},
    )
    typed(
        ("export", CA_FINGERPRINT, import_files / "ca.p12", "--form", "p12"),
        {f"{p12}: ": PASSWORD, f"{p12}, once more: ": PASSWORD, "Passphrase for the key Canary CA": PASSPHRASE},
    )
    assert not _sings(shown) and processes and not any(map(_sings, processes))
    _silent(own_home, import_files)


@pytest.mark.usefixtures("started_programs")
def test_operations_do_not_leak_secrets(world: ThreeStates, own_home: Path, import_files: Path) -> None:
    entered = {"file-password": PASSWORD, "new-passphrase": PASSPHRASE, "new-passphrase-again": PASSPHRASE}
    parameters = {
        "file": str(import_files / "ca.pem"),
        "key_file": str(import_files / "key.pem"),
        "protection": "asked",
    }
    actions = Operations()
    try:
        secrets = {key: Secret(text) for key, text in entered.items()}
        with world.store.change():  # the operation waits for its end
            process = actions.start("certificates.import-authority", secrets=secrets, state="State A", **parameters)
            outside = _outside_of(process.pid)
        end = actions.end(process)
    finally:
        actions.close()
    assert end.outcome is Outcome.DONE, end.sentence
    said = "\n".join([end.sentence, process.said, *process.take_log()]).encode()
    assert outside and not _sings(outside) and not _sings(said)
    record = world.store.snapshot().certificate_by_sha256[CA_FINGERPRINT]
    approve(world.store, world.asks(world.b, world.a), authority=record, days=9, prompt=lambda _: Secret(PASSPHRASE))
    _silent(own_home, import_files)


@pytest.mark.parametrize("fault", ["wrong password", "wrong key", "wrong passphrase", "wrong PKCS#12"])
def test_a_crash_report_with_all_variables_says_nothing(world: ThreeStates, fault: str) -> None:
    data = CA.public_bytes(Encoding.PEM)
    mine = NewKey(passphrase=SecretSource())
    record = import_authority(world.store, world.a, data, _key_pem(), keep=mine, prompt=lambda _: Secret(PASSPHRASE))
    try:
        match fault:
            case "wrong password":
                import_authority(world.store, world.a, data, _key_pem("another"), password=Secret(PASSWORD))
            case "wrong key":
                root = world.root_b.certificate.public_bytes(Encoding.PEM)
                import_authority(world.store, world.a, root, _key_pem(PASSWORD), password=Secret(PASSWORD))
            case "wrong passphrase":
                publish_crl(world.store, record, prompt=lambda _: Secret(PASSWORD))
            case _:
                no_csr.import_pkcs12(world.store, world.a, data, Secret(PASSWORD))
    except UserError as error:
        reported = traceback.TracebackException.from_exception(error, capture_locals=True)
    frames = "".join(reported.format(chain=True))
    assert "prompt" in frames
    assert not _sings(_without_this_test(frames).encode())


def _without_this_test(report: str) -> str:
    """The report without the frames of this file, where the canaries are at home."""
    entries = report.split("\n  File ")
    return "\n  File ".join(entry for entry in entries if Path(__file__).name not in entry.split("\n")[0])


def _outside_of(pid: int) -> bytes:
    """What others of this machine may see of a process and of those that it has started."""
    process = psutil.Process(pid)
    seen = []
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            seen += [*one.cmdline(), *one.environ().values()]
    return "\0".join(seen).encode()


def _silent(*directories: Path) -> None:
    """Look into all files, the database among them."""
    files = _files(*directories)
    assert pki_dir() / "pki.db" in files
    assert [file for file in files if _sings(file.read_bytes())] == []
