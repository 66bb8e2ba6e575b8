"""What a window tells its operator."""

from __future__ import annotations

from labconsole_ui.history.view import HistoryView
from labconsole_ui.main_window import MainWindow
from labconsole_ui.report.window import ReportWindow


def told(window: MainWindow | ReportWindow | HistoryView) -> list[str]:
    """The sentences of its messages, the newest first."""
    return [entry.message.sentence for entry in window.messages.entries()]
