"""The window's fixtures."""

from __future__ import annotations

from tests.labconsole_ui.conftest import (
    bridge,
    home,
    kept_panels,
    module_window,
    open_window,
    operation_threads,
    services,
    shared,
    shown_window,
    theme,
    window,
    worker_threads,
    worker_threads_of_processes,
)

__all__ = [
    "bridge",
    "home",
    "kept_panels",
    "module_window",
    "open_window",
    "operation_threads",
    "services",
    "shared",
    "shown_window",
    "theme",
    "window",
    "worker_threads",
    "worker_threads_of_processes",
]
