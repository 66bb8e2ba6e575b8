"""The dialogs for one's own CAs: a root, an intermediate, one that was made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from labconsole.clock import wall_now
from labconsole.security.pki.records import State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.names import short_name
from labconsole.security.x509.profiles import AUTHORITIES
from labconsole_certificates.operations.references import authorities_of
from labconsole_certificates.panel.editors import one_name_of, one_of
from labconsole_certificates.panel.tab import TabServices
from labconsole_ui.action_dialog import ActionDialog
from labconsole_ui.form.row import EditorFactory


class AuthorityForms(QObject):
    """Opens them. A root may be that of a new State; an intermediate needs an authority whose key is here."""

    def __init__(self, services: TabServices, parent: QWidget) -> None:
        super().__init__(parent)
        self._services = services
        self._snapshot: Snapshot | None = None
        theme = services.page.theme
        self.menu = QMenu(parent)
        self.root = self._action(self.tr("&Root CA …"), self.create_root)
        self.intermediate = self._action(self.tr("&Intermediate CA …"), self.create_intermediate)
        self.imported = self._action(self.tr("I&mport a CA …"), self.import_authority)
        theme.bind_icon(self.root, "authority")
        theme.bind_icon(self.intermediate, "authority")
        theme.bind_icon(self.imported, "import")

    def refresh(self, snapshot: Snapshot) -> None:
        """The States that there are now."""
        self._snapshot = snapshot
        local = {state.id for state in snapshot.states if state.local}
        with_key = (record for record in snapshot.certificates if record.key is not None and record.state in local)
        self.intermediate.setEnabled(any(record.profile in AUTHORITIES for record in with_key))

    def create_root(self, state: str = "") -> ActionDialog:
        """Make the root of a State, which is added where there is none of its name."""
        return self._open("certificates.create-root", {"state": state}, {})

    def create_intermediate(self, state: str = "") -> ActionDialog:
        """Make a CA below one of this console."""
        issuing = self._issuing()
        chosen = state or next((found.name for found in issuing), "")
        authorities = [("", self.tr("The State's newest that can issue"))]
        for found in issuing:
            for record in self._authorities(found):
                authorities.append((record.sha256, f"{found.name}: {short_name(record.certificate)}"))
        return self._open(
            "certificates.create-intermediate",
            {"state": chosen, "issuer": ""},
            {
                "state": one_name_of(self._local()),
                "issuing_state": one_of(
                    [("", self.tr("The same State")), *((found.name, found.name) for found in issuing)]
                ),
                "issuer": one_of(authorities),
            },
        )

    def import_authority(self, state: str = "", file: Path | None = None, key_file: Path | None = None) -> ActionDialog:
        """Take in a CA with its key."""
        values = {"state": state}
        if file is not None:
            values["file"] = str(file)
        if key_file is not None:
            values["key_file"] = str(key_file)
        return self._open("certificates.import-authority", values, {})

    def _issuing(self) -> list[State]:
        return [state for state in self._states() if state.local and self._authorities(state)]

    def _authorities(self, state: State) -> Any:
        return authorities_of(self._snapshot, state, wall_now()) if self._snapshot is not None else ()

    def _local(self) -> list[str]:
        return [state.name for state in self._states() if state.local]

    def _states(self) -> tuple[State, ...]:
        return self._snapshot.states if self._snapshot is not None else ()

    def _action(self, text: str, work: Any) -> QAction:
        action = QAction(text, self.menu)
        action.triggered.connect(lambda _checked=False: work())
        self.menu.addAction(action)
        return action

    def _open(self, name: str, values: Mapping[str, Any], editors: Mapping[str, EditorFactory]) -> ActionDialog:
        return self._services.open_action(name, values, editors)
