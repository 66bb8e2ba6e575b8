"""Map, list and board of stations, the card of large figures, and the plots, each by itself on known values."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pytest
from PySide6.QtCore import QLineF, QPoint, Qt
from PySide6.QtGui import QHelpEvent, QImage
from PySide6.QtWidgets import QApplication, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from labconsole.analysis.number_format import NO_FIGURE
from labconsole.engine.protocol import ChannelFrame, LiveFrame, LogHistogram, RoleValues, Usage
from labconsole_ui.theme.theme import Theme, ThemeMode
from labconsole_ui.views.live.live_run import LiveRun
from labconsole_v2x.live.series import LIVE
from labconsole_v2x.panel.glance_card import Glance, GlanceCard
from labconsole_v2x.panel.live_plots import LivePlots
from labconsole_v2x.panel.station_board import StationBoard
from labconsole_v2x.panel.station_map import StationMap
from labconsole_v2x.panel.station_table import StationTable

LEFT = Qt.MouseButton.LeftButton
SECOND_NS = 1_000_000_000


def report(
    first: int,
    sent: Sequence[int],
    *,
    heard: Sequence[str] = (),
    on: Sequence[int] | None = None,
    places: Sequence[tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """What a role reports of its stations, from number `first` on."""
    east, north = zip(*(places or [(100 * (first + place), 0) for place in range(len(sent))]), strict=True)
    return {
        "first": first,
        "east": east,
        "north": north,
        "sent": sent,
        "on": [1] * len(sent) if on is None else on,
        "heard": heard,
    }


def frame(
    roles: Mapping[str, Mapping[str, Any]],
    t_s: float = 1.0,
    *,
    reasons: Mapping[str, int] | None = None,
    count: int = 0,
) -> LiveFrame:
    """A live frame in which these roles report stations, and a receiver what it has rejected."""
    states = {"stations": {role: json.dumps(state) for role, state in roles.items()}}
    if reasons is not None:
        states["reasons"] = {"receiver": json.dumps(reasons)}
    histogram = LogHistogram()
    channels = {
        name: ChannelFrame(count, 1, 2, histogram, 0, 1)
        for name in ("sent", "received", "accepted", "age", "verify_time")
    }
    usage = {"receiver": Usage(50.0, 60_000_000)}
    values = RoleValues({"sent": {"stations-1-3": count}}, {"queue": {"receiver": 3.0}}, states)
    return LiveFrame(int(t_s * SECOND_NS), 0, 0, 0, channels, usage, "sent", values)


def board(*, stopped: int = 0) -> StationBoard:
    """A roadside station that hears stations 1 and 3 of three."""
    known = StationBoard()
    on = [int(number != stopped) for number in (1, 2, 3)]
    known.take(
        frame(
            {
                "receiver": report(0, [7], heard=["a"], places=[(0, 0)]),
                "stations-1-3": report(1, [10, 0, 1234], on=on, places=[(150, 0), (0, 150), (-150, -150)]),
            }
        )
    )
    return known


@pytest.fixture
def page(qtbot: QtBot) -> QWidget:
    """What the views are shown on."""
    shown = QWidget()
    qtbot.addWidget(shown)
    shown.resize(900, 900)
    with qtbot.waitExposed(shown):
        shown.show()
    return shown


@pytest.fixture
def station_map(page: QWidget, theme: Theme) -> StationMap:
    return shown_on(page, StationMap(theme, page), 400, 400)


@pytest.fixture
def table(page: QWidget, theme: Theme) -> StationTable:
    return shown_on(page, StationTable(theme, page), 600, 400)


@pytest.fixture
def card(page: QWidget, theme: Theme) -> GlanceCard:
    return shown_on(page, GlanceCard(theme, page), 900, 120)


View = TypeVar("View", bound=QWidget)


def shown_on(page: QWidget, view: View, width: int, height: int) -> View:
    view.resize(width, height)
    view.show()
    page.activateWindow()
    return view


def picture(widget: QWidget) -> QImage:
    return widget.grab().toImage()


def drawn_in_s(widget: QWidget) -> float:
    """The shortest processor time of five that drawing the widget takes, s."""
    times = []
    for _ in range(5):
        began = time.thread_time()
        widget.grab()
        times.append(time.thread_time() - began)
    return min(times)


def test_board_puts_reports_of_roles_together() -> None:
    """Roles report their stations in parts, and any frame may be missing."""
    known = board()
    assert sorted(known.stations) == [0, 1, 2, 3]
    assert known.stations[0].heard == frozenset({1, 3}) and known.stations[1].heard is None
    assert [known.heard_by(number) for number in range(4)] == [None, 1, 0, 1], "no other station hears the roadside"
    assert known.pairs == 2
    known.take(frame({"stations-1-3": report(2, [5, 1300])}, reasons={"unknown signer": 4}))
    assert [known.stations[number].sent for number in (1, 2, 3)] == [10, 5, 1300]
    assert known.reasons == {"unknown signer": 4}
    known.take(frame({}))
    assert sorted(known.stations) == [0, 1, 2, 3] and known.reasons == {"unknown signer": 4}


def test_board_keeps_what_the_operator_has_set_until_it_is_reported() -> None:
    """A report may have been on its way when the station was stopped."""
    known = board()
    known.switch(2, on=False)
    assert not known.stations[2].on and known.stations[2].sent == 0
    known.take(frame({"stations-1-3": report(1, [11, 1, 1235])}))
    assert not known.stations[2].on and known.stations[2].sent == 1, "a stale report"
    known.take(frame({"stations-1-3": report(1, [11, 1, 1235], on=[1, 0, 1])}))
    known.take(frame({"stations-1-3": report(1, [11, 1, 1235])}))
    assert known.stations[2].on, "it was started by another window, say"
    known.switch(99, on=False)
    assert 99 not in known.stations


def test_map_selects_what_is_clicked(qtbot: QtBot, station_map: StationMap) -> None:
    chosen: list[int] = []
    station_map.selected.connect(chosen.append)
    known = board()
    station_map.show_board(known)
    for number in (0, 1, 2, 3):
        qtbot.mouseClick(station_map, LEFT, pos=station_map.place(known.stations[number]).toPoint())
    qtbot.mouseClick(station_map, LEFT, pos=QPoint(390, 10))
    assert chosen == [0, 1, 2, 3, -1]
    assert station_map.place(known.stations[1]).x() > 200 > station_map.place(known.stations[3]).x()
    assert station_map.place(known.stations[2]).y() < 200 < station_map.place(known.stations[3]).y(), "north is up"


def test_map_draws_stations_who_hears_whom_and_what_is_chosen(station_map: StationMap) -> None:
    empty = picture(station_map)
    station_map.show_board(board())
    plain = picture(station_map)
    station_map.select(3)
    chosen = picture(station_map)
    station_map.select(-1)
    station_map.show_board(board(stopped=2))
    stopped = picture(station_map)
    between = QLineF(station_map.place(board().stations[0]), station_map.place(board().stations[1])).center()
    assert plain.pixelColor(between.toPoint()) != empty.pixelColor(between.toPoint()), "a line to the receiver"
    pictures = [empty, plain, chosen, stopped]
    assert all(one != other for place, one in enumerate(pictures) for other in pictures[:place])
    station_map.clear()
    assert picture(station_map) == empty


def test_scale_of_the_map_never_becomes_finer_in_a_run(station_map: StationMap) -> None:
    known = board()
    station_map.show_board(known)
    near = station_map.place(known.stations[1])
    far = StationBoard()
    far.take(frame({"stations-1-3": report(1, [1], places=[(900, 0)])}))
    station_map.show_board(far)
    station_map.show_board(known)
    assert station_map.place(known.stations[1]).x() < near.x()
    station_map.clear()
    station_map.show_board(known)
    assert station_map.place(known.stations[1]) == near


def test_tooltip_says_which_station_is_under_the_pointer(station_map: StationMap) -> None:
    known = board(stopped=2)
    station_map.show_board(known)
    for number, text in (
        (0, "Roadside station, hears 2"),
        (1, "Station 1, heard by 1"),
        (2, "Station 2, stopped, heard by 0"),
    ):
        point = station_map.place(known.stations[number]).toPoint()
        event = QHelpEvent(QHelpEvent.Type.ToolTip, point, station_map.mapToGlobal(point))
        QApplication.sendEvent(station_map, event)
        assert text in QToolTip.text() and station_map.description(number) == text
    QToolTip.hideText()


def test_map_of_three_hundred_stations_draws_only_the_lines_of_the_chosen_one(station_map: StationMap) -> None:
    """With more than 600 pairs, the map would be one web."""
    many = StationBoard()
    places = [(number * 2 - 300, (number * 37) % 300 - 150) for number in range(300)]
    many.take(frame({"stations-1-300": report(1, [1] * 300, heard=[f"{(1 << 301) - 2:x}"] * 300, places=places)}))
    assert many.pairs == 90_000 and many.heard_by(1) == 300
    station_map.show_board(many)
    without, without_s = picture(station_map), drawn_in_s(station_map)
    station_map.select(150)
    assert picture(station_map) != without
    # A frame is drawn 8 times a second: of 90,000 pairs only the 300 of the chosen one are looked at.
    assert drawn_in_s(station_map) < 10 * without_s
    background = without.pixelColor(200, 390)
    assert without.pixelColor(20, 200) == background, "no line"


def test_list_shows_state_and_selection_of_stations(table: StationTable) -> None:
    chosen: list[int] = []
    table.selected.connect(chosen.append)
    table.show_board(board(stopped=2))
    table.allow(running=True)
    rows = [line.split("\t") for line in table.table.as_tsv().splitlines()]
    assert rows == [
        ["Station", "State", "Sent", "Heard by", "Hears"],
        ["Roadside station", "sends", "7", NO_FIGURE, "2"],
        ["Station 1", "sends", "10", "1", NO_FIGURE],
        ["Station 2", "stopped", "0", "0", NO_FIGURE],
        ["Station 3", "sends", "1,234", "1", NO_FIGURE],
    ]
    table.allow(running=False)
    states = [line.split("\t")[1] for line in table.table.as_tsv().splitlines()]
    assert states == ["State", "finished", "finished", "stopped", "finished"]
    table.select(3)
    assert chosen[-1] == 3 and [state.number for state in table.chosen] == [3]
    table.show_board(board())
    assert [state.number for state in table.chosen] == [3], "new values leave the selection"
    table.select(77)
    assert chosen[-1] == -1 and table.chosen == []


@pytest.mark.parametrize(
    ("number", "running", "buttons"),
    [(1, True, (True, False)), (2, True, (False, True)), (0, True, (False, False)), (1, False, (False, False))],
)
def test_buttons_are_for_what_the_selected_station_can_do(
    table: StationTable, number: int, running: bool, buttons: tuple[bool, bool]
) -> None:
    table.show_board(board(stopped=2))
    table.allow(running=running)
    table.select(number)
    assert (table.stop_button.isEnabled(), table.start_button.isEnabled()) == buttons


def all_selected(table: StationTable, known: StationBoard) -> list[tuple[int, bool]]:
    """Select all stations of a run in progress; returns what is switched from now on."""
    switched: list[tuple[int, bool]] = []
    table.switched.connect(lambda number, on: switched.append((number, on)))
    table.show_board(known)
    table.allow(running=True)
    table.table.setFocus()
    table.table.selectAll()
    return switched


def test_several_stations_are_switched_at_once(qtbot: QtBot, table: StationTable) -> None:
    """Only those that are not so already, and never the roadside station."""
    switched = all_selected(table, board(stopped=2))
    qtbot.mouseClick(table.stop_button, LEFT)
    assert switched == [(1, False), (3, False)]
    switched.clear()
    qtbot.mouseClick(table.start_button, LEFT)
    assert switched == [(2, True)]
    table.allow(running=False)
    qtbot.keyClick(table.table, Qt.Key.Key_Space)
    assert switched == [(2, True)], "without a run nothing is sent"


def test_space_starts_all_where_the_first_vehicle_is_stopped(qtbot: QtBot, table: StationTable) -> None:
    """The roadside station is selected with them, and always sends."""
    switched = all_selected(table, board(stopped=1))
    qtbot.keyClick(table.table, Qt.Key.Key_Space)
    assert switched == [(1, True)]


@pytest.mark.parametrize(
    ("glance", "texts", "tone"),
    [
        (Glance(), (NO_FIGURE, NO_FIGURE, NO_FIGURE, NO_FIGURE), None),
        (Glance(1499.6, 1.234, 0.0), ("1,500", "1.234 ms", "0.0 %", "150"), None),
        (Glance(40.0, 0.5, 0.04), ("40", "0.5000 ms", "< 0.1 %", "4"), None),
        (Glance(40.0, 0.5, 0.04, run_id=7), ("40", "0.5000 ms", "< 0.1 %", "4"), "warning"),
        (Glance(40.0, 0.5, 0.0, run_id=7), ("40", "0.5000 ms", "0.0 %", "4"), None),
        (Glance(40.0, 0.5, 0.0, run_id=7, uncertainty_ms=0.052), ("40", "0.5000 ± 0.052 ms", "0.0 %", "4"), None),
        (Glance(40.0, 2.0, 0.05), ("40", "2 ms", "0.1 %", "4"), "warning"),
        (Glance(0.0, 2000.0, 85.0), ("0", "2 s", "85.0 %", "0"), "bad"),
    ],
)
def test_card_has_four_large_figures(
    card: GlanceCard, glance: Glance, texts: tuple[str, ...], tone: str | None
) -> None:
    card.show_glance(glance)
    assert tuple(figure[1].text() for figure in (card.verified, card.latency, card.loss, card.serves)) == texts
    assert card.loss[1].property("tone") == tone
    assert card.verified[1].accessibleName() == f"Verified: {texts[0]}"


def test_notes_of_the_card_say_of_when_its_figures_are(card: GlanceCard) -> None:
    card.show_glance(Glance(100.0, 1.0, 0.0, capacity=8123.0))
    assert card.verified[2].text() == "messages a second, now"
    note = "neighbours with 10 messages a second, at this rate"
    assert card.serves[2].text() == f"{note}; one core can serve 812, by the benchmark"
    card.show_glance(Glance(100.0, 1.0, 0.0, receivers=6))
    assert card.verified[2].text() == "messages a second and station, now"
    card.show_glance(Glance(100.0, 1.0, 0.0, verifies=False, run_id=7))
    assert card.verified[0].text() == "Received, not verified"
    assert card.verified[2].text() == "messages a second, mean of run 7"
    assert card.loss[2].text() == "of all messages of run 7"
    assert card.latency[2].text() == "for 99 % of run 7, since they were due"
    assert card.serves[2].text() == "neighbours with 10 messages a second, at this rate"
    card.show_glance(Glance(100.0, 1.0, 0.0, capacity=8123.0, verifies=False))
    assert card.serves[2].text() == "neighbours with 10 messages a second, at this rate", "nothing is verified"
    card.show_glance(Glance(100.0, 1.0, 0.0, doubt="the computer was busy", run_id=7))
    assert card.latency[2].text() == "for 99 % of run 7, since they were due; not judged"
    assert {label.toolTip() for label in card.latency} == {"Not judged: the computer was busy."}
    card.show_glance(Glance(100.0, 1.0, 0.0))
    assert {label.toolTip() for label in card.latency} == {""}


def test_plots_get_a_curve_for_each_value_and_begin_again_with_the_next_run(page: QWidget, theme: Theme) -> None:
    plots = shown_on(page, LivePlots(theme, page), 900, 900)
    for _ in plots.pieces():
        pass
    live, known = LiveRun(LIVE), StationBoard()
    for number in range(1, 5):
        newest = frame({}, number * 0.5, reasons={"unknown signer": 10 * number}, count=100 * number)
        live.add_frame(newest)
        known.take(newest)
        plots.draw(live, known, 2.5)
    found = {name: {curve.title: curve for curve in plot.curves()} for name, plot in plots.plots.items()}
    assert set(found["rates"]) == {"Sent", "Received", "Verified and accepted"}
    assert found["rates"]["Sent"].values[-1] == 200, "a hundred in half a second"
    assert found["loss"]["Lost"].values.tolist() == [2.5] * 4
    assert found["reasons"]["Unknown signer"].values.tolist() == [20.0] * 3, (
        "ten in half a second, from the second frame on"
    )
    assert found["queue"]["receiver"].values.tolist() == [3.0] * 4 and found["cpu"]["receiver"].values[-1] == 50
    plots.begin()
    assert {plot.curves() for plot in plots.plots.values()} == {()}


def test_map_follows_the_theme(theme: Theme, station_map: StationMap) -> None:
    station_map.show_board(board())
    light = picture(station_map)
    try:
        theme.set_mode(ThemeMode.DARK)
        dark = picture(station_map)
    finally:
        theme.set_mode(ThemeMode.LIGHT)
    assert light.pixelColor(30, 30).lightness() > 200 > 100 > dark.pixelColor(30, 30).lightness()
    assert picture(station_map) == light
