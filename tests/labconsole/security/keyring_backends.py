"""Keyring backends for tests, loaded by the keyring process through PYTHON_KEYRING_BACKEND and PYTHONPATH."""

import json
import os
import time
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked


class FileKeyring(KeyringBackend):
    """Keeps entries in the JSON file that LABCONSOLE_TEST_KEYRING names."""

    priority: float = 9

    def get_password(self, service: str, username: str) -> str | None:
        entry: str | None = self._entries().get(f"{service}/{username}")
        return entry

    def set_password(self, service: str, username: str, password: str) -> None:
        self._file.write_text(json.dumps({**self._entries(), f"{service}/{username}": password}))

    @property
    def _file(self) -> Path:
        return Path(os.environ["LABCONSOLE_TEST_KEYRING"])

    def _entries(self) -> dict[str, str]:
        return json.loads(self._file.read_text()) if self._file.exists() else {}


class PlaintextKeyring(FileKeyring):
    """One that `keyring` does not recommend."""

    priority = 0.5


class LockedKeyring(FileKeyring):
    """One that says it is locked."""

    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringLocked("the collection is locked")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise KeyringLocked("the collection is locked")


class HangingKeyring(FileKeyring):
    """One that waits for an invisible unlock dialogue."""

    def get_password(self, service: str, username: str) -> str | None:
        time.sleep(60)
        return "late"
