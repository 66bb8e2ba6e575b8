"""Actions in their process: progress and ETA, cancel and its ladder, secrets, confirmation, and every bad end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from labconsole.engine import supervisor
from labconsole.engine.operation_process import OperationEnd, OperationProcess, Outcome
from labconsole.security.secrets import Secret
from tests.helpers.operations import Operations
from tests.helpers.practice import alive, wait_until

NAME = "practice.tally"


@pytest.fixture
def actions() -> Iterator[Operations]:
    opened = Operations()
    yield opened
    opened.close()


@pytest.fixture
def thread_actions() -> Iterator[Operations]:
    """The same, without processes."""
    opened = Operations(in_threads=True)
    yield opened
    opened.close()


def test_operation_reports_progress_and_result(actions: Operations) -> None:
    process = actions.start(NAME, count=30, pause=0.02)
    etas: list[float] = []
    actions.pump_until(process, lambda: process.progress is not None and process.progress.eta_s is not None)
    assert process.progress is not None and process.progress.eta_s is not None
    etas.append(process.progress.eta_s / max(1, 30 - process.progress.done))
    assert actions.end(process) == OperationEnd(Outcome.DONE, "Counted to 30.")
    assert (process.progress.done, process.progress.total, process.progress.eta_s) == (30, 30, 0.0)
    assert process.said == "At 29." and process.take_log() == ["a stray print"] and process.take_log() == []
    assert 0.01 < etas[0] < 0.2, "what is left of a number of 20 ms each"


def test_cancel_keeps_the_work_that_was_done(actions: Operations) -> None:
    process = actions.start(NAME, count=1000, pause=0.01)
    actions.pump_until(process, lambda: process.progress is not None and process.progress.done > 0)
    process.cancel()
    process.cancel()
    end = actions.end(process)
    assert end.outcome is Outcome.CANCELLED and end.sentence.startswith("Counted to ")


def test_operation_that_ignores_cancel_is_killed_with_its_children(
    actions: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "TERMINATE_AFTER_S", 0.1)
    monkeypatch.setattr(supervisor, "KILL_AFTER_S", 0.2)
    process = actions.start(NAME, fault="child")
    actions.pump_until(process, lambda: bool(process.said))
    child = int(process.said)
    process.cancel()
    end = actions.end(process)
    assert end == OperationEnd(Outcome.CANCELLED, "Cancelled: it did not stop by itself, and its process was ended.")
    wait_until(lambda: not alive(child))


def test_every_bad_end_is_one_sentence(actions: Operations, thread_actions: Operations) -> None:
    cases: dict[str, Callable[[], OperationProcess]] = {
        "The numbers are out: order new ones.": lambda: thread_actions.start(NAME, fault="refuse"),
        "A fault in the operation: RuntimeError: seven": lambda: actions.start(NAME, fault="fault"),
        "The operation process ended with exit code 7; see the log.": lambda: actions.start(NAME, fault="exit"),
        "Count to a number: count: input should be greater than or equal to 1 (it is 0).": lambda: thread_actions.start(
            NAME, count=0
        ),
        "No operation is called practice.tale; did you mean practice.tally?": lambda: thread_actions.start(
            "practice.tale"
        ),
        "Nothing was done: to confirm, type my-label exactly as it is written.": lambda: thread_actions.start(
            NAME, destroy=True, typed="my-Label"
        ),
    }
    started = {sentence: start() for sentence, start in cases.items()}
    for sentence, process in started.items():
        assert actions.end(process) == OperationEnd(Outcome.FAILED, sentence)
    fault = started["A fault in the operation: RuntimeError: seven"].take_log()
    assert fault[-1] == "RuntimeError: seven", "the traceback is for the log"


def test_a_destructive_action_runs_once_its_label_was_typed(thread_actions: Operations) -> None:
    assert thread_actions.do(NAME, destroy=True, typed="my-label").outcome is Outcome.DONE


@pytest.mark.usefixtures("started_programs")
def test_secrets_pass_through_the_pipe_alone(actions: Operations) -> None:
    process = actions.start(NAME, count=100, pause=0.01, secrets={"word": Secret("hunter2")})
    actions.pump_until(process, lambda: process.progress is not None)
    seen = psutil.Process(process.pid)
    assert "hunter2" not in " ".join(seen.cmdline()) + str(seen.environ())
    [(title, secret)] = process.take_handed_over()
    assert (title, secret.reveal()) == ("What was given", "2retnuh") and "retnuh" not in repr(secret)
    assert process.take_handed_over() == []
    actions.end(process)
    assert "retnuh" not in " ".join(process.take_log())


def test_a_console_that_closes_ends_its_operation(actions: Operations) -> None:
    process = actions.start(NAME, count=1000, pause=0.1)
    actions.pump_until(process, lambda: process.progress is not None)
    process.close()
    assert not alive(process.pid)
    assert process.end is not None and process.end.outcome is Outcome.CANCELLED


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the end of standard input does it, as here for the deaf")
def test_an_action_dies_with_a_console_that_is_killed(practice_plugin: Path) -> None:
    program = (
        "import time\n"
        "from labconsole.engine.operation_process import OperationProcess\n"
        f"process = OperationProcess({NAME!r}, {{'fault': 'deaf'}}, lambda: None)\n"
        "while not process.said:\n    process.pump(); time.sleep(0.02)\n"
        "print(process.pid, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as console:
        assert console.stdout is not None
        action = int(console.stdout.readline())
        assert alive(action)
        os.kill(console.pid, signal.SIGKILL)
    wait_until(lambda: not alive(action))
