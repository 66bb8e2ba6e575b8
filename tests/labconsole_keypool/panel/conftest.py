"""The shared window, of whose home the tests of these pages use certificates, keys and tokens."""

from __future__ import annotations

import pytest

from labconsole_ui.shell.main_window import MainWindow
from tests.labconsole_ui.conftest import (
    emptied_home,
    kept_panels,
    module_window,
    shared,
    shown_window,
    theme,
    worker_threads,
    worker_threads_of_processes,
)
from tests.labconsole_ui.shared_window import SharedWindow

__all__ = [
    "emptied_home",
    "kept_panels",
    "module_window",
    "shared",
    "shown_window",
    "theme",
    "worker_threads",
    "worker_threads_of_processes",
]


@pytest.fixture
def window(emptied_home: None, shared: SharedWindow) -> MainWindow:
    """The shared window, whose home is emptied after it is reset."""
    return shared.window
