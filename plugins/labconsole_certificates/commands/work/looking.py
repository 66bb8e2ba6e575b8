"""`labconsole pki list | show | compare | check | export | audit`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.errors import UserError
from labconsole.security.identities import validity_problem
from labconsole.security.pki.domains import path_refusal
from labconsole.security.pki.known_crls import crls_under
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, Origin, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.cms import SignedMessage
from labconsole.security.x509.describing.comparing import compare
from labconsole.security.x509.describing.description import Row
from labconsole.security.x509.describing.things import Describable, describe
from labconsole.security.x509.names import brief_name, short_name
from labconsole.security.x509.status import all_statuses
from labconsole.security.x509.validation.judgement import Opinion
from labconsole.security.x509.validation.validating import validate
from labconsole_certificates.commands.work import shared
from labconsole_certificates.commands.work.things import recorded, things_meant
from labconsole_certificates.operations.exporting import (
    Form,
    exported,
    handed_over,
    key_that_may_leave,
    must_be_new_file,
    note_export,
    pkcs12_bytes,
    write_export,
)
from labconsole_certificates.operations.references import certificate_named, state_named
from labconsole_certificates.revocation.crl_renewal import due_crls
from labconsole_certificates.trust.bundle_format import decode

_PKCS12 = "p12"


def show_all(arguments: argparse.Namespace) -> int:
    """List the certificates with their status. Raises UserError."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    statuses = all_statuses(snapshot, datetime.now(UTC))
    rows = shared.table("SHA-256", "State", "Subject", "Issuer", "Profile", "Until", "Key", "Status")
    for record in snapshot.certificates:
        cells = (
            shared.digits(record.sha256),
            "" if record.state is None else snapshot.state_by_id[record.state].name,
            brief_name(record.certificate.subject),
            short_name(record.certificate.issuer),
            "link" if record.origin is Origin.LINK else record.profile or "",
            f"{record.certificate.not_valid_after_utc:%Y-%m-%d}",
            "" if record.key is None else "here",
            "removed" if record.removed else statuses[record.id].kind,
        )
        wanted = arguments.filter.casefold() in " ".join(cells).casefold()
        if wanted and (arguments.all or record.removed is None):
            rows.add_row(*cells)
    shared.show(rows)
    for crl in due_crls(snapshot, datetime.now(UTC)):
        shared.tell(crl.sentence())
    return FINISHED


def show(arguments: argparse.Namespace) -> int:
    """Show everything of a thing. Raises UserError."""
    for thing in things_meant(arguments.what, arguments):
        _tell_of_bundle(thing)
        description = describe(thing)
        shared.tell(description.title)
        for section in description.sections:
            shared.tell(f"\n  {section.title}")
            for row in section.rows:
                shared.tell(f"    {row.label}: {_lines(row)}")
    return FINISHED


def compared(arguments: argparse.Namespace) -> int:
    """Show in what two things differ; exit code 1 if they do. Raises UserError."""
    comparison = compare(_one(arguments.left, arguments), _one(arguments.right, arguments))
    rows = shared.table("", comparison.left, comparison.right)
    different = [row for row in comparison.rows if not row.same]
    for row in different:
        rows.add_row(f"{row.section}: {row.label}", *(side.value if side else "-" for side in (row.left, row.right)))
    if not different:
        shared.tell(f"{comparison.left} and {comparison.right} do not differ.")
        return FINISHED
    shared.show(rows)
    return FAILED


def check(arguments: argparse.Namespace) -> int:
    """Ask whether a State accepts a certificate; exit code 1 if not. Raises UserError."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    state = state_named(snapshot, arguments.state)
    record = certificate_named(snapshot, arguments.certificate)
    name = short_name(record.certificate)
    if record in snapshot.trusted_by(state.id, TrustKind.PIN):
        problem = validity_problem(record.certificate, datetime.now(UTC))
        problem = problem or path_refusal(snapshot, (record.certificate,)).rstrip(".")
        if problem:
            shared.tell(f"{state.name} refuses {name}: it is pinned, but {problem}.")
            return FAILED
        shared.tell(f"{state.name} accepts {name}: it is pinned.")
        return FINISHED
    roots = snapshot.trusted_by(state.id, TrustKind.ROOT)
    judgement = validate(
        record.certificate,
        [other.certificate for other in snapshot.certificates if other.removed is None],
        [root.certificate for root in roots],
        crls_under(snapshot, roots),
        at=datetime.now(UTC),
    )
    refused = path_refusal(snapshot, judgement.path) if judgement.accepted else ""
    accepted = judgement.accepted and not refused
    shared.tell(f"{state.name} {'accepts' if accepted else 'refuses'} {name}: {refused or judgement.why}")
    shared.tell(f"  cryptography: {_opinion(judgement.cryptography)}")
    shared.tell(f"  OpenSSL, with CRLs: {_opinion(judgement.openssl)}")
    return FINISHED if accepted else FAILED


def export(arguments: argparse.Namespace) -> int:
    """Write a certificate, CSR or CRL to a file. Raises UserError."""
    must_be_new_file(arguments.file)
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        thing = recorded(snapshot, arguments.what)
        sender, receiver = shared.sender_and_receiver(snapshot, arguments)
        if arguments.form == _PKCS12:
            if not isinstance(thing, CertificateRecord):
                raise UserError("A PKCS#12 holds a certificate with its key: give the fingerprint of a certificate.")
            key_that_may_leave(snapshot, thing)
            secret = shared.new_password(arguments, f"the new file {arguments.file}")
            write_export(arguments.file, pkcs12_bytes(store, thing, secret, shared.prompt(arguments)), private=True)
        else:
            write_export(arguments.file, exported(snapshot, thing, Form(arguments.form)))
            note_export(store, thing)
        if sender is not None and receiver is not None:
            handed_over(store, thing, sender, receiver)
    shared.tell(f"{arguments.file} is written.")
    return FINISHED


def audit(arguments: argparse.Namespace) -> int:
    """List who did what, and when, the newest first. Raises UserError."""
    with PkiReader.open() as reader:
        entries = reader.audit(arguments.limit)
    rows = shared.table("When (UTC)", "Who", "What", "On", "SHA-256", "Detail")
    for entry in entries:
        when = f"{entry.at:%Y-%m-%d %H:%M:%S}"
        rows.add_row(when, entry.who, entry.what, entry.subject, shared.digits(entry.fingerprint), entry.detail)
    shared.show(rows)
    return FINISHED


def _tell_of_bundle(thing: Describable) -> None:
    """Say which trust bundle a signed message is, if it is one."""
    if not isinstance(thing, SignedMessage):
        return
    try:
        content = decode(thing.content)
    except BadInput:
        return
    until = f"{content.next_update:%Y-%m-%d %H:%M} UTC"
    shared.tell(f"Trust bundle {content.sequence} of {content.state}, {content.domain or 'no domain'}; next by {until}")
    shared.tell(f"It says that {content.state} trusts: {', '.join(map(shared.digits, content.trusted)) or 'nobody'}\n")


def _one(what: str, arguments: argparse.Namespace) -> Describable:
    found = things_meant(what, arguments)
    if len(found) > 1:
        raise UserError(f"{what} holds {len(found)} things: compare one of each side.")
    return found[0]


def _lines(row: Row) -> str:
    text = row.value.replace("\n", "\n      ")
    return f"{text}   (!)" if row.warning else text


def _opinion(opinion: Opinion) -> str:
    return f"{opinion.answer}, {opinion.why}" if opinion.why else str(opinion.answer)
