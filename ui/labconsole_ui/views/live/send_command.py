"""Commands into the run in progress: a button with the trial's commands, and their dialog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.errors import UserError
from labconsole.model.trial_command import TrialCommand
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import fit_height

_WIDTH = 580
_ROLES_MS = 500
"""Interval at which the dialog reads the roles that the run has started."""
_MAX_VISIBLE = 20


class CommandButton(QPushButton):
    """Offers the commands of the run in progress; hidden where there are none."""

    def __init__(self, bridge: QueueBridge, theme: Theme, selected_role: Callable[[], str], parent: QWidget) -> None:
        """`selected_role` gives the role that a dialog proposes."""
        super().__init__(parent)
        self.setText(self.tr("Send command"))
        self.setToolTip(self.tr("Send a command into the run in progress; it is recorded as an event of the run"))
        self._bridge = bridge
        self._theme = theme
        self._selected_role = selected_role
        self._offered: tuple[int | None, Sequence[TrialCommand]] = (None, ())
        self.setMenu(QMenu(self))
        self.hide()

    def offer(self, run_id: int | None, commands: Sequence[TrialCommand]) -> None:
        """Offer these commands of a run; without any the button is hidden."""
        if (run_id, commands) != self._offered:
            self._offered = (run_id, commands)
            menu = self.menu()
            menu.clear()
            for command in commands:
                action = menu.addAction(self.tr("{0} …").format(command.title))
                action.setToolTip(command.description)
                action.triggered.connect(partial(self.open_dialog, command))
        self.setVisible(bool(commands))

    def open_dialog(self, command: TrialCommand) -> CommandDialog | None:
        """Open the dialog of a command; the window stays usable. None once the run has ended."""
        run_id, _ = self._offered
        if run_id is None:
            return None
        dialog = CommandDialog(self.window(), command, run_id, self._bridge, self._theme, self._selected_role())
        dialog.show()
        return dialog


class CommandDialog(QDialog):
    """Asks for the parameters of a command, and for its role, and sends it."""

    def __init__(
        self, parent: QWidget, command: TrialCommand, run_id: int, bridge: QueueBridge, theme: Theme, role: str
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Run {0}: {1}").format(run_id, command.title))
        self.setMinimumWidth(_WIDTH)
        self._command = command
        self._run_id = run_id
        self._bridge = bridge
        self.role_combo = QComboBox(self)
        self.role_combo.setAccessibleName(self.tr("Role"))
        self.role_combo.setMaxVisibleItems(_MAX_VISIBLE)
        self.form = ParameterForm(command.parameters, theme, parent=self)
        self.refusal = plain_label("", self)
        self.refusal.setProperty("tone", "bad")
        self.refusal.setWordWrap(True)
        self.refusal.hide()
        self.send_button = QPushButton(self.tr("Send"), self)
        self.send_button.setProperty("primary", True)
        self.send_button.setDefault(True)
        self.send_button.clicked.connect(self._send)
        self.cancel_button = QPushButton(self.tr("Cancel"), self)
        self.cancel_button.clicked.connect(self.reject)
        self._build()
        self._roles_due = QTimer(self)
        self._roles_due.setInterval(_ROLES_MS)
        self._roles_due.timeout.connect(self._find_roles)
        self._find_roles()
        self.role_combo.setCurrentIndex(max(0, self.role_combo.findText(role)))
        if command.roles:
            self._roles_due.start()
        self.form.validated.connect(self._allow)
        self._allow()
        fit_height(self)

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        description = plain_label(self._command.description, self)
        description.setWordWrap(True)
        description.setProperty("muted", True)
        column.addWidget(description)
        if self._command.roles:
            line = QFormLayout()
            line.addRow(self.tr("Role"), self.role_combo)
            column.addLayout(line)
        else:
            self.role_combo.hide()
        column.addWidget(self.form)
        column.addWidget(self.refusal)
        column.addStretch(1)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.send_button)
        buttons.addWidget(self.cancel_button)
        column.addLayout(buttons)

    def _find_roles(self) -> None:
        """Offer the started roles that accept the command."""
        roles = [role for role in self._bridge.queue.roles(self._run_id) if self._command.takes(role)]
        known = {self.role_combo.itemText(place) for place in range(self.role_combo.count())}
        self.role_combo.addItems([role for role in roles if role not in known])
        self._allow()

    def _allow(self) -> None:
        receiver = not self._command.roles or bool(self.role_combo.currentText())
        self.send_button.setEnabled(receiver and self.form.parameters is not None)

    def _send(self) -> None:
        self.form.validate()  # what was typed last may not have been validated
        parameters = self.form.parameters
        if parameters is None:
            return
        role = self.role_combo.currentText() if self._command.roles else ""
        try:
            self._bridge.queue.command(
                self._run_id, self._command.name, parameters.model_dump(mode="json"), role=role, sent_by="window"
            )
        except UserError as error:
            self.refusal.setText(str(error))
            self.refusal.show()
            fit_height(self)
            return
        self.accept()
