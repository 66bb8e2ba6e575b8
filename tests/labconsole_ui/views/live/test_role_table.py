"""Values by role in the live view with few roles and with 300: curves, rows, and their cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTabWidget
from pytestqt.qtbot import QtBot

from labconsole.engine.protocol import ChannelFrame, LiveFrame, RoleValues, Usage
from labconsole.engine.queue import QueueItem, QueueState
from labconsole.model.plugin import Plugins
from labconsole.model.trial import LiveChannel, LiveKind, Trial
from labconsole.store.records import RunStatus
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.live.growing_curves import HIGHEST, LOWEST, MEDIAN, RoleCurves
from labconsole_ui.views.live.live_run import LiveRun
from labconsole_ui.views.live.live_view import LiveView
from labconsole_ui.views.live.role_rows import RoleRow, field_text, role_rows, state_fields
from labconsole_ui.views.live.role_table import RoleTable

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")
T0 = 10**12
MANY = 300
CHANNELS = (
    LiveChannel("sent", "Sent", "msg", by_role=True),
    LiveChannel("load", "Load", "%", kind=LiveKind.GAUGE),
    LiveChannel("inner", "Inner", "", shown=False, kind=LiveKind.GAUGE),
    LiveChannel("heard", "Heard", "", kind=LiveKind.STATE),
)


class _RoleTrial(AmqpTrial):
    """A trial with values by role, of which only the channels are used."""

    live = CHANNELS


def frame(seconds: float, roles: int) -> LiveFrame:
    """Station number n has sent (n + 1) * 10 messages a second, and its load is n %."""
    names = [f"station-{number}" for number in range(roles)]
    counts = {name: int(seconds * 10 * (number + 1)) for number, name in enumerate(names)}
    states = {
        name: json.dumps({"hears": names[:10], "moving": number % 2 == 0, "road": {"lane": 1}, "speed": number / 2})
        for number, name in enumerate(names)
    }
    loads = {name: float(number) for number, name in enumerate(names)}
    values = RoleValues({"sent": counts}, {"load": loads, "inner": loads}, {"heard": states})
    usage = {"worker": Usage(5.0, 70_000_000)} | {name: Usage(12.5, 60_000_000) for name in names}
    total = {"sent": ChannelFrame(sum(counts.values()))}
    return LiveFrame(T0 + int(seconds * 1e9), T0, sum(counts.values()), 0, total, usage, "sent", values)


def followed(roles: int, seconds: float = 3.0) -> LiveRun:
    live = LiveRun(CHANNELS)
    for step in range(1, int(seconds * 8) + 1):
        live.add_frame(frame(step / 8, roles))
    return live


@pytest.fixture
def view(
    qtbot: QtBot, bridge: QueueBridge, plugins: Plugins, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveView]:
    item = QueueItem(1, 1, "Demo", "Town", "town", 1, 1, QueueState.RUNNING, RunStatus.RUNNING)
    trial: Trial[object] = _RoleTrial()  # type: ignore[assignment]
    monkeypatch.setattr(type(bridge.queue), "items", property(lambda _: (item,)))
    monkeypatch.setattr(Plugins, "trial", lambda _self, _kind: trial)
    view = LiveView(bridge, plugins, theme)
    qtbot.addWidget(view)
    view.resize(1280, 800)
    view.show()
    yield view


def test_few_roles_have_a_curve_each_in_natural_order_with_gaps_where_they_are_missing() -> None:
    curves = RoleCurves(3)
    curves.append(T0, {"b-10": 1.0, "b-2": 2.0})
    curves.append(T0 + 10**9, {"b-10": 3.0})
    assert list(curves.curves) == ["b-2", "b-10"] and not curves.many
    t_s, values = curves.curves["b-2"].points(T0)
    assert t_s.tolist() == [0.0, 1.0] and values[0] == 2.0 and np.isnan(values[1])


def test_many_roles_are_drawn_as_the_highest_the_median_and_the_lowest() -> None:
    curves = RoleCurves(3)
    curves.append(T0, {"a": 1.0, "b": 2.0})
    curves.append(T0 + 1, {"a": 1.0, "b": 2.0, "c": 6.0, "d": float("nan")})
    curves.append(T0 + 2, {"a": 1.0})
    curves.append(T0 + 3, {})
    assert curves.many and list(curves.curves) == [HIGHEST, MEDIAN, LOWEST]
    drawn = {name: curve.points(T0)[1].tolist()[:2] for name, curve in curves.curves.items()}
    assert drawn == {HIGHEST: [6.0, 1.0], MEDIAN: [2.0, 1.0], LOWEST: [1.0, 1.0]}
    assert np.isnan(curves.curves[MEDIAN].points(T0)[1][2])


def test_rates_by_role_cover_the_last_second() -> None:
    live = followed(3)
    assert live.role_rates("sent") == pytest.approx({"station-0": 10.0, "station-1": 20.0, "station-2": 30.0})
    assert list(live.by_role) == ["sent", "load"], "a channel that is not shown has no plot"
    _, rates = live.by_role["sent"].curves["station-2"].points(T0)
    assert rates[-1] == pytest.approx(30.0)


def test_rows_have_counts_gauges_and_the_plain_fields_of_states() -> None:
    rows = role_rows(followed(12))
    assert [row.name for row in rows[:3]] == ["station-0", "station-1", "station-2"] and rows[-1].name == "station-11"
    row = rows[3]
    assert (row.counts, row.gauges) == ({"sent": 120}, {"load": 3.0})
    assert row.rates == pytest.approx({"sent": 40.0})
    assert row.usage == Usage(12.5, 60_000_000)
    assert state_fields(rows) == [("heard", "hears"), ("heard", "moving"), ("heard", "speed")]
    assert state_fields(rows, [("heard", "speed")])[0] == ("heard", "speed"), "columns keep their places"
    assert field_text(row.fields["heard", "hears"], 2) == "station-0, station-1, …"
    assert [field_text(row.fields["heard", name]) for name in ("moving", "speed")] == ["no", "1.500"]


def test_a_state_of_many_fields_has_a_dozen_columns() -> None:
    live = LiveRun(CHANNELS)
    text = json.dumps({f"field {number}": number for number in range(40)})
    live.add_frame(LiveFrame(T0, T0, 0, 0, {}, {}, "", RoleValues(states={"heard": {"a": text}})))
    assert len(state_fields(role_rows(live))) == 12


def test_three_hundred_roles_are_a_table_and_three_curves_a_plot(
    view: LiveView, bridge: QueueBridge, qtbot: QtBot
) -> None:
    for step in range(1, 25):
        bridge.live.emit(1, frame(step / 8, MANY))
    qtbot.waitUntil(lambda: "load" in view.role_plots.plots)
    titles = ["Highest", "Median", "Lowest"]
    for plot in (view.role_plots.plots["load"], view.cpu_plot, view.memory_plot):
        qtbot.waitUntil(lambda plot=plot: [curve.title for curve in plot.curves()] == titles)
    bar = view.findChild(QTabWidget).tabBar()
    qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(1).center())
    qtbot.waitUntil(lambda: view.role_table.model.rowCount() == MANY)
    qtbot.keyClicks(view.role_table.filter_edit, "station-29")
    assert view.role_table.model.rowCount() == 11
    assert view.role_table.count_label.text() == "11 of 300 roles"


@pytest.mark.parametrize("typed", ["tow", "TOW", " Tower "])
def test_roles_are_filtered_by_name_in_any_case(qtbot: QtBot, theme: Theme, typed: str) -> None:
    live = LiveRun(CHANNELS)
    usage = {name: Usage(5.0, 70_000_000) for name in ("worker", "radar", "Tower")}
    live.add_frame(replace(frame(1.0, 0), usage=usage))
    table = RoleTable(theme)
    qtbot.addWidget(table)
    table.begin(CHANNELS)
    table.show_roles(live)
    assert table.model.rowCount() == 2
    qtbot.keyClicks(table.filter_edit, typed)
    assert [row.name for row in table.model.records()] == ["Tower"]
    assert table.count_label.text() == "1 of 2 roles"


def test_only_the_visible_ones_of_three_hundred_rows_are_painted(
    view: LiveView, bridge: QueueBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a turn is measured by tests/benchmarks/live_frames.py."""
    bridge.live.emit(1, frame(0.5, MANY))
    view._tabs.setCurrentWidget(view.role_table)
    live = view.live
    assert live is not None
    view.role_table.show_roles(live)
    assert view.role_table.model.rowCount() == MANY
    live.add_frame(frame(5.0, MANY))
    view.role_table.show_roles(live)
    asked: set[int] = set()

    class Asked(list[RoleRow]):
        def __getitem__(self, row: Any) -> Any:
            asked.add(row)
            return super().__getitem__(row)

    monkeypatch.setattr(view.role_table.model, "_shown", Asked(view.role_table.model._shown))
    view.role_table.table.viewport().repaint()
    assert asked and len(asked) < 60, "a table as high as the view has room for some 20 rows"


def test_an_hour_of_three_hundred_roles_is_kept_in_few_points() -> None:
    curves = RoleCurves(16)
    values = {f"station-{number}": float(number) for number in range(MANY)}
    for step in range(2_000):
        curves.append(T0 + step, values)
    assert sum(len(curve.points(T0)[0]) for curve in curves.curves.values()) == 3 * 2_000
