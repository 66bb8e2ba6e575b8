"""The window as a whole: pages, first start, failures, closing, memory, names for assistive technology."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QMenu, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.plugin import BrokenPlugin, Plugin, Plugins
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole_amqp.broker import BrokerSettings
from labconsole_ui.closing import CloseQuestion
from labconsole_ui.layout import LAYOUT_VERSION, in_front
from labconsole_ui.main_window import MainWindow
from labconsole_ui.menus import bring_forward
from labconsole_ui.message_bar import Message, Tone
from labconsole_ui.navigation import Navigation
from labconsole_ui.pages import Pages
from labconsole_ui.second_console import WindowLock
from labconsole_ui.services import Services
from labconsole_ui.settings import WindowState
from labconsole_ui.start_page import StartPage
from labconsole_ui.theme import Theme, ThemeMode
from tests.labconsole_amqp.embedded import serving

from .slot_watch import slots_watched

KIND = "amqp.messaging"


def campaign(*names: str, **parameters: object) -> NewCampaign:
    model = Plugins.discover().trial(KIND).parameters
    values = model.model_validate({"count": 100, **parameters}).model_dump(mode="json")
    scenarios = tuple(NewScenario(name, KIND, values) for name in names)
    return NewCampaign("mine", "Mine", "", 1, scenarios, tuple((index, 1) for index in range(len(names))))


def endless() -> NewCampaign:
    return campaign("Long", loop="open", rate=10, count=100_000)


def owners(widget: QWidget) -> list[QWidget]:
    """All widgets that hold this one."""
    above = widget.parentWidget()
    return [] if above is None else [above, *owners(above)]


def nameless(root: QWidget) -> list[str]:
    """Widgets that take the focus but have neither a text nor an accessible name."""
    found = []
    for widget in root.findChildren(QWidget):
        if widget.focusPolicy() == Qt.FocusPolicy.NoFocus or widget.objectName().startswith("qt_"):
            continue
        if isinstance(widget.parent(), QMenu) or widget.focusProxy() is not None:
            continue
        if any(isinstance(owner, QComboBox) for owner in owners(widget)):
            continue
        text = widget.text() if isinstance(widget, QAbstractButton | QLabel) else ""
        if not (widget.accessibleName() or text):
            found.append(f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}")
    return found


def test_every_widget_that_takes_the_focus_has_a_name(qtbot: QtBot, window: MainWindow) -> None:
    assert nameless(window) == []
    window.open_trial(KIND)
    window.show_page("help")
    assert nameless(window) == []
    (run_id,) = window.services.bridge.queue.submit(campaign("A"))
    qtbot.waitUntil(lambda: not window.services.bridge.queue.busy, timeout=30_000)
    window.open_run(run_id)
    window.compare_runs([run_id])
    qtbot.wait(300)
    assert nameless(window) == []


def test_nothing_flashes_up_as_a_window_of_its_own(qapp: QApplication, qtbot: QtBot, window: MainWindow) -> None:
    class Watch(QObject):
        seen: list[str] = []  # noqa: RUF012

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt names it
            if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
                self.seen.append(repr(watched))
            return False

    watch = Watch()
    qapp.installEventFilter(watch)
    window.open_trial(KIND)
    window.show_page("help")
    window.compare_runs([])
    qtbot.wait(100)
    qapp.removeEventFilter(watch)
    assert watch.seen == []


def test_demo_is_one_click_away_and_brings_the_live_plots_forward(qtbot: QtBot, window: MainWindow) -> None:
    window.live_dock.hide()
    page = window.findChild(StartPage)
    qtbot.mouseClick(page.demo_button, Qt.MouseButton.LeftButton)
    queue = window.services.bridge.queue
    assert [item.scenario.split(":")[0] for item in queue.items] == ["Test 1", "Test 2", "Test 3", "Test 4"]
    assert window.live_dock.isVisible()
    assert not page.demo_button.isEnabled()


@pytest.mark.parametrize(("text", "key"), [("Help and shortcuts", "help"), ("Operator's guide", "guide")])
def test_start_page_leads_to_the_documentation(qtbot: QtBot, window: MainWindow, text: str, key: str) -> None:
    page = window.findChild(StartPage)
    link = next(button for button in page.findChildren(QAbstractButton) if button.text() == text)
    qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
    assert window.pages.current_key == key
    assert len(window.pages.currentWidget().toPlainText()) > 500


def test_no_slot_holds_the_window_up_while_a_run_goes_on(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    queue.submit(campaign("A", "B", count=3000))
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.RUNNING)
    with slots_watched() as watch:
        qtbot.waitUntil(lambda: not queue.busy, timeout=60_000)
        qtbot.wait(200)
    assert [item.status for item in queue.items] == [RunStatus.FINISHED] * 2
    watch.assert_short()


def test_failed_run_is_told_with_its_reason_and_leads_to_the_run(qtbot: QtBot, window: MainWindow) -> None:
    bridge = window.services.bridge
    with qtbot.waitSignal(bridge.finished, timeout=30_000):
        (run_id,) = bridge.queue.submit(campaign("A", broker="external", host="127.0.0.1", port=9))
    (entry,) = window.messages.entries()
    assert entry.message.sentence.startswith(f"Run {run_id} (A) failed: ")
    assert "refused" in entry.message.sentence
    assert "kept" in entry.message.sentence
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    assert window.pages.current_key == f"run:{run_id}"


def test_queue_that_is_not_empty_is_drained_by_the_button_of_its_message(qtbot: QtBot, window: MainWindow) -> None:
    bridge = window.services.bridge
    with serving(BrokerSettings(queues=("q",))) as broker:
        through: dict[str, object] = {"broker": "external", "host": "127.0.0.1", "port": broker.ports.plain}
        through |= {"address": "q", "count": 20}
        with qtbot.waitSignal(bridge.finished, timeout=30_000) as left:
            bridge.queue.submit(campaign("Left", mode="sender", **through))
        assert left.args[1] is RunStatus.FINISHED
        with qtbot.waitSignal(bridge.finished, timeout=30_000):
            bridge.queue.submit(campaign("Refused", **through))
        (entry,) = window.messages.entries()
        assert "is not empty, 20 messages lie in it" in entry.message.sentence
        assert entry.remedy_button.text() == "Drain the queue and run again"
        with qtbot.waitSignal(bridge.finished, timeout=30_000) as again:
            qtbot.mouseClick(entry.remedy_button, Qt.MouseButton.LeftButton)
    assert again.args[1] is RunStatus.FINISHED
    assert window.messages.entries() == []
    with window.services.reader() as reader:
        row = reader.run(again.args[0]).row
    assert (row.scenario, row.parameters["leftover"], row.parameters["count"]) == ("Refused", "drain", 20)


def test_store_that_refuses_is_told_once(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    (run_id,) = queue.submit(campaign("A"))
    qtbot.waitUntil(lambda: not queue.busy, timeout=30_000)
    queue.store.close()
    window.queue_view.select(run_id)
    window.queue_view.repeat_action.trigger()
    assert len(window.messages.entries()) == 1


def test_run_of_a_trial_that_is_not_installed_is_told(window: MainWindow) -> None:
    window.services.bridge.queue.pause()
    foreign = NewScenario("A", "gone.trial", {})
    (run_id,) = window.services.bridge.queue.submit(NewCampaign("mine", "Mine", "", 1, (foreign,), ((0, 1),)))
    window.use_parameters(run_id)
    (entry,) = window.messages.entries()
    assert entry.message.sentence == "The trial gone.trial of this run is not installed here."


def test_killed_run_is_told_and_its_samples_so_far_are_there(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    (run_id,) = queue.submit(endless())
    qtbot.waitUntil(lambda: queue.items[0].done > 0, timeout=30_000)
    qtbot.wait(600)
    (worker,) = [child for child in psutil.Process().children() if "labconsole.engine.worker" in child.cmdline()]
    with qtbot.waitSignal(window.services.bridge.finished, timeout=30_000):
        worker.kill()
    (entry,) = window.messages.entries()
    assert "was interrupted" in entry.message.sentence
    assert "kept" in entry.message.sentence
    with window.services.reader() as reader:
        detail = reader.run(run_id)
    assert detail.row.status is RunStatus.INTERRUPTED
    assert sum(series.rows for series in detail.series) > 0
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    assert window.pages.current_key == f"run:{run_id}"


def test_closing_an_idle_window_asks_nothing(window: MainWindow) -> None:
    window.close()
    assert not window.isVisible()


def question(window: MainWindow) -> CloseQuestion:
    found = window.findChild(CloseQuestion)
    assert found is not None
    return found


def test_closing_during_a_run_asks_and_stay_stays(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    queue.submit(endless())
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.RUNNING)
    window.close()
    assert window.isVisible()
    qtbot.mouseClick(question(window).stay_button, Qt.MouseButton.LeftButton)
    qtbot.wait(50)
    assert window.isVisible()
    assert queue.items[0].state is QueueState.RUNNING


def test_cancel_and_close_cancels_the_run_and_keeps_what_it_measured(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    running, waiting = [*queue.submit(endless()), *queue.submit(campaign("Later"))]
    qtbot.waitUntil(lambda: queue.items[0].done > 0, timeout=30_000)
    window.close()
    qtbot.mouseClick(question(window).cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=30_000)
    with window.services.reader() as reader:
        assert reader.run(running).row.status is RunStatus.CANCELLED
        assert reader.run(running).series
        assert reader.run(waiting).row.status is RunStatus.CANCELLED


def test_close_when_done_waits_for_the_queue(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    run_ids = queue.submit(campaign("A", "B"))
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.RUNNING)
    window.close()
    qtbot.mouseClick(question(window).wait_button, Qt.MouseButton.LeftButton)
    assert window.isVisible()
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=60_000)
    with window.services.reader() as reader:
        assert [reader.run(run_id).row.status for run_id in run_ids] == [RunStatus.FINISHED] * 2


def test_broken_plugins_are_shown_with_their_error(
    services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    bad_trial = Plugin(name="bad", title="Bad", description="Cannot load", trials={"bad.trial": "no_such_module:Trial"})
    plugins = Plugins((*services.plugins.found, bad_trial), (BrokenPlugin("gone", "ImportError: no module gone"),))
    window = open_window(replace(services, plugins=plugins))
    navigation = window.findChild(Navigation)
    titles = [navigation.topLevelItem(row).text(0) for row in range(navigation.topLevelItemCount())]
    assert "gone (broken)" in titles
    window.show_page("broken:gone")
    assert any("ImportError: no module gone" in widget.toPlainText() for widget in details(window))
    window.show_page("trial:bad.trial")
    assert any("no_such_module" in widget.toPlainText() for widget in details(window))
    assert window.open_trial(KIND) is not None


def details(window: MainWindow) -> list[QWidget]:
    return [widget for widget in window.findChildren(QWidget) if widget.accessibleName() == "Error of the plugin"]


def test_layout_and_theme_are_remembered(services: Services, open_window: Callable[[Services], MainWindow]) -> None:
    window = open_window(services)
    window.live_dock.hide()
    window.set_theme(ThemeMode.DARK)
    window.remember()
    again = open_window(services)
    assert not again.live_dock.isVisible()
    assert services.state.text("window/theme") == "dark"
    again.reset_layout()
    assert again.live_dock.isVisible()
    window.set_theme(ThemeMode.LIGHT)
    services.state.keep("window/docks", "nonsense")
    services.state.keep("window/geometry", "nonsense")
    third = open_window(services)
    assert third.queue_dock.isVisible()


def test_default_layout_fits_a_small_screen(window: MainWindow) -> None:
    window.resize(1280, 800)
    window.open_trial(KIND)
    assert window.minimumSizeHint().width() <= 1280
    assert window.width() == 1280
    assert not window.queue_view.visibleRegion().isEmpty()


def side_of_live(window: MainWindow) -> Qt.DockWidgetArea:
    return window.dockWidgetArea(window.live_dock)


def test_live_plots_stand_where_the_width_has_room_for_them(qtbot: QtBot, window: MainWindow) -> None:
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


def test_live_plots_need_no_scrolling_in_the_low_place(qtbot: QtBot, window: MainWindow) -> None:
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


def test_layout_of_an_older_version_is_as_none(
    services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    window = open_window(services)
    window.history_dock.hide()
    services.state.keep("window/docks", window.saveState(LAYOUT_VERSION - 1))
    assert open_window(services).history_dock.isVisible()


def test_pages_are_stepped_through_by_keys_and_closed_by_the_middle_button(qtbot: QtBot, window: MainWindow) -> None:
    window.open_trial(KIND)
    window.show_page("help")
    qtbot.keyClick(window, Qt.Key.Key_Tab, Qt.KeyboardModifier.ControlModifier)
    assert window.pages.current_key == "start"
    qtbot.keyClick(window, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert window.pages.current_key == "help"
    bar = window.pages.tabBar()
    for index in (2, 0):
        qtbot.mouseClick(bar, Qt.MouseButton.MiddleButton, pos=bar.tabRect(index).center())
    assert [page.objectName() for page in window.pages.all_pages()] == ["start", f"trial:{KIND}"]


def test_comparison_has_a_short_title_and_takes_its_message_away(window: MainWindow) -> None:
    window.messages.show_message(Message(Tone.BAD, "Stays."))
    window._campaign_done([1, 2, 3, 7], 4)
    assert window.messages.entries()[0].message.sentence.endswith("4 of 4 runs finished.")
    window.compare_runs([1, 2, 3, 7])
    assert window.pages.tabText(window.pages.currentIndex()) == "Compare 1-3, 7"
    assert [entry.message.sentence for entry in window.messages.entries()] == ["Stays."]


def test_second_window_on_the_same_database_is_told(window: MainWindow, theme: Theme, home: Path) -> None:
    assert window.status.notice_label.isHidden()
    other = WindowLock(home / "runs.db")
    assert other.other_process is not None
    window.status.show_notice("Another console", "…")
    assert window.status.notice_label.isVisible()


def test_every_menu_entry_can_be_reached_by_keyboard(window: MainWindow) -> None:
    for menu_action in window.menuBar().actions():
        assert "&" in menu_action.text()
        menu = menu_action.menu()
        assert menu is not None
        shortcuts = [action.shortcut().toString() for action in menu.actions() if not action.shortcut().isEmpty()]
        assert len(shortcuts) == len(set(shortcuts))


def test_menus_outlive_a_look_at_them(window: MainWindow) -> None:
    def look() -> list[int]:
        counts = []
        for action in window.menuBar().actions():
            menu = action.menu()
            counts.append(len(menu.actions()))
        return counts

    before = look()
    gc.collect()
    assert look() == before
    window.show_page("help")


def test_help_lists_the_shortcuts(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window, Qt.Key.Key_F1)
    assert window.pages.current_key == "help"
    text = window.pages.currentWidget().toPlainText()
    for keys in ("F1", "Ctrl+D", "Ctrl+Return", "Ctrl+Q"):
        assert keys in text


def test_pages_are_found_again_and_closed_but_the_start_page_stays(qtbot: QtBot, window: MainWindow) -> None:
    pages = window.findChild(Pages)
    first = window.open_trial(KIND)
    window.show_page("start")
    assert window.open_trial(KIND) is first
    pages.close_page(pages.currentIndex())
    assert pages.page(f"trial:{KIND}") is None
    window.show_page("start")
    pages.close_page(pages.currentIndex())
    assert pages.page("start") is not None


def test_parameters_of_a_run_fill_the_form(qtbot: QtBot, window: MainWindow) -> None:
    window.services.bridge.queue.pause()
    (run_id,) = window.services.bridge.queue.submit(campaign("A", count=123, test=2))
    window.use_parameters(run_id)
    panel = window.open_trial(KIND)
    assert panel is not None
    assert panel.form.parameters is not None
    assert panel.form.parameters.model_dump()["count"] == 123


def test_about_names_the_licences(qtbot: QtBot, window: MainWindow) -> None:
    from labconsole_ui.help_page import show_about

    box = show_about(window)
    words = " ".join(label.text() for label in box.findChildren(QLabel))
    assert "Lesser General Public License" in words
    assert "Open Font License" in words
    qtbot.mouseClick(box.findChildren(QPushButton)[0], Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("key", ["window/docks", "window/geometry", "window/theme", f"form/{KIND}", "history/columns"])
def test_window_starts_with_any_nonsense_in_its_memory(
    services: Services, open_window: Callable[[Services], MainWindow], key: str
) -> None:
    services.state.keep(key, "\u0000[]{}")
    services.state.save()
    state = WindowState(services.state.path)
    window = open_window(replace(services, state=state))
    assert window.open_trial(KIND) is not None
