"""The card of the lab's OCSP responder: start, stop, its messages, and its URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QPushButton, QSpinBox, QVBoxLayout, QWidget

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.security.secrets import Secret, SecretRequest, missing_secrets
from labconsole_certificates.panel.tab import TabWork
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.operations.operation_runner import OperationRunner
from labconsole_ui.theme.theme import FontRole
from labconsole_ui.widgets.labels import IconLabel, plain_label
from labconsole_ui.widgets.secret_dialog import SecretDialog

ACTION = "certificates.serve-ocsp"
PORT = 2560
"""Usual port of lab responders; certificates may name it in their OCSP URL."""
_LOOPBACK = "127.0.0.1"


class ResponderCard(QFrame):
    """Runs one responder at a time, in the process of its action; it exits with the window.

    `answers` carries whether it answers from now on.
    """

    answers = Signal(bool)

    def __init__(self, tab_work: TabWork, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._tab_work = tab_work
        self._icon = IconLabel(tab_work.theme, "stop", 20, "muted")
        title = plain_label(self.tr("OCSP responder"), self)
        title.setFont(tab_work.theme.font(FontRole.STRONG))
        self.state = plain_label("", self)
        self.state.setWordWrap(True)
        self.state.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.authority_box = WheelIgnoringComboBox(self)
        self.authority_box.setSizeAdjustPolicy(WheelIgnoringComboBox.SizeAdjustPolicy.AdjustToContents)
        self.authority_box.setAccessibleName(self.tr("CA that it answers for"))
        self.port_box = QSpinBox(self)
        self.port_box.setRange(1024, 65_535)
        self.port_box.setValue(PORT)
        self.port_box.setPrefix(self.tr("Port "))
        self.port_box.setAccessibleName(self.tr("Port"))
        self.start_button = QPushButton(self.tr("&Start"), self)
        tab_work.theme.bind_icon(self.start_button, "run")
        self.start_button.clicked.connect(lambda _checked: self.start())
        self.stop_button = QPushButton(self.tr("Sto&p"), self)
        tab_work.theme.bind_icon(self.stop_button, "stop")
        self.stop_button.clicked.connect(lambda _checked: self.stop())
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(title)
        texts.addWidget(self.state)
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 8, 12, 8)
        line.setSpacing(10)
        line.addWidget(self._icon)
        line.addLayout(texts, 1)
        for widget in (self.authority_box, self.port_box, self.start_button, self.stop_button):
            line.addWidget(widget)
        self._responder = OperationRunner(self)
        self._responder.said.connect(self._show_running)
        self._responder.ended.connect(self._show_ended)
        self._show_stopped(self.tr("It is not running. It answers on loopback alone, for the lab."))

    @property
    def running(self) -> bool:
        """Whether it answers, or is about to."""
        return self._responder.running

    @property
    def url(self) -> str:
        """Its URL while it runs."""
        return f"http://{_LOOPBACK}:{self.port_box.value()}/"

    def show_authorities(self, authorities: Sequence[tuple[str, str]]) -> None:
        """The CAs that it can answer for: fingerprint and name of each."""
        chosen = self.authority_box.currentData()
        self.authority_box.blockSignals(True)
        self.authority_box.clear()
        for sha256, name in authorities:
            self.authority_box.addItem(name, sha256)
        self.authority_box.setCurrentIndex(max(0, self.authority_box.findData(chosen)))
        self.authority_box.blockSignals(False)
        self.start_button.setEnabled(bool(authorities) and not self.running)

    def start(self) -> None:
        """Start it for the chosen CA; asks for a passphrase that is not stored."""
        action = self._tab_work.services.page.plugins.operation(ACTION)
        parameters = action.parameters.model_validate(
            {"authority": self.authority_box.currentData(), "port": self.port_box.value()}
        )
        self.start_button.setEnabled(False)
        self._tab_work.submit(
            lambda: missing_secrets(action.secrets(parameters)),
            partial(self._ask, parameters.model_dump(mode="json")),
            self._show_failed,
        )

    def stop(self) -> None:
        """Stop it."""
        self.stop_button.setEnabled(False)
        self._responder.cancel()

    def _ask(self, values: dict[str, Any], missing: Sequence[SecretRequest]) -> None:
        if not missing:
            self._begin(values, {})
            return
        dialog = SecretDialog(self.window(), missing, self.tr("It is kept while the responder runs."))
        dialog.finished.connect(partial(self._answered, dialog, values))
        dialog.open()

    def _answered(self, dialog: SecretDialog, values: dict[str, Any], result: int) -> None:
        entered = dialog.pop_secrets()
        if result == QDialog.DialogCode.Accepted:
            self._begin(values, entered)
        else:
            self.start_button.setEnabled(True)

    def _begin(self, values: dict[str, Any], secrets: Mapping[str, Secret]) -> None:
        self._responder.start(ACTION, values, secrets)
        self._icon.show_icon("waiting", "muted")
        self.state.setText(self.tr("Starting ..."))
        self.authority_box.setEnabled(False)
        self.port_box.setEnabled(False)
        self.start_button.hide()
        self.stop_button.setEnabled(True)
        self.stop_button.show()

    def _show_running(self, sentence: str) -> None:
        self.answers.emit(True)
        self._icon.show_icon("running", "good")
        self.state.setText(sentence)

    def _show_ended(self, end: OperationEnd) -> None:
        if end.outcome is Outcome.FAILED:
            self._show_failed(end.sentence)
        else:
            self._show_stopped(end.sentence)

    def _show_failed(self, sentence: str) -> None:
        self._show_stopped(sentence)
        self._icon.show_icon("error", "bad")

    def _show_stopped(self, sentence: str) -> None:
        self._icon.show_icon("stop", "muted")
        self.state.setText(sentence)
        self.stop_button.hide()
        self.start_button.show()
        self.start_button.setEnabled(bool(self.authority_box.count()))
        self.authority_box.setEnabled(True)
        self.port_box.setEnabled(True)
        self.answers.emit(False)
