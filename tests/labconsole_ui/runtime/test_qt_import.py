"""Qt is imported without its hook into each later import."""

from __future__ import annotations

import builtins


def test_qt_changes_no_import_of_others() -> None:
    """The suite imports Qt as the window does; PySide6 has put its hook there, and it is not in use."""
    assert builtins.__import__ is not vars(builtins)["__feature_import__"]
