"""The live view against the stored figures: its last values are those that `evaluate` computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.choices import Loop
from labconsole_amqp.series import WALL_OFFSET
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_ui.views.live.live_run import LiveRun
from tests.labconsole_amqp.embedded_broker import serving
from tests.labconsole_amqp.lab import Lab, Outcome

pytestmark = pytest.mark.usefixtures("lab_home")

BIN = 2 ** (1 / 64) - 1
"""The middle of a bin of the live histogram is at most this far (1.1 %) from any value in it."""


def stamp_error_ms(outcome: Outcome) -> tuple[float, float]:
    """How far the stamps of this run's messages are before their times of sending: (least, most), ms."""
    offset_ns = outcome.events_named(WALL_OFFSET)[0].data["offset_ns"]
    early = outcome.column("sent", "sent_ns") + offset_ns - outcome.column("sent", "stamp_ms") * 1_000_000
    return float(early.min()) / 1e6, float(early.max()) / 1e6


def throughput_with_warm_up(outcome: Outcome) -> float:
    """The stored throughput, msg/s; without warm-up and open loop, which the live view counts."""
    if not outcome.parameters.warm_up and outcome.parameters.loop is not Loop.BOTH:
        return outcome.figures["throughput"]
    received_ns = outcome.column("received", "received_ns")
    return (len(received_ns) - 1) / (int(received_ns.max() - received_ns.min()) / 1e9)


@pytest.mark.parametrize(
    "settings",
    (
        {"test": 1, "count": 5000},
        {"test": 4, "count": 100},
        {"test": 1, "count": 200, "warm_up": 50, "loop": "open", "rate": 1000.0},
        {"test": 1, "count": 500, "senders": 2, "numbered": True, "warm_up": 20},
        {"test": 1, "loop": "both", "rate": 300.0, "full_speed": 0.1, "open_loop": 0.3, "senders": 2, "numbered": True},
        {"test": 4, "loop": "both", "rate": 100.0, "full_speed": 0.1, "open_loop": 0.3},
    ),
)
def test_the_last_live_frame_agrees_with_the_stored_figures(settings: dict[str, Any], tmp_path: Path) -> None:
    outcome = Lab(tmp_path / "run").run(**settings)
    channels, figures = outcome.frame.channels, outcome.figures
    assert outcome.failure is None
    assert channels["sent"].count == figures["sent"]
    assert channels["received"].count == figures["received"] == outcome.frame.done
    both = settings.get("loop") == "both"
    assert outcome.frame.total == (0 if both else outcome.frame.done)
    prefix = "latency" if "loop" in settings else "queue_time"
    latency = channels[prefix]
    samples = {metric.name: metric.samples for metric in outcome.evaluation.metrics}
    assert latency.count == latency.histogram.count == samples[f"{prefix}_mean"]
    least, most = (0.0, 0.0) if "loop" in settings else stamp_error_ms(outcome)
    assert most < 500, "stamps are far from the times of sending"
    for name, fraction in ((f"{prefix}_p50", 0.5), (f"{prefix}_p99", 0.99)):
        shown_ns = latency.histogram.quantile(fraction)
        assert shown_ns is not None
        low, high = figures[name] + least, figures[name] + most
        assert low * (1 - BIN) - 0.001 <= shown_ns / 1e6 <= high * (1 + BIN) + 0.001
    assert latency.minimum is not None
    assert latency.maximum is not None
    assert figures[f"{prefix}_min"] + least - 0.001 <= latency.minimum / 1e6 <= figures[f"{prefix}_min"] + most + 0.001
    assert figures[f"{prefix}_max"] + least - 0.001 <= latency.maximum / 1e6 <= figures[f"{prefix}_max"] + most + 0.001
    bins = latency.histogram.bins
    shown_mean = sum(2 ** ((index + 0.5) / 32) * count for index, count in bins.items()) / latency.count / 1e6
    assert (
        (figures[f"{prefix}_mean"] + least) * (1 - BIN) <= shown_mean <= (figures[f"{prefix}_mean"] + most) * (1 + BIN)
    )
    live = LiveRun(AmqpTrial.live)
    live.add_frame(outcome.frame)
    assert live.progress == "received"
    assert live.figures("received").mean_rate == pytest.approx(throughput_with_warm_up(outcome), rel=1e-12)
    sent_ns = outcome.column("sent", "sent_ns")
    assert (channels["sent"].first_ns, channels["sent"].last_ns) == (sent_ns.min(), sent_ns.max())


def test_the_stamp_is_at_most_one_step_and_one_chunk_before_the_time_of_sending(tmp_path: Path) -> None:
    outcome = Lab(tmp_path / "run").run(test=4, count=100)
    offset_ns = outcome.events_named(WALL_OFFSET)[0].data["offset_ns"]
    early_ms = (outcome.column("sent", "sent_ns") + offset_ns) / 1e6 - outcome.column("sent", "stamp_ms")
    assert early_ms.min() > -0.5
    assert np.median(early_ms) < 2.0


def test_a_console_that_only_receives_shows_and_stores_the_same_messages_after_the_warm_up(tmp_path: Path) -> None:
    with serving(BrokerSettings(queues=("q",))) as broker:
        shared = {"broker": "external", "port": broker.plain.port, "address": "q", "test": 1, "numbered": True}
        shared |= {"senders": 2, "count": 50, "warm_up": 20}
        assert Lab(tmp_path / "sender").run(mode="sender", **shared).failure is None
        outcome = Lab(tmp_path / "receiver").run(mode="receiver", **shared)
    assert outcome.failure is None
    assert outcome.figures["received"] == 140
    latency = {metric.name: metric.samples for metric in outcome.evaluation.metrics}["queue_time_mean"]
    assert outcome.frame.channels["queue_time"].count == latency == 100


def test_without_live_view_a_run_gives_the_same_figures(tmp_path: Path) -> None:
    outcome = Lab(tmp_path / "run", live_hz=0.0).run(test=1, count=300, loop="open", rate=200.0, patience=1.0)
    assert outcome.failure is None
    assert outcome.figures["lost"] == 0
