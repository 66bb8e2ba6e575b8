"""`installer/brokers.py` as an operator uses it: RabbitMQ from start to stop, a killed one, and refusals."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.queue_probe import probe_queue_depth
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.wire.envelope import message_number
from labconsole_amqp.wire.template import plain_template
from processes import SetupError
from real_brokers import artemis, command, java_archives, rabbitmq
from real_brokers.java_archives import Archive
from real_brokers.settings import HOST, BrokerSettings
from tests.labconsole_amqp.link_transfer import PAYLOAD, send_all
from tests.labconsole_amqp.real_broker import missing
from tests.labconsole_amqp.restart_in_run import assert_nothing_lost, run_over_restart

SCRIPT = Path(__file__).resolve().parents[2] / "installer" / "brokers.py"
BASE_PYTHON = str(Path(sys.executable).resolve())
"""The Python that the environment was made with: the script changes to the environment's by itself."""
needs_rabbitmq = pytest.mark.skipif(missing("rabbitmq") is not None, reason=str(missing("rabbitmq")))
FREE_PORTS = ("--port=0", "--tls-port=0")


def call(*arguments: str, script: Path = SCRIPT) -> subprocess.CompletedProcess[str]:
    """Run the script as a user does."""
    words = [BASE_PYTHON, str(script), *arguments]
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=170)


@dataclass(frozen=True)
class Performed:
    """Exit code and texts of a command line."""

    code: int
    out: str
    err: str


def perform(*arguments: str) -> Performed:
    """Carry out a command line that starts no broker, in the test's process."""
    out, err = io.StringIO(), io.StringIO()
    mask, handler = os.umask(0o077), signal.getsignal(signal.SIGTERM)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = command.run(list(arguments))
    finally:
        os.umask(mask)
        signal.signal(signal.SIGTERM, handler)
    return Performed(code, out.getvalue(), err.getvalue())


def of_folder(folder: Path) -> list[int]:
    """The processes that have the folder in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            text = " ".join([*process.cmdline(), *process.environ().values()])
        except psutil.Error:
            continue
        if str(folder) in text and process.pid != os.getpid():
            found.append(process.pid)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a broker, which is stopped at the end."""
    yield tmp_path / "broker"
    perform("rabbitmq", "--dir", str(tmp_path / "broker"), "stop")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["rabbitmq"],
        ["rabbitmq", "restart"],
        ["other", "start"],
        ["rabbitmq", "start", "--port", "70000"],
        ["rabbitmq", "start", "--queue", "a/b"],
        ["rabbitmq", "start", "--client", "a,b"],
        ["rabbitmq", "start", "--depth", "0"],
    ],
)
def test_bad_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.run(arguments)
    printed = capsys.readouterr()
    assert (end.value.code, printed.out) == (2, "")
    assert "usage: brokers.py" in printed.err


def test_exit_code_of_bad_usage_is_that_of_the_script() -> None:
    done = call("rabbitmq", "restart")
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: brokers.py" in done.stderr


def test_checkout_that_is_not_set_up_is_named_even_by_an_old_python(tmp_path: Path) -> None:
    ast.parse(SCRIPT.read_text("utf-8"), feature_version=(3, 6))
    (tmp_path / "installer").mkdir()
    script = Path(shutil.copy(SCRIPT, tmp_path / "installer"))
    done = call("rabbitmq", "start", script=script)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "labconsole: the console is not set up: run `python3 installer/bootstrap.py run` once.\n"


@needs_rabbitmq
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_rabbitmq_is_restarted_in_mid_run(folder: Path, lab_home: Path, tmp_path: Path) -> None:
    """Its messages stay, its files are private, its secrets are in no command line, and a kill is reported.

    One test, since each start takes 10 s of CPU. Only here is a fault found in the stopping of a RabbitMQ that was
    started without `--foreground`, or in what it keeps over a restart.
    """
    place = ("rabbitmq", f"--dir={folder}")
    nothing = perform(*place, "status")
    assert (nothing.code, nothing.out) == (3, f"Nothing runs in {folder}.\n")
    started = call(*place, "start", *FREE_PORTS, "--queue=first", "--queue=second")
    assert started.returncode == 0, started.stderr
    state = json.loads((folder / "state.json").read_text())
    for sentence in (
        r"RabbitMQ 3\.\d+\.\d+ \(Erlang \S+\) runs since .* UTC \(pid \d+\)",
        r"Started in \d+\.\d s; memory now: \d+ MB",
        rf"Test 1: host 127\.0\.0\.1, port {state['port']}, any client",
        rf"Tests 2-4: host 127\.0\.0\.1, port {state['tls_port']}, client certificates: state-a, state-b",
        "Queues, as addresses: /amq/queue/first, /amq/queue/second",
    ):
        assert re.search(sentence, started.stdout), sentence
    status = perform(*place, "status")
    assert status.code == 0
    assert status.out.splitlines()[0] == started.stdout.splitlines()[0]
    again = perform(*place, "start", *FREE_PORTS)
    assert (again.code, again.out) == (1, "")
    assert re.search(r"RabbitMQ is running already \(pid \d+, .*\): stop it first\.", again.err)
    assert_private(folder)
    with connect(Endpoint("127.0.0.1", state["port"])) as connection:
        durable = plain_template(PAYLOAD, message_number(0, 0), durable=True)
        send_all(Sender(connection, "/amq/queue/second"), durable, 5)

    def restart() -> None:
        stopped = perform(*place, "stop")
        assert (stopped.code, stopped.out) == (0, "RabbitMQ has stopped.\n")
        assert of_folder(folder) == []
        assert perform(*place, "status").code == 3
        assert perform(*place, "stop").code == 0
        ports = (f"--port={state['port']}", f"--tls-port={state['tls_port']}")
        queues = ("--queue=first", "--queue=second")
        assert call(*place, "start", *ports, *queues, "--client=state-a", "--client=state-b").returncode == 0

    run_place = {"broker": "external", "port": state["tls_port"], "address": "/amq/queue/first", "test": 2}
    assert_nothing_lost(run_over_restart(tmp_path / "run", run_place, restart))
    with connect(Endpoint("127.0.0.1", state["port"])) as connection:
        assert probe_queue_depth(connection, "/amq/queue/second", limit=100, quiet_s=5) == 5

    mapper, server = kill(folder)
    ended = perform(*place, "status")
    assert (ended.code, mapper.is_running()) == (3, True)
    assert f"RabbitMQ does not run: it ended without `stop` (pid {server.pid}, started 20" in ended.out
    with socket.create_server((HOST, 0)) as taken:
        replaced = perform(*place, "start", f"--port={taken.getsockname()[1]}", "--tls-port=0")
    assert f"RabbitMQ (pid {server.pid}) had ended without `stop`: what it has stored is kept." in replaced.err
    assert replaced.code == 1 and not mapper.is_running()


@needs_rabbitmq
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_killed_rabbitmq_is_replaced(folder: Path, lab_home: Path) -> None:
    """Nightly: alone finds that RabbitMQ does not start on what a kill has left.

    That the killed one is reported and its port mapper ended is judged in CI by the test above, and the rights of
    users of earlier starts by `test_users_of_earlier_starts_lose_their_rights`.
    """
    place = ("rabbitmq", f"--dir={folder}")
    assert call(*place, "start", *FREE_PORTS, "--client=state-a", "--client=state-b").returncode == 0
    mapper, server = kill(folder)
    replaced = call(*place, "start", *FREE_PORTS, "--client=state-b")
    assert replaced.returncode == 0, replaced.stderr
    assert f"RabbitMQ (pid {server.pid}) had ended without `stop`: what it has stored is kept." in replaced.stderr
    assert not mapper.is_running()
    rights = json.loads((folder / "configuration" / "definitions.json").read_text())["permissions"]
    assert {one["user"]: one["read"] for one in rights} == {"anonymous": ".*", "state-a": "", "state-b": ".*"}


def kill(folder: Path) -> list[psutil.Process]:
    """Kill a running broker. Returns its port mapper, which still runs, and the broker."""
    processes = [psutil.Process(one["pid"]) for one in json.loads((folder / "state.json").read_text())["processes"]]
    processes[-1].kill()
    psutil.wait_procs(processes[-1:], timeout=10)
    return processes


def test_users_of_earlier_starts_lose_their_rights(tmp_path: Path) -> None:
    identity: Any = None  # users and rights do not depend on it
    both = BrokerSettings(tmp_path, 1, 2, (), 1, ("state-a", "state-b"), identity, ())
    both.data.mkdir()
    read = [
        {one["user"]: one["read"] for one in rabbitmq._definitions(settings)["permissions"]}
        for settings in (both, replace(both, clients=("state-b",)))
    ]
    assert read == [
        {"anonymous": ".*", "state-a": ".*", "state-b": ".*"},
        {"anonymous": ".*", "state-a": "", "state-b": ".*"},
    ]


def assert_private(folder: Path) -> None:
    """Others can read no file of a running broker, and its password is in no command line."""
    readable = [path for path in (folder, *folder.rglob("*")) if path.lstat().st_mode & 0o077 and not path.is_symlink()]
    assert readable == []
    secrets = re.findall(r"password = (\S+)", (folder / "configuration" / "rabbitmq.conf").read_text())
    arguments = " ".join(" ".join(psutil.Process(pid).cmdline()) for pid in of_folder(folder))
    assert len(secrets) == 1 and secrets[0] not in arguments


@needs_rabbitmq
def test_start_that_cannot_succeed_is_one_sentence(folder: Path, lab_home: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = perform("rabbitmq", f"--dir={folder}", "start", f"--port={port}", "--tls-port=0")
    assert (done.code, done.out) == (1, "")
    assert f"port {port} cannot be used (Address already in use): choose another one by --port" in done.err
    for arguments, sentence in (
        (["--certificate=a.pem"], "a certificate needs its key"),
        (["--certificate=a.pem", "--key=a.key"], "name the authority of the clients' certificates by --trust"),
        (["--user=lab", f"--password-file={tmp_path / 'none'}"], "does not exist"),
    ):
        done = perform("rabbitmq", f"--dir={folder}", "start", *FREE_PORTS, *arguments)
        assert (done.code, done.out) == (1, "")
        assert sentence in done.err
    assert of_folder(folder) == []


def test_folder_that_others_can_read_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    done = perform("rabbitmq", f"--dir={tmp_path}", "start", *FREE_PORTS)
    assert done.code == 1
    assert f"others can read {tmp_path}: make it yours alone with chmod 700" in done.err


def test_damaged_state_is_named(tmp_path: Path) -> None:
    for text in ("", "[]", '{"processes": 1}'):
        (tmp_path / "state.json").write_text(text)
        done = perform("artemis", f"--dir={tmp_path}", "status")
        assert done.code == 1
        assert "state.json is damaged" in done.err


@pytest.mark.parametrize(
    ("subject", "accepted"),
    [
        ("CN=State A", True),
        ("CN=State A, O=Lab", True),
        ("C=SG, O=Lab, CN=State A", True),
        ("CN=State AB, O=Lab", False),
        ("OU=CN=State A", False),
        ('CN=evil, O="x, CN=State A, y"', False),
    ],
)
def test_artemis_finds_the_common_name_in_a_subject(subject: str, accepted: bool) -> None:
    pattern = artemis._subject_pattern("State A").strip("/")
    assert (re.fullmatch(pattern, subject) is not None) is accepted


def stand_in(folder: Path, name: str, body: str) -> None:
    """A program on a search path of its own."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize("right", [True, False])
def test_archive_with_another_hash_is_not_unpacked(
    right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maven and Java are stand-ins here; the slow tests of the brokers use the real ones."""
    (tmp_path / "content-1").mkdir()
    (tmp_path / "content-1" / "program").write_text("run")
    packed = tmp_path / "archive.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(tmp_path / "content-1", "content-1")
    stand_in(tmp_path / "bin", "java", "echo 'openjdk version \"17.0.1\"' >&2")
    copying = f'for word; do case "$word" in -DoutputDirectory=*) cp {packed} "${{word#*=}}";; esac; done'
    stand_in(tmp_path / "bin", "mvn", copying)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    digest = hashlib.sha256(packed.read_bytes()).hexdigest() if right else "0" * 64
    archive = Archive("org.example:content:1:tar.gz:bin", digest, "content-1")
    if right:
        assert (java_archives.install(archive, tmp_path / "software") / "program").read_text() == "run"
    else:
        with pytest.raises(SetupError, match="has not the hash that is expected"):
            java_archives.install(archive, tmp_path / "software")
    assert [path.name for path in (tmp_path / "software").iterdir()] == (["content-1"] if right else [])


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize(
    ("printed", "enough"),
    [
        ('openjdk version "17.0.15" 2025', True),
        ('java version "1.8.0_402"', False),
        ('openjdk version "11.0.2"', False),
    ],
)
def test_older_java_is_recognised(printed: str, enough: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path / "bin", "java", f"echo '{printed}' >&2")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert java_archives.is_java_new_enough() is enough


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("Unknown host repo.example", "cannot reach its repository"),
        ("No space left on device", "the disk is full"),
        ("BUILD FAILURE", "the last lines above say why"),
    ],
)
def test_maven_that_fails_is_explained(output: str, said: str) -> None:
    assert said in java_archives.explain_maven(output)
