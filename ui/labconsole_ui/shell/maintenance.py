"""Keeps a backup beside the database: made anew when runs have ended and nothing goes on any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from labconsole.store.backups import back_up
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.widgets.message_bar import Message, Tone

QUIET_MS = 3_000
"""So long the queue has been empty before a copy is made, which would disturb the next run's figures."""


class BackupKeeper(QObject):
    """Copies in the background; what goes wrong is told by `show`."""

    def __init__(self, database: Path, bridge: QueueBridge, show: Callable[[Message], None], parent: QObject) -> None:
        super().__init__(parent)
        self._database = database
        self._bridge = bridge
        self._show = show
        self._background = Background(self)
        self.quiet = QTimer(self)
        self.quiet.setSingleShot(True)
        self.quiet.setInterval(QUIET_MS)
        self.quiet.timeout.connect(self._copy)
        bridge.finished.connect(self.quiet.start)

    def _copy(self) -> None:
        if not self._bridge.queue.busy:
            self._background.submit(lambda: back_up(self._database), lambda _path: None, self._say_failed)

    def _say_failed(self, sentence: str) -> None:
        text = self.tr("There is no new backup: {reason}").format(reason=sentence)
        self._show(Message(Tone.WARNING, text))
