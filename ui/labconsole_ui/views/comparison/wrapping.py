"""Text broken into lines between its words."""

from __future__ import annotations

from PySide6.QtGui import QFontMetrics


def wrap(text: str, width: int, metrics: QFontMetrics) -> str:
    """`text` with line feeds between its words, so that no line is wider than `width` px if its words are not."""
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
