"""One direction of an exchange as a card: its steps, each done or missing, and whether a handshake has proven it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from labconsole_certificates.exchange.steps import Direction, Step
from labconsole_certificates.panel.words import moment
from labconsole_ui.icon_label import IconLabel
from labconsole_ui.plain_text import plain_label, plain_tooltip
from labconsole_ui.theme import FontRole, Theme


class DirectionCard(QFrame):
    """Shows `[A] → tls-connect → [B]` with all that leads there."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = theme
        self.title = plain_label("", self)
        self.title.setFont(theme.font(FontRole.HEADING))
        self._icon = IconLabel(theme, "waiting", 20, "muted")
        self.state = plain_label("", self)
        self.state.setWordWrap(True)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._icon)
        head.addWidget(self.title, 1)
        self._steps = QGridLayout()
        self._steps.setHorizontalSpacing(8)
        self._steps.setVerticalSpacing(4)
        self._steps.setColumnStretch(1, 1)
        self.rows: list[_StepRow] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(8)
        column.addLayout(head)
        column.addLayout(self._steps)
        column.addWidget(self.state)
        column.addStretch(1)

    def show_direction(self, direction: Direction, proof: str) -> None:
        """Show how far this direction has come; `proof` is what the last handshake used, if one passed."""
        client, server = direction.client.name, direction.server.name
        self.title.setText(f"[{client}] → tls-connect → [{server}]")
        proven = direction.proven
        self._icon.show_icon(*(("good", "good") if proven else ("waiting", "muted")))
        self.state.setText(
            self.tr("Proven by a mutual TLS handshake on {when}: {proof}.").format(when=moment(proven), proof=proof)
            if proven
            else self.tr("Not proven yet.")
        )
        self.state.setProperty("tone", "good" if proven else None)
        self.state.setProperty("muted", not proven)
        self.state.style().unpolish(self.state)
        self.state.style().polish(self.state)
        while len(self.rows) < len(direction.steps):
            self.rows.append(_StepRow(self._theme, self, self._steps, len(self.rows)))
        upcoming = direction.next
        for row, step in zip(self.rows, direction.steps, strict=False):
            row.show_step(step, upcoming=step is upcoming)
        for row in self.rows[len(direction.steps) :]:
            row.hide()
        self.setAccessibleName(f"{self.title.text()}: {self.state.text()}")


class _StepRow:
    """Mark, title and time of a step."""

    def __init__(self, theme: Theme, card: QWidget, grid: QGridLayout, number: int) -> None:
        self._theme = theme
        self._icon = IconLabel(theme, "waiting", 16, "muted")
        self.title = plain_label("", card)
        self.title.setWordWrap(True)
        self._when = plain_label("", card)
        self._when.setProperty("muted", True)
        top = Qt.AlignmentFlag.AlignTop
        grid.addWidget(self._icon, number, 0, top)
        grid.addWidget(self.title, number, 1)
        grid.addWidget(self._when, number, 2, top)

    def show_step(self, step: Step, *, upcoming: bool) -> None:
        icon = ("good", "good") if step.done else ("chevron-right", "link") if upcoming else ("waiting", "muted")
        self._icon.show_icon(*icon)
        self.title.setText(step.title)
        self.title.setFont(self._theme.font(FontRole.STRONG if upcoming else FontRole.BODY))
        self.title.setToolTip(plain_tooltip(step.missing))
        self._when.setText(moment(step.at) if step.at else "")
        for widget in (self._icon, self.title, self._when):
            widget.show()

    def hide(self) -> None:
        for widget in (self._icon, self.title, self._when):
            widget.hide()
