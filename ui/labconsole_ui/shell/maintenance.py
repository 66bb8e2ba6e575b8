"""Maintenance while the console is idle: a backup of the database after runs, and the plugins' checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from labconsole.doctor import Check
from labconsole.model.plugin import Plugin, Plugins, load_dotted
from labconsole.store.backups import back_up
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.widgets.message_bar import Message, Tone

IDLE_MS = 3_000
"""Time for which the queue must be empty before a backup, which would disturb the next run's figures."""


class AutomaticBackup(QObject):
    """Copies the database in the background; `show` gets a message if that fails."""

    def __init__(self, database: Path, bridge: QueueBridge, show: Callable[[Message], None], parent: QObject) -> None:
        super().__init__(parent)
        self._database = database
        self._bridge = bridge
        self._show = show
        self._background = Background(self)
        self.timer = QTimer(self)
        self.timer.setSingleShot(True)
        self.timer.setInterval(IDLE_MS)
        self.timer.timeout.connect(self._copy)
        bridge.finished.connect(self.timer.start)

    def _copy(self) -> None:
        if not self._bridge.queue.busy:
            self._background.submit(lambda: back_up(self._database), lambda _path: None, self._show_failure)

    def _show_failure(self, sentence: str) -> None:
        text = self.tr("There is no new backup: {reason}").format(reason=sentence)
        self._show(Message(Tone.WARNING, text))


FIRST_MS = 5_000
"""Delay after the start of the window."""
EACH_MS = 3_600_000


class PluginMaintenance(QObject):
    """Runs the plugins' maintenance each hour; `noticed` carries the sentences of their checks."""

    noticed = Signal(list)

    def __init__(self, plugins: Plugins, parent: QObject) -> None:
        super().__init__(parent)
        self._plugins = [plugin for plugin in plugins.found if plugin.upkeep or plugin.doctor_checks]
        self._background = Background(self)
        self.notices: list[str] = []
        """The sentences of the last round."""
        self.timer = QTimer(self)
        self.timer.setSingleShot(True)
        self.timer.setInterval(FIRST_MS)
        self.timer.timeout.connect(self.begin)
        self.timer.start()

    def begin(self) -> None:
        """Start a round now; the next one follows an hour later."""
        self.timer.start(EACH_MS)
        self._background.submit(lambda: _round(self._plugins), self._notice, lambda sentence: self._notice([sentence]))

    def _notice(self, sentences: list[str]) -> None:
        self.notices = sentences
        self.noticed.emit(sentences)


def _round(plugins: list[Plugin]) -> list[str]:
    """The sentences of all checks. Raises UserError, or what the plugins' code raises."""
    checks: list[Check] = []
    for plugin in plugins:
        for dotted in plugin.upkeep:
            load_dotted(dotted)()
        for dotted in plugin.doctor_checks:
            checks += load_dotted(dotted)()
    return [check.found for check in checks if not check.ok]
