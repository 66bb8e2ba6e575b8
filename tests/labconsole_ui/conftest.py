"""Fixtures: a real window on a real database in a temporary home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState, RunQueue
from labconsole.model.plugin import Plugins
from labconsole.paths import HOME_VARIABLE
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.services import Services
from labconsole_ui.runtime.settings import FILE_NAME, WindowState
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.theme.theme import Theme, ThemeMode
from tests.helpers.worker_threads import WorkerThreadOfProcesses, operations_in_threads, workers_in_threads
from tests.labconsole_ui.shared_window import SharedWindow

KIND = "amqp.messaging"


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
def worker_threads() -> Iterator[None]:
    """Threads of the test process conduct the runs of the window, where a process of theirs is not what is tested."""
    with workers_in_threads():
        yield


@pytest.fixture
def worker_threads_of_processes() -> Iterator[None]:
    """As `worker_threads`, for runs whose roles have to be processes."""
    with workers_in_threads(WorkerThreadOfProcesses):
        yield


@pytest.fixture
def operation_threads() -> Iterator[None]:
    """Threads of the test process perform operations of the window, where a process of theirs is not what is tested."""
    with operations_in_threads():
        yield


@pytest.fixture
def services(bridge: QueueBridge, theme: Theme, home: Path) -> Services:
    return Services(home / "runs.db", Plugins.discover(), bridge, theme, WindowState(home / FILE_NAME))


@pytest.fixture
def open_window(qtbot: QtBot, bridge: QueueBridge) -> Iterator[Callable[[Services], MainWindow]]:
    """Opens windows on the test's queue; at the end the queue is emptied and the windows are deleted."""
    windows: list[MainWindow] = []

    def open_one(services: Services) -> MainWindow:
        window = MainWindow(services)
        windows.append(window)
        window.resize(1280, 800)
        window.show()
        return window

    yield open_one
    for item in reversed(bridge.queue.items):
        if item.state is not QueueState.DONE:
            bridge.queue.cancel(item.run_id)
    qtbot.waitUntil(lambda: all(item.state is QueueState.DONE for item in bridge.queue.items))
    for window in windows:
        shiboken6.delete(window)


@pytest.fixture(scope="module")
def kept_panels() -> tuple[str, ...]:
    """Kinds of trials whose panels stay open in the shared window; a module whose tests use one says so."""
    return ()


@pytest.fixture(scope="module")
def module_window(
    qapp: QApplication, theme: Theme, tmp_path_factory: pytest.TempPathFactory, kept_panels: tuple[str, ...]
) -> Iterator[SharedWindow]:
    """The window that the module's tests share."""
    home = tmp_path_factory.mktemp("shared-window")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(home))
        shared = SharedWindow(home, theme, qapp, kept_panels)
        yield shared
        shared.close()


@pytest.fixture
def shared(module_window: SharedWindow, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedWindow]:
    """The shared window, for a test that changes nothing that is stored; it is reset afterwards."""
    monkeypatch.setenv(HOME_VARIABLE, str(module_window.home))
    module_window.activate()
    yield module_window
    module_window.reset()


@pytest.fixture
def emptied_home(module_window: SharedWindow) -> Iterator[None]:
    """Remove databases and keys from the home of the shared window.

    Before the test, too: a thread that outlives the window of another module creates its directory in this home.
    """
    module_window.remove_directories()
    yield
    module_window.remove_directories()


@pytest.fixture
def shown_window(shared: SharedWindow) -> MainWindow:
    """The window itself."""
    return shared.window


@pytest.fixture
def window(open_window: Callable[[Services], MainWindow], services: Services) -> MainWindow:
    return open_window(services)
