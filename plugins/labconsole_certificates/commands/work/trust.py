"""`labconsole pki take | trust | pin | withdraw | bundle | take-bundle | matrix | exchange | prove`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime

from labconsole.cli.asking import enter_openly, has_terminal
from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.errors import UserError
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, State, TrustRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509 import gate
from labconsole.security.x509.fingerprints import groups
from labconsole.security.x509.names import short_name
from labconsole_certificates.commands.work.shared import (
    confirmed,
    fingerprint_told,
    optional_state,
    prompt,
    sender_and_receiver,
    show,
    table,
    tell,
)
from labconsole_certificates.exchange.progress import exchange_of
from labconsole_certificates.exchange.proving import prove, told
from labconsole_certificates.operations import trusting
from labconsole_certificates.operations.exporting import must_be_new_file, write_export
from labconsole_certificates.operations.importing import take_in_certificates
from labconsole_certificates.operations.references import certificate_named, local_state_named, state_named
from labconsole_certificates.operations.revocation import take_in_crl
from labconsole_certificates.trust.looking import domain_question, look_into, must_be_confirmed
from labconsole_certificates.trust.making import expiring_crls, make_bundle
from labconsole_certificates.trust.matrix import CellStatus, matrix
from labconsole_certificates.trust.taking_in import take_in as take_in_bundle


def take_in(arguments: argparse.Namespace) -> int:
    """Take in certificates or a CRL of another State. Raises UserError."""
    data = gate.read_file(arguments.file)
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        sender, receiver = sender_and_receiver(snapshot, arguments)
        if gate.kind_of(data) is gate.ContentKind.CRL:
            crl = take_in_crl(store, data, sender, receiver)
            until = f"{crl.next_update:%Y-%m-%d %H:%M} UTC"
            tell(f"Taken in: CRL {crl.number}, {len(crl.crl)} revoked, holds until {until}")
            return FINISHED
        state = optional_state(snapshot, arguments.state or arguments.sender)
        for record in take_in_certificates(store, data, state, sender, receiver):
            fingerprint_told(record, "Taken in:")
    return FINISHED


def trust(arguments: argparse.Namespace) -> int:
    """Let a State trust a root. Raises UserError."""
    return _trust(arguments, trusting.trust_root)


def pinned(arguments: argparse.Namespace) -> int:
    """Let a State trust one end certificate. Raises UserError."""
    return _trust(arguments, trusting.pin)


def withdrawn(arguments: argparse.Namespace) -> int:
    """End a State's trust. Raises UserError."""
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        state = local_state_named(snapshot, arguments.state)
        record = certificate_named(snapshot, arguments.certificate)
        rows = [one for one in snapshot.trust if (one.state, one.certificate) == (state.id, record.id)]
        held = next((one for one in rows if one.withdrawn is None), None)
        if held is None:
            raise UserError(f"{state.name} does not trust {short_name(record.certificate)}: there is nothing to end.")
        trusting.withdraw(store, held)
    tell(f"{state.name} trusts {short_name(record.certificate)} no more.")
    return FINISHED


def bundle(arguments: argparse.Namespace) -> int:
    """Write a State's trust bundle. Raises UserError."""
    must_be_new_file(arguments.file)
    with PkiStore.open() as store:
        data = make_bundle(store, arguments.state, days=arguments.days, prompt=prompt(arguments))
    write_export(arguments.file, data)
    look = look_into(data)
    tell(f"{arguments.file} is trust bundle {look.content.sequence} of {arguments.state}.")
    if warning := expiring_crls(look.content):
        tell(warning)
    return FINISHED


def take_bundle(arguments: argparse.Namespace) -> int:
    """Take in another State's trust bundle. Raises UserError."""
    data = gate.read_file(arguments.file, "trust bundle")
    with PkiStore.open() as store:
        typed, look, snapshot = arguments.confirmed, look_into(data), store.snapshot()
        first, domain = must_be_confirmed(snapshot, arguments.state, look), arguments.confirmed_domain
        question = domain_question(snapshot, look, first=first)
        if question and domain is None and confirmed(question):
            domain = look.content.domain
        if first and not typed:
            claimed = f"which claims the domain {look.content.domain}" if look.content.domain else "with any names"
            typed = _typed(f"the signer of the bundle of {look.content.state}, {claimed}")
        taken = take_in_bundle(store, arguments.state, data, typed, domain)
    tell(taken.sentence())
    return FINISHED


def show_matrix(arguments: argparse.Namespace) -> int:
    """Show who trusts whom. Raises UserError."""
    with PkiReader.open() as reader:
        found = matrix(reader.snapshot(), datetime.now(UTC))
    rows = table("trusts", *(state.name for state in found.states))
    causes = []
    for truster in found.states:
        cells = [found.cells[truster.id, trusted.id] for trusted in found.states]
        rows.add_row(truster.name, *(cell.status for cell in cells))
        causes += [cell.cause for cell in cells if cell.status not in (CellStatus.OWN, CellStatus.TRUSTED)]
    show(rows)
    for cause in causes:
        tell(cause)
    return FINISHED


def exchange(arguments: argparse.Namespace) -> int:
    """Show how far two States are; exit code 1 while something is missing. Raises UserError."""
    with PkiReader.open() as reader:
        found = exchange_of(reader.snapshot(), arguments.a, arguments.b)
    for direction in (found.there, found.back):
        tell(f"[{direction.client.name}] -> tls-connect -> [{direction.server.name}]")
        for step in direction.steps:
            tell(f"  {'done   ' if step.done else 'missing'}  {step.title}")
        if direction.next is not None:
            tell(f"  Next: {direction.next.missing}")
    return FINISHED if found.there.next is None and found.back.next is None else FAILED


def proven(arguments: argparse.Namespace) -> int:
    """Connect two States both ways; exit code 1 if a handshake fails. Raises UserError."""
    with PkiStore.open() as store:
        proof = prove(store, arguments.a, arguments.b, prompt(arguments))
    tell(told(arguments.a, arguments.b, proof.there))
    tell(told(arguments.b, arguments.a, proof.back))
    return FINISHED if proof.ok else FAILED


def _trust(
    arguments: argparse.Namespace, begin: Callable[[PkiStore, State, CertificateRecord, str], TrustRecord]
) -> int:
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        state = state_named(snapshot, arguments.state)
        record = certificate_named(snapshot, arguments.certificate)
        name = short_name(record.certificate)
        owner = None if record.state is None else snapshot.state_by_id[record.state]
        if owner is not None and owner.local and not arguments.confirmed and has_terminal():
            question = f"{owner.name} is of this console. The fingerprint of {name} is {groups(record.sha256)}."
            if not confirmed(question):
                raise UserError(f"{state.name} does not trust {name}: it was not confirmed.")
            trusting.confirm_here(store, state, record)
        else:
            begin(store, state, record, arguments.confirmed or _typed(name))
    tell(f"{state.name} trusts {name}.")
    return FINISHED


def _typed(what: str) -> str:
    """The fingerprint that somebody types. Raises UserError: nobody is there to type it."""
    if not has_terminal():
        raise UserError(
            f"Whether {what} is genuine, its fingerprint tells: give the one that its owner told as --confirmed."
        )
    return enter_openly(f"Fingerprint (SHA-256) of {what}, as its owner told it: ")
