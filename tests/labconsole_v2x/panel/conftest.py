"""The window's fixtures."""

from __future__ import annotations

from tests.labconsole_ui.conftest import bridge, home, open_window, services, theme, window

__all__ = ["bridge", "home", "open_window", "services", "theme", "window"]
