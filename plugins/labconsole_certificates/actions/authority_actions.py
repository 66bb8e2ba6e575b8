"""Actions on one's own CAs: create a root or an intermediate, import one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from labconsole.action import ActionContext
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, Secret, SecretRequest
from labconsole.security.x509 import gate
from labconsole.security.x509.fingerprints import groups
from labconsole.security.x509.names import short_name
from labconsole.trial import Parameters
from labconsole_certificates.actions.authority_parameters import (
    CreateIntermediateParameters,
    CreateRootParameters,
    ImportAuthorityParameters,
)
from labconsole_certificates.actions.fields import kept_as
from labconsole_certificates.actions.pki_action import PkiAction, file_password, key_secrets
from labconsole_certificates.operations.authorities import create_intermediate, create_root, import_authority
from labconsole_certificates.operations.new_keys import secrets_of
from labconsole_certificates.operations.references import authority_of, local_state_named, state_named


class CreateRoot(PkiAction[CreateRootParameters]):
    """Makes a State's root CA."""

    name: ClassVar[str] = "certificates.create-root"
    title: ClassVar[str] = "Create a root CA"
    description: ClassVar[str] = (
        "Makes a key pair and a certificate that it signs itself: the root of what the State issues. Other States "
        "trust it once they have confirmed its fingerprint. For the AMQP Tests 3 and 4 choose RSA: they sign and "
        "encrypt by RSA, and the exchange makes servers' and clients' keys of the same kind as the CA's."
    )
    parameters: ClassVar[type[Parameters]] = CreateRootParameters

    def needs(self, parameters: CreateRootParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        return secrets_of(parameters.new_key())

    def work(self, parameters: CreateRootParameters, store: PkiStore, prompt: Prompt, context: ActionContext) -> str:
        record = create_root(
            store,
            state_named(store.snapshot(), parameters.state),
            parameters.new_key(),
            subject=parameters.subject,
            days=parameters.valid_days,
            path_length=parameters.path_length,
            name_constraints=parameters.limits,
            prompt=prompt,
        )
        return _made(record)


class CreateIntermediate(PkiAction[CreateIntermediateParameters]):
    """Makes a CA below another one."""

    name: ClassVar[str] = "certificates.create-intermediate"
    title: ClassVar[str] = "Create an intermediate CA"
    description: ClassVar[str] = (
        "Makes a key pair and a CA certificate for it, signed by a CA that is here. It issues from then on, and the "
        "root's key can stay locked away."
    )
    parameters: ClassVar[type[Parameters]] = CreateIntermediateParameters

    def needs(
        self, parameters: CreateIntermediateParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        return (
            *secrets_of(parameters.new_key()),
            *key_secrets(directory, snapshot, _issuer(parameters, snapshot)),
        )

    def work(
        self, parameters: CreateIntermediateParameters, store: PkiStore, prompt: Prompt, context: ActionContext
    ) -> str:
        snapshot = store.snapshot()
        record = create_intermediate(
            store,
            _issuer(parameters, snapshot),
            state_named(snapshot, parameters.state),
            parameters.new_key(),
            subject=parameters.subject,
            days=parameters.valid_days,
            path_length=parameters.path_length,
            name_constraints=parameters.limits,
            prompt=prompt,
        )
        return _made(record)


class ImportAuthority(PkiAction[ImportAuthorityParameters]):
    """Takes in a CA with its private key."""

    name: ClassVar[str] = "certificates.import-authority"
    title: ClassVar[str] = "Import a CA"
    description: ClassVar[str] = (
        "Takes in a CA that was made elsewhere, with its private key, which is encrypted anew here. The files stay as "
        "they are: put them away safely."
    )
    parameters: ClassVar[type[Parameters]] = ImportAuthorityParameters

    def needs(
        self, parameters: ImportAuthorityParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        file = parameters.key_file or parameters.file
        locked = gate.kind_of(gate.read_file(file, "key file")).has_password
        return (
            *((file_password(file),) if locked else ()),
            *secrets_of(kept_as(parameters.protection)),
        )

    def work(
        self, parameters: ImportAuthorityParameters, store: PkiStore, prompt: Prompt, context: ActionContext
    ) -> str:
        key_file = parameters.key_file
        record = import_authority(
            store,
            state_named(store.snapshot(), parameters.state),
            gate.read_file(parameters.file, "certificate file"),
            gate.read_file(key_file, "key file") if key_file else b"",
            password=_password(key_file or parameters.file, prompt),
            keep=kept_as(parameters.protection),
            prompt=prompt,
        )
        return _made(record, "is taken in")


def _issuer(parameters: CreateIntermediateParameters, snapshot: Snapshot) -> CertificateRecord:
    state = local_state_named(snapshot, parameters.issuing_state or parameters.state)
    return authority_of(snapshot, state, parameters.issuer, datetime.now(UTC))


def _password(path: Path, prompt: Prompt) -> Secret | None:
    return prompt(file_password(path).purpose)


def _made(record: CertificateRecord, how: str = "is made") -> str:
    return f"The CA {short_name(record.certificate)} {how}. Its fingerprint: {groups(record.sha256)}"
