"""The run queue by keys and clicks: order, pause, cancel, repeat, copy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QToolButton
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.model.plugin import Plugins
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.shell.status_bar import ConsoleStatusBar
from labconsole_ui.tables.record_table import select_rows
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.queue.queue_model import QueueColumn
from labconsole_ui.views.queue.queue_view import QueueView

KIND = "amqp.messaging"


def campaign(*names: str, **parameters: Any) -> NewCampaign:
    model = Plugins.discover().trial(KIND).parameters
    values = model.model_validate({"count": 100, **parameters}).model_dump(mode="json")
    scenarios = tuple(NewScenario(name, KIND, values) for name in names)
    return NewCampaign("mine", "Mine", "", 1, scenarios, tuple((index, 1) for index in range(len(names))))


@pytest.fixture
def view(qtbot: QtBot, bridge: QueueBridge, theme: Theme) -> QueueView:
    bridge.queue.pause()
    view = QueueView(bridge, theme)
    view.repeat_wanted.connect(lambda run_id: bridge.queue.repeat(run_id))
    view.resize(900, 300)
    qtbot.addWidget(view)
    view.show()
    return view


def names(view: QueueView) -> list[str]:
    return [view.model.record(row).scenario for row in range(view.model.rowCount())]


def click(qtbot: QtBot, view: QueueView, name: str) -> None:
    button = next(button for button in view.findChildren(QToolButton) if button.accessibleName() == name)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_empty_queue_shows_what_to_do(view: QueueView) -> None:
    assert not view.table.isVisible()


def test_submitted_runs_appear_in_order_as_waiting(view: QueueView, bridge: QueueBridge) -> None:
    bridge.queue.submit(campaign("A", "B", "C"))
    assert view.table.isVisible()
    assert names(view) == ["A", "B", "C"]
    status = [view.model.index(row, QueueColumn.STATUS).data() for row in range(3)]
    assert status == ["Waiting"] * 3


def test_keys_move_a_run_and_the_selection_follows(qtbot: QtBot, view: QueueView, bridge: QueueBridge) -> None:
    first, *_ = bridge.queue.submit(campaign("A", "B", "C"))
    view.select(first)
    view.table.setFocus()
    view.down_action.trigger()
    view.down_action.trigger()
    assert names(view) == ["B", "C", "A"]
    assert [item.run_id for item in view.selected()] == [first]
    click(qtbot, view, "Move up")
    assert names(view) == ["B", "A", "C"]


def test_several_runs_that_are_moved_stay_selected(view: QueueView, bridge: QueueBridge) -> None:
    bridge.queue.submit(campaign("A", "B", "C"))
    select_rows(view.table, [0, 1])
    view.down_action.trigger()
    assert names(view) == ["C", "A", "B"]
    assert [item.scenario for item in view.selected()] == ["A", "B"]
    view.up_action.trigger()
    assert names(view) == ["A", "B", "C"]
    assert [item.scenario for item in view.selected()] == ["A", "B"]


def test_drag_moves_a_run(view: QueueView, bridge: QueueBridge) -> None:
    bridge.queue.submit(campaign("A", "B", "C"))
    dragged = view.model.mimeData([view.model.index(2, 0)])
    view.model.dropMimeData(dragged, Qt.DropAction.MoveAction, 0, 0, view.model.index(-1, -1))
    assert names(view) == ["C", "A", "B"]
    dragged = view.model.mimeData([view.model.index(0, 0)])
    view.model.dropMimeData(dragged, Qt.DropAction.MoveAction, 3, 0, view.model.index(-1, -1))
    assert names(view) == ["A", "B", "C"]
    dragged = view.model.mimeData([view.model.index(0, 0)])
    view.model.dropMimeData(dragged, Qt.DropAction.MoveAction, 2, 0, view.model.index(-1, -1))
    assert names(view) == ["B", "A", "C"]


@pytest.mark.parametrize(
    ("rows", "target", "order"),
    [((0, 1), 4, "CDABE"), ((3, 4), 1, "ADEBC"), ((0, 2, 4), 3, "BACED"), ((1, 2), 2, "ABCDE")],
)
def test_drag_moves_all_selected_runs_in_their_order(
    view: QueueView, bridge: QueueBridge, rows: tuple[int, ...], target: int, order: str
) -> None:
    bridge.queue.submit(campaign("A", "B", "C", "D", "E"))
    dragged = view.model.mimeData([view.model.index(row, column) for row in rows for column in (0, 1)])
    view.model.dropMimeData(dragged, Qt.DropAction.MoveAction, target, 0, view.model.index(-1, -1))
    assert "".join(names(view)) == order


def test_removed_waiting_runs_are_marked_cancelled(qtbot: QtBot, view: QueueView, bridge: QueueBridge) -> None:
    ended: list[RunStatus] = []
    bridge.finished.connect(lambda _run, status: ended.append(status))
    _, second = bridge.queue.submit(campaign("A", "B"))
    view.select(second)
    click(qtbot, view, "Remove from queue")
    assert names(view) == ["A"]
    assert ended == [RunStatus.CANCELLED]


def test_a_run_that_waits_for_its_time_shows_it(
    qtbot: QtBot, view: QueueView, bridge: QueueBridge, theme: Theme
) -> None:
    bridge.queue.resume()
    starts = datetime(2090, 1, 1, 14, 30, tzinfo=UTC)
    [run_id] = bridge.queue.submit(campaign("A"), starts=starts)
    shown = [view.model.index(0, column).data() for column in (QueueColumn.STATUS, QueueColumn.PROGRESS)]
    assert shown == ["Waiting until", "2090-01-01 14:30:00 UTC"]
    assert view._summary.text() == "0 of 1 done — waiting until 2090-01-01 14:30:00 UTC"
    status = ConsoleStatusBar(bridge, theme, bridge.queue.database)
    qtbot.addWidget(status)
    assert status.state_label.text() == "Waiting until 2090-01-01 14:30:00 UTC, 1 in the queue"
    view.select(run_id)
    view.remove_action.trigger()
    assert names(view) == [] and status.state_label.text() == "Ready"


@pytest.mark.usefixtures("worker_threads")
def test_paused_queue_starts_nothing_and_resumes(qtbot: QtBot, view: QueueView, bridge: QueueBridge) -> None:
    bridge.queue.submit(campaign("A"))
    qtbot.wait(400)
    assert bridge.queue.items[0].state is QueueState.WAITING
    assert view.pause_action.isChecked()
    with qtbot.waitSignal(bridge.finished) as finished:
        click(qtbot, view, "Pause the queue")
    assert finished.args[1] is RunStatus.FINISHED
    assert view.model.index(0, QueueColumn.PROGRESS).data() == "100%"
    view.table.selectRow(0)
    click(qtbot, view, "Repeat")
    assert len(names(view)) == 2
    qtbot.waitUntil(lambda: not bridge.queue.busy)
    click(qtbot, view, "Clear done")
    assert not view.table.isVisible()


@pytest.mark.usefixtures("worker_threads")
def test_running_run_is_cancelled_by_button(qtbot: QtBot, view: QueueView, bridge: QueueBridge) -> None:
    bridge.queue.submit(campaign("A", loop="open", rate=10, count=10_000))
    bridge.queue.resume()
    qtbot.waitUntil(lambda: bridge.queue.items[0].done > 0)
    with qtbot.waitSignal(bridge.finished) as finished:
        click(qtbot, view, "Cancel run")
    assert finished.args[1] is RunStatus.CANCELLED
    assert view.model.index(0, QueueColumn.STATUS).data() == "Cancelled"


@pytest.mark.usefixtures("worker_threads")
def test_queue_shows_its_total_time_left_and_the_running_row(
    qtbot: QtBot, view: QueueView, bridge: QueueBridge
) -> None:
    """Estimated from earlier runs with the same parameters; the running row is scrolled into view."""
    bridge.queue.submit(campaign("A"))
    bridge.queue.resume()
    qtbot.waitUntil(lambda: not bridge.queue.busy)
    bridge.queue.pause()
    bridge.queue.submit(campaign(*(f"Run {number}" for number in range(40))))
    labels = [label.text() for label in view.findChildren(QLabel)]
    assert any(text.startswith("1 of 41 done, about ") and text.endswith(" left — paused") for text in labels), labels
    view.table.scrollToBottom()
    bridge.queue.resume()
    qtbot.waitUntil(lambda: bridge.queue.items[1].state is QueueState.RUNNING)
    rect = view.table.visualRect(view.model.index(1, 0))
    assert view.table.viewport().rect().contains(rect), "the running row is in view"
    bridge.queue.cancel_all()
    qtbot.waitUntil(lambda: not bridge.queue.busy)


def test_rows_are_copied_with_header(view: QueueView, bridge: QueueBridge) -> None:
    bridge.queue.submit(campaign("A", "B"))
    view.table.selectAll()
    view.copy_action.trigger()
    header, *rows = QGuiApplication.clipboard().text().splitlines()
    assert header.split("\t")[:4] == ["Run", "Scenario", "Campaign", "Status"]
    assert [row.split("\t")[1] for row in rows] == ["A", "B"]


def test_context_menu_offers_the_same_actions(qtbot: QtBot, view: QueueView, bridge: QueueBridge) -> None:
    bridge.queue.submit(campaign("A"))
    view.table.selectRow(0)
    view.table.customContextMenuRequested.emit(QPoint(5, 5))
    menu = next(widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QMenu) and widget.isVisible())
    texts = [action.text() for action in menu.actions() if action.text()]
    menu.close()
    assert {"Open run", "Repeat", "Move up", "Cancel run", "Remove from queue"} <= set(texts)


def test_double_click_opens_the_run(qtbot: QtBot, view: QueueView, bridge: QueueBridge) -> None:
    (run_id,) = bridge.queue.submit(campaign("A"))
    with qtbot.waitSignal(view.opened) as opened:
        view.table.doubleClicked.emit(view.model.index(0, 1))
    assert opened.args == [run_id]
