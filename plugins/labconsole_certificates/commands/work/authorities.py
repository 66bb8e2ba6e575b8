"""`labconsole pki states | add-state | create-root | create-intermediate | import-ca`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.security.pki.domains import claim_question, domains_from_text
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509 import gate
from labconsole_certificates.commands.work.shared import (
    confirmed,
    digits,
    fingerprint_told,
    kept_key,
    new_key,
    password,
    prompt,
    show,
    table,
    tell,
    warn,
)
from labconsole_certificates.operations.authorities import (
    add_state,
    claim_domain,
    create_intermediate,
    create_root,
    import_authority,
)
from labconsole_certificates.operations.references import authority_of, local_state_named, state_named


def states(arguments: argparse.Namespace) -> int:
    """List the States. Raises UserError."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    rows = table("State", "Domain", "Keys", "Root")
    for state in snapshot.states:
        roots = [digits(root.sha256) for root in snapshot.roots_of(state.id)]
        rows.add_row(state.name, state.domain or "any", "here" if state.local else "elsewhere", ", ".join(roots))
    show(rows)
    return FINISHED


def add(arguments: argparse.Namespace) -> int:
    """Add a State. Raises UserError."""
    with PkiStore.open() as store:
        state = add_state(store, arguments.state, arguments.domain, local=not arguments.remote)
    tell(f"{state.name} is added.")
    if not state.domain:
        tell(f'It has claimed no domain, so that any name is accepted for it: labconsole pki domain "{state.name}" ...')
    return FINISHED


def domain(arguments: argparse.Namespace) -> int:
    """Let a State claim other domains; exit code 1 if the operator says no. Raises UserError."""
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        state, domains = state_named(snapshot, arguments.state), domains_from_text(" ".join(arguments.domain))
        question = claim_question(snapshot, state, state.name, domains)
        if question and not arguments.confirmed and not confirmed(question):
            warn(f"{question} Nothing was changed: answer yes, or give --confirmed.")
            return FAILED
        claim_domain(store, state, domains)
    tell(f"{state.name}: {domains or 'no domain, so that any name is accepted for it'}")
    return FINISHED


def root(arguments: argparse.Namespace) -> int:
    """Create a root CA. Raises UserError."""
    with PkiStore.open() as store:
        record = create_root(
            store,
            local_state_named(store.snapshot(), arguments.state),
            new_key(arguments),
            subject=arguments.subject,
            days=arguments.days,
            path_length=arguments.path_length,
            name_constraints=arguments.only_for,
            prompt=prompt(arguments),
        )
    fingerprint_told(record, "Created:")
    return FINISHED


def intermediate(arguments: argparse.Namespace) -> int:
    """Create an intermediate CA. Raises UserError."""
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        issuing = local_state_named(snapshot, arguments.issuing_state or arguments.state)
        record = create_intermediate(
            store,
            authority_of(snapshot, issuing, arguments.authority, datetime.now(UTC)),
            local_state_named(snapshot, arguments.state),
            new_key(arguments),
            subject=arguments.subject,
            days=arguments.days,
            path_length=arguments.path_length or 0,
            name_constraints=arguments.only_for,
            prompt=prompt(arguments),
        )
    fingerprint_told(record, "Created:")
    return FINISHED


def take_in(arguments: argparse.Namespace) -> int:
    """Import a CA with its private key. Raises UserError."""
    certificates = gate.read_file(arguments.file, "certificate file")
    key = gate.read_file(arguments.key, "key file") if arguments.key else b""
    locked = gate.kind_of(key or certificates).has_password
    with PkiStore.open() as store:
        record = import_authority(
            store,
            local_state_named(store.snapshot(), arguments.state),
            certificates,
            key,
            password=password(arguments, f"the file {arguments.key or arguments.file}") if locked else None,
            keep=kept_key(arguments),
            prompt=prompt(arguments),
        )
    fingerprint_told(record, "Taken in:")
    return FINISHED
