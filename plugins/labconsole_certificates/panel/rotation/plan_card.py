"""The plan of one rotation: its steps, the peers that must confirm, how long both are valid, and what is next."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from labconsole_certificates.panel.labels import day
from labconsole_certificates.panel.rotation.rotation_rows import RotatingRow, status_text, under_way
from labconsole_certificates.rotation.plan import PeerAnswer, RotationPlan, RotationStep, RotationStepKind
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label

_LAST_LINE = 1_000
"""Row of the stretch below all lines."""


class PlanCard(QFrame):
    """`begin_wanted` carries the certificate's row, `step_wanted` the plan and the step, `confirm_wanted` the plan and
    the peer's State, `cancel_wanted` the plan."""

    begin_wanted = Signal(object)
    step_wanted = Signal(object, object)
    confirm_wanted = Signal(object, object)
    cancel_wanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = theme
        self._row: RotatingRow | None = None
        self.title = plain_label("", self)
        self.title.setFont(theme.font(FontRole.HEADING))
        self.title.setWordWrap(True)
        self.sentence = plain_label("", self)
        self.sentence.setWordWrap(True)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._list = QWidget(self)
        self._lines = QGridLayout(self._list)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setHorizontalSpacing(8)
        self._lines.setVerticalSpacing(5)
        self._lines.setColumnStretch(1, 1)
        self.peer_buttons: dict[str, QPushButton] = {}
        self.begin_button = self._button(self.tr("&Begin rotation"), self._begin, primary=True)
        self.step_button = self._button("", self._step, primary=True)
        self.cancel_button = self._button(self.tr("&Cancel rotation"), self._cancel)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.begin_button, self.step_button, self.cancel_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 14, 12)
        column.setSpacing(8)
        self._lines.setRowStretch(_LAST_LINE, 1)
        scroll = QScrollArea(self)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setProperty("page", True)  # drawn on the card
        scroll.setWidget(self._list)
        column.addWidget(self.title)
        column.addWidget(self.sentence)
        column.addWidget(scroll, 1)
        column.addLayout(buttons)
        self.show_row(None)

    def show_row(self, row: RotatingRow | None, nothing: str = "") -> None:
        """Show the rotation of a certificate; without one the text `nothing`."""
        self._row = row
        plan = None if row is None else row.plan
        self._clear()
        going = row is not None and under_way(row)
        step = plan.next_step if plan is not None and going else None
        self.begin_button.setVisible(row is not None and not going)
        self.cancel_button.setVisible(going)
        # Each peer has a button of its own next to its name.
        self.step_button.setVisible(step is not None and step.kind is not RotationStepKind.CONFIRM)
        if row is None:
            self.title.setText(nothing or self.tr("Choose a certificate to see its plan."))
            self.sentence.setText("")
            return
        self.title.setText(self.tr("{name} of {owner}").format(name=row.name, owner=row.owner))
        if plan is None:
            self.sentence.setText(
                self.tr("It is valid until {day}, for {days} days more.").format(
                    day=day(row.record.certificate.not_valid_after_utc), days=f"{row.days_left:,}"
                )
                if row.days_left >= 0
                else self.tr("It has run out.")
            )
            for line in (
                self.tr("A rotation creates its successor while it is still valid."),
                self.tr("Peers confirm that they have the successor."),
                self.tr("Then you switch over; the old one is kept until you finish."),
            ):
                self._line("info", "muted", line)
            return
        self._show_plan(plan)
        if step is not None:
            self.step_button.setText(_step_button(self.tr, step))
            # Switch and finish may be done before their time: their dialogs ask for that.
            self.step_button.setEnabled(
                not step.waits_for or step.kind in (RotationStepKind.SWITCH, RotationStepKind.FINISH)
            )

    def _show_plan(self, plan: RotationPlan) -> None:
        parts = [plan.next_sentence]
        if plan.overlap is not None:
            begin, end = plan.overlap
            parts.append(
                self.tr("Old and new are both valid from {begin} to {end}.").format(begin=day(begin), end=day(end))
            )
        if plan.links:
            parts.append(self.tr("{count} link certificates join the two roots.").format(count=len(plan.links)))
        self.sentence.setText("\n".join(parts))
        if not plan.steps:
            self._line("cancelled", "muted", status_text(plan.rotation.status))
        for step in plan.steps:
            upcoming = step is plan.next_step
            icon = ("good", "good") if step.done else ("chevron-right", "link") if upcoming else ("waiting", "muted")
            self._line(*icon, step.title, strong=upcoming)
            if step.kind is RotationStepKind.CONFIRM:
                for peer in plan.peers:
                    self._peer(plan, peer)

    def _peer(self, plan: RotationPlan, peer: PeerAnswer) -> None:
        icon = ("good", "good") if peer.confirmed else ("waiting", "muted")
        text = f"{peer.state.name}: {peer.how}" if peer.how else peer.state.name
        number = self._line(*icon, text, indent=True)
        if not peer.confirmed and plan.successor is not None:
            button = self._button(self.tr("Has confirmed"), lambda: self.confirm_wanted.emit(plan, peer.state))
            button.setAccessibleName(self.tr("{state} has confirmed").format(state=peer.state.name))
            self.peer_buttons[peer.state.name] = button
            self._lines.addWidget(button, number, 2)

    def _line(self, icon: str, meaning: str, text: str, *, strong: bool = False, indent: bool = False) -> int:
        number = self._lines.count()  # of items, at most three a line: lines without any have no height
        mark = IconLabel(self._theme, icon, 16, meaning)
        if indent:
            mark.setContentsMargins(18, 0, 0, 0)
        label = plain_label(text, self._list)
        label.setWordWrap(True)
        label.setFont(self._theme.font(FontRole.STRONG if strong else FontRole.BODY))
        self._lines.addWidget(mark, number, 0, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self._lines.addWidget(label, number, 1)
        return number

    def _clear(self) -> None:
        self.peer_buttons.clear()
        while (item := self._lines.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()

    def _begin(self) -> None:
        if self._row is not None:
            self.begin_wanted.emit(self._row)

    def _step(self) -> None:
        plan = None if self._row is None else self._row.plan
        if plan is not None and plan.next_step is not None:
            self.step_wanted.emit(plan, plan.next_step)

    def _cancel(self) -> None:
        if self._row is not None and self._row.plan is not None:
            self.cancel_wanted.emit(self._row.plan)

    def _button(self, text: str, clicked: Callable[[], None], *, primary: bool = False) -> QPushButton:
        button = QPushButton(text, self)
        button.setProperty("primary", primary)
        button.clicked.connect(lambda _checked: clicked())
        return button


def _step_button(translate: Callable[[str], str], step: RotationStep) -> str:
    return {
        RotationStepKind.PREPARE: translate("&Create the successor …"),
        RotationStepKind.ADOPT: translate("&Take the new certificate"),
        RotationStepKind.CONFIRM: translate("&Confirm"),
        RotationStepKind.SWITCH: translate("S&witch over"),
        RotationStepKind.FINISH: translate("Fi&nish"),
    }[step.kind]
