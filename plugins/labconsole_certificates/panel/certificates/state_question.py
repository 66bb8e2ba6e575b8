"""Asks whose certificates are taken in: one of the known States, a new one, or nobody's that is known."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from labconsole_ui.widgets.labels import plain_label

_WIDTH = 440


class StateQuestion(QDialog):
    """`answered` carries the name of a State, empty for none."""

    answered = Signal(str)

    def __init__(self, title: str, states: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Import"))
        self.setMinimumWidth(_WIDTH)
        heading = plain_label(title, self)
        heading.setWordWrap(True)
        label = plain_label(self.tr("&State that is certified:"), self)
        self.box = QComboBox(self)
        self.box.setEditable(True)
        self.box.addItems(["", *states])
        self.box.setAccessibleName(self.tr("State that is certified"))
        line = self.box.lineEdit()
        if line is not None:
            line.setPlaceholderText(self.tr("No known State"))
        label.setBuddy(self.box)
        note = plain_label(
            self.tr(
                "A name that is new adds that State. To take a certificate in is not to trust it: that is decided in "
                "the tab Trust."
            ),
            self,
        )
        note.setWordWrap(True)
        note.setProperty("muted", True)
        self.buttons = QDialogButtonBox(self)
        self.take_in_button = self.buttons.addButton(self.tr("Import"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        self.buttons.accepted.connect(self._accept)
        self.buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        for widget in (heading, label, self.box, note, self.buttons):
            column.addWidget(widget)

    def _accept(self) -> None:
        self.answered.emit(self.box.currentText().strip())
        self.accept()
