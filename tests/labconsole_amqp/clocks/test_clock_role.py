"""Two consoles that meet over the clock queues, or not: each run says what was compared, and none waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labconsole.clock_comparison import COMPARED
from labconsole.model.metrics import Verdict
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.clocks.clock_link import ClockLink
from labconsole_amqp.clocks.clock_role import NOT_COMPARED
from labconsole_amqp.link.connection import connect
from labconsole_amqp.link.sender import Sender
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab import Lab, Outcome
from tests.labconsole_amqp.link_transfer import send_all, template

QUEUES = ("q", "q.clock", "q.clock-reply")


@pytest.fixture
def clocked() -> Iterator[RunningBroker]:
    """A broker with clock queues."""
    with serving(BrokerSettings(queues=QUEUES)) as running:
        yield running


def settings(broker: RunningBroker, mode: str, **more: Any) -> dict[str, Any]:
    place = {"broker": "external", "port": broker.plain.port, "address": "q", "mode": mode}
    return {**place, "count": 60, "patience": 2.0, "wait_for_peer": 120.0, **more}


def both(
    broker: RunningBroker, folder: Path, labs: dict[str, Lab] | None = None, **more: dict[str, Any]
) -> dict[str, Outcome]:
    """Two consoles at a time; `more` are further parameters of each."""
    outcomes: dict[str, Outcome] = {}
    labs = {mode: Lab(folder / mode) for mode in ("receiver", "sender")} if labs is None else labs

    def play(mode: str) -> None:
        outcomes[mode] = labs[mode].run(**settings(broker, mode, **more.get(mode, {})))

    threads = [threading.Thread(target=play, args=(mode,)) for mode in labs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def check(outcome: Outcome, name: str) -> Verdict | None:
    return next((one for one in outcome.evaluation.verdicts if one.name == f"preflight: {name}"), None)


def test_the_receivers_console_takes_the_id_that_was_entered_at_the_senders(
    clocked: RunningBroker, tmp_path: Path
) -> None:
    outcomes = both(clocked, tmp_path, sender={"trial_id": "swim-7"})
    for outcome in outcomes.values():
        assert outcome.failure is None
        assert {event.data["trial"] for event in outcome.events_named(COMPARED)} == {"swim-7"}
        found = check(outcome, "trial id")
        assert found is not None and found.reason == "Both consoles run the trial swim-7."
        assert abs(outcome.figures["clock_offset"]) * 1e3 <= outcome.figures["clock_uncertainty"], "it is one clock"


def test_consoles_with_different_trial_ids_both_fail_before_t0_sends_anything(
    clocked: RunningBroker, tmp_path: Path
) -> None:
    outcomes = both(clocked, tmp_path, sender={"trial_id": "one"}, receiver={"trial_id": "two"})
    for mode, own, other in (("sender", "one", "two"), ("receiver", "two", "one")):
        outcome = outcomes[mode]
        found = check(outcome, "trial id")
        assert found is not None and found.result == "fail"
        assert outcome.failure == found.reason
        assert found.reason.startswith(f"This console runs the trial {own}, and the other one {other}: enter the same")
    assert "sent" not in outcomes["sender"].figures


def test_without_clock_queues_both_run_and_say_how_to_create_them(broker: RunningBroker, tmp_path: Path) -> None:
    outcomes = both(broker, tmp_path)
    for outcome in outcomes.values():
        assert outcome.failure is None
        found = check(outcome, "clock offset")
        assert found is not None and found.result == "unknown"
        assert "has no queue q.clock" in found.reason
        assert "Create the queues q.clock and q.clock-reply at the broker" in found.reason
    assert outcomes["receiver"].figures["received"] == 60


@pytest.mark.parametrize("mode", ["sender", "receiver"])
def test_an_end_whose_other_end_compares_no_clocks_runs_without(
    mode: str, clocked: RunningBroker, tmp_path: Path
) -> None:
    """As with the source's tool at the other end."""
    other = "receiver" if mode == "sender" else "sender"
    outcomes = both(clocked, tmp_path, **{mode: {"wait_for_peer": 3.0}, other: {"compare_clocks": False}})
    assert [outcome.failure for outcome in outcomes.values()] == [None, None]
    found = check(outcomes[mode], "clock offset")
    assert found is not None and found.result == "unknown"
    assert ("did not answer within 3 s" if mode == "sender" else "did not ask") in found.reason
    assert check(outcomes[other], "clock offset") is None


def test_what_runs_before_and_other_programs_left_in_the_clock_queues_does_no_harm(
    clocked: RunningBroker, tmp_path: Path
) -> None:
    with connect(clocked.plain) as connection:
        for queue in QUEUES[1:]:
            send_all(Sender(connection, queue), template(), 3)
    with connect(clocked.plain) as connection:
        link = ClockLink(connection, "q.clock", "q")
        old = {"session": "old", "trial": "old", "host": "elsewhere", "wall": 0}
        link.receive(0.2)
        for message in ({"kind": "ping", "n": 1}, {"kind": "gone"}, {"kind": "pong", "t2": "?"}):
            assert link.send({**old, **message})
        link.receive(0.2)
    outcomes = both(clocked, tmp_path, receiver={"trial_id": "new"}, sender={"trial_id": "new"})
    assert [outcome.failure for outcome in outcomes.values()] == [None, None]
    assert [len(outcome.events_named(COMPARED)) for outcome in outcomes.values()] == [2, 2]


def test_a_console_that_leaves_is_not_waited_for(clocked: RunningBroker, tmp_path: Path) -> None:
    def cancel(lab: Lab) -> None:
        lab.until("received", 20)
        lab.cancel()

    labs = {"receiver": Lab(tmp_path / "receiver", during=cancel), "sender": Lab(tmp_path / "sender")}
    slow = {"loop": "open", "rate": 40.0}
    began = time.monotonic()
    outcomes = both(clocked, tmp_path, labs, sender=slow, receiver=slow)
    assert time.monotonic() - began < 15
    assert outcomes["sender"].failure is None
    (event,) = outcomes["sender"].events_named(NOT_COMPARED)
    assert event.message.startswith("Clocks not compared after the run")
    assert check(outcomes["sender"], "clock offset") is not None
