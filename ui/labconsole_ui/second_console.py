"""Tells whether another window is open on the same database; both may be, but the operator should know."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QLockFile


class WindowLock:
    """Held by the first window on a database, beside it as `<database>.window`."""

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
