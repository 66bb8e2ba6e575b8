"""Runs whose message sizes are drawn: every test and envelope, phases, refusals, and the figures of sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.run_payloads import load_payloads
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.wire.envelope import MessageParts, encode, message_number
from tests.labconsole_amqp.cut_relay import cut_relay
from tests.labconsole_amqp.embedded_broker import serving
from tests.labconsole_amqp.lab import Lab, Outcome, run
from tests.labconsole_amqp.other_clients import inject
from tests.labconsole_amqp.run_judgements import all_good, as_drawn, drawn_sizes, refusals

pytestmark = pytest.mark.usefixtures("lab_home")

UNIFORM: dict[str, Any] = {"message_sizes": "uniform", "smallest_size": 10, "largest_size": 3_000}
LOG_NORMAL: dict[str, Any] = {"message_sizes": "log-normal", "median_size": 300, "size_spread": 3.0}
MIX: dict[str, Any] = {"message_sizes": "mix"}


CLOSED: dict[str, Any] = {}
OPEN: dict[str, Any] = {"loop": "open", "rate": 200.0, "count": 100}
BOTH: dict[str, Any] = {"loop": "both", "full_speed": 0.2, "open_loop": 0.4, "rate": 50.0}
SWEEP: dict[str, Any] = {"loop": "sweep", "rate": 10.0, "step": 0.5, "p99_limit": 0.1, "senders": 2}
"""No rate keeps the limit, so that it has four steps."""


FURTHER = (
    (1, LOG_NORMAL, CLOSED),
    (2, UNIFORM, CLOSED),
    (2, LOG_NORMAL, SWEEP),
    (3, MIX, CLOSED),
    (4, LOG_NORMAL, BOTH),
)


@pytest.mark.parametrize(
    ("test", "sizes", "loop"),
    [
        (1, UNIFORM, CLOSED),
        (1, MIX, CLOSED),
        (2, LOG_NORMAL, OPEN),
        (2, MIX, BOTH),
        (3, UNIFORM, CLOSED),
        (3, LOG_NORMAL, CLOSED),
        (4, UNIFORM, OPEN),
        (4, MIX, SWEEP),
        *(pytest.param(*values, marks=pytest.mark.nightly) for values in FURTHER),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else value.get("message_sizes", value.get("loop", "closed")),
)
def test_each_distribution_and_loop_of_each_test(
    test: int, sizes: dict[str, Any], loop: dict[str, Any], tmp_path: Path
) -> None:
    """Most pairs of values, not all combinations; each envelope has drawn sizes in `test_envelopes_in_runs`.

    Nightly: further pairs of values that CI tests in other pairs.
    """
    if loop is CLOSED:
        count = 1_000 if test < 3 else 60
        as_drawn(run(tmp_path / "run", test=test, count=count, **sizes), count)
        return
    outcome = run(tmp_path / "run", test=test, envelope="compact", numbered=True, **loop, **sizes)
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    assert [figures[name] for name in ("lost", "unknown", "duplicated", "failed_verifications")] == [0] * 4
    for role, expected in drawn_sizes(outcome).items():
        assert outcome.samples.table("sent", role)["size"].tolist() == expected


@pytest.mark.parametrize("test", (1, 3))
def test_each_sender_has_an_order_of_its_own_over_several_queues(test: int, tmp_path: Path) -> None:
    two = {"address": "a b", "senders": 2, "receivers": 2, "numbered": True, "count": 200}
    outcome = Lab(tmp_path / "run").run(test=test, **two, **UNIFORM)
    assert outcome.failure is None, outcome.failure
    assert (outcome.figures["lost"], outcome.figures["failed_verifications"]) == (0, 0)
    first, second = drawn_sizes(outcome).values()
    assert first != second
    for role, sizes in drawn_sizes(outcome).items():
        assert outcome.samples.table("sent", role)["size"].tolist() == sizes


def test_messages_that_are_sent_again_have_their_sizes(tmp_path: Path) -> None:
    with serving(BrokerSettings(queues=("q",))) as broker, cut_relay(broker.plain.port) as relay:

        def cut(lab: Lab) -> None:
            lab.until("received", 500)
            relay.cut()

        place = {"broker": "external", "port": relay.port, "address": "q", "numbered": True, "reconnect": 20.0}
        lab = Lab(tmp_path / "run", during=cut)
        outcome = lab.run(test=1, count=2_000, loop="open", rate=1_000.0, **place, **UNIFORM)
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    assert (figures["lost"], figures["unknown"], figures["failed_verifications"]) == (0, 0, 0)
    assert figures["reconnects"] >= 1


@pytest.mark.parametrize(
    ("numbered", "refused"), [(True, {"payload differs": 2}), (False, {"payload differs": 1})], ids=("numbered", "not")
)
def test_a_payload_that_is_not_the_messages_is_refused(numbered: bool, refused: dict[str, int], tmp_path: Path) -> None:
    def forge(lab: Lab) -> None:
        bodies = load_payloads(lab.trial.parameters(numbered=numbered, **UNIFORM)).bodies  # type: ignore[call-arg]
        payloads = load_payloads(lab.trial.parameters(numbered=numbered, **UNIFORM))  # type: ignore[call-arg]
        number = message_number(0, 5)
        other = next(body for body in bodies if body != payloads.of_message(number))
        changed = payloads.of_message(number)[:-1] + b"?"
        message_id = number if numbered else None
        inject(lab, [encode(MessageParts(body), message_id=message_id) for body in (other, changed)], tls=False)

    lab = Lab(tmp_path / "run", during=forge)
    outcome = lab.run(test=1, count=60, loop="open", rate=30.0, numbered=numbered, **UNIFORM)
    assert outcome.failure is None, outcome.failure
    assert refusals(outcome) == refused
    assert outcome.frame.channels["failed"].count == sum(refused.values())


def test_two_consoles_draw_the_same_sizes_and_another_seed_is_refused(tmp_path: Path) -> None:
    outcomes: dict[str, Outcome] = {}
    with serving(BrokerSettings(queues=("q",))) as broker:
        shared = {"broker": "external", "port": broker.plain.port, "address": "q", "numbered": True, "count": 60}
        for name, mode, seed in (("a", "sender", 7), ("b", "receiver", 7), ("c", "sender", 7), ("d", "receiver", 8)):
            more = {"mode": mode, "size_seed": seed, "compare_clocks": False, "patience": 2.0}
            outcomes[name] = run(tmp_path / name, **shared, **more, **UNIFORM)
    assert [outcome.failure for outcome in outcomes.values()] == [None] * 4
    assert (outcomes["b"].figures["received"], outcomes["b"].figures["failed_verifications"]) == (60, 0)
    assert outcomes["d"].figures["failed_verifications"] > 50


def test_the_largest_message_is_checked_before_the_run(tmp_path: Path) -> None:
    settings = BrokerSettings(queues=("q",), limits=QueueLimits(max_message_size=2_000))
    with serving(settings) as broker:
        place = {"broker": "external", "port": broker.plain.port, "address": "q", "count": 20}
        refused = run(tmp_path / "refused", **place, **UNIFORM)
        passed = run(tmp_path / "passed", **place, **UNIFORM | {"largest_size": 1_500})
    assert "takes at most 2,000" in str(refused.failure)
    all_good(passed, 20)
    (check,) = (one for one in passed.evaluation.verdicts if one.name == "preflight: message size")
    assert check.reason.startswith("Messages have up to 1,5")


def test_sizes_are_in_the_table_of_messages_and_in_the_distributions(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=1, count=300, **MIX)
    given = outcome.parameters, outcome.samples, outcome.samples.events
    (table,) = AmqpTrial().derived(*given)
    rows = np.concatenate([part["size"] for part in table.parts()])
    assert rows.tolist() == outcome.column("sent", "size").tolist()
    sizes = {one.title: one.values for one in AmqpTrial().distributions(*given)}["Message size"]
    assert set(sizes) == {56.0, 282.0, 42_756.0}
    plain = run(tmp_path / "plain", test=1, count=20)
    shown = AmqpTrial().distributions(plain.parameters, plain.samples, plain.samples.events)
    assert [one.title for one in shown] == ["Time in queue at full speed"]
    assert "sent_size_p99" not in plain.figures


def test_a_mix_keeps_the_hashes_of_its_payloads(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", count=5, **MIX | {"share_fpl_tac": 0})
    lines = outcome.artefacts["payload.sha256"].decode().splitlines()
    assert [line.split("  ")[1] for line in lines] == ["small", "fpl-fixm"]
