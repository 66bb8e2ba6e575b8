"""What plugins do by themselves while a window is open, in the background, and what the operator should know of it."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from labconsole.doctor import Check
from labconsole.model.plugin import Plugin, Plugins, load_dotted
from labconsole_ui.runtime.background import Background

FIRST_MS = 5_000
"""After the window was opened, which has enough to do until then."""
EACH_MS = 3_600_000


class Upkeep(QObject):
    """`noticed` has the sentences of the plugins' doctor checks that found something, after each round."""

    noticed = Signal(list)

    def __init__(self, plugins: Plugins, parent: QObject) -> None:
        super().__init__(parent)
        self._plugins = [plugin for plugin in plugins.found if plugin.upkeep or plugin.doctor_checks]
        self._background = Background(self)
        self.notices: list[str] = []
        """Those of the last round."""
        self.timer = QTimer(self)
        self.timer.setSingleShot(True)
        self.timer.setInterval(FIRST_MS)
        self.timer.timeout.connect(self.begin)
        self.timer.start()

    def begin(self) -> None:
        """Do a round now; the next one follows an hour later."""
        self.timer.start(EACH_MS)
        self._background.submit(lambda: _round(self._plugins), self._notice, lambda sentence: self._notice([sentence]))

    def _notice(self, sentences: list[str]) -> None:
        self.notices = sentences
        self.noticed.emit(sentences)


def _round(plugins: list[Plugin]) -> list[str]:
    """Raises UserError, or what the plugins' code raises."""
    checks: list[Check] = []
    for plugin in plugins:
        for dotted in plugin.upkeep:
            load_dotted(dotted)()
        for dotted in plugin.doctor_checks:
            checks += load_dotted(dotted)()
    return [check.found for check in checks if not check.ok]
