"""Makes the pictures of README and guide anew: the real window, a real demo campaign, both themes.

    .venv/bin/python docs/screenshots.py [FOLDER] [--size 1280x800]

For a 4K display: `QT_SCALE_FACTOR=2 .venv/bin/python docs/screenshots.py FOLDER --size 1920x1080`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from labconsole.store.records import RunStatus
from labconsole_ui.main_window import MainWindow
from labconsole_ui.menus import bring_forward
from labconsole_ui.navigation import HELP, START
from labconsole_ui.start import make_services
from labconsole_ui.theme import ThemeMode

KIND = "amqp.messaging"
LIMIT_S = 180.0


class Camera:
    """Takes pictures of the window in both themes."""

    def __init__(self, app: QApplication, window: MainWindow, folder: Path) -> None:
        self._app = app
        self._window = window
        self._folder = folder

    def settle(self, seconds: float = 0.6) -> None:
        """Let the window work for a while."""
        self.wait(lambda: False, seconds)

    def wait(self, done: Callable[[], bool], limit_s: float = LIMIT_S) -> bool:
        """Let the window work until `done`; returns whether it came to that."""
        end = time.monotonic() + limit_s
        while not done() and time.monotonic() < end:
            self._app.processEvents()
            time.sleep(0.01)
        return done()

    def take(self, name: str, themes: tuple[ThemeMode, ...] = (ThemeMode.LIGHT, ThemeMode.DARK)) -> None:
        """Save `<name>-<theme>.png` for each theme."""
        for mode in themes:
            self._window.set_theme(mode)
            self.settle()
            path = self._folder / f"{name}-{mode.value}.png"
            if not self._window.grab().save(str(path)):
                raise SystemExit(f"{path} cannot be written")
            print(path.name)


def main() -> None:
    """Run the demo in the window, and take a picture of every view."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "images")
    parser.add_argument("--size", default="1280x800", help="of the window, in device independent pixels")
    options = parser.parse_args()
    width, height = (int(number) for number in options.size.split("x"))
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["LABCONSOLE_HOME"] = home
        app = QApplication([])
        services = make_services(app, Path(home) / "runs.db", ThemeMode.LIGHT.value)
        window = MainWindow(services)
        window.resize(width, height)
        window.show()
        take_all(Camera(app, window, options.folder), window)
        window.close()


def take_all(camera: Camera, window: MainWindow) -> None:
    """Every view, in the order in which a newcomer meets them."""
    bridge = window.services.bridge
    finished: list[RunStatus] = []
    bridge.finished.connect(lambda run_id, status: finished.append(status))
    camera.settle()
    camera.take("start")
    window.open_trial(KIND)
    camera.take("form")
    window.show_page(HELP)
    camera.take("help")
    window.show_page(START)
    window.run_demo()
    camera.wait(lambda: len(finished) >= 2)
    camera.wait(lambda: any(item.done > item.total / 2 for item in bridge.queue.items if item.run_id == 3))
    camera.take("live", (ThemeMode.LIGHT,))
    camera.wait(lambda: len(finished) >= 3)
    camera.wait(lambda: any(item.done > item.total / 2 for item in bridge.queue.items if item.run_id == 4))
    camera.take("live", (ThemeMode.DARK,))
    camera.wait(lambda: len(finished) >= 4)
    if finished != [RunStatus.FINISHED] * 4:
        raise SystemExit(f"the demo did not finish: {finished}")
    camera.settle(1.5)
    camera.take("sidebyside")
    bring_forward(window.history_dock, focus=False)
    camera.take("history")
    window.runs.open_run(3)
    camera.settle(2.0)
    camera.take("run")
    bring_forward(window.log_dock, focus=False)
    camera.take("log")


if __name__ == "__main__":
    main()
