"""Hides Qt, the plots and the window from every process that has this directory on its path."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

HIDDEN = ("PySide6", "shiboken6", "pyqtgraph", "labconsole_ui")


class _Hider:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r} (hidden by a test)", name=name)
        return None


sys.meta_path.insert(0, _Hider())
