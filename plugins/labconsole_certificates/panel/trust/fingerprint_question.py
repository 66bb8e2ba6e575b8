"""Asks for a fingerprint: typed as a State elsewhere reads it out, confirmed by a click for one of this console."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from labconsole_certificates.panel.trust.fingerprint_widgets import COLUMNS, TypedFingerprint, in_lines
from labconsole_ui.icon_label import IconLabel
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label


class FingerprintQuestion(QFrame):
    """`changed` is emitted while it is typed; `matches` once all of it is there and right."""

    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("message", "warning")
        self.sentence = plain_label("", self)
        self.sentence.setWordWrap(True)
        self.read_out = plain_label("", self)
        self.read_out.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.read_out.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._own = ""
        self.typing = TypedFingerprint(self)
        self.state = plain_label("", self)
        self._icon = IconLabel(theme, "warning", 20, "warning")
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 12, 14, 12)
        line.setSpacing(12)
        line.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout()
        column.setSpacing(8)
        line.addLayout(column, 1)
        for widget in (self.sentence, self.read_out, self.typing, self.state):
            column.addWidget(widget)
        self.typing.changed.connect(self._look)

    @property
    def typed(self) -> str:
        """What was typed."""
        return self._own or self.typing.typed

    @property
    def matches(self) -> bool:
        """Whether the whole fingerprint was typed as it is; of a State of this console the button confirms it."""
        return bool(self._own) or self.typing.matches

    def ask(self, state: str, fingerprint: str, *, own: bool = False) -> None:
        """Ask for the fingerprint (hex) of `state`; `own`: of this console, so it is shown and confirmed by a click."""
        if own:
            self.sentence.setText(
                self.tr("{state} is a State of this console, so nothing came from outside. Its fingerprint:").format(
                    state=state
                )
            )
        else:
            self.sentence.setText(
                self.tr(
                    "Call {state}, and let them read out the fingerprint of what they sent. Type it group by group; "
                    "it is not shown here, for a file that was replaced on its way would show its own."
                ).format(state=state)
            )
        self.read_out.setText(in_lines(fingerprint, COLUMNS) if own else "")
        self.read_out.setVisible(own)
        self._own = fingerprint if own else ""
        self.typing.setVisible(not own)
        self.state.setVisible(not own)
        self.typing.expect(fingerprint)
        self._look()

    def _look(self) -> None:
        if self.matches:
            self.state.setText(self.tr("The fingerprint is right."))
            self._icon.show_icon("good", "good")
        elif self.typing.wrong:
            self.state.setText(self.tr("The marked groups differ: ask again. If they still differ, do not take it in."))
            self._icon.show_icon("error", "bad")
        else:
            missing = self.typing.missing
            self.state.setText(self.tr("{missing} of 16 groups are missing.").format(missing=missing))
            self._icon.show_icon("warning", "warning")
        self.changed.emit()
