"""The fingerprints that a State of this console reads out to others, large enough to be read over the telephone."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.names import short_name
from labconsole_certificates.panel.trust.fingerprint_widgets import in_lines
from labconsole_ui.form.editors import CalmComboBox
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label

_LARGER = 1.5
_GROUPS_A_LINE = 4


class ReadingOutDialog(QDialog):
    """Shows the fingerprint of one root at a time; the other State types what it hears."""

    def __init__(self, theme: Theme, snapshot: Snapshot, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Read out a fingerprint"))
        self._roots = [
            (state, root) for state in snapshot.states if state.local for root in snapshot.roots_of(state.id)
        ]
        hint = plain_label(
            self.tr("Read this to the other State over the telephone, or give it on paper: never with the file."), self
        )
        hint.setWordWrap(True)
        hint.setProperty("muted", True)
        self.root_box = CalmComboBox(self)
        self.root_box.setAccessibleName(self.tr("Root"))
        self.root_box.addItems([f"{state.name}: {short_name(root.certificate)}" for state, root in self._roots])
        self.digits = plain_label("", self)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(font.pointSizeF() * _LARGER)
        self.digits.setFont(font)
        self.digits.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        for widget in (hint, self.root_box, self.digits, buttons):
            column.addWidget(widget)
        self.root_box.currentIndexChanged.connect(self._show)
        self._show(self.root_box.currentIndex())

    def _show(self, place: int) -> None:
        if place < 0:
            self.digits.setText(self.tr("No State of this console has a root yet."))
            return
        self.digits.setText(in_lines(self._roots[place][1].sha256, _GROUPS_A_LINE))
