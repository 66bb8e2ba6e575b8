"""Messages and the exception hook: not modal, none lost, with details to copy."""

from __future__ import annotations

import threading

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from labconsole_ui.shell.startup import ExceptionHook
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.message_bar import SHOWN_AT_ONCE, Message, MessageBar, Tone


def bar(qtbot: QtBot, theme: Theme) -> MessageBar:
    made = MessageBar(theme)
    qtbot.addWidget(made)
    return made


def test_message_shows_its_sentence_and_its_link_works(qtbot: QtBot, theme: Theme) -> None:
    messages = bar(qtbot, theme)
    followed: list[bool] = []
    messages.show_message(Message(Tone.BAD, "The broker refused.", link=("Open run", lambda: followed.append(True))))
    entry = messages.entries()[0]
    assert messages.isVisible()
    assert entry.sentence_label.text() == "The broker refused."
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    assert followed == [True]
    assert messages.isHidden(), "a message has done its work when its link was used"


def test_an_outdated_message_is_withdrawn(qtbot: QtBot, theme: Theme) -> None:
    messages = bar(qtbot, theme)
    done, other = Message(Tone.WARNING, "3 of 4 runs finished."), Message(Tone.BAD, "The broker refused.")
    messages.show_message(done)
    messages.show_message(other)
    messages.withdraw(done)
    assert [entry.message for entry in messages.entries()] == [other]


def test_closing_the_last_message_hides_the_bar(qtbot: QtBot, theme: Theme) -> None:
    messages = bar(qtbot, theme)
    messages.show_message(Message(Tone.WARNING, "One."))
    qtbot.mouseClick(messages.entries()[0].close_button, Qt.MouseButton.LeftButton)
    assert messages.isHidden()


def test_only_the_latest_few_are_shown_and_none_twice(qtbot: QtBot, theme: Theme) -> None:
    messages = bar(qtbot, theme)
    for number in range(SHOWN_AT_ONCE + 2):
        messages.show_message(Message(Tone.BAD, f"Fault {number}."))
    messages.show_message(Message(Tone.BAD, f"Fault {SHOWN_AT_ONCE}."))
    sentences = [entry.message.sentence for entry in messages.entries()]
    assert sentences == [f"Fault {SHOWN_AT_ONCE}.", f"Fault {SHOWN_AT_ONCE + 1}."][:SHOWN_AT_ONCE]


def test_details_are_hidden_until_opened_and_can_be_copied(qtbot: QtBot, theme: Theme) -> None:
    messages = bar(qtbot, theme)
    messages.show_message(Message(Tone.BAD, "It broke.", details="Traceback: line 1"))
    entry = messages.entries()[0]
    assert not entry.details.isVisible()
    qtbot.mouseClick(entry.details_button, Qt.MouseButton.LeftButton)
    assert entry.details.isVisible()
    copy = next(button for button in entry.findChildren(QPushButton) if button.accessibleName() == "Copy the details")
    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "Traceback: line 1"


def test_exception_of_a_thread_is_caught_on_the_window_s_thread(qtbot: QtBot, theme: Theme) -> None:
    messages = bar(qtbot, theme)
    hook = ExceptionHook()
    threads: list[threading.Thread] = []

    def show(text: str, details: str) -> None:
        threads.append(threading.current_thread())
        messages.show_message(Message(Tone.BAD, text, details))

    hook.caught.connect(show)

    def fail() -> None:
        raise ValueError("no such thing")

    before = threading.excepthook
    threading.excepthook = hook.handle_thread_exception
    try:
        thread = threading.Thread(target=fail)
        with qtbot.waitSignal(hook.caught):
            thread.start()
        thread.join()
    finally:
        threading.excepthook = before
    qtbot.waitUntil(lambda: bool(messages.entries()))
    entry = messages.entries()[0]
    assert "no such thing" in entry.message.sentence
    assert "ValueError" in entry.message.details
    assert "Traceback" not in entry.message.sentence
    assert threads == [threading.main_thread()]
