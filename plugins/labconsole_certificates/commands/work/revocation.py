"""`labconsole pki revoke | publish-crl | crls | ocsp | remove | restore`."""

from __future__ import annotations

import argparse
import threading

from cryptography import x509
from cryptography.x509.ocsp import OCSPCertStatus

from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.cli.interrupts import interrupts
from labconsole.errors import UserError
from labconsole.security.pki.keys import stray_key_files
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.names import short_name
from labconsole_certificates.commands.work.shared import confirmed, prompt, show, table, tell, write_out
from labconsole_certificates.operations.exporting import Form, exported, must_be_new_file
from labconsole_certificates.operations.references import certificate_named
from labconsole_certificates.operations.removing import remove, restore
from labconsole_certificates.operations.revocation import publish_crl, revoke
from labconsole_certificates.revocation.ocsp_check import ask
from labconsole_certificates.revocation.ocsp_responder import serving

_LOOK_S = 0.25


def revoked(arguments: argparse.Namespace) -> int:
    """Revoke a certificate. Raises UserError."""
    with PkiStore.open() as store:
        record = certificate_named(store.snapshot(), arguments.certificate)
        revoke(store, record, x509.ReasonFlags(arguments.reason))
    tell(f"{short_name(record.certificate)} is revoked. Peers learn of it by the next CRL: labconsole pki publish-crl")
    return FINISHED


def publish(arguments: argparse.Namespace) -> int:
    """Sign a new CRL. Raises UserError."""
    if arguments.out is not None:
        must_be_new_file(arguments.out)
    with PkiStore.open() as store:
        authority = certificate_named(store.snapshot(), arguments.authority)
        crl = publish_crl(store, authority, days=arguments.days, prompt=prompt(arguments))
        data = exported(store.snapshot(), crl, Form(arguments.form))
    tell(f"CRL {crl.number} of {short_name(authority.certificate)}: {len(crl.crl)} revoked.")
    write_out(arguments.out, data, f"it; it holds until {crl.next_update:%Y-%m-%d %H:%M} UTC")
    return FINISHED


def show_all(arguments: argparse.Namespace) -> int:
    """List the CRLs. Raises UserError."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    rows = table("CRL", "Of", "Number", "Revoked", "Issued", "Next")
    for crl in snapshot.crls:
        rows.add_row(
            str(crl.id),
            short_name(snapshot.certificate_by_id[crl.issuer].certificate),
            str(crl.number),
            str(len(crl.crl)),
            f"{crl.this_update:%Y-%m-%d %H:%M}",
            f"{crl.next_update:%Y-%m-%d %H:%M}",
        )
    show(rows)
    return FINISHED


def serve(arguments: argparse.Namespace) -> int:
    """Answer OCSP requests until it is interrupted. Raises UserError."""
    wakeup = threading.Event()
    with PkiStore.open() as store, interrupts(wakeup) as interrupted:
        authority = certificate_named(store.snapshot(), arguments.authority)
        with serving(store, authority, port=arguments.port, prompt=prompt(arguments)) as running:
            tell(f"The OCSP responder of {short_name(authority.certificate)} answers at {running.url} until Ctrl+C.")
            while not interrupted:
                wakeup.wait(_LOOK_S)
        tell(f"Requests answered: {running.answered}")
    return FINISHED


def ask_responder(arguments: argparse.Namespace) -> int:
    """Ask an OCSP responder about a certificate; exit code 1 unless it says good. Raises UserError."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    record = certificate_named(snapshot, arguments.certificate)
    issuers = snapshot.issuers_of(record)
    if not issuers:
        raise UserError(f"The issuer of {short_name(record.certificate)} is not known: take in its certificate first.")
    answer = ask(arguments.url, record.certificate, issuers[0].certificate)
    tell(answer.sentence)
    return FINISHED if answer.status is OCSPCertStatus.GOOD else FAILED


def hide(arguments: argparse.Namespace) -> int:
    """Hide a certificate. Raises UserError."""
    with PkiStore.open() as store:
        record = remove(store, certificate_named(store.snapshot(), arguments.certificate))
    tell(f"{short_name(record.certificate)} is removed; labconsole pki restore brings it back.")
    return FINISHED


def restore_hidden(arguments: argparse.Namespace) -> int:
    """Show a hidden certificate again. Raises UserError."""
    with PkiStore.open() as store:
        record = restore(store, certificate_named(store.snapshot(), arguments.certificate))
    tell(f"{short_name(record.certificate)} is back.")
    return FINISHED


def remove_key_files(arguments: argparse.Namespace) -> int:
    """List key files that no key of the database names, and remove them once that is confirmed. Raises UserError."""
    with PkiStore.open() as store:
        stray = stray_key_files(store.directory, store.snapshot().keys)
        if not stray:
            tell("Every key file belongs to a key of the database: there is nothing to remove.")
            return FINISHED
        for path in stray:
            tell(f"{path}")
        if not arguments.yes and not confirmed(f"{len(stray)} key files are removed for good."):
            tell("Nothing was removed: confirm it, or give --yes.")
            return FAILED
        with store.change() as change:
            for path in stray_key_files(store.directory, change.snapshot().keys):
                path.unlink(missing_ok=True)
                change.note("removed key file", path.name)
    tell(f"Key files removed: {len(stray)}")
    return FINISHED
