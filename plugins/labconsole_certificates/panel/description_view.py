"""Shows the description of a certificate, CSR, CRL, key or file, or two of them side by side: always as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QTextCharFormat,
    QTextCursor,
    QTextLength,
    QTextOption,
    QTextTable,
    QTextTableCell,
    QTextTableFormat,
)
from PySide6.QtWidgets import QTextEdit, QWidget

from labconsole_certificates.describing.comparison import Comparison, Difference
from labconsole_certificates.describing.description import Description, Row
from labconsole_ui.theme.theme import FontRole, Theme

_LABEL_PERCENT = 27
_WARNING = "⚠ "


class DescriptionView(QTextEdit):
    """Text that can be selected and copied. Descriptions are inserted as plain text, never as markup."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown: Description | Comparison | None = None
        self._only_differences = False
        self.setReadOnly(True)
        self.setAcceptRichText(False)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setAccessibleName(self.tr("Details"))
        self.document().setDocumentMargin(10)
        theme.changed.connect(self._render)

    @property
    def shown(self) -> Description | Comparison | None:
        """The text that is shown."""
        return self._shown

    def show_description(self, description: Description | None) -> None:
        """Show this description; None clears."""
        self._show(description)

    def show_comparison(self, comparison: Comparison, *, only_differences: bool = False) -> None:
        """Show two descriptions side by side; differences are highlighted."""
        self._only_differences = only_differences
        self._show(comparison)

    def _show(self, thing: Description | Comparison | None) -> None:
        same = thing == self._shown and not isinstance(thing, Comparison)
        self._shown = thing
        if not same:
            self._render()
            self.verticalScrollBar().setValue(0)

    def _render(self) -> None:
        self.clear()
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        if isinstance(self._shown, Description):
            self._render_description(cursor, self._shown)
        elif isinstance(self._shown, Comparison):
            self._render_comparison(cursor, self._shown)
        cursor.endEditBlock()
        self.moveCursor(QTextCursor.MoveOperation.Start)  # else a view that is shown later begins at its end

    def _render_description(self, cursor: QTextCursor, description: Description) -> None:
        cursor.insertText(description.title, self._format(FontRole.HEADING))
        for section in description.sections:
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertBlock()
            cursor.insertText(section.title, self._format(FontRole.STRONG, "link"))
            table = _table(cursor, len(section.rows), 2)
            for number, row in enumerate(section.rows):
                self._put(table.cellAt(number, 0), row.label, self._format(FontRole.BODY, "muted"))
                self._put_value(table.cellAt(number, 1), row)

    def _render_comparison(self, cursor: QTextCursor, comparison: Comparison) -> None:
        rows = [row for row in comparison.rows if not (self._only_differences and row.same)]
        table = _table(cursor, len(rows) + 1, 3)
        strong = self._format(FontRole.STRONG)
        self._put(table.cellAt(0, 1), comparison.left, strong)
        self._put(table.cellAt(0, 2), comparison.right, strong)
        for number, row in enumerate(rows, 1):
            self._put(table.cellAt(number, 0), f"{row.section}: {row.label}", self._format(FontRole.BODY, "muted"))
            for column, side in ((1, row.left), (2, row.right)):
                self._put_value(table.cellAt(number, column), side)
            if not row.same:
                self._set_off(table, number, row)

    def _set_off(self, table: QTextTable, number: int, row: Difference) -> None:
        ground = QTextCharFormat()
        ground.setBackground(QColor(self._theme.colours.info_ground))
        for column, side in ((1, row.left), (2, row.right)):
            if side is not None:
                table.cellAt(number, column).setFormat(ground)

    def _put_value(self, cell: QTextTableCell, row: Row | None) -> None:
        if row is None:
            self._put(cell, "–", self._format(FontRole.BODY, "muted"))
            return
        text = self._format(FontRole.BODY, "warning" if row.warning else "text")
        if row.fixed_width:
            text.setFont(_fixed_font())
            text.setForeground(QColor(getattr(self._theme.colours, "warning" if row.warning else "text")))
        self._put(cell, f"{_WARNING}{row.value}" if row.warning else row.value, text)

    def _put(self, cell: QTextTableCell, text: str, form: QTextCharFormat) -> None:
        cell.firstCursorPosition().insertText(text, form)

    def _format(self, role: FontRole, meaning: str = "text") -> QTextCharFormat:
        form = QTextCharFormat()
        form.setFont(self._theme.font(role))
        form.setForeground(self._theme.colour(meaning))
        return form


def _table(cursor: QTextCursor, rows: int, columns: int) -> QTextTable:
    form = QTextTableFormat()
    form.setBorder(0)
    form.setCellPadding(2)
    form.setCellSpacing(0)
    form.setBottomMargin(8)
    form.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
    form.setColumnWidthConstraints(_widths(columns))
    return cursor.insertTable(max(rows, 1), columns, form)


def _widths(columns: int) -> Sequence[QTextLength]:
    rest = (100 - _LABEL_PERCENT) / (columns - 1)
    return [
        QTextLength(QTextLength.Type.PercentageLength, _LABEL_PERCENT if column == 0 else rest)
        for column in range(columns)
    ]


def _fixed_font() -> QFont:
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
