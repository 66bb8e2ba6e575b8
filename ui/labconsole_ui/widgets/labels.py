"""Labels and tooltips of plain text: Qt interprets markup in texts of runs, and would load images."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QLabel, QProgressBar, QWidget

from labconsole.safe_text import shown_lines
from labconsole_ui.theme.theme import Theme


def plain_tooltip(text: str) -> str:
    """`text` for a tooltip, escaped if Qt would read it as markup."""
    text = shown_lines(text)
    if not GuiQt.mightBeRichText(text):
        return text
    return f"<p style='white-space: pre-wrap'>{escape(text)}</p>"


def plain_label(text: str, parent: QWidget | None = None) -> QLabel:
    """A label of plain text, with control and direction characters spelt out."""
    label = _PlainLabel(parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(text)
    return label


def set_tone(label: QLabel, tone: str) -> None:
    """Show the label in the colour of `tone` from now on; empty: in that of texts."""
    label.setProperty("tone", tone)
    label.setProperty("muted", tone == "muted")
    label.style().unpolish(label)
    label.style().polish(label)


class _PlainLabel(QLabel):
    def setText(self, text: str) -> None:  # noqa: N802 - Qt names it
        super().setText(shown_lines(text))


class IconLabel(QLabel):
    """Shows the icon `name`, `size` logical pixels wide."""

    def __init__(self, theme: Theme, name: str, size: int, meaning: str) -> None:
        super().__init__()
        self._theme = theme
        self._icon = (name, size, meaning)
        theme.changed.connect(self._paint)
        self._paint()

    def show_icon(self, name: str, meaning: str) -> None:
        """Show another icon."""
        self._icon = (name, self._icon[1], meaning)
        self._paint()

    def _paint(self) -> None:
        self.setPixmap(self._theme.pixmap(*self._icon))


def busy_bar(name: str, parent: QWidget | None = None) -> QProgressBar:
    """A thin bar, in motion until it has a range; `name` is for screen readers."""
    bar = QProgressBar(parent)
    bar.setRange(0, 0)
    bar.setTextVisible(False)
    bar.setAccessibleName(name)
    return bar


def wrap(text: str, width: int, metrics: QFontMetrics) -> str:
    """`text` with line feeds between words, so that lines fit `width` px if their words do."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}".strip()
            if line and metrics.horizontalAdvance(longer) > width:
                lines.append(line)
                line = word
            else:
                line = longer
        lines.append(line)
    return "\n".join(lines)
