"""Base classes of this plugin's operations: they open the certificate database, and know secrets in advance."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.trial import Parameters
from labconsole.security.pki.audited_changes import AuditedOperation
from labconsole.security.pki.keys import key_secret
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, Secret, SecretRequest, SecretSource
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.record_lookup import key_of

P = TypeVar("P", bound=Parameters)

ASKED = SecretSource()
"""The source of a secret that is neither kept nor in a file: the operator is asked."""
_PASSWORD = "file-password"
_AGAIN = "file-password-again"


class PkiReport(Operation[P]):
    """An operation that reads the certificate database of the user."""

    def run(self, parameters: P, context: OperationContext) -> Result | str:
        with PkiReader.open() as reader:
            return self.read(parameters, reader)

    @abstractmethod
    def read(self, parameters: P, reader: PkiReader) -> Result:
        """The report. Raises UserError."""


class PkiOperation(Operation[P]):
    """An operation that changes the certificate database of the user."""

    writes: ClassVar[tuple[str, ...]] = ("certificates",)

    def needs(self, parameters: P, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        """Secrets of the keys and files that the work uses; `directory` is that of the database. Raises UserError."""
        return ()

    @abstractmethod
    def work(self, parameters: P, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result | str:
        """Do the work; returns its result or one sentence. `prompt` gives the secrets of `needs`. Raises UserError."""

    def secrets(self, parameters: P) -> tuple[SecretRequest, ...]:
        if type(self).needs is PkiOperation.needs:
            return ()  # and there may be no database yet
        with PkiReader.open() as reader:
            return self.needs(parameters, reader.directory, reader.snapshot())

    def run(self, parameters: P, context: OperationContext) -> Result | str:
        with PkiStore.open() as store:
            store.operation = AuditedOperation(self.name, parameters.model_dump_json(exclude_defaults=True))
            requests = {
                request.purpose: request for request in self.needs(parameters, store.directory, store.snapshot())
            }

            def prompt(purpose: str) -> Secret | None:
                request = requests.get(purpose)
                entered = None if request is None else context.secret(request.key)
                if entered is None and request is not None and request.source != ASKED:
                    return request.resolve()
                return entered

            return self.work(parameters, store, prompt, context)


def key_secrets(
    directory: Path, snapshot: Snapshot, *certificates: CertificateRecord, unlock: SecretSource = ASKED
) -> tuple[SecretRequest, ...]:
    """The secrets that open the private keys of these certificates; `unlock` replaces prompts.

    Raises UserError: one is not here.
    """
    requests = [key_secret(directory, key_of(snapshot, certificate)) for certificate in certificates]
    return tuple(replace(one, source=unlock) if one.source == ASKED else one for one in requests)


def file_password(path: Path, source: SecretSource = ASKED) -> SecretRequest:
    """The password of a foreign file."""
    return SecretRequest(_PASSWORD, f"the file {path.name}", source)


def new_file_password(path: Path, source: SecretSource = ASKED) -> tuple[SecretRequest, ...]:
    """The password of a new file, asked for twice unless `source` has it."""
    first = SecretRequest(_PASSWORD, f"the new file {path.name}", source)
    again = SecretRequest(_AGAIN, f"the new file {path.name}, once more", source)
    return (first, again) if source == ASKED else (first,)


def chosen_password(path: Path, prompt: Prompt, source: SecretSource = ASKED) -> Secret:
    """The new password of a file. Raises UserError: it was typed in two ways, or not at all."""
    first, *again = (request.resolve(prompt) for request in new_file_password(path, source))
    if any(one.reveal() != first.reveal() for one in again):
        raise UserError("The password was typed in two ways, so nothing was written: type it again.")
    return first


def with_fingerprint(sentence: str, record: CertificateRecord) -> Result:
    """A result about one certificate: the sentence, and its fingerprint."""
    name = short_name(record.certificate)
    text = f"{sentence} Its fingerprint: SHA-256 {grouped(record.sha256)}"
    return Result((text,), {"certificate": name, "sha256": record.sha256})
