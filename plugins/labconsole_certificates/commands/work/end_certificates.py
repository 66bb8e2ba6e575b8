"""`labconsole pki self-signed | make-for | take-p12 | name | identities`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from labconsole.cli.exit_codes import FINISHED
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509 import gate
from labconsole.security.x509.names import short_name
from labconsole_certificates.commands.work.shared import (
    digits,
    fingerprint_told,
    kept_key,
    new_key,
    new_password,
    optional_state,
    password,
    prompt,
    show,
    table,
    tell,
    warn,
    write_out,
)
from labconsole_certificates.operations import end_certificates, no_csr
from labconsole_certificates.operations.exporting import exported, must_be_new_file, write_export
from labconsole_certificates.operations.naming import forget_identity, name_identity
from labconsole_certificates.operations.references import (
    authority_of,
    certificate_named,
    local_state_named,
    state_named,
)


def self_signed(arguments: argparse.Namespace) -> int:
    """Make a self-signed end certificate. Raises UserError."""
    if arguments.out is not None:
        must_be_new_file(arguments.out)
    with PkiStore.open() as store:
        record = end_certificates.make_self_signed(
            store,
            local_state_named(store.snapshot(), arguments.state),
            new_key(arguments),
            arguments.profile,
            subject=arguments.subject,
            names=arguments.names,
            days=arguments.days,
            prompt=prompt(arguments),
        )
        fingerprint_told(record, "Made:")
        write_out(arguments.out, exported(store.snapshot(), record), "the certificate, for peers to pin")
    warn(end_certificates.WARNING)
    return FINISHED


def make_for(arguments: argparse.Namespace) -> int:
    """Make key and certificate for another State. Raises UserError."""
    must_be_new_file(arguments.out)
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        issuer = local_state_named(snapshot, arguments.issuer)
        made = no_csr.make_for_client(
            store,
            issuer,
            state_named(snapshot, arguments.client),
            arguments.type,
            arguments.profile,
            new_password(arguments, f"the new file {arguments.out}"),
            subject=arguments.subject,
            names=arguments.names,
            days=arguments.days,
            authority=authority_of(snapshot, issuer, arguments.authority, datetime.now(UTC)),
            prompt=prompt(arguments),
        )
    write_export(arguments.out, made.pkcs12, private=True)
    fingerprint_told(made.certificate, "Issued:")
    tell(f"{arguments.out} holds the only copy of its key. Tell its password on another way than the file takes.")
    warn(no_csr.WARNING)
    return FINISHED


def take_in(arguments: argparse.Namespace) -> int:
    """Take in key and certificate from a PKCS#12. Raises UserError."""
    data = gate.read_file(arguments.file, "PKCS#12 file")
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        record = no_csr.take_in_pkcs12(
            store,
            local_state_named(snapshot, arguments.state),
            data,
            password(arguments, f"the file {arguments.file}"),
            sender=optional_state(snapshot, arguments.sender),
            keep=kept_key(arguments),
            prompt=prompt(arguments),
        )
    fingerprint_told(record, "Taken in:")
    return FINISHED


def name(arguments: argparse.Namespace) -> int:
    """Give a certificate with its key a name. Raises UserError."""
    with PkiStore.open() as store:
        record = certificate_named(store.snapshot(), arguments.certificate)
        identity = name_identity(store, arguments.name, record)
    tell(f"Trials take {short_name(record.certificate)} by the name {identity.name}.")
    return FINISHED


def forget(arguments: argparse.Namespace) -> int:
    """Free the name of an identity. Raises UserError."""
    with PkiStore.open() as store:
        forget_identity(store, arguments.name)
    tell(f"The name {arguments.name} is free; its certificate and key stay.")
    return FINISHED


def identities(arguments: argparse.Namespace) -> int:
    """List the identities. Raises UserError."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    rows = table("Identity", "State", "Certificate", "SHA-256")
    for identity in snapshot.identities:
        record = snapshot.certificate_by_id[identity.certificate]
        state = snapshot.state_by_id[identity.state].name
        rows.add_row(identity.name, state, short_name(record.certificate), digits(record.sha256))
    show(rows)
    return FINISHED
