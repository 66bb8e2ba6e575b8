"""A database that cannot be opened: the sentence, and how to continue. The file itself is not changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from labconsole.clock import wall_now
from labconsole.engine.queue import QueueState
from labconsole.processes import this_process
from labconsole.store.backup_files import backups_of, regular_backup
from labconsole.store.backups import back_up
from labconsole.store.errors import DamagedDatabaseError, StoreError
from labconsole.store.reader import Reader
from labconsole.store.run_store import Store
from labconsole_ui.shell.database_error_dialog import DatabaseErrorDialog
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.startup import create_services
from labconsole_ui.theme.theme import Theme
from tests.labconsole_ui.campaigns import campaign


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10_000])


def no_header(path: Path) -> None:
    path.write_bytes(bytes(100) + path.read_bytes()[100:])


def no_pages(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096] + bytes(path.stat().st_size - 4096))


@pytest.fixture
def database(home: Path) -> Path:
    path = home / "runs.db"
    with Store.open(path) as store:
        store.add_campaign(campaign("A", "B"), this_process(), wall_now())
    return path


@pytest.mark.parametrize("damage", [cut, no_header, no_pages])
def test_a_click_continues_with_the_backup_of_a_damaged_database(
    qtbot: QtBot, qapp: QApplication, theme: Theme, database: Path, damage: Callable[[Path], None]
) -> None:
    assert back_up(database) is not None
    damage(database)
    before = [sha256(path.read_bytes()).hexdigest() for path in (database, regular_backup(database))]
    with pytest.raises(DamagedDatabaseError) as caught:
        create_services(qapp, database, "light")
    dialog = DatabaseErrorDialog(database, caught.value, theme)
    qtbot.addWidget(dialog)
    dialog.show()
    assert dialog.sentence.text().startswith(f"{database} is damaged: ")
    assert "stays as it is" in dialog.remedy.text() and "2 runs" in dialog.remedy.text()
    assert dialog.focusWidget() is dialog.backup_button, "Return continues, and does not quit"
    with qtbot.waitSignal(dialog.accepted):
        qtbot.mouseClick(dialog.backup_button, Qt.MouseButton.LeftButton)
    assert dialog.chosen is not None and dialog.chosen.name.startswith("runs-restored-")
    with Reader(dialog.chosen) as reader:
        assert len(reader.runs()) == 2
    assert [sha256(path.read_bytes()).hexdigest() for path in (database, regular_backup(database))] == before


def test_without_a_backup_another_file_can_be_chosen_or_nothing(
    qtbot: QtBot, qapp: QApplication, theme: Theme, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(database)
    with pytest.raises(DamagedDatabaseError) as caught:
        create_services(qapp, database, "light")
    dialog = DatabaseErrorDialog(database, caught.value, theme)
    qtbot.addWidget(dialog)
    dialog.show()
    assert not dialog.backup_button.isVisible() and "no backup" in dialog.remedy.text()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    qtbot.mouseClick(dialog.other_button, Qt.MouseButton.LeftButton)
    assert dialog.isVisible()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(database.with_name("other.db")), ""))
    qtbot.mouseClick(dialog.other_button, Qt.MouseButton.LeftButton)
    assert dialog.chosen == database.with_name("other.db")
    again = DatabaseErrorDialog(database, caught.value, theme)
    qtbot.addWidget(again)
    with qtbot.waitSignal(again.rejected):
        qtbot.mouseClick(again.quit_button, Qt.MouseButton.LeftButton)
    assert again.chosen is None


def test_a_database_of_a_newer_console_is_refused_and_untouched(
    qtbot: QtBot, qapp: QApplication, theme: Theme, database: Path
) -> None:
    with closing(sqlite3.connect(database)) as raw:
        raw.execute("PRAGMA user_version = 99")
    before = sha256(database.read_bytes()).hexdigest()
    with pytest.raises(StoreError) as caught:
        create_services(qapp, database, "light")
    dialog = DatabaseErrorDialog(database, caught.value, theme)
    qtbot.addWidget(dialog)
    dialog.show()
    assert "newer" in dialog.sentence.text()
    assert not dialog.backup_button.isVisible() and dialog.other_button.isVisible()
    assert sha256(database.read_bytes()).hexdigest() == before


@pytest.mark.usefixtures("worker_threads")
def test_backup_is_written_when_runs_have_finished(qtbot: QtBot, window: MainWindow) -> None:
    window.backups.timer.setInterval(50)
    queue, database = window.services.bridge.queue, window.services.database
    queue.submit(campaign("A"))
    qtbot.waitUntil(lambda: all(item.state is QueueState.DONE for item in queue.items))
    qtbot.waitUntil(lambda: [backup.runs for backup in backups_of(database)] == [1])


def test_another_database_is_opened_when_the_window_has_closed(
    qtbot: QtBot, window: MainWindow, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = home / "other.db"
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(other), ""))
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    assert window.wanted_database == other
    assert not window.isVisible()
