"""The dialog of operations by clicks: form, typed label, progress, cancel, secrets, each outcome."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.model.operation import Confirmation, Operation, Result
from labconsole_ui.operations.confirmation import ConfirmationBox
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.operations.operation_progress import OperationProgressView
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.message_bar import MessageBar
from labconsole_ui.widgets.secret_dialog import SecretDialog
from tests.helpers.practice import PLUGIN

LEFT = Qt.MouseButton.LeftButton
TIMEOUT_MS = 20_000


@pytest.fixture(scope="module")
def tally() -> Iterator[Operation[Any]]:
    """The practice plugin's operation, found by its process, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PLUGIN))
        patch.setenv("PYTHONPATH", str(PLUGIN), prepend=os.pathsep)
        importlib.invalidate_caches()
        yield importlib.import_module("practice_operation").Tally()


Open = Callable[..., OperationDialog]


@pytest.fixture
def open_dialog(qtbot: QtBot, theme: Theme, tally: Operation[Any]) -> Iterator[Open]:
    """Opens the operation's dialog over a window; both are deleted at the end."""
    window = QWidget()
    window.resize(800, 600)
    window.show()

    def open_one(parent: QWidget = window, **values: Any) -> OperationDialog:
        dialog = OperationDialog(parent, tally, theme, values)
        dialog.show()
        return dialog

    yield open_one
    shiboken6.delete(window)


def ends(dialog: OperationDialog) -> list[OperationEnd]:
    """What `ended` carries from now on."""
    ended: list[OperationEnd] = []
    dialog.ended.connect(ended.append)
    return ended


def press_start(qtbot: QtBot, dialog: OperationDialog) -> None:
    qtbot.waitUntil(dialog.start_button.isEnabled, timeout=TIMEOUT_MS)
    qtbot.mouseClick(dialog.start_button, LEFT)


def test_an_operation_shows_progress_eta_and_its_result(qtbot: QtBot, open_dialog: Open) -> None:
    dialog = open_dialog(count=60, pause=0.02)
    ended = ends(dialog)
    press_start(qtbot, dialog)
    assert dialog.form.isHidden() and not dialog.start_button.isVisible()
    qtbot.waitUntil(lambda: "about" in dialog.work.count.text(), timeout=TIMEOUT_MS)
    assert dialog.running and dialog.work.bar.value() > 0 and dialog.work.count.text().split(" of ")[1][:2] == "60"
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
    assert ended == [OperationEnd(Outcome.DONE, "Counted to 60.")]
    assert dialog.work.sentence.text() == "Counted to 60." and dialog.work.bar.isHidden()
    assert dialog.close_button.isVisible() and not dialog.again_button.isVisible()
    qtbot.mouseClick(dialog.close_button, LEFT)
    qtbot.waitUntil(lambda: not shiboken6.isValid(dialog))


def test_tables_of_the_result_are_shown_in_their_order_in_colours_and_can_be_copied(
    qtbot: QtBot, open_dialog: Open, theme: Theme
) -> None:
    dialog = open_dialog(table=True)
    ended = ends(dialog)
    press_start(qtbot, dialog)
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
    parts = dialog.work.parts
    assert dialog.work.sentence.text() == "Two tables." and parts.isVisible()
    first, second = parts.tables
    shown = [parts.layout().itemAt(at).widget() for at in range(parts.layout().count())]
    labels = [widget for widget in shown if isinstance(widget, QLabel)]
    assert [label.text() for label in labels] == ["Row meets column:", "A meets B too often.", "In all: 3."]
    assert shown == [first, *labels[:2], second, labels[2]] and labels[1].property("tone") == "bad"
    colours = [first.model().index(row, 0).data(Qt.ItemDataRole.ForegroundRole).name() for row in range(3)]
    assert colours == [theme.colour(tone).name() for tone in ("good", "warning", "bad")]
    first.selectRow(1)
    first.copy_action.trigger()
    assert QGuiApplication.clipboard().text() == "\tNumber\tTo do\nno\ttwo\tcount again\n"
    dialog.start(dialog.form.parameters)
    assert parts.isHidden() and not parts.tables
    qtbot.waitUntil(lambda: len(ended) == 2, timeout=TIMEOUT_MS)


def test_cancel_ends_it_and_escape_does_not(qtbot: QtBot, open_dialog: Open) -> None:
    dialog = open_dialog(count=10_000, pause=0.01)
    ended = ends(dialog)
    press_start(qtbot, dialog)
    qtbot.waitUntil(lambda: bool(dialog.work.count.text()), timeout=TIMEOUT_MS)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isVisible() and dialog.running
    counted = dialog.work.count.text()
    qtbot.waitUntil(lambda: dialog.work.count.text() != counted, timeout=TIMEOUT_MS)
    assert dialog.work.warning.isVisible() and dialog.work.warning.text().startswith("Still running")
    qtbot.mouseClick(dialog.cancel_button, LEFT)
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
    assert ended[0].outcome is Outcome.CANCELLED and ended[0].sentence.startswith("Counted to ")
    assert dialog.work.warning.isHidden()
    qtbot.mouseClick(dialog.again_button, LEFT)
    assert dialog.form.isVisible() and dialog.form.values()["count"] == 10_000


def test_destructive_operation_needs_its_label_typed_exactly(qtbot: QtBot, open_dialog: Open) -> None:
    dialog = open_dialog(destroy=True)
    ended = ends(dialog)
    qtbot.waitUntil(dialog.confirmation.isVisible, timeout=TIMEOUT_MS)
    assert dialog.confirmation.loss.text() == "All numbers in my-label will be lost."
    for typed in ("My-Label", "my-label2", "my-labe"):
        dialog.confirmation.edit.clear()
        qtbot.keyClicks(dialog.confirmation.edit, typed)
        assert not dialog.start_button.isEnabled(), typed
    qtbot.keyClicks(dialog.confirmation.edit, "l")
    press_start(qtbot, dialog)
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
    assert ended[0].outcome is Outcome.DONE
    assert dialog.confirmation.typed == "", "it must be typed again for the next start"


def test_return_presses_the_button_that_has_the_focus_but_cancels_nothing(qtbot: QtBot, open_dialog: Open) -> None:
    left = open_dialog(count=60, pause=0.02)
    qtbot.waitUntil(left.start_button.isEnabled, timeout=TIMEOUT_MS)
    left.cancel_button.setFocus()
    qtbot.keyClick(left.cancel_button, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not shiboken6.isValid(left))
    dialog = open_dialog(count=60, pause=0.02)
    ended = ends(dialog)
    qtbot.waitUntil(dialog.start_button.isEnabled, timeout=TIMEOUT_MS)
    qtbot.keyClick(dialog.form.row("count").editor.findChild(QLineEdit), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: dialog.running, timeout=TIMEOUT_MS)
    qtbot.keyClick(dialog.cancel_button, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
    assert ended[0].outcome is Outcome.DONE
    qtbot.keyClick(dialog.close_button, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not shiboken6.isValid(dialog))


def test_a_mistake_in_the_form_cannot_be_started(qtbot: QtBot, open_dialog: Open) -> None:
    dialog = open_dialog()
    qtbot.waitUntil(dialog.start_button.isEnabled, timeout=TIMEOUT_MS)
    edit = dialog.form.row("count").editor.findChild(QLineEdit)
    edit.selectAll()
    qtbot.keyClicks(edit, "0")
    qtbot.waitUntil(lambda: not dialog.start_button.isEnabled() and bool(dialog.form.problems))


def test_what_was_entered_just_before_the_start_counts(qtbot: QtBot, open_dialog: Open) -> None:
    dialog = open_dialog(count=3)
    ended = ends(dialog)
    qtbot.waitUntil(dialog.start_button.isEnabled, timeout=TIMEOUT_MS)
    dialog.form.row("count").set_value(5)
    qtbot.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
    assert ended == [OperationEnd(Outcome.DONE, "Counted to 5.")]


def test_what_was_entered_just_before_the_start_is_confirmed_first(qtbot: QtBot, open_dialog: Open) -> None:
    dialog = open_dialog(count=3)
    qtbot.waitUntil(dialog.start_button.isEnabled, timeout=TIMEOUT_MS)
    dialog.form.row("destroy").set_value(True)
    qtbot.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(dialog.confirmation.isVisible, timeout=TIMEOUT_MS)
    assert not dialog.start_button.isEnabled() and not dialog.running and dialog.form.isVisible()


def test_text_that_was_typed_for_another_loss_confirms_nothing(qtbot: QtBot, theme: Theme) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    box = ConfirmationBox(theme, parent)
    box.ask(Confirmation("yes", "Domain a.example is claimed."))
    qtbot.keyClicks(box.edit, "yes")
    box.ask(Confirmation("yes", "Domain a.example is claimed."))
    assert box.given
    box.ask(Confirmation("yes", "Domain b.example is claimed."))
    assert not box.given and box.typed == ""


def test_a_secret_is_asked_for_and_returned_secrets_are_shown_once(qtbot: QtBot, open_dialog: Open) -> None:
    dialog = open_dialog(ask=True)
    ended = ends(dialog)
    press_start(qtbot, dialog)
    qtbot.waitUntil(lambda: bool(dialog.findChildren(SecretDialog)), timeout=TIMEOUT_MS)
    asking = dialog.findChildren(SecretDialog)[0]
    qtbot.keyClicks(asking.edits["word"], "hunter2")
    qtbot.mouseClick(asking.continue_button, LEFT)
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
    [shown] = [edit for edit in dialog.findChildren(QPlainTextEdit) if edit.isVisible()]
    assert shown.toPlainText() == "What was given\n2retnuh"
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isVisible(), "Escape does not hide secrets that are shown once"
    qtbot.mouseClick(dialog.close_button, LEFT)
    qtbot.waitUntil(lambda: not shiboken6.isValid(dialog))


def test_without_the_secret_nothing_is_done(qtbot: QtBot, open_dialog: Open) -> None:
    dialog = open_dialog(ask=True)
    press_start(qtbot, dialog)
    qtbot.waitUntil(lambda: bool(dialog.findChildren(SecretDialog)), timeout=TIMEOUT_MS)
    qtbot.mouseClick(dialog.findChildren(SecretDialog)[0].cancel_button, LEFT)
    qtbot.waitUntil(dialog.form.isVisible)
    assert not dialog.running and dialog.start_button.isEnabled()


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("refuse", "The numbers are out: order new ones."),
        ("exit", "The operation process ended with exit code 7; see the log."),
    ],
)
def test_a_failure_is_one_sentence_and_leads_back(qtbot: QtBot, open_dialog: Open, fault: str, sentence: str) -> None:
    dialog = open_dialog(fault=fault)
    ended = ends(dialog)
    press_start(qtbot, dialog)
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
    assert ended == [OperationEnd(Outcome.FAILED, sentence)] and dialog.work.sentence.text() == sentence
    assert dialog.again_button.isVisible()
    assert fault != "exit" or "&lt;b&gt;My last words.&lt;/b&gt;" in dialog.work.sentence.toolTip()


def test_the_window_is_not_closed_while_an_operation_is_in_progress(
    qtbot: QtBot, open_dialog: Open, window: MainWindow
) -> None:
    dialog = open_dialog(window, count=10_000, pause=0.01)
    ended = ends(dialog)
    press_start(qtbot, dialog)
    qtbot.waitUntil(lambda: dialog.running, timeout=TIMEOUT_MS)
    window.close()
    assert window.isVisible()
    [entry] = window.findChild(MessageBar).entries()
    assert "wait, or cancel it there" in entry.message.sentence
    qtbot.mouseClick(dialog.cancel_button, LEFT)
    qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)


def test_fingerprint_to_be_typed_is_not_shown_and_may_be_typed_in_groups(qtbot: QtBot, theme: Theme) -> None:
    sha256 = "0a1b2c3d" * 8
    parent = QWidget()
    qtbot.addWidget(parent)
    box = ConfirmationBox(theme, parent)
    box.ask(Confirmation(sha256, "State A will trust it.", "--confirmed", fingerprint=True))
    shown = " ".join(label.text() for label in box.findChildren(QLabel))
    assert "fingerprint" in shown and "0a1b" not in shown.lower()
    box.edit.setText("0A1B 2C3D " * 7)
    assert not box.given
    box.edit.setText("0A1B 2C3D " * 8)
    assert box.given


def test_answer_no_is_not_shown_as_success_and_warnings_are_shown(qtbot: QtBot, theme: Theme) -> None:
    dialog = QWidget()
    qtbot.addWidget(dialog)
    work = OperationProgressView(theme, dialog)
    work.finish(
        OperationEnd(Outcome.DONE, "It failed.", Result(("It failed.",), warnings=("Its CRL expired.",), passed=False))
    )
    assert work.sentence.text() == "It failed.\nIts CRL expired."
    refused = work._icon.pixmap().toImage()
    work.finish(OperationEnd(Outcome.DONE, "It passed.", Result(("It passed.",))))
    passed = work._icon.pixmap().toImage()
    work.finish(OperationEnd(Outcome.FAILED, "It failed."))
    assert work._icon.pixmap().toImage() == refused != passed
