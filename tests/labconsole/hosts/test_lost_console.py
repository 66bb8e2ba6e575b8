"""Roles whose console is silent and whose profile lets them finish their work: which continue, and which stop."""

from __future__ import annotations

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from labconsole.engine.launcher import ChildRole
from labconsole.engine.protocol import encode_line
from labconsole.hosts.agent import hosted_role, hosted_runs
from labconsole.hosts.agent.hosted_role import Lines
from labconsole.hosts.agent.hosted_runs import HostedRun, HostedRuns

SILENT_S = 0.5
NAME = "counter-0"


@pytest.fixture(autouse=True)
def short_times(practice_plugin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console is soon lost, and a role soon idle."""
    for module in (hosted_role, hosted_runs):
        monkeypatch.setattr(module, "LOST_CONSOLE_S", SILENT_S)
    monkeypatch.setattr(hosted_role, "IDLE_S", 2.0)


def task(**settings: Any) -> dict[str, Any]:
    """The task of a role that counts."""
    return {
        "name": NAME,
        "target": "practice_trial:CounterRole",
        "settings": {"fault": "none", "seed": 1, "count": 1_000_000, "rate": 1000, **settings},
        "secrets": {},
        "address": "127.0.0.1",
        "live_hz": 10,
    }


def lasted_s(folder: Path, most_s: float, *, begins: bool = True, **settings: Any) -> float:
    """How long a role runs in a run that finishes its work, without a console; more than `most_s`: it still ran."""

    async def watched() -> float:
        run = HostedRun(folder, "alpha", 0, finishes=True)
        begun_s = time.monotonic()  # its console is silent from the start on
        run.start(NAME, task(**settings), {})
        role = run.roles[NAME]
        if begins:
            role.send(0, encode_line({"t": "begin", "at_ns": 0}))
        while role.running and time.monotonic() - begun_s < most_s:
            run.look()
            await asyncio.sleep(0.1)
        found_s = time.monotonic() - begun_s
        run.close()
        return found_s

    return asyncio.run(watched())


def test_a_role_that_counts_works_until_it_has_finished(tmp_path: Path) -> None:
    assert 4 < lasted_s(tmp_path, 60, count=4000) < 60


def test_a_role_that_was_never_sent_t0_is_stopped(tmp_path: Path) -> None:
    assert lasted_s(tmp_path, 60, begins=False) < 60


def test_a_role_whose_counts_no_longer_grow_is_stopped(tmp_path: Path) -> None:
    assert 2 < lasted_s(tmp_path, 60, fault="stall", count=1000) < 60


def test_no_role_works_longer_than_the_longest_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_role, "LONGEST_S", 3.0)
    assert 3 <= lasted_s(tmp_path, 60) < 60


def test_a_role_that_still_serves_when_its_samples_are_collected_stops_before(tmp_path: Path) -> None:
    async def collected() -> bytes:
        hosted, run = HostedRuns(tmp_path, "alpha"), str(uuid.uuid4())
        hosted.start(run, NAME, task(), {}, ahead_ns=0, finishes=True)
        role = hosted.role(run, NAME)
        role.send(0, encode_line({"t": "begin", "at_ns": 0}))
        while b'"t":"ready"' not in b"".join((await hosted.lines(run, NAME, 0, 1.0)).lines):
            pass
        await hosted.end(run)
        assert not role.running and hosted.running() == {}
        found = role.taken(0)
        assert found is not None
        return b"".join(found.lines)

    assert b'"t":"done"' in asyncio.run(collected()), "it was killed"


def test_a_role_that_does_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_role, "LONGEST_S", 1.0)
    assert lasted_s(tmp_path, 60, fault="deaf") < 60


def test_the_last_lines_of_a_role_come_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers() -> list[Lines]:
        run = HostedRun(tmp_path, "alpha", 0)
        run.start(NAME, task(count=1000), {})
        role = run.roles[NAME]
        role.send(0, encode_line({"t": "begin", "at_ns": 0}))
        reader, ends = role._threads[0], type(role._child).code.fget
        found = [Lines(0, (), 0)]

        def code(child: ChildRole) -> int | None:
            """It ends between the look for lines and that for its end."""
            if found[-1].next:
                reader.join()
            return None if reader.is_alive() else ends(child)

        monkeypatch.setattr(type(role._child), "code", property(code))
        while not found[-1].ended:
            found.append(role.taken(found[-1].next) or role.none(found[-1].next))
            await asyncio.sleep(0.05)
        run.close()
        return found

    assert any(b'"done"' in line for answer in asyncio.run(answers()) for line in answer.lines)


def test_the_load_of_a_host_is_not_measured_until_samples_are_collected(tmp_path: Path) -> None:
    async def grown() -> int:
        run = HostedRun(tmp_path, "alpha", 0, shared=False)
        run.start(NAME, task(count=10), {})
        run.roles[NAME].kill()
        while run.roles[NAME].running:
            await asyncio.sleep(0.05)
        await asyncio.sleep(SILENT_S)
        before = (tmp_path / "usage-alpha.spool").stat().st_size
        for _ in range(20):
            run.measure()
        after = (tmp_path / "usage-alpha.spool").stat().st_size
        run.close()
        return after - before

    assert asyncio.run(grown()) == 0
