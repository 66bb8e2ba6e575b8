"""A module has a process of its own: its failures are reported in one sentence, and no process stays behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from labconsole.security.token.errors import TokenError
from labconsole.security.token.module_process import ask

PIN = "314159-user"


@pytest.fixture(autouse=True)
def odd_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `python -m odd_children` be found."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)


def asked(what: str, timeout_s: float = 20.0) -> dict[str, Any]:
    return ask("odd_children", {"do": what, "pin": PIN}, timeout_s, "The module m.so")


def refusal(what: str, timeout_s: float = 20.0) -> str:
    with pytest.raises(TokenError) as refused:
        asked(what, timeout_s)
    assert PIN not in str(refused.value)
    return str(refused.value)


def is_running(process: psutil.Process) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_output_of_a_module_does_not_spoil_the_answer() -> None:
    assert asked("chatter") == {"length": len(PIN)}


def test_a_refusal_comes_as_the_child_said_it() -> None:
    assert refusal("refuse") == "The token says no: say yes."


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no signals")
def test_a_crash_is_reported_with_its_signal() -> None:
    assert refusal("crash").startswith("The module m.so ended its process (signal 11): name another module")


def test_a_fault_in_the_child_is_reported_with_its_last_output() -> None:
    assert "(exit code 1, saying: ZeroDivisionError: a fault of our own)" in refusal("stumble")


def test_a_module_that_hangs_is_ended_in_time() -> None:
    began, before = time.monotonic(), psutil.Process().children()
    assert refusal("hang", 1.0).startswith("The module m.so did not answer within 1 s: ")
    assert time.monotonic() - began < 30.0, "it would have slept a minute"
    assert psutil.Process().children() == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_the_child_ends_with_the_process_that_asked() -> None:
    question = "{'do': 'hang', 'pin': ''}"
    code = f"from labconsole.security.token.module_process import ask; ask('odd_children', {question}, 60, 'm')"
    asking = subprocess.Popen([sys.executable, "-c", code])
    while not (children := psutil.Process(asking.pid).children()):
        time.sleep(0.01)
    [child] = children
    time.sleep(0.3)  # the child has read what it is asked
    asking.kill()
    asking.wait()
    deadline = time.monotonic() + 30.0
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(child)


def test_a_child_that_hangs_exits_by_its_own_timeout() -> None:
    """As on macOS and Windows, when the process that asked was killed."""
    task = {"parent_pid": os.getpid(), "last_s": 0.5, "question": {"do": "hang", "pin": PIN}}
    command = [sys.executable, "-m", "odd_children"]
    left = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, timeout=30, check=False)
    assert left.returncode == 1 and "Timeout" in left.stderr and PIN not in left.stderr
