"""Identities: names under which trials use a certificate with its key."""

from __future__ import annotations

from typing import ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import OperationContext, Result, TextTable
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, IdentityRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.fingerprints import short_fingerprint
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.parameter_fields import CertificateChoice, NoParameters
from labconsole_certificates.operations.pki_operation import PkiOperation, PkiReport
from labconsole_certificates.operations.record_lookup import certificate_named


def name_identity(store: PkiStore, name: str, certificate: CertificateRecord) -> IdentityRecord:
    """Name the certificate; a name in use is moved to it. Raises UserError: no key here, hidden, a CA, bad name."""
    if certificate.profile in AUTHORITIES:
        raise UserError(f"{short_name(certificate.certificate)} is a CA: trials take end certificates.")
    if certificate.removed is not None:
        raise UserError(f"{short_name(certificate.certificate)} is hidden: restore it before it gets a name.")
    with store.change() as change:
        return change.name_identity(name, certificate.id)


def forget_identity(store: PkiStore, name: str) -> None:
    """Free the name of an identity; its certificate and key stay. Raises UserError: there is no such identity."""
    with store.change() as change:
        change.forget_identity(name)


class ListIdentities(PkiReport[NoParameters]):
    """Lists the identities."""

    name: ClassVar[str] = "certificates.identities"
    title: ClassVar[str] = "Identities"
    description: ClassVar[str] = "Lists the names by which trials take certificates with their keys."
    parameters: ClassVar[type[Parameters]] = NoParameters

    def read(self, parameters: NoParameters, reader: PkiReader) -> Result:
        snapshot = reader.snapshot()
        found, rows = [], []
        for identity in snapshot.identities:
            record = snapshot.certificate_by_id[identity.certificate]
            state, certificate = snapshot.state_by_id[identity.state].name, short_name(record.certificate)
            rows.append((identity.name, state, certificate, short_fingerprint(record.sha256)))
            found.append(
                {"identity": identity.name, "state": state, "certificate": certificate, "sha256": record.sha256}
            )
        table = TextTable(("Identity", "State", "Certificate", "SHA-256"), tuple(rows))
        return Result((table,), {"identities": found})


class NameIdentityParameters(Parameters):
    """A name for a certificate."""

    identity: str = parameter(
        "Name",
        "Name by which trials take it, as in singapore-broker",
        min_length=1,
        positional=True,
        metavar="NAME",
        empty="As in: singapore-broker",
    )
    certificate: CertificateChoice


class NameIdentity(PkiOperation[NameIdentityParameters]):
    """Gives a certificate with its key a name for trials."""

    name: ClassVar[str] = "certificates.name"
    title: ClassVar[str] = "Name an identity"
    description: ClassVar[str] = (
        "Gives a certificate whose key is here the name by which sender, receiver and broker of an AMQP trial take "
        "certificate, chain, key and trust. A name in use moves to it."
    )
    parameters: ClassVar[type[Parameters]] = NameIdentityParameters

    def work(
        self, parameters: NameIdentityParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        record = certificate_named(store.snapshot(), parameters.certificate)
        identity = name_identity(store, parameters.identity, record)
        certificate = short_name(record.certificate)
        data = {"identity": identity.name, "certificate": certificate, "sha256": record.sha256}
        return Result((f"Trials take {certificate} by the name {identity.name}.",), data)


class ForgetIdentityParameters(Parameters):
    """A name that is no longer needed."""

    identity: str = parameter("Name", "Name of the identity", positional=True, metavar="NAME")


class ForgetIdentity(PkiOperation[ForgetIdentityParameters]):
    """Frees the name of an identity."""

    name: ClassVar[str] = "certificates.forget"
    title: ClassVar[str] = "Free an identity's name"
    description: ClassVar[str] = "Frees the name of an identity. Its certificate and key stay."
    parameters: ClassVar[type[Parameters]] = ForgetIdentityParameters

    def work(
        self, parameters: ForgetIdentityParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        forget_identity(store, parameters.identity)
        text = f"The name {parameters.identity} is free; its certificate and key stay."
        return Result((text,), {"identity": parameters.identity})
