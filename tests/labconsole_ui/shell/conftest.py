"""A real window on a real database, in a home of its own; nothing of it is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState, RunQueue
from labconsole.plugin import Plugins
from labconsole_ui.bridge import QueueBridge
from labconsole_ui.main_window import MainWindow
from labconsole_ui.services import Services
from labconsole_ui.settings import FILE_NAME, WindowState
from labconsole_ui.theme import Theme, ThemeMode

KIND = "amqp.messaging"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Qt's offscreen platform says what it cannot do with a window; that is no fault of ours."""
    for item in items:
        item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", extend=True))


@pytest.fixture(scope="session")
def theme(qapp: QApplication) -> Theme:
    return Theme(qapp, ThemeMode.LIGHT)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def bridge(qapp: QApplication, home: Path) -> Iterator[QueueBridge]:
    bridge = QueueBridge(lambda wake: RunQueue(home / "runs.db", wake=wake), qapp)
    yield bridge
    bridge.close()
    bridge.setParent(None)


@pytest.fixture
def services(bridge: QueueBridge, theme: Theme, home: Path) -> Services:
    return Services(home / "runs.db", Plugins.discover(), bridge, theme, WindowState(home / FILE_NAME))


@pytest.fixture
def window(qtbot: QtBot, services: Services) -> Iterator[MainWindow]:
    window = MainWindow(services)
    window.resize(1280, 800)
    window.show()
    yield window
    queue = services.bridge.queue
    for item in reversed(queue.items):
        if item.state is not QueueState.DONE:
            queue.cancel(item.run_id)
    qtbot.waitUntil(lambda: all(item.state is QueueState.DONE for item in queue.items), timeout=20_000)
    window.close()
    window.deleteLater()
    qtbot.wait(1)
