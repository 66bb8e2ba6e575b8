"""Figures from synthetic samples whose truth is known: joins, losses, duplicates, order, warm-up, latency, verdicts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole.trial import LINK_RATE, LINK_USE, Direction, Evaluation, Event, Level, Origin
from labconsole_amqp.curves import curves
from labconsole_amqp.envelope import message_number
from labconsole_amqp.evaluation import evaluate
from labconsole_amqp.metrics import METRICS
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.samples import CONNECTED, OUTCOMES, RECEIVED, SENT, WALL_OFFSET, WORK_DONE, End
from labconsole_amqp.sealing import Outcome
from labconsole_amqp.trial import AmqpTrial

MS = 1_000_000
EPOCH_MS = 1_700_000_000_000


@dataclass
class Tables:
    """`Samples` held in memory."""

    tables: dict[tuple[str, str], dict[str, NDArray[Any]]] = field(default_factory=dict)

    def roles(self, series: str) -> list[str]:
        return sorted(role for name, role in self.tables if name == series)

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        return self.tables[series, role]


def sent_table(sent_ns: NDArray[np.int64], first: int = 0, size: int = 282) -> dict[str, NDArray[Any]]:
    """Rows of one sender: stamps follow from the times."""
    count = len(sent_ns)
    table = {column.name: np.zeros(count, np.dtype(column.dtype)) for column in SENT.columns}
    table |= {"seq": np.arange(first, first + count), "intended_ns": sent_ns, "sent_ns": sent_ns}
    return table | {"stamp_ms": EPOCH_MS + sent_ns // MS, "size": np.full(count, size, np.int32)}


def received_table(
    received_ns: NDArray[np.int64], stamps_ms: NDArray[np.int64], numbers: NDArray[np.int64] | None = None
) -> dict[str, NDArray[Any]]:
    """Rows of one receiver, all good."""
    count = len(received_ns)
    table = {column.name: np.zeros(count, np.dtype(column.dtype)) for column in RECEIVED.columns}
    table |= {"received_ns": received_ns, "stamp_ms": stamps_ms, "size": np.full(count, 282, np.int32)}
    return table | {"number": np.full(count, -1) if numbers is None else numbers}


def event(source: str, name: str, **data: Any) -> Event:
    return Event(0, source, Level.INFO, name, "", data)


def ended(senders: int = 1, receivers: int = 1, end: End = End.COMPLETE, end_ns: int = 0) -> list[Event]:
    """The events of a run that came to its end."""
    events = []
    for index in range(senders):
        events.append(event(f"sender-{index}", CONNECTED, connect_ns=3 * MS, attach_ns=MS))
        events.append(event(f"sender-{index}", WORK_DONE, cpu_ns=2000, messages=2, end_ns=end_ns))
    for index in range(receivers):
        events.append(event(f"receiver-{index}", CONNECTED, connect_ns=4 * MS, attach_ns=MS))
        events.append(event(f"receiver-{index}", WORK_DONE, cpu_ns=6000, messages=2, end=end))
    return events


def figures(evaluation: Evaluation) -> dict[str, float]:
    return {metric.name: metric.value for metric in evaluation.metrics if not metric.labels}


def verdicts(evaluation: Evaluation) -> dict[str, str]:
    return {verdict.name: verdict.result for verdict in evaluation.verdicts}


@dataclass(frozen=True)
class Truth:
    """A synthetic run through a queue that may lose, repeat, reorder and add messages."""

    sent_ns: NDArray[np.int64]
    arrivals: NDArray[np.int64]  # sequence of each arrival, in order of arrival; -1: nobody sent it
    received_ns: NDArray[np.int64]

    @classmethod
    def draw(cls, seed: int, count: int = 400, *, lost: int, repeated: int, added: int) -> Truth:
        random = np.random.default_rng(seed)
        sent_ns = np.cumsum(random.integers(1, MS // 2, count))  # several messages in most milliseconds
        kept = np.sort(random.choice(count, count - lost, replace=False))
        twice = random.choice(kept, repeated, replace=False)
        arrivals = np.concatenate((kept, twice, np.full(added, -1)))
        arrivals = arrivals[np.argsort(np.concatenate((kept, twice, random.integers(0, count, added))), kind="stable")]
        received_ns = np.cumsum(random.integers(1, MS // 2, len(arrivals))) + int(sent_ns[-1])
        return cls(sent_ns, arrivals, received_ns)

    def samples(self) -> Tables:
        numbers = np.where(self.arrivals >= 0, message_number(0, 0) + self.arrivals, message_number(9, 0))
        stamps = np.where(self.arrivals >= 0, EPOCH_MS + self.sent_ns[self.arrivals] // MS, 5)
        received = received_table(self.received_ns, stamps, numbers)
        return Tables({("sent", "sender-0"): sent_table(self.sent_ns), ("received", "receiver-0"): received})


@pytest.mark.parametrize("seed", range(20))
def test_numbered_messages_are_joined_whatever_the_queue_did(seed: int) -> None:
    random = np.random.default_rng(seed)
    lost, repeated, added = (int(value) for value in random.integers(0, 30, 3))
    truth = Truth.draw(seed, lost=lost, repeated=repeated, added=added)
    shuffled = random.permutation(len(truth.arrivals))
    truth = Truth(truth.sent_ns, truth.arrivals[shuffled], truth.received_ns)
    result = evaluate(AmqpParameters(numbered=True, count=400), truth.samples(), ended())
    found = figures(result)
    assert (found["lost"], found["duplicated"], found["unknown"]) == (lost, repeated, added)
    first = {}
    for sequence, at_ns in zip(truth.arrivals.tolist(), truth.received_ns.tolist(), strict=True):
        first.setdefault(sequence, at_ns)
    first.pop(-1, None)
    latencies = np.sort([at_ns - truth.sent_ns[sequence] for sequence, at_ns in first.items()]) / 1e6
    assert found["latency_mean"] == pytest.approx(latencies.mean())
    assert found["latency_p99"] == latencies[int(np.ceil(0.99 * len(latencies))) - 1]
    assert (found["latency_min"], found["latency_max"]) == (latencies[0], latencies[-1])
    in_order = list(first)
    assert found["out_of_order"] == sum(
        sequence < max(in_order[:place]) for place, sequence in enumerate(in_order) if place
    )
    assert verdicts(result)["all messages arrived"] == ("fail" if lost else "pass")


@pytest.mark.parametrize("seed", range(20))
def test_messages_without_number_are_joined_by_stamp_and_rank(seed: int) -> None:
    truth = Truth.draw(seed, lost=0, repeated=0, added=int(seed))
    found = figures(evaluate(AmqpParameters(count=400), truth.samples(), ended()))
    assert (found["lost"], found["duplicated"], found["unknown"], found["out_of_order"]) == (0, 0, seed, 0)
    own = truth.arrivals >= 0
    latencies = truth.received_ns[own] - truth.sent_ns[truth.arrivals[own]]
    assert found["latency_mean"] == pytest.approx(latencies.mean() / 1e6)
    assert found["latency_max"] == latencies.max() / 1e6


@pytest.mark.parametrize("seed", range(20))
def test_counts_without_number_are_exact_even_when_messages_are_lost_and_repeated(seed: int) -> None:
    random = np.random.default_rng(seed)
    sent_ns = np.repeat(np.arange(100) * MS, 4) + np.tile(np.arange(4) * 1000, 100)  # four a millisecond
    lost = random.choice(np.arange(0, 100, 2), 5, replace=False) * 4  # one of four, in even milliseconds
    twice = random.choice(np.arange(1, 100, 2), 7, replace=False) * 4  # one of four, in odd ones
    arrivals = np.sort(np.concatenate((np.setdiff1d(np.arange(400), lost), twice)), kind="stable")
    truth = Truth(sent_ns, arrivals, np.arange(len(arrivals)) * 1000 + 200 * MS)
    found = figures(evaluate(AmqpParameters(count=400), truth.samples(), ended()))
    assert (found["lost"], found["duplicated"], found["unknown"]) == (5, 7, 0)


def test_a_refused_copy_does_not_push_the_genuine_message_out() -> None:
    sent = sent_table(np.array([10 * MS]))
    stamps = np.full(2, EPOCH_MS + 10)
    for numbers in (None, np.full(2, message_number(0, 0))):
        received = received_table(np.array([20 * MS, 30 * MS]), stamps, numbers)
        received["outcome"][0] = OUTCOMES.index(Outcome.SIGNATURE_WRONG)
        tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
        result = evaluate(AmqpParameters(test=3, numbered=numbers is not None, count=1), tables, ended())
        found = figures(result)
        assert (found["lost"], found["duplicated"], found["failed_verifications"]) == (0, 1, 1)
        assert found["latency_mean"] == 20.0
        labelled = [metric for metric in result.metrics if metric.labels.get("reason")]
        assert [(m.name, m.value, m.labels) for m in labelled] == [
            ("failed_verifications", 1, {"reason": "signature wrong"})
        ]
        assert verdicts(result)["all messages were accepted"] == "fail"


def test_a_refused_copy_does_not_take_the_rank_of_a_genuine_message_with_the_same_stamp() -> None:
    sent = sent_table(np.array([10 * MS, 10 * MS + 5]))
    received = received_table(np.array([20 * MS, 30 * MS, 40 * MS]), np.full(3, EPOCH_MS + 10))
    received["outcome"][0] = OUTCOMES.index(Outcome.SIGNATURE_WRONG)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    result = evaluate(AmqpParameters(test=3, count=2), tables, ended())
    assert (figures(result)["lost"], figures(result)["duplicated"]) == (0, 1)
    assert {metric.samples for metric in result.metrics if metric.name == "latency_mean"} == {2}


def test_good_messages_come_before_refused_ones_of_the_same_stamp_also_where_nothing_is_missing() -> None:
    sent = sent_table(np.array([10 * MS, 10 * MS + 5000]))
    received = received_table(np.array([20 * MS, 30 * MS]), np.full(2, EPOCH_MS + 10))
    received["outcome"][0] = OUTCOMES.index(Outcome.SIGNATURE_WRONG)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    assert figures(evaluate(AmqpParameters(test=3, count=2), tables, ended()))["latency_mean"] == 20.0


def test_several_senders_and_receivers_are_joined_by_sender_and_sequence() -> None:
    sent_ns = np.arange(50) * MS
    everything = np.array([message_number(sender, seq) for seq in range(50) for sender in (0, 1)])
    received_ns = np.repeat(sent_ns, 2) + 3 * MS
    tables = Tables({("sent", f"sender-{index}"): sent_table(sent_ns) for index in (0, 1)})
    for index in (0, 1):
        mine = slice(index, None, 2)
        stamps = EPOCH_MS + sent_ns // MS
        tables.tables["received", f"receiver-{index}"] = received_table(received_ns[mine], stamps, everything[mine])
    parameters = AmqpParameters(numbered=True, senders=2, receivers=2, count=50)
    found = figures(evaluate(parameters, tables, ended(2, 2, End.QUIET)))
    assert (found["sent"], found["received"], found["lost"], found["out_of_order"]) == (100, 100, 0, 0)
    assert found["latency_min"] == found["latency_max"] == 3.0


def test_forged_stamps_and_numbers_are_unknown_and_break_nothing() -> None:
    sent = sent_table(np.arange(10) * MS)
    wild = np.array([2**63 - 1, -(2**63), 0, -1, EPOCH_MS + (1 << 44)])
    stamps = np.concatenate((sent["stamp_ms"], wild))
    received = received_table(np.arange(15) * MS + 50 * MS, stamps)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    found = figures(evaluate(AmqpParameters(count=10), tables, ended()))
    assert (found["lost"], found["unknown"], found["duplicated"]) == (0, 5, 0)
    assert found["latency_max"] == 50.0


def test_the_source_s_figures_by_its_own_arithmetic() -> None:
    """Within Malaysia, small payload, Test 1: 10,000 messages in 12,384 - 5,175 ms are 1,387/s (printed: 1,386)."""
    sent = sent_table(np.linspace(0, 7_200 * MS, 10_000).astype(np.int64))
    received = received_table(np.linspace(500 * MS, 500 * MS + 7_017 * MS, 10_000).astype(np.int64), sent["stamp_ms"])
    events = ended(end_ns=7_209 * MS)
    events[0] = event("sender-0", CONNECTED, connect_ns=5_175 * MS, attach_ns=MS)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    found = figures(evaluate(AmqpParameters(), tables, events))
    assert found["send_duration"] == pytest.approx(12_384)
    assert found["send_rate"] == pytest.approx(1_387, abs=1)
    assert found["receive_duration"] == pytest.approx(7.017)
    assert found["throughput"] == pytest.approx(1_425.11, abs=0.1)
    assert found["receiver_link_time"] == pytest.approx(5.0)


def test_link_use_is_received_bits_over_the_stated_rate() -> None:
    """Within Malaysia, large payload, Test 4: 1,000 messages of 43,601 bytes in 189 s are 92 % of 2 Mbit/s."""
    assert LINK_RATE in AmqpParameters.model_fields
    sent = sent_table(np.linspace(0, 180_000 * MS, 1_000).astype(np.int64))
    received = received_table(np.linspace(0, 189_000 * MS, 1_000).astype(np.int64) + MS, sent["stamp_ms"])
    received["size"][:] = 43_601
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    shaped = evaluate(AmqpParameters(count=1_000, link_rate=2.0), tables, ended())
    assert figures(shaped)[LINK_USE] == pytest.approx(92.3, abs=0.05)
    (use,) = (metric for metric in shaped.metrics if metric.name == LINK_USE)
    assert (use.unit, use.direction, use.origin, use.samples) == ("%", Direction.NEUTRAL, Origin.MEASURED, 1_000)
    unknown = evaluate(AmqpParameters(count=1_000), tables, ended())
    assert LINK_USE not in figures(unknown)
    plausible = "the link rate can be as stated"
    assert plausible not in verdicts(unknown)
    assert verdicts(shaped)[plausible] == "pass"
    wrong = evaluate(AmqpParameters(count=1_000, link_rate=1.0), tables, ended())
    assert verdicts(wrong)[plausible] == "fail"
    # The first 100 messages are 60 bytes each: a warm-up that does not count.
    received["size"][:100] = 60
    warmed = figures(evaluate(AmqpParameters(count=900, warm_up=100, link_rate=2.0), tables, ended()))
    assert warmed[LINK_USE] == pytest.approx(92.3, abs=0.2)


def test_the_distribution_is_that_behind_the_percentiles() -> None:
    truth = Truth.draw(3, lost=20, repeated=10, added=10)
    parameters = AmqpParameters(numbered=True, count=380, warm_up=20)
    found = {metric.name: metric for metric in evaluate(parameters, truth.samples(), ended()).metrics}
    (latency,) = AmqpTrial().distributions(parameters, truth.samples(), ended())
    assert (latency.title, latency.unit) == ("Latency", "ms")
    assert len(latency.values) == found["latency_mean"].samples < 380
    assert latency.values.mean() == pytest.approx(found["latency_mean"].value)
    for kind in METRICS:
        if kind.quantile is not None:
            assert np.quantile(latency.values, kind.quantile, method="inverted_cdf") == found[kind.name].value
    assert [kind.quantile for kind in METRICS if kind.quantile] == [0.5, 0.9, 0.99, 0.999]
    assert AmqpTrial().distributions(parameters, Tables(), []) == ()


def test_the_warm_up_of_each_sender_does_not_count() -> None:
    sent_ns = np.arange(10) * MS
    numbers = np.array([message_number(sender, seq) for seq in range(10) for sender in (0, 1)])
    received_ns = np.repeat(sent_ns, 2) + np.where(np.arange(20) < 8, 100 * MS, 2 * MS)
    tables = Tables({("sent", f"sender-{index}"): sent_table(sent_ns) for index in (0, 1)})
    stamps = EPOCH_MS + np.repeat(sent_ns, 2) // MS
    tables.tables["received", "receiver-0"] = received_table(received_ns, stamps, numbers)
    parameters = AmqpParameters(numbered=True, senders=2, warm_up=4, count=6)
    result = evaluate(parameters, tables, ended(2))
    assert figures(result)["latency_max"] == 2.0
    assert {metric.samples for metric in result.metrics if metric.name in ("throughput", "latency_mean")} == {12}


def test_a_console_that_only_receives_tells_the_warm_up_of_several_senders_by_their_numbers() -> None:
    # The second sender is late: its warm-up comes after messages of the first one that count.
    numbers = np.array([message_number(0, seq) for seq in range(10)] + [message_number(1, seq) for seq in range(10)])
    received_ns = np.arange(20) * MS
    received = received_table(received_ns, EPOCH_MS + received_ns // MS, numbers)
    received["stamp_ms"][10:14] -= 1000
    parameters = AmqpParameters(
        mode="receiver", broker="external", numbered=True, senders=2, receivers=1, warm_up=4, count=6
    )
    events = [event("receiver-0", WALL_OFFSET, offset_ns=EPOCH_MS * MS), *ended(0)]
    result = evaluate(parameters, Tables({("received", "receiver-0"): received}), events)
    assert figures(result)["latency_max"] == 0.0
    assert {metric.samples for metric in result.metrics if metric.name in ("throughput", "latency_mean")} == {12}


def test_sending_figures_need_the_end_of_every_sender() -> None:
    tables = Tables({("sent", f"sender-{index}"): sent_table(np.arange(10) * MS) for index in (0, 1)})
    parameters = AmqpParameters(numbered=True, senders=2, count=10)
    slow = event("sender-1", CONNECTED, connect_ns=5 * MS, attach_ns=MS)
    events = [slow if e.source == "sender-1" and e.name == CONNECTED else e for e in ended(2, end_ns=10 * MS)]
    found = figures(evaluate(parameters, tables, events))
    assert (found["connect_time"], found["send_duration"], found["send_rate"]) == (4.0, 14.0, 2000.0)
    killed = [e for e in events if not (e.source == "sender-1" and e.name == WORK_DONE)]
    assert not {"send_duration", "send_rate"} & set(figures(evaluate(parameters, tables, killed)))


def test_open_loop_latency_counts_from_the_intended_time() -> None:
    sent = sent_table(np.full(3, 100 * MS))
    sent["intended_ns"] = np.array([0, 10, 20]) * MS
    received = received_table(np.array([101, 102, 103]) * MS, sent["stamp_ms"])
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    assert figures(evaluate(AmqpParameters(loop="open", rate=100, count=3), tables, ended()))["latency_mean"] == 92.0
    assert figures(evaluate(AmqpParameters(loop="closed", count=3), tables, ended()))["latency_mean"] == 2.0


@pytest.mark.parametrize(
    "events",
    (
        [],
        ended(end=End.STOPPED),
        [event("receiver-0", WORK_DONE, cpu_ns=1, messages=1, end=End.COMPLETE)],
    ),
)
def test_a_run_that_did_not_come_to_its_end_claims_no_loss(events: Sequence[Event]) -> None:
    truth = Truth.draw(1, lost=10, repeated=0, added=0)
    result = evaluate(AmqpParameters(count=400), truth.samples(), events)
    assert "lost" not in figures(result)
    assert verdicts(result)["all messages arrived"] == "unknown"
    assert figures(result)["received"] == 390


def test_a_console_that_only_receives_measures_from_the_stamps_and_its_wall_clock() -> None:
    received_ns = np.array([10, 12, 14]) * MS
    received = received_table(received_ns, EPOCH_MS + np.array([5, 7, 9]))
    parameters = AmqpParameters(mode="receiver", broker="external", count=4)
    events = [event("receiver-0", WALL_OFFSET, offset_ns=EPOCH_MS * MS), *ended(0, 1, End.QUIET)]
    result = evaluate(parameters, Tables({("received", "receiver-0"): received}), events)
    found = figures(result)
    assert (found["latency_mean"], found["lost"], found["received"]) == (5.0, 1, 3)
    assert not {"sent", "send_rate", "duplicated", "unknown", "connect_time"} & set(found)


def test_a_console_that_only_receives_counts_a_repeated_number_once() -> None:
    numbers = np.array([message_number(0, seq) for seq in (0, 1, 1)])
    received = received_table(np.arange(3) * MS, EPOCH_MS + np.arange(3), numbers)
    parameters = AmqpParameters(mode="receiver", broker="external", count=3, numbered=True)
    result = evaluate(parameters, Tables({("received", "receiver-0"): received}), ended(0, 1, End.QUIET))
    assert figures(result)["lost"] == 1


def test_a_console_that_only_sends_has_no_figures_of_the_other_end() -> None:
    parameters = AmqpParameters(mode="sender", broker="external", count=3)
    tables = Tables({("sent", "sender-0"): sent_table(np.arange(3) * MS)})
    result = evaluate(parameters, tables, ended(1, 0, end_ns=4 * MS))
    assert set(figures(result)) == {"connect_time", "send_duration", "send_rate", "sent", "sent_size"}
    assert result.verdicts == ()


def test_a_run_without_any_sample_gives_no_figures_and_no_pass() -> None:
    for events in ([], ended()):
        result = evaluate(AmqpParameters(), Tables(), events)
        assert "throughput" not in figures(result)
        assert verdicts(result)["all messages arrived"] == "unknown"
        assert curves(AmqpParameters(), Tables(), events) == ()


def test_time_of_cryptography_is_the_mean_over_messages_that_had_it() -> None:
    sent = sent_table(np.arange(2) * MS)
    sent["sign_ns"][:] = (300_000, 500_000)
    received = received_table(np.arange(2) * MS + 5 * MS, sent["stamp_ms"])
    received["verify_ns"][:] = (0, 20_000)  # the first was refused before its signature was looked at
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    found = figures(evaluate(AmqpParameters(test=3, count=2), tables, ended()))
    assert (found["sign_time"], found["verify_time"]) == (400.0, 20.0)
    assert not {"encrypt_time", "decrypt_time"} & set(found)


def test_a_million_messages_take_less_than_three_seconds_of_cpu_and_twice_gives_the_same() -> None:
    random = np.random.default_rng(1)
    count = 1_000_000
    sent_ns = np.cumsum(random.integers(1, 20_000, count))
    received_ns = sent_ns + random.integers(MS, 2 * MS)
    tables = Tables(
        {
            ("sent", "sender-0"): sent_table(sent_ns),
            ("received", "receiver-0"): received_table(received_ns, EPOCH_MS + sent_ns // MS),
        }
    )
    before = time.process_time()
    first = evaluate(AmqpParameters(count=count), tables, ended())
    assert time.process_time() - before < 3.0
    assert figures(first)["lost"] == 0
    assert evaluate(AmqpParameters(count=count), tables, ended()) == first


def test_curves_show_throughput_and_latency_over_time_since_t0() -> None:
    sent_ns = 5_000 * MS + np.arange(2000) * MS
    sent = sent_table(sent_ns)
    received = received_table(sent_ns + 7 * MS, sent["stamp_ms"])
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    t0 = event("worker", "T0", begin_ns=4_000 * MS)
    lines = {(line.group, line.title): line for line in curves(AmqpParameters(), tables, [*ended(), t0])}
    assert set(lines) == {("Throughput", "Sent"), ("Throughput", "Received"), ("Latency", "p50"), ("Latency", "p99")}
    throughput = lines["Throughput", "Received"]
    busy = throughput.values[(throughput.t_s > 1.2) & (throughput.t_s < 2.8)]
    assert busy == pytest.approx(1000, rel=0.02)
    assert throughput.values[throughput.t_s < 0.9].max() == 0
    width_s = throughput.t_s[1] - throughput.t_s[0]
    assert throughput.values.sum() * width_s == pytest.approx(2000)
    assert lines["Latency", "p50"].values == pytest.approx(7.0)


@pytest.mark.parametrize("count", [1, 80, 2_034, 40_071])
def test_a_steady_rate_is_drawn_steady_to_the_last_message(count: int) -> None:
    sent_ns = 5_000 * MS + np.arange(count) * MS
    sent = sent_table(sent_ns)
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received_table(sent_ns, sent["stamp_ms"])})
    t0 = event("worker", "T0", begin_ns=5_000 * MS)
    lines = {(line.group, line.title): line for line in curves(AmqpParameters(), tables, [*ended(), t0])}
    received = lines["Throughput", "Received"]
    assert received.values == pytest.approx(1000 if count > 100 else count / 0.1, rel=0.02)
    assert received.t_s[-1] <= max(0.1, count / 1000)
    assert len(lines["Latency", "p99"].values) == len(received.values)
