"""Exported files: in the requested form, never over another file, and noted with their receiver."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole.security.pki.records import Item
from labconsole_certificates.operations.export import (
    Form,
    exported,
    note_export,
    note_handover,
    recorded,
    reference_to,
    write_export,
)
from labconsole_certificates.revocation.crl_operations import publish_crl
from tests.helpers.openssl_command import run_openssl
from tests.labconsole_certificates.three_states import ThreeStates


def test_openssl_reads_every_form(world: ThreeStates) -> None:
    request = world.asks(world.a, world.b, "a.example")
    crl = publish_crl(world.store, world.root_b)
    snapshot = world.store.snapshot()
    for thing, command in ((world.root_a, "x509"), (request, "req"), (crl, "crl")):
        for form in (Form.PEM, Form.DER):
            run_openssl(command, "-inform", form, "-noout", data=exported(snapshot, thing, form))
    assert exported(snapshot, request, Form.CHAIN) == exported(snapshot, request)


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.pem"
    write_export(file, b"one", private=True)
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UserError, match="is there already and stays as it is"):
        write_export(file, b"two")
    with pytest.raises(UserError, match="does not exist"):
        write_export(tmp_path / "nowhere" / "a.pem", b"two")
    with pytest.raises(UserError, match="cannot be written"):
        write_export(tmp_path / ("x" * 300), b"two")
    assert file.read_bytes() == b"one"


def test_exports_are_recorded(world: ThreeStates) -> None:
    request = world.asks(world.a, world.b)
    crl = publish_crl(world.store, world.root_b)
    for thing in (world.root_b, request, crl):
        note_handover(world.store, thing, world.b, world.a)
    note_export(world.store, crl)
    assert world.store.snapshot().audit[0].what == "exported CRL 1"
    noted = [one.item for one in world.store.snapshot().handovers[-3:]]
    assert noted == [Item.ROOT, Item.CSR, Item.CRL]


def test_exports_by_other_means_are_noted_for_audit_list_and_exchange(world: ThreeStates) -> None:
    request = world.asks(world.a, world.b)
    before = len(world.store.snapshot().audit)
    assert (
        main(["pki", "note-export", f"request:{request.id}", "root:State A", "--from", "State A", "--to", "State B"])
        == 0
    )
    snapshot = world.store.snapshot()
    new = [(entry.what, entry.fingerprint) for entry in reversed(snapshot.audit[:-before])]
    assert [entry.subject for entry in snapshot.audit if entry.what == "operation"] == ["certificates.note-export"]
    assert new[1:] == [
        ("exported request", request.sha256),
        (f"handed over {Item.CSR}", request.sha256),
        ("exported certificate", world.root_a.sha256),
        (f"handed over {Item.ROOT}", world.root_a.sha256),
    ]
    parties = [(one.sender, one.receiver, one.item) for one in snapshot.handovers[-2:]]
    assert parties == [(world.a.id, world.b.id, Item.CSR), (world.a.id, world.b.id, Item.ROOT)]


@pytest.mark.parametrize("arguments", [["request:99"], ["root:State A", "--from", "State A"], ["00112233"]])
def test_note_of_an_unknown_export_changes_nothing(world: ThreeStates, arguments: list[str]) -> None:
    before = world.rows()
    assert main(["pki", "note-export", *arguments]) == 1
    assert world.rows() == before


def test_a_record_is_found_by_its_reference(world: ThreeStates) -> None:
    request, crl = world.asks(world.a, world.b), publish_crl(world.store, world.root_b)
    snapshot = world.store.snapshot()
    for thing in (world.root_a, request, crl):
        assert recorded(snapshot, reference_to(thing)) == thing
