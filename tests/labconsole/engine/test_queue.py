"""The queue: order, pause, removal, repeats, two consoles on one database, and what dead ones left."""

from __future__ import annotations

import itertools
import json
import os
import platform
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from labconsole.clock import wall_now
from labconsole.engine.queue import QueueState
from labconsole.engine.recorder import make_spool, spool_directory, spool_root
from labconsole.engine.spool import SpoolWriter
from labconsole.model.series import Event, Level
from labconsole.processes import Owner, this_process
from labconsole.security.secrets import Secret
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.practice import Bench, campaign

QUICK = {"count": 100}
LONG = {"count": 1_000_000, "rate": 1000.0}
DEAD = Owner(2**22 + 1, 1.0, "another boot")


def _states(bench: Bench) -> list[tuple[int, QueueState]]:
    return [(item.run_id, item.state) for item in bench.queue.items]


def test_runs_wait_in_the_order_of_the_campaign(bench: Bench) -> None:
    run_ids = bench.submit(QUICK, QUICK, repeats=2)
    assert _states(bench) == [(run_id, QueueState.WAITING) for run_id in run_ids]
    assert [(item.repeat, item.repeats) for item in bench.queue.items] == [(1, 2), (1, 2), (2, 2), (2, 2)]
    assert bench.queue.busy and bench.listener.changes


def test_move_changes_the_order_of_those_that_wait(bench: Bench) -> None:
    a, b, c = bench.submit(QUICK, QUICK, QUICK)
    bench.queue.move(c, -1)
    assert [item.run_id for item in bench.queue.items] == [a, c, b]
    bench.queue.move(a, +99)
    assert [item.run_id for item in bench.queue.items] == [c, b, a]
    bench.queue.move(a, -99)
    bench.queue.move(12345, 1)
    assert [item.run_id for item in bench.queue.items] == [a, c, b]


def test_a_campaign_that_comes_first_waits_ahead_of_the_others_and_changes_the_list_once(thread_bench: Bench) -> None:
    [running] = thread_bench.submit(LONG)
    thread_bench.pump_until(lambda: _states(thread_bench) == [(running, QueueState.RUNNING)])
    [last] = thread_bench.submit(QUICK)
    changes = thread_bench.listener.changes
    ahead = thread_bench.queue.submit(campaign(thread_bench.folder, QUICK, repeats=3), first=True)
    assert thread_bench.listener.changes == changes + 1
    assert [item.run_id for item in thread_bench.queue.items] == [running, *ahead, last]
    thread_bench.queue.cancel_all()
    thread_bench.pump_until_idle()


def test_the_order_of_running_is_the_order_of_the_list(thread_bench: Bench) -> None:
    a, b = thread_bench.submit(QUICK, QUICK)
    thread_bench.queue.move(b, -1)
    thread_bench.pump_until_idle()
    assert thread_bench.listener.ends == [(b, RunStatus.FINISHED), (a, RunStatus.FINISHED)]


def test_a_run_waits_for_its_time_and_lets_others_pass(thread_bench: Bench) -> None:
    starts = wall_now() + timedelta(seconds=6)
    [timed] = thread_bench.queue.submit(campaign(thread_bench.folder, QUICK), starts=starts)
    [other] = thread_bench.submit(QUICK)
    thread_bench.pump_until(lambda: thread_bench.listener.ends == [(other, RunStatus.FINISHED)])
    assert thread_bench.queue.starts == starts and not thread_bench.queue.busy
    thread_bench.pump_until(lambda: (timed, QueueState.RUNNING) in _states(thread_bench))
    assert wall_now() >= starts and thread_bench.queue.starts is None
    thread_bench.pump_until_idle()
    assert thread_bench.listener.ends[-1] == (timed, RunStatus.FINISHED)


def test_a_run_that_waits_for_its_time_is_cancelled_by_its_removal(thread_bench: Bench) -> None:
    [timed] = thread_bench.queue.submit(campaign(thread_bench.folder, QUICK), starts=wall_now() + timedelta(hours=1))
    thread_bench.queue.pump()
    assert _states(thread_bench) == [(timed, QueueState.WAITING)]
    thread_bench.queue.cancel(timed)
    assert _states(thread_bench) == [] and thread_bench.queue.starts is None
    with Reader(thread_bench.queue.database) as reader:
        assert reader.run(timed).row.status is RunStatus.CANCELLED


def test_a_run_that_was_disturbed_from_outside_is_repeated_next_and_once(thread_bench: Bench) -> None:
    disturbed, other = thread_bench.submit({**QUICK, "fault": "disturbed"}, QUICK)
    thread_bench.pump_until_idle()
    [(run_id, again)] = thread_bench.queue.repeated.items()
    assert run_id == disturbed
    assert thread_bench.listener.ends == [(one, RunStatus.FINISHED) for one in (disturbed, again, other)]
    first, second = (thread_bench.detail(one).row for one in (disturbed, again))
    assert (first.scenario, first.repeat, second.scenario, second.repeat) == (first.scenario, 1, first.scenario, 2)
    assert second.metrics["counted"].not_judged == "a door slammed"
    said = f"Not judged: a door slammed. It is repeated once, as run {again}."
    assert said in thread_bench.listener.lines


def test_remove_marks_a_waiting_run_as_cancelled(bench: Bench) -> None:
    a, b = bench.submit(QUICK, QUICK)
    bench.queue.remove(a)
    bench.queue.cancel(b)
    bench.queue.remove(b)
    assert bench.queue.items == () and not bench.queue.busy
    for run_id in (a, b):
        row = bench.detail(run_id).row
        assert (row.status, row.reason) == (RunStatus.CANCELLED, "Removed from the queue before it began.")


def test_pause_lets_the_current_run_end_and_starts_no_other(thread_bench: Bench) -> None:
    a, b = thread_bench.submit({"count": 800, "rate": 2000.0}, QUICK)
    thread_bench.queue.pump()
    thread_bench.queue.pause()
    thread_bench.pump_until_idle()
    assert _states(thread_bench) == [(a, QueueState.DONE), (b, QueueState.WAITING)]
    thread_bench.queue.remove(a)
    thread_bench.queue.move(a, 1)
    assert _states(thread_bench) == [(a, QueueState.DONE), (b, QueueState.WAITING)], (
        "only those that wait can be changed"
    )
    thread_bench.queue.resume()
    thread_bench.pump_until_idle()
    assert _states(thread_bench) == [(a, QueueState.DONE), (b, QueueState.DONE)]
    again = thread_bench.queue.repeat(a)
    assert [(item.repeat, item.repeats) for item in thread_bench.queue.items] == [(1, 2), (1, 1), (2, 2)]
    thread_bench.queue.clear_done()
    assert _states(thread_bench) == [(again, QueueState.WAITING)]
    assert thread_bench.detail(again).row.parameters == thread_bench.detail(a).row.parameters
    assert thread_bench.detail(again).row.seed != thread_bench.detail(a).row.seed


def test_live_frames_can_be_switched_off_and_on_in_mid_run(thread_bench: Bench) -> None:
    """Without a live view a run is still seen to move: longer than its patience, and with progress in the list."""
    thread_bench.queue.set_live(0)
    [run_id] = thread_bench.submit({"count": 3200, "rate": 1000.0, "patience": 1.8})
    thread_bench.pump_until(lambda: thread_bench.queue.items[0].done > 500)
    assert thread_bench.listener.frames == []
    thread_bench.queue.set_live(20)
    thread_bench.pump_until_idle()
    assert thread_bench.detail(run_id).row.status is RunStatus.FINISHED, thread_bench.detail(run_id).row.reason
    assert len([frame for _, frame in thread_bench.listener.frames if frame.channels]) >= 3
    provenance = thread_bench.detail(run_id).provenance
    assert (provenance["live_view_hz"], provenance["live_view_hz_later"]) == (0, [20])
    [switched] = [event for event in thread_bench.detail(run_id).events if event.name == "live view"]
    assert switched.message == "The live view asked for 20 frames a second."


def test_live_frames_count_the_time_from_t0(thread_bench: Bench) -> None:
    [run_id] = thread_bench.submit({"count": 1000, "rate": 2000.0})
    thread_bench.pump_until_idle()
    begins = {frame.begin_ns for _, frame in thread_bench.listener.frames if frame.begin_ns is not None}
    [t0] = [event.data["begin_ns"] for event in thread_bench.detail(run_id).events if event.name == "T0"]
    assert begins == {t0}
    assert all(frame.t_ns >= frame.begin_ns for _, frame in thread_bench.listener.frames if frame.begin_ns is not None)


def test_a_command_reaches_the_run(thread_bench: Bench) -> None:
    [run_id] = thread_bench.submit({"count": 100, "fault": "commands"})
    thread_bench.pump_until(lambda: any(frame.total for _, frame in thread_bench.listener.frames))
    thread_bench.queue.command(run_id, "stop", {"station": "station 7"})
    thread_bench.pump_until_idle()
    [event] = [event for number, event in thread_bench.listener.events if number == run_id and event.name == "took"]
    assert event.data["command"] == {"name": "stop", "parameters": {"station": "station 7"}}


def test_a_flood_of_output_is_cut_and_no_turn_is_long(bench: Bench) -> None:
    [run_id] = bench.submit({"count": 3000, "rate": 3000.0, "fault": "talkative"})
    bench.pump_until_idle()
    assert bench.detail(run_id).row.status is RunStatus.FINISHED
    events = [event for _, event in bench.listener.events if event.name == "talk"]
    assert [event.data["index"] for event in events] == list(range(400)), "events are never lost"


@pytest.fixture
def commits(bench: Bench) -> list[str]:
    """The transactions that the bench's store commits: the window must not wait for a write of each run."""
    seen: list[str] = []
    bench.queue.store.writer._raw.set_trace_callback(
        lambda statement: seen.append(statement) if statement == "COMMIT" else None
    )
    return seen


def test_a_large_campaign_is_submitted_in_one_write(bench: Bench, commits: list[str]) -> None:
    bench.queue.pause()
    assert len(bench.queue.submit(campaign(bench.folder, *[QUICK] * 12, repeats=10))) == 120
    assert len(commits) == 1
    bench.queue.cancel_all()


def test_secrets_are_forgotten_with_the_last_run_that_needs_them(thread_bench: Bench) -> None:
    queue, secrets = thread_bench.queue, {"key": Secret("a passphrase")}
    done, removed, *cancelled = queue.submit(campaign(thread_bench.folder, {"count": 10}, repeats=4), secrets)
    queue.remove(removed)
    assert list(queue._secrets) == [done, *cancelled]
    thread_bench.pump_until(lambda: queue.items[0].state is QueueState.DONE)
    assert list(queue._secrets) == cancelled
    queue.cancel_all()
    thread_bench.pump_until_idle()
    assert queue._secrets == {}


def test_a_long_queue_is_taken_over_and_cancelled_in_one_write(bench: Bench, commits: list[str]) -> None:
    """400 runs of a console that died, and 400 of one's own."""
    prepared = campaign(bench.folder, *[QUICK] * 20, repeats=20)
    dead = bench.queue.store.add_campaign(prepared, DEAD, wall_now())
    commits.clear()
    bench.queue.recover()
    assert len(commits) == 1
    assert {bench.detail(run_id).row.status for run_id in (dead[0], dead[-1])} == {RunStatus.CANCELLED}

    bench.queue.pause()
    own = bench.queue.submit(prepared)
    changes = bench.listener.changes
    commits.clear()
    bench.queue.cancel_all()
    assert len(commits) == 1
    assert bench.queue.items == () and bench.listener.changes == changes + 1
    assert bench.listener.ends == [(run_id, RunStatus.CANCELLED) for run_id in own]
    assert bench.detail(own[-1]).row.reason == "Removed from the queue before it began."


def test_a_run_whose_figures_could_not_be_stored_is_kept_for_the_next_console(thread_bench: Bench) -> None:
    """A full disk in the moment of the evaluation: the samples stay, and are evaluated when there is room."""
    run_id, spool = _dead_run(thread_bench)
    full = "CREATE TRIGGER full BEFORE INSERT ON metric BEGIN SELECT RAISE(ABORT, 'no room'); END"
    with thread_bench.queue.store.writer.transaction() as connection:
        connection.exec_driver_sql(full)
    thread_bench.queue.recover()
    thread_bench.pump_until_idle()
    run = thread_bench.detail(run_id)
    assert run.row.status is RunStatus.INTERRUPTED and "no room" in run.row.reason
    assert run.row.metrics == {} and spool.exists()
    with thread_bench.queue.store.writer.transaction() as connection:
        connection.exec_driver_sql("DROP TRIGGER full")
    thread_bench.queue.recover()
    thread_bench.pump_until_idle()
    assert thread_bench.detail(run_id).row.metrics["counted"].value == 0 and not spool.exists()


def test_two_consoles_on_one_database(tmp_path: Path) -> None:
    """The second's run waits for the first's, each sees what the other has, and neither is disturbed."""
    first, second = Bench(tmp_path), Bench(tmp_path, in_threads=True)
    try:
        [long] = first.submit({"count": 2000, "rate": 1000.0})
        first.pump_until_counting()
        [late] = second.submit(QUICK)
        second.queue.recover()
        second.queue.pump()
        assert second.queue.busy and _states(second) == [(late, QueueState.WAITING)]
        waited = second.queue.waiting_for
        assert waited is not None and waited.console is not None
        assert (waited.run_id, waited.scenario, waited.shown) == (long, "scenario 1", RunStatus.RUNNING)
        assert (waited.console.pid, waited.console.host) == (os.getpid(), platform.node())
        first.queue.pump()
        assert [(item.run_id, item.shown) for item in first.queue.others] == [(late, RunStatus.QUEUED)]
        while first.queue.busy or second.queue.busy:
            first.queue.pump()
            second.queue.pump()
            time.sleep(0.01)
        assert first.detail(long).row.status is second.detail(late).row.status is RunStatus.FINISHED
        assert len(first.numbers(long)) == 2000
        first.queue.refresh_other_runs()
        assert first.queue.others == second.queue.others == ()
        assert first.queue.shown(second.detail(late).row) is RunStatus.FINISHED
    finally:
        second.close()
        first.close()


def test_consoles_that_start_at_once_run_one_after_the_other_and_take_turns(tmp_path: Path) -> None:
    first, second = (Bench(tmp_path, in_threads=True) for _ in range(2))
    try:
        mine, theirs = first.submit(QUICK, QUICK, QUICK), second.submit(QUICK, QUICK)
        first.queue.pump()
        second.queue.pump()
        while first.queue.busy or second.queue.busy:
            first.queue.pump()
            second.queue.pump()
            time.sleep(0.01)
        rows = [first.detail(run_id).row for run_id in (*mine, *theirs)]
    finally:
        second.close()
        first.close()
    assert {row.status for row in rows} == {RunStatus.FINISHED}
    rows.sort(key=lambda row: row.started or row.created)
    assert all(later.started >= earlier.ended for earlier, later in itertools.pairwise(rows))  # type: ignore[operator]
    assert rows[-1].id == mine[-1], "neither waits until the other has run everything"


def test_run_ended_by_another_process_shows_its_status(thread_bench: Bench) -> None:
    [run_id] = thread_bench.submit(QUICK)
    thread_bench.queue.store.run_ended(run_id, RunStatus.CANCELLED, "Another console did it.", wall_now())
    thread_bench.pump_until_idle()
    assert [(item.status, item.reason) for item in thread_bench.queue.items] == [
        (RunStatus.CANCELLED, "Another console did it.")
    ]


def test_a_run_of_a_trial_that_cannot_be_imported_fails(thread_bench: Bench) -> None:
    prepared = campaign(thread_bench.folder, QUICK)
    lost = [scenario.__class__(scenario.name, "practice.lost", scenario.parameters) for scenario in prepared.scenarios]
    [run_id] = thread_bench.queue.submit(prepared.__class__(**{**prepared.__dict__, "scenarios": tuple(lost)}))
    thread_bench.pump_until_idle()
    row = thread_bench.detail(run_id).row
    assert row.status is RunStatus.FAILED
    assert "practice.lost cannot be loaded: ModuleNotFoundError" in row.reason


def test_queued_runs_of_a_dead_console_are_cancelled(bench: Bench) -> None:
    run_ids = bench.queue.store.add_campaign(campaign(bench.folder, QUICK, QUICK), DEAD, wall_now())
    other = Bench(bench.folder)
    bench.queue.recover()
    other.queue.recover()
    other.close()
    assert not bench.queue.busy
    assert [bench.detail(run_id).row.status for run_id in run_ids] == [RunStatus.CANCELLED] * 2


def _dead_run(bench: Bench) -> tuple[int, Path]:
    """A run in progress whose process is dead, with events in its spool that are not stored."""
    [run_id] = bench.queue.store.add_campaign(campaign(bench.folder, QUICK), DEAD, wall_now())
    bench.queue.store.run_started(run_id, DEAD, {}, [], wall_now())
    spool = spool_directory(bench.database, bench.detail(run_id).row.uuid)
    make_spool(spool)
    writer = SpoolWriter(spool / "worker.spool")
    writer.event(Event(1, "worker", Level.INFO, "left", "What a dead worker left."))
    writer.close()
    return run_id, spool


def test_two_consoles_recover_the_same_run_at_once(bench: Bench) -> None:
    run_id, spool = _dead_run(bench)
    other = Bench(bench.folder)
    try:
        bench.queue.recover()
        other.queue.recover()
        other.queue.pump()
        bench.pump_until_idle()
        other.pump_until_idle()
    finally:
        other.close()
    run = bench.detail(run_id)
    assert run.row.status is RunStatus.INTERRUPTED
    assert run.row.reason == "Its process ended in mid-run; what it had measured until then is kept."
    assert [event.name for event in run.events] == ["left"] and run.row.metrics["counted"].value == 0
    assert not spool.exists()
    assert bench.listener.ends == other.listener.ends == [(run_id, RunStatus.INTERRUPTED)]


def test_leftover_spool_of_an_ended_run_is_imported(thread_bench: Bench) -> None:
    """A kill between the end of a run and the removal of its spool; an unknown run is left alone."""
    run_id, spool = _dead_run(thread_bench)
    thread_bench.queue.store.run_ended(run_id, RunStatus.FAILED, "Its own reason.", wall_now())
    unknown = spool_root(thread_bench.database) / "0b7a4c1e"
    unknown.mkdir()
    thread_bench.queue.recover()
    thread_bench.pump_until_idle()
    run = thread_bench.detail(run_id)
    assert (run.row.status, run.row.reason) == (RunStatus.FAILED, "Its own reason.")
    assert [event.name for event in run.events] == ["left"]
    assert not spool.exists() and unknown.exists()


def test_damaged_spool_is_set_aside_and_reported(thread_bench: Bench) -> None:
    run_id, spool = _dead_run(thread_bench)
    path = spool / "worker.spool"
    writer_end = path.read_bytes()
    path.write_bytes(writer_end + writer_end[-80:])
    thread_bench.queue.recover()
    thread_bench.pump_until_idle()
    run = thread_bench.detail(run_id)
    assert run.row.status is RunStatus.INTERRUPTED and "is damaged after byte" in run.row.reason
    assert [event.name for event in run.events] == ["left"], "events before the damage are kept"
    assert not spool.exists() and spool.with_suffix(".damaged").is_dir()
    thread_bench.queue.recover()
    assert not thread_bench.queue.busy


def test_close_cancels_running_and_waiting_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, in_threads=True)
    running, waiting = bench.submit(LONG, QUICK)
    bench.pump_until_counting()
    begun = time.monotonic()
    bench.close()
    assert time.monotonic() - begun < 6
    for run_id, reason in (
        (running, "Cancelled by the operator."),
        (waiting, "Removed from the queue before it began."),
    ):
        row = bench.detail(run_id).row
        assert (row.status, row.reason) == (RunStatus.CANCELLED, reason)
    assert bench.numbers(running)


@pytest.mark.serial
def test_a_consumer_that_does_not_read_slows_no_run_and_loses_no_message(bench: Bench) -> None:
    """A frozen window: the worker's pipe is full, the run continues at its pace, and later every event is there."""
    [run_id] = bench.queue.store.add_campaign(
        campaign(bench.folder, {"count": 6000, "rate": 3000.0, "roles": 2, "fault": "talkative"}),
        this_process(),
        wall_now(),
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "labconsole.engine.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert worker.stdin is not None and worker.stdout is not None
    task = {
        "t": "run",
        "database": str(bench.database),
        "run_id": run_id,
        "live_hz": 500.0,
        "secrets": {},
        "parent_pid": os.getpid(),
    }
    worker.stdin.write(json.dumps(task).encode() + b"\n")
    worker.stdin.flush()
    deadline = time.monotonic() + 40
    with Reader(bench.database) as reader:
        while not reader.run(run_id).row.status.final:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        run = reader.run(run_id)
    assert worker.poll() is None, "it waits until its last messages are taken"
    messages = [json.loads(line) for line in worker.stdout]
    assert worker.wait(10) == 0
    worker.stdin.close()
    worker.stdout.close()
    assert run.row.status is RunStatus.FINISHED and run.row.metrics["counted"].value == 12000
    spent_ns = [event.t_ns for event in run.events if event.name == "talk"]
    assert (max(spent_ns) - min(spent_ns)) / 1e9 < 4.5
    talk = [
        message["event"]["data"]["index"]
        for message in messages
        if message["t"] == "event" and message["event"]["name"] == "talk"
    ]
    assert talk == list(range(400))
    frames = [message for message in messages if message["t"] == "live"]
    gaps_ns = [after["t_ns"] - before["t_ns"] for before, after in itertools.pairwise(frames)]
    assert frames[-1]["done"] == 12000 and max(gaps_ns) > 0.5e9, "of the frames in between, only the newest waited"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_step_of_the_wall_clock_does_not_make_an_owner_dead() -> None:
    """The start of a process is taken from ticks since boot."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    assert this_process().started == ticks / os.sysconf("SC_CLK_TCK")
