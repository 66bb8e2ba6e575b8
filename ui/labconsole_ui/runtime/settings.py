"""Settings that the window keeps between starts, in one ini file; a broken file is ignored."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QSettings

FILE_NAME = "window.ini"
_log = logging.getLogger(__name__)


class WindowState:
    """Stored geometry, theme and form values. What cannot be read counts as not stored."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._settings = QSettings(str(path), QSettings.Format.IniFormat)
        self._settings.allKeys()
        if self._settings.status() is not QSettings.Status.NoError:
            aside = path.with_suffix(".broken")
            _log.warning("%s cannot be read; it is kept as %s and the window starts afresh", path, aside.name)
            del self._settings
            path.replace(aside)
            self._settings = QSettings(str(path), QSettings.Format.IniFormat)

    def text(self, key: str, default: str = "") -> str:
        """The stored text."""
        value = self._settings.value(key)
        return value if isinstance(value, str) else default

    def flag(self, key: str, default: bool) -> bool:
        """The stored switch."""
        return {"true": True, "false": False}.get(self.text(key), default)

    def blob(self, key: str) -> QByteArray:
        """The stored bytes, empty if there are none."""
        value = self._settings.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()

    def mapping(self, key: str) -> dict[str, Any]:
        """The stored JSON object, empty if there is none."""
        try:
            value = json.loads(self.text(key, "{}"))
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def set(self, key: str, value: str | bool | QByteArray | dict[str, Any]) -> None:
        """Store `value`."""
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, dict):
            value = json.dumps(value)
        self._settings.setValue(key, value)

    def remove(self, key: str) -> None:
        """Remove `key`."""
        self._settings.remove(key)

    def save(self) -> None:
        """Write the file now."""
        self._settings.sync()
