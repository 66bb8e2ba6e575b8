"""One direction of an exchange as a card: its steps, each done or missing, and whether a handshake has proven it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from labconsole_certificates.exchange.progress import Direction, ExchangeStep
from labconsole_certificates.panel.labels import moment, unbroken
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label, plain_tooltip


class DirectionCard(QFrame):
    """Shows `[A] → tls-connect → [B]` with all its steps."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = theme
        self.title = plain_label("", self)
        self.title.setFont(theme.font(FontRole.HEADING))
        self._icon = IconLabel(theme, "waiting", 20, "muted")
        self.state = plain_label("", self)
        self.state.setWordWrap(True)
        self.meet_button = QPushButton(self)
        """The button that proves it with a remote State."""
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._icon)
        head.addWidget(self.title, 1)
        self._steps = QGridLayout()
        self._steps.setHorizontalSpacing(8)
        self._steps.setVerticalSpacing(4)
        self._steps.setColumnStretch(1, 1)
        self._shown: tuple[ExchangeStep, ...] = ()
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(8)
        column.addLayout(head)
        column.addLayout(self._steps)
        column.addWidget(self.state)
        column.addWidget(self.meet_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)

    def show_direction(self, direction: Direction, proof: str, meeting: str) -> None:
        """Show the progress of this direction; `proof` is the detail of the last handshake that passed.

        `meeting` is the label of its button; empty: no button.
        """
        self.meet_button.setText(meeting)
        self.meet_button.setVisible(bool(meeting))
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
        self._show_steps(direction)
        self.setAccessibleName(f"{self.title.text()}: {self.state.text()}")

    def _show_steps(self, direction: Direction) -> None:
        """Lines are created again: a label whose font was changed loses it with the next change of theme."""
        if direction.steps == self._shown:
            return
        self._shown = direction.steps
        while (item := self._steps.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for number, step in enumerate(direction.steps):
            title = unbroken(step.title, direction.client.name, direction.server.name)
            self._add_step(number, step, title, upcoming=step is direction.next)

    def _add_step(self, number: int, step: ExchangeStep, text: str, *, upcoming: bool) -> None:
        icon = ("good", "good") if step.done else ("chevron-right", "link") if upcoming else ("waiting", "muted")
        title = plain_label(text, self)
        title.setWordWrap(True)
        title.setFont(self._theme.font(FontRole.STRONG if upcoming else FontRole.BODY))
        title.setToolTip(plain_tooltip(step.missing))
        when = plain_label(moment(step.at) if step.at else "", self)
        when.setProperty("muted", True)
        top = Qt.AlignmentFlag.AlignTop
        self._steps.addWidget(IconLabel(self._theme, icon[0], 16, icon[1]), number, 0, top)
        self._steps.addWidget(title, number, 1)
        self._steps.addWidget(when, number, 2, top)
