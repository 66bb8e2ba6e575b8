"""The exchange assistant: State A and State B, both ways, step by step until a real handshake has proven each."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from labconsole.security.lab_identities import STATE as LAB
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.fingerprints import grouped
from labconsole_certificates.exchange.progress import Exchange, exchange_of
from labconsole_certificates.panel.certificates.authority_forms import AuthorityForms
from labconsole_certificates.panel.exchange.demo_dialog import DemoDialog
from labconsole_certificates.panel.exchange.direction_card import DirectionCard
from labconsole_certificates.panel.exchange.identity_naming import open_naming
from labconsole_certificates.panel.exchange.next_steps import NextSteps
from labconsole_certificates.panel.tab import DatabaseReading, Tab, TabServices, TabWork
from labconsole_certificates.panel.trust.fingerprint_widgets import COLUMNS
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.theme.theme import FontRole
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import ScrollPage

WIDTH = 1120


class ExchangeView(Tab):
    """The tab with both directions, their missing steps, and the next step as a button."""

    key: ClassVar[str] = "exchange"
    chapter: ClassVar[str] = "tutorials/first-exchange.md"
    icon: ClassVar[str] = "exchange"

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self._tab_work = tab_work = TabWork(services, self)
        self._snapshot: Snapshot | None = None
        self._exchange: Exchange | None = None
        theme = tab_work.theme
        area = ScrollPage(WIDTH, 12, self)
        self.a_box, self.b_box = self._state_box(self.tr("State A")), self._state_box(self.tr("State B"))
        self.there = DirectionCard(theme, area.page)
        self.back = DirectionCard(theme, area.page)
        self.there.meet_button.clicked.connect(lambda _checked: self._prove_remotely(back=False))
        self.back.meet_button.clicked.connect(lambda _checked: self._prove_remotely(back=True))
        self.next_card = QFrame(area.page)
        self.next_card.setProperty("message", "info")
        self.sentence = plain_label("", self.next_card)
        self.sentence.setWordWrap(True)
        self.sentence.setFont(theme.font(FontRole.STRONG))
        self.fingerprint = plain_label("", self.next_card)
        self.fingerprint.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.fingerprint.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.details_button = QPushButton(self.next_card)
        self.details_button.clicked.connect(lambda _checked: self._show_details())
        self.next_button = QPushButton(self.next_card)
        self.next_button.setProperty("primary", True)
        self.next_button.clicked.connect(lambda _checked: self.follow_exchange())
        self.name_button = QPushButton(self.tr("&Name for trials …"), area.page)
        self.name_button.clicked.connect(lambda _checked: self.name_identity())
        self.names = plain_label("", area.page)
        self.names.setWordWrap(True)
        self.names.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.names.setProperty("muted", True)
        self.empty_hint = plain_label("", area.page)
        self.empty_hint.setWordWrap(True)
        self._authorities = AuthorityForms(tab_work, lambda: None, self)
        self.found_button = QPushButton(self.tr("&New State with its CA …"), area.page)
        self.found_button.setProperty("primary", True)
        self.found_button.clicked.connect(lambda _checked: self._authorities.create_state())
        self.demo_button = QPushButton(self.tr("Show it as a &demo …"), area.page)
        self.demo_button.setToolTip(self.tr("States of a temporary folder exchange and connect, and go again"))
        self.demo_button.clicked.connect(lambda _checked: self.show_demo())
        self._known: frozenset[int] | None = None
        self._executed: Exchange | None = None
        self._executing = self._focused = False
        self._steps = NextSteps(tab_work, self)
        self._steps.began.connect(self._step_began)
        self._steps.ended.connect(self._step_ended)
        self._arrange(area)

    def refresh(self, reading: DatabaseReading) -> None:
        """Show the current progress."""
        snapshot = self._snapshot = reading.snapshot
        self._steps.refresh(snapshot)
        self._authorities.refresh(snapshot)
        names = [state.name for state in snapshot.states]
        before = (self.a_box.currentText(), self.b_box.currentText())
        pair = self._pair(snapshot, before)
        for box, chosen in zip((self.a_box, self.b_box), pair, strict=True):
            if names != [box.itemText(place) for place in range(box.count())] or pair != before:
                box.blockSignals(True)
                box.clear()
                box.addItems(names)
                box.setCurrentText(chosen)
                box.blockSignals(False)
        self._known = frozenset(state.id for state in snapshot.states)
        self._show_exchange()

    def _pair(self, snapshot: Snapshot, chosen: tuple[str, str]) -> tuple[str, str]:
        """The two newest States, if one was added since the last refresh; else the chosen ones."""
        names = [state.name for state in snapshot.states]
        own = [state for state in snapshot.states if state.local and state.name != LAB]  # created by trials
        local = [state.name for state in own]
        made = any(state.id not in (self._known or ()) for state in own)
        if not made and chosen[0] in names and chosen[1] in names:
            return chosen
        newest = local[-2:] if len(local) > 1 else [*local, *(name for name in names if name not in local)][:2]
        return (newest[0], newest[-1]) if newest else ("", "")

    def show_pair(self, a: str, b: str) -> None:
        """Show the exchange between these two States."""
        self.a_box.setCurrentText(a)
        self.b_box.setCurrentText(b)

    def follow_exchange(self) -> None:
        """Do the next step."""
        if self._exchange is not None:
            self._steps.next_of(self._exchange).do()

    def _step_began(self) -> None:
        self._executed, self._executing, self._focused = self._exchange, True, self.next_button.hasFocus()
        self._allow_next()

    def _step_ended(self, done: bool) -> None:
        self._executing = False
        if not done:
            self._executed = None
        self._allow_next()

    def _allow_next(self) -> None:
        """Take no click until the step has ended, and what is shown is the progress after it."""
        self.next_button.setEnabled(not self._executing and self._exchange != self._executed)
        if self._focused and self.next_button.isEnabled():
            self._focused = False
            self.next_button.setFocus()

    def name_identity(self) -> OperationDialog | None:
        """Name a certificate of either State for AMQP trials."""
        if self._snapshot is None or self._exchange is None:
            return None
        states = (self._exchange.there.client, self._exchange.there.server)
        return open_naming(self.services, self._snapshot, states)

    def show_demo(self) -> DemoDialog:
        """Run the demo: States of a temporary folder exchange and connect."""
        dialog = DemoDialog(self._tab_work.theme, self.window())
        dialog.open()
        return dialog

    def _show_details(self) -> None:
        details = None if self._exchange is None else self._steps.next_of(self._exchange).details
        if details is not None:
            details()

    def _prove_remotely(self, *, back: bool) -> None:
        if self._exchange is not None:
            self._steps.prove_remotely(self._exchange.back if back else self._exchange.there)

    def _show_exchange(self) -> None:
        a, b = self.a_box.currentText(), self.b_box.currentText()
        pair = self._snapshot is not None and bool(a) and bool(b) and a != b
        for widget in (self.there, self.back, self.next_card, self.names, self.name_button):
            widget.setVisible(pair)
        names = [] if self._snapshot is None else [state.name for state in self._snapshot.states]
        self.empty_hint.setText(
            self.tr(
                "{state} is here. An exchange needs a second State: create one, or import another State's bundle."
            ).format(state=names[0])
            if len(names) == 1
            else self.tr("Two States are chosen from the lists: choose another one in one of them.")
            if names
            else self.tr("An exchange needs two States. Create each with its CA, or import another State's bundle.")
        )
        self.empty_hint.setVisible(not pair)
        self.found_button.setVisible(not pair and len(names) < 2)
        if self._snapshot is not None and pair:
            self._tab_work.submit(partial(exchange_of, self._snapshot, a, b), self._show)

    def _show(self, exchange: Exchange) -> None:
        if (exchange.there.client.name, exchange.there.server.name) != (
            self.a_box.currentText(),
            self.b_box.currentText(),
        ):
            return  # another pair was chosen meanwhile
        self._exchange = exchange
        for card, direction in ((self.there, exchange.there), (self.back, exchange.back)):
            card.show_direction(direction, self._steps.proof_of(direction), self._steps.remote_proof_of(direction))
        upcoming = self._steps.next_of(exchange)
        self.sentence.setText(upcoming.sentence)
        self.fingerprint.setText(grouped(upcoming.fingerprint, COLUMNS) if upcoming.fingerprint else "")
        self.fingerprint.setVisible(bool(upcoming.fingerprint))
        self.details_button.setText(upcoming.details_button)
        self.details_button.setVisible(upcoming.details is not None)
        self.next_button.setText(upcoming.button)
        self.next_button.setVisible(bool(upcoming.button))
        self.next_card.setProperty("message", "good" if upcoming.complete else "info")
        self.next_card.style().unpolish(self.next_card)
        self.next_card.style().polish(self.next_card)
        self.names.setText(self._steps.names_of(exchange))
        self._allow_next()

    def _arrange(self, area: ScrollPage) -> None:
        pair = QHBoxLayout()
        pair.setSpacing(8)
        for text, box in ((self.tr("State A"), self.a_box), (self.tr("State B"), self.b_box)):
            label = QLabel(text, area.page)
            label.setBuddy(box)
            pair.addWidget(label)
            pair.addWidget(box)
            pair.addSpacing(12)
        pair.addStretch(1)
        pair.addWidget(self.demo_button)
        cards = QHBoxLayout()
        cards.setSpacing(12)
        cards.addWidget(self.there, 1)
        cards.addWidget(self.back, 1)
        line = QHBoxLayout(self.next_card)
        line.setContentsMargins(14, 10, 12, 10)
        line.setSpacing(12)
        texts = QVBoxLayout()
        texts.setSpacing(6)
        texts.addWidget(self.sentence)
        texts.addWidget(self.fingerprint)
        line.addLayout(texts, 1)
        line.addWidget(self.details_button)
        line.addWidget(self.next_button)
        area.column.setSpacing(10)
        area.column.addLayout(pair)
        area.column.addWidget(self.empty_hint)
        area.column.addWidget(self.found_button, 0, Qt.AlignmentFlag.AlignLeft)
        area.column.addWidget(self.next_card)
        area.column.addLayout(cards)
        names = QHBoxLayout()
        names.setSpacing(12)
        names.addWidget(self.names, 1)
        names.addWidget(self.name_button)
        area.column.addLayout(names)
        area.column.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(area)

    def _state_box(self, name: str) -> WheelIgnoringComboBox:
        box = WheelIgnoringComboBox(self)
        box.setMinimumWidth(180)
        box.setSizeAdjustPolicy(WheelIgnoringComboBox.SizeAdjustPolicy.AdjustToContents)
        box.setAccessibleName(name)
        box.currentIndexChanged.connect(lambda _index: self._show_exchange())
        return box
