"""`labconsole pki rotate | rotations | rotation`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from labconsole.cli.exit_codes import FINISHED
from labconsole.errors import UserError
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import RotationRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.names import short_name
from labconsole_certificates.commands.work.shared import new_key, prompt, show, table, tell
from labconsole_certificates.operations.references import certificate_named, rotation_numbered, state_named
from labconsole_certificates.revocation.crl_renewal import due_crls
from labconsole_certificates.rotation import steps
from labconsole_certificates.rotation.due import due
from labconsole_certificates.rotation.plan import plan_of


def begin(arguments: argparse.Namespace) -> int:
    """Begin to replace a certificate. Raises UserError."""
    with PkiStore.open() as store:
        record = certificate_named(store.snapshot(), arguments.certificate)
        rotation = steps.begin(store, record, overlap_days=arguments.overlap)
        _show_plan(store.snapshot(), rotation)
    return FINISHED


def show_all(arguments: argparse.Namespace) -> int:
    """List what expires soon, and the rotations. Raises UserError."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    at = datetime.now(UTC)
    soon = table("Expires in", "Certificate", "Rotation")
    for one in due(snapshot, at):
        number = "" if one.rotation is None else str(one.rotation.id)
        soon.add_row(f"{one.days_left} days", short_name(one.record.certificate), number)
    show(soon)
    for crl in due_crls(snapshot, at):
        tell(crl.sentence())
    rows = table("Rotation", "Certificate", "Status", "Next")
    for rotation in snapshot.rotations:
        name = short_name(snapshot.certificate_by_id[rotation.certificate].certificate)
        rows.add_row(str(rotation.id), name, rotation.status, plan_of(snapshot, rotation, at).next_sentence)
    show(rows)
    return FINISHED


def step(arguments: argparse.Namespace) -> int:
    """Show a rotation's plan, or do a step of it. Raises UserError."""
    if arguments.step is None:
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
        _show_plan(snapshot, rotation_numbered(snapshot, arguments.rotation))
        return FINISHED
    with PkiStore.open() as store:
        rotation = _done(store, arguments)
        _show_plan(store.snapshot(), rotation)
    return FINISHED


def _done(store: PkiStore, arguments: argparse.Namespace) -> RotationRecord:
    snapshot = store.snapshot()
    rotation = rotation_numbered(snapshot, arguments.rotation)
    match arguments.step:
        case "prepare":
            key = new_key(arguments)
            return steps.prepare(store, rotation, key, days=arguments.days, prompt=prompt(arguments))
        case "adopt":
            return steps.adopt(store, rotation)
        case "confirm":
            if arguments.peer is None:
                raise UserError("Somebody has confirmed: say who with --peer.")
            return steps.confirm(store, rotation, state_named(snapshot, arguments.peer))
        case "switch":
            return steps.switch(store, rotation, wait_for_peers=not arguments.force)
        case "finish":
            return steps.finish(store, rotation, wait_for_overlap=not arguments.force)
        case _:
            return steps.cancel(store, rotation)


def _show_plan(snapshot: Snapshot, rotation: RotationRecord) -> None:
    plan = plan_of(snapshot, rotation, datetime.now(UTC))
    tell(f"Rotation {rotation.id} of {short_name(plan.old.certificate)}: {rotation.status}")
    for one in plan.steps:
        tell(f"  {'done   ' if one.done else 'to do  '}  {one.title}")
    for peer in plan.peers:
        tell(f"  {peer.state.name}: {peer.how}")
    if plan.next_sentence:
        tell(f"  Next: {plan.next_sentence}")
