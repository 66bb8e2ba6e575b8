"""Findings in words and notes of the comparison, as text that can be selected and copied."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QTextBrowser, QVBoxLayout, QWidget

from labconsole.analysis.findings import Finding
from labconsole_ui.theme.theme import FontRole, Theme


class FindingsPane(QWidget):
    """Findings that rest on intervals first, then the others, then the notes."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._findings: tuple[Finding, ...] = ()
        self._notes: tuple[str, ...] = ()
        self.title = QLabel(self.tr("Findings"), self)
        self.copy_button = QPushButton(self.tr("Copy"), self)
        self.copy_button.setAccessibleName(self.tr("Copy the findings"))
        self.copy_button.clicked.connect(self.copy)
        theme.bind_icon(self.copy_button, "copy")
        self.text = QTextBrowser(self)
        self.text.setAccessibleName(self.tr("Findings and notes"))
        self.text.setFrameShape(QTextBrowser.Shape.NoFrame)
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.copy_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self.text, 1)
        theme.changed.connect(self._write)
        self._write()

    def show_findings(self, findings: Sequence[Finding], notes: Sequence[str]) -> None:
        """Replace findings and notes."""
        self._findings, self._notes = tuple(findings), tuple(notes)
        self._write()

    def plain_text(self) -> str:
        """The sentences, one per line."""
        lines = [f"{finding.sentence}." for finding in self._findings] + list(self._notes)
        return "\n".join(lines) + "\n"

    def copy(self) -> None:
        """Put all sentences on the clipboard."""
        QGuiApplication.clipboard().setText(self.plain_text())

    def _write(self) -> None:
        colours = self._theme.colours
        self.title.setFont(self._theme.font(FontRole.HEADING))
        self.text.setFont(self._theme.font(FontRole.BODY))
        judged = [finding.sentence for finding in self._findings if finding.judged]
        notices = [finding.sentence for finding in self._findings if not finding.judged]
        parts = []
        if judged:
            parts.append(_list(judged, colours.text, 8))
        if notices:
            heading = self.tr("Seen, but not judged")
            parts += [_heading(heading, colours.muted), _list(notices, colours.text, 8)]
        if not self._findings:
            nothing = self.tr("Nothing to find yet: compare at least two columns.")
            parts.append(f"<p style='color: {colours.muted}'>{nothing}</p>")
        if self._notes:
            parts += [_heading(self.tr("To know"), colours.muted), _list(self._notes, colours.muted, 4)]
        place = self.text.verticalScrollBar().value()
        self.text.setHtml("".join(parts))
        self.text.verticalScrollBar().setValue(place)


def _heading(text: str, colour: str) -> str:
    return f"<p style='color: {colour}; font-weight: 600; margin-top: 14px; margin-bottom: 4px'>{escape(text)}</p>"


def _list(sentences: Sequence[str], colour: str, apart: int) -> str:
    items = "".join(
        f"<li style='margin-bottom: {apart}px'>{escape(sentence.removesuffix('.'))}.</li>" for sentence in sentences
    )
    return f"<ul style='color: {colour}; margin-left: -22px'>{items}</ul>"
