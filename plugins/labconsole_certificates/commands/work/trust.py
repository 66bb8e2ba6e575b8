"""`labconsole pki matrix | exchange | prove`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.store import PkiStore
from labconsole_certificates.commands.work.shared import (
    prompt,
    show,
    table,
    tell,
)
from labconsole_certificates.exchange.progress import exchange_of
from labconsole_certificates.exchange.proving import prove, told
from labconsole_certificates.trust.matrix import CellStatus, matrix


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
