"""What the window remembers, and that nothing in its file can keep it from starting."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray

from labconsole_ui.settings import WindowState


def test_values_survive_a_restart(tmp_path: Path) -> None:
    state = WindowState(tmp_path / "window.ini")
    state.keep("theme", "dark")
    state.keep("flag", True)
    state.keep("docks", QByteArray(b"\x00\xff\x01"))
    state.keep("form/amqp", {"values": {"count": 5, "host": 'a"b,c'}})
    state.save()
    again = WindowState(tmp_path / "window.ini")
    assert again.text("theme") == "dark"
    assert again.flag("flag", False) is True
    assert again.blob("docks") == QByteArray(b"\x00\xff\x01")
    assert again.mapping("form/amqp") == {"values": {"count": 5, "host": 'a"b,c'}}


@pytest.mark.parametrize(
    "content", [b"\x00\x01\xff\xfe" * 100, b"[window\ngeometry=@ByteArray(", b"[form]\namqp={broken", b"]]]\n=\n"]
)
def test_broken_file_is_as_if_it_were_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "window.ini"
    path.write_bytes(content)
    state = WindowState(path)
    assert state.mapping("form/amqp") == {}
    assert state.blob("window/geometry").isEmpty()
    state.keep("theme", "light")
    state.save()
    assert WindowState(path).text("theme") == "light"
