"""A window in a process of its own that clicks "Run the demo" by itself, for tests that kill it.

python window_driver.py DATABASE
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.startup import create_services
from labconsole_ui.views.start_page import StartPage


def main() -> int:
    """Open the window, click, and continue until killed."""
    app = QApplication([])
    services = create_services(app, Path(sys.argv[1]), None)
    window = MainWindow(services)
    window.show()

    def click() -> None:
        page = window.findChild(StartPage)
        QTest.mouseClick(page.demo_button, Qt.MouseButton.LeftButton)

    QTimer.singleShot(0, click)
    return app.exec()


if __name__ == "__main__":
    raise SystemExit(main())
