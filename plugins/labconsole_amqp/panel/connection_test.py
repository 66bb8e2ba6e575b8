"""The button "Test connection" of the form, for an external broker, and the result of the test."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from labconsole.errors import UserError
from labconsole.model.operation import conduct
from labconsole.security.secrets import Secret, SecretRequest, missing_secrets
from labconsole_amqp.choices import BrokerChoice
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.connection_check import WARNING, CheckConnection, ConnectionParameters
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label
from labconsole_ui.widgets.secret_dialog import SecretDialog

CheckResult = tuple[list[str], str]
"""The steps that succeeded, and the sentence of the one that failed; empty if none did."""


class ConnectionTest(QWidget):
    """Shown for an external broker; its result is hidden as soon as the form changes."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parameters: AmqpParameters | None = None
        self._tested: AmqpParameters | None = None
        self._running = False
        self._background = Background(self)
        self.button = QPushButton(self.tr("Test connection"), self)
        theme.bind_icon(self.button, "live", "link")
        self.button.setToolTip(self.tr("Connect to the broker as a run would: TCP, TLS, SASL, queue. Nothing is sent."))
        self.button.clicked.connect(self._start)
        self.result = QFrame(self)
        self._result_line = QHBoxLayout(self.result)
        self._result_line.setContentsMargins(12, 8, 12, 8)
        self._result_line.setSpacing(10)
        self.text = plain_label("", self.result)
        self.text.setAccessibleName(self.tr("Result of the connection test"))
        self.text.setWordWrap(True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._icon: QWidget = QWidget(self.result)
        self._result_line.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        self._result_line.addWidget(self.text, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.result)
        self.result.hide()

    def show_for(self, parameters: AmqpParameters | None) -> None:
        """Set the form's parameters, None while they are not valid; hidden for the embedded broker."""
        self._parameters = parameters
        external = parameters is not None and parameters.broker is BrokerChoice.EXTERNAL
        if parameters is not None:
            self.setVisible(external)
        self.button.setEnabled(external and not self._running)
        if parameters != self._tested and not self._running:
            self.result.hide()

    def _start(self) -> None:
        parameters = self._parameters
        if parameters is None or self._running:
            return
        self._running = True
        self._tested = parameters
        self.button.setEnabled(False)
        self._show(
            self.tr("Testing the connection to {host}:{port}").format(host=parameters.host, port=parameters.port),
            "info",
            "running",
        )
        self._background.submit(partial(_missing_secrets, parameters), partial(self._ask, parameters), self._failed)

    def _ask(self, parameters: AmqpParameters, missing: tuple[SecretRequest, ...]) -> None:
        if not missing:
            self._test(parameters, {})
            return
        dialog = SecretDialog(
            self.window(), missing, self.tr("Neither the keyring nor a file has it. It is forgotten after the test.")
        )
        dialog.accepted.connect(lambda: self._test(parameters, dialog.pop_secrets()))
        dialog.rejected.connect(self._cancelled)
        dialog.open()

    def _test(self, parameters: AmqpParameters, secrets: Mapping[str, Secret]) -> None:
        self._background.submit(partial(_run_check, parameters, secrets), self._done, self._failed)

    def _cancelled(self) -> None:
        self._check_finished()
        self.result.hide()

    def _done(self, result: CheckResult) -> None:
        steps, fault = result
        self._check_finished()
        marked = [step if step.startswith(WARNING) else f"✓ {step}" for step in steps]
        lines = [f"✗ {fault}", *marked] if fault else marked
        self._show("\n".join(lines), "bad" if fault else "good", "error" if fault else "good")

    def _failed(self, sentence: str) -> None:
        self._check_finished()
        self._show(sentence, "bad", "error")

    def _check_finished(self) -> None:
        self._running = False
        self.button.setEnabled(self._parameters is not None)

    def _show(self, text: str, tone: str, icon: str) -> None:
        self.text.setText(text)
        self.result.setProperty("message", tone)
        self.result.style().unpolish(self.result)
        self.result.style().polish(self.result)
        shown = IconLabel(self._theme, icon, 16, {"info": "link"}.get(tone, tone))
        self._result_line.replaceWidget(self._icon, shown)
        self._icon.hide()
        self._icon.deleteLater()
        self._icon = shown
        self.result.show()


class _Context:
    """`OperationContext` of the test, on a background thread; collects its steps."""

    stop_requested = False
    typed = ""

    def __init__(self, secrets: Mapping[str, Secret]) -> None:
        self.steps: list[str] = []
        self._secrets = secrets

    def progress(self, done: int, total: int) -> None:
        return

    def say(self, sentence: str) -> None:
        self.steps.append(sentence)

    def secret(self, key: str) -> Secret | None:
        return self._secrets.get(key)

    def hand_over(self, title: str, secret: Secret) -> None:
        raise NotImplementedError


def _missing_secrets(parameters: AmqpParameters) -> tuple[SecretRequest, ...]:
    return missing_secrets(CheckConnection().secrets(ConnectionParameters.of_run(parameters)))


def _run_check(parameters: AmqpParameters, secrets: Mapping[str, Secret]) -> CheckResult:
    context = _Context(secrets)
    try:
        conduct(CheckConnection(), ConnectionParameters.of_run(parameters), context)
    except UserError as error:
        return context.steps, str(error)
    return context.steps, ""
