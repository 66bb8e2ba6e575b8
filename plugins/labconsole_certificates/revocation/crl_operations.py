"""Revocation: revokes certificates, publishes CRLs, and imports those of peers (RFC 5280, 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from cryptography import x509

from labconsole.errors import BadInput, UserError
from labconsole.model.operation import Confirmation, OperationContext, Result, TextTable
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.output.export_file import must_be_new_files
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, CrlRecord, Item, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.extensions import crl_number, crl_scope
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.names import name_as_text, short_name
from labconsole.security.x509.signatures import crl_signed_by, issued_by
from labconsole.security.x509.validity import Validity
from labconsole_certificates.describing.oid_names import REASONS
from labconsole_certificates.operations.export import Form, exported, write_export
from labconsole_certificates.operations.issuing import opened_issuer
from labconsole_certificates.operations.parameter_fields import (
    CertificateChoice,
    Days,
    Encoded,
    NoParameters,
    UnlockParameters,
    WrittenTo,
)
from labconsole_certificates.operations.pki_operation import PkiOperation, PkiReport, key_secrets
from labconsole_certificates.operations.record_lookup import certificate_named

CRL_DAYS = 30

_MOST_ATTEMPTS = 100
"""Attempts to publish with the next number while other processes publish; each takes the time of one signature."""


def revoke(
    store: PkiStore,
    certificate: CertificateRecord,
    reason: x509.ReasonFlags = x509.ReasonFlags.unspecified,
) -> CertificateRecord:
    """Revoke a certificate that a CA of this console issued; peers are informed by the next CRL.

    Raises UserError: revoked already, not issued here, or self-signed; a reason that the console's CRLs cannot contain.
    """
    if reason is x509.ReasonFlags.remove_from_crl:
        raise UserError("The reason removeFromCRL is for delta CRLs only: choose why the certificate is revoked.")
    _must_be_issued_here(store.snapshot(), certificate)
    with store.change() as change:
        return change.revoke(certificate.id, reason)


def _must_be_issued_here(snapshot: Snapshot, certificate: CertificateRecord) -> None:
    issuers = snapshot.issuers_of(certificate)
    name = short_name(certificate.certificate)
    if certificate in issuers:
        raise UserError(f"{name} signed itself, so no CRL can name it: let those who trust it withdraw their trust.")
    if not any(issuer.key is not None for issuer in issuers):
        raise UserError(f"{name} was not issued by a CA of this console: ask its issuer to revoke it.")


def publish_crl(
    store: PkiStore, authority: CertificateRecord, *, days: int = CRL_DAYS, prompt: Prompt | None = None
) -> CrlRecord:
    """The new CRL of all certificates that `authority` issued and revoked; its number is one more than the last.

    Raises UserError: no key here, or the CA is expired or revoked.
    """
    Validity.for_days(days)  # refused before a prompt for a passphrase
    with opened_issuer(store.directory, store.snapshot(), authority, prompt) as issuer:
        return signed_crl(store, authority, issuer, days)


def signed_crl(store: PkiStore, authority: CertificateRecord, issuer: Issuer, days: int) -> CrlRecord:
    """The next CRL of `authority`, whose opened key `issuer` has; tries again if another process uses its number.

    Raises UserError: another process used the number each time, or the token refuses.
    """
    for _ in range(_MOST_ATTEMPTS):
        snapshot = store.snapshot()
        number = _last_published(snapshot, authority) + 1
        crl = issue_crl(issuer, _revoked_by(snapshot, authority), number, Validity.for_days(days))
        with store.change() as change:
            if _last_published(change.snapshot(), authority) < number:
                return change.add_crl(crl, authority.id)
    name = short_name(authority.certificate)
    raise UserError(f"Other processes publish CRLs of {name} all the time: close them, then publish another one.")


def import_crl(store: PkiStore, data: bytes, sender: State | None = None, receiver: State | None = None) -> CrlRecord:
    """Import a CRL of a known CA; it changes the status of the certificates that it lists.

    Raises BadInput: not a CRL, of an unknown CA, not signed by it, or older than the known one; nothing changed.
    """
    crl = parsing.read_crl(data)
    with store.change() as change:
        snapshot = change.snapshot()
        issuer = _issuer_of(snapshot, crl)
        _must_be_newest(snapshot, issuer, crl)
        record = change.add_crl(crl, issuer.id)
        if sender is not None and receiver is not None:
            change.hand_over(sender.id, receiver.id, Item.CRL, record.sha256)
    return record


def _revoked_by(snapshot: Snapshot, authority: CertificateRecord) -> list[Revoked]:
    """The revoked certificates of the CA, whichever of its keys signed them; removed certificates too.

    After a change of the CA's key the new key's CRL covers the certificates of the old one as well, since a CRL belongs
    to a name (RFC 5280, 5).
    """
    same = [record.certificate for record in _of_same_name(snapshot, authority)]
    return [
        Revoked(record.certificate.serial_number, record.revoked.at, record.revoked.reason)
        for record in snapshot.certificates
        if record.revoked is not None and any(issued_by(record.certificate, ca) for ca in same)
    ]


def _of_same_name(snapshot: Snapshot, authority: CertificateRecord) -> list[CertificateRecord]:
    """The State's certificates for this CA's name: of all its keys, and removed ones too."""
    return [
        record
        for record in snapshot.certificates
        if record.state == authority.state and record.certificate.subject == authority.certificate.subject
    ]


def _last_published(snapshot: Snapshot, authority: CertificateRecord) -> int:
    """The highest number of the CA's CRLs: numbering continues when its key changes (RFC 5280, 5.2.3)."""
    numbers = {record.id for record in _of_same_name(snapshot, authority)}
    return max((crl.number for crl in snapshot.crls if crl.issuer in numbers), default=0)


def _must_be_newest(snapshot: Snapshot, authority: CertificateRecord, crl: x509.CertificateRevocationList) -> None:
    """Raises BadInput: a newer one of the CA is known, of the same key (some consoles restart numbering when that
    changes) and scope."""
    same = {one.id for one in (authority, *snapshot.authorities_called(*authority.name_and_key))}
    known = [each for each in snapshot.crls if each.issuer in same and each.scope == crl_scope(crl)]
    newest = max(known, key=lambda each: each.age, default=None)
    number, made = crl_number(crl), crl.last_update_utc
    if newest is None or (number, made) >= newest.age:
        return
    if number < newest.number:
        what, here = f"has the number {number}", f"number {newest.number}"
    else:
        what, here = f"is of {made:%Y-%m-%d %H:%M} UTC", f"one of {newest.this_update:%Y-%m-%d %H:%M} UTC"
    name = short_name(authority.certificate)
    raise BadInput(f"This CRL of {name} {what}, and {here} is here already: ask for the newest.")


def _issuer_of(snapshot: Snapshot, crl: x509.CertificateRevocationList) -> CertificateRecord:
    named = [
        record
        for record in reversed(snapshot.certificates)
        if record.profile in AUTHORITIES and not record.removed and record.certificate.subject == crl.issuer
    ]
    if not named:
        raise BadInput(f"The CA {name_as_text(crl.issuer)} of this CRL is not known: import its certificate first.")
    for record in sorted(named, key=lambda one: one.is_link):  # the root before links of its name and key
        if crl_signed_by(crl, record.certificate):
            return record
    raise BadInput(
        f"This CRL names {name_as_text(crl.issuer)} as its CA, whose key did not sign it: ask the CA for its CRL."
    )


Reason = Literal[
    "unspecified",
    "keyCompromise",
    "cACompromise",
    "affiliationChanged",
    "superseded",
    "cessationOfOperation",
    "privilegeWithdrawn",
    "aACompromise",
]
"""RFC 5280, 5.3.1, without the reasons for delta CRLs, and for holds."""


class RevokeParameters(Parameters):
    """A certificate to revoke."""

    certificate: CertificateChoice
    reason: Reason = parameter(
        "Reason",
        "What the CRL says of it",
        default="unspecified",
        labels={reason: REASONS[x509.ReasonFlags(reason)] for reason in get_args(Reason)},
    )


class Revoke(PkiOperation[RevokeParameters]):
    """Revokes a certificate."""

    name: ClassVar[str] = "certificates.revoke"
    title: ClassVar[str] = "Revoke a certificate"
    description: ClassVar[str] = (
        "Revokes a certificate that a CA of this console issued. Peers learn of it by the CA's next CRL."
    )
    parameters: ClassVar[type[Parameters]] = RevokeParameters

    def confirmation(self, parameters: RevokeParameters) -> Confirmation | None:
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
        record = certificate_named(snapshot, parameters.certificate)
        _must_be_issued_here(snapshot, record)
        name = short_name(record.certificate)
        owner = "an unknown State" if record.state is None else snapshot.state_by_id[record.state].name
        loss = f"{name} of {owner} is no longer accepted as soon as peers have the next CRL. This cannot be undone."
        return Confirmation(name, loss, window_only=True)

    def work(self, parameters: RevokeParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        record = certificate_named(store.snapshot(), parameters.certificate)
        revoke(store, record, x509.ReasonFlags(parameters.reason))
        name = short_name(record.certificate)
        text = f"{name} is revoked. Peers learn of it by the next CRL: labconsole pki publish-crl"
        return Result((text,), {"certificate": name, "sha256": record.sha256, "reason": parameters.reason})


class PublishCrlParameters(UnlockParameters):
    """A CRL to sign."""

    authority: CertificateChoice
    valid_days: Days = CRL_DAYS
    out: WrittenTo = None
    form: Encoded = "der"


class PublishCrl(PkiOperation[PublishCrlParameters]):
    """Signs a new CRL."""

    name: ClassVar[str] = "certificates.publish-crl"
    title: ClassVar[str] = "Publish a CRL"
    description: ClassVar[str] = (
        "Signs a certificate revocation list (CRL) of all that the CA has issued and revoked. Peers learn of a "
        "revocation when they have imported it: send it to them, or put it into the next trust bundle."
    )
    parameters: ClassVar[type[Parameters]] = PublishCrlParameters

    def needs(self, parameters: PublishCrlParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        if parameters.out is not None:
            must_be_new_files(parameters.out)
        authority = certificate_named(snapshot, parameters.authority)
        return key_secrets(directory, snapshot, authority, unlock=parameters.unlock())

    def work(
        self, parameters: PublishCrlParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        authority = certificate_named(store.snapshot(), parameters.authority)
        crl = publish_crl(store, authority, days=parameters.valid_days, prompt=prompt)
        text = (
            f"CRL {crl.number} of {short_name(authority.certificate)} is signed: {len(crl.crl)} revoked. It is valid "
            f"until {crl.next_update:%Y-%m-%d %H:%M} UTC: publish the next one before."
        )
        if parameters.out is not None:
            write_export(parameters.out, exported(store.snapshot(), crl, Form(parameters.form)))
            text += f"\nIt was written to {parameters.out}."
        return Result((text,), _crl_data(store.snapshot(), crl))


class ListCrls(PkiReport[NoParameters]):
    """Lists the CRLs."""

    name: ClassVar[str] = "certificates.crls"
    title: ClassVar[str] = "CRLs"
    description: ClassVar[str] = "Lists the CRLs of this console's CAs, and those that were imported."
    parameters: ClassVar[type[Parameters]] = NoParameters

    def read(self, parameters: NoParameters, reader: PkiReader) -> Result:
        snapshot = reader.snapshot()
        rows = tuple(
            (
                str(crl.id),
                short_name(snapshot.certificate_by_id[crl.issuer].certificate),
                str(crl.number),
                str(len(crl.crl)),
                f"{crl.this_update:%Y-%m-%d %H:%M}",
                f"{crl.next_update:%Y-%m-%d %H:%M}",
            )
            for crl in snapshot.crls
        )
        table = TextTable(("CRL", "Of", "Number", "Revoked", "Issued", "Next"), rows)
        return Result((table,), {"crls": [_crl_data(snapshot, crl) for crl in snapshot.crls]})


def _crl_data(snapshot: Snapshot, crl: CrlRecord) -> dict[str, Any]:
    issuer = snapshot.certificate_by_id[crl.issuer]
    return {
        "crl": crl.id,
        "issuer": short_name(issuer.certificate),
        "issuer_sha256": issuer.sha256,
        "number": crl.number,
        "sha256": crl.sha256,
        "revoked": len(crl.crl),
        "this_update": crl.this_update.isoformat(),
        "next_update": crl.next_update.isoformat(),
    }
