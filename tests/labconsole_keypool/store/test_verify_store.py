"""Tampering with a key store by another program: every change is found, and the row is named."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from labconsole.cli.main import main
from labconsole.model.trial import Event, Level
from labconsole.paths import database_path
from labconsole.processes import this_process
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import EventRecord, Store
from labconsole_keypool.store.key_links import ORIGIN, ids_as_text, ids_of_text, link
from labconsole_keypool.store.key_records import HEAD_EVENT, Head
from labconsole_keypool.store.key_schema import LINKED, metadata
from labconsole_keypool.store.key_store import KeyStore, store_path
from labconsole_keypool.store.verify_store import Fault, verify_store
from tests.labconsole_keypool.stored_keys import KIND, new_keys, new_wrapper, signatures

Tamper = Callable[[sqlite3.Connection], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Head]:
    """A store with keys of every status (new 4, in use 2, used 3, invalid 1), a destroyed wrapper key; and its head."""
    path = tmp_path_factory.mktemp("stores") / "lab.db"
    with KeyStore.open(path, run="run") as store:
        wrapper, spent = new_wrapper(store), new_wrapper(store, limit_keys=1)
        store.add(new_keys(spent, 1))
        [first] = store.claim(KIND, [spent.serial], 1)
        store.used([first.id], signatures([first.id], first=100))
        store.wrapper_destroyed(spent.serial)
        store.add(new_keys(wrapper, 9))
        used, also_used, bad, *_ = [key.id for key in store.claim(KIND, [wrapper.serial], 5)]
        store.used([used, also_used], signatures([used]))
        store.invalid([bad], "does not unwrap")
        head = store.head()
        with closing(sqlite3.connect(path)) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        copy = path.with_name("original.db")
        shutil.copy(path, copy)  # two keys are still in use in it
    return copy, head


@pytest.fixture
def path(original: tuple[Path, Head], tmp_path: Path) -> Path:
    return Path(shutil.copy(original[0], tmp_path / "lab.db"))


def change(path: Path, tamper: Tamper | str, values: tuple[Any, ...] = ()) -> None:
    """What another program does to the file."""
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA foreign_keys = OFF")
        raw.execute("PRAGMA ignore_check_constraints = ON")
        raw.execute(tamper, values) if isinstance(tamper, str) else tamper(raw)


def value(path: Path, statement: str) -> Any:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute(statement).fetchone()[0]


COLUMNS = [
    (table.name, column.name)
    for table in metadata.sorted_tables
    for column in table.columns
    if column.computed is None and (table.name, column.name) not in {("head", "id"), ("wrapper_key", "owner")}
]
"""All that is stored; who may use a wrapper key just now is not evidence."""


def other(found: Any) -> Any:
    """Another value of the same type."""
    match found:
        case None:
            return 1
        case bytes():
            return bytes([found[0] ^ 1]) + found[1:] if found else b"x"
        case str():
            return found + "x"
        case _:
            return found + 1


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_change_in_any_column_of_any_row_is_found(path: Path, tmp_path: Path, table: str, column: str) -> None:
    """One value at a time."""
    with closing(sqlite3.connect(path)) as raw:
        rows = raw.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    for rowid, found in rows:
        changed = tmp_path / "changed.db"
        shutil.copy(path, changed)
        new = other(found) if column != "id" else found + 1000
        if (table, column) == ("key", "private") and found is None:
            new = b"wrapped"
        change(changed, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, rowid))
        assert verify_store(changed), f"{table}.{column} of row {rowid} was {found!r}"


def test_an_untouched_store_is_as_it_was_written(path: Path, original: tuple[Path, Head]) -> None:
    assert verify_store(path) == ()
    assert verify_store(path, original[1]) == ()


def test_a_changed_row_is_the_one_that_is_named(path: Path) -> None:
    number = value(path, "SELECT min(id) FROM key")
    change(path, f"UPDATE key SET public = x'00' WHERE id = {number}")
    [finding] = verify_store(path)
    assert (finding.fault, finding.row) == (Fault.CHANGED, number)
    assert finding.message.startswith(f"Key {number} does not fit its link")


@pytest.mark.parametrize(
    ("table", "column"), [("key", "generate_start"), ("key", "stored"), ("event", "at"), ("signature", "received")]
)
def test_a_re_dated_row_is_found(path: Path, table: str, column: str) -> None:
    number = value(path, f"SELECT max(id) FROM {table}")
    change(path, f"UPDATE {table} SET {column} = {column} - 86400000000000 WHERE id = {number}")
    assert (Fault.CHANGED, number) in {(finding.fault, finding.row) for finding in verify_store(path)}


def test_the_time_of_a_use_cannot_be_moved(path: Path) -> None:
    number = value(path, "SELECT max(id) FROM key_state WHERE status = 2")
    change(path, f"UPDATE key_state SET used = used + 1 WHERE id = {number}")
    [finding] = verify_store(path)
    assert finding.message == f"The time at which key {number} was used was changed."


def test_a_row_removed_from_the_middle_is_found(path: Path) -> None:
    number = value(path, "SELECT min(id) FROM key WHERE private IS NOT NULL")
    change(path, lambda raw: [raw.execute(f"DELETE FROM {t} WHERE id = {number}") for t in ("key", "key_state")])
    findings = verify_store(path)
    assert (findings[0].fault, findings[0].row) == (Fault.REMOVED, number)
    assert findings[0].message == f"Row {number} is missing before Key {number + 1}: removed."


def test_rows_removed_at_the_end_are_found(path: Path) -> None:
    rows = value(path, "SELECT rows FROM head")
    change(path, f"DELETE FROM event WHERE id = {rows}")
    findings = verify_store(path)
    assert (Fault.REMOVED, rows) in {(finding.fault, finding.row) for finding in findings}
    assert f"Row {rows} is missing at the end: removed." in {finding.message for finding in findings}


def cut_off(raw: sqlite3.Connection, last: int) -> None:
    """Remove all that came after the key `last`, with all its traces: what an old copy put back looks like."""
    for table in LINKED:
        raw.execute(f"DELETE FROM {table} WHERE id > {last}")
    raw.execute(f"UPDATE head SET rows = {last}, link = (SELECT link FROM key WHERE id = {last})")
    raw.execute("UPDATE key_state SET status = 0, owner = NULL, used = NULL WHERE status = 1 OR used IS NULL")


def test_an_end_cut_off_with_all_its_traces_is_found_by_a_head_kept_elsewhere(
    path: Path, original: tuple[Path, Head]
) -> None:
    last = value(path, "SELECT max(id) FROM key")
    change(path, lambda raw: cut_off(raw, last))
    traces = verify_store(path)
    assert {finding.fault for finding in traces} <= {Fault.BLOB, Fault.STATUS, Fault.CHANGED}  # of keys used since
    [finding] = set(verify_store(path, original[1])) - set(traces)
    assert (finding.fault, finding.row) == (Fault.REMOVED, last + 1)
    assert "when the head was noted" in finding.message


def relink(raw: sqlite3.Connection) -> None:
    """Compute every link again, as an attacker with this console's source would."""
    rows = sorted(
        (number, table, tuple(values))
        for table, columns in LINKED.items()
        for number, *values in raw.execute(f"SELECT id, {', '.join(columns)} FROM {table}")
    )
    previous = ORIGIN
    for number, table, values in rows:
        previous = link(previous, table, number, values)
        raw.execute(f"UPDATE {table} SET link = ? WHERE id = ?", (previous, number))
    raw.execute("UPDATE head SET link = ?", (previous,))


def test_a_chain_rewritten_as_a_whole_is_found_by_a_head_kept_elsewhere(
    path: Path, original: tuple[Path, Head]
) -> None:
    def forge(raw: sqlite3.Connection) -> None:
        raw.execute("UPDATE signature SET to_be_signed = x'00'")
        relink(raw)

    change(path, forge)
    assert verify_store(path) == ()
    [finding] = verify_store(path, original[1])
    assert (finding.fault, finding.row) == (Fault.CHANGED, original[1].rows)
    assert "were rewritten" in finding.message


def test_a_row_exchanged_with_its_link_shows_at_the_next_one(path: Path) -> None:
    number = value(path, "SELECT min(id) FROM key")

    def forge(raw: sqlite3.Connection) -> None:
        raw.execute(f"UPDATE key SET public = x'00' WHERE id = {number}")
        (before,) = raw.execute(f"SELECT link FROM wrapper_key WHERE id = {number - 1}").fetchone()
        [values] = raw.execute(f"SELECT {', '.join(LINKED['key'])} FROM key WHERE id = {number}").fetchall()
        raw.execute("UPDATE key SET link = ? WHERE id = ?", (link(before, "key", number, values), number))

    change(path, forge)
    [finding] = verify_store(path)
    assert (finding.fault, finding.row) == (Fault.CHANGED, number + 1)


@pytest.mark.parametrize("where", ["after the end", "in place of another", "before the beginning"])
def test_an_inserted_row_is_found(path: Path, where: str) -> None:
    rows = value(path, "SELECT rows FROM head")
    number = {"after the end": rows + 1, "in place of another": 1, "before the beginning": 0}[where]
    columns = ", ".join(("link", *LINKED["key"]))
    change(path, f"INSERT INTO key (id, {columns}) SELECT {number}, {columns} FROM key LIMIT 1")
    [finding] = verify_store(path)
    assert (finding.fault, finding.row) == (Fault.INSERTED, number)


def test_a_status_without_an_event_is_found(path: Path) -> None:
    number = value(path, "SELECT max(id) FROM key_state WHERE status = 3")
    change(path, f"UPDATE key_state SET status = 0, owner = NULL WHERE id = {number}")
    [finding] = verify_store(path)
    assert (finding.fault, finding.row) == (Fault.STATUS, number)
    assert finding.message == f"Key {number} is said to be new: its events say invalid."


def test_a_withdrawn_claim_is_found_though_the_links_were_made_again(path: Path) -> None:
    """A use removed from its event, with links computed again, leaves a used key without an event."""
    rows = value(path, "SELECT rows FROM head")

    def forge(raw: sqlite3.Connection) -> None:
        raw.execute("UPDATE event SET keys = '' WHERE event = 2")
        relink(raw)

    change(path, forge)
    findings = verify_store(path)
    assert {finding.fault for finding in findings} >= {Fault.STATUS}
    assert all(0 < finding.row <= rows for finding in findings)


def test_a_second_claim_of_a_key_is_found(path: Path) -> None:
    def forge(raw: sqlite3.Connection) -> None:
        [(number, keys)] = raw.execute("SELECT id, keys FROM event WHERE event = 1 ORDER BY id DESC LIMIT 1").fetchall()
        raw.execute("UPDATE event SET event = 1, keys = ? WHERE id > ?", (keys, number))
        relink(raw)

    change(path, forge)
    assert any("what cannot be: it was in use" in finding.message for finding in verify_store(path))


def test_an_end_of_a_key_that_had_ended_already_is_found(path: Path) -> None:
    used = value(path, "SELECT min(id) FROM key_state WHERE status = 2")

    def forge(raw: sqlite3.Connection) -> None:
        raw.execute("UPDATE event SET keys = ? WHERE event = 3", (str(used),))
        relink(raw)

    change(path, forge)
    assert any("what cannot be: it was used" in finding.message for finding in verify_store(path))


def test_blobs_that_were_swapped_taken_or_put_back_are_found(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        new = [number for (number,) in raw.execute("SELECT id FROM key WHERE private IS NOT NULL ORDER BY id")]
        (used,) = raw.execute("SELECT min(id) FROM key WHERE private IS NULL").fetchone()

    def tamper(raw: sqlite3.Connection) -> None:
        first, second, third = new[:3]
        blobs = dict(raw.execute("SELECT id, private FROM key"))
        for number, blob in ((first, blobs[second]), (second, blobs[first]), (third, None), (used, b"put back")):
            raw.execute("UPDATE key SET private = ? WHERE id = ?", (blob, number))

    change(path, tamper)
    findings = verify_store(path)
    assert {finding.fault for finding in findings} == {Fault.BLOB}
    assert [finding.row for finding in findings] == sorted([*new[:3], used])


def test_a_removed_end_of_the_chain_is_found(path: Path, original: tuple[Path, Head]) -> None:
    change(path, "DELETE FROM head")
    [finding] = verify_store(path)
    assert finding.fault is Fault.REMOVED
    change(path, "DELETE FROM event WHERE id = (SELECT max(id) FROM event)")
    cut = verify_store(path, original[1])
    assert len(cut) > 1 and cut[0] == finding
    assert any("which were there when the head was noted" in found.message for found in cut)


@pytest.mark.parametrize("table", ["head", "event", "key_state"])
def test_a_removed_table_is_found(path: Path, table: str) -> None:
    change(path, f"DROP TABLE {table}")
    [finding] = verify_store(path)
    assert (finding.fault, finding.message) == (Fault.REMOVED, f"The table {table} is missing: removed.")


def test_ids_are_ranges_in_an_event() -> None:
    ids = [3, 4, 5, 9, 11, 12]
    assert ids_as_text(ids) == "3-5,9,11-12"
    assert ids_of_text("3-5,9,11-12", before=13) == ids
    assert ids_of_text("", before=1) == []
    for text in ("x", "5-3", "3,3", "12", "0", "1-999999999999"):
        with pytest.raises(ValueError, match=r".+"):
            ids_of_text(text, before=12)


@pytest.fixture
def noted(path: Path, original: tuple[Path, Head]) -> None:
    """The store as `lab`, a run (1) that has noted its head, and one (2) that was killed before it could."""
    shutil.copy(path, store_path("lab"))
    head = original[1]
    campaign = NewCampaign("c", "C", "", 1, (NewScenario("s", "keypool.signing-service", {}),), ((0, 1), (0, 2)))
    with Store.open(database_path()) as runs:
        run, _ = runs.add_campaign(campaign, this_process(), datetime.now(UTC))
        event = Event(1, "keypool.signing-service", Level.INFO, HEAD_EVENT, "noted", {"store": "lab", **head.as_data()})
        runs.append(run, [], [EventRecord("worker", 0, event)])


def test_the_command_says_what_was_found(
    noted: None, path: Path, original: tuple[Path, Head], capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*arguments: str | Path) -> tuple[int, str]:
        code = main(["hsm", "verify-store", *map(str, arguments)])
        said = capsys.readouterr()
        return code, (said.out + said.err).replace("\n", " ")

    code, said = command("--run", "1")
    assert code == 0 and "as it was written" in said
    head = f"{original[1].rows}:{original[1].link}"
    assert f"Head {head}" in said
    as_json = json.loads(command("--json")[1])
    assert (as_json["as_written"], as_json["head"], as_json["findings"]) == (True, head, [])
    assert command("--run", "1", "--head", head)[0] == 2, "one of both"

    change(store_path("lab"), lambda raw: (raw.execute("UPDATE signature SET run = 'other'"), relink(raw)))
    assert command()[0] == 0  # a file rewritten as a whole does not betray itself
    for known in (("--run", "1"), ("--head", head)):
        code, said = command("lab", *known)
        assert code == 1 and "were rewritten" in said

    change(path, "UPDATE key SET public = x'00' WHERE private IS NULL")
    code, said = command(path)
    assert code == 1 and "does not fit its link" in said
    assert "There is no key store" in command("nowhere")[1]
    store_path("lab").unlink()
    assert f"There is no key store {store_path('lab')}" in command("--run", "1")[1]
    assert "is not a head" in command("--head", "12:34")[1]
    assert "Run 2 has noted no head of a key store: name a run of the signing service" in command("--run", "2")[1]


def test_a_head_survives_an_event(original: tuple[Path, Head]) -> None:
    assert Head.from_data(json.loads(json.dumps(original[1].as_data()))) == original[1]
