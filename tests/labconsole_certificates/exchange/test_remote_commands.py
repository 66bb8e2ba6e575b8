"""`labconsole pki connect | listen`, and the two actions in their processes."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.engine.operation_process import Outcome
from labconsole.errors import UserError
from labconsole.paths import pki_dir
from labconsole_certificates.exchange.remote_tls_proof import RemoteProof
from tests.helpers.operations import Operations
from tests.helpers.signals import interruptible
from tests.labconsole_certificates.exchange.two_consoles import Waiting, connected

A, B = "State A", "State B"


@pytest.fixture
def actions() -> Iterator[Operations]:
    opened = Operations(in_threads=True)
    yield opened
    opened.close()


def test_the_command_connects_to_a_console_that_waits(consoles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(consoles / "a", pki_dir(), dirs_exist_ok=True)
    with ThreadPoolExecutor(1) as pool:
        waiting = Waiting(pool, consoles / "b", B, A)
        place = ["--host", "127.0.0.1", "--port", str(waiting.port)]
        assert main(["pki", "connect", A, B, *place, "--name", "broker.b.example"]) == 0
        assert waiting.ended.result().ok
    said = capsys.readouterr().out
    with ThreadPoolExecutor(1) as pool:
        waiting = Waiting(pool, consoles / "b", B, A)
        again = ["--host", "127.0.0.1", "--port", str(waiting.port), "--name", "broker.b.example", "--json"]
        assert main(["pki", "connect", A, B, *again]) == 0
        assert waiting.ended.result().ok
    as_json = capsys.readouterr()
    found = json.loads(as_json.out)
    assert (found["client"], found["server"], found["ok"], found["protocol"]) == (A, B, True, "TLSv1.3")
    assert "State A connects to 127.0.0.1:" in as_json.err
    assert "State A connects to 127.0.0.1:" in said and "and expects broker.b.example there." in said
    assert "[State A] -> tls-connect -> [State B] passed with 127.0.0.1:" in said
    assert main(["pki", "connect", A, B, *place]) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_the_command_waits_for_the_connection(consoles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(consoles / "b", pki_dir(), dirs_exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    def connect() -> RemoteProof:
        while True:
            with suppress(UserError):  # no process listens there yet
                return connected(consoles / "a", port, A, B, server_name="broker.b.example")
            time.sleep(0.02)

    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(connect)
        assert main(["pki", "listen", B, A, "--port", str(port)]) == 0
        assert seen.result().ok
    said = capsys.readouterr().out
    assert f"State B waits at 127.0.0.1:{port} for a connection of State A, 300 s at most." in said
    assert "[State A] -> tls-connect -> [State B] passed with 127.0.0.1:" in said
    assert main(["pki", "listen", A, B]) == 1
    assert "State A is a State of another console" in capsys.readouterr().err
    assert main(["pki", "listen", B, A, "--port", "70000"]) == 2
    assert "--port: input should be less than or equal to 65535" in capsys.readouterr().err


def test_the_operation_reports_the_remaining_wait_and_can_be_cancelled(consoles: Path, actions: Operations) -> None:
    shutil.copytree(consoles / "b", pki_dir(), dirs_exist_ok=True)
    waiting = actions.start("certificates.listen", state_a=B, state_b=A, port=0, wait_s=60)
    actions.pump_until(waiting, lambda: "waits at 127.0.0.1:" in waiting.said and waiting.progress is not None)
    assert waiting.progress is not None and waiting.progress.total == 60
    waiting.cancel()
    end = actions.end(waiting)
    assert (end.outcome, end.sentence) == (Outcome.CANCELLED, "Cancelled: nothing was proven.")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_ends_the_waiting_with_the_exit_code_of_a_cancelled_command(consoles: Path) -> None:
    shutil.copytree(consoles / "b", pki_dir(), dirs_exist_ok=True)
    run = (
        f"import sys; from labconsole.cli.main import main; sys.exit(main({['pki', 'listen', B, A, '--port', '0']!r}))"
    )
    with interruptible():
        process = subprocess.Popen(
            [sys.executable, "-P", "-u", "-c", run], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    assert process.stdout is not None and "State B waits at" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "labconsole: Cancelled: nothing was proven.\n")
