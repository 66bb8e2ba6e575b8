"""The signing service's page by clicks: token, pool, runs with and without it, shares, and what must be typed."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.profiles.profile import save_profile
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_keypool.device.pool_operations import counts_of
from labconsole_keypool.panel.pool_state import PoolState
from labconsole_keypool.panel.service_panel import PLANNER, SCENARIO, ServicePanel
from labconsole_keypool.panel.share_editor import ShareEditor
from labconsole_keypool.shares.secret_sharing import split_key
from labconsole_keypool.shares.share_files import ShareForm, to_text, write_shares
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.navigation import Navigation
from labconsole_ui.views.live.live_run import LiveRun

LEFT = Qt.MouseButton.LeftButton
PATIENCE_MS = 120_000
EXACTLY = Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive
SMALL = {
    "key_kind": "p-256",
    "requests": 120,
    "rate": 60.0,
    "arrivals": "constant",
    "keys_at_start": 20,
    "pool_at_start": 30,
    "low_water": 10,
    "batch": 10,
    "queue_limit": 50,
    "generate": "before",
    "key_store": "lab",
    "token": "lab",
}
KEYS_FOR_20_S = {"keys_at_start": 80, "pool_at_start": 100}
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


@pytest.fixture
def page(qtbot: QtBot, window: MainWindow) -> ServicePanel:
    """The page, opened from the navigation, with a scenario of two seconds."""
    navigation = window.findChild(Navigation)
    (entry,) = navigation.findItems("Key pool, live", EXACTLY)
    qtbot.mouseClick(navigation.viewport(), LEFT, pos=navigation.visualItemRect(entry).center())
    opened = window.pages.currentWidget()
    assert isinstance(opened, ServicePanel)
    opened.building.finish()
    opened.form.set_values({**opened.form.values(), **SMALL})
    assert opened.form.problems == ()
    return opened


def click_tab(qtbot: QtBot, page: ServicePanel, tab: int) -> None:
    qtbot.mouseClick(page.tabs, LEFT, pos=page.tabs.tabRect(tab).center())


def dialog_of(qtbot: QtBot, window: QWidget) -> OperationDialog:
    qtbot.waitUntil(lambda: any(dialog.isVisible() for dialog in window.findChildren(OperationDialog)))
    return next(dialog for dialog in window.findChildren(OperationDialog) if dialog.isVisible())


def test_three_tabs_and_the_token(qtbot: QtBot, page: ServicePanel) -> None:
    card = page.token_card
    qtbot.waitUntil(lambda: "created on first use" in card.state.text(), timeout=PATIENCE_MS)
    assert card.isVisible() and page.pool_card.isVisible() and not page.form.isVisible()
    click_tab(qtbot, page, SCENARIO)
    assert page.form.isVisible() and not card.isVisible()
    click_tab(qtbot, page, PLANNER)
    assert page.planner.isVisible() and not page.form.isVisible()
    click_tab(qtbot, page, 0)
    qtbot.mouseClick(card.try_button, LEFT)
    qtbot.waitUntil(lambda: card.state.text().startswith("Ready."), timeout=PATIENCE_MS)
    assert "AES_KEY_WRAP_PAD (0x210A)" in card.state.text() and "labconsole, serial number " in card.toolTip()
    page.form.set_values({**page.form.values(), "token": "nobody"})
    qtbot.waitUntil(lambda: card.state.text().startswith("No token is called nobody"), timeout=PATIENCE_MS)


def test_each_letter_is_for_one_button_and_tab_goes_as_one_reads(page: ServicePanel, window: MainWindow) -> None:
    shown = [button.text() for button in page.findChildren(QPushButton) if button.isVisible()]
    menus = [menu.text() for menu in window.menuBar().actions() if menu.text() != "&Runs"]  # each panel has Run as well
    letters = [text.split("&")[1][0].upper() for text in (*shown, *menus, "&Preset") if "&" in text]
    assert len(letters) > 10 and len(set(letters)) == len(letters), letters
    order, widget = [], page.tabs.nextInFocusChain()
    while widget is not page.token_card.try_button:
        order += [widget] if isinstance(widget, QPushButton) else []
        widget = widget.nextInFocusChain()
    pool = page.pool_card
    assert order == [pool.fill_button, pool.export_button, pool.load_button, pool.purge_button]


def points(page: ServicePanel) -> int:
    return sum(len(kind.x) for kind in page.plots.latency_plot.points() if not kind.marked)


def test_both_are_queued_as_one_campaign_with_the_hosts_of_the_preset(qtbot: QtBot, page: ServicePanel) -> None:
    hosts = {"roles": [{"role": "client-*", "tag": "obu"}]}
    preset = {"format": 1, "kind": "keypool.signing-service", "hosts": hosts}
    save_profile("placed", tomli_w.dumps(preset))
    page.presets.load_profiles("placed")
    page.context.bridge.queue.pause()
    qtbot.mouseClick(page.both_button, LEFT)
    items = page.context.bridge.queue.items
    assert [item.scenario for item in items] == ["With pool", "Without pool"]
    with Reader(page.context.bridge.queue.store.path) as reader:
        rows = [reader.run(item.run_id).row for item in items]
    assert [row.parameters["keys"] for row in rows] == ["pool", "generated"]
    assert rows[0].campaign == rows[1].campaign == "With and without pool"
    assert {key: value for key, value in rows[0].parameters.items() if key != "keys"} == {
        key: value for key, value in rows[1].parameters.items() if key != "keys"
    }
    assert [row.hosts for row in rows] == ["client-*: tag obu"] * 2


def test_one_row_of_buttons_starts_runs_and_names_them(qtbot: QtBot, page: ServicePanel) -> None:
    ways = [button for button in page.findChildren(QPushButton) if button.isVisible() and "un " in button.text()]
    assert {button.parentWidget() for button in ways} == {page.run_bar.run_button.parentWidget()}
    assert [button.text() for button in ways] == ["&Run with pool", "Run &both and compare"]
    page.context.bridge.queue.pause()
    qtbot.mouseClick(page.run_bar.run_button, LEFT)
    (item,) = page.context.bridge.queue.items
    page.context.bridge.queue.cancel(item.run_id)
    page.context.bridge.queue.clear_done()
    page.form.set_values({**page.form.values(), "keys": "generated"})
    assert page.run_bar.run_button.text() == "&Run without pool"
    page.form.set_values({**page.form.values(), "requests": 0})
    qtbot.waitUntil(lambda: not page.run_bar.run_button.isEnabled())
    assert not page.both_button.isEnabled()
    qtbot.mouseClick(page.run_bar.problem_button, LEFT)
    assert not page.context.bridge.queue.items and page.tabs.currentIndex() == SCENARIO and page.form.isVisible()


@pytest.mark.usefixtures("worker_threads_of_processes")
def test_the_picture_moves_during_a_run(qtbot: QtBot, page: ServicePanel) -> None:
    """The run lasts until the window has shown what moves, however late it gets its frames."""
    states: list[PoolState] = []
    frames: list[LiveRun] = []
    drawings: list[LiveRun] = []
    page.watch.state.connect(states.append)
    page.watch.framed.connect(frames.append)
    page.watch.drawn.connect(drawings.append)
    page.form.set_values({**page.form.values(), "rate": 4.0, "requests": 10_000, **KEYS_FOR_20_S})
    qtbot.mouseClick(page.run_bar.run_button, LEFT)
    queue = page.context.bridge.queue
    (item,) = queue.items
    picture = page.pool_card.picture
    qtbot.waitUntil(lambda: picture.moving, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: any(state.in_token > 0 and state.rates.used > 0 for state in states), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: bool(drawings), timeout=PATIENCE_MS)
    queue.cancel(item.run_id)
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.DONE, timeout=PATIENCE_MS)
    live = [state for state in states if state.running]
    assert max(state.used for state in live) > 0
    assert any(state.in_token > 0 and state.rates.used > 0 for state in live)
    assert 0 < len(drawings) <= len(frames), "drawn once for a frame at most"
    qtbot.waitUntil(lambda: not picture.state.running and not picture.moving, timeout=PATIENCE_MS)


@pytest.mark.usefixtures("worker_threads_of_processes")
def test_run_both_marks_each_request_and_opens_the_comparison(
    qtbot: QtBot, page: ServicePanel, window: MainWindow
) -> None:
    """The run with the pool is the first; it has 60 requests, for all of which the queue has room."""
    queue = page.context.bridge.queue
    page.form.set_values({**page.form.values(), "requests": 60, "queue_limit": 100})
    queue.pause()
    qtbot.mouseClick(page.both_button, LEFT)
    runs = [item.run_id for item in queue.items]
    assert len(runs) == 2

    def hold_second_run() -> None:
        if queue.items[0].state is QueueState.RUNNING and not queue.paused:
            queue.pause()

    page.context.bridge.items_changed.connect(hold_second_run)
    queue.resume()
    check_run_with_pool(qtbot, page)
    page.context.bridge.items_changed.disconnect(hold_second_run)
    queue.resume()
    wanted = f"compare:{runs[0]},{runs[1]}"
    qtbot.waitUntil(lambda: window.pages.current_key == wanted, timeout=2 * PATIENCE_MS)


def check_run_with_pool(qtbot: QtBot, page: ServicePanel) -> None:
    """After the run, each request is a point."""
    queue = page.context.bridge.queue
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.DONE, timeout=PATIENCE_MS)
    assert queue.items[1].state is QueueState.WAITING
    qtbot.waitUntil(lambda: page.plots.sources.value("Dropped") != "", timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: points(page) == 60, timeout=PATIENCE_MS)
    assert queue.items[0].status is RunStatus.FINISHED
    assert page.plots.sources.value("A: Key from the token's RAM") == "20"
    assert page.plots.sources.value("C: Key from the pool") == "10"
    assert page.plots.sources.value("D: Key generated") == "30"
    qtbot.waitUntil(lambda: page.pool_card.picture.state.used == 30, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: not page.pool_card.picture.state.running, timeout=PATIENCE_MS)
    assert not page.pool_card.picture.moving
    qtbot.waitUntil(lambda: [curve.title for curve in page.plots.rate_plot.curves()] == ["Arrivals"])
    assert [curve.title for curve in page.plots.queue_plot.curves()] == ["Waiting"]


def test_the_pool_is_filled_and_purged_by_clicks(qtbot: QtBot, page: ServicePanel, window: MainWindow) -> None:
    qtbot.mouseClick(page.pool_card.fill_button, LEFT)
    filling = dialog_of(qtbot, window)
    filling.form.set_values({**filling.form.values(), "keys": 5})
    qtbot.waitUntil(filling.start_button.isEnabled, timeout=PATIENCE_MS)
    qtbot.mouseClick(filling.start_button, LEFT)
    qtbot.waitUntil(filling.close_button.isVisible, timeout=PATIENCE_MS)
    assert filling.work.sentence.text().startswith("The pool lab holds 5 key pairs")
    qtbot.mouseClick(filling.close_button, LEFT)
    qtbot.waitUntil(lambda: page.pool_card.picture.state.in_store == 5, timeout=PATIENCE_MS)
    qtbot.mouseClick(page.pool_card.purge_button, LEFT)
    purging = dialog_of(qtbot, window)
    qtbot.waitUntil(purging.confirmation.isVisible, timeout=PATIENCE_MS)
    assert purging.confirmation.loss.text() == "5 key pairs in the key store lab will be lost."
    assert not purging.start_button.isEnabled()
    qtbot.keyClicks(purging.confirmation.edit, "labconsole")
    qtbot.mouseClick(purging.start_button, LEFT)
    qtbot.waitUntil(purging.close_button.isVisible, timeout=PATIENCE_MS)
    assert counts_of("lab").new == 0
    qtbot.mouseClick(purging.close_button, LEFT)
    qtbot.waitUntil(lambda: page.pool_card.picture.state.lost == 5, timeout=PATIENCE_MS)


def test_shares_come_from_files_and_as_words(
    qtbot: QtBot, page: ServicePanel, window: MainWindow, tmp_path: Path
) -> None:
    one, two, _ = split_key(bytes(range(32)), 2, 3)
    other, _ = split_key(bytes(32), 2, 2)
    qtbot.mouseClick(page.pool_card.load_button, LEFT)
    dialog = dialog_of(qtbot, window)
    editor = dialog.findChild(ShareEditor)
    assert editor.state.text() == "No share is present." and editor.secrets() is None
    (file, *_) = write_shares(tmp_path, [one], ShareForm.FILES)
    editor.add_files([file])
    assert editor.state.text() == "1 of 2 present: share 2 or 3 is missing."
    editor.words.setPlainText(to_text(other, ShareForm.WORDS))
    qtbot.mouseClick(editor.words_button, LEFT)
    assert "of another set" in editor.fault.text() and editor.state.text().startswith("1 of 2")
    editor.words.setPlainText(to_text(two, ShareForm.WORDS))
    qtbot.mouseClick(editor.words_button, LEFT)
    assert editor.state.text() == "2 of 2 present." and not editor.fault.isVisible()
    assert editor.words.toPlainText() == "", "words do not stay on the screen"
    secrets = editor.secrets()
    assert secrets is not None and sorted(secrets) == ["share-1", "share-2"]
    qtbot.waitUntil(dialog.start_button.isEnabled, timeout=PATIENCE_MS)
    qtbot.mouseClick(editor.forget_button, LEFT)
    qtbot.waitUntil(lambda: not dialog.start_button.isEnabled(), timeout=PATIENCE_MS)
    qtbot.mouseClick(dialog.cancel_button, LEFT)
