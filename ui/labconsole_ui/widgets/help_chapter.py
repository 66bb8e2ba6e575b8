"""Which chapter of the documentation a widget belongs to: what F1 opens while the widget is in front."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

_CHAPTER = "chapter"


def set_chapter(widget: QWidget, chapter: str) -> None:
    """Let F1 open `chapter` (`how-to/install.md#start-it`) for this widget and everything in it."""
    widget.setProperty(_CHAPTER, chapter)


def chapter_of(widget: QWidget | None) -> str:
    """The chapter of a widget, or of the nearest widget around it; empty where none has one."""
    while widget is not None:
        if chapter := widget.property(_CHAPTER):
            return str(chapter)
        widget = widget.parentWidget()
    return ""


def chapter_shown(page: QWidget) -> str:
    """The chapter of what a page shows now: of its tab in front, or else of the page itself."""
    for widget in page.findChildren(QWidget):
        if widget.property(_CHAPTER) and widget.isVisibleTo(page):
            return str(widget.property(_CHAPTER))
    return chapter_of(page)
