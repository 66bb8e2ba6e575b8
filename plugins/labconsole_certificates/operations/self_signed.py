"""Self-signed end certificates, the paper's title taken literally: peers pin them by their fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from labconsole.model.operation import HomePath, OperationContext, Result
from labconsole.model.trial import Parameters
from labconsole.output.export_file import must_be_new_files
from labconsole.security.pki.records import CertificateRecord, Origin, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.certificate_profiles import TEXTS, CertificateProfile
from labconsole.security.x509.issuing import make_self_signed as self_signed
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.export import exported, write_export
from labconsole_certificates.operations.issuing import alternative_names, must_be_within, subject_of
from labconsole_certificates.operations.new_keys import NewKey, made_key, secrets_of
from labconsole_certificates.operations.parameter_fields import (
    Days,
    EndProfile,
    Names,
    NewKeyParameters,
    Subject,
    new_file,
)
from labconsole_certificates.operations.pki_operation import PkiOperation, with_fingerprint
from labconsole_certificates.operations.received_csrs import END_DAYS
from labconsole_certificates.operations.record_lookup import local_state_named, must_be_local, state_named

WARNING = (
    "A self-signed certificate has no CA: it cannot be revoked, and each peer must pin it again when it is replaced."
)


def make_self_signed(
    store: PkiStore,
    state: State,
    new: NewKey,
    profile: CertificateProfile,
    *,
    subject: str = "",
    names: Sequence[str] = (),
    days: int = END_DAYS,
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """A new key pair and an end certificate that it signs itself. Raises UserError; nothing changed."""
    must_be_local(state)
    name, alternatives = subject_of(state, profile, subject), alternative_names(names)
    must_be_within(state, alternatives)
    validity = Validity.for_days(days)
    with made_key(store.directory, new, f"{state.name} {TEXTS[profile].title}", prompt) as key:
        certificate = self_signed(key.private, name, alternatives, profile, validity)
        with store.change() as change:
            key.record(change, state)
            return change.add_certificate(certificate, state=state.id, profile=profile, origin=Origin.SELF_SIGNED)


class CreateSelfSignedParameters(NewKeyParameters):
    """An end certificate that signs itself, to create."""

    profile: EndProfile = CertificateProfile.TLS_CLIENT
    subject: Subject = ""
    names: Names = ()
    valid_days: Days = END_DAYS
    file: HomePath | None = new_file("the certificate, for peers to pin")


class CreateSelfSigned(PkiOperation[CreateSelfSignedParameters]):
    """Creates an end certificate without a CA."""

    name: ClassVar[str] = "certificates.self-signed"
    title: ClassVar[str] = "Create a self-signed certificate"
    description: ClassVar[str] = (
        f"Creates a key pair and an end certificate that others pin by its fingerprint. {WARNING}"
    )
    parameters: ClassVar[type[Parameters]] = CreateSelfSignedParameters

    def needs(
        self, parameters: CreateSelfSignedParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        if parameters.file is not None:
            must_be_new_files(parameters.file)
        return secrets_of(parameters.new_key())

    def work(
        self, parameters: CreateSelfSignedParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        record = make_self_signed(
            store,
            state_named(store.snapshot(), parameters.state),
            parameters.new_key(),
            parameters.profile,
            subject=parameters.subject,
            names=parameters.names,
            days=parameters.valid_days,
            prompt=prompt,
        )
        name, file = short_name(record.certificate), parameters.file
        created = with_fingerprint(f"The certificate of {name} was created.", record)
        if file is None:
            said = "Peers pin it by this fingerprint."
        else:
            write_export(file, exported(store.snapshot(), record))
            said = f"{file} contains the certificate, for peers to pin."
        return Result((*created.parts, said), created.data, (WARNING,))
