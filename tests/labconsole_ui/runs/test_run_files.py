"""Bundles of runs in the window: saved, imported by menu and by dropping, refused with a sentence."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from labconsole.store.run_store import Store
from labconsole_ui.runs.run_files import ExportFormat
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.widgets.message_bar import Tone
from tests.labconsole.agreements.two_owners import new_owner
from tests.labconsole_ui.shown_messages import shown_sentences
from tests.labconsole_ui.views.conftest import StoredRuns

LIMIT_MS = 30_000
"""An import waits for the disk: on a busy machine that takes seconds."""


@pytest.fixture
def bundle(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> Path:
    """Runs 1 and 2, saved from the window."""
    with closing(StoredRuns(window.services.database)) as runs:
        runs.finished(("A", {"test": 1}), ("B", {"test": 2}), messages=50)
    window.files.export_to(ExportFormat.BUNDLE, [1, 2], tmp_path / "two")
    qtbot.waitUntil(lambda: f"Written: {tmp_path / 'two.lcz'}." in shown_sentences(window), timeout=LIMIT_MS)
    return tmp_path / "two.lcz"


def forget(window: MainWindow) -> None:
    """Remove all runs, as if the bundle came from somewhere else."""
    with Store.open(window.services.database) as store, store.writer.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM campaign")


def drop(window: MainWindow, file: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file))])
    copy, left, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    entered = QDragEnterEvent(QPoint(50, 50), copy, data, left, none)
    QApplication.sendEvent(window, entered)
    if entered.isAccepted():
        QApplication.sendEvent(window, QDropEvent(QPoint(50, 50), copy, data, left, none))
    return entered.isAccepted()


def test_a_dropped_bundle_is_imported_and_leads_to_its_comparison(
    qtbot: QtBot, window: MainWindow, bundle: Path
) -> None:
    forget(window)
    assert not drop(window, bundle.with_suffix(".zip"))
    assert drop(window, bundle)
    qtbot.waitUntil(lambda: shown_sentences(window)[0].startswith("Imported: runs"), timeout=LIMIT_MS)
    with window.services.reader() as reader:
        run_ids = sorted(run.id for run in reader.runs())
    assert len(run_ids) == 2
    qtbot.mouseClick(window.messages.entries()[0].link_button, Qt.MouseButton.LeftButton)
    assert window.pages.current_key == f"compare:{run_ids[0]},{run_ids[1]}"


def test_existing_runs_are_skipped_and_files_that_are_not_bundles_are_refused(
    qtbot: QtBot, window: MainWindow, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(_window: MainWindow, title: str, *_: str) -> tuple[str, str]:
        asked.append(title)
        return str(bundle), ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", answer)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
    assert asked == ["Import runs"], f"Ctrl+I with {QApplication.activeWindow()} in front"

    def nothing_new() -> None:
        assert "Nothing new: Runs that this database had already: 2." in shown_sentences(window)

    qtbot.waitUntil(nothing_new, timeout=LIMIT_MS)
    broken = tmp_path / "broken.lcz"
    content = bytearray(bundle.read_bytes())
    content[len(content) // 2] ^= 1
    broken.write_bytes(content)
    window.files.import_bundles([broken])
    qtbot.waitUntil(lambda: shown_sentences(window)[0].startswith(f"{broken} was not imported"), timeout=LIMIT_MS)
    with window.services.reader() as reader:
        assert len(reader.runs()) == 2


def test_of_several_bundles_each_is_accounted_for(
    qtbot: QtBot, window: MainWindow, bundle: Path, tmp_path: Path
) -> None:
    forget(window)
    refused = [tmp_path / name for name in ("empty.lcz", "gone.lcz", "folder.lcz")]
    refused[0].write_bytes(b"")
    refused[2].mkdir()
    window.files.import_bundles([*refused, bundle, bundle])
    qtbot.waitUntil(lambda: shown_sentences(window)[0].startswith("Imported: runs"), timeout=LIMIT_MS)
    good, bad = (entry.message for entry in window.messages.entries())
    assert "Runs that this database had already: 2." in good.sentence
    assert bad.sentence.endswith("2 more faults are in the details.")
    assert all(str(file) in bad.details for file in refused)


def test_the_signer_of_a_bundle_is_reported_and_a_changed_one_refused(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    other = new_owner(tmp_path / "other", "b")
    with closing(StoredRuns(other.folder / "runs.db")) as runs:
        runs.finished(("A", {"test": 1}), messages=50)
    file = tmp_path / "b.lcz"
    other.does("bundle", "1", file, "--sign", "b-signer")
    window.files.import_bundles([file])
    qtbot.waitUntil(lambda: any("Imported: run" in one for one in shown_sentences(window)), timeout=LIMIT_MS)
    message = window.messages.entries()[0].message
    assert "Signed by b-signer of an unknown State. A signer is not trusted here" in message.sentence
    assert (message.tone, "not trusted here (untrusted)" in message.details) == (Tone.WARNING, True)
    file.write_bytes(file.read_bytes() + b" ")
    window.files.import_bundles([file])
    qtbot.waitUntil(lambda: any("signed, but was changed" in one for one in shown_sentences(window)), timeout=LIMIT_MS)
