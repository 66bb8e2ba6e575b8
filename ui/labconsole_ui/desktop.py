"""Hands files and folders to the program that this desktop has for them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices


def open_with_desktop(path: Path) -> None:
    """Show a file or folder in the program that this desktop has for it."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
