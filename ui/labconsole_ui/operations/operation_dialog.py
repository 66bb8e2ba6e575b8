"""The dialog of an operation: its parameters, the confirmation, progress, and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.model.operation import Confirmation, Operation
from labconsole.model.trial import Parameters
from labconsole.security.secrets import Secret, SecretRequest, missing_secrets
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.operations.confirmation import ConfirmationBox
from labconsole_ui.operations.operation_progress import OperationProgressView
from labconsole_ui.operations.operation_runner import OperationRunner
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import fit_height
from labconsole_ui.widgets.secret_dialog import SecretDialog

_WIDTH = 580
_WIDTH_WITH_TABLES = 920


class OperationDialog(QDialog):
    """Asks for the parameters of `operation`, runs it in a process, and shows progress and result.

    The window stays usable. `ended` carries the `OperationEnd`. While the operation is in progress the dialog cannot be
    closed: Cancel ends it first.
    """

    ended = Signal(object)

    def __init__(
        self,
        parent: QWidget,
        operation: Operation[Any],
        theme: Theme,
        values: Mapping[str, Any] | None = None,
        editors: Mapping[str, EditorFactory] | None = None,
        given: Callable[[], Mapping[str, Secret] | None] = dict,
    ) -> None:
        """`values` are shown in the form at first; `editors` replaces its usual ones.

        `given` are secrets that one of these editors has; None while it has not all, and the operation cannot start.
        """
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(operation.title)
        self.setMinimumWidth(_WIDTH)
        self._operation = operation
        self._given = given
        self._background = Background(self)
        self._confirmation: Confirmation | None = None
        self._validated: Parameters | None = None
        self._start_wanted = False
        self._runner = OperationRunner(self)
        self._fitting = QTimer(self)
        self._fitting.setSingleShot(True)
        self._fitting.setInterval(0)
        self._fitting.timeout.connect(partial(fit_height, self))
        self.form = ParameterForm(operation.parameters, theme, editors, self)
        self.confirmation = ConfirmationBox(theme, self)
        self.work = OperationProgressView(theme, self)
        self._runner.pumped.connect(self.work.follow)
        self._runner.ended.connect(self._finished)
        self._build(operation)
        self.form.set_values(values or {})
        self.form.validated.connect(self._check_again)
        self.form.validated.connect(self._fitting.start)
        self.confirmation.changed.connect(self._allow)
        self._check_again()

    @property
    def running(self) -> bool:
        """Whether the operation is in progress."""
        return self._runner.running

    def start(self, parameters: Parameters, given: Mapping[str, Secret] | None = None) -> None:
        """Start the operation; secrets that are neither `given` nor stored are asked for first."""
        given = dict(given or {})
        self._show_work()
        self.work.show_status(self.tr("Getting ready ..."))

        def read_requests() -> Sequence[SecretRequest]:
            requests = self._operation.secrets(parameters)
            return missing_secrets(request for request in requests if request.key not in given)

        self._background.submit(read_requests, partial(self._ask, parameters, given), self._refused)

    def reject(self) -> None:
        """Close, unless the operation is in progress, or secrets are shown, which only the button closes."""
        if self.running:
            self.work.show_warning(
                self.tr("Still running: cancel it, or wait for it to finish, before you close the dialog.")
            )
            self._fitting.start()
        elif not self.work.shows_secrets:
            super().reject()

    def _build(self, operation: Operation[Any]) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        description = plain_label(operation.description, self)
        description.setWordWrap(True)
        description.setProperty("muted", True)
        self.start_button = QPushButton(operation.title, self)
        self.start_button.setProperty("primary", True)
        self.start_button.setDefault(True)
        self.start_button.clicked.connect(self._start_clicked)
        self.again_button = QPushButton(self.tr("Back"), self)
        self.again_button.clicked.connect(self._show_form)
        self.cancel_button = QPushButton(self.tr("Cancel"), self)
        self.cancel_button.clicked.connect(self._cancel)
        self.close_button = QPushButton(self.tr("Close"), self)
        self.close_button.clicked.connect(self._close)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        for button in (self.again_button, self.start_button, self.cancel_button, self.close_button):
            buttons.addWidget(button)
        for widget in (description, self.form, self.confirmation, self.work):
            column.addWidget(widget)
        column.addStretch(1)
        column.addLayout(buttons)
        self._show_form()

    # The form, and what must be typed

    def _show_form(self) -> None:
        self._show(form=True)
        self._allow()

    def _show_work(self) -> None:
        self._show(form=False)
        self.work.begin()

    def _show(self, *, form: bool) -> None:
        self.cancel_button.setAutoDefault(form)  # it gets the focus next: holding Return must not cancel
        self.form.setVisible(form)
        self.confirmation.setVisible(form and self._confirmation is not None)
        self.work.setVisible(not form)
        self.start_button.setVisible(form)
        self.again_button.setVisible(False)
        self.cancel_button.setVisible(True)
        self.cancel_button.setEnabled(True)
        self.close_button.setVisible(False)
        self._fitting.start()

    def _check_again(self) -> None:
        """Ask the operation which confirmation the entered values need; until it answers, nothing can start."""
        self._validated, self._start_wanted = None, False
        parameters = self.form.parameters
        if parameters is not None:
            self._background.submit(
                partial(self._operation.confirmation, parameters),
                partial(self._confirmation_known, parameters),
                self._confirmation_unknown,
            )
        self._allow()

    def _confirmation_known(self, parameters: Parameters, confirmation: Confirmation | None) -> None:
        if parameters is not self.form.parameters:
            return  # something else was entered meanwhile
        self._validated, self._confirmation = parameters, confirmation
        self.confirmation.ask(confirmation)
        self.confirmation.setVisible(confirmation is not None and not self.form.isHidden())
        self._fitting.start()
        self._allow()
        wanted, self._start_wanted = self._start_wanted, False
        if wanted and self.start_button.isEnabled():
            self._start_clicked()

    def _confirmation_unknown(self, sentence: str) -> None:
        self.confirmation.refuse(sentence)
        self.confirmation.setVisible(not self.form.isHidden())
        self._fitting.start()

    def _allow(self) -> None:
        complete = self._validated is not None and self._given() is not None
        self.start_button.setEnabled(complete and self.confirmation.given)

    def _start_clicked(self) -> None:
        if self.form.pending:  # what was entered last counts: it starts once that was checked
            self.form.validate()
            self._start_wanted = True
            return
        given = self._given()
        if self._validated is not None and given is not None:
            self.start(self._validated, given)

    # The work

    def _ask(self, parameters: Parameters, given: dict[str, Secret], missing: Sequence[SecretRequest]) -> None:
        if not self.isVisible():
            return  # closed while the keyring was asked
        if not missing:
            self._begin(parameters, given)
            return
        dialog = SecretDialog(
            self, missing, self.tr("Neither the keyring nor a file has it. It is kept for this only.")
        )
        dialog.finished.connect(partial(self._answered, dialog, parameters, given))
        dialog.open()

    def _answered(self, dialog: SecretDialog, parameters: Parameters, given: dict[str, Secret], result: int) -> None:
        entered = dialog.pop_secrets()
        if result == QDialog.DialogCode.Accepted:
            self._begin(parameters, {**given, **entered})
        else:
            self._show_form()

    def _begin(self, parameters: Parameters, secrets: Mapping[str, Secret]) -> None:
        self.work.show_status(f"{self._operation.title} ...")
        values = parameters.model_dump(mode="json")
        self._runner.start(self._operation.name, values, secrets, self.confirmation.typed)

    def _cancel(self) -> None:
        if not self.running:
            self.reject()
            return
        self.cancel_button.setEnabled(False)
        self.work.show_status(self.tr("Cancelling: results so far are kept ..."))
        self._runner.cancel()

    def _close(self) -> None:
        self.work.forget_secrets()
        self.reject()

    def _refused(self, sentence: str) -> None:
        self._finished(OperationEnd(Outcome.FAILED, sentence))

    def _finished(self, end: OperationEnd) -> None:
        self.work.finish(end)
        self.confirmation.clear()
        self.cancel_button.hide()
        self.close_button.show()
        self.close_button.setText(self.tr("I wrote it down") if self.work.shows_secrets else self.tr("Close"))
        (self.work if self.work.shows_secrets else self.close_button).setFocus()
        self.again_button.setVisible(not end.passed)
        self.resize(max(self.width(), _WIDTH_WITH_TABLES if self.work.parts.tables else 0), self.height())
        self._fitting.start()
        self.ended.emit(end)
