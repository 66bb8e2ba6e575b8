"""What the history shows instead of an empty table: why there is nothing, and the way back to what there is."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget


class EmptyHistory(QWidget):
    """A sentence, and a button that clears the filter."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.label = QLabel(self)
        self.label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.label.setProperty("muted", True)
        self.clear_button = QPushButton(self.tr("Clear the filter"), self)
        middle = QVBoxLayout(self)
        middle.addStretch(1)
        middle.addWidget(self.label)
        middle.addWidget(self.clear_button, 0, Qt.AlignmentFlag.AlignCenter)
        middle.addStretch(1)

    def follow(self, *, read: bool, total: int, trash: bool) -> None:
        """Say why nothing is shown: `total` runs would be there without the filter, once they are read."""
        if trash and not total:
            text = self.tr("The trash is empty.")
        elif total:
            text = self.tr("No run fits the filter.")
        elif not read:
            text = self.tr("Reading the runs ...")
        else:
            text = self.tr("No runs yet. Start the demo from the first page, or a trial of your own.")
        self.label.setText(text)
        self.clear_button.setVisible(total > 0)
