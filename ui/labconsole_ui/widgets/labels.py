"""Texts that come with runs, shown as they are: Qt takes what looks like markup for it, and would load images."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QLabel, QWidget

from labconsole.safe_text import shown_lines


def plain_tooltip(text: str) -> str:
    """`text` for a tooltip, which cannot be told that it is plain."""
    text = shown_lines(text)
    if not GuiQt.mightBeRichText(text):
        return text
    return f"<p style='white-space: pre-wrap'>{escape(text)}</p>"


def plain_label(text: str, parent: QWidget | None = None) -> QLabel:
    """A label that shows whatever it is given as plain text, control and direction characters spelt out."""
    label = _PlainLabel(parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(text)
    return label


class _PlainLabel(QLabel):
    def setText(self, text: str) -> None:  # noqa: N802 - Qt names it
        super().setText(shown_lines(text))
