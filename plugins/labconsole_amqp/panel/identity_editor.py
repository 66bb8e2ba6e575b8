"""The editor of an identity by name: a list of those in the certificate database, read whenever it comes in sight."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLineEdit

from labconsole.errors import UserError
from labconsole.security.pki.identities import names
from labconsole_ui.form.editors import CalmComboBox, Editor
from labconsole_ui.form.field_spec import FieldSpec


class IdentityEditor(Editor):
    """A name from the list, or one that is typed: it may come to be known before the run. Empty: none by name."""

    def __init__(self, spec: FieldSpec) -> None:
        super().__init__(spec)
        self.combo = CalmComboBox()
        self.combo.setEditable(True)
        self.combo.setInsertPolicy(CalmComboBox.InsertPolicy.NoInsert)
        self.line = QLineEdit()
        self.line.setPlaceholderText(self.tr("None by name"))
        self.line.setClearButtonEnabled(True)
        self.combo.setLineEdit(self.line)
        self.line.textChanged.connect(lambda _text: self.edited.emit())
        self.adopt(self.combo, stretch=1)
        self.line.setAccessibleName(spec.title)

    def value(self) -> str:
        return self.line.text().strip()

    def set_value(self, value: object) -> None:
        self.line.setText(str(value))

    def showEvent(self, event: QShowEvent) -> None:
        """Offer what is known by now; what stands in the line stays."""
        text = self.line.text()
        with QSignalBlocker(self.line):
            self.combo.clear()
            self.combo.addItems(list(_known_names()))
            self.combo.setCurrentIndex(self.combo.findText(text))
            self.line.setText(text)
        super().showEvent(event)


def _known_names() -> Sequence[str]:
    """Names of identities; a database that cannot be read is told by the run that needs it."""
    try:
        return names()
    except UserError:
        return ()
