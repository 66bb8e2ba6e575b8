"""The services that the whole window uses, created once by the application."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QLockFile

from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import Theme


@dataclass(frozen=True)
class Services:
    """Database, plugins, queue, theme and settings of one window."""

    database: Path
    plugins: Plugins
    bridge: QueueBridge
    theme: Theme
    state: WindowState

    def reader(self) -> Reader:
        """A new reader of the database, which the caller closes. Raises StoreError."""
        return Reader(self.database)


class WindowLock:
    """Lock of the first window on a database, the file `<database>.window` next to it."""

    def __init__(self, database: Path) -> None:
        self._lock = QLockFile(str(database.with_name(f"{database.name}.window")))
        self._lock.setStaleLockTime(0)
        self._held = self._lock.tryLock(0)

    @property
    def other_process(self) -> int | None:
        """The process id of the other window (0: unknown), or None if this window is the first."""
        if self._held:
            return None
        pid, _host, _application = self._lock.getLockInfo()
        return int(pid)

    def release(self) -> None:
        """Let another window be the first."""
        if self._held:
            self._lock.unlock()
