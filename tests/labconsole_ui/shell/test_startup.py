"""Starting the window from outside: a sentence instead of Qt's abort, and a clean end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labconsole import qt_libraries
from labconsole_ui.app import main, missing_libraries


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux takes these libraries from the system")
def test_missing_xcb_library_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.setitem(qt_libraries.PACKAGES, "libxcb-not-there.so.0", "libxcb-not-there0")
    assert main([]) == 1
    error = capsys.readouterr().err
    assert "libxcb-not-there.so.0" in error
    assert "sudo apt-get install" in error
    assert "libxcb-not-there0" in error


def test_offscreen_needs_no_xcb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setitem(qt_libraries.PACKAGES, "libxcb-not-there.so.0", "libxcb-not-there0")
    assert missing_libraries() == ""


START_UP = """
import sys, threading
from labconsole.model.plugin import Plugin, Plugins
from labconsole_ui.app import main
code = main(["--db", sys.argv[1]])
from labconsole_ui.shell.startup import import_pages_ahead
before = set(sys.modules)
broken = Plugin(name="x", title="X", description="", panels={"x": "no_such_module:Panel"})
importing = import_pages_ahead(Plugins((broken, *Plugins.discover().found)))
assert importing is not threading.main_thread()
importing.join()
print(*sorted(set(sys.modules) - before))
sys.exit(code)
"""


def test_file_that_is_not_a_database_is_refused_and_the_pages_of_all_plugins_are_imported_in_a_thread(
    tmp_path: Path,
) -> None:
    """In one process, from outside: it exits with 1 and a sentence."""
    database = tmp_path / "runs.db"
    database.write_bytes(b"not a database" * 100)
    environment = os.environ | {"LABCONSOLE_HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", START_UP, str(database)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "runs.db" in done.stderr
    assert "Traceback" not in done.stderr
    pages = {
        "labconsole_certificates.panel.page",
        "labconsole_keypool.panel.service_panel",
        "labconsole_amqp.panel.messaging",
    }
    assert pages <= set(done.stdout.split())


def test_window_opens_and_closes_without_output(tmp_path: Path) -> None:
    code = (
        "import gc, sys; from PySide6.QtCore import QTimer; from PySide6.QtWidgets import QApplication\n"
        "from labconsole_ui.app import main\n"
        "app = QApplication([])\n"
        "QTimer.singleShot(500, lambda: [print(len(gc.get_objects())), *(w.close() for w in app.topLevelWidgets())])\n"
        "sys.exit(main(['--theme', 'dark']))"
    )
    environment = os.environ | {"LABCONSOLE_HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    words = [line for line in ended.stderr.splitlines() if "propagateSizeHints" not in line]
    assert words == []
    assert int(ended.stdout) < 50_000, "full garbage collections must not look through all that was made at the start"
    assert (tmp_path / "runs.db").exists()
    assert (tmp_path / "window.ini").exists()
