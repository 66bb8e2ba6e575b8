"""What the whole window works with, put together once by the application and handed down."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import Theme


@dataclass(frozen=True)
class Services:
    """The database, the plugins, the queue, the look and the memory of one window."""

    database: Path
    plugins: Plugins
    bridge: QueueBridge
    theme: Theme
    state: WindowState

    def reader(self) -> Reader:
        """A new reader of the database, which the caller closes. Raises StoreError."""
        return Reader(self.database)
