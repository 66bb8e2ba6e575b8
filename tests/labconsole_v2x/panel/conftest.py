"""The window's fixtures."""

from __future__ import annotations

import pytest

from tests.labconsole_ui.conftest import (
    bridge,
    home,
    kept_panels,
    module_window,
    open_window,
    services,
    shared,
    shown_window,
    theme,
    window,
)

__all__ = [
    "bridge",
    "home",
    "kept_panels",
    "module_window",
    "open_window",
    "services",
    "shared",
    "shown_window",
    "theme",
    "window",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings of Qt's offscreen platform about windows."""
    for item in items:
        item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", extend=True))
