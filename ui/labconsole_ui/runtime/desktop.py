"""Desktop notifications while another window is in use; opening files by the desktop."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget


class DesktopNotifications(QObject):
    """Shows notifications for `window`, with its icon in the tray while one is unread."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._tray: QSystemTrayIcon | None = None

    @staticmethod
    def available() -> bool:
        """Whether this desktop shows notifications."""
        return QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages()

    def show(self, sentence: str) -> None:
        """Notify the operator, unless the window is in use; its entry in the task bar asks for attention, too."""
        if self._window.isActiveWindow():
            return
        QApplication.alert(self._window)
        if not self.available():
            return
        if self._tray is None:
            self._tray = QSystemTrayIcon(self._window.windowIcon(), self)
            self._tray.activated.connect(self._raise)
            self._tray.messageClicked.connect(self._raise)
        self._tray.show()
        self._tray.showMessage(self._window.windowTitle(), sentence, self._window.windowIcon())

    def read(self) -> None:
        """Remove the icon from the tray: the window is in use."""
        if self._tray is not None:
            self._tray.hide()

    def _raise(self) -> None:
        self._window.showNormal() if self._window.isMinimized() else self._window.show()
        self._window.raise_()
        self._window.activateWindow()


def open_with_desktop(path: Path) -> None:
    """Open a file or folder in the program that the desktop has for it."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
