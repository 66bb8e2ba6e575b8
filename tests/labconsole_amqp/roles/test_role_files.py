"""The files of a run's roles: payload and certificates are copied, private keys are read in place."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from labconsole.security.lab_identities import STATE_A, lab_identities
from labconsole.security.private_files import PRIVATE_KEY_MARK
from tests.labconsole_amqp.lab import Lab

pytestmark = pytest.mark.usefixtures("lab_home")


def copies(folder: Path) -> set[str]:
    """Hashes of the files that a run has copied."""
    return {path.name for path in (folder / "files").iterdir()}


def hash_of(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_payload_and_certificates_are_copied_and_private_keys_are_not(tmp_path: Path) -> None:
    payload = tmp_path / "payload.txt"
    payload.write_text("flight plan")
    outcome = Lab(tmp_path / "run").run(test=4, count=5, payload=str(payload))
    assert (outcome.failure, outcome.figures["lost"]) == (None, 0)
    lab = lab_identities()
    public = [payload, lab.authority_file, lab.files(STATE_A).certificate]
    assert copies(tmp_path / "run") > {hash_of(path) for path in public}
    _no_key_in(tmp_path / "run", lab.files(STATE_A).key)


def test_a_certificate_file_that_holds_its_key_is_read_in_place(tmp_path: Path) -> None:
    own = lab_identities().files(STATE_A)
    combined = tmp_path / "combined.pem"
    combined.touch(0o600)
    combined.write_bytes(own.certificate.read_bytes() + own.key.read_bytes())
    settings = {"sender_certificate": combined, "sender_key": combined, "sender_passphrase_file": own.passphrase_file}
    outcome = Lab(tmp_path / "run").run(
        test=4, count=5, payload="small", **{name: str(path) for name, path in settings.items()}
    )
    assert (outcome.failure, outcome.figures["lost"]) == (None, 0)
    assert hash_of(combined) not in copies(tmp_path / "run")
    _no_key_in(tmp_path / "run", own.key)


def _no_key_in(folder: Path, key: Path) -> None:
    """No file contains a line of the key."""
    canary = key.read_bytes().splitlines()[3]
    assert len(canary) > 40
    for path in folder.rglob("*"):
        if path.is_file():
            assert PRIVATE_KEY_MARK not in path.read_bytes(), path
            assert canary not in path.read_bytes(), path
