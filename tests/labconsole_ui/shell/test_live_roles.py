"""Roles in the live view of a real window and run, by clicks: their values, and commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QTabWidget
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.engine.run_commands import DELIVERED
from labconsole.model.trial import Event
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.menus import bring_forward
from labconsole_ui.views.live.live_view import LiveView
from labconsole_ui.views.live.send_command import CommandDialog
from tests.helpers.practice import STATIONS, campaign, practice_plugin_on_path

pytestmark = pytest.mark.usefixtures("worker_threads")
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(scope="module", autouse=True)
def practice_plugin() -> Iterator[None]:
    """The practice plugin is found by the window and by its workers."""
    with practice_plugin_on_path():
        yield


@pytest.fixture
def live(window: MainWindow) -> LiveView:
    bring_forward(window.live_dock, focus=False)
    window.live_dock.setFloating(True)
    window.live_dock.resize(1100, 760)
    return window.live_view


def begin(qtbot: QtBot, window: MainWindow, folder: Path, **parameters: Any) -> int:
    """Start a run of stations, and wait until they send."""
    values = {"stations": 3, "duration": 600.0, **parameters}
    [run_id] = window.services.bridge.queue.submit(campaign(folder, {}, kind=STATIONS, **values))
    live = window.live_view
    qtbot.waitUntil(lambda: live.live is not None and live.live.latest is not None and live.live.latest.done > 0)
    return run_id


def open_tab(qtbot: QtBot, live: LiveView, number: int) -> None:
    bar = live.findChild(QTabWidget).tabBar()
    qtbot.waitUntil(bar.isVisible)
    qtbot.mouseClick(bar, LEFT, pos=bar.tabRect(number).center())


def cells(live: LiveView) -> list[list[str]]:
    """The texts of the table of roles, titles first."""
    model = live.role_table.model
    columns = range(model.columnCount())
    titles = [str(model.headerData(column, Qt.Orientation.Horizontal)) for column in columns]
    return [titles] + [[model.index(row, at).data() for at in columns] for row in range(model.rowCount())]


def choose_command(qtbot: QtBot, live: LiveView, number: int) -> CommandDialog:
    """Open the menu of commands and click on an entry. Returns the dialog that opens."""
    button = live.command_button
    qtbot.waitUntil(button.isVisible)

    def click_entry() -> None:
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        place = menu.actionGeometry(menu.actions()[number]).center()
        for step in range(10):  # a menu takes a click for one on the button until the mouse has moved
            qtbot.mouseMove(menu, QPoint(place.x() - 10 + step, place.y()))
        qtbot.mouseClick(menu, LEFT, pos=place)

    before = command_dialogs()
    QTimer.singleShot(200, click_entry)
    qtbot.mouseClick(button, LEFT)
    qtbot.waitUntil(lambda: len(command_dialogs()) > len(before))
    [dialog] = [dialog for dialog in command_dialogs() if dialog not in before]
    return dialog


def command_dialogs() -> list[CommandDialog]:
    return [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, CommandDialog)]


def delivered(window: MainWindow) -> list[Event]:
    """Keeps the events of commands that were delivered, from now on."""
    kept: list[Event] = []
    window.services.bridge.event_recorded.connect(
        lambda _run, event: kept.append(event) if event.name == DELIVERED else None
    )
    return kept


def shown_messages(window: MainWindow) -> list[str]:
    return [entry.message.sentence for entry in window.messages.entries()]


def test_each_role_has_a_row_with_its_values(qtbot: QtBot, window: MainWindow, live: LiveView, tmp_path: Path) -> None:
    begin(qtbot, window, tmp_path)
    open_tab(qtbot, live, 1)
    qtbot.waitUntil(lambda: live.role_table.model.rowCount() == 3)
    qtbot.waitUntil(lambda: all(row[7] for row in cells(live)[1:]) and "Hears" in cells(live)[0])
    titles, *rows = cells(live)
    assert titles == ["Role", "Sent", "Sent: rate", "Rate", "CPU", "Memory", "Hears", "Heard count", "Sent"]
    assert [row[0] for row in rows] == ["station-0", "station-1", "station-2"]
    assert [(row[3], row[6], row[7]) for row in rows] == [
        ("100 msg/s", "station-1, station-2", "2"),
        ("100 msg/s", "station-0, station-2", "2"),
        ("100 msg/s", "station-0, station-1", "2"),
    ]
    assert live.role_table.count_label.text() == "3 roles"
    # A role whose rate is not known yet has a dash.
    qtbot.waitUntil(lambda: all(row[2] != "–" and 60 < float(row[2].split()[0]) < 140 for row in cells(live)[1:]))
    counted = [int(row[1].replace(",", "")) for row in cells(live)[1:]]
    qtbot.waitUntil(lambda: all(int(row[1]) > count for row, count in zip(cells(live)[1:], counted, strict=True)))


def test_rows_are_sorted_and_filtered_by_the_operator_and_stay_selected(
    qtbot: QtBot, window: MainWindow, live: LiveView, tmp_path: Path
) -> None:
    run_id = begin(qtbot, window, tmp_path)
    open_tab(qtbot, live, 1)
    table = live.role_table.table
    qtbot.waitUntil(lambda: live.role_table.model.rowCount() == 3 and len(cells(live)[0]) == 9)
    header = table.horizontalHeader()
    for _ in range(2):
        place = QPoint(header.sectionViewportPosition(0) + 20, header.height() // 2)
        qtbot.mouseClick(header.viewport(), LEFT, pos=place)
    qtbot.waitUntil(lambda: [row[0] for row in cells(live)[1:]] == ["station-2", "station-1", "station-0"])
    rate = QPoint(header.sectionViewportPosition(3) + 20, header.height() // 2)
    qtbot.mouseClick(header.viewport(), LEFT, pos=rate)
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(live.role_table.model.index(1, 0)).center())
    chosen = live.role_table.selected
    window.services.bridge.queue.command(run_id, "set_rate", {"rate": 500.0}, role=chosen)
    qtbot.waitUntil(lambda: live.role_table.model.record(2).name == chosen)
    assert live.role_table.selected == chosen, "its row moved, and the selection with it"
    qtbot.keyClicks(live.role_table.filter_edit, "2")
    assert [row.name for row in live.role_table.model.records()] == ["station-2"]
    assert live.role_table.count_label.text() == "1 of 3 roles"
    qtbot.waitUntil(lambda: live.role_table.model.rowCount() == 1)


def test_plots_by_role_have_a_line_for_each_role(
    qtbot: QtBot, window: MainWindow, live: LiveView, tmp_path: Path
) -> None:
    begin(qtbot, window, tmp_path)
    qtbot.waitUntil(lambda: live.role_plots.plots.keys() == {"sent", "rate"})
    stations = ["station-0", "station-1", "station-2"]
    for name, title in (("sent", "Sent: rate by role"), ("rate", "Rate")):
        plot = live.role_plots.plots[name]
        qtbot.waitUntil(lambda plot=plot: [curve.title for curve in plot.curves()] == stations)
        assert plot.title == title


def test_a_command_goes_to_the_role_that_is_selected(
    qtbot: QtBot, window: MainWindow, live: LiveView, tmp_path: Path
) -> None:
    begin(qtbot, window, tmp_path)
    kept = delivered(window)
    open_tab(qtbot, live, 1)
    table = live.role_table.table
    qtbot.waitUntil(lambda: live.role_table.model.rowCount() == 3 and len(cells(live)[0]) == 9)
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(live.role_table.model.index(1, 0)).center())
    dialog = choose_command(qtbot, live, 0)
    assert dialog.windowTitle().endswith("Set rate")
    assert dialog.role_combo.currentText() == "station-1" and dialog.role_combo.count() == 3
    edit = dialog.form.row("rate").editor.findChild(QLineEdit)
    edit.selectAll()
    qtbot.keyClicks(edit, "0")
    qtbot.waitUntil(lambda: not dialog.send_button.isEnabled())
    assert dialog.form.problems == ("Rate: Enter more than 0 msg/s.",)
    edit.selectAll()
    qtbot.keyClicks(edit, "7")
    qtbot.waitUntil(dialog.send_button.isEnabled)
    qtbot.mouseClick(dialog.send_button, LEFT)
    qtbot.waitUntil(lambda: not shiboken6.isValid(dialog))
    qtbot.waitUntil(lambda: [row[3] for row in cells(live)[1:]] == ["100 msg/s", "7 msg/s", "100 msg/s"])
    [event] = kept
    assert event.data == {
        "command": "set_rate",
        "parameters": {"rate": 7.0},
        "role": "station-1",
        "sent_by": "window",
    }
    assert "Set rate (rate 7.0): sent to station-1 by the operator (window)." in shown_messages(window)


def test_a_command_without_parameters_ends_the_run_and_then_none_is_offered(
    qtbot: QtBot, window: MainWindow, live: LiveView, tmp_path: Path
) -> None:
    begin(qtbot, window, tmp_path)
    late = choose_command(qtbot, live, 1)
    dialog = choose_command(qtbot, live, 2)
    assert dialog.role_combo.isHidden()
    qtbot.mouseClick(dialog.send_button, LEFT)
    queue = window.services.bridge.queue
    qtbot.waitUntil(lambda: all(item.state is QueueState.DONE for item in queue.items))
    qtbot.waitUntil(lambda: not live.command_button.isVisible())
    qtbot.mouseClick(late.send_button, LEFT)
    assert late.isVisible() and late.refusal.isVisible()
    assert late.refusal.text() == f"Run {queue.items[0].run_id} is not in progress: the command note was not sent."
    qtbot.mouseClick(late.cancel_button, LEFT)
    qtbot.waitUntil(lambda: not shiboken6.isValid(late))


def test_refused_command_is_shown(qtbot: QtBot, window: MainWindow, live: LiveView, tmp_path: Path) -> None:
    begin(qtbot, window, tmp_path, fault="first ends")
    dialog = choose_command(qtbot, live, 0)
    dialog.role_combo.setFocus()
    qtbot.keyClick(dialog.role_combo, Qt.Key.Key_Home)
    assert dialog.role_combo.currentText() == "station-0"
    qtbot.mouseClick(dialog.send_button, LEFT)
    sentence = "Role station-0 ended before Set rate arrived: it was not delivered."
    qtbot.waitUntil(lambda: sentence in shown_messages(window))


def test_a_trial_without_values_by_role_has_plots_alone(
    qtbot: QtBot, window: MainWindow, live: LiveView, tmp_path: Path
) -> None:
    values = {"count": 100_000, "rate": 1000.0}
    [run_id] = window.services.bridge.queue.submit(campaign(tmp_path, {}, **values))
    qtbot.waitUntil(lambda: live.live is not None and live.live.latest is not None and live.live.latest.done > 0)
    qtbot.waitUntil(lambda: len(live.rate_plot.curves()) == 1)
    assert not live.findChild(QTabWidget).tabBar().isVisible() and live.rate_plot.isVisible()
    assert not live.role_plots.plots
    window.services.bridge.queue.cancel(run_id)
