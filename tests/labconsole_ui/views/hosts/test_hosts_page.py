"""The page of hosts: its scheduler, agents that join and are lost, enrolling, and addresses that are wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from labconsole.engine.operation_process import OperationProcess
from labconsole.engine.supervisor import Worker, WorkerProcess
from labconsole.hosts.cluster_certificates import enrol
from labconsole.paths import data_dir
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.hosts.hosts_page import LIST, HostsPage
from tests.helpers.worker_threads import OperationThread
from tests.labconsole.hosts.cluster_processes import Served

LONG_MS = 30_000


@pytest.fixture
def page(window: MainWindow) -> HostsPage:
    found = window.plugin_pages.open("page:console:hosts")
    assert isinstance(found, HostsPage)
    return found


def cell(page: HostsPage, row: int, column: int) -> str:
    model = page.parts.tables[0].model()
    return str(model.index(row, column).data())


def test_a_first_visit_says_what_to_do(page: HostsPage) -> None:
    assert "Start the scheduler here" in page.note.text()
    assert not page.busy.isVisible() and page.parts.isHidden()


@pytest.fixture
def listing_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads list the hosts; each other operation, such as the scheduler, is a process."""

    def worker(task: dict[str, Any], *arguments: Any) -> Worker:
        return (OperationThread if task["name"] == LIST else WorkerProcess)(task, *arguments)

    monkeypatch.setattr(OperationProcess, "worker", staticmethod(worker))


def test_hosts_are_shown_as_they_join_and_are_lost(
    qtbot: QtBot, page: HostsPage, listing_threads: None, tmp_path: Path
) -> None:
    qtbot.mouseClick(page.scheduler.start_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "tls://127.0.0.1:" in page.scheduler.state.text(), timeout=LONG_MS)
    assert page.scheduler.stop_button.isVisible() and not page.scheduler.start_button.isVisible()
    qtbot.waitUntil(lambda: not page.busy.isVisible(), timeout=LONG_MS)
    made = enrol("obu-1", data_dir() / "pki")
    files = tmp_path / "obu-1.pem", tmp_path / "passphrase"
    for file, content in zip(files, (made.pem, made.passphrase.reveal().encode()), strict=True):
        file.touch(0o600)
        file.write_bytes(content)
    given = ("--passphrase-file", str(files[1]), "--scheduler", page.address.text(), "--tag", "obu")
    agent = Served(Path(os.environ["LABCONSOLE_HOME"]) / "agent", "agent", str(files[0]), *given)
    try:
        qtbot.waitUntil(lambda: bool(page.parts.tables), timeout=LONG_MS)
        assert (cell(page, 0, 0), cell(page, 0, 2)) == ("obu-1", "obu")
    finally:
        agent.kill()
    qtbot.waitUntil(lambda: "obu-1 is gone" in page.scheduler.state.text(), timeout=1_500)
    qtbot.waitUntil(lambda: not page.parts.tables, timeout=LONG_MS)
    qtbot.waitUntil(lambda: not page.busy.isVisible(), timeout=LONG_MS)
    qtbot.mouseClick(page.scheduler.stop_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(page.scheduler.start_button.isVisible, timeout=LONG_MS)
    assert "was stopped" in page.scheduler.state.text()


def test_an_address_of_another_form_is_refused_at_once(qtbot: QtBot, page: HostsPage) -> None:
    page.address.setText("192.0.2.10")
    qtbot.mouseClick(page.refresh_button, Qt.MouseButton.LeftButton)
    assert "tls://192.0.2.10:8786" in page.note.text()
    assert not page.busy.isVisible()


@pytest.mark.usefixtures("operation_threads")
def test_a_scheduler_that_is_not_there_is_one_sentence(qtbot: QtBot, page: HostsPage) -> None:
    page.address.setText("tls://127.0.0.1:9")
    qtbot.keyClick(page.address, Qt.Key.Key_Return)
    assert page.busy.isVisible() and not page.refresh_button.isEnabled()
    qtbot.waitUntil(lambda: "does not answer" in page.note.text(), timeout=LONG_MS)
    assert page.refresh_button.isEnabled() and not page.busy.isVisible()


@pytest.mark.usefixtures("operation_threads")
def test_enrolling_shows_the_passphrase_once(qtbot: QtBot, page: HostsPage, tmp_path: Path) -> None:
    qtbot.mouseClick(page.enrol_button, Qt.MouseButton.LeftButton)
    dialog = page.window().findChild(OperationDialog)
    assert dialog is not None
    file = tmp_path / "rsu-1.pem"
    dialog.form.set_values({"host": "rsu-1", "file": str(file)})
    qtbot.waitUntil(dialog.start_button.isEnabled, timeout=LONG_MS)
    qtbot.mouseClick(dialog.start_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.close_button.isVisible, timeout=LONG_MS)
    assert dialog.work.shows_secrets
    assert b"ENCRYPTED PRIVATE KEY" in file.read_bytes()
    qtbot.mouseClick(dialog.close_button, Qt.MouseButton.LeftButton)
    assert not dialog.isVisible()


@pytest.mark.usefixtures("operation_threads")
def test_collecting_asks_the_hosts_of_the_scheduler_on_the_page(qtbot: QtBot, page: HostsPage) -> None:
    page.address.setText("tls://127.0.0.1:9")
    qtbot.mouseClick(page.collect_button, Qt.MouseButton.LeftButton)
    dialog = page.window().findChild(OperationDialog)
    assert dialog is not None
    qtbot.waitUntil(dialog.start_button.isEnabled, timeout=LONG_MS)
    qtbot.mouseClick(dialog.start_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.close_button.isVisible, timeout=LONG_MS)
    said = " ".join(label.text() for label in dialog.findChildren(QLabel))
    assert "The scheduler tls://127.0.0.1:9 does not answer" in said
    qtbot.mouseClick(dialog.close_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not page.busy.isVisible(), timeout=LONG_MS)


@pytest.mark.parametrize("button", ["collect_button", "summarise_button"])
def test_samples_are_those_of_the_runs_of_the_window(
    qtbot: QtBot, page: HostsPage, window: MainWindow, button: str
) -> None:
    page.address.setText("tls://192.0.2.10:8786")
    qtbot.mouseClick(getattr(page, button), Qt.MouseButton.LeftButton)
    (dialog,) = window.findChildren(OperationDialog)
    values = dialog.form.values()
    assert Path(str(values["db"])) == window.services.database
    assert values["scheduler"] == "tls://192.0.2.10:8786"
    dialog.reject()
