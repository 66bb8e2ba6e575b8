"""Throughput and latency over time, drawn from synthetic samples."""

from __future__ import annotations

import numpy as np
import pytest

from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.curves import curves
from tests.labconsole_amqp.synthetic_samples import (
    MS,
    Tables,
    ended,
    event,
    received_table,
    sent_table,
)


def test_curves_show_throughput_and_latency_over_time_since_t0() -> None:
    sent_ns = 5_000 * MS + np.arange(2000) * MS
    sent = sent_table(sent_ns)
    received = received_table(sent_ns + 7 * MS, sent["stamp_ms"])
    tables = Tables({("sent", "sender-0"): sent, ("received", "receiver-0"): received})
    t0 = event("worker", "T0", begin_ns=4_000 * MS)
    lines = {(line.group, line.title): line for line in curves(AmqpParameters(), tables, [*ended(), t0])}
    assert set(lines) == {
        ("Throughput", "Sent"),
        ("Throughput", "Received"),
        ("Time in queue at full speed", "p50"),
        ("Time in queue at full speed", "p99"),
    }
    throughput = lines["Throughput", "Received"]
    busy = throughput.values[(throughput.t_s > 1.2) & (throughput.t_s < 2.8)]
    assert busy == pytest.approx(1000, rel=0.02)
    assert throughput.values[throughput.t_s < 0.9].max() == 0
    width_s = throughput.t_s[1] - throughput.t_s[0]
    assert throughput.values.sum() * width_s == pytest.approx(2000)
    assert lines["Time in queue at full speed", "p50"].values == pytest.approx(7.0)


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
    assert len(lines["Time in queue at full speed", "p99"].values) == len(received.values)


def test_the_queue_depth_is_drawn_from_t0_on() -> None:
    sent = sent_table(5_000 * MS + np.arange(100) * MS)
    depth = {"at_ns": np.array([4_900, 5_000, 5_100]) * MS, "messages": np.array([7, 0, 42])}
    tables = Tables({("sent", "sender-0"): sent, ("depth", "broker"): depth})
    t0 = event("worker", "T0", begin_ns=5_000 * MS)
    (line,) = (one for one in curves(AmqpParameters(), tables, [*ended(), t0]) if one.group == "Queue depth")
    assert (line.t_s.tolist(), line.values.tolist()) == ([0.0, pytest.approx(0.1)], [0.0, 42.0])
