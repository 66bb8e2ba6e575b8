"""A data directory of version 0.1.0: it opens, verifies, compares, exports and evaluates again to equal figures.

`home-0.1.0.tar.xz` holds the directory (`home`), the keyring's entries, and what was exported to `files`: 13 runs of
all trials but one with its repeats, the certificates of three States with keys, CRL, rotation and audit list, a key
store with 60 used keys, a token's configuration, a profile, the window's state. `said-0.1.0.json` holds what that
version printed of it. Neither is ever written again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.run_store import Store
from tests.helpers.recorded_home import unpack_home
from tests.helpers.shared_once import shared_once

HERE = Path(__file__).parent
KEYRING = HERE.parent / "labconsole" / "security"
SAID = json.loads((HERE / "said-0.1.0.json").read_text())
RUNS = range(1, 14)
Console = Callable[..., str]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive's folder, which tests copy."""

    return shared_once(tmp_path_factory, "home-0.1.0", unpack_home)


@pytest.fixture
def files(unpacked: Path, tmp_path: Path) -> Path:
    """A copy of the archive's folder."""
    shutil.copytree(unpacked, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def read_files(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for tests that only read runs, its database migrated."""
    folder = tmp_path_factory.mktemp("read") / "files"
    shutil.copytree(unpacked, folder)
    Store.open(folder / "home" / "runs.db").close()  # which migrates it
    return folder


def console_of(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    """Runs a command of the console on that directory; gives what it prints."""
    monkeypatch.chdir(files)
    monkeypatch.setenv("LABCONSOLE_HOME", str(files / "home"))
    monkeypatch.setenv("LABCONSOLE_TEST_KEYRING", str(files / "keyring.json"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring_backends.FileKeyring")
    monkeypatch.setenv("PYTHONPATH", str(KEYRING))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        printed = capsys.readouterr()
        return printed.out + printed.err

    return run


@pytest.fixture
def console(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    """Runs a command on a copy of the directory."""
    return console_of(files, monkeypatch, capsys)


@pytest.fixture
def reading(read_files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    """Runs a command that only reads."""
    return console_of(read_files, monkeypatch, capsys)


def test_runs_verify_by_the_digests_that_they_had(console: Console) -> None:
    printed = console("verify", *map(str, RUNS))
    assert [word for word in printed.split() if len(word) == 64] == SAID["digests"]


def test_tampered_runs_are_found(console: Console, files: Path) -> None:
    with sqlite3.connect(files / "home" / "runs.db") as database:
        database.execute("UPDATE metric SET value = value * 1.001 WHERE run_id = 3 AND name = 'throughput'")
        [(row, data)] = database.execute(
            "SELECT chunk.rowid, payload FROM chunk JOIN series ON series.id = series_id WHERE run_id = 5 LIMIT 1"
        )
        changed = bytes([*data[:-1], data[-1] ^ 1])
        database.execute("UPDATE chunk SET payload = ? WHERE rowid = ?", (changed, row))
    database.close()
    for run in (3, 5):
        console("verify", str(run), code=1)
    console("verify", "4")


@pytest.mark.parametrize("run", RUNS)
def test_a_run_shows_the_figures_that_it_had(reading: Console, run: int) -> None:
    was, now = SAID["show"][str(run)], json.loads(reading("show", str(run), "--json"))
    for metric in [*now["metrics"].values(), *now["labelled_metrics"]]:
        del metric["not_judged"]  # a sentence for people
    assert {key: now.get(key) for key in was} == was


@pytest.mark.parametrize("run", RUNS)
def test_samples_evaluate_again_to_the_figures_that_were_stored(read_files: Path, run: int) -> None:
    with Reader(read_files / "home" / "runs.db") as reader:
        stored = reader.run(run)
        trial = Plugins.discover().trial(stored.row.kind)
        parameters = trial.parameters.of_stored(stored.row.parameters)
        evaluation = trial.evaluate(parameters, reader.samples(run), stored.events)
    was = {(one.name, tuple(sorted(one.labels.items()))): one.value for one in stored.metrics}
    now = {(one.name, tuple(sorted(one.labels.items()))): one.value for one in evaluation.metrics}
    assert now == was
    drawn = {one.name: one.result for one in stored.verdicts if not one.name.startswith("threshold")}
    assert {one.name: one.result for one in evaluation.verdicts} == drawn


def test_a_comparison_has_equal_figures(console: Console) -> None:
    compared = {
        one["name"]: one["cells"] for one in json.loads(console("compare", "1", "--campaign", "--json"))["metrics"]
    }
    for name, cells in SAID["compare"].items():
        now = [{key: cell.get(key) for key in was} for cell, was in zip(compared[name], cells, strict=True)]
        assert now == cells


def test_exported_samples_are_the_same(console: Console, files: Path) -> None:
    console("export", "1", "--csv", "csv")
    exported = {path.name: sha256(path.read_bytes()).hexdigest() for path in (files / "csv").glob("samples-*.csv")}
    assert exported == SAID["exported"]


def test_a_bundle_of_runs_is_imported_with_equal_digests(console: Console, files: Path) -> None:
    console("import", "files/runs.lcz", "--db", "other.db")
    printed = console("verify", "1", "2", "3", "4", "--db", "other.db")
    assert [word for word in printed.split() if len(word) == 64] == SAID["digests"][:4]
    broken = bytearray((files / "files" / "runs.lcz").read_bytes())
    broken[len(broken) // 2] ^= 1
    (files / "broken.lcz").write_bytes(broken)
    console("import", "broken.lcz", "--db", "third.db", code=1)


def test_certificates_requests_and_audit_are_there(console: Console) -> None:
    listed = console("pki", "list", "--all")
    assert [fingerprint for fingerprint in SAID["certificates"] if fingerprint not in listed] == []
    audited = console("pki", "audit", "--limit", "1000")
    assert len(audited.splitlines()) == SAID["lines of audit"]
    assert console("pki", "requests").count("Beta") == SAID["requests of Beta"]
    assert "alpha-client" in console("pki", "identities")


def test_keys_open_by_the_keyring_and_sign(console: Console) -> None:
    console("pki", "publish-crl", SAID["roots"]["Beta"], "--out", "new.crl")
    console("pki", "request", "Alpha", "--to", "Beta", "--out", "new.csr")
    console("pki", "approve", "4", "--authority", SAID["roots"]["Beta"], "--out", "new.pem")


@pytest.mark.parametrize("name", ["alpha.bundle", "beta.bundle", "beta.crl", "a.csr", "b.pem"])
def test_files_of_certificates_are_read(reading: Console, name: str) -> None:
    assert SAID["files"][name] in reading("pki", "show", f"files/{name}")


@pytest.mark.parametrize(("table", "command"), [("certificate", "list"), ("crl", "crls"), ("request", "requests")])
def test_a_tampered_certificate_database_is_found(console: Console, files: Path, table: str, command: str) -> None:
    """An octet in the signature: it can still be parsed."""
    with sqlite3.connect(files / "home" / "pki" / "pki.db") as database:
        tail = "CAST(substr(der, 1, length(der) - 1) || x'00' AS BLOB)"
        assert database.execute(f"UPDATE {table} SET der = {tail}").rowcount > 0
    database.close()
    console("pki", command, code=1)


def test_a_key_store_is_as_it_was_written_and_tampering_is_found(console: Console, files: Path) -> None:
    assert SAID["head of the key store"] in console("hsm", "verify-store", "demo")
    with sqlite3.connect(files / "home" / "key-stores" / "demo.db") as database:
        database.execute("UPDATE key SET private_sha256 = zeroblob(32) WHERE id = 7")
    database.close()
    console("hsm", "verify-store", "demo", code=1)


def test_tokens_and_profiles_are_listed(console: Console) -> None:
    assert "office" in console("hsm", "tokens")
    assert "My preset" in console("profiles")


def test_the_database_is_migrated_once_with_a_backup_and_not_changed_by_reading(files: Path, console: Console) -> None:
    database = files / "home" / "runs.db"
    before = _dump(database)
    console("runs")
    [backup] = database.parent.glob("runs.db.v4-backup-*")
    assert _dump(backup) == before
    migrated = database.read_bytes()
    console("runs")
    assert database.read_bytes() == migrated
    after = _dump(database)
    assert {table: after[table] for table in before} == before
    with closing(sqlite3.connect(database)) as raw:
        assert raw.execute("SELECT DISTINCT placement FROM scenario").fetchall() == [("{}",)]


def _dump(database: Path) -> dict[str, list[object]]:
    """Every row of every table, without the columns that versions 7 and 8 added to these tables."""
    with closing(sqlite3.connect(database)) as raw:
        raw.row_factory = sqlite3.Row
        names = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(_as_in_version_4, raw.execute(f"SELECT * FROM {name}")), key=repr) for name in names}


def _as_in_version_4(row: sqlite3.Row) -> tuple[object, ...]:
    return tuple(value for name, value in dict(row).items() if name not in ("placement", "uncertainty"))
