"""`verify`, `bundle`, `import` and `restore`: runs that can be trusted, handed on and got back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.model.metrics import Evaluation, Metric
from labconsole.processes import this_process
from labconsole.store.attachments import AttachmentPiece
from labconsole.store.backups import back_up
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store
from tests.helpers.practice import profile_text
from tests.labconsole.cli.conftest import CommandLine

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process, in a folder with `a.db`, two runs in it: (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    campaign = NewCampaign("demo", "Demo", "", 1, (NewScenario("Test 1", "swim", {}),), ((0, 1), (0, 2)))
    with Store.open(tmp_path / "a.db") as store:
        for run_id in store.add_campaign(campaign, this_process(), NOW):
            store.replace_evaluation(run_id, Evaluation((Metric("lost", 1.0, ""),)))
            store.run_ended(run_id, RunStatus.FINISHED, "", NOW)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_runs_verify_before_and_after_a_bundle(command: Command) -> None:
    code, printed, _ = command("verify", "1", "2", "--db", "a.db")
    assert code == 0
    assert printed.count(": ok, sealed 20") == printed.count("SHA-256 ") == 2
    assert command("bundle", "1", "2", "runs.lcz", "--db", "a.db") == (0, "runs.lcz\n", "")
    assert command("import", "runs.lcz", "--db", "b.db")[1].splitlines() == [
        "Run 1 was imported.",
        "Run 2 was imported.",
    ]
    assert command("verify", "1", "2", "--db", "b.db") == (0, printed, "")
    code, again, _ = command("import", "runs.lcz", "--db", "b.db")
    assert (code, again.count("was there already")) == (0, 2)


def test_changed_run_is_reported_and_not_bundled(command: Command, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as raw, raw:
        raw.execute("UPDATE metric SET value = value + 1 WHERE run_id = 2")
    code, printed, _ = command("verify", "1", "2", "--db", "a.db")
    assert code == 1
    assert "Run 1: ok" in printed
    assert "Run 2: not verified\nRun 2 is not as it was sealed" in printed
    code, _, error = command("bundle", "2", "more.lcz", "--db", "a.db")
    assert code == 1
    assert "`labconsole verify 2` shows more" in error
    assert not (tmp_path / "more.lcz").exists()


def test_every_command_names_a_damaged_database_and_restore_recovers_its_backup(
    command: Command, tmp_path: Path
) -> None:
    before = command("runs", "--db", "a.db")
    back_up(tmp_path / "a.db")
    content = bytearray((tmp_path / "a.db").read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    (tmp_path / "a.db").write_bytes(content)
    for arguments in (["runs"], ["show", "1"], ["verify", "1"], ["export", "1", "--csv", "x"], ["bundle", "1", "x"]):
        code, _, error = command(*arguments, "--db", "a.db")
        assert code == 1
        assert "a.db is damaged" in error
        assert "`labconsole restore --db a.db`" in error
    code, printed, _ = command("restore", "--db", "a.db")
    (restored,) = tmp_path.glob("a-restored-*.db")
    assert (code, f"--db {restored.name}" in printed) == (0, True)
    assert command("runs", "--db", restored.name) == before
    assert (tmp_path / "a.db").read_bytes() == content


def test_failed_restore_or_import_is_reported(command: Command, tmp_path: Path) -> None:
    (tmp_path / "x.lcz").write_bytes(b"PK\x03\x04 and so on")
    for arguments, sentence in (
        (["restore"], "There is no backup next to"),
        (["import", "x.lcz"], "x.lcz was not imported, and nothing was changed."),
        (["verify", "1"], "There is no database"),
    ):
        code, _, error = command(*arguments, "--db", "new.db")
        assert code == 1
        assert sentence in error
    assert not (tmp_path / "new.db").exists()


def test_backup_is_created_after_the_runs(labconsole: CommandLine, tmp_path: Path) -> None:
    done = labconsole("run", labconsole.profile(profile_text(count=10)), "--db", "runs.db")
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "runs.db.backup")) as raw:
        assert raw.execute("SELECT status FROM run").fetchall() == [("finished",)]
        assert raw.execute("SELECT count(*) FROM evidence").fetchone() == (1,)


def test_failed_backup_is_reported_and_the_runs_are_kept(labconsole: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "runs.db.backup" / "in the way").mkdir(parents=True)
    done = labconsole("run", labconsole.profile(profile_text(count=10)), "--db", "runs.db")
    assert done.returncode == 0
    assert "labconsole: no backup was made." in done.stderr
    assert "Traceback" not in done.stderr


def test_attachments_are_listed_exported_bundled_and_verified(command: Command, tmp_path: Path) -> None:
    content, about = b"packets" * 1000, ("tap", "capture.pcapng", "application/x-pcapng")
    with Store.open(tmp_path / "a.db") as store:
        for role in ("tap", "other"):
            store.append(1, [], pieces=[AttachmentPiece(role, *about[1:], 0, content)])
        store.append(1, [], pieces=[AttachmentPiece(*about, 1, b"", sha256(content).digest())])
    printed = command("show", "1", "--db", "a.db")[1]
    assert "Attachment: capture.pcapng from tap, application/x-pcapng, 7,000 B, complete" in printed
    assert "Attachment: capture.pcapng from other, application/x-pcapng, 7,000 B, cut before its end" in printed
    code, printed, _ = command("export", "1", "--csv", "csv", "--db", "a.db")
    assert code == 0 and "csv/attachments/tap/capture.pcapng" in printed
    assert (tmp_path / "csv" / "attachments" / "tap" / "capture.pcapng").read_bytes() == content
    assert command("bundle", "1", "1.lcz", "--db", "a.db")[0] == 0
    assert command("import", "1.lcz", "--db", "b.db")[0] == 0
    assert command("verify", "1", "--db", "b.db")[0] == 0
    with closing(sqlite3.connect(tmp_path / "b.db")) as raw, raw:
        raw.execute("UPDATE attachment_chunk SET payload = zeroblob(7000) WHERE attachment_id = 2")
    code, printed, _ = command("verify", "1", "--db", "b.db")
    assert code == 1 and "Attachment capture.pcapng from tap of run 1 is damaged in chunk 0" in printed.replace(
        "\n", " "
    )
    for refused in (["export", "1", "--csv", "no"], ["bundle", "1", "no.lcz"]):
        assert command(*refused, "--db", "b.db")[0] == 1
    assert not list(tmp_path.glob("no*"))
