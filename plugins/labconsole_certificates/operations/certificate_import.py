"""Imports certificates of other States from a file: known from then on, but not trusted by that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from cryptography import x509

from labconsole.errors import BadInput
from labconsole.model.operation import HomePath, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.change import Change
from labconsole.security.pki.records import CertificateRecord, Item, Origin, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import AUTHORITIES, CertificateProfile, profile_asked_for
from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.names import short_name
from labconsole.security.x509.signatures import issued_by
from labconsole_certificates.operations.parameter_fields import HandoverParameters
from labconsole_certificates.operations.pki_operation import PkiOperation
from labconsole_certificates.operations.record_lookup import state_named
from labconsole_certificates.operations.states import found_or_added
from labconsole_certificates.revocation.crl_operations import import_crl


def profile_of(certificate: x509.Certificate) -> CertificateProfile | None:
    """The profile of a certificate, by its extensions; None if they do not show one."""
    if is_ca(certificate):
        return CertificateProfile.ROOT if issued_by(certificate, certificate) else CertificateProfile.INTERMEDIATE
    return profile_asked_for(certificate.extensions)


def add_chain(change: Change, chain: Iterable[x509.Certificate], state: int | None = None) -> list[CertificateRecord]:
    """Add certificates of others, the last first, so that issuers come before the certificates they issued."""
    return [
        change.add_certificate(certificate, state=state, profile=profile_of(certificate), origin=Origin.IMPORTED)
        for certificate in reversed(tuple(chain))
    ]


def import_certificates(
    store: PkiStore,
    data: bytes,
    state: State | str | None = None,
    sender: State | None = None,
    receiver: State | None = None,
) -> tuple[CertificateRecord, ...]:
    """Import certificates (PEM, DER, several) of `state`, in the file's order.

    A `state` that is given by its name is added, as one of another console, if it is not known.
    `sender` and `receiver`: recorded for the exchange.
    Raises BadInput: not certificates, or the first is known as another State's; nothing changed.
    """
    certificates = parsing.read_certificates(data)
    with store.change() as change:
        if isinstance(state, str):
            state = found_or_added(change, state)
        records = add_chain(change, certificates, None if state is None else state.id)[::-1]
        if state is not None and records[0].state != state.id:
            owner = next(one.name for one in change.states() if one.id == records[0].state)
            raise BadInput(
                f"{short_name(certificates[0])} is known as a certificate of {owner}, not of {state.name}: ask both "
                "whose it is."
            )
        if sender is not None and receiver is not None:
            for record in records:
                item = Item.ROOT if record.profile in AUTHORITIES else Item.CERTIFICATE
                change.hand_over(sender.id, receiver.id, item, record.sha256)
    return tuple(records)


class ImportParameters(HandoverParameters):
    """A file from another State."""

    file: HomePath = parameter("File", "Certificates (PEM, DER), or a CRL", positional=True)
    state: str = parameter(
        "State", "State that the certificates belong to; empty: the one that sent them", default="", metavar="STATE"
    )
    add_state: bool = parameter(
        "Add the State", "As one of another console, if none is called as the certificates' State", default=False
    )


class Import(PkiOperation[ImportParameters]):
    """Imports certificates or a CRL."""

    name: ClassVar[str] = "certificates.take"
    title: ClassVar[str] = "Import certificates or a CRL"
    description: ClassVar[str] = (
        "Imports certificates or a CRL of another State. Certificates are known from then on, and not trusted for that."
    )
    parameters: ClassVar[type[Parameters]] = ImportParameters

    def work(self, parameters: ImportParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        data = parsing.read_file(parameters.file)
        snapshot = store.snapshot()
        sender, receiver = parameters.parties(snapshot)
        if parsing.kind_of(data) is parsing.ContentKind.CRL:
            crl = import_crl(store, data, sender, receiver)
            text = f"Imported: CRL {crl.number}, {len(crl.crl)} revoked, valid until "
            found = {"crl": crl.number, "revoked": len(crl.crl), "next_update": crl.next_update.isoformat()}
            return Result((f"{text}{crl.next_update:%Y-%m-%d %H:%M} UTC",), found)
        owner = parameters.state or parameters.sender
        known = None if parameters.add_state or not owner else state_named(snapshot, owner)
        records = import_certificates(store, data, known or owner or None, sender, receiver)
        named = [(short_name(record.certificate), record.sha256, record.id) for record in records]
        return Result(
            tuple(f"Imported: {name}\nSHA-256 {grouped(sha256)}" for name, sha256, _ in named),
            {"certificates": [{"certificate": name, "sha256": sha256, "id": id} for name, sha256, id in named]},
        )
