"""Widgets for fingerprints: typed group by group as the other State reads them out, matched, and shown to read out."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.fingerprints import grouped, typed_matches
from labconsole.security.x509.names import short_name
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label

GROUPS, DIGITS, COLUMNS = 16, 4, 8
_NOT_HEX = re.compile(r"[^0-9A-Fa-f]")


class TypedFingerprint(QWidget):
    """Sixteen groups of four hexadecimal digits (SHA-256). `changed` is emitted while they are typed.

    The fingerprint that is expected is not shown: it must come from the other State by another way.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._expected = ""
        self.edits = [_Group(number, self) for number in range(GROUPS)]
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(6)
        for number, edit in enumerate(self.edits):
            edit.textEdited.connect(lambda text, number=number: self._edited(number, text))
            grid.addWidget(edit, number // COLUMNS, number % COLUMNS)
        grid.setColumnStretch(COLUMNS, 1)
        self.setFocusProxy(self.edits[0])
        self.setAccessibleName(self.tr("Fingerprint, as the other State reads it out"))

    @property
    def typed(self) -> str:
        """The typed digits, group by group."""
        return " ".join(edit.text() for edit in self.edits)

    @property
    def matches(self) -> bool:
        """Whether the typed digits are the whole expected fingerprint."""
        return bool(self._expected) and typed_matches(self._expected, self.typed)

    @property
    def missing(self) -> int:
        """Number of groups that are not complete."""
        return sum(len(edit.text()) < DIGITS for edit in self.edits)

    @property
    def wrong(self) -> bool:
        """Whether a complete group differs from the expected one."""
        return any(edit.property("invalid") for edit in self.edits)

    def expect(self, fingerprint: str) -> None:
        """Expect this fingerprint (hex) from now on; digits typed for another one are cleared."""
        if fingerprint != self._expected:
            self._expected = fingerprint
            for edit in self.edits:
                edit.clear()
                edit.set_wrong(False)

    def _edited(self, number: int, text: str) -> None:
        """Distribute text longer than a group over the next ones; the focus moves to the next incomplete group."""
        digits = _NOT_HEX.sub("", text).upper()
        place = number
        while True:
            self._put(place, digits[:DIGITS])
            digits = digits[DIGITS:]
            if not digits or place == GROUPS - 1:
                break
            place += 1
        if len(self.edits[place].text()) == DIGITS and place < GROUPS - 1:
            self.edits[place + 1].setFocus()
        else:
            self.edits[place].setFocus()
        self.changed.emit()

    def _put(self, place: int, digits: str) -> None:
        edit = self.edits[place]
        edit.setText(digits)
        expected = self._expected[place * DIGITS : (place + 1) * DIGITS].upper()
        edit.set_wrong(len(digits) == DIGITS and digits != expected)


class _Group(QLineEdit):
    """One group; backspace in an empty one goes back, pasting takes the whole fingerprint."""

    def __init__(self, number: int, parent: TypedFingerprint) -> None:
        super().__init__(parent)
        self._box, self._number = parent, number
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setFixedWidth(self.fontMetrics().horizontalAdvance("0" * DIGITS) + 30)
        self.setAccessibleName(self.tr("Group {number} of {groups}").format(number=number + 1, groups=GROUPS))

    def set_wrong(self, wrong: bool) -> None:
        """Mark a complete group that differs from the expected one."""
        if self.property("invalid") != wrong:
            self.setProperty("invalid", wrong)
            self.style().unpolish(self)
            self.style().polish(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Paste):
            self.setText("")
            self.textEdited.emit(QGuiApplication.clipboard().text())
        elif event.matches(QKeySequence.StandardKey.DeleteStartOfWord) or (
            not self.text() and event.text() == "\b" and self._number
        ):
            self._box.edits[self._number - 1].setFocus()
        else:
            super().keyPressEvent(event)


class FingerprintQuestion(QFrame):
    """`changed` is emitted while typing; `matches` once the whole fingerprint is right."""

    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("message", "warning")
        self.sentence = plain_label("", self)
        self.sentence.setWordWrap(True)
        self.show_fingerprints = plain_label("", self)
        self.show_fingerprints.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.show_fingerprints.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
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
        for widget in (self.sentence, self.show_fingerprints, self.typing, self.state):
            column.addWidget(widget)
        self.typing.changed.connect(self._update_hint)

    @property
    def typed(self) -> str:
        """The typed digits."""
        return self._own or self.typing.typed

    @property
    def matches(self) -> bool:
        """Whether the whole fingerprint was typed correctly; for a State of this console the button confirms it."""
        return bool(self._own) or self.typing.matches

    def ask(self, state: str, fingerprint: str, *, own: bool = False) -> None:
        """Expect the fingerprint (hex) of `state`; `own`: of this console, so it is shown and confirmed by a click."""
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
        self.show_fingerprints.setText(grouped(fingerprint, COLUMNS) if own else "")
        self.show_fingerprints.setVisible(own)
        self._own = fingerprint if own else ""
        self.typing.setVisible(not own)
        self.state.setVisible(not own)
        self.typing.expect(fingerprint)
        self._update_hint()

    def _update_hint(self) -> None:
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


_LARGER = 1.5
_GROUPS_A_LINE = 4


class FingerprintDialog(QDialog):
    """Shows the fingerprint of one root at a time, to be read out to another State."""

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
        self.root_box = WheelIgnoringComboBox(self)
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
        self.digits.setText(grouped(self._roots[place][1].sha256, _GROUPS_A_LINE))
