"""The card of the lab's OCSP responder: the CA that it answers for, its port, and its URL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from PySide6.QtWidgets import QDialog, QSpinBox, QWidget

from labconsole.security.secrets import SecretRequest, missing_secrets
from labconsole_certificates.panel.tab import TabWork
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.operations.serving_card import ServingCard
from labconsole_ui.widgets.secret_dialog import SecretDialog

ACTION = "certificates.serve-ocsp"
PORT = 2560
"""Usual port of lab responders; certificates may name it in their OCSP URL."""
_LOOPBACK = "127.0.0.1"


class ResponderCard(ServingCard):
    """Runs one responder at a time."""

    def __init__(self, tab_work: TabWork, parent: QWidget) -> None:
        idle = self.tr("It is not running. It answers on loopback alone, for the lab.")
        super().__init__(tab_work.theme, self.tr("OCSP responder"), idle, parent)
        self._tab_work = tab_work
        self.authority_box = WheelIgnoringComboBox(self)
        self.authority_box.setSizeAdjustPolicy(WheelIgnoringComboBox.SizeAdjustPolicy.AdjustToContents)
        self.authority_box.setAccessibleName(self.tr("CA that it answers for"))
        self.port_box = QSpinBox(self)
        self.port_box.setRange(1024, 65_535)
        self.port_box.setValue(PORT)
        self.port_box.setPrefix(self.tr("Port "))
        self.port_box.setAccessibleName(self.tr("Port"))
        self.add_setting(self.authority_box)
        self.add_setting(self.port_box)
        self.start_wanted.connect(self.start)
        self.serves.connect(lambda _serving: self._allow())
        self._allow()

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
        self._allow()

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
            self.show_failed,
        )

    def _allow(self) -> None:
        self.start_button.setEnabled(bool(self.authority_box.count()) and not self.running)

    def _ask(self, values: dict[str, Any], missing: Sequence[SecretRequest]) -> None:
        if not missing:
            self.begin(ACTION, values)
            return
        dialog = SecretDialog(self.window(), missing, self.tr("It is kept while the responder runs."))
        dialog.finished.connect(partial(self._answered, dialog, values))
        dialog.open()

    def _answered(self, dialog: SecretDialog, values: dict[str, Any], result: int) -> None:
        entered = dialog.pop_secrets()
        if result == QDialog.DialogCode.Accepted:
            self.begin(ACTION, values, entered)
        else:
            self._allow()
