"""Where a secret comes from: the OS keyring, else a passphrase file of the operator, else a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from labconsole.errors import UserError
from labconsole.security import os_keyring
from labconsole.security.private_files import read_private, write_private
from labconsole.security.secret_value import Secret as Secret
from labconsole.security.secret_value import SecretRefusedError as SecretRefusedError

Prompt = Callable[[str], Secret | None]
"""Called with the purpose of a secret; returns the secret that the operator entered, or None."""


class SecretSource(BaseModel):
    """A reference to a secret: contains none itself, so settings may contain it and processes exchange it as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    keyring_entry: str | None = Field(
        default=None,
        title="Keyring entry",
        description=f"Name of the entry in the OS keyring, service {os_keyring.SERVICE}.",
    )
    passphrase_file: Path | None = Field(
        default=None,
        title="Passphrase file",
        description="File with the passphrase, readable by its owner alone (0600).",
    )

    def resolve(self, purpose: str, prompt: Prompt | None = None) -> Secret:
        """The secret, from `prompt` last. `purpose` completes "the passphrase for ...".

        Raises:
            UserError: it is not available, or the passphrase file is missing, empty or open to others.
        """
        stored = self._in_keyring()
        if stored is not None:
            return stored
        if self.passphrase_file is not None:
            return Secret(_first_line(self.passphrase_file))
        entered = prompt(purpose) if prompt is not None else None
        if entered is not None:
            return entered
        keyring_hint = (
            f"store it in the OS keyring (keyring set {os_keyring.SERVICE} {self.keyring_entry}) or "
            if self.keyring_entry is not None
            else ""
        )
        raise UserError(
            f"There is no passphrase for {purpose}: {keyring_hint}name a passphrase file that only you can read."
        )

    def must_be_asked(self) -> bool:
        """Whether no file is named and the keyring has no entry. The keyring answers in 0.25 s, at most 10 s."""
        return self.passphrase_file is None and self._in_keyring() is None

    def describe(self) -> str:
        """Where the secret is stored, to complete "The passphrase is expected ..."."""
        places = []
        if self.keyring_entry is not None:
            places.append(f"in the OS keyring as {os_keyring.SERVICE}/{self.keyring_entry}")
        if self.passphrase_file is not None:
            places.append(f"in the file {self.passphrase_file}, readable by its owner alone")
        return " or ".join(places) or "with the operator, who is asked for it"

    def relative_to(self, directory: Path) -> SecretSource:
        """The same source, its passphrase file relative to `directory`: as `keep_secret` returned it."""
        if self.passphrase_file is None:
            return self
        return SecretSource(keyring_entry=self.keyring_entry, passphrase_file=directory / self.passphrase_file)

    def _in_keyring(self) -> Secret | None:
        stored = None if self.keyring_entry is None else os_keyring.read(self.keyring_entry)
        return None if stored is None else Secret(stored)


@dataclass(frozen=True)
class SecretRequest:
    """A secret that a run may need. `key` names it within the campaign, `purpose` completes "the passphrase for"."""

    key: str
    purpose: str
    source: SecretSource

    def resolve(self, prompt: Prompt | None = None) -> Secret:
        """The secret, from `prompt` last. Raises UserError as `SecretSource.resolve`."""
        return self.source.resolve(self.purpose, prompt)


def missing_secrets(requests: Iterable[SecretRequest]) -> tuple[SecretRequest, ...]:
    """The requests that neither keyring nor file can answer, one for each key. Duration as `must_be_asked`."""
    by_key = {request.key: request for request in requests}
    return tuple(request for request in by_key.values() if request.source.must_be_asked())


def keep_secret(directory: Path, name: str, secret: Secret, entry: str | None) -> SecretSource:
    """Keep `secret` in the OS keyring as `entry`, else (None, or no keyring) in the file `name` of `directory` (0600).

    A file is named relative to `directory`, which may be moved: see `SecretSource.relative_to`. Raises OSError.
    """
    if entry is not None and os_keyring.store(entry, secret.reveal()):
        return SecretSource(keyring_entry=entry)
    write_private(directory / name, f"{secret.reveal()}\n".encode())
    return SecretSource(passphrase_file=Path(name))


def _first_line(path: Path) -> str:
    try:
        lines = read_private(path, "passphrase file").decode().splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"The passphrase file {path} is not UTF-8 text: write the passphrase as text.") from error
    if not lines or not lines[0]:
        raise UserError(f"The passphrase file {path} is empty: put the passphrase on its first line.")
    return lines[0]
