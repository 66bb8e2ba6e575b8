"""What a process asks of the scheduler: who goes first, and how exact waits are."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from labconsole.processes import own_cores, stay_on, wait_exactly, work_behind_others, work_when_idle

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="priority and timer slack of a thread: Linux only")


def _in_thread(work: Callable[[], int]) -> int:
    """What `work` returns in a thread of its own, whose settings end with it."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_only_the_calling_thread_works_behind_others() -> None:
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def priority() -> int:
        work_behind_others()
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    assert _in_thread(priority) == min(19, before + 5)
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


def test_only_the_calling_thread_works_when_a_core_is_idle() -> None:
    def policy() -> int:
        work_when_idle()
        return os.sched_getscheduler(0)

    assert _in_thread(policy) == os.SCHED_IDLE
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_thread_and_those_that_it_starts_stay_on_their_cores() -> None:
    before = own_cores()
    first = min(before)

    def cores() -> int:
        return len(own_cores()) if own_cores() == {first} else 0

    def inherited() -> int:
        stay_on({first})
        stay_on(())  # changes nothing
        return _in_thread(cores)

    assert _in_thread(inherited) == 1
    assert own_cores() == before


def test_threads_of_a_thread_that_waits_exactly_do_so_too() -> None:
    def slack_ns() -> int:
        return int(Path(f"/proc/{threading.get_native_id()}/timerslack_ns").read_text())

    def inherited() -> int:
        wait_exactly()
        return _in_thread(slack_ns)

    before = slack_ns()
    assert before > 1
    assert _in_thread(inherited) == 1
    assert slack_ns() == before
