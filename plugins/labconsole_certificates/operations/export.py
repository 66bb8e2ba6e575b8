"""Exports to files: certificates, chains, CSRs, CRLs, PKCS#12. Private keys only in PKCS#12."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal

from labconsole.errors import UserError
from labconsole.model.operation import HomePath, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.output.export_file import must_be_new_files
from labconsole.security.pki import keys
from labconsole.security.pki.records import (
    CertificateRecord,
    CrlRecord,
    Item,
    KeyRecord,
    RequestRecord,
    State,
    TokenKey,
)
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.private_files import write_private
from labconsole.security.secrets import Prompt, Secret, SecretRequest
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.names import name_as_text, short_name
from labconsole_certificates.operations.export_formats import as_der, as_pem, chain_as_pem, write_pkcs12
from labconsole_certificates.operations.parameter_fields import (
    CertificateChoice,
    HandoverParameters,
    PasswordParameters,
    SavedTo,
    UnlockParameters,
)
from labconsole_certificates.operations.pki_operation import (
    PkiOperation,
    chosen_password,
    key_secrets,
    new_file_password,
    with_fingerprint,
)
from labconsole_certificates.operations.record_lookup import certificate_named, key_of, request_numbered

Exportable = CertificateRecord | RequestRecord | CrlRecord


class Form(StrEnum):
    """The format of an exported file."""

    PEM = "pem"
    DER = "der"
    CHAIN = "chain"
    """PEM: the certificate, its intermediates, and the root; of CSRs and CRLs the same as PEM."""


def recorded(snapshot: Snapshot, what: str) -> Exportable:
    """The record that `what` names: `request:NUMBER`, `crl:NUMBER`, or as `certificate_named`. Raises UserError."""
    kind, colon, number = what.partition(":")
    if colon and number.isdecimal() and kind == "request":
        return request_numbered(snapshot, int(number))
    if colon and number.isdecimal() and kind == "crl":
        for crl in snapshot.crls:
            if crl.id == int(number):
                return crl
        raise UserError(f"There is no CRL {number}: `labconsole pki crls` lists them.")
    return certificate_named(snapshot, what)


def reference_to(thing: Exportable) -> str:
    """The text that names this record: what `recorded` finds it by."""
    match thing:
        case CertificateRecord():
            return thing.sha256
        case RequestRecord():
            return f"request:{thing.id}"
        case CrlRecord():
            return f"crl:{thing.id}"


def exported(snapshot: Snapshot, thing: Exportable, form: Form = Form.PEM) -> bytes:
    """The exported certificate, CSR or CRL; a chain as far as its issuers are known here."""
    if form is Form.CHAIN and isinstance(thing, CertificateRecord):
        return chain_as_pem([one.certificate for one in (thing, *snapshot.chain_of(thing))])
    write = as_der if form is Form.DER else as_pem
    match thing:
        case CertificateRecord():
            return write(thing.certificate)
        case RequestRecord():
            return write(thing.csr)
        case CrlRecord():
            return write(thing.crl)


def pkcs12_bytes(
    store: PkiStore, certificate: CertificateRecord, password: Secret, prompt: Prompt | None = None
) -> bytes:
    """Certificate, chain and private key encrypted with `password`; recorded in the audit list.

    Raises UserError: the key is not here, is in a token, or is of a type that PKCS#12 files cannot hold.
    """
    snapshot = store.snapshot()
    key = exportable_key(snapshot, certificate)
    name = short_name(certificate.certificate)
    chain = [one.certificate for one in snapshot.chain_of(certificate)]
    with keys.opened_key(store.directory, key, prompt) as private:
        data = write_pkcs12(private, certificate.certificate, chain, name, password)
    with store.change() as change:
        change.note("exported private key in PKCS#12", name, certificate.sha256)
    return data


def exportable_key(snapshot: Snapshot, certificate: CertificateRecord) -> KeyRecord:
    """The private key of the certificate, in a file. Raises UserError: it is not here, or is in a token."""
    key = key_of(snapshot, certificate)
    if isinstance(key.place, TokenKey):
        name = short_name(certificate.certificate)
        raise UserError(f"The key of {name} is in the token {key.place.token} and never leaves it.")
    return key


def note_handover(store: PkiStore, thing: Exportable, sender: State, receiver: State) -> None:
    """Record that `sender` gave the object to `receiver` (exchange assistant, audit list)."""
    with store.change() as change:
        change.hand_over(sender.id, receiver.id, _item(thing), thing.sha256)


def note_export(
    store: PkiStore, *things: Exportable, sender: State | None = None, receiver: State | None = None
) -> None:
    """Record in the audit list that these were exported; for the exchange, too, if both parties are known."""
    with store.change() as change:
        for thing in things:
            change.note(*_exported(thing), thing.sha256)
            if sender is not None and receiver is not None:
                change.hand_over(sender.id, receiver.id, _item(thing), thing.sha256)


def _item(thing: Exportable) -> Item:
    match thing:
        case CertificateRecord():
            return Item.ROOT if thing.profile in AUTHORITIES else Item.CERTIFICATE
        case RequestRecord():
            return Item.CSR
        case CrlRecord():
            return Item.CRL


def _exported(thing: Exportable) -> tuple[str, str]:
    """The audit list's word for the object, and its name."""
    match thing:
        case CertificateRecord():
            return "exported certificate", short_name(thing.certificate)
        case RequestRecord():
            return "exported request", short_name(thing.csr)
        case CrlRecord():
            return f"exported CRL {thing.number}", name_as_text(thing.crl.issuer)


def write_export(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a new file; `private`: mode 0600. Raises UserError: it exists already, or cannot be written."""
    must_be_new_files(path)
    try:
        if private:
            write_private(path, data)
            return
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): choose another place.") from error


class ExportParameters(HandoverParameters, PasswordParameters, UnlockParameters):
    """The object and the file to export to, with sender and receiver."""

    what: str = parameter(
        "What",
        "A certificate (its SHA-256, 8 digits of it, or PROFILE:STATE), request:NUMBER or crl:NUMBER",
        positional=True,
    )
    file: HomePath = parameter("File", "The new file", positional=True)
    form: Literal["pem", "der", "chain", "p12"] = parameter(
        "Form",
        "Of the file",
        default="pem",
        labels={
            "pem": "PEM: text",
            "der": "DER: binary",
            "chain": "PEM, with the issuers",
            "p12": "PKCS#12, with the private key",
        },
    )

    def complete(self, snapshot: Snapshot) -> CertificateRecord | None:
        """The certificate that is exported with its key, if it is. Raises UserError: its key cannot be exported."""
        if self.form != "p12":
            return None
        thing = recorded(snapshot, self.what)
        if not isinstance(thing, CertificateRecord):
            raise UserError("A PKCS#12 holds a certificate with its key: give the fingerprint of a certificate.")
        exportable_key(snapshot, thing)
        return thing


class Export(PkiOperation[ExportParameters]):
    """Writes a certificate, CSR or CRL to a file."""

    name: ClassVar[str] = "certificates.export"
    title: ClassVar[str] = "Export"
    description: ClassVar[str] = (
        "Writes a certificate, CSR or CRL to a new file. A private key is written in a PKCS#12 file alone, under a "
        "password."
    )
    parameters: ClassVar[type[Parameters]] = ExportParameters

    def needs(self, parameters: ExportParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        must_be_new_files(parameters.file)
        parameters.parties(snapshot)
        certificate = parameters.complete(snapshot)
        if certificate is None:
            return ()
        return (
            *new_file_password(parameters.file, parameters.password()),
            *key_secrets(directory, snapshot, certificate, unlock=parameters.unlock()),
        )

    def work(self, parameters: ExportParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        snapshot, file = store.snapshot(), parameters.file
        thing, (sender, receiver) = recorded(snapshot, parameters.what), parameters.parties(snapshot)
        complete = parameters.complete(snapshot)
        if complete is not None:
            password = chosen_password(file, prompt, parameters.password())
            write_export(file, pkcs12_bytes(store, complete, password, prompt), private=True)
            if sender is not None and receiver is not None:
                note_handover(store, thing, sender, receiver)
        else:
            write_export(file, exported(snapshot, thing, Form(parameters.form)))
            note_export(store, thing, sender=sender, receiver=receiver)
        return Result((f"{file} was written.",), {"file": str(file), "form": parameters.form, "sha256": thing.sha256})


class NoteExportParameters(HandoverParameters):
    """Objects that were exported by other means, with sender and receiver."""

    what: tuple[str, ...] = parameter(
        "What",
        "Certificates (each: its SHA-256, 8 digits of it, or PROFILE:STATE), request:NUMBER or crl:NUMBER",
        min_length=1,
        positional=True,
    )


class NoteExport(PkiOperation[NoteExportParameters]):
    """Notes that certificates, CSRs or CRLs were exported; what the window copies, saves and drags is noted by it."""

    name: ClassVar[str] = "certificates.note-export"
    title: ClassVar[str] = "Note an export"
    description: ClassVar[str] = (
        "Notes in the audit list that certificates, CSRs or CRLs were sent by other means, as text or by dragging. "
        "With sender and receiver the exchange between both records it, too."
    )
    parameters: ClassVar[type[Parameters]] = NoteExportParameters

    def work(
        self, parameters: NoteExportParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        snapshot = store.snapshot()
        things = [recorded(snapshot, what) for what in parameters.what]
        sender, receiver = parameters.parties(snapshot)
        note_export(store, *things, sender=sender, receiver=receiver)
        noted = [(*_exported(thing), thing.sha256) for thing in things]
        return Result(
            tuple(f"Noted: {what}, {name}" for what, name, _ in noted),
            {"exported": [{"what": what, "name": name, "sha256": sha256} for what, name, sha256 in noted]},
        )


class ExportPkcs12Parameters(Parameters):
    """A certificate to export with its private key."""

    certificate: CertificateChoice
    file: SavedTo


class ExportPkcs12(PkiOperation[ExportPkcs12Parameters]):
    """Exports a certificate with its private key."""

    name: ClassVar[str] = "certificates.export-pkcs12"
    title: ClassVar[str] = "Export with private key"
    description: ClassVar[str] = (
        "Writes certificate, chain and private key to one PKCS#12 file under a password. With file and password anyone "
        "can act in its name. Keys in a token never leave it."
    )
    parameters: ClassVar[type[Parameters]] = ExportPkcs12Parameters

    def needs(
        self, parameters: ExportPkcs12Parameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        must_be_new_files(parameters.file)
        certificate = certificate_named(snapshot, parameters.certificate)
        exportable_key(snapshot, certificate)
        return (*new_file_password(parameters.file), *key_secrets(directory, snapshot, certificate))

    def work(
        self, parameters: ExportPkcs12Parameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        certificate, file = certificate_named(store.snapshot(), parameters.certificate), parameters.file
        data = pkcs12_bytes(store, certificate, chosen_password(file, prompt), prompt)
        write_export(file, data, private=True)
        name = short_name(certificate.certificate)
        return with_fingerprint(f"{file} contains {name} with its private key.", certificate)
