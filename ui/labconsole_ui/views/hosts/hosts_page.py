"""The page of hosts: the scheduler of this computer, the hosts that have joined, and the dialog that enrols one."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.model.validation_faults import fault_sentence
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.operations.operation_runner import OperationRunner
from labconsole_ui.operations.result_parts import ResultParts
from labconsole_ui.operations.serving_card import ServingCard
from labconsole_ui.panels.plugin_page import PageContext
from labconsole_ui.theme.theme import FontRole
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import busy_bar, plain_label, set_tone

ENROL, LIST, SERVE = "hosts.enrol", "hosts.list", "hosts.scheduler"
COLLECT, SUMMARISE = "hosts.collect", "hosts.summarise"
ADDRESS_KEY = "hosts/scheduler"
_ADDRESS = re.compile(r"tls://\S+:\d+")


class HostsPage(QWidget):
    """Dask works in the processes of its actions alone. The scheduler that is started here ends with the window.

    The list is read when the page opens, by its button, and when the scheduler of this page says who joins or leaves:
    never by itself at intervals, which would disturb a run.
    """

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._stale = True
        """Whether the list must be read again."""
        self._listing = OperationRunner(self)
        self._listing.ended.connect(self._listed)
        idle = self.tr("It does not run in this window.")
        self.scheduler = ServingCard(context.theme, self.tr("Scheduler on this computer"), idle, self)
        self.scheduler.start_wanted.connect(self.start_scheduler)
        self.scheduler.said.connect(self._scheduler_says)
        column = QVBoxLayout(self)
        column.setContentsMargins(28, 24, 28, 20)
        column.setSpacing(14)
        title = plain_label(self.tr("Hosts"), self)
        title.setFont(context.theme.font(FontRole.TITLE))
        about = plain_label(
            self.tr(
                "Computers that this console knows: each runs an agent, and a scheduler brings them together. All of "
                "them have one owner: anyone with a certificate of this cluster can run code on every host of it."
            ),
            self,
        )
        about.setWordWrap(True)
        about.setProperty("muted", True)
        self.parts = ResultParts(context.theme, self)
        self.busy = busy_bar(self.tr("The hosts are asked"), self)
        self.busy.hide()
        self.note = plain_label("", self)
        self.note.setWordWrap(True)
        self.note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        for widget in (title, about, self.scheduler, self._list_head(), self.busy, self.note, self.parts):
            column.addWidget(widget)
        column.addStretch(1)
        set_chapter(self, "how-to/enrol-hosts.md")
        self._say(self.tr("Start the scheduler here, or enter the address of one that runs elsewhere and refresh."))

    def showEvent(self, event: QShowEvent) -> None:
        """Read the list when the page is first seen, where there has been a scheduler."""
        super().showEvent(event)
        if self._stale and self._context.state.text(ADDRESS_KEY):
            self.refresh()

    def refresh(self) -> None:
        """Ask the hosts again, unless they are being asked."""
        self._stale = True
        if self._listing.running or not self._address_is_valid():
            return
        self._stale = False
        address = self.address.text().strip()
        self._context.state.set(ADDRESS_KEY, address)
        self.busy.show()
        self.refresh_button.setEnabled(False)
        self._listing.start(LIST, {"scheduler": address})

    def start_scheduler(self) -> None:
        """Start the scheduler in a process of its own."""
        self.scheduler.begin(SERVE, self._context.plugins.operation(SERVE).parameters().model_dump(mode="json"))

    def enrol(self) -> OperationDialog:
        """Open the dialog that enrols a host."""
        return self._dialog(ENROL)

    def collect(self) -> OperationDialog:
        """Open the dialog that brings the samples which runs have left on hosts."""
        dialog = self._samples_dialog(COLLECT)
        dialog.finished.connect(self.refresh)
        return dialog

    def summarise(self) -> OperationDialog:
        """Open the dialog that summarises the samples of a campaign host by host."""
        return self._samples_dialog(SUMMARISE)

    def _samples_dialog(self, name: str) -> OperationDialog:
        return self._dialog(name, scheduler=self.address.text().strip(), db=str(self._context.database))

    def _dialog(self, name: str, **values: Any) -> OperationDialog:
        operation = self._context.plugins.operation(name)
        given = operation.parameters().model_dump() | values
        dialog = OperationDialog(self.window(), operation, self._context.theme, given)
        dialog.open()
        return dialog

    def _list_head(self) -> QWidget:
        head = QWidget(self)
        label = plain_label(self.tr("Sche&duler"), head)
        self.address = QLineEdit(head)
        default = self._context.plugins.operation(LIST).parameters().model_dump()["scheduler"]
        self.address.setText(self._context.state.text(ADDRESS_KEY, default))
        self.address.setAccessibleName(self.tr("Address of the scheduler"))
        self.address.returnPressed.connect(self.refresh)
        label.setBuddy(self.address)
        self.refresh_button = self._button(self.tr("&Refresh"), "repeat", self.refresh)
        self.enrol_button = self._button(self.tr("&Enrol a host ..."), "certificate", self.enrol)
        self.collect_button = self._button(self.tr("&Collect samples ..."), "import", self.collect)
        self.summarise_button = self._button(self.tr("&Summarise samples ..."), "report", self.summarise)
        line = QHBoxLayout(head)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(10)
        line.addWidget(label)
        line.addWidget(self.address, 1)
        for button in (self.refresh_button, self.collect_button, self.summarise_button, self.enrol_button):
            line.addWidget(button)
        return head

    def _button(self, text: str, icon: str, clicked: Any) -> QPushButton:
        button = QPushButton(text, self)
        self._context.theme.bind_icon(button, icon)
        button.clicked.connect(lambda _checked: clicked())
        return button

    def _address_is_valid(self) -> bool:
        parameters = self._context.plugins.operation(LIST).parameters
        try:
            parameters.model_validate({"scheduler": self.address.text().strip()})
        except ValidationError as error:
            self._say(fault_sentence(error, parameters), bad=True)
            return False
        return True

    def _scheduler_says(self, sentence: str) -> None:
        if (found := _ADDRESS.search(sentence)) is not None:
            self.address.setText(found.group().rstrip("."))
        self.refresh()

    def _listed(self, end: OperationEnd) -> None:
        self.busy.hide()
        self.refresh_button.setEnabled(True)
        if end.result is not None and end.outcome is Outcome.DONE:
            self._say("\n".join(end.result.warnings), bad=True)
            self.parts.show_parts(end.result.parts)
        else:
            self._say(end.sentence, bad=True)
            self.parts.show_parts(())
        if self._stale:
            self.refresh()

    def _say(self, sentence: str, *, bad: bool = False) -> None:
        self.note.setText(sentence)
        self.note.setVisible(bool(sentence))
        set_tone(self.note, "bad" if bad else "")
