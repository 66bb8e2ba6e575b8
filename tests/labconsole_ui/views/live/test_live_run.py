"""Values of live frames: rates and percentiles of a second, cumulative figures, missing frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labconsole.engine.protocol import ChannelFrame, LiveFrame, LogHistogram, Usage
from labconsole.model.series import TIME_PROGRESS, LiveChannel
from labconsole_ui.views.live.growing_curves import GrowingCurve
from labconsole_ui.views.live.live_run import LiveRun

CHANNELS = (LiveChannel("received", "Received", "msg"), LiveChannel("latency", "Latency", "ns"))
T0 = 1_000_000_000_000


def frames(seconds: float, rate: float, latencies: np.ndarray, hz: int = 8) -> list[LiveFrame]:
    """Cumulative frames of a steady run that observes `latencies` one after another."""
    made, histogram, done = [], LogHistogram(), 0
    for step in range(1, int(seconds * hz) + 1):
        count = int(rate * step / hz)
        part = latencies[done:count]
        histogram = histogram.plus(LogHistogram())
        histogram.add(part)
        done = count
        seen = latencies[:count]
        channels = {
            "received": ChannelFrame(count, first_ns=T0, last_ns=T0 + step * 10**9 // hz),
            "latency": ChannelFrame(count, int(seen.min()), int(seen.max()), histogram),
        }
        made.append(
            LiveFrame(T0 + step * 10**9 // hz, T0, count, 100_000, channels, {"receiver-0": Usage(50.0, 60_000_000)})
        )
    return made


@pytest.fixture
def latencies() -> np.ndarray:
    return (np.random.default_rng(8).gamma(4.0, 500_000, 40_000)).astype(np.int64)


def test_cumulative_figures_are_those_of_all_observations(latencies: np.ndarray) -> None:
    live = LiveRun(CHANNELS)
    for frame in frames(10, 4_000, latencies):
        live.add_frame(frame)
    figures = live.figures("latency")
    assert (figures.count, figures.minimum, figures.maximum) == (40_000, latencies.min(), latencies.max())
    assert figures.mean == pytest.approx(latencies.mean(), rel=0.011)
    for name, fraction in (("p50", 0.5), ("p99", 0.99)):
        assert figures.quantiles[name] == pytest.approx(np.quantile(latencies, fraction), rel=0.011)
    received = live.figures("received")
    assert received.rate == pytest.approx(4_000)
    assert received.mean_rate == pytest.approx(4_000, rel=1e-4)


def test_curves_cover_the_last_second_only(latencies: np.ndarray) -> None:
    latencies[20_000:] *= 10
    live = LiveRun(CHANNELS)
    for frame in frames(10, 4_000, latencies):
        live.add_frame(frame)
    t_s, p50 = live.latencies["latency"]["p50"].points(T0)
    assert t_s[-1] == pytest.approx(10.0)
    slow = np.quantile(latencies[-4_000:], 0.5)
    fast = np.quantile(latencies[:4_000], 0.5)
    assert p50[-1] == pytest.approx(slow, rel=0.02)
    assert p50[np.searchsorted(t_s, 4.9)] == pytest.approx(fast, rel=0.1)
    _, rates = live.rates["received"].points(T0)
    assert rates == pytest.approx(np.full(len(rates), 4_000.0))


def test_missing_frames_change_no_cumulative_figure(latencies: np.ndarray) -> None:
    every = frames(10, 4_000, latencies)
    some = [frame for index, frame in enumerate(every) if index % 7 in (0, 3) or frame is every[-1]]
    whole, gappy = LiveRun(CHANNELS), LiveRun(CHANNELS)
    for frame in every:
        whole.add_frame(frame)
    for frame in some:
        gappy.add_frame(frame)
    assert gappy.figures("latency") == whole.figures("latency")
    assert gappy.figures("received").mean_rate == whole.figures("received").mean_rate


def test_a_frame_that_comes_late_is_dropped(latencies: np.ndarray) -> None:
    first, second, *_ = frames(1, 4_000, latencies)
    live = LiveRun(CHANNELS)
    live.add_frame(second)
    live.add_frame(first)
    assert live.latest is second


def test_the_mean_does_not_sink_while_roles_drain(latencies: np.ndarray) -> None:
    *_, last = frames(10, 4_000, latencies)
    live = LiveRun(CHANNELS)
    for frame in frames(10, 4_000, latencies):
        live.add_frame(frame)
    for more in range(1, 40):
        later = last.t_ns + more * 125_000_000
        live.add_frame(replace(last, t_ns=later))
    assert live.figures("received").mean_rate == pytest.approx(4_000, rel=1e-4)
    assert live.figures("received").rate == 0


def test_the_progress_is_shown_by_the_channel_that_the_frame_names() -> None:
    live = LiveRun((LiveChannel("sent", "Sent", "msg"), LiveChannel("received", "Received", "msg")))
    live.add_frame(LiveFrame(T0 + 10**9, T0, 0, 100, {"sent": ChannelFrame(60)}, {}, "received"))
    assert live.progress is None, "nothing is received yet"
    channels = {"sent": ChannelFrame(100), "received": ChannelFrame(100)}
    live.add_frame(LiveFrame(T0 + 2 * 10**9, T0, 100, 100, channels, {}, "received"))
    assert live.progress == "received"


@pytest.mark.parametrize(("progress", "leading"), [("received", "received"), (TIME_PROGRESS.name, "sent")])
def test_a_run_that_time_limits_shows_the_rate_of_its_first_channel(progress: str, leading: str) -> None:
    live = LiveRun((LiveChannel("sent", "Sent", "msg"), LiveChannel("received", "Received", "msg"), TIME_PROGRESS))
    channels = {name: ChannelFrame(100) for name in ("sent", "received", TIME_PROGRESS.name)}
    live.add_frame(LiveFrame(T0 + 10**9, T0, 1, 20, channels, {}, progress))
    assert (live.progress, live.leading) == (progress, leading)


def test_the_mean_runs_from_the_first_count_to_the_last() -> None:
    live = LiveRun(CHANNELS)
    channels = {"received": ChannelFrame(100, first_ns=T0 + 3 * 10**9, last_ns=T0 + 5 * 10**9)}
    live.add_frame(LiveFrame(T0 + 9 * 10**9, T0, 100, 100, channels, {}, "received"))
    assert live.figures("received").mean_rate == 49.5
    one = {"received": ChannelFrame(1, first_ns=T0 + 3, last_ns=T0 + 3)}
    live.add_frame(LiveFrame(T0 + 10**10, T0, 1, 100, one, {}, "received"))
    assert live.figures("received").mean_rate is None


def test_before_t0_only_resources_are_drawn() -> None:
    live = LiveRun(CHANNELS)
    for step in range(3):
        live.add_frame(LiveFrame(T0 + step * 10**8, None, 0, 0, {}, {"broker": Usage(10.0, 1_000)}))
    assert live.rates == {} and live.latencies == {}
    t_s, cpu = live.cpu["broker"].points(live.zero_ns)
    assert t_s.tolist() == [0.0, 0.1, 0.2] and cpu.tolist() == [10.0] * 3


def test_a_process_that_ended_leaves_a_gap(latencies: np.ndarray) -> None:
    live = LiveRun(CHANNELS)
    live.add_frame(LiveFrame(T0, T0, 0, 0, {}, {"sender-0": Usage(10.0, 1_000)}))
    live.add_frame(LiveFrame(T0 + 1, T0, 0, 0, {}, {}))
    _, cpu = live.cpu["sender-0"].points(T0)
    assert cpu[0] == 10.0 and np.isnan(cpu[1])


def test_a_channel_that_the_trial_does_not_declare_has_its_name_as_title(latencies: np.ndarray) -> None:
    live = LiveRun(())
    for frame in frames(2, 4_000, latencies):
        live.add_frame(frame)
    assert live.names(observed=False) == ["received"] and live.names(observed=True) == ["latency"]
    assert live.channel("received").title == "received"


def test_a_growing_curve_keeps_all_points() -> None:
    curve = GrowingCurve()
    for step in range(1_000):
        curve.append(step * 10**9, step / 2)
    t_s, values = curve.points(0)
    assert t_s.tolist() == list(range(1_000)) and values.tolist() == [step / 2 for step in range(1_000)]


def test_channels_for_a_panel_alone_are_counted_but_not_shown() -> None:
    live = LiveRun((*CHANNELS, LiveChannel("inner", "Inner", "msg", shown=False)))
    live.add_frame(LiveFrame(T0 + 1, T0, 1, 1, {"received": ChannelFrame(1), "inner": ChannelFrame(2)}, {}))
    assert live.names(observed=False) == ["received", "inner"] and live.shown(observed=False) == ["received"]
    assert live.figures("inner").count == 2
