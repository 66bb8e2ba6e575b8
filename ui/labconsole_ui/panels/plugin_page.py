"""What a plugin page gets from the window (`PageContext`), and what it may offer the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from labconsole.model.plugin import Plugin, Plugins
from labconsole_ui.runtime.long_jobs import LongJobs
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.message_bar import Message


@dataclass(frozen=True)
class PageContext:
    """What a page can use of the window."""

    plugin: Plugin
    plugins: Plugins
    theme: Theme
    state: WindowState
    database: Path
    """The run database of the window."""
    show_message: Callable[[Message], None]
    jobs: LongJobs
    """For work of seconds, with a dialog that shows progress and can cancel it."""


@runtime_checkable
class OpensFiles(Protocol):
    """A page whose manifest entry names suffixes in `opens`."""

    def open_files(self, paths: Sequence[Path]) -> None:
        """Show what is in these files, which were dropped on the window; nothing is changed by that alone."""
