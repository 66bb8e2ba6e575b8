"""The card of the pool: its picture, and the buttons of its operations."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from labconsole_keypool.panel.pool_picture import PoolPicture
from labconsole_keypool.panel.pool_state import PoolState
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import FlowLayout


class PoolCard(QFrame):
    """`fill_wanted`, `export_wanted`, `load_wanted` and `purge_wanted` are emitted by their buttons."""

    fill_wanted = Signal()
    export_wanted = Signal()
    load_wanted = Signal()
    purge_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self.trouble = plain_label("", self)
        self.trouble.setProperty("tone", "bad")
        self.trouble.setWordWrap(True)
        self.trouble.hide()
        self.picture = PoolPicture(theme, self)
        buttons = QWidget(self)
        flow = FlowLayout(buttons, spacing=8)
        self.fill_button = self._button(buttons, flow, theme, "database", self.tr("F&ill pool …"), self.fill_wanted)
        self.export_button = self._button(
            buttons, flow, theme, "export", self.tr("&Export wrapper keys …"), self.export_wanted
        )
        self.load_button = self._button(
            buttons, flow, theme, "import", self.tr("&Load wrapper keys …"), self.load_wanted
        )
        self.purge_button = self._button(buttons, flow, theme, "trash", self.tr("Pur&ge …"), self.purge_wanted)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 4)
        column.setSpacing(6)
        column.addWidget(buttons)
        column.addWidget(self.trouble)
        column.addWidget(self.picture)

    def show_state(self, state: PoolState) -> None:
        """Show where the keys are now, or why that is unknown."""
        self.trouble.setText(state.trouble)
        self.trouble.setVisible(bool(state.trouble))
        if not state.trouble:
            self.picture.show_state(state)

    def _button(
        self, parent: QWidget, flow: FlowLayout, theme: Theme, icon: str, text: str, wanted: object
    ) -> QPushButton:
        button = QPushButton(text, parent)
        theme.bind_icon(button, icon)
        button.clicked.connect(lambda _checked: wanted.emit())  # type: ignore[attr-defined]
        flow.addWidget(button)
        return button
