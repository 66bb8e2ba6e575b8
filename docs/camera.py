"""Takes pictures of the real window, in both themes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import palette
from PySide6.QtWidgets import QApplication, QWidget

from labconsole.engine.queue import QueueState
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.theme.theme import ThemeMode

LIMIT_S = 600.0
BOTH = (ThemeMode.LIGHT, ThemeMode.DARK)


class Camera:
    """Takes pictures of the window in both themes."""

    def __init__(self, app: QApplication, window: MainWindow, folder: Path) -> None:
        self._app = app
        self._window = window
        self._folder = folder

    def settle(self, seconds: float = 0.6) -> None:
        """Let the window work for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._app.processEvents()
            time.sleep(0.01)

    def wait(self, done: Callable[[], bool]) -> None:
        """Let the window work until `done`; ends the program if that takes longer than `LIMIT_S`."""
        end = time.monotonic() + LIMIT_S
        while not done():
            if time.monotonic() > end:
                raise SystemExit("the window did not come to what a picture waits for")
            self.settle(0.01)

    def wait_for_runs(self) -> None:
        """Let the window work until no run waits or is in progress."""
        queue = self._window.services.bridge.queue
        self.wait(lambda: all(item.state is QueueState.DONE for item in queue.items))

    def theme(self, mode: ThemeMode) -> None:
        """Show the window in this theme."""
        self._window.set_theme(mode)

    def take(self, name: str, themes: tuple[ThemeMode, ...] = BOTH, widget: QWidget | None = None) -> None:
        """Save `<name>-<theme>.png` for each theme, of the window or a `widget`."""
        for mode in themes:
            self._window.set_theme(mode)
            self.settle()
            path = self._folder / f"{name}-{mode.value}.png"
            if not palette.save((widget or self._window).grab().toImage(), path):
                raise SystemExit(f"{path} cannot be written")
            print(path.name)
