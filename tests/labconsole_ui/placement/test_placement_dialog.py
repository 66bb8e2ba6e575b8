"""The dialog that places roles on hosts: drops, buttons, undo, requirements, refusals, and host list files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QTreeWidget, QTreeWidgetItem, QWidget
from pytestqt.qtbot import QtBot

from labconsole import __version__
from labconsole.model.placement import HostFacts, Placement
from labconsole.profiles.host_list import read_host_list
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.placement.placement_dialog import PlacementDialog
from labconsole_ui.placement.placing import HERE, Target, TargetKind
from tests.labconsole_ui.placement.drops import drop
from tests.labconsole_ui.shared_window import SharedWindow

NAMES = {"broker", "receiver-0", "sender-0", "sender-1", "sender-2"}
OBU_1, OBU_2, RSU = (
    HostFacts("obu-1", 4, ("obu",), ("lo", "eth1"), ("token:lab",), __version__, 0.1),
    HostFacts("obu-2", 2, ("obu",), ("lo",), (), __version__, 0.2),
    HostFacts("rsu", 8, (), ("lo",), (), "0.0.1", 0.3),
)


def host(name: str) -> Target:
    return Target(TargetKind.HOST, name)


OBUS = Target(TargetKind.TAG, "obu")


@pytest.fixture(scope="module")
def kept_panels() -> tuple[str, ...]:
    return ("amqp.messaging",)


@pytest.fixture
def panel(shared: SharedWindow) -> TrialPanel:
    panel = shared.trial("amqp.messaging")
    panel.form.set_values({"senders": 3, "numbered": True})
    return panel


@pytest.fixture
def open_dialog(panel: TrialPanel) -> Iterator[Callable[[], PlacementDialog]]:
    opened: list[PlacementDialog] = []

    def open_one() -> PlacementDialog:
        found = panel.presets.place_roles()
        assert found is not None
        found.placing.list_hosts([OBU_1, OBU_2, RSU])
        opened.append(found)
        return found

    yield open_one
    for dialog in opened:
        if shiboken6.isValid(dialog):
            dialog.reject()


@pytest.fixture
def dialog(open_dialog: Callable[[], PlacementDialog]) -> PlacementDialog:
    return open_dialog()


def selected(tree: QTreeWidget, *names: str) -> None:
    """Select the lines of these roles alone."""
    tree.clearSelection()
    found = [
        item
        for name in names
        for item in tree.findItems(name, Qt.MatchFlag.MatchStartsWith | Qt.MatchFlag.MatchRecursive)
    ]
    assert len(found) == len(names)
    for item in found:
        item.setSelected(True)


def placed(dialog: PlacementDialog) -> dict[str, str]:
    """Where each role would run, as a run decides it."""
    found = {name: dialog.placing.placement.request(name) for name in sorted(NAMES)}
    return {name: "" if request is None else str(request) for name, request in found.items()}


def test_the_roles_of_the_form_are_offered(dialog: PlacementDialog) -> None:
    assert set(dialog.placing.names) == NAMES
    assert [line.text(0) for line in lines(dialog.roles)] == ["broker", "receiver-* (1)", "sender-* (3)"]
    titles = [line.text(0) for line in lines(dialog.hosts)]
    assert titles == ["This computer", "obu-1", "obu-2", "rsu", "Tag obu (hosts: 2)"]


def lines(tree: QTreeWidget) -> list[QTreeWidgetItem]:
    return [item for index in range(tree.topLevelItemCount()) if (item := tree.topLevelItem(index)) is not None]


def test_roles_are_dropped_on_hosts_and_tags_and_back(dialog: PlacementDialog) -> None:
    selected(dialog.roles, "broker", "receiver-*")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(host("obu-1")))
    assert dialog.note.text() == "broker: host obu-1; receiver-*: host obu-1"
    selected(dialog.roles, "sender-*")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(OBUS))
    selected(dialog.roles, "sender-1")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(host("obu-2")))
    assert placed(dialog) == {
        "broker": "host obu-1",
        "receiver-0": "host obu-1",
        "sender-0": "tag obu",
        "sender-1": "host obu-2",
        "sender-2": "tag obu",
    }
    selected(dialog.hosts, "receiver-*")
    drop(dialog.hosts, dialog.roles, None)
    selected(dialog.hosts, "sender-1")
    drop(dialog.hosts, dialog.hosts, dialog.hosts.item_of(HERE))
    assert (placed(dialog)["receiver-0"], placed(dialog)["sender-1"], placed(dialog)["sender-2"]) == ("", "", "tag obu")


def test_with_ctrl_a_second_host_shares_the_roles(dialog: PlacementDialog) -> None:
    for target, keys in (
        (host("obu-1"), Qt.KeyboardModifier.NoModifier),
        (host("obu-2"), Qt.KeyboardModifier.ControlModifier),
    ):
        selected(dialog.roles, "sender-*")
        drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(target), keys)
    assert placed(dialog)["sender-0"] == "host obu-1 or obu-2"


def test_buttons_and_keys_do_what_drops_do(qtbot: QtBot, dialog: PlacementDialog) -> None:
    assert not dialog.place_button.isEnabled() and not dialog.back_button.isEnabled()
    selected(dialog.roles, "sender-*")
    for target in (host("obu-1"), host("obu-2")):
        dialog.hosts.item_of(target).setSelected(True)
    qtbot.mouseClick(dialog.place_button, Qt.MouseButton.LeftButton)
    assert placed(dialog)["sender-2"] == "host obu-1 or obu-2"
    selected(dialog.roles, "sender-*")
    qtbot.mouseClick(dialog.back_button, Qt.MouseButton.LeftButton)
    assert set(placed(dialog).values()) == {""}
    qtbot.mouseClick(dialog.undo_button, Qt.MouseButton.LeftButton)
    assert placed(dialog)["sender-2"] == "host obu-1 or obu-2"
    dialog.hosts.clearSelection()
    dialog.roles.clearSelection()
    child = dialog.hosts.item_of(host("obu-1")).child(0)
    assert child is not None
    child.setSelected(True)
    dialog.activateWindow()
    dialog.hosts.setFocus()
    qtbot.waitUntil(dialog.hosts.hasFocus)
    qtbot.keyClick(dialog.hosts, Qt.Key.Key_Delete)
    assert set(placed(dialog).values()) == {""}


def test_what_no_host_can_do_is_refused_in_a_sentence(dialog: PlacementDialog) -> None:
    selected(dialog.roles, "sender-*")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(host("rsu")))
    assert dialog.note.text().startswith("rsu has version 0.0.1 of the console")
    assert set(placed(dialog).values()) == {""} and dialog.note.property("tone") == "bad"
    selected(dialog.roles, "sender-*")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(OBUS))
    for column, text, begins in ((2, "5", "No host suits"), (2, "many", "cores:"), (3, "eth9", "No host suits")):
        cell = dialog.requests.item(0, column)
        assert cell is not None
        cell.setText(text)
        assert dialog.note.text().startswith(begins)
        assert placed(dialog)["sender-0"] == "tag obu"
    for column, text in ((2, "4"), (3, "eth1")):
        cell = dialog.requests.item(0, column)
        assert cell is not None
        cell.setText(text)
    assert placed(dialog)["sender-0"] == "tag obu, cores 4, interface eth1"


def test_roles_take_what_they_ask_for_along(dialog: PlacementDialog) -> None:
    selected(dialog.roles, "sender-*")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(OBUS))
    cell = dialog.requests.item(0, 2)
    assert cell is not None
    cell.setText("2")
    for role, target in (("sender-*", "obu-1"), ("sender-1", "obu-2")):
        selected(dialog.roles, role)
        drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(host(target)))
    asked = placed(dialog)
    assert (asked["sender-0"], asked["sender-1"]) == ("host obu-1, cores 2", "host obu-2, cores 2")
    cell = dialog.requests.item(1, 2)
    assert cell is not None
    cell.setText("4")
    selected(dialog.roles, "sender-2")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(host("obu-2")))
    assert dialog.note.text().startswith("No host suits the roles sender-2 (host obu-2, cores 4)")
    assert placed(dialog)["sender-2"] == "host obu-1, cores 4"
    for role in ("sender-1", "sender-*"):
        selected(dialog.roles, role)
        drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(HERE if role == "sender-1" else host("obu-1")))
    assert placed(dialog)["sender-1"] == "host obu-1, cores 4", "as the others of its group"


def test_hosts_of_this_computer_are_those_that_a_run_starts(qtbot: QtBot, dialog: PlacementDialog) -> None:
    selected(dialog.roles, "sender-*")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(host("obu-1")))
    dialog.of_this_computer.click()
    dialog.local_box.setValue(2)
    qtbot.mouseClick(dialog.use_button, Qt.MouseButton.LeftButton)
    assert dialog.isVisible() and "obu-1" in dialog.note.text(), "this computer starts no host of this name"
    selected(dialog.roles, "sender-*")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(host("local-2")))
    assert dialog.placing.placement.local == 2 and placed(dialog)["sender-0"] == "host local-2"


def test_a_used_placement_is_that_of_the_panel_and_the_file(
    qtbot: QtBot, panel: TrialPanel, open_dialog: Callable[[], PlacementDialog], tmp_path: Path
) -> None:
    dialog = open_dialog()
    selected(dialog.roles, "sender-*")
    drop(dialog.roles, dialog.hosts, dialog.hosts.item_of(OBUS))
    dialog.address.setText("tls://192.0.2.10:8786")
    dialog.of_scheduler.toggled.emit(True)
    dialog.save_file(tmp_path / "hosts.toml")
    qtbot.mouseClick(dialog.use_button, Qt.MouseButton.LeftButton)
    assert panel.presets.placement == read_host_list(tmp_path / "hosts.toml").stored()
    assert panel.presets.placement["scheduler"] == "tls://192.0.2.10:8786"
    again = open_dialog()
    assert placed(again)["sender-0"] == "tag obu", "it begins with the placement of the panel"


def file_drop(widget: QWidget, path: Path) -> None:
    """Drop a file on a widget."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, left, keys = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(widget, QDragEnterEvent(QPoint(2, 2), copy, data, left, keys))
    QApplication.sendEvent(widget, QDropEvent(QPointF(2, 2), copy, data, left, keys))


def test_a_host_list_file_is_dropped_on_the_dialog_or_the_button(
    panel: TrialPanel, dialog: PlacementDialog, tmp_path: Path
) -> None:
    (tmp_path / "hosts.start").write_text("obu-1 sender-*\nobu-2 sender-*\n")
    file_drop(dialog, tmp_path / "hosts.start")
    assert placed(dialog)["sender-0"] == "host obu-1 or obu-2"
    dialog.placing.stack.undo()
    assert dialog.placing.placement == Placement()
    file_drop(panel.presets.hosts_button, tmp_path / "hosts.start")
    assert panel.presets.placement["roles"][0]["host"] == ["obu-1", "obu-2"]


@pytest.mark.usefixtures("operation_threads")
def test_a_scheduler_that_does_not_answer_is_one_sentence_and_the_layout_is_kept(
    qtbot: QtBot, open_dialog: Callable[[], PlacementDialog]
) -> None:
    dialog = open_dialog()
    dialog.resize(dialog.width(), 720)
    dialog.address.setText("192.0.2.10")
    qtbot.mouseClick(dialog.refresh_button, Qt.MouseButton.LeftButton)
    assert "tls://192.0.2.10:8786" in dialog.note.text()
    dialog.address.setText("tls://127.0.0.1:9")
    qtbot.mouseClick(dialog.refresh_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "does not answer" in dialog.note.text())
    assert dialog.refresh_button.isEnabled() and not dialog.busy.isVisible()
    dialog.reject()
    assert open_dialog().height() == 720


@pytest.mark.usefixtures("operation_threads")
def test_enter_in_the_address_reads_its_hosts_and_does_not_use_the_placement(
    qtbot: QtBot, dialog: PlacementDialog
) -> None:
    used: list[object] = []
    dialog.used.connect(used.append)
    dialog.address.setFocus()
    for address in ("192.0.2.10", "tls://127.0.0.1:9"):
        dialog.address.setText(address)
        qtbot.keyClick(dialog.address, Qt.Key.Key_Return)
        assert dialog.isVisible() and not used
    qtbot.waitUntil(lambda: "does not answer" in dialog.note.text())


def test_the_address_that_is_shown_is_used_although_its_hosts_were_not_read(dialog: PlacementDialog) -> None:
    used: list[Placement] = []
    dialog.used.connect(used.append)
    dialog.placing.place(["broker"], OBUS)
    dialog.address.setText("192.0.2.10")
    dialog.use()
    assert not used and dialog.note.property("tone") == "bad"
    dialog.address.setText("tls://192.0.2.10:8786")
    dialog.use()
    assert [one.scheduler for one in used] == ["tls://192.0.2.10:8786"]


def test_a_host_that_refuses_ends_what_several_should_share(dialog: PlacementDialog) -> None:
    selected(dialog.roles, "sender-*")
    for target in (host("obu-1"), host("rsu"), OBUS):
        dialog.hosts.item_of(target).setSelected(True)
    dialog.place_selected()
    assert dialog.note.text().startswith("rsu has version 0.0.1") and placed(dialog)["sender-0"] == "host obu-1"


def test_200_hosts_with_long_names_stay_in_view(qtbot: QtBot, dialog: PlacementDialog) -> None:
    names = [f"obu-{number:03}-{'of-the-testbed-' * 6}{number:03}" for number in range(200)]
    dialog.placing.list_hosts([HostFacts(name, 4, ("obu",), (), (), __version__) for name in names])
    line = dialog.hosts.item_of(host(names[150]))
    dialog.hosts.setCurrentItem(line)
    dialog.hosts.scrollToItem(line)
    position = dialog.hosts.verticalScrollBar().value()
    dialog.placing.place(["broker"], host(names[150]))
    assert dialog.hosts.verticalScrollBar().value() == position > 0
    assert dialog.hosts.currentItem() is dialog.hosts.item_of(host(names[150]))
    assert names[150] in dialog.hosts.item_of(host(names[150])).toolTip(0)
    dialog.hosts.item_of(host(names[150])).setExpanded(False)
    for name in names[:15]:
        dialog.placing.place(["sender-*"], host(name), shared=True)
    assert not dialog.hosts.item_of(host(names[150])).isExpanded()
    qtbot.wait(50)
    assert len(dialog.note.text()) < 600 and names[14] in dialog.note.toolTip()
    assert dialog.hosts.height() > 200, "a long sentence leaves the hosts room"
    dialog.placing.list_hosts([OBU_1])
    assert dialog.hosts.item_of(host(names[150])).text(1) == "has not joined"


def test_samples_that_stay_still_stay_after_a_look_at_hosts_of_this_computer(
    dialog: PlacementDialog, tmp_path: Path
) -> None:
    (tmp_path / "hosts.toml").write_text('samples = "stay"\n[[roles]]\nrole = "broker"\nhost = "obu-1"\n')
    dialog.open_file(tmp_path / "hosts.toml")
    dialog.of_this_computer.click()
    assert dialog.placing.placement.samples == "bring", "these hosts end with the run"
    dialog.of_scheduler.click()
    assert dialog.placing.placement.samples == "stay"
