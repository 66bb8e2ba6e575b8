"""A fingerprint that is typed group by group as the other State reads it out: no Yes button can stand for it."""

from __future__ import annotations

import re

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QGridLayout, QLineEdit, QWidget

from labconsole.security.x509.fingerprints import groups, typed_matches

GROUPS, DIGITS, COLUMNS = 16, 4, 8
_NOT_HEX = re.compile(r"[^0-9A-Fa-f]")


def in_lines(fingerprint: str, columns: int) -> str:
    """A fingerprint (hex) in groups, so many a line."""
    written = groups(fingerprint).split(" ")
    return "\n".join("  ".join(written[start : start + columns]) for start in range(0, len(written), columns))


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
        """What was typed, group by group."""
        return " ".join(edit.text() for edit in self.edits)

    @property
    def matches(self) -> bool:
        """Whether it is the whole fingerprint that is expected."""
        return bool(self._expected) and typed_matches(self._expected, self.typed)

    @property
    def missing(self) -> int:
        """Number of groups that are not complete."""
        return sum(len(edit.text()) < DIGITS for edit in self.edits)

    @property
    def wrong(self) -> bool:
        """Whether a complete group is not as expected."""
        return any(edit.property("invalid") for edit in self.edits)

    def expect(self, fingerprint: str) -> None:
        """Ask for this fingerprint (hex) from now on; what was typed for another one is forgotten."""
        if fingerprint != self._expected:
            self._expected = fingerprint
            for edit in self.edits:
                edit.clear()
                edit.set_wrong(False)

    def _edited(self, number: int, text: str) -> None:
        """Spread what is longer than a group over the next ones; go on to the next group that is not full."""
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
        """Mark a full group that is not as expected."""
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
