"""The dialogs for own CAs: a new State, a root, an intermediate, or an imported CA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from labconsole.clock import wall_now
from labconsole.engine.operation_process import OperationEnd
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.record_lookup import authorities_of
from labconsole_certificates.panel.form_editors import fixed, one_name_of, one_of
from labconsole_certificates.panel.tab import TabWork
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.operations.operation_dialog import OperationDialog


class AuthorityForms(QObject):
    """Opens them for the chosen State, or for a new one where this console has none; `menu` offers all."""

    def __init__(self, tab_work: TabWork, chosen: Callable[[], State | None], page: QWidget) -> None:
        super().__init__(page)
        self._tab_work = tab_work
        self._chosen = chosen
        self._page = page
        self.menu = QMenu(page)
        self._action(self.tr("New &State with its root CA …"), "state", self.create_state)
        self.menu.addSeparator()
        self.root = self._action(self.tr("&Root CA …"), "authority", self.create_root)
        self.intermediate = self._action(self.tr("&Intermediate CA …"), "authority", self.create_intermediate)
        self._action(self.tr("I&mport a CA …"), "import", self.import_authority)
        self.menu.addSeparator()
        self.domain = self._action(self.tr("&Domain of a State …"), "state", self.change_domain)
        self.refresh(Snapshot())

    def refresh(self, snapshot: Snapshot) -> None:
        """Use the States of this snapshot."""
        self._snapshot = snapshot
        local = {state.id for state in snapshot.states if state.local}
        with_key = (record for record in snapshot.certificates if record.key is not None and record.state in local)
        self.root.setEnabled(bool(local))
        self.domain.setEnabled(bool(snapshot.states))
        self.intermediate.setEnabled(any(record.profile in AUTHORITIES for record in with_key))

    def create_state(self) -> OperationDialog:
        """Ask for a new State, then for its root."""
        return self._new_state(self._open_root)

    def change_domain(self) -> OperationDialog:
        """Let a State claim other domains; the form begins with those that it has."""
        domains = {state.name: state.domain.split() for state in self._snapshot.states}
        chosen = self._chosen() or self._snapshot.states[0]
        values = {"state": chosen.name, "domain": domains[chosen.name]}
        dialog = self._open("certificates.domain", values, {"state": one_name_of(list(domains))})
        state, domain = dialog.form.row("state"), dialog.form.row("domain")
        state.edited.connect(lambda: domain.set_value(domains[state.value()]))
        return dialog

    def create_root(self) -> OperationDialog:
        """Create a root; a State may have several."""
        return self._open_root(self._first())

    def create_intermediate(self) -> OperationDialog:
        """Create a CA below one of this console."""
        issuing = [state for state in self._snapshot.states if state.local and self._authorities(state)]
        authorities = [("", self.tr("The State's newest that can issue"))]
        for found in issuing:
            for record in self._authorities(found):
                authorities.append((record.sha256, f"{found.name}: {short_name(record.certificate)}"))
        states = [("", self.tr("The same State")), *((found.name, found.name) for found in issuing)]
        return self._open(
            "certificates.create-intermediate",
            {"state": self._first()},
            {"state": one_name_of(self._local()), "issuing_state": one_of(states), "issuer": one_of(authorities)},
        )

    def import_authority(self, file: Path | None = None, key_file: Path | None = None) -> OperationDialog:
        """Import a CA with its key; the State is asked for first if there is none."""
        files = {name: str(path) for name, path in (("file", file), ("key_file", key_file)) if path is not None}
        if self._local():
            return self._open_import(files, self._first())
        return self._new_state(partial(self._open_import, files))

    def import_pkcs12(self, file: Path | None) -> OperationDialog:
        """Import an end certificate with its key, which another State created for one of this console."""
        files = {} if file is None else {"file": str(file)}
        if self._local():
            return self._open_pkcs12(files, self._first())
        return self._new_state(partial(self._open_pkcs12, files))

    def _open_pkcs12(self, files: Mapping[str, str], state: str) -> OperationDialog:
        senders = [("", self.tr("Not noted")), *((found.name, found.name) for found in self._snapshot.states)]
        editors = {"state": self._states_and(state), "sender": one_of(senders)}
        return self._open("certificates.import-pkcs12", {"state": state, **files}, editors)

    def _open_root(self, state: str) -> OperationDialog:
        return self._open("certificates.create-root", {"state": state}, {"state": self._states_and(state)})

    def _open_import(self, files: Mapping[str, str], state: str) -> OperationDialog:
        values = {"state": state, **files}
        return self._open("certificates.import-authority", values, {"state": self._states_and(state)})

    def _new_state(self, then: Callable[[str], object]) -> OperationDialog:
        """Ask for a State of this console; once it was added, `then` opens the next step for it."""
        here = fixed(False, self.tr("Its keys are stored in this console. Its CA follows in the next step."))
        dialog = self._open("certificates.add-state", {}, {"remote": here})
        dialog.ended.connect(partial(self._state_added, dialog, then))
        return dialog

    def _state_added(self, dialog: OperationDialog, then: Callable[[str], object], end: OperationEnd) -> None:
        if end.passed and end.result is not None:
            dialog.accept()
            then(end.result.data["state"])

    def _authorities(self, state: State) -> tuple[CertificateRecord, ...]:
        return authorities_of(self._snapshot, state, wall_now())

    def _local(self) -> list[str]:
        return [state.name for state in self._snapshot.states if state.local]

    def _states_and(self, name: str) -> EditorFactory:
        """A choice of the local States, and of the one called `name`, which may be newer than the snapshot."""
        return one_name_of(list(dict.fromkeys((*self._local(), name))))

    def _first(self) -> str:
        """The State that is chosen in the tree, else the first of this console."""
        chosen = self._chosen()
        names = self._local()
        return chosen.name if chosen is not None and chosen.name in names else names[0] if names else ""

    def _action(self, text: str, icon: str, work: Callable[[], object]) -> QAction:
        action = self.menu.addAction(text)
        self._tab_work.theme.bind_icon(action, icon)
        action.triggered.connect(lambda _checked=False: work())
        return action

    def _open(self, name: str, values: Mapping[str, Any], editors: Mapping[str, EditorFactory]) -> OperationDialog:
        return self._tab_work.services.open_action(name, values, editors)
