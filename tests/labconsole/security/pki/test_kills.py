"""Processes that change the certificate database are killed at any moment: nothing that they said is lost or half."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labconsole.security.key_files import load_private_key, save_private_key
from labconsole.security.pki.keys import keys_directory, opened_key
from labconsole.security.pki.records import FileKey
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Secret
from labconsole.security.x509.key_types import KeyType
from tests.helpers.practice import environment
from tests.helpers.program_text import PROGRAM
from tests.helpers.x509_keys import key_of
from tests.labconsole.security.pki import pki_worker

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.nightly)])
def test_killed_at_any_moment(tmp_path: Path, count: int) -> None:
    """Nightly, three processes, which also wait for each other: alone finds faults at rare moments."""
    chance = random.Random(5)
    said: list[str] = []
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", pki_worker.__name__, str(tmp_path / "pki")],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(ROOT) | {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"},
        )
        for _ in range(count)
    ]
    for worker in workers:
        assert worker.stdout is not None
        said.append(worker.stdout.readline().strip())
        time.sleep(chance.random() * 0.2)
        os.kill(worker.pid, signal.SIGKILL)
        said.extend(line.strip() for line in worker.communicate()[0].splitlines(keepends=True) if line.endswith("\n"))

    with PkiStore.open(tmp_path / "pki") as store:
        snapshot = store.snapshot()
        with store.transaction() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").all() == [("ok",)]
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        named = {snapshot.certificate_by_id[row.certificate].sha256 for row in snapshot.identities}
        assert set(said) <= named
        assert len(said) > count
        pinned = {snapshot.certificate_by_id[row.certificate].sha256 for row in snapshot.trust if row.kind == "pin"}
        assert pinned == named
        assert sum(row.what == "named identity" for row in store.audit(100_000)) == len(named)
        files = {key.place.file for key in snapshot.keys if isinstance(key.place, FileKey)}
        assert files <= {path.name for path in keys_directory(store.directory).iterdir()}
        for key in snapshot.keys:
            with opened_key(store.directory, key) as private:
                assert private is not None
        with store.change() as change:
            change.add_state("after the kills")


REWRITING = """
import sys
from pathlib import Path
from labconsole.security.key_files import load_private_key, save_private_key
from labconsole.security.secrets import Secret
path, secret = Path(sys.argv[1]), Secret("x")
key = load_private_key(path, secret)
while True:
    save_private_key(path, key, secret, typed=True)
    print("written", flush=True)
"""


def test_a_key_file_that_was_being_encrypted_again_opens_after_a_kill(tmp_path: Path) -> None:
    path, chance = tmp_path / "key.pem", random.Random(6)
    save_private_key(path, key_of(KeyType.P_256), Secret("x"))
    worker = subprocess.Popen([*PROGRAM, REWRITING, str(path)], stdout=subprocess.PIPE, env=environment(ROOT))
    assert worker.stdout is not None
    worker.stdout.readline()
    time.sleep(chance.random() * 0.2)
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    assert load_private_key(path, Secret("x")).public_key() == key_of(KeyType.P_256).public_key()
