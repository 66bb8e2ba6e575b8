"""A card with a group of parameters; folded, it names those that differ from preset or default."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from labconsole_ui.form.field_row import FieldRow
from labconsole_ui.theme.theme import Theme

LEFT, RIGHT = 6, 4


class FormSection(QFrame):
    """A section without a title cannot be folded."""

    def __init__(self, title: str, theme: Theme, parent: QWidget, *, folded: bool) -> None:
        super().__init__(parent)
        self.rows: list[FieldRow] = []
        self._theme = theme
        self.setProperty("card", True)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 6, 14, 8)
        column.setSpacing(3)
        self.fold_button = QToolButton(self)
        self.fold_button.setText(title)
        self.fold_button.setProperty("section", True)
        self.fold_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.fold_button.setIconSize(QSize(16, 16))
        self.fold_button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.fold_button.clicked.connect(self._toggle)
        self.summary = QLabel(self)
        self.summary.setProperty("muted", True)
        line = QHBoxLayout()
        line.addWidget(self.fold_button)
        if not title:
            self.fold_button.hide()
        line.addStretch(1)
        line.addWidget(self.summary)
        column.addLayout(line)
        self.body = _Body(self)
        self._columns = 1
        self._placed: list[tuple[FieldRow, int, int, int]] = []
        self._inner = QGridLayout(self.body)
        self._inner.setContentsMargins(LEFT, 0, RIGHT, 2)
        self._inner.setVerticalSpacing(6)
        self._inner.setHorizontalSpacing(20)
        column.addWidget(self.body)
        theme.changed.connect(self._show_fold)
        self.body.setVisible(not (folded and title))
        self._show_fold()

    def add_row(self, row: FieldRow) -> None:
        """Add a row, created with `body` as its parent, below the others."""
        self.rows.append(row)
        self._place()
        row.edited.connect(self._summarise)

    @property
    def folded(self) -> bool:
        """Whether only the title is shown."""
        return self.body.isHidden()

    def unfold(self) -> None:
        """Show the rows."""
        if self.folded:
            self._toggle()

    def set_columns(self, columns: int) -> None:
        """Lay the rows out in so many columns; wide ones take the whole width."""
        if columns != self._columns:
            self._columns = columns
            self._place()

    def _place(self) -> None:
        """Rows that are shown, from left to right and top to bottom."""
        places: list[tuple[FieldRow, int, int, int]] = []
        line = column = 0
        for row in self.rows:
            if row.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide) and row.isHidden():
                continue
            if row.whole_line and column:
                line, column = line + 1, 0
            places.append((row, line, column, self._columns if row.whole_line else 1))
            column += places[-1][3]
            if column >= self._columns:
                line, column = line + 1, 0
        if places == self._placed:
            return
        for row in self.rows:
            self._inner.removeWidget(row)
        for row, line, column, span in places:
            self._inner.addWidget(row, line, column, 1, span)
        for column in range(self._inner.columnCount()):
            self._inner.setColumnStretch(column, 1 if column < self._columns else 0)
        self._placed = places

    def update_state(self) -> None:
        """Hide the section while all its rows are hidden."""
        self._place()
        self.setVisible(any(not row.isHidden() for row in self.rows))
        self._summarise()

    def _toggle(self) -> None:
        self.body.setVisible(self.body.isHidden())
        self._show_fold()

    def _show_fold(self) -> None:
        self.fold_button.setIcon(self._theme.icon("chevron-right" if self.folded else "chevron-down", "muted"))
        text = self.tr("Show: {title}") if self.folded else self.tr("Hide: {title}")
        self.fold_button.setAccessibleName(text.format(title=self.fold_button.text()))
        self._summarise()

    def _summarise(self) -> None:
        changed = [row.spec.title for row in self.rows if row.changed and not row.isHidden()]
        text = self.tr("Changed: {titles}").format(titles=", ".join(changed)) if changed else self.tr("Unchanged")
        self.summary.setText(text if self.folded else "")


class _Body(QWidget):
    """Needs no more width than its widest row, so that two columns can become one again."""

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt names it
        rows = [row.minimumSizeHint().width() for row in self.findChildren(FieldRow) if not row.isHidden()]
        return QSize(max(rows, default=0) + LEFT + RIGHT, super().minimumSizeHint().height())
