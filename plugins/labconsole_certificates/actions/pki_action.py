"""What the actions of this plugin have in common: the database, and secrets that were asked for before the start."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TypeVar

from labconsole.action import Action, ActionContext
from labconsole.errors import UserError
from labconsole.security.pki.keys import key_secret
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, Secret, SecretRequest, SecretSource
from labconsole.trial import Parameters
from labconsole_certificates.operations.references import key_of

P = TypeVar("P", bound=Parameters)

_PASSWORD = "file-password"
_AGAIN = "file-password-again"


class PkiAction(Action[P]):
    """An action on the certificate database of the user."""

    def needs(self, parameters: P, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        """Secrets of the keys and files that the work uses; `directory` is that of the database. Raises UserError."""
        return ()

    @abstractmethod
    def work(self, parameters: P, store: PkiStore, prompt: Prompt, context: ActionContext) -> str:
        """Do it, and return one sentence on what came of it; `prompt` gives what was asked for. Raises UserError."""

    def secrets(self, parameters: P) -> tuple[SecretRequest, ...]:
        with PkiReader.open() as reader:
            return self.needs(parameters, reader.directory, reader.snapshot())

    def run(self, parameters: P, context: ActionContext) -> str:
        with PkiStore.open() as store:
            requests = self.needs(parameters, store.directory, store.snapshot())
            entered = {request.purpose: context.secret(request.key) for request in requests}
            return self.work(parameters, store, entered.get, context)


def key_secrets(directory: Path, snapshot: Snapshot, *certificates: CertificateRecord) -> tuple[SecretRequest, ...]:
    """What opens the private keys of these certificates. Raises UserError: one is not here."""
    return tuple(key_secret(directory, key_of(snapshot, certificate)) for certificate in certificates)


def file_password(path: Path) -> SecretRequest:
    """The password of a file from outside."""
    return SecretRequest(_PASSWORD, f"the file {path.name}", SecretSource())


def new_file_password(path: Path) -> tuple[SecretRequest, ...]:
    """The password of a file that is to be written, asked for twice."""
    return (
        SecretRequest(_PASSWORD, f"the new file {path.name}", SecretSource()),
        SecretRequest(_AGAIN, f"the new file {path.name}, once more", SecretSource()),
    )


def chosen_password(path: Path, prompt: Prompt) -> Secret:
    """The password that was typed twice. Raises UserError: in two ways, or not at all."""
    first, again = (request.resolve(prompt) for request in new_file_password(path))
    if first.reveal() != again.reveal():
        raise UserError("The password was typed in two ways, so nothing was written: type it again.")
    return first
