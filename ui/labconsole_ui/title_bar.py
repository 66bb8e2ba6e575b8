"""The title bar of a dock: its name, and buttons to float and to close it, in the window's own look."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QToolButton, QWidget

from labconsole_ui.theme.theme import FontRole, Theme


class TitleBar(QWidget):
    """Dragging it moves the dock, as with Qt's own."""

    def __init__(self, dock: QDockWidget, theme: Theme) -> None:
        super().__init__(dock)
        self._folded = False
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 5, 6, 5)
        line.setSpacing(2)
        title = QLabel(dock.windowTitle())
        title.setFont(theme.font(FontRole.STRONG))
        line.addWidget(title, 1)
        for icon, text, action in (
            ("open", self.tr("Float: {title}"), lambda: dock.setFloating(not dock.isFloating())),
            ("remove", self.tr("Close: {title}"), dock.close),
        ):
            button = QToolButton()
            theme.bind_icon(button, icon, "muted")
            button.setIconSize(QSize(14, 14))
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            button.setToolTip(text.format(title=dock.windowTitle()))
            button.setAccessibleName(text.format(title=dock.windowTitle()))
            button.clicked.connect(action)
            line.addWidget(button)

    def set_folded(self, folded: bool) -> None:
        """Take no room, or room for the title."""
        if folded != self._folded:
            self._folded = folded
            self.setVisible(not folded)
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(0, 0) if self._folded else super().sizeHint()

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt names it
        return QSize(0, 0) if self._folded else super().minimumSizeHint()
