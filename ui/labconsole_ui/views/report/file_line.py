"""A line with the name of a file, typed or browsed for."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QPushButton, QWidget


class FileLine(QWidget):
    """`changed` says that another file is named."""

    changed = Signal()

    def __init__(self, title: str, pattern: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._title = title
        self._pattern = pattern
        self.line = QLineEdit(self)
        self.line.setAccessibleName(title)
        self.line.textChanged.connect(self.changed)
        self.browse_button = QPushButton(self.tr("Browse …"), self)
        self.browse_button.setAccessibleName(self.tr("Browse for: {0}").format(title))
        self.browse_button.clicked.connect(self._browse)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.line, 1)
        row.addWidget(self.browse_button)
        self.setFocusProxy(self.line)

    @property
    def path(self) -> Path | None:
        """The file, None if none is named."""
        text = self.line.text().strip()
        return Path(text).expanduser() if text else None

    def _browse(self) -> None:
        start = str(self.path.parent if self.path is not None else Path.home())
        chosen, _ = QFileDialog.getOpenFileName(self, self._title, start, self._pattern)
        if chosen:
            self.line.setText(chosen)
