"""Settings of the window are stored, and no content of their file prevents its start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray

from labconsole.model.plugin import Plugins
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.services import Services
from labconsole_ui.runtime.settings import FILE_NAME, WindowState
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.theme.theme import Theme
from tests.helpers.pages import opened_trial
from tests.helpers.recorded_home import unpack_home
from tests.labconsole_ui.conftest import KIND


def test_values_survive_a_restart(tmp_path: Path) -> None:
    state = WindowState(tmp_path / "window.ini")
    state.set("theme", "dark")
    state.set("flag", True)
    state.set("docks", QByteArray(b"\x00\xff\x01"))
    state.set("form/amqp", {"values": {"count": 5, "host": 'a"b,c'}})
    state.save()
    again = WindowState(tmp_path / "window.ini")
    assert again.text("theme") == "dark"
    assert again.flag("flag", False) is True
    assert again.blob("docks") == QByteArray(b"\x00\xff\x01")
    assert again.mapping("form/amqp") == {"values": {"count": 5, "host": 'a"b,c'}}


@pytest.mark.parametrize(
    "content", [b"\x00\x01\xff\xfe" * 100, b"[window\ngeometry=@ByteArray(", b"[form]\namqp={broken", b"]]]\n=\n"]
)
def test_broken_settings_file_is_ignored(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "window.ini"
    path.write_bytes(content)
    state = WindowState(path)
    assert state.mapping("form/amqp") == {}
    assert state.blob("window/geometry").isEmpty()
    state.set("theme", "light")
    state.save()
    assert WindowState(path).text("theme") == "light"


def test_settings_of_version_0_1_0_are_applied(
    open_window: Callable[[Services], MainWindow], bridge: QueueBridge, theme: Theme, home: Path
) -> None:
    unpack_home(home)
    state = WindowState(home / "home" / FILE_NAME)
    window = open_window(Services(home / "runs.db", Plugins.discover(), bridge, theme, state))
    assert opened_trial(window, KIND).form.values()["count"] == 777
    assert state.text("window/text size") == "120"
