"""Messages in a bar: a sentence, a link to more, and details that can be copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label

SHOWN_AT_ONCE = 2
MESSAGE_SECONDS = 15


class Tone(StrEnum):
    """The meaning of a message, which gives its colour and icon."""

    INFO = "info"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


_ICONS = {Tone.INFO: "info", Tone.GOOD: "good", Tone.WARNING: "warning", Tone.BAD: "error"}
_COLOURS = {Tone.INFO: "link", Tone.GOOD: "good", Tone.WARNING: "warning", Tone.BAD: "bad"}


Link = tuple[str, Callable[[], None]]
"""A button's text and what it does."""


@dataclass(frozen=True)
class Message:
    """A sentence for the operator; `link` opens more, `remedy` solves the problem, `details` are copied.

    A good message that is `lasting` stays until it is opened or closed.
    """

    tone: Tone
    sentence: str
    details: str = ""
    link: Link | None = None
    remedy: Link | None = None
    lasting: bool = False


class MessageBar(QWidget):
    """Shows the latest messages, the newest on top; only warnings and errors stay until closed."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self.hide()

    def show_message(self, message: Message) -> None:
        """Add a message. The same sentence again replaces the shown one."""
        for entry in self.entries():
            if entry.message.sentence == message.sentence:
                self._drop(entry)
        for entry in self.entries()[SHOWN_AT_ONCE - 1 :]:
            self._drop(entry)
        entry = MessageEntry(message, self._theme)
        entry.close_button.clicked.connect(lambda: self._drop(entry))
        entry.followed.connect(lambda: self._drop(entry))
        self._column.insertWidget(0, entry)
        self._column.setContentsMargins(16, 8, 16, 4)
        self.show()
        if message.tone in (Tone.INFO, Tone.GOOD) and not message.lasting:
            fade = QTimer(entry)
            fade.setSingleShot(True)
            fade.timeout.connect(lambda: self._drop(entry))
            fade.start(MESSAGE_SECONDS * 1000)

    def withdraw(self, message: Message) -> None:
        """Remove a message that is outdated, if it is still shown."""
        for entry in self.entries():
            if entry.message is message:
                self._drop(entry)

    def entries(self) -> list[MessageEntry]:
        """The messages shown, the newest first."""
        items = [self._column.itemAt(index) for index in range(self._column.count())]
        widgets = [item.widget() for item in items if item is not None]
        return [widget for widget in widgets if isinstance(widget, MessageEntry)]

    def _drop(self, entry: MessageEntry) -> None:
        self._column.removeWidget(entry)
        entry.hide()
        entry.deleteLater()
        if not self.entries():
            self.hide()


class MessageEntry(QFrame):
    """One message. `followed` is emitted when its link or its remedy was used."""

    followed = Signal()

    def __init__(self, message: Message, theme: Theme) -> None:
        super().__init__()
        self.message = message
        self.setProperty("message", message.tone.value)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 5, 6, 5)
        line = QHBoxLayout()
        line.setSpacing(10)
        column.addLayout(line)
        line.addWidget(IconLabel(theme, _ICONS[message.tone], 20, _COLOURS[message.tone]))
        self.sentence_label = plain_label(message.sentence)
        self.sentence_label.setWordWrap(True)
        self.sentence_label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        line.addWidget(self.sentence_label, 1)
        if message.remedy is not None:
            self.remedy_button = self._link_button(message.remedy)
            line.addWidget(self.remedy_button)
        if message.link is not None:
            self.link_button = self._link_button(message.link)
            line.addWidget(self.link_button)
        if message.details:
            self.details_button = QPushButton(self.tr("Details"))
            self.details_button.setCheckable(True)
            line.addWidget(self.details_button)
            self.details = self._details(message.details)
            self.details.hide()
            self.details_button.toggled.connect(self.details.setVisible)
            column.addWidget(self.details)
        self.close_button = QToolButton()
        theme.bind_icon(self.close_button, "remove")
        self.close_button.setAccessibleName(self.tr("Close this message"))
        self.close_button.setToolTip(self.tr("Close this message"))
        line.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)

    def _link_button(self, link: Link) -> QPushButton:
        text, action = link
        button = QPushButton(text)
        button.clicked.connect(action)
        button.clicked.connect(self.followed)
        return button

    def _details(self, text: str) -> QWidget:
        box = QWidget()
        row = QHBoxLayout(box)
        row.setContentsMargins(0, 0, 0, 0)
        view = QPlainTextEdit(text)
        view.setReadOnly(True)
        view.setTabChangesFocus(True)
        view.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        view.setFixedHeight(140)
        view.setAccessibleName(self.tr("Details of the message"))
        copy = QPushButton(self.tr("Copy"))
        copy.setAccessibleName(self.tr("Copy the details"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        row.addWidget(view, 1)
        row.addWidget(copy, 0, Qt.AlignmentFlag.AlignTop)
        return box
