"""The certificate database as a file: whole changes or none, concurrent readers, owner, and its error sentences."""

from __future__ import annotations

import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest
from cryptography import x509

from labconsole.errors import BadInput
from labconsole.security.pki.identities import names
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.store.errors import MissingDatabaseError, StoreError
from tests.labconsole.security.pki.pki_lab import OwnState


def test_a_new_database_is_empty_and_its_owners_alone(store: PkiStore) -> None:
    assert store.snapshot() == Snapshot()
    if sys.platform != "win32":
        assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700


def test_a_reader_never_makes_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"There is no certificate database .*: create a State and its CA first"):
        PkiReader.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [b"", None])
def test_one_whose_making_was_cut_off_is_missing_and_then_made(tmp_path: Path, left: bytes | None) -> None:
    path = tmp_path / "pki.db"
    path.touch(0o600)
    if left is None:
        with closing(sqlite3.connect(path)) as raw:
            raw.execute("PRAGMA journal_mode = WAL")
    with pytest.raises(MissingDatabaseError):
        PkiReader.open(tmp_path)
    assert names(tmp_path) == ()
    with PkiStore.open(tmp_path) as store:
        assert store.snapshot() == Snapshot()


def test_a_change_is_whole_or_nothing(store: PkiStore) -> None:
    with store.change("me") as change:
        change.add_state("Alpha", "alpha.example")
    before = store.snapshot()
    with pytest.raises(BadInput, match="There is a State Alpha already"), store.change() as change:
        change.add_state("Beta")
        change.note("exported certificate", "Beta")
        change.add_state("ALPHA")
    assert store.snapshot() == before
    assert [(row.who, row.what, row.subject) for row in before.audit] == [("me", "added State", "Alpha")]


def test_a_change_survives_a_power_cut(store: PkiStore) -> None:
    with store.change() as change:
        [(synchronous,)] = change._connection.exec_driver_sql("PRAGMA synchronous")
        assert synchronous == 2, "FULL: on disk before the block ends"


def test_a_change_sees_itself_and_others_do_not_before_it_ends(store: PkiStore) -> None:
    with PkiReader.open(store.directory) as reader:
        version = reader.data_version()
        with store.change() as change:
            state = change.add_state("Gamma")
            assert change.snapshot().states == (state,)
            assert reader.snapshot().states == ()
            assert reader.data_version() == version
        assert reader.snapshot().states == (state,)
        assert reader.data_version() != version


def test_what_was_written_is_read_by_the_next_opening(store: PkiStore) -> None:
    own = OwnState(store, "Ōtāhuhu 渋谷")
    with PkiStore.open(store.directory) as again:
        assert again.snapshot() == store.snapshot()
        assert again.state("Ōtāhuhu 渋谷") == own.state
        assert again.certificate(own.root.sha256) == again.certificate(own.root.id) == own.root
        assert again.certificates() == (own.root,)
        assert own.root.certificate == own.issuer.certificate


def test_a_snapshot_is_read_again_only_for_what_has_changed(store: PkiStore) -> None:
    own = OwnState(store, "Eta")
    first = store.snapshot()
    assert store.snapshot() is first
    with PkiStore.open(store.directory) as other, other.change() as change:
        change.claim_domain(own.state.id, "eta.example")
        change.note("exported certificate", "Eta Root CA")
        assert change.snapshot().audit[1:] == (change.snapshot().audit[1], *first.audit)
    second = store.snapshot()
    assert second.state_by_id[own.state.id].domain == "eta.example"
    assert second.certificates[0] is first.certificates[0]
    assert second.audit == store.audit()
    with store.change() as change:
        change.revoke(own.root.id, x509.ReasonFlags.superseded)
    assert store.snapshot().certificates[0].revoked is not None


def test_who_changes_is_the_user_who_is_logged_in(store: PkiStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "operator-7")
    with store.change() as change:
        change.add_state("Delta")
    assert [row.who for row in store.audit()] == ["operator-7"]


def test_a_reader_cannot_write(store: PkiStore) -> None:
    refused = pytest.raises(StoreError, match="cannot be written")
    with PkiReader.open(store.directory) as reader, refused, reader.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM audit")


def test_another_programs_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pki.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE bird (name)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a certificate database"):
        PkiStore.open(tmp_path)
    assert path.read_bytes() == before


def test_a_row_that_another_program_changed_is_reported(store: PkiStore) -> None:
    OwnState(store, "Epsilon")
    with closing(sqlite3.connect(store.path)) as raw, raw:
        raw.execute("UPDATE certificate SET origin = 'the moon'")
    with pytest.raises(StoreError, match=r"holds what it cannot hold .*the moon"):
        store.snapshot()


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda store: store.state("Zeta"), "There is no State Zeta"),
        (lambda store: store.certificate("00" * 32), "There is no certificate 0000"),
        (lambda store: store.certificate(7), "There is no certificate 7"),
        (lambda store: store.request(7), "There is no request 7"),
        (lambda store: store.key(7), "There is no key 7"),
        (lambda store: store.rotation(7), "There is no rotation 7"),
        (lambda store: store.identity("state-a"), "There is no identity state-a: give a certificate that name first"),
    ],
)
def test_missing_tokens_and_keys_are_reported(store: PkiStore, ask, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(StoreError, match=sentence):
        ask(store)
