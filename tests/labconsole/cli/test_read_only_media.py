"""A database on read-only media is read, verified and exported, with what only its log holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from labconsole.store import edits
from labconsole.store.run_store import Store
from tests.helpers.program_text import PROGRAM
from tests.helpers.small_disk import may_mount

GOLDEN = Path(__file__).parent.parent / "store" / "golden" / "v3.db"
UNSHARE = shutil.which("unshare")
MOUNT = 'mount -t tmpfs tmpfs "$0" && cp "$1"/* "$0" && mount -o remount,ro "$0" && shift && exec "$@"'


@pytest.fixture
def media(tmp_path: Path) -> Path:
    """What is on the media: a database without a log."""
    content = tmp_path / "content"
    content.mkdir()
    shutil.copy(GOLDEN, content / "runs.db")
    Store.open(content / "runs.db").close()
    return content


@pytest.fixture
def media_with_log(media: Path, tmp_path: Path) -> Path:
    """The same, with a note that only the log next to the database holds, as a copy in mid-run has it."""
    content = tmp_path / "with log"
    content.mkdir()
    with Store.open(media / "runs.db") as store:
        edits.set_note(store, 1, "only in the log")
        for name in ("runs.db", "runs.db-wal"):
            shutil.copy(media / name, content)
    return content


COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from labconsole.cli.main import main

for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def on_media(content: Path, folder: Path, *commands: str, **variables: str) -> list[subprocess.CompletedProcess[str]]:
    """Run `labconsole` commands in a process on a read-only file system with this content, which only it sees."""
    mounted = folder / "media"
    mounted.mkdir()
    if not may_mount():
        pytest.skip("needs the right to mount a tmpfs")
    words = [[*line.split(), "--db", f"{mounted}/runs.db"] for line in commands]
    done = _mounted(mounted, content, [*PROGRAM, COMMANDS, json.dumps(words)], variables)
    assert done.returncode == 0, done.stderr
    ends = zip(words, map(json.loads, done.stdout.splitlines()), strict=True)
    return [subprocess.CompletedProcess(command, *end) for command, end in ends]


def _mounted(
    mounted: Path, content: Path, command: list[str], variables: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    assert UNSHARE is not None
    shell = [UNSHARE, "-m", "sh", "-c", MOUNT, str(mounted), str(content), *command]
    return subprocess.run(shell, capture_output=True, text=True, timeout=100, env={**os.environ, **variables})


def test_runs_on_read_only_media_are_read_verified_and_exported_and_none_is_started(
    media: Path, tmp_path: Path
) -> None:
    """What must write refuses in one sentence."""
    shown, verified, exported, run = on_media(
        media, tmp_path, "show 1 --json", "verify 1 2", f"export 1 --csv {tmp_path}/out", "run demo"
    )
    assert shown.returncode == verified.returncode == exported.returncode == 0, shown.stderr + verified.stderr
    assert json.loads(shown.stdout)["metrics"]["throughput"]["value"] == 1234.5
    assert verified.stdout.count(": ok, sealed") == 2
    assert len((tmp_path / "out" / "samples-messages.csv").read_text("utf-8").splitlines()) == 401
    assert run.returncode == 1
    assert "is on read-only media" in run.stderr and "Traceback" not in run.stderr


def test_what_only_the_log_holds_is_read_too(media_with_log: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    (shown,) = on_media(media_with_log, tmp_path, "show 1 --json", TMPDIR=str(copies))
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["note"] == "only in the log"
    assert list(copies.iterdir()) == []  # both were read as a copy, which is gone
