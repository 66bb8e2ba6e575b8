"""An area with a dashed frame on which files are dropped; they can also be chosen, or pasted as files."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label

_RADIUS = 6


class FileDropArea(QWidget):
    """`files` carries the paths of dropped, pasted or chosen files."""

    files = Signal(list)

    def __init__(self, theme: Theme, text: str, known: str, parent: QWidget | None = None) -> None:
        """`known` is the filter of the file dialog, as Qt writes it: `Captures (*.pcap *.pcapng)`."""
        super().__init__(parent)
        self._theme = theme
        self._known = known
        self._over = False
        self.setAcceptDrops(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(text)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        label = plain_label(text, self)
        label.setProperty("muted", True)
        label.setToolTip(text)
        label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)  # it shrinks first
        self.choose_button = QPushButton(self.tr("Choose file …"), self)
        self.choose_button.clicked.connect(lambda _checked: self._choose())
        self.line = QHBoxLayout(self)
        self.line.setContentsMargins(12, 8, 8, 8)
        self.line.setSpacing(8)
        self.line.addWidget(IconLabel(theme, "import", 18, "muted"))
        self.line.addWidget(label, 1)
        self.line.addWidget(self.choose_button)
        theme.changed.connect(self.update)

    def accepts(self, content: QMimeData) -> bool:
        """Whether what is dragged can be dropped here."""
        return content.hasUrls()

    def take(self, content: QMimeData) -> None:
        """Emit what was dropped or pasted."""
        paths = [Path(url.toLocalFile()) for url in content.urls() if url.isLocalFile()]
        if paths:
            self.files.emit(paths)

    def paste(self) -> None:
        """Emit the content of the clipboard."""
        self.take(QGuiApplication.clipboard().mimeData())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Paste):
            self.paste()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self.accepts(event.mimeData()):
            event.acceptProposedAction()
            self._show_over(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._show_over(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._show_over(False)
        event.acceptProposedAction()
        self.take(event.mimeData())

    def paintEvent(self, event: QPaintEvent) -> None:
        """A dashed frame; in the accent colour while files are dragged over it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = self.rect().adjusted(1, 1, -1, -1)
        lit = self._over or self.hasFocus()
        if self._over:
            painter.setBrush(self._theme.colour("info_ground"))
        painter.setPen(QPen(self._theme.colour("link" if lit else "control_border"), 1, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(frame, _RADIUS, _RADIUS)
        painter.end()

    def _choose(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(
            self, self.tr("Import files"), str(Path.home()), self.tr("{known};;All files (*)").format(known=self._known)
        )
        if names:
            self.files.emit([Path(name) for name in names])

    def _show_over(self, over: bool) -> None:
        self._over = over
        self.update()
