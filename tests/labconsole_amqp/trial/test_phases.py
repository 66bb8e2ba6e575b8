"""Both phases in one run: messages that count for throughput and latency, and when neither is judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from labconsole.clock_comparison import AFTER, BEFORE, COMPARED, HOST_COMPARED, Offset
from labconsole.model.series import MACHINE
from labconsole.model.trial import Evaluation, Event, Metric
from labconsole_amqp.envelopes import message_envelope
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import OPEN_LOOP, WORK_DONE, Phase
from labconsole_amqp.trial.evaluation import evaluate
from labconsole_amqp.wire.sign_encrypt import seal
from tests.labconsole_amqp.lab import run
from tests.labconsole_amqp.synthetic_samples import (
    EPOCH_MS,
    MS,
    Tables,
    ended,
    event,
    figures,
    received_table,
    sent_table,
)

PARAMETERS = AmqpParameters.model_validate({"loop": "both", "rate": 100.0, "full_speed": 0.5, "open_loop": 1.0})
SPEED = 1000
"""Messages per second of the synthetic run at full speed."""


class Run:
    """A synthetic run: 0.3 s and 0.5 s at full speed, 0.2 s and 1 s at 100 per second from 2 s on; 5 ms of latency."""

    def __init__(self, *, speed: int = SPEED) -> None:
        fast = np.arange(0, 800 * MS, 1000 * MS // speed)
        due = 2000 * MS + np.arange(120) * 10 * MS
        self.sent = sent_table(np.concatenate((fast, due)))
        self.sent["sent_ns"] = self.sent["sent_ns"].copy()
        self.sent["phase"] = np.concatenate(
            (np.where(fast < 300 * MS, Phase.FULL_SPEED_WARM_UP, Phase.FULL_SPEED), np.repeat([3, 4], [20, 100]))
        ).astype(np.uint8)
        self.open_loop = self.sent["phase"] == Phase.OPEN_LOOP
        self.latency_ns = np.where(self.sent["phase"] > Phase.FULL_SPEED, 5 * MS, 50 * MS)
        self.outcome = np.zeros(len(self.sent["seq"]), np.uint8)
        self.arrived = np.ones(len(self.sent["seq"]), np.bool_)
        self.busy_from_ns = 10**15
        self.clocks: tuple[Event, ...] = ()
        """Events of clocks of hosts."""

    def evaluated(self, parameters: AmqpParameters = PARAMETERS) -> Evaluation:
        received_ns = (self.sent["intended_ns"] + self.latency_ns)[self.arrived]
        received = received_table(received_ns, self.sent["stamp_ms"][self.arrived])
        received["outcome"] = self.outcome[self.arrived]
        t_ns = np.arange(0, 4000 * MS, 100 * MS)
        busy = np.clip(t_ns - self.busy_from_ns, 0, None) // 2
        machine = {"t_ns": t_ns, "all_ns": t_ns * 2, "own_ns": t_ns // 2, "busy_ns": t_ns // 2 + busy}
        tables = Tables({("sent", "sender-0"): self.sent, ("received", "receiver-0"): received})
        tables.tables[MACHINE.name, "worker"] = machine | {"steal_ns": np.zeros_like(t_ns)}
        begins: list[Event] = [event("worker", "T0", begin_ns=0), event("worker", OPEN_LOOP, begin_ns=2000 * MS)]
        return evaluate(parameters, tables, [*begins, *ended(), *self.clocks])

    def not_judged(self, name: str, parameters: AmqpParameters = PARAMETERS) -> str:
        return {one.name: one.not_judged for one in self.evaluated(parameters).metrics}[name]


def test_throughput_is_of_the_full_speed_and_latency_of_the_open_loop() -> None:
    evaluation = Run().evaluated()
    found = figures(evaluation)
    assert found["throughput"] == pytest.approx(SPEED)
    assert found["send_rate"] == pytest.approx(SPEED)
    assert (found["latency_mean"], found["queue_time_mean"], found["offered_rate"]) == (5.0, 50.0, 100.0)
    samples = {one.name: one.samples for one in evaluation.metrics}
    assert (samples["throughput"], samples["latency_mean"], samples["queue_time_mean"]) == (500, 100, 500)
    assert not {"send_duration", "receive_duration"} & set(found), "the length of a phase is set, not measured"
    assert {one.name for one in evaluation.metrics if one.not_judged} == {
        "latency_p99", "latency_p999", "queue_time_p99", "queue_time_p999"
    }  # fmt: skip
    assert evaluation.disturbed == ""


def test_latency_counts_from_the_time_at_which_a_message_was_due() -> None:
    late = Run()
    late.sent["sent_ns"][late.open_loop] += 1 * MS
    assert figures(late.evaluated())["latency_mean"] == 5.0


def test_a_late_sender_is_not_judged_and_sealing_is_not_counted_as_lateness() -> None:
    late = Run()
    late.sent["sent_ns"][late.open_loop] += 3 * MS
    assert late.not_judged("latency_mean") == "the sender was late (p99 3 ms)"
    late.sent["sign_ns"][late.open_loop] = 1 * MS
    late.sent["encrypt_ns"][late.open_loop] = 1 * MS
    assert late.not_judged("latency_mean") == ""


def test_a_rate_that_was_not_achieved_is_not_judged() -> None:
    slow = Run()
    slow.sent["sent_ns"][slow.open_loop] += (np.arange(100) * 0.3 * MS).astype(np.int64)
    assert "the offered rate was not achieved (97% of it)" in slow.not_judged("latency_mean")


def test_lost_and_refused_messages_of_the_open_loop_leave_it_unjudged() -> None:
    lossy = Run()
    lossy.arrived[-1] = False
    lossy.outcome[-2] = 1
    assert lossy.not_judged("latency_mean") == "messages were lost or refused (2 of 100)"
    assert lossy.not_judged("throughput") == ""
    before = Run()
    before.arrived[400] = False
    assert before.not_judged("latency_mean") == "", "it was due at full speed"


def test_refused_messages_and_clocks_that_differ_leave_the_latency_of_a_console_that_only_receives_unjudged() -> None:
    for refused, stamp_before_ms, reason in (
        (0, 5, ""),
        (1, 5, "messages were refused (1)"),
        (0, -5, "latency is below zero: the clocks of both computers differ"),
    ):
        found = receiver_alone(refused, stamp_before_ms, compared(BEFORE, 1), compared(AFTER, 1))
        assert found.not_judged.startswith(reason)
        assert bool(found.not_judged) is bool(reason)


def compared(phase: str, uncertainty_ns: int, offset_ns: int = 0) -> Event:
    """The clocks were compared; the receiver's is ahead by `offset_ns`, and so is its wall clock."""
    offset = Offset(offset_ns, uncertainty_ns, 0, offset_ns, 0, 0, 8)
    return event("clock", COMPARED, phase=phase, **offset.to_json())


def receiver_alone(refused: int, stamp_before_ms: int, *clocks: Event, definitions: int = 4) -> Metric:
    """The mean latency of a console that only receives, of messages stamped so long before they were received."""
    values = {"mode": "receiver", "broker": "external", "loop": "open", "rate": 100.0, "count": 50}
    received = received_table((np.arange(50) * 10 + 100) * MS, np.arange(50) * 10 + 100 - stamp_before_ms)
    received["outcome"] = (np.arange(50) < refused).astype(np.uint8)
    tables = Tables({("received", "receiver-0"): received}, definitions)
    evaluation = evaluate(AmqpParameters.model_validate(values), tables, [*ended(), *clocks])
    return next(one for one in evaluation.metrics if one.name == "latency_mean")


def test_latency_between_consoles_is_judged_where_their_clocks_were_compared_well_enough() -> None:
    before, after = compared(BEFORE, MS // 2, 3 * MS), compared(AFTER, MS // 4, 3 * MS)
    well = receiver_alone(0, 8, before, after)
    assert (well.value, well.not_judged) == (5.0, ""), "8 ms by both clocks, of which one is 3 ms ahead"
    little = receiver_alone(0, 7, before, after).not_judged
    assert little == "the clock offset is uncertain by more than 10% of the latency (± 0.5 ms, median 4 ms)"
    assert receiver_alone(0, 8, before).not_judged == "the clocks were compared before the run only"
    assert receiver_alone(0, 8).not_judged == "the clocks of the two computers were not compared"
    assert receiver_alone(0, 8, definitions=3).not_judged == "", "as it was when that run was recorded"


def host_compared(host: str, uncertainty_ns: int, phase: str = BEFORE) -> Event:
    offset = Offset(10**15, uncertainty_ns, 0, 10**15, 0, 0, 8)
    return event("worker", HOST_COMPARED, host=host, phase=phase, clock_domain=host, **offset.to_json())


def test_latency_between_hosts_is_judged_where_the_two_worst_clocks_are_well_enough_known() -> None:
    run = Run()
    run.clocks = (
        host_compared("a", 100_000),
        host_compared("a", 300_000, "during"),
        host_compared("b", 200_000),
        host_compared("c", 50_000, AFTER),
    )
    found = figures(run.evaluated())
    assert (found["hosts"], found["clock_uncertainty"]) == (3, 500.0)
    assert run.not_judged("latency_mean") == "", "10 % of 5 ms"
    within = {one.name: one.uncertainty for one in run.evaluated().metrics if one.uncertainty}
    assert set(within.values()) == {0.5} and {"latency_p50", "queue_time_max"} <= set(within)
    assert "throughput" not in within and not any(one.uncertainty for one in Run().evaluated().metrics)
    run.clocks += (host_compared("b", 200_002, AFTER),)
    reason = "the clock offset is uncertain by more than 10% of the latency (± 0.5 ms, median 5 ms)"
    assert run.not_judged("latency_mean") == reason
    assert run.not_judged("throughput") == ""
    [clocks] = [one for one in run.evaluated().verdicts if one.name == "preflight: clock offset"]
    assert "a ± 0.300 ms, b ± 0.200 ms, c ± 0.050 ms" in clocks.reason
    assert not {"hosts", "clock_uncertainty"} & set(figures(Run().evaluated()))


def test_latencies_that_rise_during_the_run_are_not_judged() -> None:
    rising = Run()
    rising.latency_ns[rising.open_loop] = np.linspace(4 * MS, 9 * MS, 100).astype(np.int64)
    assert rising.not_judged("latency_mean").startswith("latency rose during the run (median 4.8")
    rising.latency_ns[rising.open_loop] = np.linspace(4 * MS, 5 * MS, 100).astype(np.int64)
    assert rising.not_judged("latency_mean") == ""


def test_a_rate_over_a_quarter_of_full_speed_is_not_judged() -> None:
    assert Run(speed=400).not_judged("latency_mean") == ""
    reason = "100 msg/s is over a quarter of full speed (250 msg/s)"
    assert Run(speed=250).not_judged("latency_mean") == reason


def test_a_busy_computer_leaves_its_phase_unjudged_and_the_run_to_be_repeated() -> None:
    busy = Run()
    busy.busy_from_ns = 1500 * MS
    evaluation = busy.evaluated()
    assert busy.not_judged("throughput") == ""
    reason = "the computer was busy (other processes took 25% of its CPU time)"
    assert busy.not_judged("latency_mean") == reason
    assert evaluation.disturbed == f"in the open loop {reason}"


def test_refused_messages_do_not_count_for_throughput_but_use_the_link() -> None:
    half = Run()
    half.outcome[1::2] = 1
    shaped = PARAMETERS.model_copy(update={"link_rate": 10.0})
    whole, found = figures(Run().evaluated(shaped)), figures(half.evaluated(shaped))
    assert found["throughput"] == pytest.approx(whole["throughput"] / 2, rel=0.01)
    assert found["link_use"] == whole["link_use"]


def test_throughput_of_a_burst_below_half_a_second_is_not_judged() -> None:
    sent = sent_table(np.arange(200) * MS // 1000)
    tables = Tables(
        {("sent", "sender-0"): sent, ("received", "receiver-0"): received_table(sent["sent_ns"], sent["stamp_ms"])}
    )
    [burst] = [one for one in evaluate(AmqpParameters(count=200), tables, ended()).metrics if one.name == "throughput"]
    assert burst.value == pytest.approx(1_000_000)
    assert burst.not_judged == "all within 0.199 ms: a burst below 0.5 s says little of a rate"
    opened = evaluate(AmqpParameters(count=200, loop="open"), tables, ended())
    [offered] = [one for one in opened.metrics if one.name == "throughput"]
    assert offered.not_judged.startswith("an open loop is not full speed")


def test_throughput_of_a_short_or_bursty_full_speed_phase_is_not_judged() -> None:
    assert Run().not_judged("throughput") == ""
    short = PARAMETERS.model_copy(update={"full_speed": 0.4})
    assert "a burst below 0.5 s says little of a rate" in Run().not_judged("throughput", short)
    held_up = Run()
    fast = held_up.sent["phase"] <= Phase.FULL_SPEED
    held_up.latency_ns[fast] = 850 * MS - held_up.sent["intended_ns"][fast] * 6 // 10
    assert held_up.not_judged("throughput").startswith("all within 200 ms: a burst below 0.5 s")


def test_both_phases_need_both_ends_in_this_console() -> None:
    with pytest.raises(ValidationError, match="both phases need both ends in this console"):
        AmqpParameters.model_validate({"loop": "both", "mode": "sender", "broker": "external"})


@pytest.mark.usefixtures("lab_home")
@pytest.mark.parametrize(
    "settings", ({"test": 1}, {"test": 4}, {"test": 1, "senders": 2, "receivers": 2, "numbered": True})
)
def test_a_real_run_empties_all_queues_between_its_phases(settings: dict[str, object], tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", loop="both", rate=200.0, full_speed=0.1, open_loop=0.2, **settings)
    assert outcome.failure is None
    senders = outcome.parameters.senders
    phases = outcome.column("sent", "phase")
    assert np.count_nonzero(phases == Phase.OPEN_LOOP) == 40 * senders
    assert np.count_nonzero(phases == Phase.OPEN_LOOP_WARM_UP) == 40 * senders
    [begun] = outcome.events_named(OPEN_LOOP)
    received_ns = np.sort(outcome.column("received", "received_ns"))
    assert received_ns[np.count_nonzero(phases <= Phase.FULL_SPEED) - 1] < begun.data["begin_ns"]
    assert sum(begun.data["first"]) == np.count_nonzero(phases <= Phase.FULL_SPEED)
    assert outcome.figures["lost"] == outcome.figures["unknown"] == 0
    assert set(outcome.verdicts.values()) == {"pass"}


@pytest.mark.usefixtures("lab_home")
def test_sealing_that_takes_longer_than_32_bits_of_nanoseconds_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message of 100 MB takes more than 2.1 s on a slow computer; here only the reported time is so long."""
    monkeypatch.setattr(
        message_envelope, "seal", lambda *keys: seal(*keys)._replace(sign_ns=3_000_000_000, encrypt_ns=2**32)
    )
    outcome = run(tmp_path / "run", test=4, count=3)
    assert outcome.failure is None
    assert outcome.figures["sign_time"] == 3_000_000.0
    assert outcome.column("sent", "encrypt_ns").tolist() == [2**32] * 3


@pytest.mark.parametrize("numbered", (False, True))
def test_arrivals_of_a_killed_sender_are_unrecorded_and_not_unknown(numbered: bool) -> None:
    """207 rows were written, 260 messages arrived."""
    sent_ns = np.arange(260) * MS
    numbers = (1 << 40) + np.arange(260) if numbered else None
    received = received_table(sent_ns + 2 * MS, EPOCH_MS + sent_ns // MS, numbers)
    tables = Tables({("sent", "sender-0"): sent_table(sent_ns[:207]), ("received", "receiver-0"): received})
    killed = [one for one in ended() if (one.source, one.name) != ("sender-0", WORK_DONE)]
    result = evaluate(AmqpParameters(count=1000, numbered=numbered), tables, killed)
    found = figures(result)
    assert (found["sent"], found["received"], found["unrecorded"]) == (207, 260, 53)
    assert (found["duplicated"], found["unknown"]) == (0, 0)
    [verdict] = [one for one in result.verdicts if one.name == "no message arrived twice or from elsewhere"]
    assert (verdict.result, verdict.reason) == (
        "unknown",
        "53 messages came of which the sender, which was killed, had not yet written rows.",
    )
    whole = figures(evaluate(AmqpParameters(count=1000, numbered=numbered), tables, ended()))
    assert whole["unknown"] == 53, "a sender that came to its end had written all rows"
