"""The page of a plugin that cannot be used: what failed, in its own words, and that the rest works."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from labconsole_ui.theme.theme import FontRole, Theme


class BrokenPage(QWidget):
    """Shows the error; it can be selected and copied."""

    def __init__(self, plugin: str, error: str, theme: Theme) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(28, 28, 28, 24)
        column.setSpacing(12)
        title = QLabel(self.tr("{plugin} cannot be used").format(plugin=plugin))
        title.setFont(theme.font(FontRole.TITLE))
        text = QLabel(
            self.tr(
                "This plugin could not be loaded. Install it again or remove it; the other trials are not affected. "
                "Its error:"
            )
        )
        text.setWordWrap(True)
        text.setProperty("muted", True)
        details = QPlainTextEdit(error)
        details.setReadOnly(True)
        details.setTabChangesFocus(True)
        details.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        details.setAccessibleName(self.tr("Error of the plugin"))
        details.setMaximumHeight(220)
        column.addWidget(title)
        column.addWidget(text)
        column.addWidget(details)
        column.addStretch(1)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
