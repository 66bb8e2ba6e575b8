"""Soaks: drifts that are in the samples are found within their interval, others are not, and memory stays flat."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from labconsole.engine.recorder import make_spool
from labconsole.errors import UserError
from labconsole.model.series import MACHINE, RESOURCES
from labconsole.model.trial import Evaluation, Event, Verdict
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import RECONNECTED, WORK_DONE
from labconsole_amqp.trial import message_table
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.disk_space import disk_needed
from labconsole_amqp.wire.envelope import message_number
from tests.helpers.repeated_runs import repeated
from tests.labconsole_amqp.lab import Lab, ProcessLab, left_within
from tests.labconsole_amqp.synthetic_samples import (
    MS,
    Tables,
    Truth,
    ended,
    event,
    figures,
    received_table,
    sent_table,
    verdicts,
)

pytestmark = pytest.mark.usefixtures("lab_home")

TRIAL = AmqpTrial()
RATE, HOURS = 20.0, 1.0
T0_NS = 5_000 * MS
T0 = event("worker", "T0", begin_ns=T0_NS)
EVENTS = [*ended(), T0]
STEADY = {
    "latency": "no drift of latency",
    "memory": "no drift of memory",
    "cpu": "no drift of CPU time per message",
    "queue": "no drift of the queue's depth",
}


@dataclass
class Parts(Tables):
    """`Samples` in memory, stored in parts of some rows."""

    part_rows: int = 500

    def parts(
        self, series: str, role: str, numbers: Collection[int] | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        table = self.table(series, role)
        rows = len(next(iter(table.values())))
        for number, first in enumerate(range(0, rows, self.part_rows)):
            if numbers is None or number in numbers:
                yield {name: column[first : first + self.part_rows] for name, column in table.items()}


@dataclass(frozen=True)
class Soak:
    """A synthetic soak, of an hour at 20 msg/s if not stated otherwise, with drifts an hour."""

    latency_ms: float = 0.0
    memory_mb: float = 0.0
    cpu_us: float = 0.0
    queue: float = 0.0
    busy_s: tuple[float, float] = (0.0, 0.0)
    """While other processes keep the computer busy; latencies are tenfold then."""
    filling_mb: float = 0.0
    """By which memory grows in the first 170 s."""
    rate: float = RATE
    hours: float = HOURS
    seed: int = 1

    def samples(self) -> Parts:
        random = np.random.default_rng(self.seed)
        due_s = np.arange(int(self.rate * self.hours * 3600)) / self.rate
        sent_ns = T0_NS + (due_s * 1e9).astype(np.int64)
        latency_ms = (2.0 + self.latency_ms * due_s / 3600) * random.lognormal(0, 0.3, len(due_s))
        busy = (due_s >= self.busy_s[0]) & (due_s < self.busy_s[1])
        latency_ms[busy] *= 10
        sent = sent_table(sent_ns)
        received = received_table(sent_ns + (latency_ms * MS).astype(np.int64), sent["stamp_ms"])
        read_s = np.arange(0, self.hours * 3600, 0.5)
        t_ns = T0_NS + (read_s * 1e9).astype(np.int64)
        shared = {"t_ns": t_ns}
        grown_mb = self.memory_mb * read_s / 3600 + self.filling_mb * np.minimum(read_s / 170, 1)
        readings = {
            "cpu": (400 + self.cpu_us * read_s / 3600) * self.rate / 1e4 + random.normal(0, 0.05, len(read_s)),
            "rss": 60e6 + 1e6 * grown_mb + 4096 * random.integers(0, 20, len(read_s)),
        }
        other = {"cpu": np.full(len(read_s), 3.0), "rss": np.full(len(read_s), 40_000_000)}
        depth = {"at_ns": t_ns, "messages": np.round(self.queue * read_s / 3600 + random.integers(0, 3, len(read_s)))}
        outside = np.clip(read_s, *self.busy_s) - self.busy_s[0]
        machine = {"t_ns": t_ns, "all_ns": t_ns * 2, "own_ns": t_ns // 2, "busy_ns": t_ns // 2 + (outside * 1e9)}
        return Parts(
            {
                ("sent", "sender-0"): sent,
                ("received", "receiver-0"): received,
                (RESOURCES.name, "receiver-0"): shared | readings,
                (RESOURCES.name, "broker"): shared | other,
                (MACHINE.name, "worker"): machine | {"steal_ns": np.zeros_like(t_ns)},
                ("depth", "broker"): depth,
            }
        )

    def evaluate(self, events: Sequence[Event] = EVENTS) -> Evaluation:
        return TRIAL.evaluate(parameters(rate=self.rate, hours=self.hours), self.samples(), events)


def parameters(**settings: Any) -> AmqpParameters:
    return AmqpParameters(**{"loop": "soak", "rate": RATE, "hours": HOURS, **settings})


def verdict(evaluation: Evaluation, name: str) -> Verdict:
    return next(one for one in evaluation.verdicts if one.name == name)


def interval(evaluation: Evaluation, name: str, figure: str) -> tuple[float, float]:
    low, high = verdict(evaluation, name).evidence[figure]["interval"]
    return low, high


def test_a_soak_sends_at_its_rate_for_its_time() -> None:
    assert parameters(rate=500.0, hours=6 / 3600).per_sender == 3_000
    assert parameters(rate=1_000.0, hours=8, warm_up=5).per_sender == 28_800_005
    with pytest.raises(ValidationError, match="a soak needs both ends in this console"):
        parameters(mode="sender", broker="external")


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_drifts_all_stays_level(seed: int) -> None:
    evaluation = Soak(seed=seed).evaluate()
    assert set(verdicts(evaluation).values()) == {"pass"}, evaluation.verdicts
    low, high = interval(evaluation, STEADY["latency"], "latency_p50_drift")
    assert low <= 0 <= high
    assert not any(metric.not_judged for metric in evaluation.metrics if metric.name.endswith("_drift"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("drift_ms", (0.3, -0.3))
def test_a_drift_of_latency_is_found_within_its_interval(drift_ms: float, seed: int) -> None:
    evaluation = Soak(latency_ms=drift_ms, seed=seed).evaluate()
    low, high = interval(evaluation, STEADY["latency"], "latency_p50_drift")
    assert low - 0.01 <= drift_ms <= high + 0.01 and (low > 0 or high < 0)
    assert figures(evaluation)["latency_p50_drift"] == pytest.approx(drift_ms, abs=0.04)
    found = verdict(evaluation, STEADY["latency"])
    assert found.result == ("fail" if drift_ms > 0 else "pass"), "latency that falls is not worse"
    assert ("p50 grows by" if drift_ms > 0 else "p50 falls by") in found.reason
    assert verdicts(evaluation)[STEADY["memory"]] == "pass"


def test_memory_that_grows_is_found_in_its_process() -> None:
    evaluation = Soak(memory_mb=3.0).evaluate()
    by_role = {one.labels["role"]: one.value for one in evaluation.metrics if one.name == "memory_drift" and one.labels}
    assert by_role["receiver-0"] == pytest.approx(3.0, rel=0.02) == figures(evaluation)["memory_drift"]
    assert by_role["broker"] == 0
    low, high = interval(evaluation, STEADY["memory"], "memory_drift (receiver-0)")
    assert low <= 3.0 <= high
    found = verdict(evaluation, STEADY["memory"])
    assert found.result == "fail" and "receiver-0 grows by 3 MB/h" in found.reason
    assert "broker stays the same" in found.reason


def test_memory_that_fills_up_in_the_first_minutes_is_no_drift() -> None:
    evaluation = Soak(filling_mb=30.0, rate=200.0, hours=0.1).evaluate()
    assert verdict(evaluation, STEADY["memory"]).result == "pass", evaluation.verdicts
    assert figures(evaluation)["memory_drift"] == pytest.approx(0, abs=1.0)
    assert verdict(Soak(memory_mb=30.0, rate=200.0, hours=0.1).evaluate(), STEADY["memory"]).result == "fail"


def test_less_than_five_minutes_are_not_judged() -> None:
    found = verdict(Soak(memory_mb=600.0, rate=200.0, hours=0.065).evaluate(), STEADY["memory"])
    assert found.result == "unknown" and "the run is too short: after 3 minutes of warm-up" in found.reason


def test_of_several_queues_the_one_that_grows_is_found() -> None:
    samples = Soak(queue=400.0).samples()
    grows = samples.tables["depth", "broker"]
    level = grows | {"messages": np.zeros(len(grows["at_ns"]))}
    both = {name: np.stack((level[name], grows[name]), axis=1).ravel() for name in grows}
    samples.tables["depth", "broker"] = both | {"queue": np.tile((0, 1), len(grows["at_ns"]))}
    several = parameters(address="calm rising", senders=2, receivers=2, numbered=True, rate=RATE / 2)
    evaluation = TRIAL.evaluate(several, samples, [*ended(senders=2, receivers=2), T0])
    found = {
        one.labels["queue"]: one.value for one in evaluation.metrics if one.name == "queue_depth_drift" and one.labels
    }
    assert found == {"calm": 0.0, "rising": pytest.approx(400, rel=0.05)}
    assert verdict(evaluation, STEADY["queue"]).reason.startswith("The depth of rising grows by")


def test_less_than_a_megabyte_over_the_run_is_level() -> None:
    evaluation = Soak(memory_mb=0.8).evaluate()
    assert interval(evaluation, STEADY["memory"], "memory_drift (receiver-0)")[0] > 0
    assert verdicts(evaluation)[STEADY["memory"]] == "pass"


def test_cpu_time_and_queue_that_grow_are_found() -> None:
    evaluation = Soak(cpu_us=80.0, queue=400.0).evaluate()
    low, high = interval(evaluation, STEADY["cpu"], "cpu_per_message_drift (receiver-0)")
    assert low <= 80.0 <= high and figures(evaluation)["cpu_per_message_drift"] == pytest.approx(80, rel=0.05)
    assert figures(evaluation)["queue_depth_drift"] == pytest.approx(400, rel=0.05)
    found = verdicts(evaluation)
    assert (found[STEADY["cpu"]], found[STEADY["queue"]], found[STEADY["latency"]]) == ("fail", "fail", "pass")


def test_times_at_which_the_computer_was_busy_are_left_out_of_the_trend() -> None:
    evaluation = Soak(busy_s=(3000.0, 3600.0)).evaluate()
    assert verdicts(evaluation)[STEADY["latency"]] == "pass"
    (drift,) = (one for one in evaluation.metrics if one.name == "latency_p50_drift")
    assert drift.samples == 60 - 6 - 10, "without the warm-up of 6 minutes, and the 10 that were busy"
    assert abs(drift.value) < 0.04


def test_a_soak_on_a_computer_that_was_mostly_busy_is_not_judged() -> None:
    evaluation = Soak(latency_ms=1.0, busy_s=(1800.0, 3600.0)).evaluate()
    found = verdict(evaluation, STEADY["latency"])
    assert found.result == "unknown" and "the computer was busy in 30 of 60 parts of the run" in found.reason
    assert evaluation.disturbed == "", "hours are not repeated unasked"


@pytest.mark.parametrize("busy_s", [(205.0, 290.0), (200.0, 300.0)], ids=("few parts", "none to speak of"))
def test_a_drift_over_few_parts_that_were_not_busy_is_not_judged(busy_s: tuple[float, float]) -> None:
    evaluation = Soak(latency_ms=60.0, rate=400.0, hours=300 / 3600, busy_s=busy_s).evaluate()
    for name in (STEADY["latency"], STEADY["memory"], STEADY["cpu"], "no drift of throughput"):
        found = verdict(evaluation, name)
        assert found.result == "unknown" and "the computer was busy in" in found.reason, found


@pytest.mark.parametrize("warm_up", (10_000, 40_000))
def test_the_warm_up_of_a_perfect_soak_is_in_no_part(warm_up: int) -> None:
    samples = Soak().samples()
    evaluation = TRIAL.evaluate(parameters(warm_up=warm_up), samples, EVENTS)
    assert set(verdicts(evaluation).values()) == {"pass"}, evaluation.verdicts
    low, high = interval(evaluation, "no drift of throughput", "throughput_drift")
    assert low <= 0 <= high


def test_a_soak_that_ends_within_its_warm_up_is_not_judged() -> None:
    evaluation = TRIAL.evaluate(parameters(warm_up=100_000), Soak().samples(), EVENTS)
    found = verdict(evaluation, "the rate was kept")
    assert found.result == "unknown" and "ended within its warm-up of 100,000 messages" in found.reason


def test_a_soak_that_lost_a_connection_is_not_judged() -> None:
    evaluation = Soak(latency_ms=1.0).evaluate([*EVENTS, event("sender-0", RECONNECTED, took_ns=MS)])
    found = verdict(evaluation, STEADY["latency"])
    assert (found.result, found.reason) == ("unknown", "Not judged: a connection was lost, 1 times in all.")


@pytest.mark.parametrize("numbered", (False, True))
@pytest.mark.parametrize("seed", range(4))
def test_blocks_add_up_to_the_figures_of_the_whole_run(
    numbered: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses, repeats, unknown messages and percentiles, in blocks of few messages, against all of them at once."""
    monkeypatch.setattr(message_table, "BLOCK_ROWS", 40)
    truth = Truth.draw(seed, lost=20, repeated=30, added=10)
    samples = Parts(truth.samples().tables, part_rows=30)
    settings = {"rate": 4_000.0, "numbered": numbered}
    whole = figures(TRIAL.evaluate(AmqpParameters(loop="open", **settings), samples, ended()))
    soak = figures(TRIAL.evaluate(parameters(**settings), samples, ended()))
    exact = {"sent", "received", "lost", "duplicated", "unknown", "out_of_order", "failed_verifications"}
    assert {name: soak[name] for name in exact} == {name: whole[name] for name in exact}
    assert soak["lost"] >= 20 or not numbered
    close = {name for name in whole if name.startswith("latency")} | {"throughput", "sent_size", "received_size"}
    for name in close:
        assert soak[name] == pytest.approx(whole[name], rel=0.0015), name


def test_messages_that_a_killed_sender_had_not_recorded_are_not_unknown_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_table, "BLOCK_ROWS", 40)
    tables = Truth.draw(1, lost=0, repeated=5, added=0).samples().tables
    tables["sent", "sender-0"] = {name: column[:-50] for name, column in tables["sent", "sender-0"].items()}
    killed = [one for one in ended() if (one.source, one.name) != ("sender-0", WORK_DONE)]
    found = figures(TRIAL.evaluate(parameters(rate=4_000.0, numbered=True), Parts(tables, part_rows=30), killed))
    assert found["unknown"] == 0 and found["unrecorded"] + found["duplicated"] == 55
    assert found["unrecorded"] >= 50 and found["received"] == 405


def test_messages_that_overtake_those_of_another_block_are_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_table, "BLOCK_ROWS", 10)
    count = 3_000
    order = np.arange(count).reshape(-1, 2)[:, ::-1].ravel()
    order = np.concatenate(([0], order[:-1] + 1))  # 0, 2, 1, 4, 3 ...: the swapped pairs are on both sides of limits
    order[-1] = count - 1
    sent = sent_table(T0_NS + np.arange(count) * MS)
    numbers = message_number(0, 0) + order
    received = received_table(T0_NS + MS * 10_000 + np.arange(count) * MS, sent["stamp_ms"][order], numbers)
    samples = Parts({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    sequence = order[np.sort(np.unique(order, return_index=True)[1])]
    expected = int(np.count_nonzero(sequence < np.maximum.accumulate(sequence)))
    evaluation = TRIAL.evaluate(parameters(rate=1_000.0, numbered=True), samples, EVENTS)
    assert figures(evaluation)["out_of_order"] == expected > 1_000


def test_curves_have_a_point_for_each_part_and_the_trend() -> None:
    lines = {(one.group, one.title): one for one in TRIAL.curves(parameters(), Soak(latency_ms=1.0).samples(), EVENTS)}
    p50, line = lines["Latency", "p50"], lines["Latency", "Trend of p50"]
    assert len(p50.values) == 60 and (p50.t_s[0], p50.t_s[-1]) == (30.0, 3570.0)
    assert np.interp(p50.t_s, line.t_s, line.values) == pytest.approx(p50.values, abs=0.15)
    assert lines["Throughput", "Received"].values == pytest.approx(RATE, rel=0.01)
    assert lines["CPU time per message", "receiver-0"].values == pytest.approx(400, rel=0.02)
    assert ("Latency", "Trend of p99") in lines and ("Queue depth", "In the queue") in lines
    (latency,) = TRIAL.distributions(parameters(), Soak().samples(), EVENTS)
    assert np.median(latency.values) == pytest.approx(2.0, rel=0.01) and len(latency.values) == 72_000


@pytest.mark.parametrize(
    ("lab_type", "measured"),
    [
        (Lab, {"worker"}),
        pytest.param(ProcessLab, {"sender-0", "receiver-0", "broker", "worker"}, marks=pytest.mark.nightly),
    ],
    ids=["threads", "processes"],
)
def test_a_few_seconds_of_soak(lab_type: type[Lab], measured: set[str], tmp_path: Path) -> None:
    """Nightly: alone finds that the memory of a role's process is not read during a soak."""
    settings = {"test": 2, "loop": "soak", "rate": 50.0, "hours": 4 / 3600, "payload": "small"}
    settings |= {"numbered": True, "reconnect": 5.0}
    # Where the computer is so busy that memory is read in few parts of the run, there is no verdict on it.
    outcome = repeated(
        lambda number: lab_type(tmp_path / str(number), during=read_usage).run(**settings),
        lambda run: left_within(late_ms=60)(run) and STEADY["memory"] in run.verdicts,
    )
    assert outcome.failure is None, outcome.failure
    assert (outcome.figures["sent"], outcome.figures["lost"]) == (200, 0)
    assert outcome.figures["latency_mean"] > 0
    assert (np.diff(outcome.column("sent", "intended_ns")) == 20_000_000).all()
    assert outcome.verdicts["the rate was kept"] == "pass"
    assert outcome.verdicts[STEADY["memory"]] == "unknown", "it is too short"
    assert outcome.labelled("memory_drift").keys() == measured
    assert all("the run is too short" in one.not_judged for one in outcome.labelled("memory_drift").values())
    live = outcome.frame.channels["latency"]
    assert (live.count, outcome.frame.total) == (200, 200)
    assert live.minimum == pytest.approx(outcome.figures["latency_min"] * MS)
    # Without the readings of processes, of which this run has 25 times as many as others.
    taken = sum(file.stat().st_size for file in outcome.folder.glob("*.spool") if file.stem != "usage")
    needed = disk_needed(outcome.parameters)
    assert 0.3 * needed.during_run < taken < needed.during_run


def read_usage(lab: Lab) -> None:
    """What the worker does twice a second, fifty times a second."""
    while not lab.wait(0.02):
        lab.context.usage.read()


def test_a_soak_that_was_stopped_kept_its_rate_for_the_time_it_ran() -> None:
    evaluation = TRIAL.evaluate(parameters(hours=8.0), Soak().samples(), EVENTS)
    kept = verdict(evaluation, "the rate was kept")
    assert kept.result == "pass" and kept.evidence["share"] == pytest.approx(1.0, abs=0.001)


def test_a_soak_that_is_stopped_is_evaluated_for_the_time_it_ran(tmp_path: Path) -> None:
    def cancel(lab: Lab) -> None:
        lab.until("received", 300)
        lab.cancel()

    settings = {"test": 1, "loop": "soak", "rate": 200.0, "hours": 1.0, "payload": "small"}
    outcome = repeated(lambda number: Lab(tmp_path / str(number), during=cancel).run(**settings), left_within(60))
    assert outcome.figures["received"] == outcome.figures["sent"] < 3_000
    assert outcome.figures["lost"] == 0, "what was sent has arrived before the receiver stopped"
    assert outcome.verdicts["all messages arrived"] == outcome.verdicts["the rate was kept"] == "pass"
    lines = TRIAL.curves(outcome.parameters, outcome.samples, outcome.samples.events)
    assert max(one.t_s[-1] for one in lines) < 3


def test_a_soak_whose_sender_is_killed_keeps_what_was_recorded(tmp_path: Path) -> None:
    def kill(lab: Lab) -> None:
        lab.until("received", 600)
        os.kill(lab.pid("sender-0"), signal.SIGKILL)

    outcome = ProcessLab(tmp_path / "run", during=kill).run(
        test=1, loop="soak", rate=500.0, hours=1.0, payload="small", numbered=True, patience=1.0
    )
    assert outcome.failure is not None
    figures = outcome.figures
    assert figures["sent"] > 300 and figures["unknown"] == figures["duplicated"] == 0
    assert figures["received"] == figures["sent"] + figures.get("unrecorded", 0)
    assert outcome.verdicts["all messages arrived"] == "unknown"
    assert not outcome.events_named(WORK_DONE) or "lost" not in figures


def test_a_run_that_needs_more_disk_than_is_free_does_not_start(tmp_path: Path) -> None:
    needed = TRIAL.disk_bytes(parameters(rate=1_000_000.0, hours=720))
    with pytest.raises(UserError, match=r"needs up to [\d,]+ GB on the disk .* free: free space there"):
        make_spool(tmp_path / "spool", needed)
    make_spool(tmp_path / "small", TRIAL.disk_bytes(parameters()))
    assert TRIAL.disk_bytes(AmqpParameters(loop="sweep")) == 0


@pytest.mark.nightly
def test_minutes_of_soak_stay_level(tmp_path: Path) -> None:
    settings = {"test": 2, "loop": "soak", "rate": 1_000.0, "hours": 0.1, "numbered": True, "reconnect": 10.0}
    outcome = ProcessLab(tmp_path / "run", during=read_usage).run(**settings)
    assert outcome.failure is None, outcome.failure
    assert (outcome.figures["sent"], outcome.figures["lost"]) == (360_000, 0)
    assert outcome.verdicts[STEADY["memory"]] == "pass", outcome.evaluation.verdicts


@pytest.mark.nightly
def test_the_evaluation_of_millions_takes_no_more_memory(tmp_path: Path) -> None:
    from tests.benchmarks.amqp_soak import fill, measured

    peaks = []
    for hours in (0.25, 1.0):
        fill(tmp_path / f"{hours}.db", hours, 1_000.0)
        peaks.append(max(measured(tmp_path / f"{hours}.db", what)["peak"] for what in ("evaluate", "curves")))
    assert peaks[1] < peaks[0] + 50e6
