"""The messages that a window shows."""

from __future__ import annotations

from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.history.history_view import HistoryView
from labconsole_ui.views.report.report_window import ReportWindow


def shown_sentences(window: MainWindow | ReportWindow | HistoryView) -> list[str]:
    """The sentences of its messages, the newest first."""
    return [entry.message.sentence for entry in window.messages.entries()]
