"""Commands into a run: validated, recorded and delivered to the trial or to a role, or refused in one sentence."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from labconsole.engine.run_commands import DELIVERED, REFUSED
from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.model.series import Event, Level
from labconsole.model.trial_command import TrialCommand
from labconsole.store.records import RunStatus
from tests.helpers.practice import STATIONS, Bench
from tests.helpers.signals import frozen

CHANGED = "rate changed"


def start(bench: Bench, **parameters: Any) -> int:
    """Start a run of two stations that lasts until it is stopped, and wait until they send."""
    [run_id] = bench.submit({}, kind=STATIONS, **{"stations": 2, "duration": 600.0, **parameters})
    bench.pump_until(lambda: any(frame.done for _, frame in bench.listener.frames))
    return run_id


def events(bench: Bench, *names: str) -> list[Event]:
    """What the queue reported by these names, in order."""
    return [event for _, event in bench.listener.events if event.name in names]


def refusals(bench: Bench) -> list[str]:
    return [event.message for event in events(bench, REFUSED)]


def stop(bench: Bench, run_id: int) -> None:
    """Stop the run by its own command, which its `run` takes while it waits."""
    bench.queue.command(run_id, "stop", {})
    bench.pump_until_idle()
    assert bench.detail(run_id).row.status is RunStatus.FINISHED, bench.detail(run_id).row.reason


def test_a_command_reaches_its_role_and_is_recorded_before(thread_bench: Bench) -> None:
    bench = thread_bench
    run_id = start(bench)
    assert bench.queue.roles(run_id) == ("station-0", "station-1")
    bench.queue.command(run_id, "set_rate", {"rate": 7}, role="station-1")
    bench.pump_until(
        lambda: any(frame.by_role.gauges["rate"].get("station-1") == 7 for _, frame in bench.listener.frames[-1:])
    )
    assert bench.listener.frames[-1][1].by_role.gauges["rate"]["station-0"] == 100.0
    stop(bench, run_id)
    stored = [event for event in bench.detail(run_id).events if event.name in (DELIVERED, CHANGED)]
    sent, changed, _ = sorted(stored, key=lambda event: event.t_ns)
    assert (sent.name, sent.source, sent.level) == (DELIVERED, "worker", Level.INFO)
    assert sent.message == "Set rate (rate 7.0): sent to station-1 by the operator (window)."
    assert sent.data == {
        "command": "set_rate",
        "parameters": {"rate": 7.0},
        "role": "station-1",
        "sent_by": "window",
    }
    assert (changed.source, changed.data["command"]) == ("station-1", {"name": "set_rate", "parameters": {"rate": 7.0}})
    assert bench.detail(run_id).row.metrics["changes"].value == 1


def test_a_trial_that_waits_takes_its_commands_in_order(thread_bench: Bench) -> None:
    run_id = start(thread_bench)
    for number in range(5):
        thread_bench.queue.command(run_id, "note", {"text": f"note {number}"}, sent_by="terminal")
    thread_bench.pump_until(lambda: len(events(thread_bench, "noted")) == 5)
    assert [event.message for event in events(thread_bench, "noted")] == [f"note {number}" for number in range(5)]
    first = events(thread_bench, DELIVERED)[0]
    assert (
        first.message == "Add note (text note 0): sent to the run by the operator (terminal)."
        and first.data["role"] == ""
    )
    stop(thread_bench, run_id)


def test_command_sent_before_the_trial_waits_is_delivered_when_it_waits(thread_bench: Bench) -> None:
    run_id = start(thread_bench, fault="deaf trial")
    thread_bench.queue.command(run_id, "note", {"text": "early"})
    thread_bench.pump_until(lambda: bool(events(thread_bench, "noted")))
    stop(thread_bench, run_id)


def test_what_is_not_permitted_is_refused_in_one_sentence_and_the_run_continues(thread_bench: Bench) -> None:
    run_id = start(thread_bench, fault="first ends")
    thread_bench.queue.command(run_id, "explode", {})
    thread_bench.queue.command(run_id, "set_rate", {"rate": 0}, role="station-1")
    thread_bench.queue.command(run_id, "set_rate", {"speed": 1}, role="station-1")
    thread_bench.queue.command(run_id, "set_rate", {}, role="station-9")
    thread_bench.queue.command(run_id, "set_rate", {})
    thread_bench.queue.command(run_id, "note", {}, role="station-1")
    thread_bench.queue.command(run_id, "note", {"text": "odd"})
    thread_bench.queue.command(run_id, "set_rate", {}, role="station-0")
    thread_bench.pump_until(lambda: len(refusals(thread_bench)) == 8)
    assert refusals(thread_bench) == [
        "The command explode is not declared: add it to `commands` of the trial.",
        "Set rate was not delivered: rate: Input should be greater than 0.",
        "Set rate was not delivered: speed: Extra inputs are not permitted.",
        "Set rate cannot be sent to station-9: choose one of station-*.",
        "Set rate cannot be sent to the run: choose one of station-*.",
        "Add note is sent to the run, and not to a role such as station-1.",
        "Add note was not delivered: TypeError: an odd note.",
        "Role station-0 ended before Set rate arrived: it was not delivered.",
    ]
    assert not events(thread_bench, DELIVERED)
    assert all(event.level is Level.WARNING for event in events(thread_bench, REFUSED))
    stop(thread_bench, run_id)
    stored = [event for event in thread_bench.detail(run_id).events if event.name == REFUSED]
    assert len(stored) == 8 and stored[0].data == {"command": "explode", "role": "", "sent_by": "window"}


def test_a_run_that_has_ended_accepts_no_command(thread_bench: Bench) -> None:
    run_id = start(thread_bench)
    stop(thread_bench, run_id)
    for other in (run_id, run_id + 1):
        with pytest.raises(UserError, match=f"Run {other} is not in progress: the command stop was not sent."):
            thread_bench.queue.command(other, "stop", {})
    assert thread_bench.queue.roles(run_id) == ()


def test_a_run_that_is_being_evaluated_accepts_no_command(thread_bench: Bench) -> None:
    [run_id] = thread_bench.submit({"fault": "evaluate slowly"})
    thread_bench.pump_until(lambda: thread_bench.queue._job is not None and thread_bench.queue._job.commands.over)
    with pytest.raises(UserError, match=f"Run {run_id} is not in progress: the command stop was not sent."):
        thread_bench.queue.command(run_id, "stop", {})
    thread_bench.pump_until_idle()


def test_command_that_a_failing_run_did_not_receive_is_reported(bench: Bench) -> None:
    run_id = start(bench, stations=1)
    assert bench.queue._job is not None
    pid = bench.queue._job.worker.pid
    with frozen(pid):
        bench.queue.command(run_id, "note", {"text": "in vain"})
        os.killpg(pid, signal.SIGKILL)
    bench.pump_until_idle()
    assert refusals(bench) == [f"Run {run_id} ended before the command note arrived: it was not delivered."]
    assert bench.detail(run_id).row.status is RunStatus.INTERRUPTED


class _Login(BaseModel):
    user: str = ""
    password: SecretStr = SecretStr("")


class _Plain(Parameters):
    word: SecretStr | None = None


class _Marked(Parameters):
    key: str = Field("", json_schema_extra={"kind": "secret-file"})


class _Nested(Parameters):
    logins: tuple[_Login, ...] = ()


@pytest.mark.parametrize(("model", "name"), [(_Plain, "word"), (_Marked, "key"), (_Nested, "logins.password")])
def test_a_secret_is_refused_as_a_parameter_where_the_command_is_declared(model: type[Parameters], name: str) -> None:
    with pytest.raises(ValueError, match=f"command login: {name} is a secret"):
        TrialCommand("login", "Log in", "Logs in.", model)
