"""The log pane: events and stray output of runs, and warnings of the console; filtered, bounded."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFontDatabase, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.model.trial import Event, Level
from labconsole.safe_text import shown_lines
from labconsole.store.records import RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.status_text import status_text

MAX_LINES = 5000
_RANK = {Level.INFO: 0, Level.WARNING: 1, Level.ERROR: 2}
_COLOURS = {Level.INFO: "text", Level.WARNING: "warning", Level.ERROR: "bad"}


@dataclass(frozen=True)
class LogLine:
    """One line of the log."""

    time: str
    level: Level
    source: str
    text: str


class LogRelay(QObject):
    """Turns records of the `logging` package into a signal on the window's thread."""

    line = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.handler = _RelayHandler(self)


class _RelayHandler(logging.Handler):
    def __init__(self, relay: LogRelay) -> None:
        super().__init__(logging.WARNING)
        self._relay = relay

    def emit(self, record: logging.LogRecord) -> None:
        level = Level.ERROR if record.levelno >= logging.ERROR else Level.WARNING
        self._relay.line.emit(LogLine(_clock(), level, "console", record.getMessage()))


class LogPane(QWidget):
    """Shows log lines, the newest last; scrolls along unless the operator has scrolled up."""

    def __init__(self, bridge: QueueBridge, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_chapter(self, "reference/window.md#log")
        self._theme = theme
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self.view = QPlainTextEdit()
        self.view.setReadOnly(True)
        self.view.setTabChangesFocus(True)
        self.view.setMaximumBlockCount(MAX_LINES)
        self.view.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.view.setPlaceholderText(self.tr("What runs report appears here."))
        self.view.setAccessibleName(self.tr("Log"))
        self.level_combo = QComboBox()
        self.level_combo.setAccessibleName(self.tr("Least level shown"))
        for text, level in (
            (self.tr("Everything"), Level.INFO),
            (self.tr("Warnings and errors"), Level.WARNING),
            (self.tr("Errors"), Level.ERROR),
        ):
            self.level_combo.addItem(text, level)
        self.search_line = QLineEdit()
        self.search_line.setPlaceholderText(self.tr("Filter"))
        self.search_line.setAccessibleName(self.tr("Filter the log"))
        self.search_line.setClearButtonEnabled(True)
        self.search_line.setMaximumWidth(260)
        self.copy_button = self._button("copy", self.tr("Copy the log"))
        self.copy_button.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.view.toPlainText()))
        self.clear_button = self._button("trash", self.tr("Clear the log"))
        self.clear_button.clicked.connect(self.clear)
        bar = QHBoxLayout()
        bar.addWidget(QLabel(self.tr("Show")))
        bar.addWidget(self.level_combo)
        bar.addWidget(self.search_line)
        bar.addStretch(1)
        bar.addWidget(self.copy_button)
        bar.addWidget(self.clear_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 6, 10, 8)
        column.setSpacing(6)
        column.addLayout(bar)
        column.addWidget(self.view, 1)
        self.level_combo.currentIndexChanged.connect(lambda _index: self._refill())
        self.search_line.textChanged.connect(lambda _text: self._refill())
        theme.changed.connect(self._refill)
        bridge.event_recorded.connect(self._event)
        bridge.log.connect(self._stray)
        bridge.finished.connect(self._finished)

    def add(self, line: LogLine) -> None:
        """Append a line."""
        self._lines.append(line)
        if self._wanted(line):
            self._append(line)

    def clear(self) -> None:
        """Remove all lines; reports of runs are in the database anyway."""
        self._lines.clear()
        self.view.clear()

    def _event(self, run_id: int, event: Event) -> None:
        source = self.tr("run {run} {source}").format(run=run_id, source=event.source)
        self.add(LogLine(_clock(), event.level, source, event.message))

    def _stray(self, run_id: int, line: str) -> None:
        self.add(LogLine(_clock(), Level.INFO, self._run(run_id), line))

    def _finished(self, run_id: int, status: RunStatus) -> None:
        level = Level.INFO if status is RunStatus.FINISHED else Level.WARNING
        self.add(LogLine(_clock(), level, self._run(run_id), status_text(status)))

    def _run(self, run_id: int) -> str:
        return self.tr("run {run}").format(run=run_id)

    def _wanted(self, line: LogLine) -> bool:
        text = self.search_line.text().casefold()
        least: Level = self.level_combo.currentData()
        return _RANK[line.level] >= _RANK[least] and text in f"{line.source} {line.text}".casefold()

    def _append(self, line: LogLine) -> None:
        bar = self.view.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        cursor = QTextCursor(self.view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        if not self.view.document().isEmpty():
            cursor.insertBlock()
        quiet, loud = QTextCharFormat(), QTextCharFormat()
        quiet.setForeground(QColor(self._theme.colours.muted))
        loud.setForeground(self._theme.colour(_COLOURS[line.level]))
        cursor.insertText(f"{line.time}  {line.source:<20}  ", quiet)
        cursor.insertText(shown_lines(line.text), loud)
        if at_end:
            bar.setValue(bar.maximum())

    def _refill(self) -> None:
        self.view.clear()
        for line in self._lines:
            if self._wanted(line):
                self._append(line)

    def _button(self, icon: str, text: str) -> QToolButton:
        button = QToolButton()
        self._theme.bind_icon(button, icon)
        button.setToolTip(text)
        button.setAccessibleName(text)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button


def _clock() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")
