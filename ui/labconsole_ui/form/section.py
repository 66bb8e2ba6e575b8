"""A group of parameters in a card that can be folded; folded, it says how many of them differ from the default."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from labconsole_ui.form.row import FieldRow
from labconsole_ui.theme import Theme


class FormSection(QFrame):
    """A section without a title cannot be folded."""

    def __init__(self, title: str, theme: Theme, parent: QWidget, *, folded: bool) -> None:
        super().__init__(parent)
        self.rows: list[FieldRow] = []
        self._theme = theme
        self.setProperty("card", True)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 14, 12)
        column.setSpacing(6)
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
        self.body = QWidget(self)
        self._inner = QVBoxLayout(self.body)
        self._inner.setContentsMargins(6, 0, 4, 2)
        self._inner.setSpacing(8)
        column.addWidget(self.body)
        theme.changed.connect(self._show_fold)
        self.body.setVisible(not (folded and title))
        self._show_fold()

    def add_row(self, row: FieldRow) -> None:
        """Put a row, made with `body` as its parent, beneath the others."""
        self.rows.append(row)
        self._inner.addWidget(row)
        row.edited.connect(self._summarise)

    @property
    def folded(self) -> bool:
        """Whether only the title is shown."""
        return self.body.isHidden()

    def unfold(self) -> None:
        """Show the rows."""
        if self.folded:
            self._toggle()

    def follow(self) -> None:
        """Hide the section when all its rows are hidden, because nothing in it matters now."""
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
        text = self.tr("Changed: {titles}").format(titles=", ".join(changed)) if changed else self.tr("Defaults")
        self.summary.setText(text if self.folded else "")
