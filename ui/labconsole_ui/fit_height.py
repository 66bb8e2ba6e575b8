"""The height that a window's texts need at its width: lines that wrap are not cut off, and no room stays empty."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


def fit_height(window: QWidget) -> None:
    """Make `window` as high as its layout needs."""
    layout = window.layout()
    if layout is not None:
        layout.activate()
        height = max(layout.totalHeightForWidth(window.width()), layout.totalMinimumSize().height())
        window.setMinimumHeight(height)
        window.resize(window.width(), height)
