"""The docks of the window: default and stored layout, small and wide screens."""

from __future__ import annotations

from collections.abc import Callable

import shiboken6
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.docks import LAYOUT_VERSION, in_front
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.menus import bring_forward
from labconsole_ui.theme.theme import ThemeMode
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.campaigns import KIND


def test_layout_and_theme_are_remembered(services: Services, open_window: Callable[[Services], MainWindow]) -> None:
    window = open_window(services)
    window.live_dock.hide()
    window.set_theme(ThemeMode.DARK)
    window.history_view.run_actions.group.trigger()
    window.remember()
    again = open_window(services)
    assert again.history_view.model.grouped
    assert not again.live_dock.isVisible()
    assert services.state.text("window/theme") == "dark"
    again.reset_layout()
    assert again.live_dock.isVisible()
    window.set_theme(ThemeMode.LIGHT)
    services.state.set("window/docks", "nonsense")
    services.state.set("window/geometry", "nonsense")
    third = open_window(services)
    assert third.queue_dock.isVisible()


def test_size_of_the_window_is_remembered(services: Services, open_window: Callable[[Services], MainWindow]) -> None:
    """Its height: Qt limits the width to that of the test's small screen."""
    window = open_window(services)
    window.resize(1280, 740)
    heights = []
    for remembered in (False, True):
        if remembered:
            window.remember()
        again = MainWindow(services)
        heights.append(again.height())
        shiboken6.delete(again)
    assert heights[0] != heights[1] == 740


def test_default_layout_fits_a_small_screen(window: MainWindow) -> None:
    window.resize(1280, 800)
    opened_trial(window, KIND)
    assert window.minimumSizeHint().width() <= 1280
    assert window.width() == 1280
    assert not window.queue_view.visibleRegion().isEmpty()


def side_of_live(window: MainWindow) -> Qt.DockWidgetArea:
    return window.dockWidgetArea(window.live_dock)


def test_live_plots_are_docked_by_the_window_width(qtbot: QtBot, window: MainWindow) -> None:
    areas = Qt.DockWidgetArea
    assert side_of_live(window) is areas.BottomDockWidgetArea
    assert window.live_dock in window.tabifiedDockWidgets(window.queue_dock)
    window.resize(1700, 1000)
    qtbot.waitUntil(lambda: side_of_live(window) is areas.RightDockWidgetArea)
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: side_of_live(window) is areas.BottomDockWidgetArea)
    window.addDockWidget(areas.LeftDockWidgetArea, window.live_dock)
    window.resize(1700, 1000)
    qtbot.wait(50)
    assert side_of_live(window) is areas.LeftDockWidgetArea, "where the operator has put them they stay"


def test_live_plots_fit_the_bottom_dock_without_scrolling(qtbot: QtBot, window: MainWindow) -> None:
    bring_forward(window.live_dock, focus=False)
    plots = window.live_view.rate_plot, window.live_view.memory_plot
    qtbot.waitUntil(lambda: plots[0].y() == plots[1].y())
    for plot in plots:
        qtbot.waitUntil(lambda plot=plot: plot.visibleRegion().boundingRect().size() == plot.size())


def test_panes_are_folded_away_and_come_back_as_they_were(qtbot: QtBot, window: MainWindow) -> None:
    bring_forward(window.history_dock, focus=False)
    window.log_dock.hide()
    qtbot.mouseClick(window.status.fold_button, Qt.MouseButton.LeftButton)
    assert not any(dock.isVisible() for dock in (window.queue_dock, window.live_dock, window.history_dock))
    qtbot.mouseClick(window.status.fold_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: in_front(window.history_dock))
    assert window.queue_dock.isVisible() and not window.log_dock.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
    assert not window.history_dock.isVisible()
    bring_forward(window.live_dock)
    qtbot.waitUntil(lambda: in_front(window.live_dock))
    assert window.history_dock.isVisible()


def test_layout_of_an_older_version_is_ignored(
    services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    window = open_window(services)
    window.history_dock.hide()
    services.state.set("window/docks", window.saveState(LAYOUT_VERSION - 1))
    assert open_window(services).history_dock.isVisible()
