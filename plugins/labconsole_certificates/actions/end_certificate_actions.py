"""Actions that make end certificates without a CSR, and move keys by PKCS#12."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from labconsole.operation import OperationContext
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509 import gate
from labconsole.security.x509.fingerprints import groups
from labconsole.security.x509.names import short_name
from labconsole.trial import Parameters
from labconsole_certificates.actions.end_certificate_parameters import (
    ExportPkcs12Parameters,
    ImportPkcs12Parameters,
    MakeForClientParameters,
    MakeSelfSignedParameters,
)
from labconsole_certificates.operations import end_certificates, no_csr
from labconsole_certificates.operations.exporting import (
    key_that_may_leave,
    must_be_new_file,
    pkcs12_bytes,
    write_export,
)
from labconsole_certificates.operations.fields import kept_as
from labconsole_certificates.operations.new_keys import secrets_of
from labconsole_certificates.operations.pki_operation import (
    PkiOperation,
    chosen_password,
    file_password,
    key_secrets,
    new_file_password,
)
from labconsole_certificates.operations.references import (
    authority_of,
    certificate_named,
    local_state_named,
    state_named,
)


class MakeSelfSigned(PkiOperation[MakeSelfSignedParameters]):
    """Makes an end certificate without any CA."""

    name: ClassVar[str] = "certificates.self-signed"
    title: ClassVar[str] = "Make a self-signed certificate"
    description: ClassVar[str] = (
        f"Makes a key pair and an end certificate that others pin by its fingerprint. {end_certificates.WARNING}"
    )
    parameters: ClassVar[type[Parameters]] = MakeSelfSignedParameters

    def needs(
        self, parameters: MakeSelfSignedParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        return secrets_of(parameters.new_key())

    def work(
        self, parameters: MakeSelfSignedParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        record = end_certificates.make_self_signed(
            store,
            state_named(store.snapshot(), parameters.state),
            parameters.new_key(),
            parameters.profile,
            subject=parameters.subject,
            names=parameters.names,
            days=parameters.valid_days,
            prompt=prompt,
        )
        return f"{short_name(record.certificate)} is made. Tell peers its fingerprint: {groups(record.sha256)}"


class MakeForClient(PkiOperation[MakeForClientParameters]):
    """The No-CSR method, on the server's side."""

    name: ClassVar[str] = "certificates.make-for-client"
    title: ClassVar[str] = "Make key and certificate for another State"
    description: ClassVar[str] = f"Writes key, certificate and chain to one PKCS#12 file. {no_csr.WARNING}"
    parameters: ClassVar[type[Parameters]] = MakeForClientParameters

    def needs(
        self, parameters: MakeForClientParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        state_named(snapshot, parameters.client)
        must_be_new_file(parameters.file)
        issuer = _authority(parameters, snapshot)
        return (*new_file_password(parameters.file), *key_secrets(directory, snapshot, issuer))

    def work(
        self, parameters: MakeForClientParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        snapshot, file = store.snapshot(), parameters.file
        made = no_csr.make_for_client(
            store,
            local_state_named(snapshot, parameters.issuer),
            state_named(snapshot, parameters.client),
            parameters.key_type,
            parameters.profile,
            chosen_password(file, prompt),
            subject=parameters.subject,
            names=parameters.names,
            days=parameters.valid_days,
            authority=_authority(parameters, snapshot),
            prompt=prompt,
        )
        write_export(file, made.pkcs12, private=True)
        return (
            f"{file} holds key and certificate of {short_name(made.certificate.certificate)}; there is no other copy "
            "of the key. Tell its password on another way than the file takes."
        )


class ImportPkcs12(PkiOperation[ImportPkcs12Parameters]):
    """The No-CSR method, on the client's side."""

    name: ClassVar[str] = "certificates.import-pkcs12"
    title: ClassVar[str] = "Take in a PKCS#12"
    description: ClassVar[str] = (
        "Takes key, certificate and chain from a PKCS#12 file; the key is encrypted anew here. The file stays as it "
        "is: erase it."
    )
    parameters: ClassVar[type[Parameters]] = ImportPkcs12Parameters

    def needs(
        self, parameters: ImportPkcs12Parameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        return (
            file_password(parameters.file),
            *secrets_of(kept_as(parameters.protection)),
        )

    def work(
        self, parameters: ImportPkcs12Parameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        snapshot = store.snapshot()
        record = no_csr.take_in_pkcs12(
            store,
            state_named(snapshot, parameters.state),
            gate.read_file(parameters.file, "PKCS#12 file"),
            file_password(parameters.file).resolve(prompt),
            sender=state_named(snapshot, parameters.sender) if parameters.sender else None,
            keep=kept_as(parameters.protection),
            prompt=prompt,
        )
        return f"{short_name(record.certificate)} is taken in with its key. {groups(record.sha256)}"


class ExportPkcs12(PkiOperation[ExportPkcs12Parameters]):
    """Lets a certificate leave with its private key."""

    name: ClassVar[str] = "certificates.export-pkcs12"
    title: ClassVar[str] = "Export with private key"
    description: ClassVar[str] = (
        "Writes certificate, chain and private key to one PKCS#12 file under a password. Whoever has both can act in "
        "its name. Keys in a token never leave it."
    )
    parameters: ClassVar[type[Parameters]] = ExportPkcs12Parameters

    def needs(
        self, parameters: ExportPkcs12Parameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        must_be_new_file(parameters.file)
        certificate = certificate_named(snapshot, parameters.certificate)
        key_that_may_leave(snapshot, certificate)
        return (*new_file_password(parameters.file), *key_secrets(directory, snapshot, certificate))

    def work(
        self, parameters: ExportPkcs12Parameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        certificate = certificate_named(store.snapshot(), parameters.certificate)
        file = parameters.file
        data = pkcs12_bytes(store, certificate, chosen_password(file, prompt), prompt)
        write_export(file, data, private=True)
        return f"{file} holds {short_name(certificate.certificate)} with its private key."


def _authority(parameters: MakeForClientParameters, snapshot: Snapshot) -> CertificateRecord:
    issuer = local_state_named(snapshot, parameters.issuer)
    return authority_of(snapshot, issuer, parameters.authority, datetime.now(UTC))
