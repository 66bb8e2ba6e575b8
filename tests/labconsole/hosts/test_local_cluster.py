"""The hosts that a run starts on this computer: how they get the console's secret, and what is reported of one."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from labconsole.errors import UserError
from labconsole.hosts import local_node
from labconsole.hosts.cluster_certificates import console_files
from labconsole.hosts.cluster_tls import Member
from labconsole.hosts.local_cluster import local_cluster
from labconsole.paths import HOME_VARIABLE

_AGENTS_EXIT = """
import json, sys, time
if json.loads(sys.stdin.buffer.readline())["name"] == "scheduler":
    time.sleep(1)  # meanwhile the agents have exited
    print("ready tls://127.0.0.1:1", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a console of its own."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "console"))
    return tmp_path / "console"


def test_an_agent_that_exits_while_it_starts_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "labconsole.hosts.local_cluster.own_program", lambda module: [sys.executable, "-c", _AGENTS_EXIT]
    )
    with pytest.raises(UserError, match="local-1 could not be started on this computer"), local_cluster(2):
        pass


@pytest.mark.usefixtures("started_programs")
def test_the_secret_of_the_console_is_in_no_command_line_environment_file_or_log(
    console: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = Member.of_console(console_files()).secret.reveal()
    before = {file: file.read_bytes() for file in console.rglob("*") if file.is_file()}
    with local_cluster(1):
        nodes = psutil.Process().children(recursive=True)
        assert sum("labconsole.hosts.local_node" in node.cmdline() for node in nodes) == 2
        for node in nodes:
            assert secret not in " ".join(node.cmdline()) and secret not in "".join(node.environ().values())
    files = {file: file.read_bytes() for file in console.rglob("*") if file.is_file()}
    assert not [file for file, content in files.items() if secret.encode() in content and before.get(file) != content]
    assert secret not in caplog.text and secret not in "".join(capfd.readouterr())


def test_a_node_whose_console_is_lost_while_it_gets_its_certificate_exits_silently() -> None:
    command = [sys.executable, "-m", "labconsole.hosts.local_node"]
    ended = subprocess.run(command, input=b'{"name": "local-1"', capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"")


def test_a_node_whose_console_is_lost_before_exits_silently(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert local_node.main() == 1
    assert capfd.readouterr() == ("", "")
