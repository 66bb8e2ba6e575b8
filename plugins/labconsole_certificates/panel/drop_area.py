"""An area for files and text from other States: dropped, chosen or pasted."""

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
FILES = "PEM, DER, PKCS#12, CMS (*.pem *.der *.csr *.crt *.cer *.crl *.p10 *.p12 *.pfx *.cms *.bundle)"


class DropArea(QWidget):
    """`files` carries the paths of dropped or chosen files, `pasted` the bytes of a pasted text."""

    files = Signal(list)
    pasted = Signal(bytes)

    def __init__(self, theme: Theme, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
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
        self.paste_button = QPushButton(self.tr("Paste"), self)
        self.paste_button.clicked.connect(lambda _checked: self.paste())
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 8, 8, 8)
        line.setSpacing(8)
        line.addWidget(IconLabel(theme, "import", 18, "muted"))
        line.addWidget(label, 1)
        line.addWidget(self.paste_button)
        line.addWidget(self.choose_button)
        theme.changed.connect(self.update)

    def paste(self) -> None:
        """Emit the content of the clipboard: files, or text."""
        self._take(QGuiApplication.clipboard().mimeData())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Paste):
            self.paste()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls() or event.mimeData().hasText():
            event.acceptProposedAction()
            self._show_over(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._show_over(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._show_over(False)
        event.acceptProposedAction()
        self._take(event.mimeData())

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
            self, self.tr("Import files"), str(Path.home()), self.tr("{known};;All files (*)").format(known=FILES)
        )
        if names:
            self.files.emit([Path(name) for name in names])

    def _take(self, content: QMimeData) -> None:
        paths = [Path(url.toLocalFile()) for url in content.urls() if url.isLocalFile()]
        if paths:
            self.files.emit(paths)
        elif content.hasText() and content.text().strip():
            self.pasted.emit(content.text().encode())

    def _show_over(self, over: bool) -> None:
        self._over = over
        self.update()
