"""A bar that says that something goes on."""

from __future__ import annotations

from PySide6.QtWidgets import QProgressBar, QWidget


def busy_bar(name: str, parent: QWidget | None = None) -> QProgressBar:
    """A thin bar, in motion until it is told how far it is; `name` tells those who do not see it what goes on."""
    bar = QProgressBar(parent)
    bar.setRange(0, 0)
    bar.setTextVisible(False)
    bar.setAccessibleName(name)
    return bar
