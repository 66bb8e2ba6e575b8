"""The report window: pages, choices, PDF and signature, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QFileDialog, QProgressDialog, QWidget
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugins
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.services import Services
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.report.report_window import FORM_WIDTH, ReportWindow
from labconsole_ui.widgets.secret_dialog import SecretDialog
from tests.helpers.authorities import new_authority
from tests.helpers.identities import write_identity
from tests.helpers.pdfsig import pdfsig
from tests.labconsole_ui.shown_messages import shown_sentences
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")
Make = Callable[..., ReportWindow]


@pytest.fixture
def state(tmp_path: Path) -> WindowState:
    return WindowState(tmp_path / "window.ini")


@pytest.fixture
def make(
    qtbot: QtBot, stored: StoredRuns, plugins: Plugins, bridge: QueueBridge, theme: Theme, state: WindowState
) -> Iterator[Make]:
    parent = QWidget()
    services = Services(stored.path, plugins, bridge, theme, state)

    def window(*run_ids: int, baseline: int | str | None = None, published: tuple[str, ...] = ()) -> ReportWindow:
        kind = ReportKind.RUN if len(run_ids) == 1 else ReportKind.COMPARISON
        made = ReportWindow(services, ReportRequest(run_ids, kind, baseline, published), parent)
        made.show()
        qtbot.waitUntil(lambda: settled(made))
        return made

    yield window
    parent.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def settled(window: ReportWindow) -> bool:
    return not window.pages.progress.isVisible() and (bool(window.pages.pages) or window.pages.note.text() != WAITING)


WAITING = "Setting the pages ..."


def test_pages_are_shown_turned_and_zoomed(stored: StoredRuns, make: Make, qtbot: QtBot) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=300)
    pages = make(run_id).pages
    count = len(pages.pages)
    assert count > 2 and pages.place.text() == f"1 of {count}"
    assert not pages.back_button.isEnabled()
    qtbot.waitUntil(lambda: pages.area.verticalScrollBar().maximum() > 0)
    qtbot.mouseClick(pages.on_button, Qt.MouseButton.LeftButton)
    assert pages.place.text() == f"2 of {count}"
    assert not pages.area.horizontalScrollBar().isVisible(), "a page is as wide as the view"
    width = pages.pages[0].width()
    qtbot.mouseClick(pages.larger_button, Qt.MouseButton.LeftButton)
    assert pages.pages[0].width() > width
    qtbot.mouseClick(pages.fit_button, Qt.MouseButton.LeftButton)
    assert pages.pages[0].width() == width
    picture = pages.pages[0].grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)
    shades = {picture.pixelColor(x, y).value() for x in range(picture.width()) for y in range(picture.height())}
    assert len(shades) > 10, "the page is painted"


def test_choices_change_the_pages_and_are_remembered(
    stored: StoredRuns, make: Make, qtbot: QtBot, tmp_path: Path, state: WindowState, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_ids = stored.finished(("Test 1", {"test": 1}), ("Test 3", {"test": 3}), repeats=2, messages=100)
    window = make(*run_ids, baseline=run_ids[1], published=("swim-within-malaysia-small/test-3",))
    form = window.form
    assert form.kind_box.currentText() == "The campaign as a whole"
    assert [form.baseline_box.itemText(row) for row in range(2)] == ["Test 1", "Test 3"]
    assert form.baseline_box.currentText() == "Test 3"
    assert form.request().published == ("swim-within-malaysia-small/test-3",)
    before = [page.grab().toImage() for page in window.pages.pages[:1]]
    form.author.setFocus()
    qtbot.keyClicks(form.author, "A. Controller")
    qtbot.keyClicks(form.place, "Kuala Lumpur")
    form.paper_box.setCurrentIndex(1)
    form.kind_box.setCurrentIndex(0)
    qtbot.waitUntil(lambda: window.pages.progress.isVisible())
    qtbot.waitUntil(lambda: settled(window))
    assert [page.grab().toImage() for page in window.pages.pages[:1]] != before
    target = tmp_path / "report"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    qtbot.mouseClick(window.save_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(shown_sentences(window)))
    pdf = tmp_path / "report.pdf"
    assert shown_sentences(window) == [f"Saved: {pdf} ({len(window.pages.pages)} pages)."]
    assert pdf.read_bytes().startswith(b"%PDF")
    assert (state.text("report/author"), state.text("report/paper")) == ("A. Controller", "US Letter")
    assert make(run_ids[0]).form.author.text() == "A. Controller"


def test_a_comparison_against_a_published_column_is_reported_so(stored: StoredRuns, make: Make, qtbot: QtBot) -> None:
    run_ids = stored.finished(("Test 1", {"test": 1}), ("Test 3", {"test": 3}), messages=50)
    table = "swim-within-malaysia-small"
    form = make(*run_ids, baseline=f"{table}/test-3", published=(f"{table}/test-1", f"{table}/test-3")).form
    assert form.baseline_box.count() == 4
    assert form.baseline_box.currentText().startswith("Published: Test 3")
    assert form.request().baseline == f"{table}/test-3"
    assert form.width() <= FORM_WIDTH, "however long the titles are"
    form.baseline_box.setCurrentIndex(1)
    assert form.request().baseline == run_ids[1]


def test_a_report_is_signed_after_the_passphrase_was_asked_for(
    stored: StoredRuns, make: Make, qtbot: QtBot, tmp_path: Path, state: WindowState
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=100)
    identity = write_identity(tmp_path, "signer", new_authority("Lab CA"))
    window = make(run_id)
    form = window.form
    assert not form.key.isVisible()
    qtbot.mouseClick(form.sign_box, Qt.MouseButton.LeftButton)
    assert form.key.isVisible() and not window.save_button.isEnabled()
    form.key.line.setText(str(identity.key))
    form.certificates.line.setText(str(identity.certificate))
    assert window.save_button.isEnabled()
    target = tmp_path / "signed.pdf"
    for passphrase, outcome in (("wrong", "does not open"), ("passphrase of signer", "Signed and saved")):
        window.save_to(target)
        [dialog] = window.findChildren(SecretDialog)
        qtbot.keyClicks(dialog.edits["signing"], passphrase)
        qtbot.mouseClick(dialog.continue_button, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda outcome=outcome: any(outcome in sentence for sentence in shown_sentences(window)))
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert b"ETSI.CAdES.detached" in target.read_bytes()
    assert "Signature is Valid" in pdfsig(target)
    state.save()
    assert "passphrase" not in state.path.read_text(encoding="utf-8")


def test_a_report_that_is_cancelled_while_its_pages_are_set_is_not_written(
    stored: StoredRuns, make: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=100)
    window = make(run_id)
    window.save_to(tmp_path / "report.pdf")
    [dialog] = window.findChildren(QProgressDialog)
    qtbot.waitUntil(lambda: dialog.labelText() == "Setting the pages")
    dialog.canceled.emit()
    qtbot.waitUntil(lambda: bool(shown_sentences(window)))
    assert shown_sentences(window) == ["Cancelled. Nothing half-written is left."]
    assert list(tmp_path.glob("*.pdf")) == []


def test_failed_report_is_explained_in_a_sentence(stored: StoredRuns, make: Make, qtbot: QtBot, tmp_path: Path) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=50)
    [live] = stored.queued(("Test 2", {"test": 2}))
    gone, waiting = make(99), make(live)
    assert gone.pages.note.text().startswith("There is no run 99")
    assert f"Run {live}" in waiting.pages.note.text()
    assert not gone.save_button.isEnabled() and not waiting.save_button.isEnabled()
    window = make(run_id)
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    window.save_to(tmp_path / "file" / "report.pdf")
    qtbot.waitUntil(lambda: bool(shown_sentences(window)))
    assert "cannot be written" in shown_sentences(window)[0]


def test_a_note_without_a_matching_font_is_reported_without_pdf_a_and_that_is_shown(
    stored: StoredRuns, make: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=50)
    window = make(run_id)
    window.form.title.setText("Report \U00012000")
    window.save_to(tmp_path / "report.pdf")
    qtbot.waitUntil(lambda: bool(shown_sentences(window)))
    assert "CUNEIFORM SIGN A" in shown_sentences(window)[0]
