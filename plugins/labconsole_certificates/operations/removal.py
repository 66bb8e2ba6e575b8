"""Hides certificates, which can be restored (rows and audit list stay), and deletes stray key files for good."""

from __future__ import annotations

from typing import ClassVar

from labconsole.model.operation import Confirmation, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.keys import stray_key_files
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.parameter_fields import CertificateChoice
from labconsole_certificates.operations.pki_operation import PkiOperation
from labconsole_certificates.operations.record_lookup import certificate_named


def remove(store: PkiStore, certificate: CertificateRecord) -> CertificateRecord:
    """Hide the certificate. Raises UserError: it is hidden, a State trusts it, or an identity uses it."""
    with store.change() as change:
        return change.remove(certificate.id)


def restore(store: PkiStore, certificate: CertificateRecord) -> CertificateRecord:
    """Show it again. Raises UserError: it is not hidden."""
    with store.change() as change:
        return change.restore(certificate.id)


class RemovedParameters(Parameters):
    """A certificate to hide or to show."""

    certificate: CertificateChoice


class Remove(PkiOperation[RemovedParameters]):
    """Hides a certificate."""

    name: ClassVar[str] = "certificates.remove"
    title: ClassVar[str] = "Hide a certificate"
    description: ClassVar[str] = (
        "Hides a certificate that no State trusts and no name uses; it stays in the database, and can be restored."
    )
    parameters: ClassVar[type[Parameters]] = RemovedParameters

    def work(self, parameters: RemovedParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        record = remove(store, certificate_named(store.snapshot(), parameters.certificate))
        return _result(record, "is removed; labconsole pki restore brings it back.")


class Restore(PkiOperation[RemovedParameters]):
    """Shows a hidden certificate again."""

    name: ClassVar[str] = "certificates.restore"
    title: ClassVar[str] = "Restore a certificate"
    description: ClassVar[str] = "Shows a hidden certificate again."
    parameters: ClassVar[type[Parameters]] = RemovedParameters

    def work(self, parameters: RemovedParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        record = restore(store, certificate_named(store.snapshot(), parameters.certificate))
        return _result(record, "is restored.")


def _result(record: CertificateRecord, sentence: str) -> Result:
    name = short_name(record.certificate)
    return Result((f"{name} {sentence}",), {"certificate": name, "sha256": record.sha256})


class RemoveKeyFilesParameters(Parameters):
    """Key files without a certificate."""

    yes: bool = parameter("Yes", "Remove them without a question", default=False, terminal_only=True)


class RemoveKeyFiles(PkiOperation[RemoveKeyFilesParameters]):
    """Removes key files that no key of the database names."""

    name: ClassVar[str] = "certificates.remove-key-files"
    title: ClassVar[str] = "Remove key files"
    description: ClassVar[str] = (
        "Removes key files that no certificate or request needs: a process was killed while it created a key."
    )
    parameters: ClassVar[type[Parameters]] = RemoveKeyFilesParameters

    def confirmation(self, parameters: RemoveKeyFilesParameters) -> Confirmation | None:
        if parameters.yes:
            return None
        with PkiReader.open() as reader:
            stray = stray_key_files(reader.directory, reader.snapshot().keys)
        listed = "\n".join(map(str, stray))
        loss = f"{listed}\nThese {len(stray)} key files are removed for good."
        return Confirmation("yes", loss, "--yes") if stray else None

    def work(
        self, parameters: RemoveKeyFilesParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        with store.change() as change:
            stray = stray_key_files(store.directory, change.snapshot().keys)
            for path in stray:
                path.unlink(missing_ok=True)
                change.note("removed key file", path.name)
        text = f"Key files removed: {len(stray)}"
        if not stray:
            text = "Every key file belongs to a key of the database: there is nothing to remove."
        return Result((text,), {"removed": [str(path) for path in stray]})
