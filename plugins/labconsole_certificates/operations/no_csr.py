"""The No-CSR method of the source: the server creates key and certificate for the client, in one PKCS#12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from labconsole.errors import BadInput
from labconsole.model.operation import HomePath, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.output.export_file import must_be_new_files
from labconsole.security.pki.records import CertificateRecord, Item, Origin, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, Secret, SecretRequest
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import AUTHORITIES, CertificateProfile
from labconsole.security.x509.issuing import check_key_pair, issue
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.authorities import complete_pkcs12
from labconsole_certificates.operations.certificate_import import add_chain, profile_of
from labconsole_certificates.operations.export import write_export
from labconsole_certificates.operations.export_formats import write_pkcs12
from labconsole_certificates.operations.issuing import (
    alternative_names,
    must_be_accepted,
    must_be_within,
    opened_issuer,
    subject_of,
)
from labconsole_certificates.operations.new_keys import NewKey, kept_key, secrets_of
from labconsole_certificates.operations.parameter_fields import (
    AuthorityChoice,
    Days,
    EndProfile,
    FileType,
    KeptKeyParameters,
    Names,
    PasswordParameters,
    StateParameters,
    Subject,
    UnlockParameters,
)
from labconsole_certificates.operations.pki_operation import (
    PkiOperation,
    chosen_password,
    file_password,
    key_secrets,
    new_file_password,
    with_fingerprint,
)
from labconsole_certificates.operations.received_csrs import END_DAYS
from labconsole_certificates.operations.record_lookup import (
    authority_of,
    local_state_named,
    must_be_local,
    must_be_of,
    state_named,
)

WARNING = (
    "Without a CSR the private key is created by another State than the one that uses it, and leaves it in a file: the "
    "source prefers the CSR method, where a private key never leaves the country of origin."
)


@dataclass(frozen=True)
class MadeForClient:
    """The certificate, and the PKCS#12 for the client: the issuer keeps no copy of the private key."""

    certificate: CertificateRecord
    pkcs12: bytes


def make_for_client(
    store: PkiStore,
    issuer: State,
    client: State,
    key_type: KeyType,
    profile: CertificateProfile,
    password: Secret,
    *,
    subject: str = "",
    names: Sequence[str] = (),
    days: int = END_DAYS,
    authority: CertificateRecord | None = None,
    prompt: Prompt | None = None,
) -> MadeForClient:
    """Create a key pair and a certificate for `client`, with chain in a PKCS#12 under `password`.

    Raises UserError as `requests.approve`, and for a key type that PKCS#12 files cannot hold; nothing changed.
    """
    must_be_local(issuer)
    name, alternatives = subject_of(client, profile, subject), alternative_names(names)
    must_be_within(client, alternatives)
    validity = Validity.for_days(days)
    snapshot = store.snapshot()
    found = must_be_of(snapshot, authority or authority_of(snapshot, issuer, "", datetime.now(UTC)), issuer)
    with opened_issuer(store.directory, snapshot, found, prompt) as opened:
        private = generate(key_type)
        certificate = issue(opened, private.public_key(), name, alternatives, profile, validity)
        must_be_accepted(certificate, opened)
        chain = (opened.certificate, *opened.chain)
    data = write_pkcs12(private, certificate, chain, short_name(certificate), password)
    with store.change() as change:
        record = change.add_certificate(certificate, state=client.id, profile=profile, origin=Origin.ISSUED)
        change.hand_over(issuer.id, client.id, Item.PKCS12, record.sha256)
    return MadeForClient(record, data)


def import_pkcs12(
    store: PkiStore,
    client: State,
    data: bytes,
    password: Secret,
    *,
    sender: State | None = None,
    keep: NewKey | None = None,
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """As client: import key, certificate and chain from the PKCS#12; the key is encrypted again as `keep` says.

    Raises UserError: wrong password, no key, key and certificate do not belong together, or it is a CA, which the
    client would trust as its own while its creator has the key; nothing changed.
    """
    must_be_local(client)
    certificate, chain, private = complete_pkcs12(data, password)
    check_key_pair(certificate, private)
    profile = profile_of(certificate)
    if profile in AUTHORITIES:
        raise BadInput(
            f"{short_name(certificate)} is a CA, and no State lets another one create its CA: ask for an end "
            "certificate."
        )
    kept = kept_key(store.directory, private, keep, short_name(certificate), prompt)
    with store.change() as change:
        kept.record(change, client)
        add_chain(change, chain, None if sender is None else sender.id)
        record = change.add_certificate(certificate, state=client.id, profile=profile, origin=Origin.IMPORTED)
        if sender is not None:
            change.hand_over(sender.id, client.id, Item.PKCS12, record.sha256)
    return record


class CreateForClientParameters(UnlockParameters, PasswordParameters):
    """Key and certificate to create for another State."""

    issuer: str = parameter(
        "Issuing State",
        "State of this console whose CA issues it",
        min_length=1,
        option="--issuing-state",
        aliases=["--issuer"],
        metavar="STATE",
    )
    client: str = parameter(
        "For", "State that gets key and certificate", min_length=1, positional=True, metavar="STATE"
    )
    key_type: FileType = KeyType.P_256
    profile: EndProfile = CertificateProfile.TLS_CLIENT
    subject: Subject = ""
    names: Names = ()
    valid_days: Days = END_DAYS
    authority: AuthorityChoice = ""
    file: HomePath = parameter(
        "File", "New PKCS#12 file (.p12); a file that is there stays", kind="new-file", option="--out"
    )

    def issuing_certificate(self, snapshot: Snapshot) -> CertificateRecord:
        """The CA certificate that issues. Raises UserError."""
        return authority_of(snapshot, local_state_named(snapshot, self.issuer), self.authority, datetime.now(UTC))


class CreateForClient(PkiOperation[CreateForClientParameters]):
    """The No-CSR method, on the server's side."""

    name: ClassVar[str] = "certificates.make-for-client"
    title: ClassVar[str] = "Create key and certificate for another State"
    description: ClassVar[str] = f"Writes key, certificate and chain to one PKCS#12 file. {WARNING}"
    parameters: ClassVar[type[Parameters]] = CreateForClientParameters

    def needs(
        self, parameters: CreateForClientParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        state_named(snapshot, parameters.client)
        must_be_new_files(parameters.file)
        issuing = parameters.issuing_certificate(snapshot)
        return (
            *new_file_password(parameters.file, parameters.password()),
            *key_secrets(directory, snapshot, issuing, unlock=parameters.unlock()),
        )

    def work(
        self, parameters: CreateForClientParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        snapshot, file = store.snapshot(), parameters.file
        made = make_for_client(
            store,
            local_state_named(snapshot, parameters.issuer),
            state_named(snapshot, parameters.client),
            parameters.key_type,
            parameters.profile,
            chosen_password(file, prompt, parameters.password()),
            subject=parameters.subject,
            names=parameters.names,
            days=parameters.valid_days,
            authority=parameters.issuing_certificate(snapshot),
            prompt=prompt,
        )
        write_export(file, made.pkcs12, private=True)
        name = short_name(made.certificate.certificate)
        issued = with_fingerprint(f"The certificate of {name} was issued.", made.certificate)
        said = f"{file} contains it with the only copy of its key. Send the password by another way than the file."
        return Result((*issued.parts, said), issued.data, (WARNING,))


class ImportPkcs12Parameters(PasswordParameters, KeptKeyParameters, StateParameters):
    """A PKCS#12 that another State created."""

    file: HomePath = parameter("PKCS#12", "File with key, certificate and chain (.p12, .pfx)", positional=True)
    sender: str = parameter(
        "From", "State that created it; empty: not recorded", default="", option="--from", metavar="STATE"
    )


class ImportPkcs12(PkiOperation[ImportPkcs12Parameters]):
    """The No-CSR method, on the client's side."""

    name: ClassVar[str] = "certificates.import-pkcs12"
    title: ClassVar[str] = "Import a PKCS#12"
    description: ClassVar[str] = (
        "Imports key, certificate and chain from a PKCS#12 file; the key is encrypted again here. The file stays as it "
        "is: erase it."
    )
    parameters: ClassVar[type[Parameters]] = ImportPkcs12Parameters

    def needs(
        self, parameters: ImportPkcs12Parameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        parsing.read_file(parameters.file, "PKCS#12 file")
        return (file_password(parameters.file, parameters.password()), *secrets_of(parameters.kept_as()))

    def work(
        self, parameters: ImportPkcs12Parameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        snapshot = store.snapshot()
        record = import_pkcs12(
            store,
            state_named(snapshot, parameters.state),
            parsing.read_file(parameters.file, "PKCS#12 file"),
            file_password(parameters.file).resolve(prompt),
            sender=state_named(snapshot, parameters.sender) if parameters.sender else None,
            keep=parameters.kept_as(),
            prompt=prompt,
        )
        return with_fingerprint(f"{short_name(record.certificate)} was imported with its key.", record)
