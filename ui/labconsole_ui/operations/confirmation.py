"""The box in which the operator types a text before something is destroyed, with what will be lost."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from labconsole.model.operation import Confirmation
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label


class ConfirmationBox(QFrame):
    """Asks for a text to be typed exactly; `changed` is emitted while it is typed."""

    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("message", "bad")
        self._wanted: Confirmation | None = None
        self._refused = False
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 12, 14, 12)
        line.setSpacing(12)
        line.addWidget(IconLabel(theme, "warning", 20, "bad"), 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout()
        column.setSpacing(8)
        line.addLayout(column, 1)
        self.loss = plain_label("", self)
        self.loss.setWordWrap(True)
        self._question = plain_label("", self)
        self._question.setWordWrap(True)
        self.edit = QLineEdit(self)
        self.edit.textChanged.connect(lambda _text: self.changed.emit())
        self._question.setBuddy(self.edit)
        for widget in (self.loss, self._question, self.edit):
            column.addWidget(widget)

    @property
    def typed(self) -> str:
        """What was typed."""
        return self.edit.text()

    @property
    def given(self) -> bool:
        """Whether nothing must be typed, or it was typed exactly."""
        return not self._refused and (self._wanted is None or self._wanted.accepts(self.typed))

    def ask(self, confirmation: Confirmation | None) -> None:
        """Ask for this confirmation, or for none; what was typed for another one is cleared."""
        if self._refused or confirmation != self._wanted:
            self.edit.clear()
        self._wanted, self._refused = confirmation, False
        self.loss.setText("" if confirmation is None else confirmation.loss)
        question = self.tr("To confirm, type {text}").format(text=_text(confirmation))
        if confirmation is not None and confirmation.fingerprint:
            question = self.tr("To confirm, type the fingerprint (SHA-256) that its owner reads out")
        self._question.setText(question)
        self.edit.setAccessibleName(question)
        self._question.show()
        self.edit.show()

    def refuse(self, sentence: str) -> None:
        """Show why the confirmation cannot be determined; nothing can be started."""
        self._refused = True
        self.loss.setText(sentence)
        self._question.hide()
        self.edit.hide()
        self.changed.emit()

    def clear(self) -> None:
        """Clear what was typed: it must be typed again for the next start."""
        self.edit.clear()


def _text(confirmation: Confirmation | None) -> str:
    return "" if confirmation is None else confirmation.text
