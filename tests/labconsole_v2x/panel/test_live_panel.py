"""The live trial's page in a real window: runs by click, stations on map and in list, commands, plots and packets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from labconsole.analysis.number_format import NO_FIGURE
from labconsole.engine.queue import QueueState
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.navigation import Navigation
from labconsole_ui.views.run.run_view import RunView
from labconsole_v2x.live.series import SENT_CHANNEL
from labconsole_v2x.panel.live_panel import PACKETS, SCENARIO, STATIONS, LivePanel
from tests.labconsole_v2x.live.live_lab import own_transport
from tests.labconsole_v2x.panel.page_facts import facts

LEFT = Qt.MouseButton.LeftButton
EXACTLY = Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive
LONG = {"senders": 3, "rate": 20.0, "warm_up": 0.5, "duration": 600.0}
"""A run that the test ends."""


@pytest.fixture
def page(qtbot: QtBot, shown_window: MainWindow) -> LivePanel:
    """The page, opened from the navigation."""
    navigation = shown_window.findChild(Navigation)
    assert navigation is not None
    (entry,) = navigation.findItems("V2X stations, live", EXACTLY)
    qtbot.mouseClick(navigation.viewport(), LEFT, pos=navigation.visualItemRect(entry).center())
    opened = shown_window.pages.currentWidget()
    assert isinstance(opened, LivePanel)
    opened.building.finish()
    return opened


def fill(page: LivePanel, **settings: Any) -> None:
    page.form.set_values({**page.form.values(), **own_transport(), **settings})
    assert page.form.problems == ()


def until_all_send(qtbot: QtBot, page: LivePanel, senders: int) -> None:
    qtbot.waitUntil(lambda: len(page.monitor.board.stations) == senders + 1)
    qtbot.waitUntil(lambda: all(state.sent > 0 for state in page.monitor.board.stations.values()))
    names = {"Roadside station", *(f"Station {number}" for number in range(1, senders + 1))}
    qtbot.waitUntil(lambda: set(rows(page)) == names)


def cancel(qtbot: QtBot, page: LivePanel) -> RunStatus | None:
    """Cancel the run in progress, and wait until its results are shown."""
    page.context.bridge.queue.cancel(page.context.bridge.queue.items[-1].run_id)
    return end(qtbot, page)


def end(qtbot: QtBot, page: LivePanel) -> RunStatus | None:
    """Wait for the end of the run, and until its results are shown; it is not repeated, though the computer is busy."""
    queue = page.context.bridge.queue
    qtbot.waitUntil(lambda: queue.items[0].state in (QueueState.RUNNING, QueueState.DONE))
    queue.pause()
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.DONE)
    qtbot.waitUntil(lambda: "mean of run" in page.glance.verified[2].text())
    return queue.items[0].status


def number(label: QLabel) -> float:
    """The figure that is shown; NaN where there is none."""
    text = label.text()
    return float("nan") if text == NO_FIGURE else float(text.strip("<% ").replace(",", ""))


def click_tab(qtbot: QtBot, page: LivePanel, tab: int) -> None:
    qtbot.mouseClick(page.tabs, LEFT, pos=page.tabs.tabRect(tab).center())


def rows(page: LivePanel) -> dict[str, list[str]]:
    """The list of stations: their other columns by name."""
    model = page.stations.table.model()
    cells = [[str(model.index(row, column).data()) for column in range(5)] for row in range(model.rowCount())]
    return {name: rest for name, *rest in cells}


def click_row(qtbot: QtBot, page: LivePanel, row: int) -> None:
    table = page.stations.table
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(table.model().index(row, 0)).center())


def click_on_map(qtbot: QtBot, page: LivePanel, number: int) -> None:
    """Click on a station, wherever it is now."""
    point = page.map.place(page.monitor.board.stations[number])
    qtbot.mouseClick(page.map, LEFT, pos=point.toPoint())


def sent(page: LivePanel, number: int) -> int:
    return page.monitor.board.stations[number].sent


def rate_sent(page: LivePanel) -> float:
    """What all stations send a second, now; NaN until that is known."""
    live = page.monitor.live
    if live is None or live.latest is None or SENT_CHANNEL.name not in live.latest.channels:
        return float("nan")
    return live.figures(SENT_CHANNEL.name).rate or float("nan")


def further(qtbot: QtBot, page: LivePanel, number: int, count: int) -> None:
    """Wait until a station has sent so many more."""
    wanted = sent(page, number) + count
    qtbot.waitUntil(lambda: sent(page, number) >= wanted)


def test_empty_page_says_what_will_be_there_and_is_used_by_the_keyboard(
    qtbot: QtBot, page: LivePanel, shown_window: MainWindow
) -> None:
    check_letters(page, shown_window)
    assert page.map.isVisible() and page.stations.isVisible() and not page.form.isVisible()
    assert [figure[1].text() for figure in (page.glance.verified, page.glance.loss, page.glance.serves)] == [
        NO_FIGURE
    ] * 3
    assert not page.stations.stop_button.isEnabled() and not page.stations.start_button.isEnabled()
    assert {plot.curves() for plot in page.plots.plots.values()} == {()}
    assert len(page.plots.plots) == 8
    click_tab(qtbot, page, PACKETS)
    qtbot.waitUntil(lambda: page.packets_label.text() == "No run of this trial is in the database yet.")
    assert page.packets.isVisible() and not page.open_run_button.isEnabled() and not page.map.isVisible()
    click_tab(qtbot, page, SCENARIO)
    assert page.form.isVisible() and not page.packets.isVisible()
    assert facts(page)["This computer"] == "not measured yet"
    fill(page, senders=15, rate=100.0, instances=10, processes=2)
    qtbot.waitUntil(lambda: facts(page).get("Verifications") == "1,500 /s")
    assert facts(page)["Processes"] == "2 × 7–8 stations + receiver"
    page.form.set_values({**page.form.values(), "transport": "udp-unicast", "receivers": "all"})
    qtbot.waitUntil(lambda: any("In unicast only one station receives" in text for text in page.form.problems))
    click_tab(qtbot, page, STATIONS)
    qtbot.mouseClick(page.run_bar.problem_button, LEFT)
    assert page.tabs.currentIndex() == SCENARIO and page.form.isVisible() and not page.context.bridge.queue.items
    check_space(qtbot, page)


def check_letters(page: LivePanel, window: MainWindow) -> None:
    """Each letter is for one button."""
    shown = [button.text() for button in page.findChildren(QPushButton) if not button.isHidden()]
    menus = [menu.text() for menu in window.menuBar().actions() if menu.text() != "&Runs"]
    letters = [text.split("&")[1][0].upper() for text in (*shown, *menus) if "&" in text]
    assert len(letters) > 8 and len(set(letters)) == len(letters), letters


def check_space(qtbot: QtBot, page: LivePanel) -> None:
    """A button that has the focus is pressed by Space, as everywhere: the list of stations does not take it."""
    fill(page, senders=1, warm_up=0.0, duration=0.5, capture=False, rate=10.0, receivers="one", processes=1)
    page.context.bridge.queue.pause()
    page.run_bar.run_button.setFocus()
    qtbot.keyClick(page.run_bar.run_button, Qt.Key.Key_Space)
    assert len(page.context.bridge.queue.items) == 1


@pytest.mark.usefixtures("worker_threads_of_processes")
def test_run_shows_its_stations_figures_plots_and_packets(
    qtbot: QtBot, page: LivePanel, shown_window: MainWindow
) -> None:
    fill(page, **LONG)
    check_first_packets(qtbot, page)
    until_all_send(qtbot, page, 3)
    qtbot.waitUntil(lambda: rows(page)["Roadside station"][3] == "3")
    qtbot.waitUntil(lambda: [rows(page)[f"Station {number}"][2:] for number in (1, 2, 3)] == [["1", NO_FIGURE]] * 3)
    check_selection(qtbot, page)
    check_live_figures(qtbot, page)
    assert cancel(qtbot, page) is RunStatus.CANCELLED
    check_results(page)
    check_packets(qtbot, page)
    qtbot.mouseClick(page.open_run_button, LEFT)
    assert isinstance(shown_window.pages.currentWidget(), RunView)


def check_first_packets(qtbot: QtBot, page: LivePanel) -> None:
    """Run, with the packets open before there is a run: they appear without another click, and none is missing then."""
    click_tab(qtbot, page, PACKETS)
    qtbot.waitUntil(lambda: page.packets_label.text() == "No run of this trial is in the database yet.")
    said: list[str] = []
    page._say_packets = lambda text: (said.append(text), page.packets_label.setText(text))  # type: ignore[method-assign]
    qtbot.mouseClick(page.run_bar.run_button, LEFT)
    qtbot.waitUntil(lambda: page.packets.octets.octets != b"")
    del page._say_packets
    assert page.context.bridge.queue.items[0].state is QueueState.RUNNING, "packets of a run in progress"
    assert not any("has no packets" in text for text in said)
    assert page.open_run_button.isEnabled()
    click_tab(qtbot, page, STATIONS)


def check_selection(qtbot: QtBot, page: LivePanel) -> None:
    """A click on the map selects in the list, and the other way round; one where no station is selects none."""
    click_on_map(qtbot, page, 2)
    assert [state.number for state in page.stations.chosen] == [2] and page.stations.stop_button.isEnabled()
    click_on_map(qtbot, page, 0)
    assert [state.number for state in page.stations.chosen] == [0]
    assert not page.stations.stop_button.isEnabled(), "the roadside station sends as long as the run"
    click_row(qtbot, page, 3)
    assert page.map._chosen == 3
    corner = QPoint(3, 3)
    assert page.map.station_at(corner.toPointF()) == -1
    qtbot.mouseClick(page.map, LEFT, pos=corner)
    assert page.stations.chosen == [] and page.map._chosen == -1
    assert not page.stations.stop_button.isEnabled()


def check_live_figures(qtbot: QtBot, page: LivePanel) -> None:
    card = page.glance
    qtbot.waitUntil(lambda: all(figure[1].text() != NO_FIGURE for figure in (card.verified, card.latency, card.loss)))
    assert card.verified[0].text() == "Verified" and card.verified[2].text() == "messages a second, now"
    assert card.latency[2].text() == "for 99 % in the last second, from their generation on"
    assert card.loss[2].text() == "of all messages until now"
    assert card.serves[2].text() == "neighbours with 10 messages a second, at this rate"
    drawn = ("rates", "age", "verify", "loss", "reasons", "queue", "cpu", "memory")
    qtbot.waitUntil(lambda: all(page.plots.plots[name].curves() for name in drawn))
    titles = {name: {curve.title for curve in page.plots.plots[name].curves()} for name in drawn}
    assert titles["rates"] == {"Sent", "Received", "Verified and accepted"}
    assert titles["cpu"] >= {"receiver", "stations-1-3"} and titles["queue"] == {"receiver"}
    assert titles["reasons"] <= {"Unknown signer", "Unknown issuer"} and titles["loss"] == {"Lost"}
    curve = page.plots.plots["rates"].curves()[0]
    qtbot.waitUntil(lambda: len(page.plots.plots["rates"].curves()[0].x) > len(curve.x))
    queue = page.context.bridge.queue
    qtbot.waitUntil(lambda: queue.items[-1].eta_s is not None)
    assert queue.items[-1].rate is None, "its progress is time, of which a rate says nothing"


def check_results(page: LivePanel) -> None:
    """The figures of the whole run are those of the store."""
    run_id = page.monitor.run_id
    card = page.glance
    assert card.verified[2].text() == f"messages a second, mean of run {run_id}"
    with Reader(page.context.bridge.queue.store.path) as reader:
        doubt = reader.run(run_id or 0).row.metrics["latency_p99"].not_judged
    not_judged = "; not judged" if doubt else ""
    assert card.latency[2].text() == f"for 99 % of run {run_id}, since they were due{not_judged}"
    assert card.latency[2].toolTip() == (f"Not judged: {doubt}." if doubt else "")
    stored = page.monitor._results
    assert page.monitor.glance().uncertainty_ms == stored["latency_p99"].uncertainty == 0
    page.monitor._results = {**stored, "latency_p99": replace(stored["latency_p99"], uncertainty=0.25)}
    assert page.monitor.glance().uncertainty_ms == 0.25, "as of a run over several hosts"
    page.monitor._results = stored
    assert card.loss[2].text() == f"of all messages of run {run_id}"
    assert number(card.verified[1]) == pytest.approx(60, rel=0.2)
    assert not page.stations.stop_button.isEnabled() and not page.stations.start_button.isEnabled()
    assert set(rows(page)) == {"Roadside station", "Station 1", "Station 2", "Station 3"}, "as they were at its end"
    assert page.plots.plots["rates"].curves()


def check_packets(qtbot: QtBot, page: LivePanel) -> None:
    """The tab of packets shows those of this run, the octets of a field highlighted."""
    click_tab(qtbot, page, PACKETS)
    run_id = page.monitor.run_id
    qtbot.waitUntil(lambda: page.packets_label.text().startswith(f"What the receiver of run {run_id} has read;"))
    qtbot.waitUntil(lambda: page.packets.octets.octets != b"" and page.packets.count.text().endswith(" packets"))
    octets = page.packets.octets
    psid = octets.octets.index(b"\x40\x01\x24") + 2
    qtbot.mouseClick(octets.viewport(), LEFT, pos=octets.place_of(psid).center())
    assert page.packets.tree.current is not None and page.packets.tree.current.name == "psid"
    assert octets.marked == b"\x24" and page.open_run_button.isEnabled()


@pytest.mark.usefixtures("worker_threads")
def test_many_receivers_have_the_figures_of_one_unit_and_are_stopped_and_started(qtbot: QtBot, page: LivePanel) -> None:
    """Three stations that all receive, at 20 Hz: each hears two others, two thirds of what all send."""
    fill(page, senders=3, receivers="all", rate=20.0, warm_up=1.0, duration=600.0, capture=False)
    qtbot.mouseClick(page.run_bar.run_button, LEFT)
    card = page.glance
    qtbot.waitUntil(lambda: number(card.verified[1]) == pytest.approx(rate_sent(page) * 2 / 3, rel=0.1))
    assert card.verified[2].text() == "messages a second and station, now"
    assert number(card.serves[1]) == pytest.approx(number(card.verified[1]) / 10, abs=0.6)
    qtbot.waitUntil(lambda: set(rows(page)) == {f"Station {number}" for number in range(1, 4)})
    qtbot.waitUntil(lambda: all(row[2:] == ["2", "2"] for row in rows(page).values()))
    qtbot.waitUntil(lambda: number(card.loss[1]) < 25)  # packets that wait for a certificate, and nothing else
    qtbot.waitUntil(lambda: sent(page, 1) > 35)
    check_stop_and_start(qtbot, page)
    assert cancel(qtbot, page) is RunStatus.CANCELLED
    qtbot.keyClick(page.stations.table, Qt.Key.Key_Space)
    assert rows(page)["Station 3"][0] == "finished", "no run is in progress"
    run_id = page.monitor.run_id
    assert card.verified[2].text() == f"messages a second and station, mean of run {run_id}"
    with Reader(page.context.bridge.queue.store.path) as reader:
        stored = reader.run(run_id or 0).row.metrics
    assert number(card.verified[1]) == pytest.approx(stored["accept_rate"].value / 3, rel=0.02)
    assert stored["accept_rate"].samples > 0.7 * stored["packet_loss"].samples, "of two receptions a message"


def check_stop_and_start(qtbot: QtBot, page: LivePanel) -> None:
    """Stations are stopped and started by button and Space; those that are silent do so for a small part of the run."""
    buttons = page.stations.stop_button, page.stations.start_button
    click_on_map(qtbot, page, 2)
    qtbot.mouseClick(buttons[0], LEFT)
    assert rows(page)["Station 2"][0] == "stopped" and [button.isEnabled() for button in buttons] == [False, True]
    assert page.stations.table.hasFocus(), "the page would scroll to the widget that is next in the order of focus"
    assert_silent(qtbot, page, 2)
    assert "Station 2, stopped" in page.map.description(2) and page.monitor.board.heard_by(2) == 0
    qtbot.mouseClick(buttons[1], LEFT)
    further(qtbot, page, 2, 5)
    qtbot.waitUntil(lambda: rows(page)["Station 2"][0] == "sends")
    assert [button.isEnabled() for button in buttons] == [True, False]
    click_row(qtbot, page, 2)
    page.stations.table.setFocus()
    qtbot.keyClick(page.stations.table, Qt.Key.Key_Space)
    assert rows(page)["Station 3"][0] == "stopped"
    assert_silent(qtbot, page, 3)
    qtbot.keyClick(page.stations.table, Qt.Key.Key_Space)
    further(qtbot, page, 3, 5)


def assert_silent(qtbot: QtBot, page: LivePanel, number: int) -> None:
    """It sends none while another one sends twenty; a busy machine may need a moment for the command."""
    further(qtbot, page, 1, 2)  # the command arrives
    for _ in range(3):
        before = sent(page, number)
        further(qtbot, page, 1, 20)
        if sent(page, number) == before:
            break
    assert sent(page, number) == before
    qtbot.waitUntil(lambda: page.monitor.board.heard_by(number) == 0)


@pytest.mark.usefixtures("worker_threads")
def test_run_without_capture_has_no_packets_and_says_so(qtbot: QtBot, page: LivePanel) -> None:
    fill(page, senders=1, warm_up=0.0, duration=0.5, capture=False, security="none", rate=10.0)
    qtbot.mouseClick(page.run_bar.run_button, LEFT)
    assert end(qtbot, page) is RunStatus.FINISHED
    run_id = page.monitor.run_id
    assert page.glance.verified[0].text() == "Received, not verified"
    click_tab(qtbot, page, PACKETS)
    sentence = (
        f"Run {run_id} has no packets: the capture was switched off in the scenario, nothing was received, or the run "
        "did not begin."
    )
    qtbot.waitUntil(lambda: page.packets_label.text() == sentence)
    assert page.packets.notice.isVisible() and not page.open_run_button.isEnabled()
