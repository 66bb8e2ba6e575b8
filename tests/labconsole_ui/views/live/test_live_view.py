"""The live view: which run it shows, its figures, and its cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from labconsole.analysis.number_format import format_figure
from labconsole.engine.protocol import ChannelFrame, LiveFrame, LogHistogram, Usage
from labconsole.engine.queue import QueueItem, QueueState
from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.live.live_view import LiveView
from tests.labconsole_ui.slot_watch import least_turn_s
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")
T0 = 10**12


def frame(seconds: float, count: int, first_s: float = 0.0) -> LiveFrame:
    """`count` messages received in `seconds` since T0, the first of them at `first_s`."""
    histogram = LogHistogram({700: count})
    channels = {
        "sent": ChannelFrame(count + 5),
        "received": ChannelFrame(count, first_ns=T0 + int(first_s * 1e9), last_ns=T0 + int(seconds * 1e9)),
        "latency": ChannelFrame(count, 3_000_000, 4_000_000, histogram),
        "failed": ChannelFrame(0),
    }
    usage = {"sender-0": Usage(80.0, 60_000_000), "receiver-0": Usage(40.0, 50_000_000)}
    return LiveFrame(T0 + int(seconds * 1e9), T0, count, 10_000, channels, usage, "received")


@pytest.fixture
def run_id(stored: StoredRuns, bridge: QueueBridge, monkeypatch: pytest.MonkeyPatch) -> int:
    """A run that is in progress in the queue."""
    [run_id] = stored.queued(("Test 2, small", {"test": 2}))
    item = QueueItem(run_id, 1, "Demo", "Test 2, small", "amqp.messaging", 1, 1, QueueState.RUNNING, RunStatus.RUNNING)
    monkeypatch.setattr(type(bridge.queue), "items", property(lambda _: (item,)))
    return run_id


@pytest.fixture
def view(qtbot: QtBot, bridge: QueueBridge, plugins: Plugins, theme: Theme, run_id: int) -> Iterator[LiveView]:
    view = LiveView(bridge, plugins, theme)
    qtbot.addWidget(view)
    view.resize(1000, 700)
    view.show()
    yield view


def value(view: LiveView, caption: str) -> str:
    return view._strip.value(caption)


def test_figures_and_curves_follow_the_frames(view: LiveView, bridge: QueueBridge, run_id: int, qtbot: QtBot) -> None:
    for step in range(1, 41):
        bridge.live.emit(run_id, frame(step / 8, step * 100, first_s=1.0))
    qtbot.waitUntil(lambda: len(view.memory_plot.curves()) == 2)
    assert value(view, "Done") == "4,000 / 10,000"
    assert view._title.text() == f"Run {run_id}: Test 2, small"
    assert value(view, "Status") == "Running"
    assert value(view, "Rate now") == "800 msg/s"
    assert value(view, "Mean, first to last") == "1,000 msg/s"
    assert (value(view, "Sent"), value(view, "Received"), value(view, "Failed verifications")) == ("4,005", "", "")
    assert value(view, "Latency p50").endswith(" ms")
    assert [curve.title for curve in view.rate_plot.curves()] == ["Sent", "Received", "Failed verifications"]
    assert [curve.title for curve in view.latency_plot.curves()] == ["p50", "p90", "p99"]
    assert view.latency_plot.title == "Latency"
    assert [curve.title for curve in view.cpu_plot.curves()] == ["receiver-0", "sender-0"]
    assert "Final figures come from the stored samples" in view._note.text()


def test_a_finished_run_stays_until_the_next_one_starts(
    view: LiveView, bridge: QueueBridge, run_id: int, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(1, 11):
        bridge.live.emit(run_id, frame(step, step * 100))
    bridge.finished.emit(run_id, RunStatus.FINISHED)
    qtbot.waitUntil(lambda: value(view, "Status") == "Finished")
    assert value(view, "Done") == "1,000 / 10,000"
    assert (value(view, "Rate now"), value(view, "Mean, first to last")) == ("–", "99.90 msg/s")
    monkeypatch.setattr(type(bridge.queue), "items", ())  # the first one has finished, whenever the queue is read
    bridge.live.emit(run_id + 1, frame(1, 7))
    qtbot.waitUntil(lambda: value(view, "Done") == "7 / 10,000")
    assert view._title.text() == f"Run {run_id + 1}"
    qtbot.waitUntil(lambda: len(view.rate_plot.curves()) == 0)


def test_at_the_end_the_figures_are_those_of_the_stored_samples(
    view: LiveView, bridge: QueueBridge, stored: StoredRuns, run_id: int, qtbot: QtBot
) -> None:
    bridge.live.emit(run_id, frame(1, 900))
    stored.start(run_id)
    stored.sample(run_id, messages=1_000)
    stored.end(run_id)
    bridge.finished.emit(run_id, RunStatus.FINISHED)
    qtbot.waitUntil(lambda: value(view, "Message throughput") != "")
    with Reader(stored.path) as reader:
        metrics = reader.run(run_id).row.metrics
    assert value(view, "Message throughput") == format_figure(metrics["throughput"].value, "msg/s")
    assert value(view, "Latency p99") == format_figure(metrics["latency_p99"].value, "ms")
    assert value(view, "Mean, first to last") == ""
    assert view._note.text().startswith("Final figures, from the stored samples.")


def test_without_live_plots_no_frames_are_requested(
    view: LiveView, bridge: QueueBridge, run_id: int, qtbot: QtBot
) -> None:
    assert bridge.live_plots
    qtbot.keyClick(view.off_box, Qt.Key.Key_Space)
    assert not bridge.live_plots
    qtbot.waitUntil(lambda: view._note.text().startswith("No live figures"))
    bridge.set_live_plots(True)
    assert not view.off_box.isChecked()


def test_a_hidden_view_takes_frames_but_draws_nothing(
    view: LiveView, bridge: QueueBridge, run_id: int, qtbot: QtBot
) -> None:
    view._draw()  # its turns have not come when the view is hidden
    view.hide()
    bridge.live.emit(run_id, frame(1, 100))
    bridge.live.emit(run_id, frame(2, 900))
    qtbot.wait(200)
    assert view._title.text() == "No run yet"
    view.show()
    qtbot.waitUntil(lambda: value(view, "Done") == "900 / 10,000")


def test_an_hour_of_frames_is_drawn_without_blocking_the_window(
    view: LiveView, bridge: QueueBridge, run_id: int
) -> None:
    for step in range(1, 8 * 3600):
        view._receive(run_id, frame(step / 8, step * 100))
    draws = (view._draw_figures, view._draw_rates, view._draw_latencies, view._draw_processor, view._draw_memory)
    plots = (view.rate_plot, view.latency_plot, view.cpu_plot, view.memory_plot)

    def draw_all() -> None:
        for draw in (*draws, *(plot.redraw for plot in plots)):
            draw()

    assert least_turn_s(draw_all) < 0.05
